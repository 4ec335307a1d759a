"""Label values of a side, by their codes: classes, ignored values and undeclared ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou.counting import reference
from segiou.counting.arrays import name_of

#: A look-up table of 2^24 entries takes 32 MiB; a wider range is usually a mistake.
_MAX_SPREAD = 1 << 24
MAX_CLASSES = (1 << 16) - 2


@dataclass(frozen=True, eq=False)
class ValueCodes:
    """Codes of the label values of truth or prediction; value ``v`` has code ``codes[v - low]``.

    Codes below ``num_classes`` are classes. In the truth ``num_classes`` means
    ignored and ``num_classes + 1`` undeclared; in the prediction
    ``num_classes`` means undeclared.

    Attributes
    ----------
    low : int
        Smallest value in the table.
    codes : ndarray of uint16
        A code for each value from ``low`` on.
    undeclared : int
        The code of every other value.
    far : tuple of int
        Ignored values too far from the classes to be in the table.
    """

    low: int
    codes: NDArray[np.uint16]
    undeclared: int
    far: tuple[int, ...] = ()

    @classmethod
    def of(
        cls, class_values: Sequence[Sequence[int]], ignore: Iterable[int] | None = None
    ) -> ValueCodes:
        """Build from the values of each class; ignored values take precedence over classes.

        Parameters
        ----------
        class_values : sequence of sequence of int
            The values of each class.
        ignore : iterable of int, optional
            Truth values whose pixels are dropped; None for predictions.
        """
        num_classes = len(class_values)
        if num_classes > MAX_CLASSES:
            msg = f"at most {MAX_CLASSES} classes can be counted, got {num_classes}"
            raise ValueError(msg)
        table = {v: code for code, values in enumerate(class_values) for v in values}
        low, high = min(table, default=0), max(table, default=0)
        if high - low >= _MAX_SPREAD:
            msg = (
                f"class values range from {low} to {high}, which is more than {_MAX_SPREAD} "
                "values; renumber the masks, or map packed colours to labels first"
            )
            raise ValueError(msg)
        far, undeclared = [], num_classes + (ignore is not None)
        for value in sorted(ignore or (), key=lambda v: max(low - v, v - high)):
            if max(high, value) - min(low, value) >= _MAX_SPREAD:
                far.append(value)
            else:
                low, high = min(low, value), max(high, value)
                table[value] = num_classes
        codes = np.full(high - low + 1, undeclared, dtype=np.uint16)
        codes[np.array([value - low for value in table], np.intp)] = list(table.values())
        codes.setflags(write=False)
        return cls(low, codes, undeclared, tuple(far))

    def codes_of(self, labels: NDArray[Any]) -> NDArray[np.uint16]:
        """Code of each label.

        Parameters
        ----------
        labels : ndarray
            Label values.

        Returns
        -------
        ndarray of uint16
        """
        codes = np.empty(labels.shape, np.uint16)
        look_up = reference.finder(labels.dtype, self.low, self.codes, self.undeclared)
        for block in reference.iter_blocks(labels.shape):
            codes[block] = look_up(labels[(*block, ...)])  # an array even for one value
        if self.far:
            codes[self.is_far(labels)] = self.undeclared - 1  # only truth values can be far
        return codes

    def table(self, dtype: np.dtype[Any]) -> tuple[int, NDArray[np.uint16]]:
        """First value that a dtype holds, and the codes from it on; last that of all others.

        Parameters
        ----------
        dtype : dtype
            Type of the labels.

        Returns
        -------
        tuple of int and ndarray of uint16
            The value is modulo 2^64. Values of `far` are not in the table.
        """
        return reference.values_table(dtype, self.low, self.codes, self.undeclared)

    def is_far(self, labels: NDArray[Any]) -> NDArray[np.bool_]:
        """Whether each label is an ignored value outside the table.

        Parameters
        ----------
        labels : ndarray
            Label values.
        """
        values = [v for v in self.far if can_hold(labels.dtype, v)]
        if len(values) == 1:
            return np.asarray(labels == labels.dtype.type(values[0]))
        return np.isin(labels, np.array(values, dtype=labels.dtype))


def can_hold(dtype: Any, value: int) -> bool:
    """Whether an integer dtype, or bool, can represent a value; JAX also has int4."""
    name = name_of(dtype)
    bits = 1 if name == "bool" else int(name.lstrip("uint"))
    low = -(1 << (bits - 1)) if name.startswith("int") else 0
    return low <= value < low + (1 << bits)
