"""Sentences of a comparison: verdict, evidence, one caution, and the method."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import count
from typing import TYPE_CHECKING, Literal, NamedTuple

from segiou._support import numbers, text
from segiou._support.numbers import with_unit
from segiou.inference.dependence import DECLARED, Caution
from segiou.inference.paired import FEWEST_PERMUTED
from segiou.inference.significance import is_significant, least_p
from segiou.inference.units import plural_of

if TYPE_CHECKING:
    from segiou.analysis.comparison.result import Comparison, InfluentialImage, PairComparison


#: Smaller limits are printed as 0.00 points; of a distance, as 0.00 of its unit.
_ROUNDED = 0.00005
#: The names of an earlier run and of this one, which read as words.
BASELINE = ("the baseline", "this run")


def claims(comparison: Comparison, pair: PairComparison) -> list[str]:
    """Verdict and evidence."""
    texts = (make(comparison, pair) for make in (verdict, evidence, coverage))
    return [text for text in texts if text]


def cautions(comparison: Comparison, pair: PairComparison) -> list[str]:
    """At most one caution."""
    doubt = caution(comparison, pair)
    return [] if doubt is None else [f"Caution: {doubt}"]


def score_title(comparison: Comparison, pair: PairComparison) -> str:
    """The title of the score of a class, from that of the overall value."""
    return pair.overall.name.removeprefix(f"{comparison.overall} ").removeprefix("of ")


def caution(comparison: Comparison, pair: PairComparison) -> Caution | None:
    """The first caution that changes how to read the evidence, if any."""
    if not pair.overall.delta or math.isnan(pair.overall.delta):
        return None
    scores_of_runs = zip(comparison.names, comparison.run_scores, strict=False)
    if lone := [name for name, scores in scores_of_runs if len(scores) == 1]:
        assumed = "is assumed to vary between trainings as much as the other"
        return Caution(f"{lone[0]} has only one training run and {assumed}")
    return comparison.of(pair)._limit


def coverage(comparison: Comparison, pair: PairComparison) -> str:
    """The classes of the means if some are excluded, and the means under the protocol."""
    if not comparison.uncommon_classes or not comparison.protocol_scores:
        return ""
    scores = dict(zip(comparison.names, comparison.protocol_scores, strict=True))
    models = "both models" if len(comparison.names) == 2 else "all models"
    is_single = len(comparison.uncommon_classes) == 1
    some = "has a score for some models only" if is_single else "have a score for some models only"
    if len(comparison.names) == 2 and is_single:
        (name,) = comparison.uncommon_classes
        row = next(row for row in pair.classes if row.name == name)
        some = f"has a score for {pair.b if math.isnan(row.a) else pair.a} only"
    return (
        f"The means cover the classes that {models} score: "
        f"{text.classes(comparison.uncommon_classes)} {some}. With every class of the protocol, "
        f"{pair.overall.name} is {comparison._shown(scores[pair.a])} ({pair.a}) and "
        f"{comparison._shown(scores[pair.b])} ({pair.b})."
    )


def left_out(comparison: Comparison) -> str:
    """The classes that the mean does not cover, and the reasons; empty if it covers all."""
    classes = dict(comparison.excluded_classes)
    classes |= dict.fromkeys(comparison.uncommon_classes, "not scored for all models")
    return f"excluded from the mean: {text.by_reason(classes)}" if classes else ""


def contributions(comparison: Comparison, pair: PairComparison) -> str:
    """The classes that contribute most to a significant difference in mean IoU."""
    whole, parts = pair.overall.delta, pair.imbalance.mean_iou_parts
    if not pair.overall.differs(comparison.level) or abs(sum(parts.values()) - whole) > 1e-9:
        return ""
    most = sorted(parts.items(), key=lambda item: -abs(item[1]))[:3]
    each = [(text.called(name), numbers.signed_points(part)) for name, part in most]
    shown = [f"{name} {part}" for name, part in each if part != numbers.signed_points(0.0)]
    if not shown:
        return ""
    return f"Largest contributions to the {numbers.change(whole)}: {', '.join(shown)}."


def marks(comparison: Comparison, pair: PairComparison) -> Iterator[str]:
    """What a star means, and why an interval of a class without one may exclude 0."""
    level = comparison.level
    if any(row.differs(level) for row in (pair.overall, *pair.classes)):
        yield f"* Holm-adjusted p < {1 - level:.3g}"
    if any(is_significant(row.p, level) and not row.differs(level) for row in pair.classes):
        yield "Intervals of classes are not adjusted, so they may exclude 0 without a star."


def method(comparison: Comparison, pair: PairComparison, *, options: bool = True) -> list[str]:
    """Test, independence, power and scope; ``options`` names those of the command line."""
    comparison = comparison.of(pair)
    independence, scope = limitations(comparison, options=options)
    tests = [_test(comparison, pair), *_adjustment(comparison)]
    return [*_pooling(comparison), *tests, independence, *_power(comparison, pair), scope]


def _adjustment(comparison: Comparison) -> list[str]:
    """Adjustment of several pairs."""
    if len(comparison.pairs) < 2:
        return []
    adjusted = f"are Holm-adjusted over the {len(comparison.pairs)} pairs"
    best = ""
    first, second = comparison.ranking[:2]
    if first.rank < second.rank:
        best = (
            f" The claim that {first.name} is best needs no adjustment; its p is "
            "the largest of its pairs (Hung and Fithian 2019)."
        )
    name = comparison.pairs[0].overall.name
    return [f"Pairs: intervals and p-values of {name} {adjusted}.{best}"]


def _pooling(comparison: Comparison) -> list[str]:
    """Aggregation of Dice, because many tools average it over images instead."""
    name = comparison.metric.partition(":")[0]
    if name not in ("dice", "mean_dice") or comparison.aggregate != "D":
        return []
    pixel, image = text.nouns(comparison._pixel_unit)
    return [f"Score: Dice of the {pixel}s pooled over all {image}s, not the mean over {image}s."]


def limitations(comparison: Comparison, *, options: bool = True) -> list[str]:
    """Independence and scope."""
    said = comparison.units_sentences() or [
        f"{text.capital(comparison._kind)} are assumed to be independent."
    ]
    if comparison.unit in ("sequence", "batch") and options:
        said.append(
            f"If the {comparison._image}s are independent, use {DECLARED[comparison._python]}."
        )
    first, *others = said
    independence = " ".join([f"Independence: {first[:1].lower()}{first[1:]}", *others])
    return [independence, _scope(comparison)]


def verdict(comparison: Comparison, pair: PairComparison) -> str:
    """The outcome, with the scores of both models."""
    words = _outcome(comparison, pair)
    return text.capital(words) if comparison.names == BASELINE else words


class Outcome(NamedTuple):
    """The finding of a comparison of two models, without its words.

    Attributes
    ----------
    kind : {"better", "similar", "too few", "equal", "identical", "undefined"}
        ``"better"`` if the adjusted p is significant, else ``"similar"``; ``"too few"`` units to
        test; ``"equal"`` scores of different counts, or ``"identical"`` counts.
    first, second : str
        The models; of ``"better"``, the one with the better score first.
    """

    kind: Literal["better", "similar", "too few", "equal", "identical", "undefined"]
    first: str
    second: str


def outcome(comparison: Comparison, pair: PairComparison) -> Outcome:
    """The finding of the comparison of a pair."""
    score = pair.overall
    if math.isnan(score.delta):
        return Outcome("undefined", pair.a, pair.b)
    if not pair.images_differing:
        return Outcome("identical", pair.a, pair.b)
    if not score.delta:
        return Outcome("equal", pair.a, pair.b)
    if comparison.of(pair).too_few:
        return Outcome("too few", pair.a, pair.b)
    if not score.differs(comparison.level):
        return Outcome("similar", pair.a, pair.b)
    rises = (score.delta > 0) == (comparison.better == "higher")
    ordered = (pair.b, pair.a) if rises else (pair.a, pair.b)
    return Outcome("better", *ordered)


def _outcome(comparison: Comparison, pair: PairComparison) -> str:
    score, (kind, first, second) = pair.overall, outcome(comparison, pair)
    names = f"{first} and {second}"
    values = {pair.a: comparison._shown(score.a), pair.b: comparison._shown(score.b)}
    both = f"{score.name} {values[first]} vs {values[second]}"
    verb = "higher"
    if comparison.better == "lower":
        verb, lower = "better", numbers.change(abs(score.delta), comparison.score_unit).lstrip("+")
        both += f" ({lower} lower)" if kind == "better" else ""
    words = {
        "better": f"{first} scores {verb} than {second}: {both}.",
        "similar": f"No significant difference between {names}: {both}.",
        "too few": f"Not enough {comparison.of(pair)._kind} to compare {names}: {both}.",
        "equal": f"{names} have the same {score.name}: {values[first]}.",
        "identical": f"{names} are identical: {score.name} {values[first]}.",
    }
    return words[kind] if kind in words else f"Cannot compare {names}: {_undefined(pair)}."


def _undefined(pair: PairComparison) -> str:
    """Why the difference of a pair is undefined."""
    score = pair.overall
    lacking = [name for name, x in ((pair.a, score.a), (pair.b, score.b)) if math.isnan(x)]
    if not lacking:  # ∞ − ∞
        where = [row.name for row in pair.classes if math.isinf(row.a) and math.isinf(row.b)]
        return f"{score.name} is infinite for both, as it is for {text.classes(where)}"
    owner = f" of {lacking[0]}" if len(lacking) == 1 else ""
    return f"{score.name}{owner} is undefined"


def evidence(comparison: Comparison, pair: PairComparison) -> str:
    """Difference, interval, p and number of units; second minus first."""
    score = pair.overall
    if math.isnan(score.delta):
        return ""
    images = text.plural(comparison.images, comparison._image)
    if not pair.images_differing:
        classes = f", {text.plural(len(pair.classes), 'class', 'classes')}" if pair.classes else ""
        return f"All counts are equal on {images}{classes}."
    if not score.delta:
        return f"Their counts differ in {pair.images_differing} of {images}."
    interval = "no interval"
    if not math.isnan(score.low):
        ends = numbers.change_range(score.low, score.high, comparison.score_unit)
        interval = f"{numbers.interval_name(comparison.level)} {ends}"
    delta = numbers.change(score.delta, comparison.score_unit)
    line = (
        f"{pair.b} − {pair.a.removeprefix('the ')}: {delta}, {interval}, "
        f"{numbers.p_equals(score.p_holm)} ({'; '.join(_basis(comparison.of(pair), pair))})."
    )
    by_p, by_interval = score.differs(comparison.level), score.low > 0 or score.high < 0
    if by_p and by_interval and min(abs(score.low), abs(score.high)) < _ROUNDED:
        return f"{line} The interval excludes 0, which its rounded limit hides."
    if by_p != by_interval and not math.isnan(score.low):  # of a bootstrap
        return f"{line} The bootstrap interval and the test disagree; p decides."
    return line


def _basis(comparison: Comparison, pair: PairComparison) -> Iterator[str]:
    """Units and training runs that the evidence is based on, and what limits its p."""
    score = pair.overall
    yield comparison.units_text
    if comparison.run_scores:
        yield f"{' and '.join(str(len(runs)) for runs in comparison.run_scores)} training runs"
    if score.p_holm > score.p:
        yield "adjusted for all pairs"
    if pair._is_students:
        of = "" if comparison.method == "permutation" else "p of "
        yield f"{of}Student's t, because fewer than {FEWEST_PERMUTED}"
    first, second = comparison.ranking[:2]
    is_of_best = first.rank < second.rank and first.name in (pair.a, pair.b)
    if limit := _untestable(comparison, pair, 1 if is_of_best else len(comparison.pairs)):
        yield limit


def _untestable(comparison: Comparison, pair: PairComparison, family: int) -> str:
    """Why no p can be significant among a number of tests; empty if one can."""
    if comparison.run_scores or not pair.permutations or pair._is_students:
        return ""
    level, least = comparison.level, family * least_p(pair.permutations, exact=pair.exact)
    if is_significant(least, level):
        return ""
    needed = next(n for n in count(2) if is_significant(family * least_p(2**n), level))
    limit = f"fewer than {needed} {comparison._kind}"
    if needed <= comparison.units:  # enough units, but few permutations with a difference
        limit = text.plural(pair.permutations, "permutation")
    return f"p cannot be below {min(least, 1):.2f} with {limit}"


def _test(comparison: Comparison, pair: PairComparison) -> str:
    """The test, and where the interval comes from."""
    number = f"{numbers.count(pair.permutations)} permutations"
    test = f"paired permutation test ({f'exact, {number}' if pair.exact else number})"
    why = f"(permutations need {FEWEST_PERMUTED} units)"
    if comparison.run_scores:
        test = f"interval and t test with {comparison._image}s and training runs crossed"
    elif comparison.method != "permutation":
        name = "bootstrap" if comparison.method == "percentile" else "BCa bootstrap"
        test = f"paired t test {why}" if pair._is_students else test
        test = f"{test} and {name} interval ({numbers.count(comparison.resamples or 0)} resamples)"
    elif pair._is_students:
        test = f"paired t test and its interval {why}"
    elif not comparison.too_few:
        test = f"{test} and the interval of the same permutations"
    seed = "" if comparison.seed is None or comparison.run_scores else f", seed {comparison.seed}"
    adjusted = "; class p-values Holm-adjusted" if pair.classes else ""
    return f"Test: {test} over {comparison.units_text}{seed}{adjusted}."


def _power(comparison: Comparison, pair: PairComparison) -> list[str]:
    """The difference that the units can detect, and those that another one needs."""
    power, unit = pair.power, plural_of(pair.power.unit, comparison._image)
    if comparison.too_few or not power.detectable > 0:
        return []
    start = f"Power ({pair.b} vs {pair.a})" if len(comparison.pairs) > 1 else "Power"

    def size(value: float) -> str:
        return numbers.change(value, comparison.score_unit).lstrip("+")

    least = f"these {power.units} {unit} detect a true difference of {size(power.detectable)}"
    said = f"{start}: {least} with {numbers.short_percent(power.target)} power"
    if math.isnan(power.difference):
        return [f"{said}."]
    target = f"{size(power.difference)} with {numbers.roughly(power.now)} power"
    if power.needed is None and comparison.run_scores:
        return [f"{said}, and {target}; no number of {unit} is enough without more training runs."]
    if power.needed is None:
        return [f"{said}, and {target}; no number of {unit} up to ten million is enough."]
    wanted = f"{numbers.short_percent(power.target)} power"
    needs = f"{wanted} takes about {numbers.count(power.needed)} {unit}"
    return [f"{said}, and {target}; {needs}."]


def _scope(comparison: Comparison) -> str:
    fixed = " The match of clusters to classes is treated as fixed." * comparison.is_matched
    images = f"{comparison._image}s"
    others = {
        "group": f"similar {images} of other groups",
        "sequence": f"similar {images} of other sequences",
        "batch": "other parts of these sequences",
    }.get(comparison.unit, f"similar {images}")
    dependence = comparison.dependence
    if comparison.unit == "batch" and dependence and len(dependence.sequences) == 1:
        others = "other parts of this sequence"
    if comparison.run_scores:
        return (
            f"Scope: {others}, with these training recipes. "
            f"Other kinds of {images} are not covered.{fixed}"
        )
    rest = f"Other kinds of {images} and retraining are not covered."
    return f"Scope: {others}, with these trained models. {rest}{fixed}"


def difference_head(pair: PairComparison, unit: str = "") -> str:
    """Header of a column of differences, second minus first."""
    return with_unit(f"{pair.b} − {pair.a}", unit)


def significant_text(comparison: Comparison, pair: PairComparison) -> str:
    """Number of classes that differ significantly."""
    number, tests = len(pair.different(comparison.level)), sum(r.p == r.p for r in pair.classes)
    if number:
        tested = " tested" if tests < len(pair.classes) else ""
        return f"significant: {number} of {tests}{tested}"
    limit = _untestable(comparison.of(pair), pair, tests)
    return f"significant: none{limit and f', because {limit}'}"


def influences(comparison: Comparison, pair: PairComparison) -> list[tuple[InfluentialImage, str]]:
    """The images with an effect when rounded, and the model that each shifts it toward."""
    sides = ((pair.favours_b, pair.b), (pair.favours_a, pair.a))
    every = ((image, name) for images, name in sides for image in images)
    unit = comparison.score_unit
    none = numbers.shown_change(0.0, unit)
    return [move for move in every if numbers.shown_change(move[0].effect, unit) != none]
