"""Plot of the confusion matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Unpack, cast

import numpy as np

from segiou._support.numbers import short_count
from segiou.metrics.ratio import Floats, ratio
from segiou.plots.style import (
    Look,
    NothingToDraw,
    drawing,
    in_percent,
    plot_kind,
    report_of,
    require,
    short_names,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_TEXTS = 12
_NAMED = 40
#: Label of the colour bar, by normalisation.
_SHARES = {"truth": "share of truth", "pred": "share of prediction", None: "pixels"}


@plot_kind
def confusion_matrix(
    source: Any,
    *,
    normalize: Literal["truth", "pred"] | None = "truth",
    cmap: Any = "Blues",
    **look: Unpack[Look],
) -> Axes:
    """Draw the confusion matrix, with the truth in rows.

    Parameters
    ----------
    source : Report, Run or ConfusionMatrix
        Source of the matrix.
    normalize : {"truth", "pred"}, optional
        Shares of each row (the diagonal is recall) or of each column (precision);
        None for pixels on a logarithmic scale.
    cmap : str or Colormap
        Colour map of the cells.
    title, figsize, ax
        As for :func:`class_bars`.

    Returns
    -------
    Axes
        Up to 12 classes, cells show their values; up to 40, the axes show class names.

    Raises
    ------
    ValueError
        If ``normalize`` is unknown, or the classes are overlapping channels,
        which have no confusion matrix.
    """
    report = report_of(source)
    if not report.has_matrix:
        msg = "overlapping channels have no confusion matrix; draw class_bars instead"
        raise NothingToDraw(msg)
    if normalize not in _SHARES:
        msg = f"normalize must be 'truth', 'pred' or None, got {normalize!r}"
        raise ValueError(msg)
    matrix = report.matrix
    wholes = {"truth": (matrix.sum(1) + report.unassigned)[:, None], "pred": matrix.sum(0)}
    values = ratio(matrix, wholes[normalize]) if normalize else matrix.astype(np.float64)
    num_classes = len(values)
    with drawing(3.3 if num_classes > 6 else 2.7, **look) as axes:
        log = require("matplotlib.colors").LogNorm(1, max(2, np.nanmax(values, initial=2)))
        scale: dict[str, Any] = {"vmin": 0, "vmax": 1} if normalize else {"norm": log}
        shown = np.ma.masked_where(~(values > 0), values)
        image = axes.imshow(shown, cmap=cmap, interpolation="nearest", aspect="equal", **scale)
        _name(axes, report.class_names)
        if num_classes <= _TEXTS:
            _put_texts(axes, values, normalize)
        bar = axes.figure.colorbar(image, ax=axes, fraction=0.045, pad=0.03)
        bar.set_label(_SHARES[normalize])
        if normalize:
            in_percent(bar.ax.yaxis)
        bar.outline.set_visible(False)
        if look.get("ax") is None:  # else the label of rows is cut off
            cast("Figure", axes.figure).set_layout_engine("compressed")
    return axes


def _name(axes: Axes, class_names: tuple[str, ...]) -> None:
    axes.set_xlabel("prediction")
    axes.set_ylabel("truth")
    axes.spines[:].set(visible=True, color="#d8d5cc")
    axes.tick_params(length=0)
    if len(class_names) > _NAMED:
        return
    names = short_names(class_names)
    places, size = range(len(names)), min(7.0, 190 / len(names))
    axes.set_xticks(places, names, rotation=90, fontsize=size, parse_math=False)
    axes.set_yticks(places, names, fontsize=size, parse_math=False)


def _put_texts(axes: Axes, values: Floats, normalize: str | None) -> None:
    top = float(np.nanmax(values, initial=1.0))
    for t, p in np.argwhere(values > 0).tolist():
        value = float(values[t, p])
        dark = value > 0.55 if normalize else np.log1p(value) > 0.6 * np.log1p(top)
        text = f"{100 * value:.0f}" if normalize else short_count(value)
        if text != "0":
            color = "white" if dark else "black"
            axes.text(p, t, text, ha="center", va="center", fontsize=5.5, color=color)
