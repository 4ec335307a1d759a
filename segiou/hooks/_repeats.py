"""Warnings of images that distributed samplers repeat."""

from __future__ import annotations

import warnings
from typing import Any
from weakref import WeakSet

from segiou._support.text import plural
from segiou.hooks._frameworks import calling_loops, prepared_loaders


def warn_of_repeated_images(name: str, loader: Any, processes: int, fix: str) -> None:
    """Warn if the samplers of all processes together give more images than the data set has."""
    sampler: Any = getattr(getattr(loader, "batch_sampler", None), "sampler", None)
    try:
        drawn, images = processes * len(sampler), len(loader.dataset)
    except (TypeError, AttributeError):
        return  # unknown without lengths
    if processes > 1 and drawn > images:
        warn_of_repeats(name, processes, drawn, images, fix)


def warn_of_lightning(trainer: Any, stage: str, fix: str) -> None:
    """Warn of the repeated images of each dataloader of a stage."""
    loaders = getattr(trainer, f"{stage}_dataloaders")
    several = loaders if isinstance(loaders, (list, tuple)) else [loaders]
    for i, loader in enumerate(several if trainer.is_global_zero else ()):
        warn_of_repeated_images(f"{stage} dataloader {i}", loader, trainer.world_size, fix)


def warn_in_loops(fix: str) -> None:
    """Warn once per loop of Lightning that called, if its samplers repeat images."""
    for loop, trainer, stage in calling_loops():
        if loop not in _CHECKED and not trainer.sanity_checking:
            _CHECKED.add(loop)
            warn_of_lightning(trainer, stage, fix)


_CHECKED: WeakSet[Any] = WeakSet()


def warn_of_repeats(name: str, processes: int, drawn: int, images: int, fix: str) -> None:
    """Warn that processes drew more images than there are."""
    twice = plural(drawn - images, "is counted twice and skews", "are counted twice and skew")
    text = (
        f"{name}: the samplers of {processes} processes draw {drawn} images from a data set "
        f"of {images}, so {twice} the scores. {fix}"
    )
    warnings.warn(text, stacklevel=3)


def warn_of_accelerate(accelerator: Any, batches: int, fix: str) -> None:
    """Warn if these are all batches of a loader that filled the last ones with repeated images."""
    processes = accelerator.num_processes
    for loader in prepared_loaders(accelerator):
        try:
            images, together = len(loader.dataset), loader.total_batch_size
            is_even = loader.batch_sampler.even_batches and not loader.batch_sampler.drop_last
        except (TypeError, AttributeError):
            continue
        drawn = -(-images // together) * together
        if processes > 1 and is_even and processes * len(loader) == batches and drawn > images:
            warn_of_repeats("all_reduce", processes, drawn, images, fix)
