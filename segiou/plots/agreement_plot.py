"""Plot of the agreement of true and predicted volumes, by Bland and Altman."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack

from segiou._support.arguments import check_kind
from segiou._support.numbers import shown_change, with_unit
from segiou._support.text import did_you_mean
from segiou.plots.style import (
    IOU,
    MUTED,
    Look,
    NothingToDraw,
    drawing,
    label_x,
    plot_kind,
    report_of,
    short_name,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@plot_kind
def bland_altman(
    source: Any, structure: str = "", *, color: Any = IOU, **look: Unpack[Look]
) -> Axes:
    """Draw the difference of predicted and true volume against their mean, one point per case.

    Parameters
    ----------
    source : Report or Run
        Source of the volumes, with the measure ``volume``.
    structure : str
        The structure; by default the first that at least two cases have.
    color, title, figsize, ax
        As for :func:`class_bars`.

    Returns
    -------
    Axes
        A solid line is the bias, dashed lines are the limits of agreement, and bars at the
        right are their confidence intervals.

    Raises
    ------
    ValueError
        If volumes were not measured, the structure is unknown, or fewer than two cases have it.
    """
    tables = report_of(source).tables
    data: Any = next((table.to_dict()["volume"] for table in tables if table.key == "volume"), None)
    if data is None:
        msg = "volumes were not measured; score with measures=['volume'] (--volume)"
        raise NothingToDraw(msg)
    agreement = data["agreement"]
    check_kind("structure", structure, str, "the name of a structure")
    if structure and structure not in agreement:
        hint = did_you_mean(structure, agreement) or f"; choose from {', '.join(agreement)}"
        msg = f"unknown structure {structure!r}{hint}"
        raise ValueError(msg)
    name = structure or next(
        (name for name, limits in agreement.items() if limits["cases"] > 1), ""
    )
    if not name or agreement[name]["cases"] < 2:
        msg = "limits of agreement need at least two cases with the structure"
        raise NothingToDraw(msg)
    rows = [row for row in data["cases"] if row["label"] == name and (row["truth"] or row["pred"])]
    with drawing(2.6, **look) as axes:
        axes.margins(x=0.12)
        means = [(row["truth"] + row["pred"]) / 2 for row in rows]
        axes.plot(means, [row["pred"] - row["truth"] for row in rows], "o", color=color, ms=3)
        _draw_limits(axes, agreement[name], data["unit"])
        if not agreement[name]["sd"]:  # else rounding errors would be the unit of the axis
            axes.set_ylim(agreement[name]["bias"] - 1, agreement[name]["bias"] + 1)
        noun = data["title"].lower().removesuffix("s")
        label_x(axes, with_unit(f"mean {noun} of {short_name(name, 24)}", data["unit"]), "")
        axes.set_ylabel(with_unit("prediction − truth", data["unit"]))
    return axes


def _draw_limits(axes: Axes, agreement: Any, unit: str) -> None:
    """Draw bias and limits with their intervals, and write their values."""
    places: tuple[tuple[str, float], ...] = (("low", 0.94), ("bias", 0.96), ("high", 0.98))
    if agreement["low"] == agreement["high"]:  # equal to the bias
        places = (("bias", 0.96),)
    for key, place in places:
        value, ends = agreement[key], agreement[f"{key}_interval"]
        dashes: Any = "-" if key == "bias" else (0, (4, 2))
        axes.axhline(value, color="black", linewidth=0.9, linestyle=dashes)
        bar: Any = {"transform": axes.get_yaxis_transform(), "color": MUTED}
        axes.errorbar([place], [value], [[value - ends[0]], [ends[1] - value]], capsize=2, **bar)
        axes.annotate(
            shown_change(value, unit),
            (1, value),
            xycoords=("axes fraction", "data"),
            xytext=(2, 0),
            textcoords="offset points",
            va="center",
            fontsize=6,
        )
