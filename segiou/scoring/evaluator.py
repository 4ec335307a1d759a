"""Scoring in a loop: a confusion matrix and several measures, image by image."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

from segiou._support.arguments import check_kind
from segiou._support.text import Json, plain, plural
from segiou.accumulators.base import Accumulator
from segiou.labels.class_options import ClassOptions, Labels
from segiou.measures.registry import fitted, measure_of, read_measures
from segiou.metrics.protocols import Protocol, load_protocol
from segiou.runs.header import Header
from segiou.runs.image_counts import Columns, ImageCount, check_packed, repacked
from segiou.runs.run import Run
from segiou.scoring.score_arrays import ArrayScorer, each_image

if TYPE_CHECKING:
    from collections.abc import Sequence

    from segiou.measures.measure import Measure
    from segiou.report.report import Report


class Evaluator(Accumulator):
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

    _noun = "evaluators"

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
        self._forget()

    def _forget(self) -> None:
        self._scorer = ArrayScorer(self._empty, self._measures)
        self._images: list[ImageCount] = []
        self._named: list[bool] = []

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

    @property
    def _options_of_measures(self) -> dict[str, dict[str, Json]]:
        return {one.key: one.to_dict() for one in self._measures}

    def _settings(self) -> dict[str, Any]:
        return {"header": self._counted_for.to_dict(), "measures": self._options_of_measures}

    def _difference(self, other: Self) -> str:
        mine, theirs = self._empty, other._empty
        if self._images and other._images:
            mine, theirs = self._counted_for, other._counted_for
        same = plain(self._options_of_measures) == plain(other._options_of_measures)
        return mine.counting_difference(theirs) or ("" if same else "their measures differ")

    def _join(self, others: Sequence[Self]) -> None:
        counted = [one for one in (self, *others) if one._images]
        for other in counted:  # only the first image shows whether there are volumes
            counted[0]._check_alike(other)
        if counted:
            self._scorer.go_on(counted[0]._counted_for)
        for other in others:
            header, wanted = other._counted_for, self._counted_for
            for one in other._images:
                packed = repacked(one.measured, header, wanted)
                self._images.append(replace(one, measured=packed))
            self._named += other._named

    def _content(self) -> dict[str, Any]:
        both = zip(self._images, self._named, strict=True)
        return {"images": [{**one.to_dict(), "named": named} for one, named in both]}

    @classmethod
    def _of_state(cls, state: Mapping[str, Any]) -> Self:
        header = replace(Header.from_dict(state["header"]), plans=())
        given = state["measures"].items()
        new = cls.__new__(cls)
        new._start(header, tuple(measure_of(key).from_dict(options) for key, options in given))
        return new

    def _fill(self, state: Mapping[str, Any]) -> None:
        self._images = [ImageCount.from_dict(one) for one in state["images"]]
        self._named = [bool(one["named"]) for one in state["images"]]
        header = Header.from_dict(state["header"])
        check_packed([one.measured for one in self._images if one.measured is not None], header)
        if self._images:
            self._scorer.go_on(header)
