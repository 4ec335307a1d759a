"""What every hook shares: classes, the numbers it gives, and how scores become labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from segiou.classes import ClassOptions
from segiou.confusion import ConfusionMatrix
from segiou.protocols import Protocol, load_protocol

__all__ = ["SCALARS", "Scores", "Scoring", "missing", "rule_for"]

Scores = str | Sequence[str]
#: One number for the data set.
SCALARS = (
    "mean_iou",
    "mean_dice",
    "mean_accuracy",
    "pixel_accuracy",
    "frequency_weighted_iou",
)
#: One number a class, under the class's name.
PER_CLASS = ("iou", "dice", "precision", "recall")
DEFAULT = ("mean_iou", "mean_accuracy", "pixel_accuracy", "frequency_weighted_iou", "iou")


class Scoring:
    """Classes, the rule of the means, and which numbers are given.

    Parameters
    ----------
    labels, **options
        As :class:`segiou.ConfusionMatrix`.
    scores : str or sequence of str
        Names of :data:`SCALARS` and :data:`PER_CLASS`.
    protocol : Protocol or str
        By which rule the means are made.

    Raises
    ------
    ValueError
        If there is no such score.
    """

    def __init__(
        self,
        labels: Any,
        *,
        scores: Scores = DEFAULT,
        protocol: Protocol | str = "segiou",
        **options: Any,
    ) -> None:
        self.options: ClassOptions = ConfusionMatrix(labels, **options).options
        self.protocol = load_protocol(protocol)
        self.names = (scores,) if isinstance(scores, str) else tuple(scores)
        #: Whether one number was asked for, by its name alone.
        self.is_one = isinstance(scores, str) and scores in SCALARS
        if unknown := [name for name in self.names if name not in SCALARS + PER_CLASS]:
            msg = f"there is no score {unknown[0]!r}; choose from {', '.join(SCALARS + PER_CLASS)}"
            raise ValueError(msg)

    def empty(self) -> ConfusionMatrix:
        """Nothing counted yet."""
        return ConfusionMatrix.from_options(self.options)

    def values(self, counted: ConfusionMatrix, separator: str = "/") -> dict[str, float]:
        """The numbers by name, those of classes as ``iou/road``; NaN where undefined."""
        report = counted.report(self.protocol)
        known: dict[str, Any] = {
            name: getattr(report, name)
            if name in SCALARS
            else [getattr(row, name) for row in report.classes]
            for name in self.names
        }
        return {name: float(value) for name, value in self.named(known, separator).items()}

    def named(self, known: Mapping[str, Any], separator: str = "/") -> dict[str, Any]:
        """The asked for of all known numbers, one key each."""
        values: dict[str, Any] = {}
        for name in self.names:
            if name in SCALARS:
                values[name] = known[name]
            else:
                for i, class_name in enumerate(self.options.labels.class_names):
                    values[f"{name}{separator}{class_name}"] = known[name][i]
        return values

    def to_dict(self) -> dict[str, Any]:
        """Plain data that :meth:`arguments` reads."""
        scores = self.names[0] if self.is_one else list(self.names)
        return {"options": self.options.to_dict(), "scores": scores}

    @staticmethod
    def arguments(data: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of a Scoring like the one that gave the data."""
        options = ClassOptions.from_dict(data["options"])
        return {
            "labels": options.labels,
            "pred_labels": options.pred_labels,
            "ignore": options.ignore,
            "exclude": options.exclude,
            "unassigned": options.unassigned,
            "scores": data["scores"],
        }


def rule_for(truth: Any, pred: Any, axis: int, threshold: float | None = None) -> dict[str, Any]:
    """How `update` is to read a prediction: by threshold, as scores with a class axis, or as is."""
    if threshold is not None:
        return {"threshold": threshold}
    return {"argmax": axis} if len(pred.shape) == len(truth.shape) + 1 else {}


def missing(framework: str, extra: str, *, module: str | None = None) -> ImportError:
    """The error of a hook whose framework is not installed; the module is named as the extra."""
    msg = f"segiou.hooks.{module or extra} needs {framework}: pip install 'segiou[{extra}]'"
    return ImportError(msg)
