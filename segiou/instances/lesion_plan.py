"""The built-in measure of lesions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from segiou.instances.lesions import LESION_PROTOCOLS, lesion_scores
from segiou.labels.class_options import ClassOptions
from segiou.measures.measure import MaskPair, Masks, Measure, Plan, Score
from segiou.measures.parts import Field, Layout, Parts
from segiou.metrics.ratio import Floats, ratio

_UNIT = 2.0**-20


@dataclass(frozen=True)
class LesionMeasure(Measure):
    """Found, missed and false-positive lesions and their overlap, by the rules of a challenge."""

    key: ClassVar[str] = "lesions"
    title: ClassVar[str] = "Lesions"
    score_names: ClassVar[tuple[str, ...]] = ("lesion_f1", "lesion_dice", "lesion_hd95")

    protocol: str = "brats2023-gli"

    @classmethod
    def asked(cls, given: Mapping[str, Any], classes: ClassOptions) -> LesionMeasure | None:
        """Options from the command line."""
        return cls(given["lesions"]) if given.get("lesions") else None

    def words(self, labels: Any) -> list[str]:
        """Command-line arguments that select these options."""
        return [f"--lesions={self.protocol}"]

    def plan(self, classes: ClassOptions, masks: Masks) -> LesionPlan:
        """The plan for these classes."""
        return LesionPlan(self, classes, masks)


@dataclass(frozen=True)
class LesionPlan(Plan):
    """Lesions of the regions of a protocol."""

    @cached_property
    def _regions(self) -> tuple[str, ...]:
        own = LESION_PROTOCOLS[self.measure.protocol].regions
        every = (v for several in self.classes.labels.class_values for v in several if v)
        return tuple(own) if own is not None else tuple(str(v) for v in sorted(every))

    @property
    def layout(self) -> Layout:
        """Found, missed and false-positive lesions; mean Dice and HD95 per case."""
        number = len(self._regions)
        return {"lesions": Field((number, 3)), "cases": Field((number, 2), rows=True, floats=True)}

    def count(self, pair: MaskPair) -> Parts:
        """Score the lesions of a case."""
        spacing = self.masks.spacing or pair.spacing
        found = lesion_scores(
            pair.truth, pair.pred, spacing=spacing, protocol=self.measure.protocol
        )
        none = dict.fromkeys(("tp", "fn", "fp"), 0) | {"dice": np.nan, "hausdorff_95": np.nan}
        rows: list[Any] = [found.get(name, none) for name in self._regions]
        numbers = [[row[name] for name in ("tp", "fn", "fp")] for row in rows]
        cases = [[[row["dice"], row["hausdorff_95"]] for row in rows]]
        return Parts.of(self.layout, lesions=numbers, cases=cases)

    @cached_property
    def scores(self) -> Mapping[str, Score]:
        """F1 over all lesions, and means over the cases."""
        names, every = self._regions, np.ones(len(self._regions), bool)
        unit = "mm" if self.masks.volumes else "px"
        return {
            "lesion_f1": Score.of_names(
                "lesion_f1", "lesion F1", names, every, lambda p: p["lesions"], _f1
            ),
            "lesion_dice": Score.of_names(
                "lesion_dice",
                "lesion Dice",
                names,
                every,
                lambda p: _fixed(p, 0),
                _mean,
                rule="cases",
            ),
            "lesion_hd95": Score.of_names(
                "lesion_hd95",
                "lesion HD95",
                names,
                every,
                lambda p: _fixed(p, 1),
                _mean,
                rule="cases",
                unit=unit,
                better="lower",
            ),
        }


def _f1(n: NDArray[Any]) -> Floats:
    return ratio(2 * n[..., 0], 2 * n[..., 0] + n[..., 1] + n[..., 2])


def _fixed(parts: Parts, at: int) -> NDArray[np.int64]:
    values = parts["cases"][..., at]
    units = np.rint(np.nan_to_num(values) / _UNIT).astype(np.int64)
    return np.stack([units, np.isfinite(values)], axis=-1)


def _mean(numbers: NDArray[Any]) -> Floats:
    return ratio(numbers[..., 0] * _UNIT, numbers[..., 1])
