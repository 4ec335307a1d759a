"""Measures of selected classes, or of one class."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou._support.arguments import read_several
from segiou.labels.class_options import class_indices, structure_indices
from segiou.measures.measure import Measure
from segiou.measures.plan import Plan


@dataclass(frozen=True)
class StructureOptions(Measure):
    """Options of a measure of chosen classes.

    Attributes
    ----------
    classes : tuple of str or int
        Names or indices of the scored classes; by default all but the background, which is
        the class of value 0 if the masks are volumes or there are two classes.
    """

    classes: tuple[str | int, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "classes", tuple(read_several("classes", self.classes, "classes")))


@dataclass(frozen=True)
class StructurePlan(Plan):
    """Plan of a measure of chosen classes."""

    def __post_init__(self) -> None:
        _ = self.scored  # an unknown class is found before anything is counted

    @cached_property
    def scored(self) -> tuple[int, ...]:
        """Indices of the classes that are scored."""
        chosen, volumes = self.measure.classes, self.masks.volumes
        return structure_indices(f"{self.key}-classes", self.classes, chosen, volumes=volumes)

    @property
    def is_scored(self) -> NDArray[np.bool_]:
        """Whether each class is scored, (C,)."""
        every: Any = np.arange(self.classes.num_classes)
        return np.isin(every, self.scored)


@dataclass(frozen=True)
class TargetPlan(Plan):
    """Plan of a measure of one class: its option ``target``, or the second of two classes."""

    def __post_init__(self) -> None:
        _ = self.target

    @cached_property
    def target(self) -> int:
        """Index of the class; ValueError if it is unknown."""
        chosen = class_indices(f"{self.key}-target", self.classes.labels, self.measure.target)
        if len(chosen) == 1:
            return chosen[0]
        if chosen or self.classes.num_classes != 2:
            msg = (
                f"the measure {self.key!r} needs exactly one class; pass --{self.key}-target CLASS "
                f"(target=(CLASS,)) with one of {', '.join(self.classes.labels.class_names)}"
            )
            raise ValueError(msg)
        return 1

    @property
    def target_name(self) -> str:
        """Name of the class."""
        return self.classes.labels.class_names[self.target]
