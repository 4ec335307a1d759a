"""The contract of measures: what they count of a pair, which scores follow, how they are shown."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from segiou._support.arguments import read_spacing
from segiou._support.text import Json
from segiou.counting.counts import ConfusionCounts
from segiou.counting.encoding import Encoding
from segiou.labels.class_options import ClassOptions
from segiou.measures.parts import Layout, Parts
from segiou.metrics.ratio import Floats, ratio as divided

Better = Literal["higher", "lower"]


@dataclass(frozen=True)
class Masks:
    """What is known of all masks before one is read."""

    volumes: bool = False
    spacing: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        if self.spacing is not None:
            object.__setattr__(self, "spacing", read_spacing(self.spacing))


@dataclass(frozen=True, eq=False)
class MaskPair:
    """One truth and prediction as a measure sees them."""

    truth: NDArray[Any]
    pred: NDArray[Any]
    classes: ClassOptions
    ids: tuple[Any, Any] = (None, None)
    mask: Any = None
    spacing: Sequence[float] | None = None
    tally: ConfusionCounts | None = None

    @cached_property
    def indices(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Class index of each pixel, -1 where the truth is ignored or nothing is predicted."""
        encoding, number = Encoding.of_classes(self.classes), self.classes.num_classes
        truth = encoding.truth.codes_of(self.truth).astype(np.int64)
        pred = encoding.pred.codes_of(self.pred).astype(np.int64)
        void = truth >= number
        if self.mask is not None:
            void |= ~np.asarray(self.mask, bool)
        truth[void], pred[void | (pred >= number)] = -1, -1
        return truth, pred


@dataclass(frozen=True)
class Score:
    """A score of classes (or structures) and their mean, as a function of sums over images."""

    name: str
    title: str
    names: tuple[str, ...]
    sums: Callable[[Parts], NDArray[Any]] = field(repr=False)  # N images → (N, F)
    evaluate: Callable[[NDArray[Any]], Floats] = field(repr=False)  # (…, F) → (…, 1 + K)
    seen: Callable[[Parts], NDArray[np.bool_]] | None = field(default=None, repr=False)  # (N, K)
    unit: str = ""
    better: Better = "higher"
    rule: str = ""
    bounded: bool = False  # whether reports with intervals have one of it

    @classmethod
    def of_classes(
        cls,
        name: str,
        title: str,
        classes: ClassOptions,
        numbers: Callable[[Parts], NDArray[Any]],
        ratio: Callable[[NDArray[Any]], Floats],
        *,
        absent_is_zero: bool = False,
        **more: Any,
    ) -> Score:
        """A ratio of numbers (N, C, f) of each class, and its mean over the included ones."""
        names, include = classes.labels.class_names, classes.include
        return cls.of_names(
            name, title, names, include, numbers, ratio, absent_is_zero=absent_is_zero, **more
        )

    @classmethod
    def of_names(
        cls,
        name: str,
        title: str,
        names: Sequence[str],
        include: NDArray[np.bool_],
        numbers: Callable[[Parts], NDArray[Any]],
        ratio: Callable[[NDArray[Any]], Floats],
        *,
        absent_is_zero: bool = False,
        **more: Any,
    ) -> Score:
        """The same of structures."""

        def sums(parts: Parts) -> NDArray[Any]:
            found = numbers(parts)
            return found.reshape(len(found), found.shape[1] * found.shape[2])

        def evaluate(flat: NDArray[Any]) -> Floats:
            each = flat.shape[-1] // max(1, len(include))
            values = ratio(flat.reshape(*flat.shape[:-1], len(include), each))
            part = (absent_is_zero | ~np.isnan(values)) & include
            mean = divided(np.where(part & ~np.isnan(values), values, 0).sum(-1), part.sum(-1))
            return np.concatenate([mean[..., None], values], axis=-1)

        return cls(name, title, tuple(names), sums, evaluate, **more)

    def values(self, total: Parts) -> Floats:
        """The mean and each class of all images, (1 + K,)."""
        return self.evaluate(self.sums(total).sum(0))

    def of_images(self, parts: Parts) -> Floats:
        """The same of each image, (N, 1 + K)."""
        return self.evaluate(self.sums(parts))


Kind = Literal["ratio", "distance", "count"]


