"""The array operations of each framework, on a tensor's own device."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from segiou.counting.arrays import as_array, framework_of, is_on_device

#: Means "no undeclared value so far" in the maxima; fits in 32 bits.
NONE_MET = -(1 << 31)
#: Larger values are clipped to these on devices of 32 bits: floats, and integers.
LARGEST_FLOAT, LARGEST_INTEGER = (1 << 31) - 128, (1 << 31) - 1


class Operations:
    """Operations that differ between frameworks, on one device; the default is NumPy's API."""

    #: Pixels that can be added up before a counter could overflow.
    limit: int | None = None
    #: Whether a compiler joins operations; comparisons are then faster than a look-up.
    is_compiled: bool = False

    def __init__(self, name: str, xp: Any, device: Any) -> None:
        self.name = name
        self.xp = xp
        self.device = device

    @property
    def place(self) -> tuple[str, str]:
        """Names of the framework and the device; devices themselves are not all hashable."""
        return self.name, str(self.device)

    def here(self) -> AbstractContextManager[Any]:
        """A context in which new arrays are created on the device."""
        return nullcontext()

    def array(self, data: Any) -> Any:
        """Labels, scores or a mask as a tensor on the device."""
        framework = framework_of(data)
        if framework == self.name:
            return self.to_device(data)
        if framework and is_on_device(data) and hasattr(self.xp, "from_dlpack"):
            return self.to_device(self.xp.from_dlpack(data))
        return self.from_host(native(data))

    def to_device(self, tensor: Any) -> Any:
        """A tensor of this framework, moved to the device."""
        return tensor

    def from_host(self, array: NDArray[Any]) -> Any:
        """A NumPy array, copied to the device."""
        return self.xp.asarray(array)

    @property
    def widest(self) -> int:
        """Bits of the widest integer type."""
        return 64

    def wide(self, labels: Any, bits: int) -> Any:
        """Labels as signed integers of 32 or 64 bits."""
        return labels.astype(f"int{bits}")

    def clip(self, values: Any, low: int, high: int) -> Any:
        """Values limited to the bounds."""
        return self.xp.clip(values, low, high)

    def take(self, table: Any, index: Any) -> Any:
        """Entries of a table by index."""
        return self.xp.take(table, index)

    def largest(self, values: Any) -> Any:
        """The largest value, as an array of one."""
        return values.max().reshape(1)

    def argmax(self, scores: Any, axis: int) -> tuple[Any, Any]:
        """Position of the first largest score, and that score or NaN."""
        return self.xp.argmax(scores, axis), self.xp.max(scores, axis)

    def flat(self, values: Any) -> Any:
        """In one dimension for JAX; XLA may never finish compiling small arrays of more."""
        return values

    def total(self, condition: Any) -> Any:
        """Number of true values, as an array of one."""
        return condition.sum().reshape(1)

    def histogram(self, index: Any, length: int) -> Any:
        """Number of occurrences of each of 0 … length − 1."""
        return self.xp.bincount(index.ravel(), minlength=length)

    def sums(self, index: Any, weights: Any, length: int) -> Any:
        """Sum of the weights at each of 0 … length − 1."""
        return self.xp.zeros(length, dtype=weights.dtype).at[index.ravel()].add(weights.ravel())

    def real(self, values: Any) -> Any:
        """Values as floats of 32 bits."""
        return values.astype("float32")

    def join(self, parts: list[Any]) -> Any:
        """Several vectors joined into one."""
        return self.xp.concatenate(parts)

    def maxima(self, _table: Any, known: Any, _again: Any) -> Any:
        """The maxima `known()`; compiled code may skip them if the table has no such pixels."""
        return known()


def native(data: Any) -> NDArray[Any]:
    """Numbers as an array in native, contiguous memory, as tensors need; a TypeError for others."""
    array = as_array(data, "an array")
    if array.dtype.kind not in "biufV" or array.dtype.itemsize > 8:
        msg = f"an array has dtype {array.dtype}; pass integers or floats of at most 64 bits"
        raise TypeError(msg)
    return np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("="))


def clipped(labels: NDArray[Any], bits: int) -> NDArray[Any]:
    """Integers limited to the range of signed integers of 32 bits, if that is the widest type."""
    if bits == 64 or labels.dtype.kind not in "iu" or labels.dtype.itemsize < 8:
        return labels
    lowest = 0 if labels.dtype.kind == "u" else -(1 << 31)
    return labels.clip(lowest, LARGEST_INTEGER).astype(np.int32)


def three_dimensions(shape: Sequence[int], axis: int) -> tuple[int, int, int]:
    """The sizes before, along and after an axis."""
    axis %= len(shape)
    return math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])


class CuPy(Operations):
    """CuPy, which creates arrays on the current device."""

    def here(self) -> AbstractContextManager[Any]:
        """A context in which this device is the current one."""
        return cast("AbstractContextManager[Any]", self.device)


