"""The plan of a measure: it counts images, and scores the counts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from segiou._support.numbers import COUNT
from segiou._support.text import Json, option_text
from segiou.counting.counts import ConfusionCounts, Counts
from segiou.labels.class_options import ClassOptions
from segiou.measures.guard import PLAN_CHECKS, guard
from segiou.measures.mask_pair import MaskPair, Masks, ScoredPrediction
from segiou.measures.parts import Layout, Parts
from segiou.measures.score import MEAN, Better, Quantity, Score, overall_of
from segiou.measures.score_table import ScoreTable
from segiou.measures.score_values import ScoreValues
from segiou.metrics.ratio import Floats

if TYPE_CHECKING:
    from segiou.masks.raw_mask import RawMask
    from segiou.measures.object_mask import Drawn


@dataclass(frozen=True)
class Counted:
    """Input of a table of a report.

    Attributes
    ----------
    total : Parts
        Parts of all images as one: sums added, rows in the order of the images.
    tally : ConfusionCounts
        The confusion matrix of all images.
    images : int
        Number of images.
    intervals : mapping of str to Intervals
        Confidence intervals by the name of the score.
    ids : callable
        Returns the ids of the images.
    """

    total: Parts
    tally: ConfusionCounts
    images: int
    intervals: Mapping[str, Any] = field(default_factory=dict)
    ids: Callable[[], Sequence[str]] = tuple
    _values: dict[str, ScoreValues] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def copied(self) -> Counted:
        """A copy with separate arrays."""
        return replace(self, total=self.total.copied(), tally=deepcopy(self.tally))

    def values_of(self, score: Score) -> ScoreValues:
        """A score of all images with its intervals; evaluated once.

        Parameters
        ----------
        score : Score
            One of the scores of the plan.
        """
        if (name := score.name) not in self._values:
            values, intervals = score.values(self.total), self.intervals.get(name)
            self._values[name] = ScoreValues.of_score(score, self.total, values, intervals)
        return self._values[name]


class Alternative(NamedTuple):
    """Counts of a different decision of the predictions, chosen for each unit on the others.

    Attributes
    ----------
    thresholds : ndarray of float64, shape (C,)
        The threshold of each class that is best on all images; NaN where none was tried.
    counts : Counts of shape (N, C)
        Counts of each image with the threshold that is best on all other units.
    decides_all : bool
        Whether one threshold decides all classes, so that their mean is that of a possible
        prediction.
    """

    thresholds: Floats
    counts: Counts
    decides_all: bool


@dataclass(frozen=True)
class Plan(ABC):
    """A measure for known classes and masks: it counts images, and scores the counts.

    Plans are sent to workers, so they stay small and can be pickled; scores and
    tables are derived where they are used.

    Attributes
    ----------
    measure : Measure
        The options.
    classes : ClassOptions
        The classes.
    masks : Masks
        The masks.
    """

    measure: Any
    classes: ClassOptions
    masks: Masks = field(default_factory=Masks)

    #: Columns of numbers of errors in the table of images, of which lower ones are better.
    error_columns: ClassVar[tuple[str, ...]] = ()
    #: Whether predictions are files that :meth:`read_prediction` reads.
    reads_predictions: ClassVar[bool] = False
    #: Whether pages show objects, with :meth:`drawn_objects` and the two methods before it.
    draws_objects: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        guard(cls, PLAN_CHECKS)

    def __getstate__(self) -> dict[str, Any]:
        """Only the attributes, because cached scores contain functions."""
        return {"measure": self.measure, "classes": self.classes, "masks": self.masks}

    @property
    def key(self) -> str:
        """Key of the measure."""
        return str(self.measure.key)

    @property
    @abstractmethod
    def layout(self) -> Layout:
        """The arrays of a part, by name."""

    @property
    def counted_structures(self) -> tuple[tuple[int, ...], ...]:
        """Members of the structures along the first axis of every array of a part.

        Empty for plans whose arrays do not depend on the excluded classes.
        """
        return ()

    @abstractmethod
    def count(self, pair: MaskPair) -> Parts:
        """Count one image.

        Parameters
        ----------
        pair : MaskPair
            Truth and prediction.
        """

    def count_several(self, pairs: Sequence[MaskPair]) -> Parts:
        """Count several images, one by one unless a plan can count them together.

        Parameters
        ----------
        pairs : sequence of MaskPair
            Truths and predictions.
        """
        return Parts.joined(self.layout, [self.count(pair) for pair in pairs])

    def read_prediction(
        self, data: bytes | RawMask, path: str, truth: tuple[int, ...]
    ) -> ScoredPrediction:
        """Read a prediction file of scores instead of labels.

        Called if :attr:`reads_predictions` is true.

        Parameters
        ----------
        data : bytes or RawMask
            The content of the file.
        path : str
            The file.
        truth : tuple of int
            Shape of the truth.
        """
        raise NotImplementedError

    def class_scores(self, scores: NDArray[Any], truth: tuple[int, ...]) -> NDArray[Any] | None:
        """Scores of each class in [0, 1], (C, ...), as pages draw them; None by default.

        Parameters
        ----------
        scores : ndarray
            Scores of some pixels of an image, as in :class:`MaskPair`.
        truth : tuple of int
            Shape of the truth of these pixels.
        """
        return None

    def object_classes(self) -> Sequence[int]:
        """Indices of the classes that have objects."""
        return ()

    def object_outcomes(self, parts: Parts) -> NDArray[np.int64]:
        """Numbers of found, false-positive and missed objects, shape (N, 3).

        Parameters
        ----------
        parts : Parts
            Parts of N images.
        """
        raise NotImplementedError

    def drawn_objects(self, truth: Any, pred: Any, shape: Any, spacing: Any) -> Drawn:
        """The objects of a pair as pages draw them.

        Parameters
        ----------
        truth, pred : ObjectMask or ndarray
            Ids of objects, or classes.
        shape : tuple of int
            Shape of the picture.
        spacing : sequence of float
            Size of a pixel along each axis.
        """
        raise NotImplementedError

    def counts_of(self, run: Any) -> object:
        """The counts of a run in the form that other functions take; by default of each image.

        Parameters
        ----------
        run : Run
            A run with these counts.
        """
        return run.parts(self.key)

    @property
    @abstractmethod
    def scores(self) -> Mapping[str, Score]:
        """The scores by name; reports show intervals of the first."""

    def table(self, counted: Counted) -> ScoreTable:
        """The table of a report: every score as a column.

        Parameters
        ----------
        counted : Counted
            The counts of all images.
        """
        columns = tuple(map(counted.values_of, self.scores.values()))
        names = tuple(columns[0].rows) if columns else ()
        values = np.array([column.values for column in columns]).reshape(len(columns), len(names))
        return ScoreTable(
            self.key,
            self.measure.title,
            (self.measure.__doc__ or "").partition("\n")[0],
            names,
            columns,
            means=(overall_of(column.overall for column in columns),),
            note=f"{self.measure.title}: {self.options_text or 'default options'}",
            of="class" if names == self.classes.labels.class_names else "structure",
            empty=(*np.isnan(values).all(0).tolist(), False),
        )

    @property
    def options_text(self) -> str:
        """The options that differ from the defaults, for the note below the table."""
        usual = type(self.measure)().to_dict()
        chosen = self.measure.to_dict().items()
        return ", ".join(f"{k}={option_text(v)}" for k, v in chosen if v != usual.get(k))

    def columns(self, parts: Parts) -> dict[str, NDArray[Any]]:
        """Columns of the table of images: every score, its mean and each structure.

        Parameters
        ----------
        parts : Parts
            Parts of N images.

        Returns
        -------
        dict of str to ndarray, shape (N,)
        """
        columns: dict[str, NDArray[Any]] = {}
        for score in self.scores.values():
            columns |= zip(score.column_names, score.of_images(parts).T, strict=True)
        return columns

    @property
    def case_quantities(self) -> Mapping[str, Quantity]:
        """Numbers beside the scores that these columns have, by their name before the colon."""
        return {}

    @cached_property
    def image_columns(self) -> tuple[Quantity, ...]:
        """Titles and units of these columns; those without a direction cannot rank images."""
        described = []
        for name, values in self.columns(Parts.joined(self.layout, [])).items():
            title, unit, overall = "", "", MEAN
            better: Better | None = "higher"
            head = name.partition(":")[0]
            if known := self.scores.get(head) or self.case_quantities.get(head):
                title, unit, better = known.title, known.unit, known.better
                overall = known.overall
            elif values.dtype.kind in "iu":
                unit, better = COUNT, "lower" if name in self.error_columns else None
            described.append(Quantity(name, title, unit=unit, better=better, overall=overall))
        return tuple(described)

    def alternative(
        self, parts: Parts, counts: Counts, units: NDArray[np.intp]
    ) -> Alternative | None:
        """Counts of a different decision of the same predictions; None by default.

        Parameters
        ----------
        parts : Parts
            Parts of N images.
        counts : Counts of shape (N, C)
            Counts of the images as they were decided.
        units : ndarray of int, shape (N,)
            The unit of each image.
        """
        return None

    def check(self, parts: Parts) -> None:  # noqa: B027 - most measures have nothing to check
        """Reject parts that cannot have been counted: run files may be corrupt.

        Parameters
        ----------
        parts : Parts
            Parts of N images, of the right layout.

        Raises
        ------
        ValueError
            If they cannot have been counted.
        """

    def way(self) -> Mapping[str, Json]:
        """Options that must be equal for scores to be comparable."""
        flat: Any = self.to_dict()
        return {**flat["options"], **flat["masks"]}

    def difference(self, other: Plan) -> str:
        """Name the options in which two plans of the measure differ; empty if they do not.

        Parameters
        ----------
        other : Plan
            The other plan.
        """
        mine, theirs = self.way(), other.way()
        return "; ".join(
            f"{self.measure.noun} are scored with {name} {mine.get(name)!r} here and "
            f"{theirs.get(name)!r} there"
            for name in {**mine, **theirs}
            if mine.get(name) != theirs.get(name)
        )

    def to_dict(self) -> dict[str, Json]:
        """Options and masks as plain data; the classes are in the run already."""
        return {"options": self.measure.to_dict(), "masks": asdict(self.masks)}
