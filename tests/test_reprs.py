"""Every public object has a repr, and every representation that it offers, in every state."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import pkgutil
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from accumulator_kinds import KINDS, NUMBER, counted

import segiou
from segiou import analysis
from segiou.analysis import at_prevalence, prevalence_curve
from segiou.document.notebook import notebook_of
from segiou.document.parts import Column, Line, Table
from segiou.document.renderers import rendered
from segiou.measures import Field, Parts
from segiou.measures.boundary import BoundaryCounts, BoundaryOptions
from segiou.measures.objects import ObjectOptions
from segiou.raters.scores import rater_agreement
from segiou.raters.votes import Votes
from segiou.regions import Tolerance
from segiou.scoring import inspect_folder

RNG = np.random.default_rng(0)
TRUTH = np.kron(RNG.integers(0, 3, (6, 3, 3)), np.ones((1, 3, 3), int))
PRED = np.where(RNG.random(TRUTH.shape) < 0.8, TRUTH, 0)
ONE, VOID = np.zeros_like(TRUTH), np.full_like(TRUTH, 255)
#: Number of classes, truth and prediction; tables leave out absent classes if there are many.
STATES = {
    "empty": (19, TRUTH[:0], PRED[:0]),
    "one image": (19, TRUTH[:1], PRED[:1]),
    "one class": (19, ONE, ONE),
    "NaN scores": (19, VOID, ONE),
    "NaN scores of few classes": (3, VOID, ONE),
    "complete": (3, TRUTH, PRED),
}
FEW = {"resamples": 20, "permutations": 20}
METHODS = (
    *("__repr__", "__str__", "_repr_html_", "_repr_markdown_"),
    *("to_text", "to_markdown", "to_latex", "to_csv", "to_json", "to_html"),
)


def show(found: Any) -> None:
    """Call every representation, and look for tables without cells."""
    for method in METHODS:
        if (shown := getattr(found, method, None)) is not None:
            text = shown()
            assert isinstance(text, str), method
            assert text or method == "to_csv", method
            assert "\n|  |\n" not in text, method


def parts_of(found: Any) -> Iterator[Any]:
    """An object of segiou, and those in its fields."""
    if type(found).__module__.startswith("segiou"):
        yield found
    inner: Any = ()
    if dataclasses.is_dataclass(found) and not isinstance(found, type):
        inner = (getattr(found, field.name) for field in dataclasses.fields(found))
    elif isinstance(found, Mapping):
        inner = found.values()
    elif isinstance(found, (tuple, list)):
        inner = found
    for one in inner:
        yield from parts_of(one)


def findings(run: segiou.Run) -> Iterator[Any]:
    """The findings about a run that has images enough for them."""
    table = {name: {"time": ("day", "night")[i % 2]} for i, name in enumerate(run.ids)}
    yield from (run, run.report(), run.report(worst=2), run.total(), run.counts)
    yield from (segiou.explain(run), segiou.find_suspects(run))
    yield analysis.explain_difference(run.counts, run.counts, run.class_names)
    for make in (
        lambda: segiou.compare(run, run, **FEW),
        lambda: segiou.compare(run, run, **FEW).table(),
        lambda: segiou.rank([run, run, run], draws=20),
        lambda: segiou.slices(run, by=table),
        lambda: segiou.bootstrap(run, resamples=20),
        *([lambda: run.sample_sizes(0.05)] if find_spec("segiou.planning") else []),
        lambda: analysis.influence(run.counts),
        lambda: analysis.compare_scores(run, run, metrics=["iou", "mean_iou"], **FEW),
    ):
        try:
            yield make()
        except ValueError as error:
            assert len(run.ids) < 2 or "no image has a score" in str(error), error


def of_state(state: str) -> Iterator[Any]:
    number, truth, pred = STATES[state]
    yield from findings(segiou.score(truth, pred, labels=number, ignore=255, name="model"))


def of_accumulator(kind: str) -> Iterator[Any]:
    """Empty, of one image, merged with an empty one, and of all images; and their reports."""
    make = KINDS[kind].make
    whole = counted(kind, range(NUMBER))
    for found in (make(), counted(kind, [0]), make().merge(whole), whole):
        yield found
        yield from (found.report(),) if hasattr(found, "report") else ()


def of_others(folder: Any) -> Iterator[Any]:
    """Objects to which neither runs nor accumulators lead, without and with contents."""
    tally = segiou.ConfusionMatrix(3).update(TRUTH, PRED).report().tally
    yield from (at_prevalence(tally, [0.2, 0.3, 0.5]), prevalence_curve(tally, 1))
    yield from (ObjectOptions(), Tolerance.of(2))
    if find_spec("segiou.explorer") is not None:
        yield from (segiou.explore(), segiou.explore(ONE[0], ONE[0]))
    if find_spec("segiou.checks") is not None:
        from segiou.checks import check_measure

        yield check_measure(ObjectOptions())
    yield BoundaryCounts.zeros(3, BoundaryOptions())
    yield from (Parts.joined({}, []), Parts.joined({"sizes": Field((2,))}, []))
    for cases in ([(TRUTH, PRED), (ONE, ONE)], [(ONE, ONE)] * 2):
        votes = [Votes.of(case)[0] for case in cases]
        yield rater_agreement(votes, ["x", "y"], "ab", "012")
    np.save(folder / "a.npy", TRUTH[0])
    yield inspect_folder(folder)
    if find_spec("segiou.maps") is not None:
        from segiou.maps import map_accuracy

        yield map_accuracy([[9, 1], [0, 0]], {"field": 2.0, "wood": 1.0})


@cache
def shown(make: Any, *arguments: Any) -> set[type]:
    """Show objects and what they consist of; their classes."""
    objects = [part for one in make(*arguments) for part in parts_of(one)]
    for one in objects:
        show(one)
    return {*map(type, objects)}


@pytest.mark.gate
@pytest.mark.parametrize("state", STATES)
def test_runs_and_findings(state):
    shown(of_state, state)


@pytest.mark.few(3)
@pytest.mark.parametrize("kind", KINDS)
def test_accumulators(kind):
    shown(of_accumulator, kind)


def public_classes() -> set[type]:
    """The classes that packages export, without hooks, whose frameworks may be absent."""
    names = [one.name for one in pkgutil.walk_packages(segiou.__path__, "segiou.") if one.ispkg]
    packages = [importlib.import_module(name) for name in names if "segiou.hooks" not in name]
    public = (getattr(one, name) for one in packages for name in getattr(one, "__all__", ()))
    return {one for one in public if inspect.isclass(one)}


def is_written_here(method: Any) -> bool:
    """Whether segiou has the code of a method, which dataclasses and NumPy do not generate."""
    return segiou.__path__[0] in getattr(getattr(method, "__code__", None), "co_filename", "")


@pytest.mark.gate
def test_every_class_with_a_representation_of_its_own(tmp_path):
    seen = set().union(
        *(shown(of_state, state) for state in STATES),
        *(shown(of_accumulator, kind) for kind in KINDS),
        shown(of_others, tmp_path),
    )
    own = {
        one.__name__
        for one in public_classes()
        if any(is_written_here(getattr(one, method, None)) for method in METHODS)
    }
    assert own - {one.__name__ for one in seen} == set()


@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize(
    "columns", [[], [Column("class", [], 2, is_text=True), Column("IoU", [], 1)]]
)
def test_tables_without_cells_are_left_out(columns, split):
    parts = [Line("before"), Table(columns, ["a note"], split=split)]
    assert notebook_of(parts, "x").count("<") == 6
    assert rendered(parts, "markdown") == "before\n\na note\n"
    assert rendered(parts, "table", width=80).split() == ["before", "a", "note"]
    assert rendered(parts, "latex").splitlines()[1:] == ["% before", "% a note"]
