"""The few array operations that counting needs, in each framework's own words.

Torch, JAX, CuPy and TensorFlow differ only in how they spell a look-up, a
histogram and a maximum. None is imported here: a tensor brings its own.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou.counting.devices import framework_of, is_on_device, to_host

__all__ = ["Operations"]


class Operations:
    """What differs between frameworks, for one device.

    The names of NumPy hold for JAX and mostly for CuPy; Torch and TensorFlow override.

    Attributes
    ----------
    name : str
        The framework.
    xp : module
        Its NumPy-like module.
    device : object
        Where the arrays are.
    limit : int or None
        Pixels that may be added up before a counter could overflow.
    """

    limit: int | None = None

    def __init__(self, name: str, xp: Any, device: Any) -> None:
        self.name = name
        self.xp = xp
        self.device = device

    @property
    def place(self) -> tuple[str, str]:
        """The framework and its device, by names: not every device can be a key."""
        return self.name, str(self.device)

    def here(self) -> AbstractContextManager[Any]:
        """A context in which new arrays are made on the device."""
        return nullcontext()

    def array(self, data: Any) -> Any:
        """Bring labels, scores or a mask to the device."""
        framework = framework_of(data)
        if framework == self.name:
            return self.own(data)
        if framework and is_on_device(data) and hasattr(self.xp, "from_dlpack"):
            return self.own(self.xp.from_dlpack(data))
        return self.from_host(_plain(to_host(data)))

    def own(self, tensor: Any) -> Any:
        """One of the framework's tensors, on the device."""
        return tensor

    def from_host(self, array: NDArray[Any]) -> Any:
        """A NumPy array, on the device."""
        return self.xp.asarray(array)

    def kind(self, array: Any) -> str:
        """Kind of a dtype as NumPy's letter: b, i, u, f or another."""
        return "f" if "float" in str(array.dtype) else str(np.dtype(array.dtype).kind)

    @property
    def widest(self) -> int:
        """Bits of the widest integer."""
        return 64

    def wide(self, labels: Any, bits: int) -> Any:
        """Labels as integers of 32 or 64 bits, never wrapped."""
        return labels.astype(f"int{bits}")

    def clip(self, values: Any, low: int, high: int) -> Any:
        """Values outside the bounds become the bounds."""
        return self.xp.clip(values, low, high)

    def take(self, table: Any, index: Any) -> Any:
        """Look each index up."""
        return self.xp.take(table, index)

    def where(self, condition: Any, a: Any, b: Any) -> Any:
        """Elements of `a` where the condition holds, else `b`."""
        return self.xp.where(condition, a, b)

    def largest(self, values: Any, start: int) -> Any:
        """The largest value, at least `start`, as an array of one."""
        return self.xp.max(values.ravel(), keepdims=True, initial=start)

    def maximum(self, a: Any, b: Any) -> Any:
        """The larger of each."""
        return self.xp.maximum(a, b)

    def argmax(self, scores: Any, axis: int) -> tuple[Any, Any]:
        """Position of the first largest score, and where it is NaN."""
        return self.xp.argmax(scores, axis), self.isnan(self.xp.max(scores, axis))

    def isnan(self, scores: Any) -> Any:
        """Where a score is NaN."""
        return scores != scores

    def total(self, condition: Any) -> Any:
        """How often the condition holds, as an array of one counter."""
        return self.xp.sum(condition.ravel(), keepdims=True).astype(f"int{self.widest}")

    def histogram(self, index: Any, length: int) -> Any:
        """How often each of 0 … length − 1 occurs."""
        return self.xp.bincount(index.ravel(), minlength=length)

    def join(self, parts: list[Any]) -> Any:
        """One vector of several."""
        return self.xp.concatenate(parts)


def _plain(array: NDArray[Any]) -> NDArray[Any]:
    # Tensors know neither foreign byte order nor negative strides.
    return np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("="))
