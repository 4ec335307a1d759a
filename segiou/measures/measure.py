"""The contract of measures: options, and the plan that they make."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Self

from segiou._support.text import Json, without_numpy
from segiou.labels.class_options import ClassOptions
from segiou.measures.guard import Checks, guard, refuse
from segiou.measures.mask_pair import Masks
from segiou.measures.plan import Plan

if TYPE_CHECKING:
    from segiou._support.files import Stamp
    from segiou.labels.label_set import LabelSet
    from segiou.masks.raw_mask import RawMask
    from segiou.masks.sources.folders import Source
    from segiou.measures.object_mask import ObjectMask


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
        Lines of help for the command line, in the format of ``measures/area/options.txt``;
        their heading is the key. segiou's own kinds have such a file in their folder.
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
    #: Whether ``--KEY`` is enough for ``--spacing`` to have an effect; for measures of other
    #: packages, it always is.
    uses_spacing: ClassVar[bool] = False
    #: How it reads masks unless it is told otherwise: values of the fields of ``Reading``.
    reading: ClassVar[Mapping[str, Any]] = {}

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if key := getattr(cls, "key", ""):
            cls.title, cls.noun = cls.title or key, cls.noun or key
            guard(cls, _CHECKS)

    @classmethod
    def from_options(cls, given: Mapping[str, Any], classes: ClassOptions) -> Measure | None:
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
        texts = ((field, given.get(f"{cls.key}_{field.name}")) for field in fields(cls))
        values = {
            field.name: _read_option(_option(cls, field.name), text, field.default)
            for field, text in texts
            if text is not None
        }
        if given.get(cls.key):
            return cls(**values)
        usual: dict[str, Any] = {field.name: (False, [], field.default) for field in fields(cls)}
        if name := next((n for n, value in values.items() if value not in usual[n]), ""):
            msg = f"{_option(cls, name)} needs {_option(cls)}"
            raise ValueError(msg)
        return None

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
        return _option(cls)

    def with_defaults(self, labels: Any, spacing: Any) -> Measure:
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
        """Both sides, unchecked, with one entry per pair of ids that share pixels; None by default.

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
        options: dict[str, Json] = without_numpy(asdict(self))
        return options

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


def _read_option(option: str, value: Any, default: Any) -> Any:
    """The value of an option of the command line; a text is read as the default is: numbers."""
    kind = type(default[0] if isinstance(default, tuple) and default else default)
    if not (isinstance(value, str) and kind in (int, float)):
        return value
    texts = value.split(",") if isinstance(default, tuple) else [value]
    numbers = tuple(read_number(option, text, kind) for text in texts)
    return numbers if isinstance(default, tuple) else numbers[0]


def _option(cls: type[Measure], field: str = "") -> str:
    """The option of the command line for a measure, or for one of its fields."""
    return "--" + "-".join(filter(None, (cls.key, field))).replace("_", "-")


def read_number(option: str, value: str, kind: type[int] | type[float]) -> Any:
    """The number that an option of the command line was given as a text."""
    try:
        return kind(value)
    except ValueError:
        msg = f"{option} {value}: must be {'an integer' if kind is int else 'a number'}"
        raise ValueError(msg) from None


def _check_plan(owner: Any, plan: Any, *_: Any) -> Any:
    if not isinstance(plan, Plan):
        raise refuse("a Plan", plan)
    _ = plan.layout, plan.scores  # faults are found before anything is counted
    return plan


def _check_measure(owner: Any, result: Any, *_: Any) -> Any:
    if result is not None and not isinstance(result, Measure):
        raise refuse("a Measure", result)
    return result


_CHECKS: Checks = {
    **dict.fromkeys(("plan", "plan_from"), _check_plan),
    **dict.fromkeys(
        ("from_options", "of", "for_score", "with_defaults", "resolved"), _check_measure
    ),
}
