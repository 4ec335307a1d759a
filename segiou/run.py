"""A run: the counts of every image of one evaluation, with what they came from."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou import metrics
from segiou.classes import ClassOptions
from segiou.confusion import ConfusionMatrix
from segiou.counting import PairCount
from segiou.counts import Counts, Tally
from segiou.labels import LabelSet
from segiou.protocols import Protocol, load_protocol
from segiou.report import Report

__all__ = ["ImageCount", "Problem", "Run"]


@dataclass(frozen=True, slots=True, eq=False)
class ImageCount:
    """Counts of one image, sparse: most cells of its confusion matrix are empty.

    Attributes
    ----------
    id : str
        Unique within the run.
    cells : ndarray of int64, shape (K,)
        Flat indices ``t * (C + 1) + p`` into the (C, C + 1) table, ascending.
    values : ndarray of int64, shape (K,)
        Pixels of each of these cells.
    ignored : int
        Pixels dropped.
    truth, pred : str
        The files, where there were any.
    """

    id: str
    cells: NDArray[np.int64]
    values: NDArray[np.int64]
    ignored: int = 0
    truth: str = ""
    pred: str = ""

    @classmethod
    def of(cls, id: str, count: PairCount, *, truth: str = "", pred: str = "") -> ImageCount:
        """Keep the cells that are not zero."""
        flat = count.table.ravel()
        cells = np.flatnonzero(flat)
        return cls(id, cells, flat[cells], count.ignored, truth, pred)

    @property
    def pixels(self) -> int:
        """Pixels seen, ignored ones included."""
        return int(self.values.sum()) + self.ignored

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ImageCount):
            return NotImplemented
        return (
            (self.id, self.ignored, self.truth, self.pred)
            == (other.id, other.ignored, other.truth, other.pred)
            and np.array_equal(self.cells, other.cells)
            and np.array_equal(self.values, other.values)
        )

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True, slots=True)
class Problem:
    """Something wrong with a pair: where, and what to do about it."""

    where: str
    text: str

    def __str__(self) -> str:
        return f"{self.where}: {self.text}"


@dataclass(frozen=True, eq=False)
class Run:
    """Counts of every image of one evaluation.

    Attributes
    ----------
    options : ClassOptions
        The classes and how pixels were counted.
    images : tuple of ImageCount
        In the order of their ids.
    skipped : tuple of Problem
        Pairs that were left out, and why.
    name : str
        What was scored.
    protocol : Protocol
        By which rule reports are made unless they are asked for another.
    provenance : mapping
        Files and options that made it.

    Raises
    ------
    ValueError
        If two images have one id.

    Examples
    --------
    >>> import segiou
    >>> run = segiou.score([[[0, 1], [1, 1]]], [[[0, 1], [1, 0]]], labels=2)
    >>> run.total().iou().round(4), run.ids
    (array([0.5   , 0.6667]), ('0',))
    """

    options: ClassOptions
    images: tuple[ImageCount, ...]
    skipped: tuple[Problem, ...] = ()
    name: str = ""
    protocol: Protocol = field(default_factory=lambda: load_protocol("segiou"))
    provenance: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        ordered = tuple(sorted(self.images, key=lambda image: image.id))
        for first, second in pairwise(ordered):
            if first.id == second.id:
                msg = (
                    f"two images have the id {first.id!r}; ids tell images apart: make them unique"
                )
                raise ValueError(msg)
        object.__setattr__(self, "images", ordered)

    def __len__(self) -> int:
        return len(self.images)

    def __iter__(self) -> Iterator[ImageCount]:
        return iter(self.images)

    @property
    def labels(self) -> LabelSet:
        """The classes."""
        return self.options.labels

    @property
    def class_names(self) -> tuple[str, ...]:
        """Names of the classes, in order."""
        return self.options.labels.class_names

    @property
    def include(self) -> NDArray[np.bool_]:
        """False for the classes that are left out of means, (C,)."""
        return self.options.include

    @cached_property
    def ids(self) -> tuple[str, ...]:
        """Ids of the images, sorted."""
        return tuple(image.id for image in self.images)

    @cached_property
    def ignored(self) -> NDArray[np.int64]:
        """Ignored pixels of each image, (N,)."""
        return np.array([image.ignored for image in self.images], dtype=np.int64)

    @cached_property
    def counts(self) -> Counts:
        """Counts of each image, shape (N, C)."""
        num, classes = len(self.images), self.options.num_classes
        owner, truth, pred, values = self._entries()
        rows = _sums(owner * classes + truth, values, num * classes).reshape(num, classes)
        named = pred < classes
        cols = _sums((owner * classes + pred)[named], values[named], num * classes)
        right = truth == pred
        tp = _sums((owner * classes + truth)[right], values[right], num * classes)
        cols, tp = cols.reshape(num, classes), tp.reshape(num, classes)
        fp, fn = cols - tp, rows - tp
        return Counts(tp, fp, fn, rows.sum(1, keepdims=True) - tp - fp - fn)

    def _entries(self) -> tuple[NDArray[np.int64], ...]:
        """Every filled cell of every image: image, truth class, predicted class, pixels."""
        sizes = [len(image.cells) for image in self.images]
        owner = np.repeat(np.arange(len(self.images)), sizes)
        cells = _joined([image.cells for image in self.images])
        truth, pred = np.divmod(cells, self.options.num_classes + 1)
        return owner, truth, pred, _joined([image.values for image in self.images])

    def tally(self, index: int) -> Tally:
        """The confusion matrix of one image."""
        image = self.images[index]
        classes = self.options.num_classes
        table = np.zeros(classes * (classes + 1), dtype=np.int64)
        table[image.cells] = image.values
        return Tally.of_table(table.reshape(classes, classes + 1), image.ignored)

    def total(self) -> ConfusionMatrix:
        """All images merged into one confusion matrix."""
        classes = self.options.num_classes
        _, truth, pred, values = self._entries()
        table = np.zeros((classes, classes + 1), dtype=np.int64)
        np.add.at(table, (truth, pred), values)
        matrix = ConfusionMatrix.from_options(self.options)
        return matrix.add(PairCount(table, int(self.ignored.sum())), pairs=len(self))

    def report(self, protocol: Protocol | str | None = None, *, title: str = "") -> Report:
        """All scores of the run, by a protocol."""
        total = self.total()
        return Report(
            class_names=self.class_names,
            tally=total.tally,
            pairs=len(self),
            protocol=load_protocol(protocol or self.protocol),
            include=self.include,
            per_image=self.counts,
            groups=self.options.groups,
            title=title or self.name,
            provenance=self.provenance,
        )

    def select(self, ids: Iterable[str]) -> Run:
        """The run of some of the images.

        Raises
        ------
        ValueError
            If an id is not in the run.
        """
        wanted = set(ids)
        if missing := sorted(wanted - set(self.ids)):
            msg = f"{len(missing)} ids are not in the run: {', '.join(missing[:8])}"
            raise ValueError(msg)
        return self._with(tuple(image for image in self.images if image.id in wanted))

    def merge(self, *others: Run) -> Run:
        """A run of the images of this and other runs.

        Raises
        ------
        ValueError
            If classes or options differ, or an id occurs twice with different
            counts. Equal duplicates are counted once.
        """
        images = {image.id: image for image in self.images}
        for other in others:
            if difference := self.options.difference(other.options):
                msg = f"cannot merge runs: {difference}"
                raise ValueError(msg)
            for image in other.images:
                if images.setdefault(image.id, image) != image:
                    msg = f"cannot merge runs: image {image.id!r} has different counts in them"
                    raise ValueError(msg)
        return self._with(tuple(images.values()))

    def _with(self, images: tuple[ImageCount, ...]) -> Run:
        return Run(
            self.options, images, self.skipped, self.name, self.protocol, dict(self.provenance)
        )

    def rows(self) -> list[dict[str, Any]]:
        """One row an image: id, files, pixels, its scores and the IoU of each class in it."""
        counts = self.counts
        iou = metrics.iou(counts)
        own_mean = metrics.mean(iou, self.include)
        accuracy = metrics.pixel_accuracy(counts)
        return [
            {
                "id": image.id,
                "truth": image.truth,
                "pred": image.pred,
                "pixels": image.pixels,
                "ignored": image.ignored,
                "mean_iou": float(own_mean[i]),
                "pixel_accuracy": float(accuracy[i]),
                **{f"iou:{n}": float(v) for n, v in zip(self.class_names, iou[i], strict=True)},
            }
            for i, image in enumerate(self.images)
        ]

    def to_csv(self) -> str:
        """The rows as CSV; an undefined ratio is an empty cell."""
        rows = self.rows()
        out = io.StringIO()
        columns = list(rows[0]) if rows else ["id"]
        writer = csv.DictWriter(out, columns, lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({k: "" if v != v else v for k, v in row.items()})
        return out.getvalue()

    def __repr__(self) -> str:
        left_out = f", {len(self.skipped)} skipped" if self.skipped else ""
        return f"<Run: {len(self)} images, {self.options.num_classes} classes{left_out}>"

    def __str__(self) -> str:
        return str(self.report())

    def _repr_html_(self) -> str:
        return self.report()._repr_html_()


def _joined(arrays: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.concatenate(arrays) if arrays else np.zeros(0, dtype=np.int64)


def _sums(index: NDArray[np.int64], values: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    # bincount sums in float64, which is exact below 2^53: the pixels of one
    # image stay below, whatever the run's total is.
    if values.size and int(values.max()) < 1 << 40:
        return np.bincount(index, values, size).astype(np.int64)
    out = np.zeros(size, dtype=np.int64)
    np.add.at(out, index, values)
    return out
