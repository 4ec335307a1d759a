"""What all figures share: size, fonts, and marks that survive a black and white printer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from io import BytesIO
from typing import TYPE_CHECKING, Any

from segiou._support.optional import import_extra

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

    from segiou.report.report import Report

#: Width of a paper's column in inches.
COLUMN = 3.3
#: Points an inch of a figure that a notebook shows; its picture has twice as many.
_SHOWN_DPI = 110

# A dark, a middle and a light tone: they differ in lightness as much as in hue.
IOU = "#0d695b"
OTHER = "#8f5bb5"
MUTED = "#8a8880"

_STYLE: dict[str, Any] = {
    "font.size": 8.0,
    "axes.titlesize": 8.0,
    "axes.labelsize": 8.0,
    "xtick.labelsize": 7.0,
    "ytick.labelsize": 7.0,
    "legend.fontsize": 7.0,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "grid.linewidth": 0.4,
    "grid.color": "#d8d5cc",
    "lines.linewidth": 1.2,
    "hatch.linewidth": 0.5,
    "axes.axisbelow": True,
}
#: In force whenever a figure is saved: text stays text, which can be searched and edited to fit
#: the paper, and the same figure gives the same file.
_SAVED: dict[str, Any] = {
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
    "ps.fonttype": 42,
    "svg.hashsalt": "segiou",
}


#: Import a module of matplotlib; an error names the extra.
require: partial[Any] = partial(import_extra, need="plots need matplotlib", extra="plot")


@contextmanager
def drawing(ax: Axes | None, height: float) -> Iterator[Axes]:
    """The axes to draw on: those given, in their own style, or new ones in ours."""
    matplotlib = require("matplotlib")
    if ax is not None:
        yield ax
        return
    figure_class, axes_class = _classes()
    with matplotlib.rc_context(_STYLE):
        figure = figure_class(figsize=(COLUMN, height), layout="constrained")
        yield figure.add_subplot(axes_class=axes_class)


@cache
def _classes() -> tuple[type[Any], type[Any]]:
    """Classes of figures and axes, which a program without matplotlib never makes."""
    axes_base: Any = require("matplotlib.axes").Axes
    figure_base: Any = require("matplotlib.figure").Figure
    rc_context = require("matplotlib").rc_context

    class PaperFigure(figure_base):  # type: ignore[misc]
        """A figure that embeds TrueType fonts however it is saved."""

        def set_canvas(self, canvas: Any) -> None:
            super().set_canvas(canvas)
            save = canvas.print_figure

            def print_figure(filename: Any, *args: Any, **options: Any) -> Any:
                # Several figures share a PdfPages, and its fonts are written when it is closed.
                shared = isinstance(filename, require("matplotlib.backends.backend_pdf").PdfPages)
                with rc_context({} if shared else _SAVED):
                    return save(filename, *args, **options)

            canvas.print_figure = print_figure

        def __reduce__(self) -> tuple[Any, ...]:
            return _empty_figure, (), self.__getstate__()

        def _repr_png_(self) -> tuple[bytes, dict[str, float]]:
            out = BytesIO()
            self.savefig(out, format="png", dpi=2 * _SHOWN_DPI)
            return out.getvalue(), {"width": round(self.get_figwidth() * _SHOWN_DPI)}

    class PaperAxes(axes_base):  # type: ignore[misc]
        """Axes that a notebook shows as their figure."""

        def _repr_png_(self) -> tuple[bytes, dict[str, float]]:
            shown: tuple[bytes, dict[str, float]] = self.figure._repr_png_()
            return shown

    # Trackers know a figure by where its class says that it stands.
    PaperFigure.__module__ = figure_base.__module__
    PaperAxes.__qualname__ = PaperAxes.__name__
    return PaperFigure, PaperAxes


def _empty_figure() -> Any:
    """A figure without its state, which pickle adds."""
    figure_class: Any = _classes()[0]
    return figure_class.__new__(figure_class)


def __getattr__(name: str) -> Any:
    """The class of the axes by its name, where a pickled figure looks for it."""
    if name == "PaperAxes":
        return _classes()[1]
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)


def report_of(source: Any) -> Report:
    """The report of a run, a confusion matrix or channels; a report is returned as it is.

    Raises
    ------
    TypeError
        If there is no report to be had.
    """
    made = source.report() if callable(getattr(source, "report", None)) else source
    if not hasattr(made, "tally"):
        msg = (
            f"a Report, Run or ConfusionMatrix can be drawn, not {type(source).__name__}; "
            "score first: segiou.score_folder or segiou.score"
        )
        raise TypeError(msg)
    found: Report = made
    return found


def legend_above(ax: Axes, columns: int, **options: Any) -> None:
    """The legend in one line above the axes."""
    ax.legend(
        loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=columns, borderpad=0.1, **options
    )


def in_percent(axis: Axis, unit: str = " %") -> None:
    """Number an axis of ratios in per cent; one of their differences, without a unit, in points."""
    # No lambda, which cannot be pickled: a figure may go to another process.
    number = partial(_hundredfold, unit)
    axis.set_major_formatter(require("matplotlib.ticker").FuncFormatter(number))


def _hundredfold(unit: str, value: float, _: int) -> str:
    return f"{100 * value:g}{unit}"


def name_rows(ax: Axes, names: Sequence[str]) -> None:
    """Name the rows of a chart, first on top, and rule it; a dollar in a name is a dollar."""
    ax.set_yticks(range(len(names)), [short_name(name) for name in names], parse_math=False)
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.tick_params(axis="y", length=0)
    ax.grid(visible=True, axis="x")
    ax.spines["left"].set_visible(False)


def short_name(name: str, most: int = 24) -> str:
    """A name on one line, cut where it is long."""
    name = " ".join(name.split())
    return name if len(name) <= most else f"{name[: most - 1]}…"
