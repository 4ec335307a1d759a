"""Which classes are scored and how their labels are read: one object for every scorer."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from segiou._support.arguments import check_choice, refuse_kind
from segiou._support.text import Json
from segiou.labels.label_set import LEAST_VALUE, MOST_VALUE, LabelSet, load_labels

Unassigned = Literal["error", "count"]
Labels = LabelSet | str | Path | Sequence[str] | Mapping[str, Any] | int


@dataclass(frozen=True)
class ClassOptions:
    """The classes, and all that decides how their pixels are counted.

    Attributes
    ----------
    labels : LabelSet
        Classes, and the encoding of the truth.
    pred_labels : LabelSet
        Encoding of the predictions; the same class names in any order.
    ignore : tuple of int
        Truth values whose pixels are dropped, the label set's own included.
    exclude : tuple of int
        Indices of classes that are left out of means.
    unassigned : {"error", "count"}
        What a prediction that names no class is on a valid pixel.
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
        """Read a caller's options; they are those of :class:`segiou.ConfusionMatrix`.

        Parameters
        ----------
        labels : Labels
            A label set, its name, names of classes, or their number.
        pred_labels : Labels, optional
            Classes of the prediction; by default those of the truth.
        ignore : int or str or iterable of int or str, optional
            Truth values whose pixels are dropped.
        exclude : int or str or iterable of int or str, optional
            Classes that stay out of means.
        unassigned : Unassigned, default "error"
            What happens where a prediction names no class.

        Raises
        ------
        TypeError
            If an argument is of the wrong kind.
        ValueError
            If a name or index is no class, or the prediction's classes are not
            the truth's.
        """
        check_choice("unassigned", unassigned, get_args(Unassigned))
        truth_set = load_labels(labels)
        pred_set = truth_set if pred_labels is None else load_labels(pred_labels)
        _check_same_classes(truth_set, pred_set)
        return cls(
            truth_set,
            pred_set,
            ignore=_ignored_values(truth_set, ignore),
            exclude=class_indices("exclude", truth_set, exclude),
            unassigned=unassigned,
        )

    @property
    def num_classes(self) -> int:
        """C."""
        return self.labels.num_classes

    @property
    def include(self) -> NDArray[np.bool_]:
        """False for the excluded classes, (C,)."""
        include = np.ones(self.num_classes, dtype=bool)
        include[list(self.exclude)] = False
        return include

    @property
    def groups(self) -> tuple[tuple[str, tuple[int, ...]], ...]:
        """Groups as class indices."""
        return tuple(
            (name, tuple(self.labels.index(m) for m in members))
            for name, members in self.labels.groups.items()
        )

    def warn_of_ignored_classes(self, *, stacklevel: int) -> None:
        """Say what it means to ignore a declared class, if one is ignored.

        Parameters
        ----------
        stacklevel : int
            As :func:`warnings.warn` takes it.
        """
        ignored = set(self.ignore)
        names = [repr(c.name) for c in self.labels.classes if ignored.intersection(c.values)]
        text = (
            f"ignored values belong to the declared class {', '.join(names)}: what is predicted on "
            "its pixels is never counted, so the IoU of the other classes tends to their recall. "
            "To keep a class out of the mean only, use exclude instead of ignore"
        )
        if names:
            warnings.warn(text, stacklevel=stacklevel)

    def check_scores(self, shape: tuple[int, ...], argmax: int | None) -> None:
        """Refuse scores that do not fit the classes.

        Parameters
        ----------
        shape : tuple of int
            Shape of the scores.
        argmax : int or None
            Axis of the classes.

        Raises
        ------
        ValueError
            If the class axis has not one channel a class, or a threshold is
            used with other than two classes.
        """
        if argmax is None:
            if self.num_classes != 2:
                msg = f"threshold decides between two classes, but there are {self.num_classes}"
                raise ValueError(msg)
        elif -len(shape) <= argmax < len(shape) and shape[argmax] != self.num_classes:
            msg = (
                f"scores of shape {shape} have {shape[argmax]} channels along axis {argmax}, "
                f"but there are {self.num_classes} classes"
            )
            raise ValueError(msg)

    def difference(self, other: ClassOptions) -> str:
        """Say in words how the options differ; empty if they do not.

        Parameters
        ----------
        other : ClassOptions
            What to compare with.

        Returns
        -------
        str
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
        """Read what :meth:`to_dict` gave.

        Parameters
        ----------
        data : mapping
            What :meth:`to_dict` gave.
        """
        truth, pred = (LabelSet.from_dict(data[side]) for side in ("labels", "pred_labels"))
        return cls(truth, pred, tuple(data["ignore"]), tuple(data["exclude"]), data["unassigned"])


def _check_same_classes(truth_set: LabelSet, pred_set: LabelSet) -> None:
    missing = sorted(set(truth_set.class_names) - set(pred_set.class_names))
    extra = sorted(set(pred_set.class_names) - set(truth_set.class_names))
    if missing or extra:
        msg = (
            f"pred_labels {pred_set.name!r} must name the same classes as labels "
            f"{truth_set.name!r}: missing {missing or 'none'}, unknown {extra or 'none'}"
        )
        raise ValueError(msg)


def _several(name: str, items: int | str | Iterable[int | str]) -> list[int | str]:
    found = [items] if isinstance(items, str) or not isinstance(items, Iterable) else list(items)
    for item in found:
        if isinstance(item, bool) or not isinstance(item, (str, Integral)):
            raise refuse_kind(name, item, "an integer or a class name, or several")
    return [item if isinstance(item, str) else int(item) for item in found]


def _ignored_values(labels: LabelSet, ignore: int | str | Iterable[int | str]) -> tuple[int, ...]:
    values = list(labels.ignore)
    for item in _several("ignore", ignore):
        if isinstance(item, str):
            values += labels.classes[labels.index(item)].values
        elif not LEAST_VALUE <= item <= MOST_VALUE:
            msg = f"ignore: {item} is no value that a mask can hold; they are integers of 64 bits"
            raise ValueError(msg)
        else:
            values.append(item)
    return tuple(dict.fromkeys(values))


def class_indices(
    name: str, labels: LabelSet, classes: int | str | Iterable[int | str]
) -> tuple[int, ...]:
    """The indices of classes that an option of this name gives, by name or index."""
    indices = []
    for item in _several(name, classes):
        index = labels.index(item) if isinstance(item, str) else item
        if not 0 <= index < labels.num_classes:
            known = f"only 0 to {labels.num_classes - 1} (not mask values); or give names"
            msg = f"{name}: there is no class {index}, {known}"
            raise ValueError(msg)
        indices.append(index)
    return tuple(dict.fromkeys(indices))


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


def class_word(name: str, index: int) -> str:
    """A class as the command line takes it: by name, where a name is taken as one."""
    simple = "," not in name and name == name.strip() and not name.lstrip("+-").isdecimal()
    return name if simple else str(index)
