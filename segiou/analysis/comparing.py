"""Runs by their counts at boundaries, for comparisons of Boundary IoU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Protocol as Structure

import numpy as np
from numpy.typing import NDArray

from segiou._support.arguments import check_integer, read_several
from segiou.analysis.bootstrapping import (
    Method,
    check_method,
    interval,
    limits_of,
    percentile_limits,
    resampled,
)
from segiou.analysis.comparison import Comparison, Difference, Mover, PairComparison, Ranked
from segiou.analysis.imbalance_difference import ImbalanceDifference, explain_difference
from segiou.analysis.significance import holm, permutation_p, power
from segiou.analysis.statistics import Aggregate, Metric, Statistic, statistic
from segiou.analysis.units import Groups, Units, groups_of, units_of
from segiou.boundary.measures import band_iou
from segiou.counting.counts import Counts
from segiou.metrics.protocols import Protocol, load_protocol
from segiou.metrics.ratio import Floats, ratio

__all__ = [
    "DifferentImagesError",
    "Paired",
    "PairedRun",
    "bands_of",
    "compare",
    "paired",
    "paired_bands",
]


@dataclass(frozen=True, eq=False)
class _Bands:
    name: str
    ids: tuple[str, ...]
    counts: Counts
    class_names: tuple[str, ...]
    include: NDArray[np.bool_]
    protocol: Protocol


def paired_bands(runs: Sequence[PairedRun], names: Sequence[str], protocol: Protocol) -> Paired:
    """Bring the band counts of runs, at their first width, to the same images.

    Raises
    ------
    ValueError
        If a run has none, or they are of different bands.
    """
    bands = []
    for run, name in zip(runs, names, strict=True):
        counts = bands_of(run, name)
        if (found := _band(run)) != (first := _band(runs[0])):
            msg = (
                f"Boundary IoU is measured at {first} in {names[0]} and at {found} in {name}; "
                "score both with the same options"
            )
            raise ValueError(msg)
        parts = (run.class_names, protocol.include_of(run), run.protocol)
        bands.append(_Bands(run.name, run.ids, counts, *parts))
    return paired(bands, names=names, protocol=protocol)


def _band(run: Any) -> str:
    options = run.boundary_options
    border = "" if options.band_border else ", the image border no boundary"
    return f"{options.widths[0]}{border}"


def bands_of(run: Any, name: str) -> Counts:
    """Counts of Boundary IoU of a run, (N, C).

    Raises
    ------
    ValueError
        If it has none.
    """
    found: Counts | None = getattr(run, "band_counts", None)
    if found is None:
        msg = f"{name} has no boundary counts; score it again with boundary=True (--boundary)"
        raise ValueError(msg)
    return found


class PairedRun(Structure):
    """What a comparison needs of a run; :class:`segiou.Run` has it."""

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def ids(self) -> tuple[str, ...]: ...  # noqa: D102
    @property
    def counts(self) -> Counts: ...  # noqa: D102
    @property
    def class_names(self) -> tuple[str, ...]: ...  # noqa: D102
    @property
    def include(self) -> NDArray[np.bool_]: ...  # noqa: D102
    @property
    def protocol(self) -> Protocol: ...  # noqa: D102


class DifferentImagesError(ValueError):
    """Runs that were not scored on the same images.

    Attributes
    ----------
    only : mapping of str to tuple of str
        Run name → ids that it has and another one has not.
    """

    def __init__(self, only: Mapping[str, Sequence[str]]) -> None:
        self.only = {name: tuple(ids) for name, ids in only.items()}
        shown = "; ".join(f"only in {name}: {_some(ids)}" for name, ids in self.only.items() if ids)
        super().__init__(
            f"the runs were scored on different images, and a paired comparison needs the same: "
            f"{shown}; score all models on the same images"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return (DifferentImagesError, (self.only,))


@dataclass(frozen=True, eq=False)
class Paired:
    """Runs on the same images, in the order of the first.

    Attributes
    ----------
    names, ids, class_names : tuple of str
    counts : tuple of Counts of shape (N, C)
        One per run.
    include : ndarray of bool, shape (C,)
    protocol : Protocol
    """

    names: tuple[str, ...]
    ids: tuple[str, ...]
    class_names: tuple[str, ...]
    counts: tuple[Counts, ...]
    include: NDArray[np.bool_]
    protocol: Protocol


def paired(
    runs: Sequence[PairedRun],
    *,
    names: Sequence[str] | None = None,
    protocol: Protocol | None = None,
) -> Paired:
    """Bring runs to the same images, and refuse what cannot be compared.

    Raises
    ------
    DifferentImagesError
        If the runs have different images; they are named.
    ValueError
        If ids are not unique, classes, excluded classes or protocols differ,
        or an image has other truth pixels in one run than in another.
    """
    called = _names(runs, names)
    for name, run in zip(called, runs, strict=True):
        _check_unique(name, run.ids)
    first = runs[0]
    for name, run in zip(called[1:], runs[1:], strict=True):
        _check_classes(first, run, called[0], name)
        if protocol is None and run.protocol != first.protocol:
            msg = (
                f"{called[0]} was scored by protocol {first.protocol.name!r} and {name} by "
                f"{run.protocol.name!r}; say which to compare by: protocol=..."
            )
            raise ValueError(msg)
    counts = _same_order(runs, called)
    for name, other in zip(called[1:], counts[1:], strict=True):
        _check_truth(first, counts[0], other, called[0], name)
    return Paired(
        called,
        tuple(first.ids),
        tuple(first.class_names),
        counts,
        (protocol or first.protocol).include_of(first),
        protocol or first.protocol,
    )


def _some(ids: Sequence[str]) -> str:
    more = f" and {len(ids) - 3} more" if len(ids) > 3 else ""
    return f"{', '.join(ids[:3])}{more}"


def _names(runs: Sequence[PairedRun], names: Sequence[str] | None) -> tuple[str, ...]:
    letters = [chr(ord("A") + i) if i < 26 else f"run {i + 1}" for i in range(len(runs))]
    if names is not None:
        given = read_several("names", names, "a sequence of names, one a run")
        if len(given) != len(runs) or len(set(given)) != len(runs):
            msg = f"names must be {len(runs)} different ones, one per run, got {given}"
            raise ValueError(msg)
        return tuple(given)
    own = [run.name or letter for run, letter in zip(runs, letters, strict=True)]
    return tuple(
        f"{name} ({letter})" if own.count(name) > 1 else name
        for name, letter in zip(own, letters, strict=True)
    )


def _check_unique(name: str, ids: Sequence[str]) -> None:
    if len(set(ids)) < len(ids):
        twice = [i for i in dict.fromkeys(ids) if list(ids).count(i) > 1]
        msg = f"{name} has several images of one id: {_some(twice)}; ids tell images apart"
        raise ValueError(msg)


def _check_classes(a: PairedRun, b: PairedRun, name_a: str, name_b: str) -> None:
    if tuple(a.class_names) != tuple(b.class_names):
        only_a = [c for c in a.class_names if c not in b.class_names]
        only_b = [c for c in b.class_names if c not in a.class_names]
        what = "; ".join(
            f"only in {name}: {_some(only)}"
            for name, only in ((name_a, only_a), (name_b, only_b))
            if only
        )
        msg = f"{name_a} and {name_b} have different classes: {what or 'the order differs'}"
        raise ValueError(msg)
    differ = np.flatnonzero(np.asarray(a.include) != np.asarray(b.include)).tolist()
    if differ:
        msg = (
            f"{name_a} and {name_b} leave different classes out of their means: "
            f"{_some([a.class_names[c] for c in differ])}; exclude the same from both"
        )
        raise ValueError(msg)


def _same_order(runs: Sequence[PairedRun], names: Sequence[str]) -> tuple[Counts, ...]:
    common = set(runs[0].ids).intersection(*(run.ids for run in runs[1:]))
    only = {
        name: [i for i in run.ids if i not in common] for name, run in zip(names, runs, strict=True)
    }
    if any(only.values()):
        raise DifferentImagesError(only)
    found = [runs[0].counts]
    for run in runs[1:]:
        place = {name: i for i, name in enumerate(run.ids)}
        found.append(run.counts[np.array([place[name] for name in runs[0].ids], dtype=np.intp)])
    return tuple(found)


def _check_truth(first: PairedRun, a: Counts, b: Counts, name_a: str, name_b: str) -> None:
    rows = np.flatnonzero((a.truth != b.truth).any(-1))
    if not len(rows):
        return
    i = int(rows[0])
    c = int(np.flatnonzero(a.truth[i] != b.truth[i])[0])
    more = f", and {len(rows) - 1} more images" if len(rows) > 1 else ""
    msg = (
        f"{name_a} and {name_b} were scored against different truths: image {first.ids[i]} has "
        f"{a.truth[i, c]} pixels of {first.class_names[c]} in one and {b.truth[i, c]} in the "
        f"other{more}; score both against the same masks with the same ignored values"
    )
    raise ValueError(msg)


def compare(
    run_a: PairedRun,
    run_b: PairedRun,
    *more: PairedRun,
    metric: Metric = "iou",
    aggregate: Aggregate | None = None,
    protocol: Protocol | str | None = None,
    groups: Groups | None = None,
    resamples: int = 10_000,
    permutations: int = 10_000,
    seed: int = 0,
    level: float = 0.95,
    method: Method = "percentile",
    names: Sequence[str] | None = None,
    movers: int = 5,
) -> Comparison:
    """Compare two or more models, image by image.

    For every pair: the difference of the score and of each class, second minus
    first, with its bootstrap interval (both models on the same resamples,
    :func:`segiou.analysis.bootstrapping.bootstrap`), its paired permutation p
    (:func:`permutation_p`), and Holm's adjustment over the classes
    (:func:`holm`); the images without which the difference would change most;
    and how many images would show it (:func:`power`). Of several models, the
    share of the resamples in which each is best.

    Parameters
    ----------
    run_a, run_b, *more : Run
        On the same images, in any order.
    metric, aggregate
        See :func:`segiou.analysis.statistics.statistic`; or ``"boundary_iou"``, at the
        first width that was measured. A larger score is taken to be
        the better one.
    protocol : Protocol or str, optional
        Protocol of the mean; that of the runs by default.
    groups : str, mapping, callable or sequence, optional
        Images that belong together: a regular expression for their ids, a
        mapping or function from id to group, or the groups in the order of
        ``run_a.ids``.
    resamples, permutations, seed : int
    level : float
        Of the intervals; 1 − level is what p is held against.
    method : {"percentile", "bca"}
    names : sequence of str, optional
        What to call the models; the runs' names by default.
    movers : int
        Images to list on either side.

    Returns
    -------
    Comparison

    Raises
    ------
    DifferentImagesError
        If the runs have different images; they are named.
    TypeError, ValueError
        If the runs cannot be compared or an option is out of range.

    References
    ----------
    Sources of the parts are with the functions named. That pixels and frames
    are no independent cases: A. Reinke et al., Nature Methods 21 (2024).

    Examples
    --------
    >>> from segiou import score
    >>> truths = [[0, 0, 1, 1], [0, 1, 1, 1], [0, 0, 0, 1], [0, 1, 0, 1]]
    >>> worse = [[0, 0, 0, 0], [0, 0, 1, 1], [0, 0, 0, 0], [0, 0, 0, 1]]
    >>> runs = [score([[t] for t in truths], [[t] for t in p], labels=2) for p in (worse, truths)]
    >>> found = compare(*runs, names=("old", "new"))
    >>> pair = found.pairs[0]
    >>> round(pair.overall.delta, 4), pair.overall.p, pair.exact
    (0.5048, 0.125, True)
    """
    for run in (run_a, run_b, *more):
        if not (hasattr(run, "counts") and hasattr(run, "ids")):
            hint = "; open a run file with segiou.Run.open" if isinstance(run, str) else ""
            msg = f"compare takes runs, not {type(run).__name__}{hint}"
            raise TypeError(msg)
    check_integer("resamples", resamples, 2)
    check_integer("permutations", permutations, 1)
    check_integer("seed", seed, 0)
    check_integer("movers", movers, 0)
    check_method(method, level)
    rule = None if protocol is None else load_protocol(protocol)
    runs = (run_a, run_b, *more)
    same = paired(runs, names=names, protocol=rule)
    units = units_of(len(same.ids), groups_of(same.ids, groups), same.ids)
    scored = same
    if isinstance(metric, str) and metric == "boundary_iou":
        scored, metric = paired_bands(runs, same.names, same.protocol), band_iou
    scores = _statistics(scored, metric, aggregate, units)
    work = _Work(
        same=same,
        scores=scores,
        alone=_statistics(scored, metric, aggregate, units_of(len(same.ids), None, same.ids)),
        values=resampled(scores, resamples, seed),
        level=level,
        method=method,
        permutations=permutations,
        seed=seed,
        movers=movers,
    )
    return Comparison(
        metric=scores[0].metric,
        aggregate=scores[0].aggregate,
        protocol=scores[0].protocol,
        names=same.names,
        images=len(same.ids),
        unit=units.kind,
        units=len(units),
        level=level,
        method=method,
        resamples=resamples,
        seed=seed,
        ranking=work.ranking(),
        pairs=work.pairs(),
    )


def _statistics(
    same: Paired, metric: Metric, aggregate: Aggregate | None, units: Units
) -> tuple[Statistic, ...]:
    return tuple(
        statistic(
            counts,
            metric,
            units=units,
            class_names=same.class_names,
            include=same.include,
            protocol=same.protocol,
            aggregate=aggregate,
        )
        for counts in same.counts
    )


@dataclass(frozen=True, eq=False)
class _Work:
    """Resampled scores of all models, and what is made of them.

    ``scores`` are over the units that are resampled, ``alone`` over the images,
    ``values`` are the resampled scores, (B, 1 + C) per model.
    """

    same: Paired
    scores: tuple[Statistic, ...]
    alone: tuple[Statistic, ...]
    values: list[Floats]
    level: float
    method: Method
    permutations: int
    seed: int
    movers: int

    def ranking(self) -> tuple[Ranked, ...]:
        """Models by score, with the share of resamples in which each is best."""
        resamples = np.stack([values[:, 0] for values in self.values])
        resamples = resamples[:, ~np.isnan(resamples).any(0)]
        top = resamples == resamples.max(0, initial=-np.inf)
        best = ratio((top / np.maximum(top.sum(0), 1)).sum(1), resamples.shape[1])
        found = [
            Ranked(
                name,
                float(score.values[0]),
                *percentile_limits(values[:, 0], self.level),
                float(share),
            )
            for name, score, values, share in zip(
                self.same.names, self.scores, self.values, best, strict=True
            )
        ]
        return tuple(sorted(found, key=lambda r: (np.isnan(r.value), -r.value)))

    def pairs(self) -> tuple[PairComparison, ...]:
        """Compare every pair; the p of the scores are adjusted over the pairs."""
        found = [self._pair(i, j) for i, j in combinations(range(len(self.same.names)), 2)]
        adjusted = holm(np.array([pair.overall.p for pair in found])).tolist()
        return tuple(
            replace(pair, overall=replace(pair.overall, p_holm=p))
            for pair, p in zip(found, adjusted, strict=True)
        )

    def _pair(self, i: int, j: int) -> PairComparison:
        a, b = self.scores[i], self.scores[j]
        permuted = permutation_p(a, b, self.permutations, self.seed)
        overall, *classes = self._differences(i, j, permuted.p)
        for_a, for_b = self._movers(self.alone[i], self.alone[j])
        defined = ~np.isnan(np.stack([a.values, b.values])[:, 1:])
        one_sided = np.flatnonzero(
            (defined[0] != defined[1]) & self.same.include[: defined.shape[1]]
        )
        return PairComparison(
            a=self.same.names[i],
            b=self.same.names[j],
            overall=overall,
            classes=tuple(classes),
            permutations=permuted.permutations,
            exact=permuted.exact,
            for_a=for_a,
            for_b=for_b,
            power=power(a, b, level=self.level, seed=self.seed),
            one_sided=tuple(a.names[1 + c] for c in one_sided.tolist()),
            imbalance=self._imbalance(i, j),
        )

    def _imbalance(self, i: int, j: int) -> ImbalanceDifference:
        same = self.same
        return explain_difference(
            same.counts[i],
            same.counts[j],
            same.class_names,
            names=(same.names[i], same.names[j]),
            include=same.include,
            protocol=same.protocol,
        )

    def _differences(self, i: int, j: int, p: Floats) -> list[Difference]:
        """The score and every class of one pair."""
        a, b = self.scores[i], self.scores[j]
        values, points = self.values[j] - self.values[i], b.values - a.values
        limits = limits_of(values, points, lambda: b.left_out - a.left_out, self.level, self.method)
        adjusted = np.concatenate([p[:1], holm(p[1:])])
        found = []
        for k, name in enumerate(a.names):
            spread = interval(name, float(points[k]), values[:, k], limits[k], int(a.seen[k]))
            found.append(
                Difference(
                    name=name,
                    a=float(a.values[k]),
                    b=float(b.values[k]),
                    delta=spread.value,
                    low=spread.low,
                    high=spread.high,
                    standard_error=spread.standard_error,
                    p=float(p[k]),
                    p_holm=float(adjusted[k]),
                    units=spread.units,
                    vanished=spread.vanished,
                )
            )
        return found

    def _movers(self, a: Statistic, b: Statistic) -> tuple[tuple[Mover, ...], tuple[Mover, ...]]:
        """Images without which the difference would change most, either way."""
        without = b.left_out[:, 0] - a.left_out[:, 0]
        effect = b.values[0] - a.values[0] - without
        single_a, single_b = a.evaluate(a.sums)[:, 0], b.evaluate(b.sums)[:, 0]
        order = np.argsort(effect, kind="stable")
        order = order[~np.isnan(effect[order])]

        def mover(k: int) -> Mover:
            return Mover(a.units.names[k], float(effect[k]), float(single_a[k]), float(single_b[k]))

        for_a = tuple(mover(k) for k in order[: self.movers].tolist() if effect[k] < 0)
        backwards = order[::-1][: self.movers].tolist()
        return for_a, tuple(mover(k) for k in backwards if effect[k] > 0)
