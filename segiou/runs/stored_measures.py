"""Measures as the header of a run stores them, whether or not their package is installed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from segiou._support.arguments import check_flag, check_integer, check_kind
from segiou._support.optional import PluginTypeError
from segiou._support.text import Json, listed, plain
from segiou.measures.guard import is_own, package_of
from segiou.measures.parts import Field, Layout, check_layout
from segiou.measures.registry import check_scores, measure_keys, measure_of, own_keys

if TYPE_CHECKING:
    from segiou.labels.class_options import ClassOptions
    from segiou.measures.measure import Measure
    from segiou.measures.plan import Plan

_FLAGS = ("rows", "floats", "sparse")


class UnreadMeasure(NamedTuple):
    """A measure of a run whose scores cannot be derived here; its counts are carried along.

    Attributes
    ----------
    key : str
        Key of the measure.
    place : int
        Its position among the measures of the run.
    data : mapping
        Its entry in the header.
    layout : Layout
        The arrays of an image.
    problem : str
        Why its scores cannot be derived.
    """

    key: str
    place: int
    data: Mapping[str, Any]
    layout: Layout
    problem: str

    def __str__(self) -> str:
        return f"no scores of {self.key!r}: {self.problem}; its counts are kept"


Stored = Any  # a Plan or an UnreadMeasure


def entry_of(plan: Plan) -> dict[str, Json]:
    """The entry of a measure in the header: options, layout, version and package."""
    kind = type(plan.measure)
    layout: dict[str, Any] = {
        name: {"shape": list(field.shape), **{flag: getattr(field, flag) for flag in _FLAGS}}
        for name, field in plan.layout.items()
    }
    about: dict[str, Json] = {"version": kind.version, "package": package_of(kind)}
    return {**plan.to_dict(), "layout": layout, **about}


def read_entry(
    key: str,
    data: Mapping[str, Any],
    place: int,
    classes: ClassOptions,
    measures: Sequence[Measure],
) -> Stored:
    """Read an entry: the plan, or an UnreadMeasure if its package is missing or has changed.

    Raises
    ------
    KeyError, TypeError, ValueError
        If the entry is corrupt.
    """
    check_kind("a key of measures", key, str, "text")
    if not key.isidentifier():
        msg = f"measures has the key {key!r:.60}"
        raise ValueError(msg)
    kinds = {measure.key: type(measure) for measure in measures}
    is_known = key in kinds or key in measure_keys()
    if "layout" not in data:
        if not is_known:
            msg = f"the measure {key!r} is not installed, and the file does not describe its counts"
            raise PluginTypeError(msg)
        return _read_former(data, classes, kinds.get(key) or measure_of(key))
    layout, package = _stored_layout(data), str(data["package"])
    if not is_known:
        needed = f"the measure {key!r}" if package == "segiou" else package
        problem = f"they need {needed}, which is not installed (or measures=[…] of Run.open)"
        return UnreadMeasure(key, place, data, layout, problem)
    try:
        plan, problem = _read_plan(kinds.get(key) or measure_of(key), data, classes, layout)
    except (ImportError, KeyError, TypeError, ValueError) as error:
        if key in own_keys() and (key not in kinds or is_own(kinds[key])):
            raise  # the entry is corrupt
        problem = f"{package} counted them, but here {error}"
    return UnreadMeasure(key, place, data, layout, problem) if problem else plan


def _read_former(data: Mapping[str, Any], classes: ClassOptions, kind: type[Measure]) -> Plan:
    """The plan of an entry that was written before layouts were stored."""
    if kind.version > 1:
        msg = (
            f"the counts of {kind.key!r} have changed since this file was written, and it does not "
            "describe them; score again"
        )
        raise PluginTypeError(msg)
    return kind.plan_from(data, classes)


def _read_plan(
    kind: type[Measure], data: Mapping[str, Any], classes: ClassOptions, layout: Layout
) -> tuple[Plan | None, str]:
    """The plan of an entry, or why the installed package cannot read its counts."""
    plan = None
    difference = f"version {data['version']} of the counts in the file, {kind.version} here"
    if data["version"] == kind.version:
        plan = kind.plan_from(data, classes)
        check_scores([plan])
        difference = _layouts_differ(layout, plan.layout, "in the file", "here")
    if not difference:
        return plan, ""
    package, installed = data["package"], package_of(kind)
    if package == installed:
        return plan, f"{installed} counts them in a different way now ({difference}); score again"
    return plan, f"{package} counted them, but {installed} is installed ({difference})"


def _stored_layout(data: Mapping[str, Any]) -> dict[str, Field]:
    """The layout of an entry; raises if it is invalid."""
    layout = {}
    check_kind("layout", data["layout"], Mapping, "an object")
    for name, entry in data["layout"].items():
        check_kind("shape", entry["shape"], list, "a list")
        for flag in _FLAGS:
            check_flag(flag, entry[flag])
        layout[name] = Field(tuple(entry["shape"]), *(entry[flag] for flag in _FLAGS))
    check_layout(layout)
    check_integer("version", data["version"])
    check_kind("package", data["package"], str, "text")
    return layout


def _layouts_differ(mine: Layout, theirs: Layout, here: str, there: str) -> str:
    """The arrays in which two layouts differ; empty if they are equal."""
    # Files do not tell whether rows are single, which changes no bytes.
    mine, theirs = (
        {name: field._replace(single=False) for name, field in layout.items()}
        for layout in (mine, theirs)
    )
    if mine == theirs and [*mine] == [*theirs]:
        return ""
    names = [name for name in {**mine, **theirs} if mine.get(name) != theirs.get(name)]
    texts = [
        f"{name!r} is {_shown(mine.get(name))} {here} and {_shown(theirs.get(name))} {there}"
        for name in names
    ]
    return listed(texts, 3) or f"the order is {', '.join(mine)} {here}, {', '.join(theirs)} {there}"


def _shown(field: Field | None) -> str:
    if field is None:
        return "absent"
    kind = "floats" if field.floats else "integers"
    flags = [name for name in ("rows", "sparse") if getattr(field, name)]
    return " ".join([f"{kind} of shape {field.shape}", *flags])


def stored_difference(mine: Stored, theirs: Stored) -> str:
    """Difference of two stored measures in options or counts; empty if equal."""
    return _options_differ(mine, theirs) or _counts_differ(mine, theirs)


def _options_differ(mine: Stored, theirs: Stored) -> str:
    if not isinstance(mine, UnreadMeasure) and not isinstance(theirs, UnreadMeasure):
        return str(mine.difference(theirs))
    entries = [_entry(measure) for measure in (mine, theirs)]
    ways = [{**entry.get("options", {}), **entry.get("masks", {})} for entry in entries]
    return "; ".join(
        f"{mine.key} is scored with {name} {ways[0].get(name)!r} here and "
        f"{ways[1].get(name)!r} there"
        for name in {**ways[0], **ways[1]}
        if ways[0].get(name) != ways[1].get(name)
    )


def _counts_differ(mine: Stored, theirs: Stored) -> str:
    """Whether packages count the same options into other arrays or versions."""
    layouts = _layouts_differ(mine.layout, theirs.layout, "here", "there")
    versions = [_entry(measure).get("version", 1) for measure in (mine, theirs)]
    if not layouts and versions[0] == versions[1]:
        return ""
    difference = layouts or f"version {versions[0]} here and {versions[1]} there"
    packages = [_entry(measure).get("package", "?") for measure in (mine, theirs)]
    return f"{mine.key} was counted by {packages[0]} here and {packages[1]} there: {difference}"


def _entry(measure: Stored) -> Mapping[str, Any]:
    entry: Any = measure.data if isinstance(measure, UnreadMeasure) else plain(entry_of(measure))
    return dict(entry)
