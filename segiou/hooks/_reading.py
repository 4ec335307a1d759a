"""Reads the truth and predictions of a batch as frameworks pass them."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from segiou._support.text import plural
from segiou.counting.arrays import as_array, dtype_name, framework_of, to_host
from segiou.counting.device_counts import NOT_WHOLE, not_whole

_LABEL_MAPS = "pass label maps, as of the processor's post_process_semantic_segmentation"


def differ_in_size(data: Any) -> bool:
    """Whether data is a list or tuple of arrays of different shapes."""
    is_several = isinstance(data, (tuple, list))
    return is_several and len({tuple(getattr(item, "shape", ())) for item in data}) > 1


def pairs_of(truth: Any, pred: Any) -> list[tuple[Any, Any]]:
    """The batch itself, or a batch of each image if the images of a list differ in size."""
    if not differ_in_size(truth):
        return [(truth, pred)]
    if len(truth) != len(pred):
        msg = f"truth has {plural(len(truth), 'image')}, but pred has {len(pred)}"
        raise ValueError(msg)
    return [(t[None], p[None]) for t, p in zip(truth, pred, strict=True)]


def shaped(data: Any, name: str) -> Any:
    """The data itself if it has a shape, else the scores of a model's outputs, or an array."""
    if differ_in_size(data):
        if name == "truth":
            shapes = ", ".join(sorted({str(tuple(getattr(x, "shape", ()))) for x in data}))
            msg = f"truth has arrays of different shapes: {shapes}; count each image by itself"
            raise ValueError(msg)
        data = first_output(data, name)
    if hasattr(data, "shape"):
        return data
    if not isinstance(data, Mapping):
        return as_array(data, name)
    for key in ("logits", "out"):  # of transformers and torchvision
        if key in data:
            return data[key]
    keys = [*map(str, data)]
    fix = f"pass one of them, such as outputs[{keys[0]!r}]" if keys else "pass an array"
    fix = _LABEL_MAPS if "class_queries_logits" in keys else fix
    msg = f"{name} is a {type(data).__name__} of {', '.join(keys)}; {fix}"
    raise TypeError(msg)


def first_output(outputs: Any, name: str = "pred") -> Any:
    """The first of several outputs of a model; a TypeError for those of queries (Mask2Former)."""
    if not isinstance(outputs, (tuple, list)):
        return outputs
    shapes = [tuple(getattr(output, "shape", ())) for output in outputs[:2]]
    if list(map(len, shapes)) == [3, 4] and shapes[0][:2] == shapes[1][:2]:
        msg = f"{name} has scores of queries, of shapes {shapes[0]} and {shapes[1]}; {_LABEL_MAPS}"
        raise TypeError(msg)
    return outputs[0]


def drop_channel(array: Any, axis: int, other: Any) -> Any:
    """The array without a class axis of size 1 that the other array lacks or has in full."""
    axes = len(array.shape)
    is_plain = axes < len(other.shape) or tuple(array.shape) == tuple(other.shape)
    if is_plain or not -axes <= axis < axes or array.shape[axis] != 1:
        return array
    return array[(slice(None),) * (axis % axes) + (0,)]


def drop_single(array: Any, other: Any) -> Any:
    """The array without an axis of size 1, if it then has the shape of the other."""
    axes = fitting_axes(tuple(array.shape), tuple(other.shape))
    return drop_channel(array, axes[-1], other) if axes else array


def is_float(array: Any) -> bool:
    """Whether an array of any framework contains floats."""
    return "float" in dtype_name(array)


def is_tracer(array: Any) -> bool:
    """Whether an array is a placeholder while JAX compiles."""
    jax = sys.modules.get("jax")
    return jax is not None and isinstance(array, jax.core.Tracer)


def whole_numbers(truth: Any) -> Any:
    """Labels stored as floats as integers; a ValueError if some are not whole numbers."""
    if not is_float(truth):
        return truth
    is_torch = framework_of(truth) == "torch"
    is_traced = not is_torch and is_tracer(truth)
    xp: Any = sys.modules["torch" if is_torch else "jax.numpy" if is_traced else "numpy"]
    values = truth.detach() if is_torch else truth
    values = values if is_torch or is_traced else as_array(truth, "truth").astype(np.float64)
    wrong = (values != xp.round(values)) | ~(abs(values) < 2.0**63)  # NaN, and beyond int64
    whole = xp.where(wrong, xp.zeros_like(values), values)
    if is_traced or (is_torch and not truth.is_cpu):  # without waiting for the device
        return xp.where(wrong, NOT_WHOLE, whole.astype("int32") if is_traced else whole.long())
    if number := int(to_host(wrong.sum())):
        msg = (
            f"truth has dtype {dtype_name(truth)} and {not_whole(number)}; pass labels. If it "
            "contains scores, truth and prediction are in the wrong order"
        )
        raise ValueError(msg)
    return whole.long() if is_torch else whole.astype(np.int64)


