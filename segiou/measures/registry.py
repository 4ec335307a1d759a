"""The measures by key: segiou's own, and those that other packages add."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from re import findall
from threading import Thread
from typing import TYPE_CHECKING, Any

from segiou._support.arguments import check_kind, read_several
from segiou._support.optional import PluginTypeError, find_plugin, plugin_names, plugin_package
from segiou._support.text import did_you_mean
from segiou.measures.guard import is_own, package_of
from segiou.measures.spellings import ALIASES, is_whole, spellings
from segiou.metrics.pixel_scores import CASE_SCORES, PIXEL_SCORES

if TYPE_CHECKING:
    from segiou.labels.class_options import ClassOptions
    from segiou.measures.mask_pair import Masks
    from segiou.measures.measure import Measure
    from segiou.measures.plan import Plan

#: Seconds after which a plug-in that was not requested is skipped.
_SECONDS = 10.0
#: Columns of tables of images and of slices that are not scores. They are written in packages
#: that import this one, so they are repeated here; a test reads them from such tables.
_OF_TABLES = ("id", "truth", "pred", "influence", "false_positive_classes", "group", "row", "mean")


def measure_keys() -> tuple[str, ...]:
    """Keys of all measures, segiou's own first."""
    return plugin_names("measures")


def own_keys() -> tuple[str, ...]:
    """Keys of segiou's own measures."""
    return plugin_names("measures", own=True)


@cache
def option_names() -> frozenset[str]:
    """Names of the options of all commands, in the tables of features and of segiou's measures."""
    root = files("segiou")
    folders = *root.iterdir(), *(root / "measures" / key for key in own_keys())
    places = [folder / "options.txt" for folder in folders if folder.is_dir()]
    tables = [place.read_text("utf-8") for place in places if place.is_file()]
    names = {name for table in tables for name in findall(r"(?m)^  (?:-\w, )?--([\w-]+)", table)}
    return frozenset(name.replace("-", "_") for name in {*names, "help", "help-all", "version"})


@cache
def own_scores() -> Mapping[str, str]:
    """The scores of segiou's own measures by name, with the key of their measure."""
    return {name: key for key in own_keys() for name in measure_of(key).score_names}


def measure_of(key: str) -> type[Measure]:
    """The class of a measure, by its key.

    Parameters
    ----------
    key : str
        Key of the measure.

    Raises
    ------
    ValueError
        If the key is unknown or reserved.
    TypeError
        If the key is not text, or an entry point does not name a measure with this key.
    """
    from segiou.measures.measure import Measure

    check_kind("key", key, str, "text")
    kind: type[Measure] | None = find_plugin("measures", key, type)
    if kind is None:
        hint = did_you_mean(key, measure_keys())
        msg = (
            f"unknown measure {key!r}{hint}; segiou measures lists those of the installed packages"
        )
        raise ValueError(msg)
    if not issubclass(kind, Measure) or getattr(kind, "key", None) != key:
        msg = f"the entry point {key!r} of segiou.measures must name a Measure with the key {key!r}"
        raise PluginTypeError(msg)
    check_key(kind)
    return kind


class MissingMeasureError(ValueError):
    """Something needs a measure of segiou that is not installed."""


def check_installed(key: str, need: str) -> None:
    """Raise MissingMeasureError if a measure that something needs is not installed."""
    if key not in measure_keys():
        msg = f"{need} needs the measure {key!r}, which is not installed"
        raise MissingMeasureError(msg)


def loaded_measures() -> tuple[dict[str, type[Measure]], dict[str, str]]:
    """Every usable measure, and the problem of each of the others."""
    measures: dict[str, type[Measure]] = {}
    problems: dict[str, str] = {}
    for key in measure_keys():
        kind = measure_of(key) if key in own_keys() else _loaded(key)
        if isinstance(kind, str):
            problems[key] = kind
        else:
            measures[key] = kind
    return measures, problems


@cache
def _hanging(key: str) -> set[Thread]:
    """The thread of an import that does not end."""
    return set()


