"""Warnings of images that distributed samplers repeat."""

from __future__ import annotations

import warnings
from typing import Any
from weakref import WeakSet

from segiou._support.text import plural
from segiou.hooks._reading import callers


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
    for loop, _ in callers():
        is_loop = type(loop).__name__ == "_EvaluationLoop" and not loop.trainer.sanity_checking
        if is_loop and loop not in _CHECKED:
            _CHECKED.add(loop)
            warn_of_lightning(loop.trainer, loop._stage.dataloader_prefix, fix)


_CHECKED: WeakSet[Any] = WeakSet()


def warn_of_repeats(name: str, processes: int, drawn: int, images: int, fix: str) -> None:
    """Warn that processes drew more images than there are."""
    twice = plural(drawn - images, "is counted twice and skews", "are counted twice and skew")
    text = (
        f"{name}: the samplers of {processes} processes draw {drawn} images from a data set "
        f"of {images}, so {twice} the scores. {fix}"
    )
    warnings.warn(text, stacklevel=3)
