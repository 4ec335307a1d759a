"""Compare models on the same images: paired intervals, paired tests, and who is best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou._support.arguments import check_integer, read_several
from segiou.analysis.bootstrapping import (
    Method,
    check_method,
    intervals_of,
    percentile_limits,
    resampled,
)
from segiou.analysis.comparison import (
    Comparison,
    Difference,
    InfluentialImage,
    PairComparison,
    Ranked,
)
from segiou.analysis.dependence import BlockLength, design_of
from segiou.analysis.imbalance import explain_difference
from segiou.analysis.significance import holm, permutation_p, power
from segiou.analysis.statistics import (
    MEASURED,
    Aggregate,
    Named,
    ScoredImages,
    Statistic,
    measured_counts,
)
from segiou.analysis.units import CountParts, Groups, Metric, ScoredRun, some_of
from segiou.counting.counts import Counts
from segiou.metrics.protocols import Protocol, load_protocol
from segiou.metrics.ratio import Floats, ratio


class DifferentImagesError(ValueError):
    """Runs that were not scored on the same images.

    Attributes
    ----------
    only : mapping of str to tuple of str
        Run name → ids that it has and another one has not.
    """

    def __init__(self, only: Mapping[str, Sequence[str]]) -> None:
        self.only: dict[str, tuple[str, ...]] = {name: tuple(ids) for name, ids in only.items()}
        super().__init__(
            f"the runs were scored on different images, and a paired comparison needs the same: "
            f"{_only_in(self.only)}; score all models on the same images"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return (DifferentImagesError, (self.only,))


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
        first width that was measured; or ``"surface_dice"``, at the first
        tolerance, the mean over the cases. A larger score is taken to be the
        better one.
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
        Number of resamples; number of permutations; seed of the random numbers.
    level : float
        Of the intervals; 1 − level is what p is held against.
    method : {"percentile", "bca"}
        How the intervals are made: percentiles of the resamples, or corrected for bias
        (BCa).
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
    same = _same_images(runs, names, metric, protocol)
    design = design_of(len(same.ids), same.ids, groups, blocks, same.differences)
    scores = [one.over(design.units, aggregate) for one in same.scored]
    alone = scores
    if design.units is not design.images:
        alone = [one.over(design.images, aggregate) for one in same.scored]
    values = resampled(alone if design.blocks else scores, resamples, seed, design.blocks)
    columns = zip(same.names, same.counts, scores, alone, values, strict=True)
    models = [_Model(*column) for column in columns]
    test = _Test(
        same.scored[0].include, same.pixels, level, method, permutations, seed, influential
    )
    pairs = [test.pair(a, b) for a, b in combinations(models, 2)]
    adjusted = holm(np.array([pair.overall.p for pair in pairs])).tolist()
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
        ranking=_ranking(models, level),
        pairs=tuple(
            replace(pair, overall=replace(pair.overall, p_holm=p))
            for pair, p in zip(pairs, adjusted, strict=True)
        ),
        dependence=design.dependence,
        block_length=design.block_length,
    )


@dataclass(frozen=True, eq=False)
class _SameImages:
    """Counts (N, C) of each run on the same images, in the order of the first."""

    names: tuple[str, ...]
    ids: tuple[str, ...]
    pixels: Named
    counts: tuple[Counts, ...]
    scored: list[ScoredImages]
    """What the metric is of: the counts, or those of boundaries, objects or surfaces."""

    def differences(self) -> list[Floats]:
        """How the models of every pair differ on each image, (N,)."""
        return [b - a for a, b in combinations([one.alone() for one in self.scored], 2)]


@dataclass(frozen=True, eq=False)
class _Model:
    """A run's counts, its score over the units and over single images, and resampled (B, 1 + C)."""

    name: str
    counts: Counts
    score: Statistic
    alone: Statistic
    values: Floats


def _ranking(models: Sequence[_Model], level: float) -> tuple[Ranked, ...]:
    """Models by score, with the share of resamples in which each is best."""
    resamples = np.stack([model.values[:, 0] for model in models])
    resamples = resamples[:, ~np.isnan(resamples).any(0)]
    top = resamples == resamples.max(0, initial=-np.inf)
    best = ratio((top / np.maximum(top.sum(0), 1)).sum(1), resamples.shape[1])
    found = []
    for model, share in zip(models, best.tolist(), strict=True):
        ends = *percentile_limits(model.values[:, 0], level), share
        if model.score.units.few_groups:
            ends = (float("nan"),) * 3
        found.append(Ranked(model.name, float(model.score.values[0]), *ends))
    return tuple(sorted(found, key=lambda r: (np.isnan(r.value), -r.value)))