def is_one_hot(truth: Any, pred: Any, axis: int | None, num_classes: int) -> bool:
    """Whether the truth has the class axis of the scores."""
    axes = len(truth.shape)
    if axis is None or not (axes == len(pred.shape) > 1 and -axes <= axis < axes):
        return False
    return is_float(pred) and bool(truth.shape[axis] == num_classes > 1)


def check_labels_of_hook(truth: Any, pred: Any) -> None:
    """Raise for predictions that are neither labels nor scores, in the words of hooks."""
    shapes = tuple(truth.shape), tuple(pred.shape)
    if not is_float(pred):
        return
    problem = f"pred has dtype {dtype_name(pred)}"
    if shapes[0] == shapes[1]:
        fix = "pred.long()" if framework_of(pred) == "torch" else "pred.astype(int)"
        msg = (
            f"{problem} and the shape of truth, {shapes[0]}; for scores of two classes, pass "
            f"threshold=T to the hook (0 for logits, 0.5 after a sigmoid), for labels {fix}"
        )
        raise TypeError(msg)
    msg = (
        f"{problem} and shape {shapes[1]}, but truth has shape {shapes[0]}; scores have one axis "
        "more than truth, whose position is axis= of the hook"
    )
    raise ValueError(msg)


def check_size(truth: Any, pred: Any, axis: int, *, can_upsample: bool) -> None:
    """Raise a ValueError if scores and truth differ in size."""
    shape, wanted = tuple(pred.shape), tuple(truth.shape)
    axes = len(shape)
    if not -axes <= axis < axes:
        msg = f"axis={axis} of the hook is out of range for scores of shape {shape}"
        raise ValueError(msg)
    rest = shape[: axis % axes] + shape[axis % axes + 1 :]
    if _fit(rest, wanted):
        return
    batched = 0 if axis % axes == 0 else 1
    fix = "resize them"
    if others := fitting_axes(shape, wanted):
        fix = f"their class axis is probably {others[-1]}, so pass axis={others[-1]} to the hook"
    elif can_upsample and rest[:batched] == wanted[:batched]:
        fix = "pass upsample=True to the hook"
    msg = f"scores of shape {shape} differ in size from truth of shape {wanted}; {fix}"
    raise ValueError(msg)


def fitting_axes(shape: tuple[int, ...], wanted: tuple[int, ...]) -> list[int]:
    """The axes without which scores have the shape of the truth."""
    return [k for k in range(len(shape)) if _fit(shape[:k] + shape[k + 1 :], wanted)]


def _fit(shape: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    """Whether shapes may be equal; sizes may be None, unknown, in a graph."""
    pairs = zip(shape, wanted, strict=False)
    return len(shape) == len(wanted) and all(a == b or None in (a, b) for a, b in pairs)


def upsampled(scores: Any, size: tuple[int, ...], axis: int = 1) -> Any:
    """Scores of PyTorch in the size (N, ...), or (...) if their first axis is the class axis."""
    functional: Any = sys.modules["torch"].nn.functional
    scores = sys.modules["torch"].as_tensor(scores)
    axes = len(scores.shape)
    if len(size) != axes - 1 or not -axes <= axis < axes:
        return scores
    is_single = axis % axes == 0
    spatial = tuple(size) if is_single else tuple(size[1:])
    first = scores.unsqueeze(0) if is_single else scores.movedim(axis, 1)
    first = first if first.is_floating_point() else first.float()
    if tuple(first.shape[2:]) == spatial or len(spatial) > 3 or not math.prod(first.shape[1:]):
        return scores
    mode = ("linear", "bilinear", "trilinear")[len(spatial) - 1]
    large = functional.interpolate(first, size=spatial, mode=mode, align_corners=False)
    return large[0] if is_single else large.movedim(1, axis)
