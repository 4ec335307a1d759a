"""Sentences of a comparison: verdict, evidence, one caution, and the method."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Literal, NamedTuple

from segiou._support import text
from segiou.analysis.dependence import Caution
from segiou.analysis.significance import least_p, least_p_of
from segiou.analysis.units import plural_of

if TYPE_CHECKING:
    from segiou.analysis.comparison import Comparison, Difference, PairComparison


#: The rule for an interval and a test that disagree.
DISAGREE = "The interval and the test disagree; a difference is significant only if both show it."
#: The names of an earlier run and of this one, which read as words.
BASELINE = ("the baseline", "this run")


def opening(found: Comparison, pair: PairComparison) -> list[str]:
    """Verdict, evidence and at most one caution."""
    lines = [verdict(found, pair), evidence(found, pair), coverage(found, pair)]
    if (doubt := caution(found, pair)) is not None:
        lines.append(f"Caution: {doubt}")
    return [line for line in lines if line]


def score_title(pair: PairComparison) -> str:
    """The title of the score of a class, from that of the mean over classes."""
    return pair.overall.name.removeprefix("mean ").removeprefix("of ")


def caution(found: Comparison, pair: PairComparison) -> Caution | None:
    """The first caution that changes how to read the evidence, if any."""
    if not pair.overall.delta or math.isnan(pair.overall.delta):
        return None
    if lone := [n for n, own in zip(found.names, found.run_scores, strict=False) if len(own) == 1]:
        assumed = "is assumed to vary between trainings as much as the other"
        return Caution(f"{lone[0]} has only one training run and {assumed}")
    return found.limit


def coverage(found: Comparison, pair: PairComparison) -> str:
    """The classes of the means if some are left out, and the means under the protocol."""
    if not found.uncommon_classes or not found.protocol_scores:
        return ""
    scores = dict(zip(found.names, found.protocol_scores, strict=True))
    show = partial(text.shown, unit=found.score_unit, undefined="undefined")
    models = "both models" if len(found.names) == 2 else "all models"
    one = len(found.uncommon_classes) == 1
    some = "has a score for some models only" if one else "have a score for some models only"
    if len(found.names) == 2 and one:
        (name,) = found.uncommon_classes
        row = next(row for row in pair.classes if row.name == name)
        some = f"has a score for {pair.b if math.isnan(row.a) else pair.a} only"
    return (
        f"The means cover the classes that {models} score: "
        f"{text.classes(found.uncommon_classes)} {some}. With every class of the protocol, "
        f"{pair.overall.name} is {show(scores[pair.a])} ({pair.a}) and {show(scores[pair.b])} "
        f"({pair.b})."
    )


def contributions(found: Comparison, pair: PairComparison) -> str:
    """The classes that contribute most to a significant difference in mean IoU."""
    whole, parts = pair.overall.delta, pair.imbalance.mean_iou_parts
    if not pair.overall.differs(found.level) or abs(sum(parts.values()) - whole) > 1e-9:
        return ""
    most = sorted(parts.items(), key=lambda item: -abs(item[1]))[:3]
    shown = [f"{text.called(name)} {text.signed_points(part)}" for name, part in most if part]
    return f"Largest contributions to the {text.change(whole)}: {', '.join(shown)}."


def method(found: Comparison, pair: PairComparison, *, options: bool = True) -> list[str]:
    """Test, independence, power and scope; ``options`` names those of the command line."""
    independence, scope = limitations(found, options=options)
    tests = [_test(found, pair), *_adjustment(found)]
    return [*_pooling(found), *tests, independence, *_power(found, pair), scope]


def _adjustment(found: Comparison) -> list[str]:
    """Adjustment of several pairs."""
    if len(found.pairs) < 2:
        return []
    adjusted = f"are Holm-adjusted over the {len(found.pairs)} pairs"
    best = ""
    if _has_lead(found):
        best = (
            f" The claim that {found.ranking[0].name} is best needs no adjustment; its p is the "
            "largest of its pairs (Hung and Fithian 2019)."
        )
    return [f"Pairs: intervals and p-values of {found.pairs[0].overall.name} {adjusted}.{best}"]


def _has_lead(found: Comparison) -> bool:
    """Whether one model ranks first."""
    first, second = found.ranking[:2]
    return first.rank < second.rank


def _pooling(found: Comparison) -> list[str]:
    """Aggregation of Dice, because many tools average it over images instead."""
    if found.metric.partition(":")[0] not in ("dice", "mean_dice") or found.aggregate != "D":
        return []
    return ["Score: Dice of the pixels pooled over all images, not the mean over images."]


def limitations(found: Comparison, *, options: bool = True) -> list[str]:
    """Independence and scope."""
    said = found.units_sentences() or [
        f"{text.capital(plural_of(found.unit))} are assumed to be independent."
    ]
    if found.unit in ("sequence", "batch") and options:
        said.append("If the images are independent, use --group-by none.")
    first, *others = said
    return [" ".join([f"Independence: {first[:1].lower()}{first[1:]}", *others]), _scope(found)]


def verdict(found: Comparison, pair: PairComparison) -> str:
    """The outcome, with the scores of both models."""
    words = _outcome(found, pair)
    return text.capital(words) if found.names == BASELINE else words


class Outcome(NamedTuple):
    """The finding of a comparison of two models, without its words.

    Attributes
    ----------
    kind : {"better", "borderline", "similar", "too few", "equal", "identical", "undefined"}
        ``"better"`` if the interval excludes 0 and the test is significant, ``"borderline"`` if
        one of them is so, else ``"similar"``; ``"too few"`` units for both; ``"equal"`` scores of
        different counts, or ``"identical"`` counts.
    first, second : str
        The models; of ``"better"`` and ``"borderline"``, the one with the better score first.
    """

    kind: Literal["better", "borderline", "similar", "too few", "equal", "identical", "undefined"]
    first: str
    second: str


def outcome(found: Comparison, pair: PairComparison) -> Outcome:
    """The finding of the comparison of a pair."""
    score = pair.overall
    if math.isnan(score.delta):
        return Outcome("undefined", pair.a, pair.b)
    if not pair.images_differing:
        return Outcome("identical", pair.a, pair.b)
    if not score.delta:
        return Outcome("equal", pair.a, pair.b)
    if found.too_few:
        return Outcome("too few", pair.a, pair.b)
    shown = score.shown_by(found.level)
    if not any(shown):
        return Outcome("similar", pair.a, pair.b)
    rises = (score.delta > 0) == (found.better == "higher")
    ordered = (pair.b, pair.a) if rises else (pair.a, pair.b)
    return Outcome("better" if all(shown) else "borderline", *ordered)


def _outcome(found: Comparison, pair: PairComparison) -> str:
    score, (kind, first, second) = pair.overall, outcome(found, pair)
    show = partial(text.shown, unit=found.score_unit, undefined="undefined")
    names = f"{first} and {second}"
    values = {pair.a: show(score.a), pair.b: show(score.b)}
    both = f"{score.name} {values[first]} vs {values[second]}"
    verb = "higher"
    if found.better == "lower":
        verb, lower = "better", text.change(abs(score.delta), found.score_unit).lstrip("+")
        both += f" ({lower} lower)" if kind in ("better", "borderline") else ""
    words = {
        "better": f"{first} scores {verb} than {second}: {both}.",
        "borderline": f"Borderline: {first} may score {verb} than {second}: {both}.",
        "similar": f"No significant difference between {names}: {both}.",
        "too few": f"Not enough {plural_of(found.unit)} to compare {names}: {both}.",
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
    of = f" of {lacking[0]}" if len(lacking) == 1 else ""
    return f"{score.name}{of} is undefined"


def _units_to_test(found: Comparison, score: Difference) -> int:
    """Units from which on the test can be significant."""
    return next(n for n in count(found.units) if score._family * least_p(n) < 1 - found.level)


def evidence(found: Comparison, pair: PairComparison) -> str:
    """Difference, interval, p and number of units; second minus first."""
    score = pair.overall
    if math.isnan(score.delta):
        return ""
    images = text.plural(found.images, "image")
    if not pair.images_differing:
        classes = f", {text.plural(len(pair.classes), 'class', 'classes')}" if pair.classes else ""
        return f"All counts are equal on {images}{classes}."
    if not score.delta:
        return f"Their counts differ in {pair.images_differing} of {images}."
    interval = "no interval"
    if not math.isnan(score.low):
        ends = text.change_range(score.low, score.high, found.score_unit)
        interval = f"{100 * found.level:g} % interval {ends}"
    delta = text.change(score.delta, found.score_unit)
    line = (
        f"{pair.b} − {pair.a.removeprefix('the ')}: {delta}, {interval}, "
        f"{text.p_equals(score.p_holm)} ({'; '.join(_basis(found, pair))})."
    )
    by_interval, by_p = score.shown_by(found.level)
    if by_interval == by_p or found.too_few or not score.testable:
        return line
    return f"{line} {DISAGREE}"


def _basis(found: Comparison, pair: PairComparison) -> Iterator[str]:
    """Units and training runs that the evidence is based on, and what limits its p."""
    score = pair.overall
    yield found.units_text
    if found.run_scores:
        yield f"{' and '.join(str(len(runs)) for runs in found.run_scores)} training runs"
    if score.p_holm > score.p:
        yield "adjusted for all pairs"
    if score.testable:
        return
    least, needed = score._family * least_p(found.units), _units_to_test(found, score)
    limit = f"fewer than {needed} {plural_of(found.unit)}"
    if needed == found.units:  # enough units, but few permutations with a difference
        least = score._family * least_p_of(pair.permutations, pair.exact)
        limit = text.plural(pair.permutations, "permutation")
    yield f"p cannot be below {min(least, 1):.2f} with {limit}"


def _test(found: Comparison, pair: PairComparison) -> str:
    kind = {"jackknife": "paired jackknife-t interval"}.get(found.method)
    if kind is None:
        name = "bootstrap" if found.method == "percentile" else "BCa bootstrap"
        kind = f"paired {name} interval ({text.count(found.resamples or 0)} resamples)"
    number = f"{text.count(pair.permutations)} permutations"
    test = f"paired permutation test ({f'exact, {number}' if pair.exact else number})"
    if found.run_scores:
        kind, test = "interval and t test with images and training runs crossed", ""
    kinds = " and ".join(filter(None, ([] if found.too_few else [kind]) + [test]))
    seed = "" if found.seed is None or found.run_scores else f", seed {found.seed}"
    adjusted = "; class p-values Holm-adjusted" if pair.classes else ""
    return f"Test: {kinds} over {found.units_text}{seed}{adjusted}."


def _power(found: Comparison, pair: PairComparison) -> list[str]:
    """The difference that the units can detect, and those that another one needs."""
    power, unit = pair.power, plural_of(pair.power.unit)
    if found.too_few or not power.detectable > 0:
        return []
    start = f"Power ({pair.b} vs {pair.a})" if len(found.pairs) > 1 else "Power"
    size = partial(_size, found=found)
    least = f"these {power.units} {unit} detect a true difference of {size(power.detectable)}"
    said = f"{start}: {least} with {100 * power.target:g} % power"
    if math.isnan(power.difference):
        return [f"{said}."]
    asked = f"{size(power.difference)} with {text.roughly(power.now)} power"
    if power.needed is None:
        return [f"{said}, and {asked}; no number of {unit} up to ten million is enough."]
    needs = f"{100 * power.target:g} % power takes about {text.count(power.needed)} {unit}"
    return [f"{said}, and {asked}; {needs}."]


def _size(value: float, found: Comparison) -> str:
    return text.change(value, found.score_unit).lstrip("+")


def _scope(found: Comparison) -> str:
    others = {
        "group": "similar images of other groups",
        "sequence": "similar images of other sequences",
        "batch": "other parts of these sequences",
    }.get(found.unit, "similar images")
    if found.unit == "batch" and found.dependence and len(found.dependence.sequences) == 1:
        others = "other parts of this sequence"
    if found.run_scores:
        return (
            f"Scope: {others}, with these training recipes. Other kinds of images are not covered."
        )
    rest = "Other kinds of images and retraining are not covered."
    return f"Scope: {others}, with these trained models. {rest}"