@dataclass(frozen=True, eq=False)
class _Test:
    """How every pair is compared."""

    include: NDArray[np.bool_]
    pixels: Named
    level: float
    method: Method
    permutations: int
    seed: int
    influential: int

    def pair(self, model_a: _Model, model_b: _Model) -> PairComparison:
        """Compare two models; the p of the score is not yet adjusted over the pairs."""
        a, b, names = model_a.score, model_b.score, (model_a.name, model_b.name)
        permuted = permutation_p(a, b, self.permutations, self.seed)
        overall, *classes = self._differences(model_a, model_b, permuted.p)
        for_a, for_b = _influential_images(model_a.alone, model_b.alone, self.influential)
        undefined = np.isnan([a.values[1:], b.values[1:]])
        one_sided = (undefined[0] != undefined[1]) & self.include[: undefined.shape[1]]
        return PairComparison(
            *names,
            overall=overall,
            classes=tuple(classes),
            permutations=permuted.permutations,
            exact=permuted.exact,
            for_a=for_a,
            for_b=for_b,
            power=power(a, b, level=self.level, seed=self.seed),
            one_sided=tuple(a.names[1 + c] for c in np.flatnonzero(one_sided).tolist()),
            imbalance=explain_difference(
                model_a.counts,
                model_b.counts,
                self.pixels.class_names,
                names=names,
                include=self.pixels.include,
                protocol=self.pixels.protocol,
            ),
        )

    def _differences(self, model_a: _Model, model_b: _Model, p: Floats) -> list[Difference]:
        """The score and every class."""
        a, b = model_a.score, model_b.score
        spreads = intervals_of(
            a,
            model_b.values - model_a.values,
            b.values - a.values,
            lambda: b.left_out - a.left_out,
            self.level,
            self.method,
        )
        adjusted = np.concatenate([p[:1], holm(p[1:])])
        scores = (column.tolist() for column in (a.values, b.values, p, adjusted))
        return [
            Difference(
                name=spread.name,
                a=score_a,
                b=score_b,
                delta=spread.value,
                low=spread.low,
                high=spread.high,
                standard_error=spread.standard_error,
                p=p_own,
                p_holm=p_holm,
                units=spread.units,
                undefined_share=spread.undefined_share,
            )
            for spread, score_a, score_b, p_own, p_holm in zip(spreads, *scores, strict=True)
        ]


def _influential_images(
    a: Statistic, b: Statistic, number: int
) -> tuple[tuple[InfluentialImage, ...], tuple[InfluentialImage, ...]]:
    """Images without which the difference would change most, towards each model."""
    without = b.left_out[:, 0] - a.left_out[:, 0]
    effect = b.values[0] - a.values[0] - without
    columns = zip(a.units.names, effect.tolist(), a.alone.tolist(), b.alone.tolist(), strict=True)
    images = [InfluentialImage(*column) for column in columns]
    order = np.argsort(effect, kind="stable")
    order = order[~np.isnan(effect[order])]
    for_a = [images[k] for k in order[:number] if effect[k] < 0]
    for_b = [images[k] for k in order[::-1][:number] if effect[k] > 0]
    return tuple(for_a), tuple(for_b)