@dataclass(frozen=True)
class Column:
    """Numbers of a table, one a row, with limits of an interval where there are some."""

    name: str
    title: str
    values: tuple[float, ...]
    means: tuple[float, ...] = ()
    kind: Kind = "ratio"
    unit: str = ""
    better: Better | None = "higher"
    limits: tuple[tuple[float, float] | None, ...] = ()  # of the rows, then of the means
    level: float = 0.95
    digits: int = 2
    texts: tuple[str, ...] = ()  # of the rows; shown in place of a value unless empty

    def at(self, index: int) -> float:
        """A value of a row, or behind them of a mean."""
        return (*self.values, *self.means)[index]


@dataclass(frozen=True)
class ScoreTable:
    """What a report shows of a measure; each renderer knows this and no measure."""

    key: str
    title: str
    about: str
    rows: tuple[str, ...]
    columns: tuple[Column, ...]
    means: tuple[str, ...] = ("mean",)
    note: str = ""
    of: str = "class"
    empty: tuple[bool, ...] = ()  # rows, then means, of which nothing was there
    scores: Mapping[str, tuple[float, ...]] | None = None  # mean and rows; else the columns
    data: Mapping[str, Any] | None = None  # entries of JSON, in the place of one of its key

    def to_dict(self) -> dict[str, Json]:
        """As plain data: a dict a row, and the means."""
        if self.data is not None:
            return dict(self.data)
        lines = [
            {self.of: name}
            | {c.name: c.at(i) for c in self.columns}
            | {
                f"{c.name}_{end}": ends[k]
                for c in self.columns
                if c.limits and (ends := c.limits[i])
                for k, end in enumerate(("low", "high"))
            }
            for i, name in enumerate((*self.rows, *self.means))
        ]
        rows, means = lines[: len(self.rows)], lines[len(self.rows) :]
        return {self.key: {"rows": rows, "means": means, "note": self.note}}


@dataclass(frozen=True)
class Counted:
    """All that a report knows of a run: the total of a measure, the pixels, intervals by score."""

    total: Parts
    tally: ConfusionCounts
    images: int
    intervals: Mapping[str, Any] = field(default_factory=dict)
    ids: Callable[[], Sequence[str]] = tuple


@dataclass(frozen=True)
class Measure:
    """Options of a kind of measure; every field is one, and is plain data."""

    key: ClassVar[str]
    title: ClassVar[str] = ""
    #: What is measured, as in "boundaries are measured"; the key, by default.
    noun: ClassVar[str] = ""
    #: Lines as of ``cli/options.txt``, for a measure that does not stand there.
    options: ClassVar[str] = ""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.noun = cls.noun or getattr(cls, "key", "")

    @classmethod
    def asked(cls, given: Mapping[str, Any], classes: ClassOptions) -> Measure | None:
        """What a command line asks for: ``--KEY``, and ``--KEY-FIELD`` of each field."""
        if not given.get(cls.key):
            return None
        own = {f: given.get(f"{cls.key}_{f}") for f in cls.__dataclass_fields__}
        return cls(**{name: value for name, value in own.items() if value is not None})

    @classmethod
    def of(cls, choice: Any) -> Measure:
        """Read a caller's choice: options, or True for the usual ones."""
        return choice if isinstance(choice, Measure) else cls()

    def fitted(self, labels: Any, spacing: Any) -> Measure:
        """The same for a label set and a spacing that were given."""
        return self

    def words(self, labels: Any) -> list[str]:
        """What asks for it on the command line."""
        usual = type(self)()
        chosen = {n: v for n, v in self.to_dict().items() if v != getattr(usual, n)}
        return [
            f"--{self.key}",
            *(f"--{self.key}-{n.replace('_', '-')}={v}" for n, v in chosen.items()),
        ]

    def plan(self, classes: ClassOptions, masks: Masks) -> Plan:
        """The measure of these classes and masks."""
        raise NotImplementedError

    @classmethod
    def plan_from(cls, data: Mapping[str, Any], classes: ClassOptions) -> Plan:
        """The plan that :meth:`Plan.to_dict` described."""
        spacing = data["masks"]["spacing"]
        masks = Masks(bool(data["masks"]["volumes"]), spacing and tuple(spacing))
        return cls.from_dict(data["options"]).plan(classes, masks)

    def to_dict(self) -> dict[str, Json]:
        """The options as plain data."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read what :meth:`to_dict` gave."""
        return cls(**data)


