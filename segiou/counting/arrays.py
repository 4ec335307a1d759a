"""Detects an array's framework and device.

No framework is imported here: whoever passes a tensor has already imported its framework.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from segiou._support.arguments import check_integer, refuse_kind
from segiou._support.text import plural

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")

#: The 16 bits of a bfloat16; NumPy has no such type, only this name for it.
_BFLOAT16 = np.dtype([("bfloat16", np.uint16)])
#: Integers of JAX that NumPy cannot count.
_SMALL = ("int2", "int4", "uint2", "uint4")
#: Items of lists that NumPy reads.
_PLAIN = (int, float, complex, str, bytes, np.generic)
_ROOTS = {"jax": "jax", "jaxlib": "jax", "tensorflow": "tensorflow", "cupy": "cupy"}


def framework_of(data: object) -> str | None:
    """Name of the framework of a tensor, or of a subclass of one; None for anything else."""
    kind: Any = type(data)
    return _framework_of_type(kind)


@cache
def _framework_of_type(kind: Any) -> str | None:
    for base in kind.__mro__:
        root = base.__module__.partition(".")[0]
        if root == "torch" and base.__name__ == "Tensor":
            return "torch"
        if root in _ROOTS:
            return _ROOTS[root]
    return None


@cache
def _is_masked(kind: Any) -> bool:
    """Whether a type is a masked array."""
    # np.ma would be imported here, and a process forked meanwhile would wait for it forever.
    return any(
        base.__name__ == "MaskedArray" and base.__module__.startswith("numpy.")
        for base in kind.__mro__
    )


def not_compiled(function: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """Exclude a function from ``torch.compile``; compiled code calls it unchanged."""
    disabled, loaded = None, sys.modules

    @wraps(function)
    def call(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
        nonlocal disabled
        if "torch._dynamo" not in loaded:  # nothing is compiled in this process
            return function(*args, **kwargs)
        if disabled is None:
            disabled = sys.modules["torch"].compiler.disable(function)
        result: _Result = disabled(*args, **kwargs)
        return result

    return call


def is_on_device(data: Any) -> bool:
    """Whether NumPy cannot read a tensor's memory; a TypeError if it has no (dense) values."""
    framework = None if type(data) is np.ndarray else framework_of(data)
    if framework is None:
        return False
    if framework == "torch":
        return _torch_is_on_device(data)
    if framework == "cupy":
        return True
    if framework == "jax":
        if any(base.__name__ == "Tracer" for base in type(data).__mro__):
            _refuse_symbolic("jax.jit", "segiou.hooks.jax")
        return any(device.platform != "cpu" for device in data.devices())
    return _tensorflow_is_on_device(data)


def _torch_is_on_device(data: Any) -> bool:
    if data.is_nested or data.layout is not sys.modules["torch"].strided:
        msg = "sparse and nested tensors are not supported; make the tensor dense or pad it first"
        raise TypeError(msg)
    if hasattr(data, "full_tensor"):
        msg = (
            "DTensors are not supported; count to_local() on each process and sum the counts, or "
            "full_tensor() on one process"
        )
        raise TypeError(msg)
    if data.is_meta:
        msg = "tensors on the meta device have no values; move the tensor to a real device first"
        raise TypeError(msg)
    return not data.is_cpu


def _tensorflow_is_on_device(data: Any) -> bool:
    if type(data).__name__ in ("RaggedTensor", "SparseTensor", "IndexedSlices"):
        msg = (
            f"a {type(data).__name__} is not supported; make it dense with to_tensor() or "
            "tf.sparse.to_dense, or count one image at a time"
        )
        raise TypeError(msg)
    if not hasattr(data, "numpy"):
        _refuse_symbolic("tf.function", "segiou.hooks.keras")
    return "CPU" not in data.device


def _refuse_symbolic(where: str, hook: str) -> None:
    msg = f"tensors inside {where} have no values yet; use {hook}, which can be compiled"
    raise TypeError(msg)


