"""What each value of a label array stands for, as a look-up table.

All maps are applied by one look-up, at once: a chain of replacements
(6 → 9, 9 → 7) can therefore never turn a 6 into a 7.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["ValueCodes"]

#: A look-up table of 2^24 entries takes 32 MiB; wider spreads are a mistake more often than a map.
_MAX_SPREAD = 1 << 24
_MAX_CLASSES = (1 << 16) - 2


@dataclass(frozen=True, eq=False)
class ValueCodes:
    """Codes of the values of one side: value ``v`` has code ``codes[v - low]``.

    Codes below ``num_classes`` are classes. In the truth ``num_classes`` means
    ignored and ``num_classes + 1`` undeclared; in the prediction
    ``num_classes`` means undeclared.

    Attributes
    ----------
    low : int
        Smallest value in the table.
    codes : ndarray of uint16
        A code for each value from ``low`` on; values outside are undeclared.
    undeclared : int
        The code of every value that the table does not hold.
    """

    low: int
    codes: NDArray[np.uint16]
    undeclared: int

    @classmethod
    def of_truth(
        cls, class_values: Sequence[Sequence[int]], ignore: Iterable[int] = ()
    ) -> ValueCodes:
        """Codes of truth values; an ignored value is ignored even if it is also a class's."""
        table = {v: code for code, values in enumerate(class_values) for v in values}
        table |= dict.fromkeys(ignore, len(class_values))
        return cls._from_table(table, len(class_values), undeclared=len(class_values) + 1)

    @classmethod
    def of_pred(cls, class_values: Sequence[Sequence[int]]) -> ValueCodes:
        """Codes of predicted values."""
        table = {v: code for code, values in enumerate(class_values) for v in values}
        return cls._from_table(table, len(class_values), undeclared=len(class_values))

    @classmethod
    def _from_table(cls, table: dict[int, int], num_classes: int, undeclared: int) -> ValueCodes:
        if num_classes > _MAX_CLASSES:
            msg = f"at most {_MAX_CLASSES} classes can be counted, got {num_classes}"
            raise ValueError(msg)
        low, high = min(table), max(table)
        if high - low >= _MAX_SPREAD:
            msg = (
                f"label values spread from {low} to {high}, more than {_MAX_SPREAD}; "
                "renumber the masks, or map packed colours to labels first"
            )
            raise ValueError(msg)
        codes = np.full(high - low + 1, undeclared, dtype=np.uint16)
        codes[np.array(list(table)) - low] = list(table.values())
        codes.setflags(write=False)
        return cls(low, codes, undeclared)

    def holds(self, value: int) -> bool:
        """Tell whether a value is declared: a class or, in the truth, ignored."""
        offset = value - self.low
        return 0 <= offset < len(self.codes) and int(self.codes[offset]) != self.undeclared
