"""The few operations that counting needs of each framework's arrays."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from segiou.counting.arrays import framework_of, is_on_device, to_host


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

    def equal(self, labels: Any, value: int) -> Any:
        """Where a label is a value that its type can hold."""
        return labels == np.dtype(labels.dtype).type(value)

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


class CuPy(Operations):
    """CuPy, which makes arrays on whatever device is the current one."""

    def here(self) -> AbstractContextManager[Any]:
        """The device, as the current one."""
        return cast("AbstractContextManager[Any]", self.device)

    def largest(self, values: Any, start: int) -> Any:
        """CuPy's maximum has no initial value, and none of no values."""
        if values.size == 0:
            return self.xp.full(1, start, dtype="int64")
        return self.xp.maximum(values.max().reshape(1).astype("int64"), start)

    def histogram(self, index: Any, length: int) -> Any:
        """CuPy's waits for the largest index, and fails where there are none."""
        if index.size == 0:
            return self.xp.zeros(length, dtype="int64")
        return self.xp.bincount(index.ravel(), minlength=length)


class Jax(Operations):
    """JAX, whose integers have 32 bits unless ``jax_enable_x64`` is on."""

    limit = 1 << 30

    def own(self, tensor: Any) -> Any:
        """Moved where it was committed to another device; arrays over several stay as they are."""
        devices = getattr(self.device, "device_set", {self.device})
        # None where the arrays are being traced and have no device yet.
        if self.device is None or len(devices) > 1 or tensor.devices() == devices:
            return tensor
        return sys.modules["jax"].device_put(tensor, self.device)

    @property
    def widest(self) -> int:
        """64 only where ``jax_enable_x64`` is on."""
        return 64 if sys.modules["jax"].config.jax_enable_x64 else 32

    def histogram(self, index: Any, length: int) -> Any:
        """By scattering: ``jnp.bincount`` would wait for the largest index."""
        counters = self.xp.zeros(length, dtype=f"int{self.widest}")
        return counters.at[index.ravel()].add(1)


class TensorFlow(Operations):
    """TensorFlow, eager; it computes with 32-bit integers on the host, so they all have 64."""

    def from_host(self, array: NDArray[Any]) -> Any:
        """To a tensor on the device."""
        with self.xp.device(self.device):
            tensor = self.xp.convert_to_tensor(array)
            return self.xp.cast(tensor, "int64") if array.dtype == np.int32 else tensor

    def kind(self, array: Any) -> str:
        """From the dtype's flags."""
        dtype = array.dtype
        return "f" if dtype.is_floating else "i" if dtype.is_integer or dtype.is_bool else "V"

    def wide(self, labels: Any, bits: int) -> Any:
        """A cast; what uint64 holds beyond int64 stays beyond every declared value."""
        wide = self.xp.cast(labels, "int64")
        if labels.dtype == self.xp.uint64:
            return self.xp.where(wide < 0, self.xp.int64.max, wide)
        return wide

    def clip(self, values: Any, low: int, high: int) -> Any:
        """As NumPy's."""
        return self.xp.clip_by_value(values, low, high)

    def take(self, table: Any, index: Any) -> Any:
        """A gather."""
        return self.xp.gather(table, index)

    def equal(self, labels: Any, value: int) -> Any:
        """With a constant of the same type."""
        return self.xp.equal(labels, self.xp.constant(value, labels.dtype))

    def largest(self, values: Any, start: int) -> Any:
        """A reduction, which gives the type's smallest value for no values."""
        largest = self.xp.cast(self.xp.reduce_max(values), "int64")
        return self.xp.reshape(self.xp.maximum(largest, start), [1])

    def argmax(self, scores: Any, axis: int) -> tuple[Any, Any]:
        """As NumPy's."""
        labels = self.xp.argmax(scores, axis, output_type="int32")
        return labels, self.isnan(self.xp.reduce_max(scores, axis))

    def total(self, condition: Any) -> Any:
        """A sum of ones."""
        return self.xp.reshape(self.xp.reduce_sum(self.xp.cast(condition, "int64")), [1])

    def histogram(self, index: Any, length: int) -> Any:
        """A sum of ones by segment; a bincount would look at the largest index on the host."""
        flat = self.xp.reshape(index, [-1])
        return self.xp.math.unsorted_segment_sum(self.xp.ones_like(flat), flat, length)

    def join(self, parts: list[Any]) -> Any:
        """As NumPy's."""
        return self.xp.concat(parts, 0)


