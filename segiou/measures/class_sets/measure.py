"""The measure of sets of classes: mean IoU of each set, and their harmonic mean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from segiou._support.arguments import check_kind, read_several
from segiou._support.text import listed
from segiou.labels.class_options import ClassOptions, class_indices
from segiou.measures.mask_pair import Masks
from segiou.measures.matrices import MatrixPlan, table_sums
from segiou.measures.measure import Measure
from segiou.measures.plan import Plan
from segiou.measures.score import Score
from segiou.metrics.ratio import Floats, ratio

#: Stands for the included classes of no other set.
REST = "rest"


@dataclass(frozen=True)
class ClassSetOptions(Measure):
    """Mean IoU of named sets of classes, and the harmonic mean of the sets (hIoU).

    Attributes
    ----------
    sets : mapping of str to sequence of str or int
        Names or indices of the classes of each set, by its name; ``"rest"`` for the included
        classes of no other set. By default, one set of all.

    Raises
    ------
    TypeError
        If a value has the wrong type.
    ValueError
        If a set is empty or named twice.

    References
    ----------
    Y. Xian et al., Semantic projection network for zero- and few-label semantic segmentation,
    CVPR 2019, 8256-8265 (harmonic mean of seen and unseen classes).

    Examples
    --------
    >>> ClassSetOptions({"novel": ["bus", "train"], "base": "rest"})
    ClassSetOptions(sets=(('novel', ('bus', 'train')), ('base', ('rest',))))
    """

    key: ClassVar[str] = "class_sets"
    title: ClassVar[str] = "Sets of classes"
    score_names: ClassVar[tuple[str, ...]] = ("set_iou",)

    sets: tuple[tuple[str, tuple[str | int, ...]], ...] = (("all", (REST,)),)

    def __post_init__(self) -> None:
        object.__setattr__(self, "sets", _checked(self.sets))

    @classmethod
    def from_options(
        cls, given: Mapping[str, Any], classes: ClassOptions
    ) -> ClassSetOptions | None:
        """Options from the command line: ``NAME=CLASS,CLASS``."""
        if not (texts := given.get("class_sets")):
            return None
        sets = []
        for text in texts:
            name, equals, names = text.partition("=")
            if not (name and equals and names):
                msg = f"--class-sets {text}: expected NAME=CLASS,CLASS or NAME=rest"
                raise ValueError(msg)
            sets.append((name, names.split(",")))
        return cls(tuple(sets))

    def plan(self, classes: ClassOptions, masks: Masks) -> Plan:
        """The plan for these classes; ValueError if a class is unknown or in two sets."""
        return ClassSetPlan(self, classes, masks)


def _checked(sets: Any) -> tuple[tuple[str, tuple[str | int, ...]], ...]:
    entries = sets.items() if isinstance(sets, Mapping) else sets
    wanted = "names with their classes, such as {'novel': ['bus'], 'base': 'rest'}"
    checked: dict[str, tuple[str | int, ...]] = {}
    for entry in read_several("sets", entries, wanted):
        if not isinstance(entry, (tuple, list)) or len(entry) != 2:
            msg = f"sets must be {wanted}, got {entry!r}"
            raise ValueError(msg)
        name, classes = entry
        check_kind("the name of a set of classes", name, str, "text")
        members = (
            (classes,)
            if isinstance(classes, str) and classes == REST
            else read_several(name, classes, "classes")
        )
        if name in checked or not members:
            msg = f"the set of classes {name!r} is {'empty' if not members else 'given twice'}"
            raise ValueError(msg)
        checked[name] = tuple(members)
    if not checked:
        msg = f"sets is empty; expected {wanted}"
        raise ValueError(msg)
    return tuple(checked.items())


@dataclass(frozen=True)
class ClassSetPlan(MatrixPlan):
    """Plan of the measure of sets of classes."""

    measure: ClassSetOptions

    def __post_init__(self) -> None:
        _ = self.members

    @property
    def options_text(self) -> str:
        """The classes of each set."""
        names = np.array(self.classes.labels.class_names, object)
        sets = zip(self.measure.sets, self.members, strict=True)
        return "; ".join(f"{name}: {listed(names[row].tolist(), 8)}" for (name, _), row in sets)

    @cached_property
    def members(self) -> NDArray[np.bool_]:
        """Whether each set has each class, (S, C)."""
        number = self.classes.num_classes
        chosen = {
            name: class_indices(f"the set {name}", self.classes.labels, classes)
            for name, classes in self.measure.sets
            if classes != (REST,)
        }
        taken = [*chain(*chosen.values())]
        if twice := sorted({index for index in taken if taken.count(index) > 1}):
            msg = f"class {self.classes.labels.class_names[twice[0]]!r} is in two sets of classes"
            raise ValueError(msg)
        rest = np.flatnonzero(self.classes.include & ~np.isin(np.arange(number), taken))
        members = np.zeros((len(self.measure.sets), number), bool)
        for row, (name, _) in zip(members, self.measure.sets, strict=True):
            row[[*chosen.get(name, rest)]] = True
        return members

    @cached_property
    def scores(self) -> Mapping[str, Score]:
        """Mean IoU of each set, and the harmonic mean of these."""
        names = tuple(name for name, _ in self.measure.sets)
        overall = "harmonic mean"
        score = Score("set_iou", "mIoU", names, table_sums, self._evaluate, overall=overall)
        return {score.name: score}

    def _evaluate(self, sums: NDArray[Any]) -> Floats:
        tables = self.tables(sums)
        tp = np.diagonal(tables, axis1=-2, axis2=-1)
        iou = ratio(tp, tables.sum(-1) + tables[..., :-1].sum(-2) - tp)[..., None, :]
        known = ~np.isnan(iou) & self.members
        means = ratio(np.where(known, iou, 0.0).sum(-1), known.sum(-1))
        return np.concatenate([_harmonic(means)[..., None], means], axis=-1)


def _harmonic(means: Floats) -> Floats:
    """Harmonic mean of values (..., S); 0 if one is 0, NaN if one is undefined."""
    is_zero = (means == 0).any(-1) & ~np.isnan(means).any(-1)
    inverse = np.where(means == 0, np.nan, 1 / np.where(means == 0, 1, means)).sum(-1)
    return np.where(is_zero, 0.0, means.shape[-1] / inverse)