@dataclass(frozen=True)
class Plan(ABC):
    """A measure of known classes and masks: small, so that it can be sent to workers."""

    measure: Any
    classes: ClassOptions
    masks: Masks = Masks()

    def __getstate__(self) -> dict[str, Any]:
        """What workers need: not the scores, which are functions."""
        return {"measure": self.measure, "classes": self.classes, "masks": self.masks}

    @property
    def key(self) -> str:
        """The key of its measure."""
        return str(self.measure.key)

    @property
    @abstractmethod
    def layout(self) -> Layout:
        """The arrays of a part."""

    @abstractmethod
    def count(self, pair: MaskPair) -> Parts:
        """What is counted of one image."""

    @property
    @abstractmethod
    def scores(self) -> Mapping[str, Score]:
        """Its scores by name, the first of which is shown first."""

    def table(self, found: Counted) -> ScoreTable:
        """All scores as a table."""
        scores, limits = [*self.scores.values()], found.intervals
        columns = tuple(score_column(s, s.values(found.total), limits.get(s.name)) for s in scores)
        lone = tuple(bool(np.isnan(v).all()) for v in np.array([c.values for c in columns]).T)
        title = self.measure.title or self.key
        note = f"{title}: {', '.join(self.measure.words(self.classes.labels))}"
        return ScoreTable(
            self.key,
            title,
            (self.measure.__doc__ or "").split("\n")[0],
            scores[0].names,
            columns,
            note=note,
            empty=(*lone, False),
        )

    def columns(self, parts: Parts) -> dict[str, NDArray[Any]]:
        """Columns of the table of images."""
        found: dict[str, NDArray[Any]] = {}
        for score in self.scores.values():
            values = score.of_images(parts)
            found |= dict(zip(_column_names(score), values.T, strict=True))
        return found

    def column_names(self) -> list[str]:
        """Names of these columns."""
        return [*self.columns(Parts.joined(self.layout, []))]

    def ranks(self) -> dict[str, Better]:
        """Columns by which images can be ranked, and which way."""
        return {n: s.better for s in self.scores.values() for n in _column_names(s)}

    def check(self, parts: Parts) -> None:  # noqa: B027 - most measures have nothing to check
        """Refuse what cannot have been counted; raises ValueError."""

    def way(self) -> Mapping[str, Json]:
        """What must be alike where models are compared."""
        return {"": str(self.measure)}

    def difference(self, other: Plan) -> str:
        """Say in what other plans differ; empty if they do not."""
        mine: Any = self.to_dict()
        theirs: Any = other.to_dict()
        if mine == theirs:
            return ""
        flat = [{**p["options"], **p["masks"]} for p in (mine, theirs)]
        return "; ".join(
            f"{self.key} are scored with {n} {flat[0][n]!r} here and {flat[1][n]!r} there"
            for n in flat[0]
            if flat[0][n] != flat[1][n]
        )

    def to_dict(self) -> dict[str, Json]:
        """Plain data for a run file; its classes stand there already."""
        return {"options": self.measure.to_dict(), "masks": asdict(self.masks)}


def _column_names(score: Score) -> list[str]:
    return [score.name, *(f"{score.name}:{name}" for name in score.names)]


def score_column(
    score: Score, values: Floats, found: Any = None, kind: Kind | None = None
) -> Column:
    """A column of a score, with an interval where there is one."""
    limits: tuple[tuple[float, float] | None, ...] = ()
    if found is not None:
        by_name = {one.name: (one.low, one.high) for one in found.classes}
        overall = (found.overall.low, found.overall.high)
        limits = (*(by_name.get(name) for name in score.names), overall)
    kind = kind or ("distance" if score.unit else "ratio")
    mean, *rows = values.tolist()
    level = 0.95 if found is None else found.level
    return Column(
        score.name, score.title, tuple(rows), (mean,), kind, score.unit, score.better, limits, level
    )


__all__ = [
    "Column",
    "Layout",
    "MaskPair",
    "Masks",
    "Measure",
    "Parts",
    "Plan",
    "Score",
    "ScoreTable",
    "replace",
]
