"""Whatever a caller hands in as labels or scores, as a NumPy array of labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou.counting.devices import framework_of, to_host

__all__ = ["as_array", "as_label_array", "as_valid_mask", "decide", "nan_text"]

_LABEL_MODES = ("1", "L", "P", "I", "I;16", "I;16B", "I;16L")
#: Scores are decided in blocks of about this many pixels, to stay in cache.
_BLOCK_PIXELS = 1 << 15


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
    if array.dtype.kind == "f" or _is_bfloat16(array.dtype):
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


def decide(
    scores: Any, *, argmax: int | None = None, threshold: float | None = None
) -> NDArray[np.integer[Any] | np.bool_]:
    """Turn scores into labels by a named rule.

    Parameters
    ----------
    scores : array_like of float
        Scores, logits or probabilities.
    argmax : int, optional
        The class axis: the label is the position of the largest score along
        it, the first where several are equal.
    threshold : float, optional
        The label is 1 where the score is above this, else 0.

    Returns
    -------
    ndarray
        Labels: without the class axis (argmax), or bool of the same shape.

    Raises
    ------
    ValueError
        If both or neither rule is given, the axis does not exist, or a score is NaN.

    Examples
    --------
    >>> decide([[0.1, 0.7], [0.9, 0.3]], argmax=0).tolist()
    [1, 0]
    >>> decide([0.2, 0.8], threshold=0.5).tolist()
    [False, True]
    """
    array = as_array(scores, "pred")
    if (argmax is None) == (threshold is None):
        msg = "say either argmax=AXIS or threshold=T, not both and not neither"
        raise ValueError(msg)
    if array.dtype.kind not in "fiub" and not _is_bfloat16(array.dtype):
        msg = f"scores must be numbers, got dtype {array.dtype}"
        raise TypeError(msg)
    if threshold is not None:
        array = _widened(array) if _is_bfloat16(array.dtype) else array
        _refuse_nan(array)
        return np.asarray(array > threshold)
    assert argmax is not None
    if not -array.ndim <= argmax < array.ndim:
        msg = f"scores of shape {array.shape} have no axis {argmax} to take the argmax over"
        raise ValueError(msg)
    if array.shape[argmax] == 0:
        msg = f"scores of shape {array.shape} have no classes along axis {argmax}"
        raise ValueError(msg)
    return _argmax_by_blocks(np.moveaxis(array, argmax, 0))


def _argmax_by_blocks(planes: NDArray[Any]) -> NDArray[np.integer[Any]]:
    # np.argmax over a leading axis first makes a transposed copy of all scores;
    # class plane by class plane, block by block, needs only one block.
    dtype = np.uint8 if len(planes) <= 256 else np.intp
    labels = np.zeros(planes.shape[1:], dtype=dtype)
    if labels.ndim == 0:
        _argmax_block(planes[:, None], labels[None])
    elif labels.size:
        _fill_by_blocks(planes, labels)
    return labels


def _fill_by_blocks(planes: NDArray[Any], labels: NDArray[np.integer[Any]]) -> None:
    row_pixels = labels.size // len(labels)
    if row_pixels > _BLOCK_PIXELS and labels.ndim > 1:
        for i in range(len(labels)):
            _fill_by_blocks(planes[:, i], labels[i])
        return
    rows = max(1, _BLOCK_PIXELS // row_pixels)
    for start in range(0, len(labels), rows):
        _argmax_block(planes[:, start : start + rows], labels[start : start + rows])


def _argmax_block(planes: NDArray[Any], labels: NDArray[np.integer[Any]]) -> None:
    best = np.array(_widened(planes[0]))
    for k in range(1, len(planes)):
        plane = _widened(planes[k])
        # k only grows, so the last plane to beat the best so far has the largest k.
        beaten = np.greater(plane, best).view(np.uint8).astype(labels.dtype, copy=False)
        np.maximum(labels, beaten * labels.dtype.type(k), out=labels)
        np.maximum(best, plane, out=best)
    _refuse_nan(best)


def _is_bfloat16(dtype: np.dtype[Any]) -> bool:
    # The name that ml_dtypes (JAX, TensorFlow) gives it, and to_host for torch.
    return dtype.itemsize == 2 and "bfloat16" in str(dtype)


def _widened(scores: NDArray[Any]) -> NDArray[Any]:
    """Scores as they are, but those of 16 bits exactly as float32, which is compared faster."""
    if scores.dtype == np.float16:
        return scores.astype(np.float32)
    if not _is_bfloat16(scores.dtype):
        return scores
    bits = scores.view(np.uint16).astype(np.uint32)  # the upper half of a float32
    return (bits << np.uint32(16)).view(np.float32)


def nan_text(pixels: int) -> str:
    """What to know about NaN scores."""
    return (
        f"{pixels} pixels have a NaN score, which names no class; mend the model, or put a "
        "number there"
    )


def _refuse_nan(scores: NDArray[Any]) -> None:
    if scores.dtype.kind == "f" and (bad := int(np.isnan(scores).sum())):
        raise ValueError(nan_text(bad))
