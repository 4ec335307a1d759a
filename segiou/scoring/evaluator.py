"""Scoring in a loop: a confusion matrix and several measures, image by image."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from segiou._support.arguments import check_integer, check_kind
from segiou._support.text import Json, plain, plural
from segiou.labels.class_options import ClassOptions, Labels
from segiou.measures.registry import fitted, read_measures
from segiou.metrics.protocols import Protocol, load_protocol
from segiou.runs.header import Header
from segiou.runs.image_counts import Columns, ImageCount, check_packed
from segiou.runs.run import Run
from segiou.scoring.score_arrays import ArrayScorer, each_image

if TYPE_CHECKING:
    from collections.abc import Sequence

    from segiou.measures.measure import Measure
    from segiou.report.report import Report

_STATE_VERSION = 1


class Evaluator:
    """Count images in a loop, with several measures at once.

    The counts of every image are kept, so that reports have intervals and
    comparisons are paired. Evaluators of several processes add up with
    :meth:`merge`.

    Parameters
    ----------
    labels
        As in :class:`segiou.ConfusionMatrix`.
    measures : iterable of Measure or str
        Measures, or keys for their defaults.
    protocol : Protocol or str
        Protocol of the reports.
    name : str
        Name of the run.
    **options
        Other options of :class:`segiou.ConfusionMatrix`.

    Examples
    --------
    >>> evaluator = Evaluator(["road", "car"], measures=["objects"])
    >>> for truth, pred in [([[0, 1]], [[0, 1]]), ([[1, 1]], [[1, 0]])]:
    ...     _ = evaluator.update(truth, pred)
    >>> evaluator.scores()["pq"], len(evaluator)
    (0.5833333333333333, 2)
    """

    def __init__(
        self,
        labels: Labels,
        *,
        measures: Iterable[Measure | str] = (),
        protocol: Protocol | str = "segiou",
        name: str = "",
        **options: Any,
    ) -> None:
        check_kind("name", name, str, "text")
        header = Header(ClassOptions.of(labels, **options), load_protocol(protocol), name)
        self._start(header, fitted(read_measures(measures), labels, None))

    def _start(self, header: Header, measures: tuple[Measure, ...]) -> None:
        self._empty, self._measures = header, measures
        self.reset()

    def reset(self) -> Self:
        """Discard all images; returns itself."""
        self._scorer = ArrayScorer(self._empty, self._measures)
        self._images: list[ImageCount] = []
        self._named: list[bool] = []
        return self

    def empty(self) -> Self:
        """An evaluator with the same classes, options and measures, and no images."""
        new = type(self).__new__(type(self))
        new._start(self._empty, self._measures)
        return new

    def update(
        self,
        truth: Any,
        pred: Any,
        *,
        ids: Iterable[str] | None = None,
        argmax: int | None = None,
        threshold: float | None = None,
        mask: Any = None,
        spacing: Sequence[float] | None = None,
    ) -> Self:
        """Count an image or a batch of images; returns itself.

        Parameters
        ----------
        truth, pred, mask, argmax, threshold
            As in :func:`segiou.score`: a 2-D array is one image; the first axis
            of other arrays counts the images.
        ids : iterable of str, optional
            Names of the images; they are numbered by default.
        spacing : sequence of float, optional
            Size of a pixel along each axis.

        Raises
        ------
        TypeError, ValueError
            If an image cannot be counted; nothing of the batch is added then.
        """
        how: dict[str, Any] = {"argmax": argmax, "threshold": threshold, "spacing": spacing}
        batch = each_image(truth, pred, mask, ids)
        counted = [self._scorer.count(*each, **how) for each in batch]
        self._images += counted
        self._named += [ids is not None] * len(counted)
        return self

    def __len__(self) -> int:
        return len(self._images)

    def __repr__(self) -> str:
        keys = "".join(f", {measure.key}" for measure in self._measures)
        return f"<Evaluator: {plural(len(self), 'image')}{keys}>"

    def run(self) -> Run:
        """The images as a run, which saves, compares and resamples them.

        Raises
        ------
        ValueError
            If two images have the same id.
        """
        width = len(str(len(self._images)))
        images = [
            one if named else replace(one, id=f"{i:0{width}}")
            for i, (one, named) in enumerate(zip(self._images, self._named, strict=True))
        ]
        return Run(self._counted_for, Columns.of(images).by_id())

    @property
    def _counted_for(self) -> Header:
        return self._scorer.header

    def report(self, protocol: Protocol | str | None = None, **options: Any) -> Report:
        """Report all scores.

        Parameters
        ----------
        protocol : Protocol or str, optional
            Protocol of the means.
        **options
            As in :meth:`segiou.Run.report`.
        """
        return self.run().report(protocol, **options)

    def scores(self, prefix: str = "", *, per_class: bool = False) -> dict[str, float]:
        """Scores as one mapping, for experiment trackers.

        Parameters
        ----------
        prefix : str
            Put before each name.
        per_class : bool
            Whether to include classes and structures.

        Returns
        -------
        dict of str to float
            ``mean_iou``, ``mean_dice``, ``pixel_accuracy`` and the mean of every
            score of the measures.
        """
        report = self.report()
        names = ["mean_iou", "mean_dice", "pixel_accuracy", *report.scales]
        found = report.scores(prefix, names=[*names, *(["iou", "dice"] if per_class else [])])
        means = {f"{prefix}{name}" for name in names}
        return found if per_class else {key: v for key, v in found.items() if key in means}

    def merge(self, *others: Evaluator) -> Self:
        """Add the images of other evaluators, such as those of other processes; returns itself.

        Parameters
        ----------
        *others : Evaluator
            Evaluators with the same classes, options and measures.

        Raises
        ------
        ValueError
            If classes, options or measures differ; nothing is added then.
        """
        for other in others:
            check_kind("each argument of merge", other, Evaluator, "an Evaluator")
            if self._images and other._images:
                mine, theirs = self._counted_for, other._counted_for
            else:
                mine, theirs = self._empty, other._empty
            difference = mine.counting_difference(theirs)
            if difference or self._measures != other._measures:
                msg = f"cannot merge evaluators: {difference or 'their measures differ'}"
                raise ValueError(msg)
        for other in others:
            if other._images and not self._images:
                self._scorer.go_on(other._counted_for)
            self._images += other._images
            self._named += other._named
        return self

    def state_dict(self) -> dict[str, Json]:
        """Everything as plain data, for checkpoints."""
        images: list[Any] = [
            {
                "id": one.id,
                "named": named,
                "cells": one.cells.tolist(),
                "values": one.values.tolist(),
                "ignored": one.ignored,
                "measured": None if one.measured is None else one.measured.hex(),
            }
            for one, named in zip(self._images, self._named, strict=True)
        ]
        measures: Any = {one.key: one.to_dict() for one in self._measures}
        return {
            "state_version": _STATE_VERSION,
            "header": self._counted_for.to_dict(),
            "measures": measures,
            "images": images,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> Self:
        """Replace the images with those of a saved state; returns itself.

        Parameters
        ----------
        state : mapping
            As returned by :meth:`state_dict`.

        Raises
        ------
        TypeError, ValueError
            If the state is invalid, or of other classes, options or measures.
        """
        saved = _images_of(state)
        header = Header.from_dict(state["header"])
        measures: Any = {one.key: one.to_dict() for one in self._measures}
        difference = self._empty.options.difference(header.options)
        if difference or plain(measures) != plain(state["measures"]):
            msg = f"the saved state has different options: {difference or 'measures'}"
            raise ValueError(msg)
        check_packed([one.measured for one, _ in saved if one.measured is not None], header)
        self.reset()
        self._images = [one for one, _ in saved]
        self._named = [named for _, named in saved]
        if saved:
            self._scorer.go_on(header)
        return self


def _images_of(state: Mapping[str, Any]) -> list[tuple[ImageCount, bool]]:
    """The images of a saved state; ValueError if it holds something else."""
    if state.get("state_version") != _STATE_VERSION:
        msg = f"the saved state has version {state.get('state_version')!r}; save it again"
        raise ValueError(msg)
    found = []
    for one in state["images"]:
        cells, values = (np.array(one[name], dtype=np.int64) for name in ("cells", "values"))
        if cells.shape != values.shape or cells.ndim != 1 or (values < 1).any():
            msg = f"the saved state has invalid counts of image {one['id']!r}"
            raise ValueError(msg)
        ignored = check_integer("ignored", one["ignored"], 0)
        packed = None if one["measured"] is None else bytes.fromhex(one["measured"])
        image = ImageCount(str(one["id"]), cells, values, ignored, measured=packed)
        found.append((image, bool(one["named"])))
    return found
