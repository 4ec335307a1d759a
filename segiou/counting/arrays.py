"""Whatever a caller hands in as labels or scores, as a NumPy array of labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou.counting.devices import framework_of, to_host

__all__ = ["as_array", "as_label_array", "as_valid_mask", "is_bfloat16"]

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

    Raises
    ------
    TypeError
        If the data are not integers or bool: floats without a rule, colours,
        masked arrays, objects.
    """
    # The plain case first: beside a small mask every check is felt.
    array = data if type(data) is np.ndarray else as_array(data, name)
    if array.dtype.kind in "biu":
        return array
    if array.dtype.kind == "f" or is_bfloat16(array.dtype):
        msg = (
            f"{name} is {array.dtype}; labels must be integers. If these are scores, say "
            "argmax=AXIS (the class axis) or threshold=T; if they are labels that were "
            "saved as floats, convert them: array.astype(int)"
        )
    else:
        msg = f"{name} has dtype {array.dtype}; labels must be integers or bool"
    raise TypeError(msg)


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
        return np.asarray(data)
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


def as_valid_mask(mask: Any, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """Check a mask of valid pixels.

    Raises
    ------
    TypeError
        If it is not bool.
    ValueError
        If its shape is not that of the labels.
    """
    array = as_array(mask, "mask")
    if array.dtype != np.bool_:
        msg = f"mask must be bool (True = counted), got {array.dtype}; perhaps mask != 0 is meant"
        raise TypeError(msg)
    if array.shape != shape:
        msg = f"mask has shape {array.shape} but the labels have {shape}"
        raise ValueError(msg)
    return array


def is_bfloat16(dtype: np.dtype[Any]) -> bool:
    """Tell whether these are the 16 bits of a bfloat16, which NumPy knows by name only."""
    # The name that ml_dtypes (JAX, TensorFlow) gives it, and to_host for torch.
    return dtype.itemsize == 2 and "bfloat16" in str(dtype)