def to_host(data: Any) -> NDArray[Any]:
    """View a tensor as a NumPy array; only tensors on a device are copied."""
    framework = framework_of(data)
    if framework == "torch":
        return _torch_to_host(data)
    if framework == "cupy":
        return np.asarray(data.get())
    return np.asarray(data)  # __array__ of JAX and TensorFlow is a view


def _torch_to_host(data: Any) -> NDArray[Any]:
    torch = sys.modules["torch"]
    tensor = data.detach().as_subclass(torch.Tensor).cpu()
    if tensor.dtype == torch.bfloat16:
        # NumPy has no bfloat16, so this passes the bits under its name.
        bits = tensor.view(torch.int16).numpy()
        return np.asarray(bits.view(_BFLOAT16))
    if "float8" in str(tensor.dtype):
        msg = f"{tensor.dtype} tensors are not supported; convert the tensor first, as with .half()"
        raise TypeError(msg)
    try:
        array: NDArray[Any] = tensor.resolve_neg().numpy()
    except (RuntimeError, TypeError) as error:  # of functorch, FakeTensorMode, quantised
        msg = (
            "the tensor has no values that NumPy can read; count after torch.vmap, torch.func or "
            f"FakeTensorMode with the result, and dequantize() first ({error})"
        )
        raise TypeError(msg) from error
    return array


_LABEL_MODES = ("1", "L", "P", "I", "I;16", "I;16B", "I;16L")


def as_label_array(data: Any, name: str) -> NDArray[np.integer[Any] | np.bool_]:
    """View array-like labels as an array of integers or bool, without a copy if possible.

    Parameters
    ----------
    data : array_like
        NumPy array, nested lists, PIL image of a label mode, or anything with
        ``__array__`` or ``__dlpack__`` (a tensor on the CPU, for instance).
    name : str
        Name of the argument, used in error messages.

    Raises
    ------
    TypeError
        If the data are not integers or bool, such as floats (which may be scores),
        colours, masked arrays or objects.
    """
    # The plain case first: for a small mask, every check takes noticeable time.
    array = normalized(data) if type(data) is np.ndarray else as_array(data, name)
    if array.dtype.kind not in "biu":
        check_labels(array, name)
    return array


def normalized(array: NDArray[Any]) -> NDArray[Any]:
    """The array, copied if a True is not the byte 1, as in 1-bit images of Pillow, or of int4."""
    if array.dtype.kind == "V" and (name := name_of(array.dtype)) in _SMALL:
        return array.astype(name[:-1] + "8")
    if array.dtype != np.bool_:
        return array
    bits: NDArray[np.uint8] = array.view(np.uint8)
    return bits != 0 if bits.max(initial=0) > 1 else array


def check_labels(array: Any, name: str) -> None:
    """Raise a TypeError unless an array or tensor contains integers or bool."""
    dtype = dtype_name(array)
    if dtype.startswith(("int", "uint", "bool")):
        return
    msg = f"{name} has dtype {dtype}; labels must be integers or bool"
    if dtype.startswith(("str", "bytes")):
        msg = (
            f"{name} contains strings; labels must be integers or bool (to read files, use "
            "read_mask)"
        )
    if dtype == "object":
        msg += "; pass an array of numbers (for a Volume, pass its values)"
    if dtype.startswith(("float", "bfloat")):
        msg = _float_text(array, name, dtype)
    raise TypeError(msg)


def _float_text(array: Any, name: str, dtype: str) -> str:
    """The problem of floats in place of labels: they may be one-hot labels, or scores."""
    if isinstance(array, np.ndarray) and array.ndim > 1:
        axes = {0, 1, array.ndim - 1}
        axis = next((axis for axis in axes if is_one_hot(array, axis)), None)
        if axis is not None:
            return (
                f"{name} is one-hot along axis {axis} (dtype {dtype}), but labels must be "
                f"integers; pass argmax={axis} for scores, and {name}.argmax({axis}) for "
                "one-hot labels; for channels that may overlap, use segiou.ChannelCounts"
            )
    scores = "For scores, pass argmax=AXIS (the class axis) or threshold=T"
    if name == "truth":
        scores = (
            "If these are scores, truth and pred are swapped: pass the truth first, then the "
            "scores with argmax=AXIS (the class axis) or threshold=T"
        )
    return (
        f"{name} has dtype {dtype}, but labels must be integers. {scores}; for labels stored "
        "as floats, use array.astype(int)"
    )


