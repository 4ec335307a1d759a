"""The axes of arrays: of a volume, in the order of its file or reversed, or of several images."""

from __future__ import annotations

from collections.abc import Callable

from segiou.masks.formats.numpy_files import is_of_nnunet
from segiou.masks.raw_mask import MaskError, RawMask
from segiou.measures.mask_pair import ScoredPrediction

#: Without the option: recorded in runs.
BY_SHAPE = "by shape"
Shape = tuple[int, ...]


def check_is_volume(shape: Shape, path: str) -> None:
    """MaskError if an array without known axes may be a volume, or several images."""
    if len(shape) != 3:
        return
    problem = (
        f"has shape {shape}, which may be {shape[0]} images or one volume; pass array_axes='nyx' "
        "(--array-axes nyx) for images, array_axes='zyx' (--array-axes zyx) for a volume; if an "
        "axis is that of classes, save array.argmax(AXIS)"
    )
    raise MaskError(path, problem)


def is_reversed(shape: Shape, volume: Shape, order: str | None, path: str) -> bool:
    """Whether an array has the axes of a volume in reverse; MaskError if both orders fit."""
    if order is not None:
        return order == "zyx"
    if shape == volume == volume[::-1] and max(shape, default=1) > 1:
        raise _unclear(shape, path)
    return shape == volume[::-1]


def _unclear(shape: Shape, path: str) -> MaskError:
    problem = (
        f"is an array beside a volume of shape {shape}, so its axes may be in the order of the "
        "file of the volume (x, y, z) or reversed (z, y, x), as those of SimpleITK and nnU-Net; "
        "pass array_axes='xyz' or array_axes='zyx' (--array-axes xyz or zyx)"
    )
    return MaskError(path, problem)


def scored_in_order(
    read: Callable[[Shape], ScoredPrediction],
    path: str,
    content: bytes | RawMask,
    shape: Shape,
    order: str | None,
) -> ScoredPrediction:
    """The scores of an array paired with a volume of this shape, with the axes of the volume."""
    order = order or ("zyx" if is_of_nnunet(content) else None)
    orders = {"xyz": shape, "zyx": shape[::-1]}
    if order is None and shape == shape[::-1]:
        raise _unclear(shape, path)
    readable, problems = {}, []
    for name in orders if order is None else (order,):
        try:
            readable[name] = read(orders[name])
        except MaskError as error:
            problems.append(error)
    if not readable:
        raise problems[0]
    if len(readable) > 1:
        raise _unclear(shape, path)
    ((name, scored),) = readable.items()
    return scored if name == "xyz" else _turned(scored)


def _turned(scored: ScoredPrediction) -> ScoredPrediction:
    """A prediction of scores with its axes of pixels reversed."""
    axes = [*range(scored.scores.ndim)]
    has_classes = scored.scores.ndim > scored.labels.ndim
    order = [0, *axes[:0:-1]] if has_classes else axes[::-1]
    return ScoredPrediction(scored.labels.transpose(), scored.scores.transpose(order))
