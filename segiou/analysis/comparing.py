"""Compare models on the same images: paired intervals, paired tests, and who is best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations

import numpy as np

from segiou._support.arguments import check_integer
from segiou.analysis.bootstrapping import check_method, intervals_of, percentile_limits, resampled
from segiou.analysis.comparison import (
    Comparison,
    Difference,
    InfluentialImage,
    PairComparison,
    Ranked,
)
from segiou.analysis.design import BlockLength, design_of
from segiou.analysis.imbalance_difference import ImbalanceDifference, explain_difference
from segiou.analysis.intervals import Method
from segiou.analysis.paired_runs import PairedRuns, paired_runs, with_band_counts
from segiou.analysis.scored_images import ScoredRun
from segiou.analysis.significance import holm, permutation_p, power
from segiou.analysis.statistics import Aggregate, Metric, Statistic, image_scores, statistic
from segiou.analysis.units import Groups, Units
from segiou.boundary.measures import band_iou
from segiou.metrics.protocols import Protocol, load_protocol
from segiou.metrics.ratio import Floats, ratio


def compare(
    run_a: ScoredRun,
    run_b: ScoredRun,
    *more: ScoredRun,
    metric: Metric = "iou",
    aggregate: Aggregate | None = None,
    protocol: Protocol | str | None = None,
    groups: Groups | None = None,
    blocks: BlockLength | None = None,
    resamples: int = 10_000,
    permutations: int = 10_000,
    seed: int = 0,
    level: float = 0.95,
    method: Method = "percentile",
    names: Sequence[str] | None = None,
    influential: int = 5,
) -> Comparison:
    """Compare two or more models on the same images.

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
        ``run_a.ids``. ``"none"`` states that the images are independent.
    blocks : "auto" or float, optional
        Draw and swap blocks of neighbouring images along each sequence, see
        :func:`segiou.analysis.bootstrapping.bootstrap`; ``"auto"`` takes the
        length from the differences of the models on each image.
    resamples, permutations, seed : int
    level : float
        Of the intervals; 1 − level is what p is held against.
    method : {"percentile", "bca"}
    names : sequence of str, optional
        What to call the models; the runs' names by default.
    influential : int
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
    runs = (run_a, run_b, *more)
    for run in runs:
        if not (hasattr(run, "counts") and hasattr(run, "ids")):
            hint = "; open a run file with segiou.Run.open" if isinstance(run, str) else ""
            msg = f"compare takes runs, not {type(run).__name__}{hint}"
            raise TypeError(msg)
    check_integer("resamples", resamples, 2)
    check_integer("permutations", permutations, 1)
    check_integer("seed", seed, 0)
    check_integer("influential", influential, 0)
    check_method(method, level)
    same = paired_runs(runs, names, None if protocol is None else load_protocol(protocol))
    scored, of_counts = same, metric
    if metric == "boundary_iou":
        scored, of_counts = with_band_counts(same, runs), band_iou
    design = design_of(
        len(same.ids), same.ids, groups, blocks, partial(_differences_alone, scored, of_counts)
    )
    scores = _statistics(scored, of_counts, aggregate, design.units)
    alone = _statistics(scored, of_counts, aggregate, design.images)
    resampling = _Resampling(
        same=same,
        scores=scores,
        alone=alone,
        values=resampled(alone if design.blocks else scores, resamples, seed, design.blocks),
        level=level,
        method=method,
        permutations=permutations,
        seed=seed,
        influential=influential,
    )
    return Comparison(
        metric=scores[0].metric,
        aggregate=scores[0].aggregate,
        protocol=scores[0].protocol,
        names=same.names,
        images=len(same.ids),
        unit=design.units.kind,
        units=len(design.units),
        level=level,
        method=method,
        resamples=resamples,
        seed=seed,
        ranking=resampling.ranking(),
        pairs=resampling.pairs(),
        dependence=design.dependence,
        block_length=None if design.blocks is None else design.blocks.length,
    )


def _differences_alone(runs: PairedRuns, metric: Metric) -> list[Floats]:
    """How the models of every pair differ on each image, (N,)."""
    scores = [image_scores(c, metric, runs.include, runs.protocol) for c in runs.counts]
    return [b - a for a, b in combinations(scores, 2)]


def _statistics(
    runs: PairedRuns, metric: Metric, aggregate: Aggregate | None, units: Units
) -> tuple[Statistic, ...]:
    return tuple(
        statistic(
            counts,
            metric,
            units=units,
            class_names=runs.class_names,
            include=runs.include,
            protocol=runs.protocol,
            aggregate=aggregate,
        )
        for counts in runs.counts
    )


@dataclass(frozen=True, eq=False)
class _Resampling:
    """Scores of all models over the units, over single images, and resampled (B, 1 + C)."""

    same: PairedRuns
    scores: tuple[Statistic, ...]
    alone: tuple[Statistic, ...]
    values: list[Floats]
    level: float
    method: Method
    permutations: int
    seed: int
    influential: int

    def ranking(self) -> tuple[Ranked, ...]:
        """Models by score, with the share of resamples in which each is best."""
        resamples = np.stack([values[:, 0] for values in self.values])
        resamples = resamples[:, ~np.isnan(resamples).any(0)]
        top = resamples == resamples.max(0, initial=-np.inf)
        best = ratio((top / np.maximum(top.sum(0), 1)).sum(1), resamples.shape[1])
        columns = zip(self.same.names, self.scores, self.values, best.tolist(), strict=True)
        few, nan = self.scores[0].units.few_groups, float("nan")
        found = []
        for name, score, values, share in columns:
            low, high = percentile_limits(values[:, 0], self.level)
            ends = (nan, nan, nan) if few else (low, high, share)
            found.append(Ranked(name, float(score.values[0]), *ends))
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
        for_a, for_b = _influential_images(self.alone[i], self.alone[j], self.influential)
        undefined = np.isnan([a.values[1:], b.values[1:]])
        one_sided = (undefined[0] != undefined[1]) & self.same.include[: undefined.shape[1]]
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
            one_sided=tuple(a.names[1 + c] for c in np.flatnonzero(one_sided).tolist()),
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
        spreads = intervals_of(
            a, values, points, lambda: b.left_out - a.left_out, self.level, self.method
        )
        adjusted = np.concatenate([p[:1], holm(p[1:])])
        columns = zip(spreads, a.values, b.values, p, adjusted, strict=True)
        return [
            Difference(
                name=spread.name,
                a=float(score_a),
                b=float(score_b),
                delta=spread.value,
                low=spread.low,
                high=spread.high,
                standard_error=spread.standard_error,
                p=float(p_own),
                p_holm=float(p_holm),
                units=spread.units,
                undefined_share=spread.undefined_share,
            )
            for spread, score_a, score_b, p_own, p_holm in columns
        ]


def _influential_images(
    a: Statistic, b: Statistic, number: int
) -> tuple[tuple[InfluentialImage, ...], tuple[InfluentialImage, ...]]:
    """Images without which the difference would change most, towards each model."""
    without = b.left_out[:, 0] - a.left_out[:, 0]
    effect = b.values[0] - a.values[0] - without
    columns = zip(
        a.units.names,
        effect.tolist(),
        a.alone.tolist(),
        b.alone.tolist(),
        strict=True,
    )
    images = [InfluentialImage(*column) for column in columns]
    order = np.argsort(effect, kind="stable")
    order = order[~np.isnan(effect[order])]
    for_a = [images[k] for k in order[:number] if effect[k] < 0]
    for_b = [images[k] for k in order[::-1][:number] if effect[k] > 0]
    return tuple(for_a), tuple(for_b)