def _same_images(
    runs: Sequence[ScoredRun],
    names: Sequence[str] | None,
    metric: Metric,
    protocol: Protocol | str | None,
) -> _SameImages:
    """Bring runs to the same images, and refuse what cannot be compared."""
    called, first = _names(runs, names), runs[0]
    chosen = load_protocol(first.protocol if protocol is None else protocol)
    for name, run in zip(called, runs, strict=True):
        _check_unique(name, run.ids)
    for name, run in zip(called[1:], runs[1:], strict=True):
        _check_classes(first, run, called[0], name)
        if protocol is None and run.protocol != first.protocol:
            msg = (
                f"{called[0]} was scored by protocol {first.protocol.name!r} and {name} by "
                f"{run.protocol.name!r}; say which to compare by: protocol=..."
            )
            raise ValueError(msg)
    _check_images(runs, called)
    counts = scored = _same_order(runs, called, [run.counts for run in runs])
    ids = tuple(first.ids)
    named = pixels = Named(tuple(first.class_names), chosen.include_of(first), chosen)
    if metric in MEASURED:
        pairs = zip(runs, called, strict=True)
        found = [measured_counts(run, metric, name, pixels) for run, name in pairs]
        _check_measured(runs, called, str(metric))
        _, metric, named = found[0]
        scored = _same_order(runs, called, [own for own, *_ in found])
    images = [ScoredImages(CountParts.of(own), metric, ids, *named) for own in scored]
    return _SameImages(called, ids, pixels, counts, images)


def _check_measured(runs: Sequence[Any], names: Sequence[str], metric: str) -> None:
    """Refuse runs whose boundaries, objects or surfaces were measured in different ways."""
    what, way_of = {
        "boundary_iou": ("Boundary IoU is measured at", _band),
        "surface_dice": ("surfaces are measured by", _surface_way),
    }.get(metric, ("objects are scored by", lambda run: run.object_options))
    ways = [way_of(run) for run in runs]
    for way, name in zip(ways, names, strict=True):
        if way != ways[0]:
            first, second = _told(ways[0], way), _told(way, ways[0])
            msg = f"{what} {first} in {names[0]} and {second} in {name}; score both alike"
            raise ValueError(msg)


def _surface_way(run: Any) -> dict[str, Any]:
    plan = run.surface_plan.to_dict()
    return {**plan.pop("options"), **plan}


def _told(way: Any, other: Any) -> str:
    """A way of measuring, where it has parts only those that the other has not."""
    if not isinstance(way, dict):
        return str(way)
    return ", ".join(f"{name} {part}" for name, part in way.items() if other.get(name) != part)


def _band(run: Any) -> str:
    options = run.boundary_options
    border = "" if options.band_border else ", the image border no boundary"
    return f"{options.widths[0]}{border}"


def _names(runs: Sequence[ScoredRun], names: Sequence[str] | None) -> tuple[str, ...]:
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
        msg = f"{name} has several images of one id: {some_of(twice)}; ids tell images apart"
        raise ValueError(msg)


def _check_classes(a: ScoredRun, b: ScoredRun, name_a: str, name_b: str) -> None:
    if tuple(a.class_names) != tuple(b.class_names):
        only_a = [c for c in a.class_names if c not in b.class_names]
        only_b = [c for c in b.class_names if c not in a.class_names]
        what = _only_in({name_a: only_a, name_b: only_b}) or "the order differs"
        msg = f"{name_a} and {name_b} have different classes: {what}"
        raise ValueError(msg)
    differ = np.flatnonzero(np.asarray(a.include) != np.asarray(b.include)).tolist()
    if differ:
        msg = (
            f"{name_a} and {name_b} leave different classes out of their means: "
            f"{some_of([a.class_names[c] for c in differ])}; exclude the same from both"
        )
        raise ValueError(msg)


def _only_in(names: Mapping[str, Sequence[str]]) -> str:
    return "; ".join(f"only in {run}: {some_of(only)}" for run, only in names.items() if only)


def _check_images(runs: Sequence[ScoredRun], names: Sequence[str]) -> None:
    common = set(runs[0].ids).intersection(*(run.ids for run in runs[1:]))
    only = {
        name: [i for i in run.ids if i not in common] for name, run in zip(names, runs, strict=True)
    }
    if any(only.values()):
        raise DifferentImagesError(only)


def _same_order(
    runs: Sequence[ScoredRun], names: Sequence[str], counts: Sequence[Counts]
) -> tuple[Counts, ...]:
    """Counts of each run in the order of the first; they must be of the same truth."""
    first, found = runs[0], [counts[0]]
    for name, run, own in zip(names[1:], runs[1:], counts[1:], strict=True):
        place = {id: i for i, id in enumerate(run.ids)}
        found.append(own[np.array([place[id] for id in first.ids], dtype=np.intp)])
        _check_truth(first, found[0], found[-1], names[0], name)
    return tuple(found)


def _check_truth(first: ScoredRun, a: Counts, b: Counts, name_a: str, name_b: str) -> None:
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
