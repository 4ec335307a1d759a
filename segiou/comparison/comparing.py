"""Compare models that were scored on the same images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from segiou._arguments import check_integer
from segiou.boundary import band_iou
from segiou.comparison.bands import paired_bands
from segiou.comparison.findings import Comparison, Difference, Mover, PairComparison, Ranked
from segiou.comparison.pairing import Paired, PairedRun, paired
from segiou.comparison.permutation import holm, permutation_p
from segiou.comparison.power import power
from segiou.imbalance import ImbalanceDifference, explain_difference
from segiou.metrics import Floats
from segiou.metrics._ratio import ratio
from segiou.protocols import Protocol, load_protocol
from segiou.uncertainty.intervals import (
    Method,
    check_method,
    interval,
    limits_of,
    percentile_limits,
)
from segiou.uncertainty.resampling import resampled
from segiou.uncertainty.scores import Aggregate, Metric, Statistic, statistic
from segiou.uncertainty.units import Groups, Units, groups_of, units_of

__all__ = ["compare"]


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
    :func:`segiou.uncertainty.bootstrap`), its paired permutation p
    (:func:`permutation_p`), and Holm's adjustment over the classes
    (:func:`holm`); the images without which the difference would change most;
    and how many images would show it (:func:`power`). Of several models, the
    share of the resamples in which each is best.

    Parameters
    ----------
    run_a, run_b, *more : Run
        On the same images, in any order.
    metric, aggregate
        See :func:`segiou.uncertainty.statistic`; or ``"boundary_iou"``, at the
        first width that was measured. A larger score is taken to be
        the better one.
    protocol : Protocol or str, optional
        Rule of the mean; that of the runs by default.
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
