"""Class options shared by all scorers: label set, ignored and excluded classes."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from pathlib import Path
from typing import Any, Final, Literal, TypedDict, get_args

import numpy as np
from numpy.typing import NDArray

from segiou._support.arguments import (
    check_choice,
    check_integer,
    check_kind,
    is_several,
    level_of_caller,
    refuse_kind,
)
from segiou._support.text import Json
from segiou.labels.label_set import LEAST_VALUE, MOST_VALUE, LabelSet
from segiou.labels.loading import load_labels

Unassigned = Literal["error", "count"]
Labels = LabelSet | str | Path | Sequence[str] | Sequence[int | None] | Mapping[str, Any] | int


class ClassArguments(TypedDict, total=False):
    """Arguments of :class:`segiou.ConfusionMatrix` beside the classes, for type checkers."""

    pred_labels: Labels | None
    ignore: int | str | Iterable[int | str]
    exclude: int | str | Iterable[int | str]
    unassigned: Unassigned


#: Arguments of :meth:`ClassOptions.of`, with the same names in every function that scores.
CLASS_ARGUMENTS: Final = ("labels", *ClassArguments.__annotations__)


@dataclass(frozen=True)
class ClassOptions:
    """The classes, and the options that determine how their pixels are counted.

    Attributes
    ----------
    labels : LabelSet
        Classes and encoding of the truth.
    pred_labels : LabelSet
        Encoding of the predictions: class names of the truth in any order, of those that
        may be predicted.
    ignore : tuple of int
        Truth values whose pixels are ignored, including those of the label set.
    exclude : tuple of int
        Indices of classes excluded from means.
    unassigned : {"error", "count"}
        Treatment of predictions outside all classes on valid pixels.
    """

    labels: LabelSet
    pred_labels: LabelSet
    ignore: tuple[int, ...] = ()
    exclude: tuple[int, ...] = ()
    unassigned: Unassigned = "error"

    @classmethod
    def of(
        cls,
        labels: Labels,
        *,
        pred_labels: Labels | None = None,
        ignore: int | str | Iterable[int | str] = (),
        exclude: int | str | Iterable[int | str] = (),
        unassigned: Unassigned = "error",
    ) -> ClassOptions:
        """Build the options from the arguments of :class:`segiou.ConfusionMatrix`.

        Parameters
        ----------
        labels, pred_labels, ignore, exclude, unassigned
            As for :class:`segiou.ConfusionMatrix`.

        Raises
        ------
        TypeError
            If an argument is of the wrong kind.
        ValueError
            If a class is unknown, or the predictions have other classes than the truth.
        """
        check_choice("unassigned", unassigned, get_args(Unassigned))
        truth_set = load_labels(labels)
        _check_valued(truth_set)
        pred_set = truth_set if pred_labels is None else _predicted(truth_set, pred_labels)
        return cls(
            truth_set,
            pred_set,
            ignore=_ignored_values(truth_set, ignore),
            exclude=class_indices("exclude", truth_set, exclude),
            unassigned=unassigned,
        )

    @property
    def num_classes(self) -> int:
        """Number of classes, C."""
        return self.labels.num_classes

    @property
    def include(self) -> NDArray[np.bool_]:
        """False for the excluded classes, (C,)."""
        include = np.ones(self.num_classes, dtype=bool)
        include[list(self.exclude)] = False
        return include

    @property
    def decided_values(self) -> NDArray[Any]:
        """The value in predictions of each class that scores decide, (C,).

        Raises
        ------
        ValueError
            If a class has none.
        """
        values = {label.name: label.values[0] for label in self.pred_labels.classes}
        if missing := [name for name in self.labels.class_names if name not in values]:
            msg = (
                f"pred_labels has no value for class {missing[0]!r}, but scores have a channel "
                "for each class; omit pred_labels (--pred-labels)"
            )
            raise ValueError(msg)
        return np.array([values[name] for name in self.labels.class_names])

    @property
    def groups(self) -> tuple[tuple[str, tuple[int, ...]], ...]:
        """Groups as class indices."""
        return tuple(
            (name, tuple(self.labels.index(m) for m in members))
            for name, members in self.labels.groups.items()
        )

    @property
    def structures(self) -> dict[str, tuple[int, ...]]:
        """Groups of the label set, or else its included classes other than value 0."""
        if self.groups:
            return dict(self.groups)
        values, names = self.labels.class_values, self.labels.class_names
        kept = [c for c in np.flatnonzero(self.include).tolist() if values[c] != (0,)]
        return {names[c]: (c,) for c in kept}

    def warn_of_ignored_classes(self) -> None:
        """Warn if a declared class is ignored."""
        ignored = set(self.ignore)
        names = [repr(c.name) for c in self.labels.classes if ignored.intersection(c.values)]
        text = (
            f"ignore includes values of the declared class {', '.join(names)}: predictions on its "
            "pixels are not counted, so false positives there disappear and the IoU of other "
            "classes approaches their recall. To leave a class out of the mean only, use exclude"
        )
        if names:
            warnings.warn(text, stacklevel=level_of_caller())

    def check_scores(self, shape: tuple[int, ...], argmax: int | None) -> None:
        """Raise an error if scores do not match the classes.

        Parameters
        ----------
        shape : tuple of int
            Shape of the scores.
        argmax : int or None
            Class axis.

        Raises
        ------
        ValueError
            If the class axis does not have one channel per class, or a threshold is
            used without exactly two classes.
        """
        if argmax is None:
            if self.num_classes != 2:
                msg = f"threshold requires two classes, got {self.num_classes}"
                raise ValueError(msg)
            if len(shape) >= 4:
                self.check_single(shape, (1, -1), "threshold=T")
        elif -len(shape) <= argmax < len(shape) and shape[argmax] != self.num_classes:
            msg = (
                f"scores of shape {shape} have {shape[argmax]} channels along axis {argmax}, "
                f"expected {self.num_classes}, one per class"
            )
            raise ValueError(msg)

    def check_single(
        self, shape: tuple[int, ...], axes: Iterable[int], threshold: str = ""
    ) -> None:
        """Raise an error for channels of the classes in place of one value per pixel.

        Exclusive and overlapping channels cannot be told from label maps by their values.

        Parameters
        ----------
        shape : tuple of int
            Shape of truth and prediction.
        axes : iterable of int
            Possible class axes.
        threshold : str, default ""
            The option that decides the scores, if there is one.

        Raises
        ------
        ValueError
            If one of the axes is as long as the classes.
        """
        number, sizes = self.num_classes, dict(enumerate(shape))
        for axis in axes:
            if number < 2 or sizes.get(axis % len(shape)) != number:
                continue
            more = f", {threshold}" if threshold else ""
            option = f" without {threshold}" if threshold else ""
            msg = (
                f"arrays of shape {shape} have {number} channels along axis {axis}, one per class, "
                "but expected one value per pixel. For channels that may overlap, use "
                f"segiou.ChannelCounts({number}).update(truth, pred, axis={axis}{more}); for "
                f"exclusive classes, pass truth.argmax({axis}) and pred.argmax({axis}){option}; "
                "for label maps of this shape, pass truth.ravel() and pred.ravel()"
            )
            raise ValueError(msg)

    def difference(self, other: ClassOptions) -> str:
        """Describe how the options differ; empty if they do not.

        Parameters
        ----------
        other : ClassOptions
            Options to compare with.
        """
        mine: Any = self.to_dict()
        theirs: Any = other.to_dict()
        return "; ".join(
            f"{key}: {_label_difference(value, theirs[key])}"
            if isinstance(value, dict)
            else f"{key} is {value} here and {theirs[key]} there"
            for key, value in mine.items()
            if value != theirs[key]
        )

    def to_dict(self) -> dict[str, Json]:
        """The options as plain data."""
        return {
            "labels": self.labels.to_dict(),
            "pred_labels": self.pred_labels.to_dict(),
            "ignore": sorted(self.ignore),
            "exclude": sorted(self.exclude),
            "unassigned": self.unassigned,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ClassOptions:
        """Rebuild the options from :meth:`to_dict`.

        Parameters
        ----------
        data : mapping
            Result of :meth:`to_dict`.
        """
        check_kind("data", data, Mapping, "a mapping, as from to_dict")
        truth, pred = (LabelSet.from_dict(data[side]) for side in ("labels", "pred_labels"))
        return cls(truth, pred, tuple(data["ignore"]), tuple(data["exclude"]), data["unassigned"])


def _check_valued(labels: LabelSet) -> None:
    for entry in labels.classes:
        if not entry.values:
            msg = (
                f"class {entry.name!r} has no values; list the file values that map to it (only "
                "pred_labels may have classes without values, which are never predicted)"
            )
            raise ValueError(msg)


def _predicted(labels: LabelSet, given: Labels) -> LabelSet:
    """The classes of predictions: a label set, or the declared classes with other values."""
    from segiou.labels.listed_classes import listed_values

    if (values := listed_values(given)) is not None:
        return labels.with_values(values)
    pred_set = load_labels(given)
    missing = [name for name in labels.class_names if name not in pred_set.class_names]
    if unknown := [name for name in pred_set.class_names if name not in labels.class_names]:
        msg = (
            f"pred_labels {pred_set.name!r} must have the same class names as labels "
            f"{labels.name!r}, or those that can be predicted: unknown {unknown}, missing "
            f"{missing or 'none'}"
        )
        raise ValueError(msg)
    kept = tuple(label for label in pred_set.classes if label.values)
    if len(kept) == len(pred_set.classes):
        return pred_set
    return replace(pred_set, classes=kept, groups={})


def _several(name: str, items: int | str | Iterable[int | str]) -> list[int | str]:
    several: list[Any] = [*items] if is_several(items) else [items]
    for item in several:
        if isinstance(item, bool) or not isinstance(item, (str, Integral)):
            raise refuse_kind(name, item, "an integer or a class name, or several")
    return [item if isinstance(item, str) else int(item) for item in several]


def _ignored_values(labels: LabelSet, ignore: int | str | Iterable[int | str]) -> tuple[int, ...]:
    values = list(labels.ignore)
    for item in _several("ignore", ignore):
        if isinstance(item, str):
            values += labels.classes[labels.index(item)].values
        else:
            values.append(check_integer("ignore", item, LEAST_VALUE, MOST_VALUE))
    return tuple(dict.fromkeys(values))


def class_indices(
    name: str, labels: LabelSet, classes: int | str | Iterable[int | str]
) -> tuple[int, ...]:
    """Indices of classes given by name or index; ``name`` is the option."""
    indices = []
    for item in _several(name, classes):
        index = labels.index(item) if isinstance(item, str) else item
        if not 0 <= index < labels.num_classes:
            known = f"expected an index from 0 to {labels.num_classes - 1}, or a class name"
            msg = f"{name}: no class {index}, {known}; mask values are not accepted"
            raise ValueError(msg)
        indices.append(index)
    return tuple(dict.fromkeys(indices))


def structure_indices(
    name: str, classes: ClassOptions, chosen: tuple[int | str, ...], *, volumes: bool
) -> tuple[int, ...]:
    """Indices of the chosen classes; all but the background (value 0 in volumes or of two)."""
    if chosen:
        return class_indices(name, classes.labels, chosen)
    values = classes.labels.class_values
    lone = volumes or len(values) == 2
    return tuple(c for c, of_class in enumerate(values) if not (lone and of_class == (0,)))


def _label_difference(mine: Mapping[str, Any], theirs: Mapping[str, Any]) -> str:
    if mine["name"] != theirs["name"]:
        return f"{mine['name']!r} here and {theirs['name']!r} there"
    classes = mine["classes"], theirs["classes"]
    if len(classes[0]) != len(classes[1]):
        return f"{len(classes[0])} classes here and {len(classes[1])} there"
    for a, b in zip(*classes, strict=True):
        if a != b:
            return f"class {a} here and {b} there"
    changed = [key for key in mine if mine[key] != theirs[key]]
    return f"{', '.join(changed)} of label set {mine['name']!r} differ"
