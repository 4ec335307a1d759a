"""Scoring in a loop: a confusion matrix and several measures, image by image."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sized
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack

from segiou._support.arguments import (
    check_choice,
    check_flag,
    check_kind,
    check_several,
    names_options,
)
from segiou._support.text import Json, plain, plural
from segiou.accumulators.base import Accumulator
from segiou.accumulators.confusion import ConfusionMatrix
from segiou.counting.arrays import axis_in_image, not_compiled, with_dimensions_of
from segiou.labels.class_options import ClassArguments, ClassOptions, Labels
from segiou.measures.registry import measure_of, read_measures, with_defaults
from segiou.metrics.protocols import Protocol, load_protocol
from segiou.runs.header import Header
from segiou.runs.image_counts import ImageCount, check_packed, reordered_images
from segiou.runs.run import Run, run_from_counts
from segiou.scoring.score_arrays import ArrayScorer, each_image, is_one_image

if TYPE_CHECKING:
    from collections.abc import Sequence

    from segiou.measures.measure import Measure
    from segiou.report.report import Report

Conflict = Literal["error", "first"]


class Evaluator(Accumulator):
    """Count images in a loop, with several measures at once.

    The counts of every image are kept, so that reports have intervals and
    comparisons are paired. Evaluators of several processes add up with
    :meth:`merge`. An image with an id, which a distributed sampler may repeat, is
    counted once; images without ids are numbered.

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
    conflict : {"error", "first"}
        Whether an id that is counted twice with different results raises an
        error, or keeps its first result.
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

    @partial(names_options, also=ClassArguments.__annotations__)
    def __init__(
        self,
        labels: Labels,
        *,
        measures: Iterable[Measure | str] = (),
        protocol: Protocol | str = "segiou",
        name: str = "",
        conflict: Conflict = "error",
        **options: Unpack[ClassArguments],
    ) -> None:
        check_kind("name", name, str, "text")
        classes = ClassOptions.of(labels, **options)
        classes.warn_of_ignored_classes()
        header = Header(classes, load_protocol(protocol), name)
        self._start(header, with_defaults(read_measures(measures), labels, None), conflict)

    @classmethod
    def from_options(
        cls,
        options: ClassOptions,
        *,
        measures: Iterable[Measure | str] = (),
        conflict: Conflict = "error",
    ) -> Self:
        """Build from class options.

        Parameters
        ----------
        options : ClassOptions
            The classes and the ignored values.
        measures, conflict
            As of the class.
        """
        check_kind("options", options, ClassOptions, "ClassOptions; to pass the classes, call it")
        new, chosen = cls.__new__(cls), read_measures(measures)
        new._start(Header(options), with_defaults(chosen, options.labels, None), conflict)
        return new

    def _start(self, header: Header, measures: tuple[Measure, ...], conflict: Conflict) -> None:
        check_choice("conflict", conflict, ("error", "first"))
        self._empty, self._measures = header, measures
        self.conflict: Conflict = conflict
        self._matrix = ConfusionMatrix.from_options(header.options)
        self._forget()

    def _forget(self) -> None:
        self._scorer = ArrayScorer(self._empty, self._measures, matrix=self._matrix)
        self._named: dict[str, ImageCount] = {}
        self._numbered: list[ImageCount] = []

    @property
    def options(self) -> ClassOptions:
        """The classes and the ignored values."""
        return self._empty.options

    @not_compiled
    def update(
        self,
        truth: Any,
        pred: Any,
        *,
        ids: Iterable[Any] | None = None,
        argmax: int | None = None,
        threshold: float | None = None,
        mask: Any = None,
        spacing: Sequence[float] | None = None,
    ) -> Self:
        """Count an image or a batch of images; returns itself.

        Parameters
        ----------
        truth, pred, mask, argmax, threshold
            As in :meth:`segiou.ConfusionMatrix.update`: a 2-D truth is one image, unless it
            has several ids; the first axis of other arrays counts the images.
        ids : iterable of str or int, or tensor of them, optional
            One id per image, unique over all processes; images are numbered by default.
        spacing : sequence of float, optional
            Size of a pixel along each axis.

        Raises
        ------
        TypeError, ValueError
            If an image cannot be counted, if ``argmax`` is the axis of the images, or if an
            image was counted before with a different result and `conflict` is ``"error"``.
            Nothing of the batch is added then.
        """
        pred, mask = with_dimensions_of(truth, pred, argmax), with_dimensions_of(truth, mask)
        if ids is not None:
            check_several("ids", ids, "one id per image")
        has_several = isinstance(ids, Sized) and len(ids) > 1
        is_batch = has_several or not is_one_image(truth)
        argmax = axis_in_image(argmax, is_batch=is_batch)
        if threshold is not None:  # images alone do not show channels
            self.options.check_scores(tuple(getattr(pred, "shape", ())), None)
        options: dict[str, Any] = {"argmax": argmax, "threshold": threshold, "spacing": spacing}
        batch = each_image(truth, pred, mask, ids, is_batch=is_batch)
        counted = [self._scorer.count(*each, **options) for each in batch]
        if ids is not None:
            return self._keep(counted)
        self._numbered += counted
        return self

    def _keep(self, images: Iterable[ImageCount]) -> Self:
        """Add images with ids, or none of them if one was counted with a different result."""
        new: dict[str, ImageCount] = {}
        for image in images:
            known = self._named.get(image.id) or new.setdefault(image.id, image)
            if self.conflict == "error" and known is not image and known != image:
                msg = (
                    f"image {image.id!r} was counted twice with different results; check that ids "
                    "are unique and the model did not change, or keep the first result with "
                    "conflict='first'"
                )
                raise ValueError(msg)
        self._named |= new
        return self

    def __len__(self) -> int:
        return len(self._named) + len(self._numbered)

    def __repr__(self) -> str:
        keys = "".join(f", {measure.key}" for measure in self._measures)
        return f"<{type(self).__name__}: {plural(len(self), 'image')}{keys}>"

    @property
    def images(self) -> tuple[ImageCount, ...]:
        """Counts of each image; the ids of images without one are their numbers."""
        width = len(str(len(self._numbered)))
        numbered = (replace(image, id=f"{i:0{width}}") for i, image in enumerate(self._numbered))
        return (*self._named.values(), *numbered)

    def run(self, **about: Any) -> Run:
        """The images as a :class:`segiou.Run`, which saves, compares and resamples them.

        Parameters
        ----------
        **about
            Options of :func:`segiou.runs.run_from_counts`.

        Raises
        ------
        ValueError
            If the number of an image is also the id of another one.
        """
        header = self._counted_for
        about = {"name": header.name, "protocol": header.protocol, "plans": header.plans, **about}
        return run_from_counts(header.options, self.images, **about)

    def total(self) -> ConfusionMatrix:
        """All images in one confusion matrix."""
        return self.run().total()

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
        check_flag("per_class", per_class)
        report = self.report()
        names = ["mean_iou", "mean_dice", "pixel_accuracy", *report.scales]
        scores = report.scores(prefix, names=[*names, *(["iou", "dice"] if per_class else [])])
        means = {f"{prefix}{name}" for name in names}
        return scores if per_class else {key: v for key, v in scores.items() if key in means}

    @property
    def _options_of_measures(self) -> dict[str, dict[str, Json]]:
        return {measure.key: measure.to_dict() for measure in self._measures}

    def _settings(self) -> dict[str, Any]:
        header = self._counted_for.to_dict()
        measures = self._options_of_measures
        return {"header": header, "measures": measures, "conflict": self.conflict}

    def _difference(self, other: Self) -> str:
        mine, theirs = self._empty, other._empty
        if len(self) and len(other):
            mine, theirs = self._counted_for, other._counted_for
        return mine.counting_difference(theirs) or self._measures_difference(other)

    def _measures_difference(self, other: Self) -> str:
        """Measures of only one evaluator, and differing options of the others."""
        mine: Any = plain(self._options_of_measures)
        theirs: Any = plain(other._options_of_measures)
        differences = []
        for key in {**mine, **theirs}:
            here, there = mine.get(key), theirs.get(key)
            if here is None or there is None:
                differences.append(f"{key} is measured {'there' if here is None else 'here'} only")
            elif here != there:
                names = [name for name in {**here, **there} if here.get(name) != there.get(name)]
                differences.append(f"{key} is measured with different {', '.join(names)}")
        return "; ".join(differences)

    def _join(self, others: Sequence[Self]) -> None:
        counted = [evaluator for evaluator in (self, *others) if len(evaluator)]
        for other in counted:  # only the first image shows whether there are volumes
            counted[0]._check_alike(other)
        if not counted:
            return
        wanted = counted[0]._counted_for
        moved = [(other._named.values(), other._numbered, other._counted_for) for other in others]
        named = [reordered_images(wanted, images, header) for images, _, header in moved]
        numbered = [reordered_images(wanted, images, header) for _, images, header in moved]
        self._keep(chain.from_iterable(named))
        self._numbered += chain.from_iterable(numbered)
        self._scorer.go_on(wanted)

    def _content(self) -> dict[str, Any]:
        named = [{**image.to_dict(), "named": True} for image in self._named.values()]
        numbered = [{**image.to_dict(), "id": "", "named": False} for image in self._numbered]
        return {"images": [*named, *numbered]}

    @classmethod
    def _restored(cls, state: Mapping[str, Any]) -> Self:
        header = replace(Header.from_dict(state["header"]), plans=())
        measured = state["measures"].items()
        measures = tuple(measure_of(key).from_dict(options) for key, options in measured)
        new = cls.__new__(cls)
        new._start(header, measures, state["conflict"])
        return new

    def _fill(self, state: Mapping[str, Any]) -> None:
        images = [(ImageCount.from_dict(data), data["named"]) for data in state["images"]]
        self._keep(image for image, is_named in images if is_named)
        self._numbered += [image for image, is_named in images if not is_named]
        header = Header.from_dict(state["header"])
        measured = (image.measured for image, _ in images)
        check_packed([parts for parts in measured if parts is not None], header)
        if images:
            self._scorer.go_on(header)
