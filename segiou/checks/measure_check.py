"""A check of a measure for its author: the laws of the contract, and every output."""

from __future__ import annotations

import json
import pickle
import random
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou._support.arguments import check_kind
from segiou._support.text import Json, plural
from segiou.accumulators.confusion import ConfusionMatrix
from segiou.analysis.comparison.compare_runs import compare
from segiou.labels.class_options import ClassOptions
from segiou.labels.label_set import LabelSet
from segiou.masks.formats.georeference import Raster
from segiou.measures.guard import MeasureError, is_own
from segiou.measures.mask_pair import MaskPair, Masks
from segiou.measures.measure import Measure
from segiou.measures.parts import Parts
from segiou.measures.plan import Plan
from segiou.measures.registry import check_key, check_scores
from segiou.measures.score import Score
from segiou.runs.run import Run
from segiou.scoring.score_arrays import score as score_arrays

_CLASSES, _IGNORE = 4, 255
#: Slower than this many times the confusion matrix, a measure dominates the time of a run.
_SLOW = 5000.0
#: Pixels of 100 m².
_RASTER = Raster(affine=(10.0, 0.0, 0.0, 0.0, -10.0, 0.0), crs="EPSG:32632", metres=1.0)
#: Bytes that are forged.
_FORGED = 200


@dataclass(frozen=True)
class MeasureCheck:
    """Result of :func:`check_measure`.

    Attributes
    ----------
    key : str
        Key of the measure.
    findings : tuple of str
        What to change, one sentence per fault; empty if there are none.
    checks : int
        Number of checks.
    slowdown : float
        Time of counting an image, as a multiple of the time of its confusion matrix.
    """

    key: str
    findings: tuple[str, ...]
    checks: int
    slowdown: float

    @property
    def passed(self) -> bool:
        """Whether there are no findings."""
        return not self.findings

    def to_dict(self) -> dict[str, Json]:
        """Plain values."""
        findings: list[Json] = [*self.findings]
        about: dict[str, Json] = {"key": self.key, "passed": self.passed, "findings": findings}
        return {**about, "checks": self.checks, "slowdown": self.slowdown}

    def __str__(self) -> str:
        state = "passed" if self.passed else f"failed: {plural(len(self.findings), 'finding')}"
        head = f"measure {self.key!r}: {self.checks} checks, {state}"
        factor = f"{self.slowdown:.{0 if self.slowdown > 10 else 1}f}"
        speed = f"counting takes {factor} times as long as the confusion matrix"
        return "\n".join([f"{head}; {speed}", *(f"- {text}" for text in self.findings)])


def check_measure(measure: Measure) -> MeasureCheck:
    """Check that a measure follows the contract, and that it reaches every output.

    Small label images are counted, merged, saved, damaged and reported; every fault is
    described with what to change. The measure need not be installed.

    Parameters
    ----------
    measure : Measure
        The measure with some options.

    Returns
    -------
    MeasureCheck
        Print it, or test that it ``passed``.

    Raises
    ------
    TypeError
        If it is not a measure.

    Examples
    --------
    >>> from segiou.measures.boundary import BoundaryOptions
    >>> check_measure(BoundaryOptions()).passed
    True
    """
    check_kind("measure", measure, Measure, "a measure, such as MyMeasure()")
    subject = _Subject(measure)
    findings: dict[str, None] = {}
    for check in _CHECKS:
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            try:
                findings |= dict.fromkeys(check(subject))
            except Exception as error:  # noqa: BLE001 - a measure may raise anything
                cause = error.__cause__ or error
                advice = "; divide where defined, else return NaN"
                advice = advice if isinstance(cause, RuntimeWarning) else ""
                findings[f"{_topic(check)}: {type(error).__name__}: {error}{advice}"] = None
    return MeasureCheck(measure.key, tuple(findings), len(_CHECKS), subject.slowdown)


def _topic(check: Callable[..., Any]) -> str:
    return (check.__doc__ or "").rstrip(".")


