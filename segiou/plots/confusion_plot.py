"""Plot of the confusion matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Unpack, cast

import numpy as np

from segiou._support.arguments import check_flag
from segiou._support.numbers import short_count
from segiou._support.text import nouns
from segiou.metrics.ratio import Floats, ratio
from segiou.plots.class_plots import count_note
from segiou.plots.style import (
    COLUMN,
    PAGE,
    Look,
    NothingToDraw,
    drawing,
    format_percent,
    ink_on,
    plot_kind,
    report_of,
    require,
    short_names,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: More classes are drawn on the width of a page.
_COLUMN = 20
#: Sizes of text in points: of names and of numbers at most, and of both at least.
_NAME, _NUMBER, _LEAST = 7.0, 6.0, 4.5
#: Width of a character, and height of a line, by the size of the text; share of a cell it fills.
_WIDTH, _LINE, _FILLED = 0.64, 1.2, 0.95
#: Margin of a figure above and below, in inches.
_MARGIN = 0.08
#: Label of the colour bar, by normalisation.
_SHARES = {"truth": "share of truth", "pred": "share of prediction"}


@plot_kind
def confusion_matrix(
    source: Any,
    *,
    normalize: Literal["truth", "pred"] | None = "truth",
    absent: bool = False,
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
    absent : bool
        Whether to draw classes that occur neither in the truth nor in the predictions.
    cmap : str or Colormap
        Colour map of the cells.
    title, figsize, ax
        As for :func:`class_bars`.

    Returns
    -------
    Axes
        Cells show their values, and the axes show class names, if they fit. Matrices of
        more than 20 classes are 7 inches wide.

    Raises
    ------
    ValueError
        If ``normalize`` is unknown, or the classes are overlapping channels,
        which have no confusion matrix.
    """
    check_flag("absent", absent)
    report = report_of(source)
    if not report.has_matrix:
        msg = "overlapping channels have no confusion matrix; draw class_bars instead"
        raise NothingToDraw(msg)
    if normalize not in (*_SHARES, None):
        msg = f"normalize must be 'truth', 'pred' or None, got {normalize!r}"
        raise ValueError(msg)
    matrix, truth = report.matrix, report.matrix.sum(1) + report.unassigned
    wholes = {"truth": truth[:, None], "pred": matrix.sum(0)}
    values = ratio(matrix, wholes[normalize]) if normalize else matrix.astype(np.float64)
    occurs = (truth > 0) | (matrix.sum(0) > 0)
    shown = np.flatnonzero(occurs | (absent or not occurs.any()))
    values = values[np.ix_(shown, shown)]
    width = COLUMN if len(shown) <= _COLUMN else PAGE
    with drawing(width, width=width, **look) as axes:
        cells = _draw_cells(axes, values, normalize, cmap)
        unit = nouns(report.unit).pixel + "s"
        _draw_bar(axes, cells, _SHARES[normalize] if normalize else unit, is_share=bool(normalize))
        names = [report.class_names[i] for i in shown]
        _name(axes, names, count_note(len(names), len(occurs), "occurring"))
        _fit(axes, look)
        _put_texts(axes, values, cells, is_share=bool(normalize))
    return axes


def _draw_cells(axes: Axes, values: Floats, normalize: str | None, cmap: Any) -> Any:
    """Draw the cells that are not empty."""
    log = require("matplotlib.colors").LogNorm(1, max(2, np.nanmax(values, initial=2)))
    scale: dict[str, Any] = {"vmin": 0, "vmax": 1} if normalize else {"norm": log}
    shown = np.ma.masked_where(~(values > 0), values)
    return axes.imshow(shown, cmap=cmap, interpolation="nearest", aspect="equal", **scale)


def _draw_bar(axes: Axes, cells: Any, label: str, *, is_share: bool) -> None:
    """Draw the bar of the colours."""
    bar = axes.figure.colorbar(cells, ax=axes, fraction=0.045, pad=0.03, aspect=40)
    bar.set_label(label)
    if is_share:
        format_percent(bar.ax.yaxis)
    bar.outline.set_visible(False)


def _name(axes: Axes, names: list[str], note: str) -> None:
    """Label the axes and their rows."""
    axes.set_xlabel(f"prediction{note}")
    axes.set_ylabel("truth")
    axes.spines[:].set(visible=True, color="#d8d5cc")
    axes.tick_params(length=0)
    short, places = short_names(names), range(len(names))
    axes.set_xticks(places, short, rotation=90, fontsize=_NAME, parse_math=False)
    axes.set_yticks(places, short, fontsize=_NAME, parse_math=False)


def _fit(axes: Axes, look: Look) -> None:
    """Shrink names that would touch, or remove them, and the empty part of a new figure."""
    figure = cast("Figure", axes.figure)
    if look.get("ax") is None:
        figure.set_layout_engine("compressed")
        figure.draw_without_rendering()
    cell, longest = _cell(axes), max(len(text.get_text()) for text in axes.get_xticklabels())
    size = min(_NAME, cell / _LINE)
    if size < _LEAST:
        axes.set(xticks=[], yticks=[])
    axes.tick_params(labelsize=size)
    if _WIDTH * size * longest <= cell:
        axes.tick_params(axis="x", labelrotation=0)
    if look.get("ax") is None and look.get("figsize") is None:
        figure.draw_without_rendering()
        figure.set_figheight(figure.get_tightbbox().height + _MARGIN)
        figure.draw_without_rendering()


def _cell(axes: Axes) -> float:
    """Width of a cell in points."""
    axes.apply_aspect()
    left, right = axes.get_xlim()
    return float(axes.get_window_extent().width / axes.figure.dpi * 72 / (right - left))


def _put_texts(axes: Axes, values: Floats, cells: Any, *, is_share: bool) -> None:
    """Write the values that are not 0 into their cells, if they fit."""
    texts = {}
    for t, p in np.argwhere(values > 0).tolist():
        value = float(values[t, p])
        texts[t, p] = f"{100 * value:.0f}" if is_share else short_count(value)
    longest = max(map(len, texts.values()), default=1)
    size = min(_NUMBER, _FILLED * _cell(axes) / (_WIDTH * longest))
    if size < _LEAST:
        return
    place: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": size}
    for (t, p), text in texts.items():
        if text != "0":
            axes.text(p, t, text, color=ink_on(cells.to_rgba(values[t, p])), **place)