class Torch(Operations):
    """PyTorch: no operation here makes the host wait for a CUDA device."""

    def own(self, tensor: Any) -> Any:
        """Without a copy where it is on the device already."""
        return tensor.detach().as_subclass(self.xp.Tensor).to(self.device)

    def from_host(self, array: NDArray[Any]) -> Any:
        """To the device."""
        return self.xp.tensor(array, device=self.device)

    def kind(self, array: Any) -> str:
        """From the dtype's flags."""
        if array.dtype == self.xp.bool:
            return "b"
        return "f" if array.is_floating_point() else "c" if array.is_complex() else "i"

    def wide(self, labels: Any, bits: int) -> Any:
        """A cast; what uint64 holds beyond int64 stays beyond every declared value."""
        if labels.dtype == self.xp.uint64:
            signed = labels.view(self.xp.int64)
            return self.xp.where(signed < 0, (1 << 63) - 1, signed)
        return labels.to(self.xp.int32 if bits == 32 else self.xp.int64)

    def take(self, table: Any, index: Any) -> Any:
        """A selection; ``torch.take`` would want indices of 64 bits."""
        return table.index_select(0, index.reshape(-1)).reshape(index.shape)

    def equal(self, labels: Any, value: int) -> Any:
        """As signed integers: not every device compares unsigned ones of more than 8 bits."""
        name = str(labels.dtype).removeprefix("torch.")
        if name in ("uint16", "uint32", "uint64"):
            bits = int(name[4:])
            labels = labels.view(getattr(self.xp, f"int{bits}"))
            value -= (value >> (bits - 1)) << bits
        return labels == value

    def largest(self, values: Any, start: int) -> Any:
        """A reduction that gives `start` for no values."""
        if values.numel() == 0:
            return self.xp.full((1,), start, dtype=self.xp.int64, device=self.device)
        return values.amax().to(self.xp.int64).clamp(min=start).reshape(1)

    def argmax(self, scores: Any, axis: int) -> tuple[Any, Any]:
        """One pass for both."""
        best, labels = scores.max(axis)
        return labels, self.isnan(best)

    def total(self, condition: Any) -> Any:
        """A sum of 64 bits."""
        return condition.sum(dtype=self.xp.int64).reshape(1)

    def histogram(self, index: Any, length: int) -> Any:
        """Without reading anything back: torch.bincount on CUDA waits for the largest index.

        Counting with integer atomics gives the same integers in any order, but
        torch.histc is on the list of what ``torch.use_deterministic_algorithms``
        refuses; then the pixels are sorted and the boundaries looked up.
        """
        if not index.is_cuda:
            return self.xp.bincount(index.reshape(-1), minlength=length)
        if self.xp.are_deterministic_algorithms_enabled():
            return self.by_sorting(index, length)
        return self.xp.histc(index, bins=length, min=0, max=length).to(self.xp.int64)

    def by_sorting(self, index: Any, length: int) -> Any:
        """A histogram from sorted indices."""
        if length < 1 << 15:
            index = index.to(self.xp.int16)
        ordered = index.reshape(-1).sort().values
        bounds = self.xp.arange(length, dtype=ordered.dtype, device=index.device)
        ends = self.xp.searchsorted(ordered, bounds, right=True)
        return self.xp.diff(ends, prepend=ends.new_zeros(1))

    def join(self, parts: list[Any]) -> Any:
        """As NumPy's."""
        return self.xp.cat(parts)


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
