"""Agreement of several raters, and of a model with them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from itertools import combinations, product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from segiou._support.arguments import check_level
from segiou._support.text import records
from segiou.inference.count_scores import addends, means_of
from segiou.inference.leave_one_out import jackknife
from segiou.inference.statistics import Statistic
from segiou.inference.student import student, student_below
from segiou.inference.units import Units, units_of
from segiou.measures.score import OVERALL, Score
from segiou.metrics.overall import mean
from segiou.metrics.ratio import Floats, ratio
from segiou.raters.result import Estimate, ExpertTest, ModelAgreement, RaterAgreement, RaterPair
from segiou.raters.votes import (
    Votes,
    coincidences,
    fleiss_kappa,
    krippendorff_alpha,
    pairwise_agreement,
)


def rater_agreement(
    votes: Sequence[Votes],
    ids: Sequence[str],
    raters: Sequence[str],
    class_names: Sequence[str],
    *,
    model: str = "",
    groups: Sequence[Hashable] | None = None,
    level: float = 0.95,
) -> RaterAgreement:
    """Score the agreement of raters from their votes."""
    check_level("level", level)
    experts, everyone = len(raters), [*raters, *([model] if model else [])]
    if experts < 2:
        msg = f"expected at least two raters, got {experts}; pass a folder for each"
        raise ValueError(msg)
    if len(votes) == 1 and groups is None:
        # Intervals need two cases; an empty one leaves the scores as they are.
        empty = votes[0]._replace(patterns=votes[0].patterns[:0], pixels=votes[0].pixels[:0])
        found = rater_agreement(
            [*votes, empty], [*ids, ""], raters, class_names, model=model, level=level
        )
        return replace(found, ids=tuple(ids), missing=_missing(votes, ids, everyone))
    units = units_of(len(votes), groups, ids)
    overlaps = np.stack([case.overlaps(len(class_names)) for case in votes])
    over = _Over(units, level)
    pairs = _pairs(overlaps, [*combinations(everyone, 2)], class_names, over)
    agreement, unanimity, kappa, alpha = _overall(votes, experts, len(class_names), over)
    return RaterAgreement(
        raters=tuple(raters),
        model=model,
        class_names=tuple(class_names),
        ids=tuple(ids),
        missing=_missing(votes, ids, everyone),
        level=level,
        unit=units.kind,
        agreement=agreement,
        unanimity=unanimity,
        fleiss_kappa=kappa,
        krippendorff_alpha=alpha,
        # Pairs of experts, then those with the model.
        pairs=tuple(sorted(pairs, key=lambda pair: bool(model) and pair.second == model)),
        against_model=_model_agreement(overlaps, experts, class_names, over) if model else (),
    )


def _missing(
    votes: Sequence[Votes], ids: Sequence[str], names: Sequence[str]
) -> dict[str, tuple[str, ...]]:
    cases = {
        name: tuple(id for id, vote in zip(ids, votes, strict=True) if not vote.has_case[k])
        for k, name in enumerate(names)
    }
    return {name: lacking for name, lacking in cases.items() if lacking}


class _Over(NamedTuple):
    """The units of intervals, and their level."""

    units: Units
    level: float

    def estimates(
        self,
        sums: NDArray[Any],
        evaluate: Callable[[NDArray[Any]], Floats],
        seen: NDArray[np.bool_],
        scale: str,
    ) -> list[Estimate]:
        """K values of sums (N, F) of cases with intervals; ``seen`` (N, K) are cases with one."""
        number = seen.shape[1]

        def evaluate_with_mean(totals: NDArray[Any]) -> Floats:
            values = evaluate(totals)
            return np.concatenate([np.full((*values.shape[:-1], 1), np.nan), values], axis=-1)

        names = tuple(map(str, range(number)))
        score = Score(
            "", "", names, lambda parts: parts, evaluate_with_mean, overall=OVERALL, scale=scale
        )
        of_units = self.units.sums(seen.astype(np.int64)) > 0
        units_seen = np.concatenate([[0], of_units.sum(0)])
        statistic = Statistic(score, self.units, self.units.sums(sums), units_seen)
        limits = jackknife(statistic, level=self.level)
        rows = records(
            value=limits.values, low=limits.low, high=limits.high, cases=[0, *seen.sum(0).tolist()]
        )
        return [Estimate(**row) for row in rows][1:]

    def ratios(self, top: NDArray[Any], bottom: NDArray[Any]) -> list[Estimate]:
        """Sums of cases (N, K), divided."""
        number = top.shape[1]
        return self.estimates(
            np.concatenate([top, bottom], axis=1),
            lambda sums: ratio(sums[..., :number], sums[..., number:]),
            bottom > 0,
            "logit",
        )

    def mean_ratios(self, values: Floats) -> list[Estimate]:
        """Means of ratios over the cases that have one, (N, K), as in reports."""
        return self.estimates(addends(values), means_of, ~np.isnan(values), "logit")

    def means(self, values: Floats) -> list[Estimate]:
        """Means of differences over the cases that have one, (N, K), with Student's interval.

        The variance is that of the jackknife over units, (k − 1)/k Σ (mean − mean without one)²,
        which is s²/k if each case is a unit.
        """
        known = ~np.isnan(values)
        tops = self.units.sums(np.where(known, values, 0.0))
        numbers = self.units.sums(known.astype(np.int64))
        means = ratio(tops.sum(0), numbers.sum(0))
        left_out = ratio(tops.sum(0) - tops, numbers.sum(0) - numbers)
        seen = (numbers > 0).sum(0)
        steps = np.where(numbers > 0, means - left_out, 0.0)
        errors = np.sqrt(ratio(seen - 1, seen) * np.square(steps).sum(0))
        reach = np.where(seen > 1, student(seen - 1.0, (1 - self.level) / 2) * errors, np.nan)
        rows = records(value=means, low=means - reach, high=means + reach, cases=known.sum(0))
        return [Estimate(**row) for row in rows]


def _pairs(
    overlaps: NDArray[np.int64],
    raters: Sequence[tuple[str, str]],
    class_names: Sequence[str],
    over: _Over,
) -> list[RaterPair]:
    """Scores of pairs and classes from (N, pairs, C, 3) pixels of both and of each."""
    shared, first, second = np.moveaxis(overlaps.reshape(len(overlaps), -1, 3), -1, 0)
    sums = {"dice": (2 * shared, first + second), "iou": (shared, first + second - shared)}
    scores = {name: over.ratios(*parts) for name, parts in sums.items()}
    scores |= {f"mean_{name}": over.mean_ratios(ratio(*parts)) for name, parts in sums.items()}
    rows = zip(product(raters, class_names), records(**scores), strict=True)
    return [RaterPair(*names, class_name, **row) for (names, class_name), row in rows]


def _overall(votes: Sequence[Votes], experts: int, num_classes: int, over: _Over) -> list[Estimate]:
    """Agreement, unanimity, Fleiss' kappa and Krippendorff's alpha of the experts."""
    complete, tables = [], []
    for case in votes:
        panel = case.expert_votes(experts)
        table = panel.table(num_classes)
        tables.append(coincidences(table, panel.pixels).ravel())
        full = (table.sum(1) == experts) & panel.has_case.all()
        agreed, pixels = pairwise_agreement(table[full]), panel.pixels[full]
        unanimous = pixels @ (table[full].max(1, initial=0) == experts)
        complete.append([pixels.sum(), pixels @ agreed, unanimous, *(pixels @ table[full])])
    sums = np.array(complete, float)
    has_all = sums[:, :1] > 0

    def kappa(totals: NDArray[Any]) -> Floats:
        shares = ratio(totals[..., 3:], experts * totals[..., :1])
        return fleiss_kappa(ratio(totals[..., 1], totals[..., 0]), shares)[..., None]

    def alpha(totals: NDArray[Any]) -> Floats:
        square = totals.reshape(*totals.shape[:-1], num_classes, num_classes)
        return krippendorff_alpha(square)[..., None]

    pairs = np.array(tables)
    return [
        *over.ratios(sums[:, 1:2], sums[:, :1]),
        *over.ratios(sums[:, 2:3], sums[:, :1]),
        *over.estimates(sums, kappa, has_all, "fisher"),
        *over.estimates(pairs, alpha, pairs.sum(1, keepdims=True) > 0, "fisher"),
    ]


def _model_agreement(
    overlaps: NDArray[np.int64], experts: int, class_names: Sequence[str], over: _Over
) -> tuple[ModelAgreement, ...]:
    """The model, which is last, against the experts, per class."""
    distances = np.full((len(overlaps), experts + 1, experts + 1, len(class_names)), np.nan)
    for index, (a, b) in enumerate(combinations(range(experts + 1), 2)):
        shared, first, second = np.moveaxis(overlaps[:, index], -1, 0)
        distances[:, a, b] = distances[:, b, a] = 1 - ratio(2 * shared, first + second)
    everyone = range(experts)
    differences = over.means(_excess(distances, experts, everyone))
    return tuple(
        ModelAgreement(name, differences[c], _expert_test(distances[..., c], experts))
        for c, name in enumerate(class_names)
    )


def _excess(distances: Floats, who: int, panel: Sequence[int]) -> Floats:
    """Mean distance of one rater to a panel minus the mean distance within it, per case."""
    pairs = [*combinations(panel, 2)]
    to_panel = mean(np.stack([distances[:, who, k] for k in panel], axis=-1))
    within = mean(np.stack([distances[:, a, b] for a, b in pairs], axis=-1))
    return to_panel - within


def _expert_test(distances: Floats, experts: int) -> ExpertTest:
    """Test whether the model is one more expert, from (N, K, K) distances of a class.

    With additive effects of raters, T is exact: each expert's excess over the others has
    the variance that the model's is compared with.
    """
    off = ~np.eye(experts + 1, dtype=bool)
    complete = distances[~np.isnan(distances[:, off]).any(1)]
    if experts < 3:
        return ExpertTest(np.nan, np.nan, experts - 1, "it needs at least three experts")
    if len(complete) < 2:
        reason = "fewer than two cases have a Dice for every pair"
        return ExpertTest(np.nan, np.nan, experts - 1, reason)
    excesses = [
        float(_excess(complete, k, [r for r in range(experts) if r != k]).mean())
        for k in range(experts)
    ]
    spread = float(np.square(excesses).sum()) * (experts - 1) / experts**2
    error = np.sqrt(spread * (1 + 1 / experts))
    if not error > 0:
        return ExpertTest(np.nan, np.nan, experts - 1, "the experts do not differ")
    t = float(_excess(complete, experts, range(experts)).mean() / error)
    return ExpertTest(float(2 * student_below(-abs(t), experts - 1)), t, experts - 1)
