"""Warnings of images that distributed samplers repeat."""

from __future__ import annotations

import warnings
from typing import Any


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


def warn_of_repeats(name: str, processes: int, drawn: int, images: int, fix: str) -> None:
    """Warn that processes drew more images than there are."""
    text = (
        f"{name}: the samplers of {processes} processes draw {drawn} images from a data set "
        f"of {images}, so {drawn - images} are counted twice and skew the scores. {fix}"
    )
    warnings.warn(text, stacklevel=3)