def check_decision(shape: tuple[int, ...], argmax: int | None, threshold: float | None) -> None:
    """Raise a ValueError unless exactly one of argmax and threshold is given and fits the shape."""
    if (argmax is None) == (threshold is None):
        msg = "pass exactly one of argmax=AXIS and threshold=T"
        raise ValueError(msg)
    if argmax is None:
        return
    argmax = check_integer("argmax", argmax)
    if not -len(shape) <= argmax < len(shape):
        msg = f"argmax={argmax} is out of range for scores of shape {shape}"
        raise ValueError(msg)
    if shape[argmax] == 0:
        msg = f"scores of shape {shape} have no classes along axis {argmax}"
        raise ValueError(msg)


def axis_in_image(argmax: int | None, *, is_batch: bool = True) -> int | None:
    """The class axis of one image of a batch, an array or a list with the images first."""
    if argmax is None or check_integer("argmax", argmax) < 0 or not is_batch:
        return argmax
    if argmax == 0:
        msg = (
            "argmax=0 is the axis of the images; pass the class axis of the batch, such as "
            "argmax=1 for (N, C, H, W) or a list of (C, H, W)"
        )
        raise ValueError(msg)
    return argmax - 1


class AtLeast(float):
    """A threshold that equal scores also pass; they do not pass a plain float."""


def exceeds(scores: Any, threshold: float) -> Any:
    """Whether each score passes a threshold, in any framework."""
    limit = float(threshold)
    return scores >= limit if isinstance(threshold, AtLeast) else scores > limit


def without_lists(data: Any, name: str) -> Any:
    """A list as an array; arrays and tensors unchanged."""
    return as_array(data, name) if isinstance(data, (list, tuple)) else data


def as_array(data: Any, name: str) -> NDArray[Any]:
    """View anything array-like as a NumPy array; tensors on a device are copied from it."""
    return normalized(_viewed(data, name))


def read_floats(values: Any, name: str, wanted: str) -> NDArray[np.float64]:
    """Integers or floats of a caller as float64; TypeError for others, which names the wanted."""
    array = as_array(values, name)
    if array.size and array.dtype.kind not in "iuf":
        raise refuse_kind(name, values, wanted)
    return array.astype(np.float64)


def _viewed(data: Any, name: str) -> NDArray[Any]:
    kind: Any = type(data)
    if _is_masked(kind):
        msg = (
            f"{name} is a masked array; pass ARRAY.data with mask=~ARRAY.mask if the function "
            "has a mask, otherwise ARRAY.filled(VALUE)"
        )
        raise TypeError(msg)
    if isinstance(data, np.ndarray):
        return np.asarray(data)  # a matrix would keep two axes
    if type(data).__module__.startswith("PIL."):
        return _pil_array(data, name)
    if framework_of(data):
        is_on_device(data)  # raises for tensors without (dense) values
        return to_host(data)
    if hasattr(data, "__array__"):
        array = np.asarray(data)
        # Paddle passes the bits of a bfloat16 as uint16.
        is_bits = array.dtype == np.uint16 and "bfloat16" in str(getattr(data, "dtype", ""))
        return array.view(_BFLOAT16) if is_bits else array
    if hasattr(data, "__dlpack__"):
        return np.from_dlpack(data)
    if isinstance(data, Iterator):
        raise refuse_kind(name, data, "an array, or a list of arrays")
    try:
        items = _without_tensors(data, name) if isinstance(data, (list, tuple)) else data
        array = np.asarray(items)
    except ValueError as error:
        msg = f"{name} is not a rectangular array: {error}"
        raise ValueError(msg) from error
    # NumPy takes empty lists for floats.
    return array if array.size else array.astype(np.uint8)