def images(number: int = 6, shape: tuple[int, ...] = (24, 30)) -> Iterator[tuple[Any, Any]]:
    """Pairs of label images: classes of random boxes, a class that never occurs, ignored pixels."""
    chance = np.random.default_rng(7)
    for _ in range(number):
        truth = np.zeros(shape, np.uint8)
        for c in (1, 2, 1, 2):
            corner = [int(chance.integers(0, n - 6)) for n in shape]
            truth[tuple(slice(a, a + int(chance.integers(3, 6))) for a in corner)] = c
        pred = np.roll(truth, 1, axis=0)
        truth[(..., slice(0, 2))] = _IGNORE
        yield truth, pred


class _Subject:
    """A measure and its counts of some images."""

    def __init__(self, measure: Measure) -> None:
        self.measure = measure

    @cached_property
    def classes(self) -> ClassOptions:
        return ClassOptions.of(_CLASSES, ignore=_IGNORE)

    @cached_property
    def plan(self) -> Plan:
        return self.plan_for(self.classes)

    def plan_for(self, classes: ClassOptions) -> Plan:
        measure = self.measure.resolved([self.measure], Masks(), "segiou") or self.measure
        return measure.plan(classes, Masks())

    @cached_property
    def pairs(self) -> list[tuple[Any, Any]]:
        return [*images()]

    def pair(self, truth: Any, pred: Any, classes: ClassOptions | None = None) -> MaskPair:
        classes = classes or self.classes
        tally = ConfusionMatrix.from_options(classes).count(truth, pred)
        codes = np.where(pred < _CLASSES, pred, 0)
        scores = np.moveaxis(0.1 + 0.6 * np.eye(_CLASSES)[codes], -1, 0)
        return MaskPair(truth, pred, classes, tally=tally, scores=scores, raster=_RASTER)

    @cached_property
    def parts(self) -> list[Parts]:
        return [self.plan.count(self.pair(*pair)) for pair in self.pairs]

    @cached_property
    def joined(self) -> Parts:
        return Parts.joined(self.plan.layout, self.parts)

    @cached_property
    def run(self) -> Run:
        truth, pred = zip(*self.pairs, strict=True)
        ids = [f"image_{i}" for i in range(len(truth))]
        scores: Any = [self.pair(*pair).scores for pair in self.pairs]
        predictions: Any = scores if self.measure.key == "scores" else list(pred)
        options: dict[str, Any] = {"argmax": 1} if self.measure.key == "scores" else {}
        return score_arrays(
            list(truth),
            predictions,
            labels=_CLASSES,
            ignore=_IGNORE,
            ids=ids,
            measures=[self.measure],
            **options,
        )

    @cached_property
    def slowdown(self) -> float:
        try:
            ((truth, pred),) = images(1, (256, 256))
            pair = self.pair(truth, pred)
            matrix = ConfusionMatrix.from_options(self.classes)
            return _seconds(lambda: self.plan.count(pair)) / _seconds(
                lambda: matrix.count(truth, pred)
            )
        except Exception:  # noqa: BLE001 - reported by the checks
            return float("nan")


def _seconds(work: Callable[[], object]) -> float:
    times = []
    for _ in range(3):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return max(min(times), 1e-6)


def _names(subject: _Subject) -> Iterator[str]:
    """Names and options."""
    kind = type(subject.measure)
    check_key(kind)
    check_scores([subject.plan])
    if vars(kind).get("__annotations__") and "__dataclass_params__" not in vars(kind):
        yield f"decorate {kind.__name__} with @dataclass(frozen=True): options are fixed"
    flag = f"--{kind.key}".replace("_", "-")
    if not is_own(kind) and f"  {flag} " not in kind.options:
        yield f"options must describe {flag}, which asks for the measure"
    if not kind.__doc__:
        yield f"write a docstring of {kind.__name__}; its first line explains the table"
    try:
        kind.of(True)
    except TypeError:
        yield "give every option a default, so that the key alone asks for the measure"


def _kept(subject: _Subject) -> Iterator[str]:
    """Saved options."""
    measure, plan = subject.measure, subject.plan
    if type(measure).from_dict(json.loads(json.dumps(measure.to_dict()))) != measure:
        yield "options must be plain data: from_dict(to_dict()) as JSON gives other options"
    again = type(plan.measure).plan_from(json.loads(json.dumps(plan.to_dict())), subject.classes)
    if again.layout != plan.layout or plan.difference(again):
        yield "plan_from(to_dict()) must give an equal plan; derive everything from the options"


