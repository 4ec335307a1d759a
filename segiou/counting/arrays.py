"""Whose tensor something is, and where its memory is.

No framework is imported here: a tensor brings its own, which is then already
in :data:`sys.modules`.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache, wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from segiou._support.text import plural

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")

#: The bits of a bfloat16, which NumPy knows by name only.
_BFLOAT16 = np.dtype([("bfloat16", np.uint16)])
_ROOTS = {"jax": "jax", "jaxlib": "jax", "tensorflow": "tensorflow", "cupy": "cupy"}


def framework_of(data: object) -> str | None:
    """Name of the framework whose tensor this is, subclasses included; None for all else."""
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


def not_compiled(function: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """Let ``torch.compile`` call a function as it is, where it is called from what is compiled."""
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
    """Tell whether data are a tensor whose memory NumPy cannot see.

    Raises
    ------
    TypeError
        If the tensor has no values yet, since it is being traced or compiled;
        or is no rectangle of values.
    """
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
        msg = "a sparse or nested tensor is no rectangle of labels; make it dense first, or padded"
        raise TypeError(msg)
    if hasattr(data, "full_tensor"):
        msg = (
            "a DTensor is spread over processes; count its to_local() and add the processes up, "
            "or its full_tensor() on one of them"
        )
        raise TypeError(msg)
    if data.is_meta:
        msg = "a tensor on the meta device has a shape but no values to count"
        raise TypeError(msg)
    return not data.is_cpu


def _tensorflow_is_on_device(data: Any) -> bool:
    if type(data).__name__ in ("RaggedTensor", "SparseTensor", "IndexedSlices"):
        msg = (
            f"a {type(data).__name__} is no rectangle of labels; make it dense first: "
            "to_tensor() or tf.sparse.to_dense, or count one image at a time"
        )
        raise TypeError(msg)
    if not hasattr(data, "numpy"):
        _refuse_symbolic("tf.function", "segiou.hooks.keras")
    return "CPU" not in data.device


def _refuse_symbolic(where: str, hook: str) -> None:
    msg = f"a tensor inside {where} has no values to count yet; use {hook}, which can be compiled"
    raise TypeError(msg)


def to_host(data: Any) -> NDArray[Any]:
    """View a tensor as a NumPy array; copied only if it is on a device."""
    framework = framework_of(data)
    if framework == "torch":
        return _torch_to_host(data)
    if framework == "cupy":
        return np.asarray(data.get())
    return np.asarray(data)  # JAX's and TensorFlow's __array__ views their memory


def _torch_to_host(data: Any) -> NDArray[Any]:
    torch = sys.modules["torch"]
    tensor = data.detach().as_subclass(torch.Tensor).cpu()
    if tensor.dtype == torch.bfloat16:
        # NumPy has no bfloat16: hand its bits over under its name.
        bits = tensor.view(torch.int16).numpy()
        return np.asarray(bits.view(_BFLOAT16))
    array: NDArray[Any] = tensor.resolve_neg().numpy()
    return array


_LABEL_MODES = ("1", "L", "P", "I", "I;16", "I;16B", "I;16L")


def as_label_array(data: Any, name: str) -> NDArray[np.integer[Any] | np.bool_]:
    """View array-like labels as an array of integers or bool, without a copy where possible.

    Parameters
    ----------
    data : array_like
        NumPy array, nested lists, PIL image of a label mode, or anything with
        ``__array__`` or ``__dlpack__`` (a tensor on the CPU, for instance).
    name : str
        ``"truth"`` or ``"pred"``, for the messages.

    Returns
    -------
    ndarray of integer | bool

    Raises
    ------
    TypeError
        If the data are not integers or bool: floats, which may be scores, colours,
        masked arrays, objects.
    """
    # The plain case first: beside a small mask every check is felt.
    array = data if type(data) is np.ndarray else as_array(data, name)
    if array.dtype.kind in "biu":
        return array
    check_labels(array, name)
    return array


def check_labels(array: Any, name: str) -> None:
    """Refuse an array or tensor that holds neither integers nor bool."""
    found = dtype_name(array)
    if found.startswith(("int", "uint", "bool")):
        return
    msg = f"{name} has dtype {found}; labels must be integers or bool"
    if found.startswith(("str", "bytes")):
        msg = f"{name} holds text; labels must be integers or bool: read files with read_mask"
    if found == "object":
        msg += ": give an array of numbers; of a Volume, its values"
    if found.startswith(("float", "bfloat")):
        msg = (
            f"{name} is {found}; labels must be integers. If these are scores, say "
            "argmax=AXIS (the class axis) or threshold=T; if they are labels that were "
            "saved as floats, convert them: array.astype(int)"
        )
    raise TypeError(msg)


def check_decision(shape: tuple[int, ...], argmax: int | None, threshold: float | None) -> None:
    """Refuse what does not say how scores of a shape become labels."""
    if (argmax is None) == (threshold is None):
        msg = "say either argmax=AXIS or threshold=T, not both and not neither"
        raise ValueError(msg)
    if argmax is None:
        return
    if not -len(shape) <= argmax < len(shape):
        msg = f"scores of shape {shape} have no axis {argmax} to take the argmax over"
        raise ValueError(msg)
    if shape[argmax] == 0:
        msg = f"scores of shape {shape} have no classes along axis {argmax}"
        raise ValueError(msg)


def as_array(data: Any, name: str) -> NDArray[Any]:
    """View anything array-like as a NumPy array; tensors on a device are copied from it."""
    if isinstance(data, np.ma.MaskedArray):
        msg = f"{name} is a masked array; give its data, and mask=~{name}.mask for the valid pixels"
        raise TypeError(msg)
    if isinstance(data, np.ndarray):
        return data
    if type(data).__module__.startswith("PIL."):
        return _from_pil(data, name)
    if framework_of(data):
        return to_host(data)
    if hasattr(data, "__array__"):
        array = np.asarray(data)
        # Paddle hands the bits of a bfloat16 over as uint16.
        is_bits = array.dtype == np.uint16 and "bfloat16" in str(getattr(data, "dtype", ""))
        return array.view(_BFLOAT16) if is_bits else array
    if hasattr(data, "__dlpack__"):
        return np.from_dlpack(data)
    try:
        return np.asarray(data)
    except ValueError as error:
        msg = f"{name} is not a rectangular array: {error}"
        raise ValueError(msg) from error


def _from_pil(image: Any, name: str) -> NDArray[Any]:
    if image.mode not in _LABEL_MODES:
        msg = (
            f"{name} is a PIL image of mode {image.mode!r}; label masks have mode "
            f"{', '.join(_LABEL_MODES)}. Colours are read through a label set: segiou.read_mask"
        )
        raise TypeError(msg)
    return np.asarray(image)


def check_same_shape(first: Any, second: Any, names: Sequence[str] = ("truth", "pred")) -> None:
    """Refuse two arrays or tensors of different shapes."""
    shapes = tuple(first.shape), tuple(second.shape)
    if shapes[0] != shapes[1]:
        found = f"{names[0]} has shape {shapes[0]} but {names[1]} has {shapes[1]}"
        msg = f"{found}; they must be equal, pixel for pixel"
        raise ValueError(msg)


def as_valid_mask(mask: Any, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """Check a mask of valid pixels."""
    array = as_array(mask, "mask")
    check_mask(array, shape)
    return array


def check_mask(mask: Any, shape: tuple[int, ...]) -> None:
    """Refuse an array or tensor that is not bool, or of another shape."""
    if (found := dtype_name(mask)) != "bool":
        msg = f"mask must be bool (True = counted), got {found}; perhaps mask != 0 is meant"
        raise TypeError(msg)
    if tuple(mask.shape) != shape:
        msg = f"mask has shape {tuple(mask.shape)} but the labels have {shape}"
        raise ValueError(msg)


def dtype_name(array: Any) -> str:
    """The name of a dtype, such as ``int32``, whatever the framework."""
    if isinstance(array.dtype, np.dtype) and is_bfloat16(array.dtype):
        return "bfloat16"
    return str(getattr(array.dtype, "name", array.dtype)).removeprefix("torch.")


def is_bfloat16(dtype: np.dtype[Any]) -> bool:
    """Tell whether these are the 16 bits of a bfloat16, which NumPy knows by name only."""
    # The name that ml_dtypes (JAX, TensorFlow) gives it, and to_host for torch.
    return dtype.itemsize == 2 and "bfloat16" in str(dtype)


def values_text(found: Mapping[Any, int], unit: str) -> str:
    """Write values and how often each was found, the eight most frequent ones."""
    ranked = Counter(found).most_common()
    shown = ", ".join(f"{value} ({plural(number, unit)})" for value, number in ranked[:8])
    return f"{shown} and {len(ranked) - 8} more values" if len(ranked) > 8 else shown
