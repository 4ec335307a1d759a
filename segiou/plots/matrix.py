"""The confusion matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from segiou._support.text import short_count
from segiou.metrics.ratio import Floats, ratio
from segiou.plots.style import drawing, in_percent, report_of, require, short_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_TEXTS = 12
_NAMED = 40


def confusion_matrix(
    source: Any,
    *,
    normalize: Literal["truth", "pred"] | None = "truth",
    ax: Axes | None = None,
) -> Axes:
    """Draw the confusion matrix; rows are truth.

    Parameters
    ----------
    source : Report, Run or ConfusionMatrix
        What has scores of classes: a run, report or confusion matrix.
    normalize : {"truth", "pred"}, optional
        Shares of each row (the diagonal is recall), of each column (precision),
        or pixels on a logarithmic scale.
    ax : Axes, optional
        Axes to draw into; new ones by default.

    Returns
    -------
    Axes
        Values stand in the cells up to 12 classes, names beside them up to 40.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    ValueError
        If ``normalize`` is not one of its words, or the classes are channels
        that overlap and have no such matrix.
    """
    report = report_of(source)
    if not report.has_matrix:
        msg = "overlapping channels have no confusion matrix; draw class_bars instead"
        raise ValueError(msg)
    values = _values(report.matrix, report.unassigned, normalize)
    num_classes = len(values)
    with drawing(ax, 3.3 if num_classes > 6 else 2.7) as axes:
        log = require("matplotlib.colors").LogNorm(1, max(2, np.nanmax(values, initial=2)))
        scale: dict[str, Any] = {"vmin": 0, "vmax": 1} if normalize else {"norm": log}
        shown = np.ma.masked_where(~(values > 0), values)
        image = axes.imshow(shown, cmap="Blues", interpolation="nearest", aspect="equal", **scale)
        _name(axes, report.class_names)
        if num_classes <= _TEXTS:
            _put_texts(axes, values, normalize)
        bar = axes.figure.colorbar(image, ax=axes, fraction=0.045, pad=0.03)
        bar.set_label(
            {"truth": "share of truth", "pred": "share of prediction"}.get(
                normalize or "", "pixels"
            )
        )
        if normalize:
            in_percent(bar.ax.yaxis)
        bar.outline.set_visible(False)
    return axes


def _values(
    matrix: NDArray[np.int64], unassigned: NDArray[np.int64], normalize: str | None
) -> Floats:
    if normalize == "truth":
        return ratio(matrix, (matrix.sum(1) + unassigned)[:, None])
    if normalize == "pred":
        return ratio(matrix, matrix.sum(0, keepdims=True))
    if normalize is not None:
        msg = f"normalize must be 'truth', 'pred' or None, got {normalize!r}"
        raise ValueError(msg)
    return matrix.astype(np.float64)


def _name(axes: Axes, class_names: tuple[str, ...]) -> None:
    axes.set_xlabel("prediction")
    axes.set_ylabel("truth")
    axes.spines[:].set(visible=True, color="#d8d5cc")
    axes.tick_params(length=0)
    if len(class_names) > _NAMED:
        return
    names = [short_name(name) for name in class_names]
    places = range(len(names))
    size = min(7.0, 190 / len(names))
    axes.set_xticks(places)
    axes.set_yticks(places)
    axes.set_xticklabels(names, rotation=90, fontsize=size, parse_math=False)
    axes.set_yticklabels(names, fontsize=size, parse_math=False)


def _put_texts(axes: Axes, values: Floats, normalize: str | None) -> None:
    top = float(np.nanmax(values, initial=1.0))
    for t, p in np.argwhere(values > 0).tolist():
        value = float(values[t, p])
        dark = value > 0.55 if normalize else np.log1p(value) > 0.6 * np.log1p(top)
        text = f"{100 * value:.0f}" if normalize else short_count(value)
        if text == "0":
            continue
        axes.text(
            p, t, text, ha="center", va="center", fontsize=5.5, color="white" if dark else "black"
        )