class Jax(Operations):
    """JAX, whose integers have 32 bits unless ``jax_enable_x64`` is on."""

    limit: int = 1 << 30

    def __init__(self, name: str, xp: Any, device: Any) -> None:
        super().__init__(name, xp, device)
        self.is_compiled: bool = device is None  # arrays that are being traced have no device

    def to_device(self, tensor: Any) -> Any:
        """A tensor moved from another device, unless it is spread over several."""
        devices = getattr(self.device, "device_set", {self.device})
        if self.is_compiled or len(devices) > 1 or tensor.devices() == devices:
            return tensor
        return sys.modules["jax"].device_put(tensor, self.device)

    @property
    def widest(self) -> int:
        """64 only if ``jax_enable_x64`` is on."""
        return 64 if sys.modules["jax"].config.jax_enable_x64 else 32

    def from_host(self, array: NDArray[Any]) -> Any:
        """A NumPy array, copied to the device; JAX would wrap values beyond its widest integer."""
        return self.xp.asarray(clipped(array, self.widest))

    def flat(self, values: Any) -> Any:
        """All values in one dimension."""
        return values.reshape(-1)

    def argmax(self, scores: Any, axis: int) -> tuple[Any, Any]:
        """Argmax over three dimensions, for the same reason as :meth:`Operations.flat`."""
        return super().argmax(scores.reshape(three_dimensions(scores.shape, axis)), 1)

    def largest(self, values: Any) -> Any:
        """The largest value, also of an empty batch."""
        return values.max(initial=NONE_MET).reshape(1)

    def histogram(self, index: Any, length: int) -> Any:
        """A scatter; ``jnp.bincount`` would wait for the largest index."""
        counters = self.xp.zeros(length, dtype=f"int{self.widest}")
        return counters.at[index.ravel()].add(1)

    def maxima(self, table: Any, known: Any, again: Any) -> Any:
        """A branch in compiled code, which computes codes `again()` instead of storing them."""
        jax = sys.modules["jax"]
        if not isinstance(table, jax.core.Tracer):
            return known()
        bad = (table[-1].sum() + table[:-2, -1].sum()) > 0
        return jax.lax.cond(bad, again, lambda: again() * 0 + NONE_MET)


class TensorFlow(Operations):
    """TensorFlow in eager mode; all integers have 64 bits, since it computes 32 on the host."""

    def from_host(self, array: NDArray[Any]) -> Any:
        """A NumPy array, copied to the device."""
        with self.xp.device(self.device):
            tensor = self.xp.convert_to_tensor(array)
            return self.xp.cast(tensor, "int64") if array.dtype == np.int32 else tensor

    def wide(self, labels: Any, bits: int) -> Any:
        """A cast."""
        return self.xp.cast(labels, "int64")

    def clip(self, values: Any, low: int, high: int) -> Any:
        """As NumPy's."""
        return self.xp.clip_by_value(values, low, high)

    def take(self, table: Any, index: Any) -> Any:
        """A gather."""
        return self.xp.gather(table, index)

    def largest(self, values: Any) -> Any:
        """A reduction."""
        return self.xp.reshape(self.xp.reduce_max(values), [1])

    def argmax(self, scores: Any, axis: int) -> tuple[Any, Any]:
        """As NumPy's."""
        labels = self.xp.argmax(scores, axis, output_type="int32")
        return labels, self.xp.reduce_max(scores, axis)

    def total(self, condition: Any) -> Any:
        """A count."""
        return self.xp.reshape(self.xp.math.count_nonzero(condition), [1])

    def histogram(self, index: Any, length: int) -> Any:
        """A sum of ones by segment; a bincount would look at the largest index on the host."""
        flat = self.xp.reshape(index, [-1])
        return self.xp.math.unsorted_segment_sum(self.xp.ones_like(flat), flat, length)

    def join(self, parts: list[Any]) -> Any:
        """As NumPy's."""
        return self.xp.concat(parts, 0)


class Torch(Operations):
    """PyTorch, with operations that never make the host wait for a CUDA device."""

    def to_device(self, tensor: Any) -> Any:
        """A tensor on the device, without a copy if it is already there."""
        return tensor.detach().as_subclass(self.xp.Tensor).to(self.device)

    def from_host(self, array: NDArray[Any]) -> Any:
        """A NumPy array, copied to the device."""
        return self.xp.tensor(array, device=self.device)

    def wide(self, labels: Any, bits: int) -> Any:
        """A cast, without a copy if nothing changes."""
        return labels.to(self.xp.int32 if bits == 32 else self.xp.int64)

    def take(self, table: Any, index: Any) -> Any:
        """A selection; ``torch.take`` requires indices of 64 bits."""
        return table.index_select(0, index.reshape(-1)).reshape(index.shape)

    def argmax(self, scores: Any, axis: int) -> tuple[Any, Any]:
        """One pass for both."""
        best, labels = scores.max(axis)
        return labels, best

    def histogram(self, index: Any, length: int) -> Any:
        """A histogram without a transfer; torch.bincount on CUDA waits for the largest index."""
        # torch.histc counts with integer atomics, so its result does not depend on their order,
        # but torch.use_deterministic_algorithms rejects it.
        if not index.is_cuda:
            return self.xp.bincount(index.reshape(-1), minlength=length)
        if self.xp.are_deterministic_algorithms_enabled():
            return self.sorted_histogram(index, length)
        return self.xp.histc(index, bins=length, min=0, max=length).to(self.xp.int64)

    def sorted_histogram(self, index: Any, length: int) -> Any:
        """A histogram from sorted indices."""
        if length < 1 << 15:
            index = index.to(self.xp.int16)
        ordered = index.reshape(-1).sort().values
        bounds = self.xp.arange(length, dtype=ordered.dtype, device=index.device)
        ends = self.xp.searchsorted(ordered, bounds, right=True)
        return self.xp.diff(ends, prepend=ends.new_zeros(1))


_MODULES = {
    "torch": ("torch", Torch),
    "jax": ("jax.numpy", Jax),
    "cupy": ("cupy", CuPy),
    "tensorflow": ("tensorflow", TensorFlow),
}


def operations_for(tensor: Any) -> Operations:
    """Operations of a tensor's framework, on its device."""
    name = framework_of(tensor)
    assert name is not None
    module, operations = _MODULES[name]
    return operations(name, sys.modules[module], tensor.device)