def _without_tensors(data: Any, name: str) -> Any:
    """A list with arrays in place of tensors, which NumPy cannot read in every dtype."""
    if not isinstance(data, (list, tuple)):
        return _viewed(data, name)
    if all(kind is np.ndarray or issubclass(kind, _PLAIN) for kind in {*map(type, data)}):
        return data
    return [_without_tensors(item, name) for item in data]


def _pil_array(image: Any, name: str) -> NDArray[Any]:
    if image.mode not in _LABEL_MODES:
        msg = (
            f"{name} is a PIL image of mode {image.mode!r}; label masks have mode "
            f"{', '.join(_LABEL_MODES)}. For colour masks, use segiou.read_mask with a label set"
        )
        raise TypeError(msg)
    return np.asarray(image)


def check_same_shape(
    first: Any,
    second: Any,
    names: Sequence[str] = ("truth", "pred"),
    *,
    argmax: int | None = None,
) -> None:
    """Raise a ValueError if shapes differ, after dropping the axis `argmax` of the second."""
    shapes = tuple(first.shape), tuple(second.shape)
    if argmax is not None:
        axis = argmax % len(shapes[1])
        shapes = shapes[0], shapes[1][:axis] + shapes[1][axis + 1 :]
    if shapes[0] != shapes[1]:
        difference = f"{names[0]} has shape {shapes[0]} but {names[1]} has {shapes[1]}"
        msg = f"{difference}; shapes must match{_channel_hint(*shapes, names)}"
        raise ValueError(msg)


def _channel_hint(first: tuple[int, ...], second: tuple[int, ...], names: Sequence[str]) -> str:
    """Advice if one shape has a further axis, probably of classes, or the second is smaller."""
    if len(first) == len(second) > 1 and first[-2] > second[-2] and first[-1] > second[-1]:
        return f"; upsample scores of {names[1]} first, e.g. with torch.nn.functional.interpolate"
    longer, shorter = (first, second) if len(first) > len(second) else (second, first)
    axes = [k for k in range(len(longer)) if longer[:k] + longer[k + 1 :] == shorter]
    if axes and longer[axes[-1]] == 1:
        side = names[longer is second]
        return f"; axis {axes[-1]} of {side} has size 1, so pass {side}[{':, ' * axes[-1]}0]"
    if len(axes) != 1:
        return ""
    if longer is first:
        return f". If {names[0]} is one-hot, pass {names[0]}.argmax({axes[0]})"
    return f". If {names[1]} is one-hot or contains scores, pass argmax={axes[0]}"


def is_binary(array: NDArray[Any]) -> bool:
    """Whether an array of numbers contains only 0 and 1."""
    if array.dtype.kind not in "biuf":
        return False
    return array.dtype == np.bool_ or bool(((array == 0) | (array == 1)).all())


def is_one_hot(array: NDArray[Any], axis: int) -> bool:
    """Whether more pixels than classes each have a single 1 along an axis, and 0 elsewhere."""
    is_large = array.size > array.shape[axis] ** 2
    return is_large and is_binary(array) and bool((array.sum(axis) == 1).all())


def label_arrays(
    first: Any, second: Any, names: Sequence[str] = ("truth", "pred")
) -> tuple[NDArray[np.integer[Any] | np.bool_], NDArray[np.integer[Any] | np.bool_]]:
    """Two label or id arrays of equal shape; errors use the argument names."""
    second = with_dimensions_of(first, second)
    sides = as_label_array(first, names[0]), as_label_array(second, names[1])
    check_same_shape(*sides, names)
    return sides


def compiled_view(array: NDArray[Any]) -> NDArray[Any]:
    """The values in native, aligned memory and C order, as compiled routines read them."""
    flags = array.flags
    if flags.c_contiguous and flags.aligned and array.dtype.isnative:
        return array  # np.require takes long to find out
    return np.require(array, array.dtype.newbyteorder("="), ("C", "A"))