def _loaded(key: str) -> type[Measure] | str:
    """A measure of another package, or its problem."""
    results: list[type[Measure] | str] = []

    def load() -> None:
        try:
            kind = measure_of(key)
            _check_names(kind)
            results.append(kind)
        except (ValueError, TypeError, ImportError) as error:
            results.append(str(error))

    if not any(thread.is_alive() for thread in _hanging(key)):
        thread = Thread(target=load, daemon=True)
        _hanging(key).add(thread)
        thread.start()
        thread.join(_SECONDS)
    owner = plugin_package(key, "")
    return next(iter(results), f"the measure {key!r} of {owner} is still being imported")


def read_measures(measures: Any, **short: Any) -> tuple[Measure, ...]:
    """Read the measures that a caller chooses: measures, or keys for their defaults.

    ``short`` are the choices of keywords, such as ``objects=True``.
    """
    from segiou.measures.measure import Measure

    wanted = "measures or their keys, such as 'boundary'"
    by_key: dict[str, Measure] = {}
    wanted_keys = {
        key: choice for key, choice in short.items() if choice is not None and choice is not False
    }
    several = [measure_of(key).of(choice) for key, choice in wanted_keys.items()]
    for choice in (*several, *read_several("measures", measures, wanted)):
        chosen = measure_of(choice).of(True) if isinstance(choice, str) else choice
        check_kind("each of measures", chosen, Measure, wanted)
        check_key(type(chosen))
        if by_key.setdefault(chosen.key, chosen) != chosen:
            msg = f"measures has {chosen.key!r} twice with different options; keep one"
            raise ValueError(msg)
    return tuple(by_key.values())


def with_defaults(
    measures: Iterable[Measure], labels: Any, spacing: Sequence[float] | None
) -> tuple[Measure, ...]:
    """The measures with defaults that a label set and a spacing determine."""
    return tuple(measure.with_defaults(labels, spacing) for measure in measures)


def flag_of(key: str, score: str = "") -> str:
    """The options of the command line that ask for a measure, or for a score of it."""
    return measure_of(key).flag_for(score) if key in measure_keys() else f"--{key}"


def measures_from_options(
    given: Mapping[str, Any], classes: ClassOptions, options: Mapping[str, Sequence[str]]
) -> tuple[Measure, ...]:
    """The measures that a command line asks for; only their modules are loaded.

    ``options`` are the names of options by their heading, which is the key of their measure.
    """
    measures = (
        measure_of(key).from_options(given, classes) for key in _requested_keys(given, options)
    )
    return tuple(measure for measure in measures if measure is not None)


def _requested_keys(given: Mapping[str, Any], options: Mapping[str, Sequence[str]]) -> list[str]:
    # Nobody can ask for a measure of another package whose key is an option of segiou.
    foreign = plugin_names("measures", own=False)
    names = {key: [key] for key in foreign if key not in option_names()} | {**options}
    return [key for key in measure_keys() if any(map(given.get, names.get(key, ())))]


def implied_classes(
    given: Mapping[str, Any], options: Mapping[str, Sequence[str]]
) -> list[str] | None:
    """Names of the classes that a measure of a command line implies, if any."""
    several = (measure_of(key).class_names(given) for key in _requested_keys(given, options))
    return next((list(names) for names in several if names is not None), None)


def plans_of(
    measures: Sequence[Measure], classes: ClassOptions, masks: Masks, protocol: str = "segiou"
) -> tuple[Plan, ...]:
    """Plans of measures once the kind of the masks is known, which may replace a measure."""
    resolved = (measure.resolved(measures, masks, protocol) for measure in measures)
    plans = tuple(final.plan(classes, masks) for final in resolved if final is not None)
    check_scores(plans)
    return plans


def measure_of_score(name: Any, plans: Iterable[Plan] = ()) -> str | None:
    """The key of the measure that has a score of this name."""
    if not isinstance(name, str):
        return None
    known = next((plan.key for plan in plans if name in plan.scores), None)
    if known is not None or name in PIXEL_SCORES:
        return known
    if name in own_scores() or is_taken(name):  # other packages are not asked
        return own_scores().get(name)
    return next((key for key in loaded_measures()[0] if name in score_names(key)), None)