def _sent(subject: _Subject) -> Iterator[str]:
    """Pickling of the plan for workers."""
    _ = subject.plan.scores
    sent = pickle.loads(pickle.dumps(subject.plan))
    if sent != subject.plan or sent.count(subject.pair(*subject.pairs[0])) != subject.parts[0]:
        yield "a pickled plan counts differently; keep all state in measure, classes and masks"


def _counting(subject: _Subject) -> Iterator[str]:
    """Counting."""
    for i, (truth, pred) in enumerate(subject.pairs):
        if subject.plan.count(subject.pair(truth, pred)) != subject.parts[i]:
            yield "count returns other numbers the second time; it must depend on the pair alone"
    several = subject.plan.count_several([subject.pair(*pair) for pair in subject.pairs])
    if several != subject.joined:
        yield "count_several must equal the results of count, in order"


def _ignored(subject: _Subject) -> Iterator[str]:
    """Ignored pixels."""
    truth, pred = subject.pairs[0]
    other = np.where(truth == _IGNORE, 3, pred).astype(np.uint8)
    if subject.plan.count(subject.pair(truth, other)) != subject.parts[0]:
        yield "predictions of ignored pixels change the counts; use pair.indices (-1 there)"


def _values_of_labels(subject: _Subject) -> Iterator[str]:
    """Label values."""
    entries = [{"name": str(c), "values": [10 * c + 5]} for c in range(_CLASSES)]
    labels = LabelSet.from_dict({"name": "tens", "classes": entries})
    classes = ClassOptions.of(labels, ignore=_IGNORE)
    plan = subject.plan_for(classes)
    truth, pred = subject.pairs[0]
    coded: list[Any] = [
        np.where(side == _IGNORE, _IGNORE, 10 * side.astype(int) + 5).astype(np.uint8)
        for side in (truth, pred)
    ]
    scores = subject.pair(truth, pred).scores
    pair = replace(subject.pair(coded[0], coded[1], classes), scores=scores)
    try:
        counted = plan.count(pair)
    except MeasureError:
        raise
    except ValueError:  # it scores other labels only
        return
    if counted != subject.parts[0]:
        yield "label values are taken for class indices; use pair.indices instead of pair.truth"


def _adding(subject: _Subject) -> Iterator[str]:
    """Adding counts of images."""
    parts, joined = subject.parts, subject.joined
    if (parts[0] + parts[1]) + parts[2] != parts[0] + (parts[1] + parts[2]):
        yield "counts depend on how they are grouped"
    for name, score in subject.plan.scores.items():
        whole, split = score.sums(joined), score.sums(joined.total)
        same = np.allclose(np.asarray(whole.sum(0)), np.asarray(split.sum(0)), equal_nan=True)
        if not same:
            yield (
                f"sums of {name!r} do not add up: those of merged counts differ from the sum over "
                "images; return counts, and divide in evaluate"
            )
        if score.median_of is None and not np.isfinite(np.asarray(whole.sum(0))).all():
            yield f"sums of {name!r} must be finite; add 0 for undefined values, and count them"


def _bytes(subject: _Subject) -> Iterator[str]:
    """Encoded counts, valid and corrupt."""
    plan, joined = subject.plan, subject.joined
    if Parts.unpack(plan.layout, joined.pack()) != joined:
        yield "counts change when they are saved"
    chance, packed = random.Random(3), subject.parts[0].pack()[0]
    for part in subject.parts:
        plan.check(part)
    for _ in range(_FORGED):
        data = bytearray(packed)
        data[chance.randrange(len(data))] = chance.randrange(256)
        try:
            unpacked = Parts.unpack(plan.layout, [bytes(data)])
        except ValueError:
            continue
        try:
            plan.check(unpacked)
        except MeasureError as error:
            yield f"check must raise ValueError for impossible counts, not fail: {error}"
            return
        except ValueError:
            continue


