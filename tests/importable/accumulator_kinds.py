"""Every accumulator with options of its own, and images to update it with."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from segiou import ChannelCounts, ConfusionMatrix, ScoreHistogram
from segiou.measures.boundary import BoundaryOptions
from segiou.measures.objects import InstanceCounts, PanopticCounts
from segiou.scoring import Evaluator

NUMBER = 6
BOUNDARIES = BoundaryOptions(("2%", 2))


@dataclass(frozen=True)
class Kind:
    """How to make an accumulator, update it with an image, and make one of other options."""

    make: Callable[[], Any]
    update: Callable[[Any, np.random.Generator], Any]
    other: Callable[[], Any]


def labels(rng: np.random.Generator, *values: int) -> np.ndarray:
    """Patches of labels, (6, 8)."""
    return rng.choice(values, (3, 4)).repeat(2, 0).repeat(2, 1)


KINDS = {
    "confusion": Kind(
        lambda: ConfusionMatrix(["a", "b", "c"], ignore=255, unassigned="count"),
        lambda found, rng: found.update(labels(rng, 0, 1, 2, 255), labels(rng, 0, 1, 2, 3)),
        lambda: ConfusionMatrix(["a", "b", "c"], ignore=255),
    ),
    "channels": Kind(
        lambda: ChannelCounts(["a", "b"], exclude="a"),
        lambda found, rng: found.update(
            *(rng.random((2, 2, 6, 8)) < 0.4), axis=0, mask=labels(rng, 0, 1) == 1
        ),
        lambda: ChannelCounts(["a", "b"]),
    ),
    "boundaries": Kind(
        lambda: Evaluator(3, measures=[BOUNDARIES]),
        lambda found, rng: found.update(labels(rng, 0, 1, 2), labels(rng, 0, 1, 2)),
        lambda: Evaluator(3),
    ),
    "panoptic": Kind(
        lambda: PanopticCounts(3, ignore=9, things=[0, 2]),
        lambda found, rng: found.update(
            *(labels(rng, *values) for values in ((0, 1, 2, 9), (1, 2), (0, 1, 2, 9), (1, 2)))
        ),
        lambda: PanopticCounts(3, ignore=9, things=[0, 2], protocol="torchmetrics"),
    ),
    "instances": Kind(
        lambda: InstanceCounts(3, things=[1, 2]),
        lambda found, rng: found.update(labels(rng, 0, 1, 2), labels(rng, 0, 1), labels(rng, 0, 2)),
        lambda: InstanceCounts(3, things=[1]),
    ),
    **{
        f"scores, {bins} bins": Kind(
            lambda bins=bins: ScoreHistogram(3, bins=bins, ignore=255),
            lambda found, rng: found.update(labels(rng, 0, 1, 2, 255), rng.random((3, 6, 8)), 0),
            lambda: ScoreHistogram(3, bins=5, ignore=255),
        )
        for bins in (7, 1000)
    },
    "scores with regions": Kind(
        lambda: ScoreHistogram(3, bins=7, ignore=255, regions=True),
        lambda found, rng: found.update(labels(rng, 0, 1, 2, 255), rng.random((3, 6, 8)), 0),
        lambda: ScoreHistogram(3, bins=7, ignore=255),
    ),
    "images": Kind(
        lambda: Evaluator(3, ignore=255),
        lambda found, rng: found.update(
            labels(rng, 0, 1, 2, 255)[None], labels(rng, 0, 1, 2)[None], ids=[rng.integers(1 << 60)]
        ),
        lambda: Evaluator(3),
    ),
    "evaluator": Kind(
        lambda: Evaluator(3, measures=["components"]),
        lambda found, rng: found.update(labels(rng, 0, 1, 2)[None], labels(rng, 0, 1, 2)[None]),
        lambda: Evaluator(3),
    ),
}


def counted(name: str, images: Iterable[int]) -> Any:
    """An accumulator of some of the images, which are numbers."""
    found = KINDS[name].make()
    for image in images:
        KINDS[name].update(found, np.random.default_rng(image))
    return found


def counted_each(images: Iterable[int]) -> dict[str, Any]:
    """Accumulators of all kinds."""
    images = [*images]
    return {name: counted(name, images) for name in KINDS}