def memory_ordered(*arrays: NDArray[Any]) -> list[NDArray[Any]]:
    """Views of arrays of equal shape with their axes in memory order."""
    if all(array.flags.c_contiguous for array in arrays):
        return [*arrays]
    first = arrays[0]
    order = sorted(range(first.ndim), key=lambda axis: -abs(first.strides[axis]))
    is_backwards = [all(a.strides[axis] < 0 for a in arrays) for axis in order]
    forwards = tuple(slice(None, None, -1 if back else 1) for back in is_backwards)
    return [a.transpose(order)[forwards] for a in arrays]


def native_blocks(
    truth: NDArray[Any], pred: NDArray[Any]
) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
    """Parts of two arrays of equal shape as contiguous arrays of native byte order."""
    blocks: Any = np.nditer(
        [truth, pred],
        flags=["external_loop", "buffered", "zerosize_ok"],
        op_flags=[["readonly"], ["readonly"]],
        op_dtypes=[truth.dtype.newbyteorder("="), pred.dtype.newbyteorder("=")],
        casting="equiv",
        buffersize=1 << 16,
    )
    yield from blocks


def with_dimensions_of(truth: Any, other: Any, argmax: int | None = None) -> Any:
    """An xarray `other` transposed to the order of the truth's dimension names.

    It may lack some of them; scores have one more, at `argmax`.
    """
    wanted, dims = getattr(truth, "dims", None), getattr(other, "dims", None)
    if not (isinstance(wanted, tuple) and isinstance(dims, tuple)):
        return other
    if argmax is not None and -len(dims) <= argmax < len(dims):
        at = argmax % len(dims)
        wanted = (*wanted[:at], dims[at], *wanted[at:])
    wanted = tuple(name for name in wanted if name in dims)
    is_turned = dims != wanted and len(dims) == len(wanted)
    return other.transpose(*wanted) if is_turned else other


def as_valid_mask(mask: Any, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """View a mask of valid pixels as an array of bool, checked."""
    array = as_array(mask, "mask")
    check_mask(array, shape)
    return array


def check_mask(mask: Any, shape: tuple[int, ...]) -> None:
    """Raise unless a mask is bool and has this shape."""
    if (dtype := dtype_name(mask)) != "bool":
        msg = f"mask must be bool (True = counted), got {dtype}; did you mean mask != 0?"
        raise TypeError(msg)
    if tuple(mask.shape) != shape:
        msg = f"mask has shape {tuple(mask.shape)} but the labels have {shape}"
        raise ValueError(msg)


def dtype_name(array: Any) -> str:
    """The name of a dtype, such as ``int32``, in any framework."""
    return name_of(array.dtype)


@cache
def name_of(dtype: Any) -> str:
    """The name of a dtype, or of the dtype with this name."""
    if isinstance(dtype, np.dtype) and is_bfloat16(dtype):
        return "bfloat16"
    return str(getattr(dtype, "name", dtype)).removeprefix("torch.")


def is_bfloat16(dtype: np.dtype[Any]) -> bool:
    """Whether a dtype contains the 16 bits of a bfloat16."""
    # ml_dtypes (JAX, TensorFlow) registers this name; to_host uses it for torch.
    return dtype.itemsize == 2 and "bfloat16" in str(dtype)


def as_float(scores: NDArray[Any]) -> NDArray[Any]:
    """Scores of bfloat16 as float32; others unchanged."""
    if not is_bfloat16(scores.dtype):
        return scores
    bits = scores.view(np.uint16).astype(np.uint32)  # the upper half of a float32
    return (bits << np.uint32(16)).view(np.float32)


def values_text(pixels: Mapping[Any, int], unit: str) -> str:
    """The eight most frequent values, each with its count."""
    ranked = Counter(pixels).most_common()
    shown = ", ".join(f"{value} ({plural(number, unit)})" for value, number in ranked[:8])
    return f"{shown} and {len(ranked) - 8} more values" if len(ranked) > 8 else shown
