"""Overlay of true positives, false negatives and false positives on an image."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from numpy.typing import NDArray

from segiou._support.arguments import check_integer
from segiou.counting.arrays import as_label_array, with_dimensions_of
from segiou.labels.label_set import hex_color
from segiou.plots.style import COLUMN, Look, drawing, plot_kind, require
from segiou.report.pages.error_pictures import OUTCOMES

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Names, colours and hatching, which distinguishes them in black and white.
_KINDS = [
    (name, hex_color(color), hatch)
    for name, color, hatch in zip(
        ("TP", "FN", "FP"), OUTCOMES.values(), (None, "////", "...."), strict=True
    )
]
#: Weights of red, green and blue in grey.
_LUMA = (0.299, 0.587, 0.114)


@plot_kind
def overlay(
    truth: Any,
    pred: Any,
    label: int,
    *,
    image: Any = None,
    ignore: int | Iterable[int] = (),
    **look: Unpack[Look],
) -> Axes:
    """Draw true positives, false negatives and false positives of one class.

    Parameters
    ----------
    truth, pred : array_like of int, shape (H, W)
        True and predicted label map.
    label : int
        Value of the class in the arrays; for a class name, ``labels.index(name)``.
    image : array_like, shape (H, W) or (H, W, 1, 3 or 4), optional
        The image, drawn in grey below the masks: floats from 0 to 1, or integers from 0 to
        255, of 16 bits (uint16) to 65535.
    ignore : int or iterable of int
        Truth values whose pixels are not drawn.
    title, figsize, ax
        As for :func:`class_bars`.

    Returns
    -------
    Axes
        Axes with a legend of the three kinds and their pixels.

    Raises
    ------
    TypeError
        If the label or the masks are not integers, or the image is not real.
    ValueError
        If the shapes do not match, the masks are empty, or values of the image are out of
        range.
    """
    if isinstance(label, str):
        msg = f"label must be the integer value of a class in the masks, got {label!r}"
        raise TypeError(msg)
    label = check_integer("label", label)
    pred = as_label_array(with_dimensions_of(truth, pred), "pred")
    truth = as_label_array(truth, "truth")
    if truth.ndim != 2 or truth.shape != pred.shape:
        msg = (
            "truth and pred must be label images of equal shape (H, W), "
            f"got {truth.shape} and {pred.shape}"
        )
        raise ValueError(msg)
    if not truth.size:
        msg = f"truth and pred have no pixels (shape {truth.shape}); expected at least one"
        raise ValueError(msg)
    valid = ~np.isin(truth, _values("ignore", ignore))
    is_true, is_pred = (truth == label) & valid, (pred == label) & valid
    masks = is_true & is_pred, is_true & ~is_pred, is_pred & ~is_true
    height, width = truth.shape
    with drawing(min(5.0, COLUMN * height / width + 0.35), **look) as axes:
        ground = np.full(truth.shape, 0.93) if image is None else _grey(image, truth.shape)
        axes.imshow(ground, cmap="gray", vmin=0, vmax=1, interpolation="nearest")
        handles = [
            _cover(axes, mask, *kind, opacity=0.9 if image is None else 0.65)
            for mask, kind in zip(masks, _KINDS, strict=True)
        ]
        axes.set_axis_off()
        axes.legend(
            handles=handles, loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=3, frameon=False
        )
    return axes


def _values(name: str, values: int | Iterable[int]) -> list[int]:
    """One value, or several, as a list."""
    several = values if isinstance(values, Iterable) and not isinstance(values, str) else [values]
    return [check_integer(name, value) for value in several]


def _grey(image: Any, shape: tuple[int, ...]) -> NDArray[np.float64]:
    array = np.asarray(image)
    if array.ndim not in (2, 3) or array.shape[2:] not in ((), (1,), (3,), (4,)):
        msg = f"image must have the shape (H, W) or (H, W, 1, 3 or 4), got {array.shape}"
        raise ValueError(msg)
    if array.shape[:2] != shape:
        msg = f"image has shape {array.shape[:2]} but the masks have {shape}; resize the image"
        raise ValueError(msg)
    if array.dtype.kind not in "biuf":
        msg = f"image has dtype {array.dtype}; expected integers or floats"
        raise TypeError(msg)
    most = 1 if array.dtype.kind not in "iu" else 65535 if array.dtype == np.uint16 else 255
    scaled = array.astype(np.float64) / most
    if not ((scaled >= 0) & (scaled < 1.001)).all():  # resizing may exceed 1
        msg = (
            f"image must be from 0 to {most} ({array.dtype}), "
            f"got {array.min():g} to {array.max():g}; scale it"
        )
        raise ValueError(msg)
    if scaled.ndim == 3:
        scaled = scaled[..., 0] if scaled.shape[2] == 1 else scaled[..., :3] @ _LUMA
    # Brightened, so that black hatching stays visible on shadows.
    return np.asarray(0.25 + 0.75 * scaled)


def _cover(
    axes: Axes, mask: NDArray[np.bool_], name: str, color: str, hatch: str | None, *, opacity: float
) -> Any:
    picture = np.zeros((*mask.shape, 4))
    picture[mask] = require("matplotlib.colors").to_rgba(color, opacity)
    axes.imshow(picture, interpolation="nearest", label=name)
    if hatch and mask.any() and min(mask.shape) > 1:
        axes.contourf(mask.astype(float), levels=[0.5, 1.5], colors="none", hatches=[hatch])
    pixels = f"{int(mask.sum()):,}".replace(",", "\N{THIN SPACE}")
    return require("matplotlib.patches").Patch(
        facecolor=color, hatch=hatch, edgecolor="black", linewidth=0.4, label=f"{name} {pixels} px"
    )