def known_scores() -> list[str]:
    """Names of the scores of every measure that can be used."""
    return [name for key in loaded_measures()[0] for name in score_names(key)]


def better_of(key: str, name: str) -> Any:
    """Which values of a score are better, known without masks."""
    try:
        plan = _usual_plan(measure_of(key), name)
    except (TypeError, ValueError):
        return "higher"
    return plan.scores[name].better if plan is not None and name in plan.scores else "higher"


def score_names(key: str) -> tuple[str, ...]:
    """Names of the scores of a measure."""
    measure = measure_of(key)
    if measure.score_names:
        return measure.score_names
    plan = _usual_plan(measure)
    return () if plan is None else tuple(plan.scores)


def _usual_plan(measure: type[Measure], score: str = "") -> Plan | None:
    """The plan for two classes, with default options or those that a score needs."""
    from segiou.labels.class_options import ClassOptions
    from segiou.measures.guard import MeasureError
    from segiou.measures.mask_pair import Masks

    try:
        chosen = measure.for_score(score) if score else measure.of(True)
        return chosen.plan(ClassOptions.of(2), Masks())
    except MeasureError:
        raise
    except (TypeError, ValueError):  # it has no defaults, or does not take such masks
        return None


def _check_names(measure: type[Measure]) -> None:
    """Raise ValueError if a known name of a measure is taken."""
    if (plan := _usual_plan(measure)) is not None:
        check_scores([plan])


def check_key(kind: type[Measure]) -> None:
    """Raise ValueError if a measure of another package has a key that is taken."""
    if is_own(kind):
        return
    key = getattr(kind, "key", None)
    if not isinstance(key, str) or not key.isidentifier():
        msg = f"{kind.__module__}.{kind.__qualname__}: key must be a Python name, got {key!r}"
        raise ValueError(msg)
    package = package_of(kind)
    if key in own_keys() and not issubclass(kind, measure_of(key)):
        msg = f"the measure {key!r} is defined by segiou and {package}; rename it in {package}"
        raise ValueError(msg)
    if key not in own_keys() and (key in option_names() or is_taken(key)):
        msg = f"the key {key!r} of a measure of {package} is a name of segiou; rename it there"
        raise ValueError(msg)


def is_taken(score: str) -> bool:
    """Whether segiou has a score, a column or a key of reports of this name."""
    from segiou.document.report_dict import ClassDict, ReportDict, ValueDict
    from segiou.metrics import overall

    of_rows = ClassDict.__annotations__.keys() | ValueDict.__annotations__
    of_reports = ReportDict.__annotations__.keys() - {*own_keys()}
    taken = {*PIXEL_SCORES, *CASE_SCORES, *ALIASES, *own_scores(), *_OF_TABLES}
    taken.update(of_rows, of_reports, vars(overall))
    return not {*spellings(score)}.isdisjoint(taken)


def check_scores(plans: Iterable[Plan]) -> None:
    """Raise ValueError for a score whose name is taken, or is that of a mean."""
    owners: dict[str, str] = {}
    several = [*plans]
    own = [plan for plan in several if is_own(type(plan.measure))]
    foreign = [plan for plan in several if plan not in own]
    columns = {c.name.partition(":")[0] for plan in own if foreign for c in plan.image_columns}
    for plan in foreign:
        package = package_of(type(plan.measure))
        for name in plan.scores:
            other = owners.setdefault(name, package)
            other = "segiou" if name in columns or is_taken(name) else other
            if other != package:
                msg = f"score {name!r} is defined by {other} and {package}; rename it in {package}"
                raise ValueError(msg)
            if is_whole(name):
                msg = (
                    f"score {name!r} of {package} has the name of a mean, so its classes cannot be "
                    "read; remove 'mean' from the name there"
                )
                raise ValueError(msg)
