"""Two models on the same truth: what each score rewards."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from segiou._support import text
from segiou._support.arguments import read_several
from segiou._support.text import plain
from segiou.analysis.imbalance import Imbalance, explain
from segiou.counting.counts import Counts, check_counts
from segiou.metrics.protocols import Protocol


@dataclass(frozen=True, slots=True)
class ImbalanceDifference:
    """The scores of two models compared, with what each class adds to the differences.

    Attributes
    ----------
    names : tuple of str
        The two models.
    models : tuple of Imbalance
        Each one explained.
    accuracy_difference, mean_iou_difference : float
        Second minus first.
    accuracy_parts, mean_iou_parts : mapping of str to float
        What each class adds to the two differences; they sum to them.
    silent : tuple of str
        Classes of the truth that the model ahead in pixel accuracy never
        predicts, though the other model does. Empty where accuracies are equal.
    silent_false_alarms : float
        False positives of the other model on them, as a share of all pixels.
    silent_hits : float
        True positives of the other model on them, as a share of all pixels.
    wins_by_silence : bool
        Whether the model ahead in pixel accuracy is so only by leaving classes
        out: it is behind in mean IoU, and its lead in accuracy is no more than
        what predicting the silent classes cost the other model: its false
        positives on them less its true positives.
    """

    names: tuple[str, str]
    models: tuple[Imbalance, Imbalance]
    accuracy_difference: float
    mean_iou_difference: float
    accuracy_parts: dict[str, float]
    mean_iou_parts: dict[str, float]
    silent: tuple[str, ...]
    silent_false_alarms: float
    silent_hits: float
    wins_by_silence: bool

    @property
    def disagree(self) -> bool:
        """Whether pixel accuracy and mean IoU put the models in opposite orders."""
        return self.accuracy_difference * self.mean_iou_difference < 0

    def to_dict(self) -> dict[str, Any]:
        """Plain values, unrounded; None where undefined."""
        found: dict[str, Any] = plain(self)
        found["models"] = [model.to_dict() for model in self.models]
        found["disagree"] = self.disagree
        return found

    def sentences(self) -> list[str]:
        """Say it in words, rounded to a hundredth of a point."""
        said = [_order_sentence(self)]
        if self.wins_by_silence:
            said.append(_silence_sentence(self))
        elif self.silent:
            said.append(_silent_sentence(self))
        if not np.isnan(self.mean_iou_difference):
            said.append(_parts_sentence(self))
        return said


def explain_difference(
    counts_a: Counts,
    counts_b: Counts,
    class_names: Sequence[str],
    *,
    names: tuple[str, str] = ("A", "B"),
    include: Any = None,
    protocol: Protocol | str = "segiou",
) -> ImbalanceDifference:
    """Explain why two models stand as they do in pixel accuracy and in mean IoU.

    A class's part of the difference in accuracy is that of its TP / n, its
    part of the difference in mean IoU that of its IoU / K (or of whatever the
    protocol's mean is made of).

    Parameters
    ----------
    counts_a, counts_b : Counts of shape (C,) or (N, C)
        Of the two models, on the same truth.
    class_names : sequence of str
    names : pair of str
        What to call the models.
    include, protocol
        As for :func:`explain`.

    Raises
    ------
    ValueError
        If the two were counted on different truths.

    Examples
    --------
    >>> plain_model = Counts(tp=[950, 0], fp=[50, 0], fn=[0, 50], tn=[0, 950])
    >>> keen_model = Counts(tp=[880, 40], fp=[10, 70], fn=[70, 10], tn=[40, 880])
    >>> found = explain_difference(
    ...     plain_model, keen_model, ["road", "person"], names=("plain", "keen")
    ... )
    >>> found.wins_by_silence, found.silent
    (True, ('person',))
    """
    check_counts(counts_a, "counts_a")
    check_counts(counts_b, "counts_b")
    names = _pair(names)
    found = tuple(
        explain(counts, class_names, include=include, protocol=protocol)
        for counts in (counts_a, counts_b)
    )
    a, b = counts_a.summed(), counts_b.summed()
    _check_same_truth(a, b, class_names, names)
    lead = found[0].pixel_accuracy - found[1].pixel_accuracy
    ahead, other = (a, b) if lead > 0 else (b, a)
    silent = (ahead.truth > 0) & (ahead.pred == 0) & (other.pred > 0) & (lead != 0)
    false_alarms, hits = int(other.fp[silent].sum()), int(other.tp[silent].sum())
    behind = (found[1].mean_iou - found[0].mean_iou) * lead > 0
    pixels = max(1, int(a.truth.sum()))
    return ImbalanceDifference(
        names=names,
        models=(found[0], found[1]),
        accuracy_difference=-lead,
        mean_iou_difference=found[1].mean_iou - found[0].mean_iou,
        accuracy_parts=_parts(found, "accuracy_cost"),
        mean_iou_parts=_parts(found, "mean_iou_cost"),
        silent=tuple(class_names[c] for c in np.flatnonzero(silent).tolist()),
        silent_false_alarms=false_alarms / pixels,
        silent_hits=hits / pixels,
        # In pixels: for two classes the two sides are equal, and floats are not.
        wins_by_silence=behind and int((ahead.tp - other.tp).sum()) <= false_alarms - hits,
    )


def _pair(names: Iterable[str]) -> tuple[str, str]:
    found = read_several("names", names, "two names, one a model")
    if len(found) != 2:
        msg = f"names must be two, one a model, got {found}"
        raise ValueError(msg)
    return found[0], found[1]


def _check_same_truth(
    a: Counts, b: Counts, class_names: Sequence[str], names: tuple[str, str]
) -> None:
    differing = np.flatnonzero(a.truth != b.truth)
    if len(differing):
        c = int(differing[0])
        msg = (
            f"the two models were counted on different truths: class {class_names[c]} has "
            f"{a.truth[c]} pixels with {names[0]} and {b.truth[c]} with {names[1]}; "
            "score both on the same images"
        )
        raise ValueError(msg)


def _parts(found: tuple[Imbalance, ...], what: str) -> dict[str, float]:
    a, b = found
    return {
        x.name: getattr(y, what) - getattr(x, what)
        for x, y in zip(a.classes, b.classes, strict=True)
    }


def _ahead(found: ImbalanceDifference, difference: float) -> tuple[int, int]:
    """Index of the model that is ahead, and of the other."""
    return (1, 0) if difference > 0 else (0, 1)


def _order_sentence(found: ImbalanceDifference) -> str:
    first, second = _ahead(found, found.accuracy_difference)
    name = found.names[first]
    a, b = found.models[first], found.models[second]
    accuracies = f"({text.percent(a.pixel_accuracy)} against {text.percent(b.pixel_accuracy)})"
    ious = f"({text.percent(a.mean_iou)} against {text.percent(b.mean_iou)})"
    if found.disagree:
        return f"{name} has the higher pixel accuracy {accuracies} and the lower mean IoU {ious}."
    if found.accuracy_difference == 0 or found.mean_iou_difference == 0:
        return (
            f"{found.names[first]} against {found.names[second]}: pixel accuracy {accuracies}, "
            f"mean IoU {ious}."
        )
    return f"{name} is ahead in pixel accuracy {accuracies} and in mean IoU {ious}."


def _silence_sentence(found: ImbalanceDifference) -> str:
    first, second = _ahead(found, found.accuracy_difference)
    ahead, other = found.names[first], found.names[second]
    them = "it" if len(found.silent) == 1 else "them"
    price = found.silent_false_alarms - found.silent_hits
    return (
        f"{ahead} wins on accuracy only because it never predicts {_rare(found)}: "
        f"{text.classes(found.silent)}. {other} predicts {them}, correctly on "
        f"{text.percent(found.silent_hits)} of all pixels and as false positives on "
        f"{text.percent(found.silent_false_alarms)}. That costs {other} {text.points(price)} "
        f"points of accuracy, no less than the lead of {ahead}, "
        f"{text.points(abs(found.accuracy_difference))}."
    )


def _silent_sentence(found: ImbalanceDifference) -> str:
    first, _ = _ahead(found, found.accuracy_difference)
    classes = [c for c in found.models[first].classes if c.name in found.silent]
    return (
        f"{found.names[first]} never predicts {_rare(found)} ({text.classes(found.silent)}), "
        f"which costs it {text.points(sum(c.accuracy_lost for c in classes))} points of "
        f"accuracy and {text.points(sum(c.mean_iou_lost for c in classes))} of mean IoU."
    )


def _rare(found: ImbalanceDifference) -> str:
    """Count the silent classes; they are rare where each has less than an even share."""
    first, _ = _ahead(found, found.accuracy_difference)
    model = found.models[first]
    shares = [c.share for c in model.classes if c.name in found.silent]
    even = 1 / max(1, sum(c.share > 0 for c in model.classes))
    rare = "rare " if max(shares) < even else ""
    return text.plural(len(shares), f"{rare}class", f"{rare}classes")


def _parts_sentence(found: ImbalanceDifference) -> str:
    ranked = sorted(found.mean_iou_parts.items(), key=lambda item: -abs(item[1]))[:3]
    shown = [
        f"{text.called(name)} {text.signed_points(part)} "
        f"(accuracy {text.signed_points(found.accuracy_parts[name])})"
        for name, part in ranked
        if part
    ]
    if not shown:
        return "No class differs between them."
    return (
        f"Most of the difference in mean IoU ({found.names[1]} minus {found.names[0]}, "
        f"{text.signed_points(found.mean_iou_difference)} points) comes from {text.listed(shown)}."
    )