def _evaluation(subject: _Subject) -> Iterator[str]:
    """Values of scores."""
    for name, score in subject.plan.scores.items():
        width = 1 + len(score.names)
        sums = np.stack([np.asarray(_dense(score.sums(part)).sum(0)) for part in subject.parts])
        each = np.stack([np.asarray(score.evaluate(row)) for row in sums])
        several = np.asarray(score.evaluate(sums.reshape(2, 3, -1)))
        if several.shape != (2, 3, width) or each.shape != (len(sums), width):
            yield f"evaluate of {name!r} must map (..., F) to (..., {width}); index the last axis"
            continue
        if not np.allclose(several.reshape(each.shape), each, equal_nan=True):
            yield f"evaluate of {name!r} mixes images: rows of sums must not affect each other"
        yield from _values(name, score, np.concatenate([each, [score.values(subject.joined)]]))


def _dense(sums: Any) -> NDArray[Any]:
    return np.asarray(sums.toarray() if hasattr(sums, "toarray") else sums)


def _values(name: str, score: Score, values: NDArray[Any]) -> Iterator[str]:
    known = values[~np.isnan(values)]
    if not score.unit and known.size and (known.min() < -1e-9 or known.max() > 1 + 1e-9):
        yield (
            f"{name!r} has no unit, so it is shown in per cent, but it is {known.max():.4g}; set "
            "unit='number', or the unit of a distance"
        )
    if np.isinf(known).any() and not score.unit:
        yield f"{name!r} is infinite; return NaN if it is undefined"
    if not known.size:
        yield f"{name!r} is NaN for every class of every image"
    if not score.unit and "3" in score.names:
        absent = values[:, 1 + score.names.index("3")]
        if np.isin(absent, (0.0, 1.0)).all():
            yield f"{name!r} of a class that no image has must be NaN, so that means skip it"


def _empty(subject: _Subject) -> Iterator[str]:
    """Images without anything."""
    blank = np.zeros((24, 30), np.uint8)
    for truth in (blank, np.full_like(blank, _IGNORE)):
        part = subject.plan.count(subject.pair(truth, blank))
        subject.plan.check(part)
        for score in subject.plan.scores.values():
            score.values(part)
    nothing = Parts.joined(subject.plan.layout, [])
    for name, score in subject.plan.scores.items():
        if len(score.of_images(nothing)):
            yield f"{name!r} of no images must have no rows"
    subject.plan.columns(nothing)


def _outputs(subject: _Subject) -> Iterator[str]:
    """Reports, pages and tables."""
    report = subject.run.report()
    texts = (str(report), report.to_markdown(), report.to_csv(), report.to_html(run=subject.run))
    json.loads(report.to_json())
    if not all(texts) or not report._repr_html_():
        yield "an output is empty"
    for name in subject.plan.scores:
        value = report.score(name)
        if not (value is None or isinstance(value, float)):
            yield f"{name!r} of the report is {value!r}"
    columns = {column.partition(":")[0] for column in subject.run.rows()[0]}
    if columns.isdisjoint(subject.plan.scores):
        yield "the table of images has no column of the measure"


def _statistics(subject: _Subject) -> Iterator[str]:
    """Intervals and comparisons."""
    for name in subject.plan.scores:
        # Few resamples: whether they work is asked, not how wide intervals are.
        subject.run.intervals(name, groups="none", resamples=20)
        compare(subject.run, subject.run, metric=name, names=("a", "b"), groups="none")
    yield from ()


def _files(subject: _Subject) -> Iterator[str]:
    """Run files."""
    with tempfile.TemporaryDirectory() as folder:
        numbers = count()
        halves = [subject.run.select(subject.run.ids[i::2]) for i in (0, 1)]
        paths = [half.save(Path(folder) / f"{next(numbers)}.sqlite") for half in halves]
        opened = [Run.open(path, measures=[subject.measure]) for path in paths]
        merged = opened[0].merge(opened[1])
        for plan in subject.run.plans:
            if merged.parts(plan.key) != subject.run.parts(plan.key):
                yield "counts change when run files are merged"


def _speed(subject: _Subject) -> Iterator[str]:
    """Speed."""
    if subject.slowdown > _SLOW:
        yield (
            f"counting takes {subject.slowdown:.0f} times as long as the confusion matrix; avoid "
            "loops over pixels, and whole images per class"
        )


_CHECKS: tuple[Callable[[_Subject], Iterator[str]], ...] = (
    *(_names, _kept, _sent, _counting, _ignored, _values_of_labels, _adding, _bytes),
    *(_evaluation, _empty, _outputs, _statistics, _files, _speed),
)
