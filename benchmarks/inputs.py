"""Input data: real masks from ../shared/data, or synthetic ones if that is absent."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"

Labels = NDArray[Any]


@dataclass(frozen=True)
class Task:
    """Pairs of label arrays; truth values from `num_classes` on are ignored."""

    name: str
    truths: list[Labels]
    preds: list[Labels]
    num_classes: int
    ignore: tuple[int, ...] = ()

    @property
    def pixels(self) -> int:
        return sum(truth.size for truth in self.truths)

    def first(self, pairs: int) -> Task:
        return Task(
            self.name, self.truths[:pairs], self.preds[:pairs], self.num_classes, self.ignore
        )

    def cast(self, dtype: str) -> Task:
        return Task(
            f"{self.name}, {dtype} × {dtype}",
            [truth.astype(dtype) for truth in self.truths],
            [pred.astype(dtype) for pred in self.preds],
            self.num_classes,
            self.ignore,
        )


def read(path: Path) -> Labels:
    with Image.open(path) as image:
        return np.array(image)


def scene(rng: np.random.Generator, height: int, width: int, classes: int) -> Labels:
    """Regions with ragged edges: the nearest of random points, with jitter."""
    points = rng.random((60, 2)) * (height, width)
    rows, columns = np.mgrid[:height, :width] + rng.normal(0, 0.7, (2, height, width))
    distances = [(rows - y) ** 2 + (columns - x) ** 2 for y, x in points]
    return (np.argmin(distances, axis=0) % classes).astype(np.uint8)


def camvid() -> Task:
    """Street scenes: 59 frames with the predictions of two networks, 480 × 360."""
    paths = sorted((DATA / "camvid" / "truth").glob("*.png"))
    if not paths:
        rng = np.random.default_rng(0)
        truths = [scene(rng, 360, 480, 12) for _ in range(6)]
        preds = [np.minimum(np.roll(truth, 2, axis=1), 10) for truth in truths]
        return Task("made-up scenes", truths, preds, 11, (11,))
    truths = [read(path) for path in paths]
    models = DATA / "camvid" / "small", DATA / "camvid" / "base"
    preds = [read(model / path.name) for model in models for path in paths]
    return Task("CamVid, 11 classes", truths * 2, preds, 11, (11,))


def davis() -> Task:
    """Video masks with few regions, compared with themselves shifted by three pixels."""
    masks = [read(path) for path in sorted((DATA / "davis").glob("*/*.png"))]
    name = "davis, shifted by 3 px"
    if not masks:
        rng = np.random.default_rng(1)
        masks = [np.kron(scene(rng, 48, 86, 3), np.ones((10, 10), np.uint8)) for _ in range(8)]
        name = "made-up video masks, shifted by 3 px"
    truths = [np.ascontiguousarray(mask[:, 3:]) for mask in masks]
    preds = [np.ascontiguousarray(mask[:, :-3]) for mask in masks]
    return Task(name, truths, preds, 1 + max(int(mask.max()) for mask in masks))


def noise(num_classes: int, height: int = 1024, width: int = 2048) -> Task:
    """Independent uniform labels: the worst case, without any runs."""
    truth, pred = np.random.default_rng(2).integers(0, num_classes, (2, height, width))
    return Task(
        f"uniform noise, {num_classes} classes",
        [truth.astype(np.uint8)],
        [pred.astype(np.uint8)],
        num_classes,
    )


def segments(
    rng: np.random.Generator, height: int, width: int
) -> tuple[dict[int, int], tuple[Labels, Labels]]:
    """Truth and prediction of ellipses with ids up to 2^24, and a class of each id."""
    rows, columns = np.ogrid[:height, :width]
    sides = np.zeros((2, height, width), np.uint32)
    classes: dict[int, int] = {}
    for _ in range(rng.integers(8, 30)):
        shape = [rng.integers(n) for n in (height, width)], rng.integers(15, 140, 2)
        kind = int(rng.integers(1 << 16))
        for side in sides:
            (y, x), (tall, wide) = shape[0] + rng.integers(-6, 7, 2), shape[1]
            ragged = 0.02 * np.sin(rows / 5) + 0.02 * np.sin(columns / 7)
            id = int(rng.integers(1, 1 << 24))
            classes[id] = kind if rng.random() < 0.9 else kind + 1
            if rng.random() < 0.9:
                side[((rows - y) / tall) ** 2 + ((columns - x) / wide) ** 2 + ragged < 1] = id
    return classes, (sides[0], sides[1])


def spread(task: Task, num_classes: int) -> Task:
    """The same regions with labels distributed over more classes."""
    lookup = np.arange(256) * num_classes // (task.num_classes + 1)
    lookup = lookup.clip(max=num_classes - 1).astype(np.uint8)
    return Task(
        f"{task.name}, labels spread over {num_classes} classes",
        [lookup[truth] for truth in task.truths],
        [lookup[pred] for pred in task.preds],
        num_classes,
    )
