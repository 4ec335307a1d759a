"""What every hook needs: the classes, which scores to give, and how a prediction is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from segiou.accumulators.confusion import ConfusionMatrix
from segiou.metrics.protocols import Protocol, load_protocol

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
    """The classes, which scores to give by which protocol, and how predictions are read.

    `labels` and `options` are as of :class:`segiou.ConfusionMatrix`; `scores`
    are names of :data:`SCALARS` and :data:`PER_CLASS`; `axis` is the class axis
    of predictions that are scores, and `threshold` decides between two classes.
    """

    def __init__(
        self,
        labels: Any,
        *,
        scores: Scores = DEFAULT,
        protocol: Protocol | str = "segiou",
        axis: int = 1,
        threshold: float | None = None,
        **options: Any,
    ) -> None:
        self.options = ConfusionMatrix(labels, **options).options
        self.protocol = load_protocol(protocol)
        self.axis, self.threshold = axis, threshold
        self.names = (scores,) if isinstance(scores, str) else tuple(scores)
        #: The one number that was asked for by its name alone.
        self.only = scores if isinstance(scores, str) and scores in SCALARS else None
        if unknown := [name for name in self.names if name not in SCALARS + PER_CLASS]:
            msg = f"there is no score {unknown[0]!r}; choose from {', '.join(SCALARS + PER_CLASS)}"
            raise ValueError(msg)

    def empty(self) -> ConfusionMatrix:
        """Nothing counted yet."""
        return ConfusionMatrix.from_options(self.options)

    def decision(self, truth: Any, pred: Any) -> dict[str, Any]:
        """The arguments by which `update` reads a prediction: none if it is labels already."""
        if self.threshold is None and len(pred.shape) != len(truth.shape) + 1:
            return {}
        axis = self.axis if self.threshold is None else None
        self.options.check_scores(tuple(pred.shape), axis)
        return {"argmax": axis, "threshold": self.threshold}

    def values(self, counted: ConfusionMatrix, separator: str = "/") -> dict[str, float]:
        """The scores by name, those of classes as ``iou/road``; NaN where undefined."""
        report = counted.report(self.protocol)
        known: dict[str, Any] = {
            name: getattr(report, name)
            if name in SCALARS
            else [getattr(row, name) for row in report.classes]
            for name in self.names
        }
        return {name: float(value) for name, value in self.named(known, separator).items()}

    def named(self, known: Mapping[str, Any], separator: str = "/") -> dict[str, Any]:
        """The scores that were asked for, one key each."""
        values: dict[str, Any] = {}
        for name in self.names:
            if name in SCALARS:
                values[name] = known[name]
            else:
                for i, class_name in enumerate(self.options.labels.class_names):
                    values[f"{name}{separator}{class_name}"] = known[name][i]
        return values


def missing(framework: str, extra: str, *, module: str | None = None) -> ImportError:
    """The error of a hook whose framework is not installed; the module is named as the extra."""
    msg = f"segiou.hooks.{module or extra} needs {framework}: pip install 'segiou[{extra}]'"
    return ImportError(msg)
