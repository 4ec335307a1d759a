"""The contract of measures: options, and a plan that counts images and scores the counts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from segiou._support.text import Json
from segiou.counting.counts import ConfusionCounts, Counts
from segiou.labels.class_options import ClassOptions
from segiou.measures.guard import guard
from segiou.measures.mask_pair import MaskPair, Masks, ScoredPrediction
from segiou.measures.parts import Layout, Parts
from segiou.measures.score import Better, Score
from segiou.measures.score_table import Column, Kind, ScoreTable
from segiou.metrics.ratio import Floats

if TYPE_CHECKING:
    from segiou._support.files import Stamp
    from segiou.labels.label_set import LabelSet
    from segiou.masks.read import RawMask
    from segiou.masks.sources.folders import Source
    from segiou.measures.object_mask import Drawn, ObjectMask


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
    _values: dict[str, Floats] = field(default_factory=dict, init=False, repr=False, compare=False)

    def values_of(self, score: Score) -> Floats:
        """Values of a score of all images, as of :meth:`Score.values`; evaluated once.

        Parameters
        ----------
        score : Score
            One of the scores of the plan.

        Returns
        -------
        ndarray of float64, shape (1 + K,)
        """
        if score.name not in self._values:
            self._values[score.name] = score.values(self.total)
        return self._values[score.name]


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


class ImageColumn(NamedTuple):
    """A column that a measure adds to the table of images.

    Attributes
    ----------
    name : str
        Such as ``"hausdorff_95:liver"``.
    kind : {"ratio", "distance", "count"}
        How its numbers are written.
    unit : str
        Unit of its numbers.
    better : {"higher", "lower"}, optional
        Which numbers are better; None if it cannot rank images.
    title : str
        Human-readable name of the score.
    """

    name: str
    kind: Kind = "ratio"
    unit: str = ""
    better: Better | None = "higher"
    title: str = ""


@dataclass(frozen=True)
class Measure(ABC):
    """A kind of score that is counted in addition to the confusion matrix.

    Subclasses are frozen dataclasses. Their fields are the options: plain data,
    validated in ``__post_init__``. A package adds a measure by an entry point of
    the group ``segiou.measures`` whose name is the key.

    Attributes
    ----------
    key : str
        Name of the measure: ``--KEY``, ``measures=["KEY"]``, the key of its JSON.
    title : str
        Heading of its table; the key by default.
    noun : str
        Plural noun for the scored things; the key by default.
    options : str
        Lines of help for the command line, in the format of ``cli/options.txt``; their
        heading is the key.
    score_names : tuple of str
        Names of its scores.
    version : int
        Version of its counts; raise it when their meaning changes, so that run files with
        former counts are not mistaken.
    """

    key: ClassVar[str]
    title: ClassVar[str] = ""
    noun: ClassVar[str] = ""
    options: ClassVar[str] = ""
    score_names: ClassVar[tuple[str, ...]] = ()
    version: ClassVar[int] = 1
    #: Whether it reads ids of objects from mask files with :meth:`read`.
    reads_ids: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if key := getattr(cls, "key", ""):
            cls.title, cls.noun = cls.title or key, cls.noun or key
            guard(cls)

    @classmethod
    def asked(cls, given: Mapping[str, Any], classes: ClassOptions) -> Measure | None:
        """Read the options of the command line: ``--KEY``, and ``--KEY-FIELD`` for each field.

        Parameters
        ----------
        given : mapping
            The parsed options by name.
        classes : ClassOptions
            The classes.

        Returns
        -------
        Measure or None
            None if the command line does not ask for the measure.

        Raises
        ------
        ValueError
            If a field is given without ``--KEY``.
        """
        values = {one.name: given.get(f"{cls.key}_{one.name}") for one in fields(cls)}
        chosen = {name: value for name, value in values.items() if value is not None}
        if not given.get(cls.key):
            usual: dict[str, Any] = {one.name: (False, [], str(one.default)) for one in fields(cls)}
            if name := next((n for n, value in chosen.items() if value not in usual[n]), ""):
                msg = f"--{cls.key}-{name.replace('_', '-')} needs --{cls.key}"
                raise ValueError(msg)
            return None
        return cls(**{name: _as_kind(cls, name, value) for name, value in chosen.items()})

    @classmethod
    def of(cls, choice: Any) -> Measure:
        """Read the choice of a caller: options, or True for the defaults.

        Parameters
        ----------
        choice : Measure or True
            The choice.
        """
        return choice if isinstance(choice, Measure) else cls()

    @classmethod
    def for_score(cls, name: str) -> Measure:
        """The measure with the options that one of its scores needs, by default the defaults.

        Parameters
        ----------
        name : str
            Name of the score.
        """
        return cls.of(True)

    @classmethod
    def flag_for(cls, score: str = "") -> str:
        """Options of the command line that ask for the measure, or for one of its scores.

        Parameters
        ----------
        score : str
            Name of the score.
        """
        return f"--{cls.key}"

    def fitted(self, labels: Any, spacing: Any) -> Measure:
        """The same measure with defaults that a label set and a spacing determine.

        Parameters
        ----------
        labels : str, path or LabelSet
            The label set as it was given.
        spacing : sequence of float, optional
            The spacing as it was given.
        """
        return self

    def resolved(self, measures: Sequence[Measure], masks: Masks, protocol: str) -> Measure | None:
        """Resolve the options once the kind of the masks is known.

        Parameters
        ----------
        measures : sequence of Measure
            All measures that are asked for.
        masks : Masks
            The masks.
        protocol : str
            Protocol of the run.

        Returns
        -------
        Measure or None
            None if another measure replaces it.

        Raises
        ------
        ValueError
            If the options do not fit such masks.
        """
        return self

    @classmethod
    def class_names(cls, given: Mapping[str, Any]) -> Sequence[str] | None:
        """Names of the classes that options of the command line imply; None by default.

        Parameters
        ----------
        given : mapping
            The parsed options by name.
        """
        return None

    def check_arrays(self) -> None:  # noqa: B027 - most measures count arrays
        """Reject options that arrays do not fit, such as formats of files.

        Raises
        ------
        ValueError
            If the measure cannot count arrays.
        """

    def read(
        self, raw: RawMask, path: str, labels: LabelSet, beside: dict[str, Any] | None = None
    ) -> ObjectMask | None:
        """Read the ids of objects of a mask file; None if it has only classes.

        Called if :attr:`reads_ids` is true.

        Parameters
        ----------
        raw : RawMask
            The pixels of the file.
        path : str
            The file.
        labels : LabelSet
            The classes of the file.
        beside : dict, optional
            What was read beside the files of a batch so far, and is not read again.
        """
        return None

    def shared(
        self, truth: ObjectMask | None, pred: ObjectMask | None
    ) -> tuple[ObjectMask, ObjectMask] | None:
        """Both sides with one entry per pair of ids that share pixels; None by default.

        Parameters
        ----------
        truth, pred : ObjectMask, optional
            Objects of both sides.
        """
        return None

    def stamp(self, own: Stamp, path: str) -> Stamp:
        """The stamp of a mask file, joined with those of files that are read beside it.

        Parameters
        ----------
        own : Stamp
            Stamp of the file.
        path : str
            The file.
        """
        return own

    def predictions(self, source: Source, classes: ClassOptions) -> Source:
        """The place of the predictions as the measure reads it; unchanged by default.

        Parameters
        ----------
        source : Source
            The place.
        classes : ClassOptions
            The classes.
        """
        return source

    @abstractmethod
    def plan(self, classes: ClassOptions, masks: Masks) -> Plan:
        """Plan the counting for known classes and masks.

        Parameters
        ----------
        classes : ClassOptions
            The classes.
        masks : Masks
            The masks.

        Raises
        ------
        ValueError
            If the options do not fit the classes or masks.
        """

    @classmethod
    def plan_from(cls, data: Mapping[str, Any], classes: ClassOptions) -> Plan:
        """Read the result of :meth:`Plan.to_dict`.

        Parameters
        ----------
        data : mapping
            Options and masks.
        classes : ClassOptions
            The classes.
        """
        masks = Masks(**{name: _tuples(value) for name, value in data["masks"].items()})
        return cls.from_dict(data["options"]).plan(classes, masks)

    def to_dict(self) -> dict[str, Json]:
        """The options as plain data."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read the result of :meth:`to_dict`, or its JSON.

        Parameters
        ----------
        data : mapping
            Options by name.
        """
        return cls(**{name: _tuples(value) for name, value in data.items()})


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _as_kind(cls: type[Measure], name: str, value: Any) -> Any:
    """A text of the command line in the kind of the default of an option."""
    default: Any = next(one.default for one in fields(cls) if one.name == name)
    is_number = isinstance(default, int | float) and not isinstance(default, bool)
    if not (is_number and isinstance(value, str)):
        return value
    return read_number(f"--{cls.key}-{name.replace('_', '-')}", value, type(default))


def read_number(option: str, value: str, kind: type[int] | type[float]) -> Any:
    """The number that an option of the command line was given as a text."""
    try:
        return kind(value)
    except ValueError:
        msg = f"{option} {value}: must be {'an integer' if kind is int else 'a number'}"
        raise ValueError(msg) from None


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
        guard(cls)

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

    def table(self, found: Counted) -> ScoreTable:
        """The table of a report: every score as a column.

        Parameters
        ----------
        found : Counted
            The counts of all images.
        """
        several = [
            (score, found.values_of(score), found.intervals.get(name))
            for name, score in self.scores.items()
        ]
        columns = tuple(Column.of_score(*one) for one in several)
        names = several[0][0].names if several else ()
        values = np.array([column.values for column in columns]).reshape(-1, len(names))
        usual = type(self.measure)().to_dict()
        chosen = self.measure.to_dict().items()
        options = ", ".join(f"{k}={v}" for k, v in chosen if v != usual.get(k)) or "default options"
        return ScoreTable(
            self.key,
            self.measure.title,
            (self.measure.__doc__ or "").partition("\n")[0],
            names,
            columns,
            note=f"{self.measure.title}: {options}",
            of="class" if names == self.classes.labels.class_names else "structure",
            empty=(*np.isnan(values).all(0).tolist(), False),
        )

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

    @cached_property
    def image_columns(self) -> tuple[ImageColumn, ...]:
        """Units of these columns, and the direction of better values."""
        described = []
        for name, values in self.columns(Parts.joined(self.layout, [])).items():
            score = self.scores.get(name.partition(":")[0])
            if score is not None:
                kind: Kind = "distance" if score.unit else "ratio"
                column = ImageColumn(name, kind, score.unit, score.better, score.title)
                described.append(column)
            elif values.dtype.kind in "iu":
                better: Better | None = "lower" if name in self.error_columns else None
                described.append(ImageColumn(name, "count", "", better))
            else:
                described.append(ImageColumn(name))
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
