"""Shared style of figures: size, fonts, and colours that also differ in black and white."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, partial, wraps
from inspect import signature
from typing import TYPE_CHECKING, Any, ParamSpec, TypedDict, TypeVar, cast

import numpy as np

from segiou._support.arguments import check_integer, check_kind, check_number, refuse_kind
from segiou._support.files import printable
from segiou._support.locks import Lockable
from segiou._support.optional import import_extra
from segiou._support.text import did_you_mean

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

    from segiou.report.report import Report

P = ParamSpec("P")
R = TypeVar("R")

#: Widths of a column and of a page of a paper, in inches.
COLUMN, PAGE = 3.3, 7.0
#: Characters of a row of a legend, and of a label as wide as the figure.
_LEGEND, _LABEL = 57, 50
#: Points per inch in notebooks and of saved pictures: a column is 660 pixels wide.
_DPI = 200
#: Whether new figures are pyplot's, which shows and saves them.
_IN_PYPLOT = ContextVar("in_pyplot", default=True)

# A dark, a medium and a light tone, which differ in lightness as well as in hue.
IOU = "#0d695b"
OTHER = "#8f5bb5"
MUTED = "#8a8880"

_STYLE: dict[str, Any] = {
    "font.size": 8.0,
    "axes.titlesize": 8.0,
    "figure.titlesize": 8.0,
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
#: Luminance of a colour with which black and white have the same contrast.
_DARK = 0.179
#: Settings for saving: text stays searchable and editable, and files are reproducible.
_SAVED: dict[str, Any] = {
    "savefig.facecolor": "auto",
    "savefig.edgecolor": "auto",
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
    "ps.fonttype": 42,
    "svg.hashsalt": "segiou",
}


#: Threads draw one after the other, because the settings of matplotlib are global.
_LOCK = Lockable()

Size = tuple[float, float] | None


class Look(TypedDict, total=False):
    """Options of every plot: its title, size in inches, and axes to draw into."""

    title: str | None
    figsize: Size
    ax: Axes | None


class NothingToDraw(ValueError):
    """The source lacks the data of a plot, which is skipped when all plots are saved."""


#: Import a module of matplotlib; an error names the extra.
require: partial[Any] = partial(import_extra, need="plots require matplotlib", extra="plot")


def _check_axes(name: str, value: Any) -> None:
    if value is not None:
        wanted = "axes of matplotlib; of several axes, pass one, such as axes[0]"
        check_kind(name, value, require("matplotlib.axes").Axes, wanted)
        if "left" not in value.spines or hasattr(value, "zaxis"):
            msg = f"{name} must have straight axes x and y, got projection {value.name!r}"
            raise ValueError(msg)


def _check_size(name: str, value: Any) -> None:
    if value is None:
        return
    if isinstance(value, str) or not hasattr(value, "__len__"):
        raise refuse_kind(name, value, "(width, height) in inches")
    if len(value) != 2:
        msg = f"{name} must be (width, height) in inches, got {value!r}"
        raise ValueError(msg)
    for length in value:
        check_number(name, length, 0.1, 600)


def _check_color(name: str, value: Any) -> None:
    if value is not None and not require("matplotlib.colors").is_color_like(value):
        msg = f"{name}: expected a colour of matplotlib, such as 'red' or '#0d695b', got {value!r}"
        raise ValueError(msg)


def _check_map(name: str, value: Any) -> None:
    known = [*require("matplotlib").colormaps]
    if isinstance(value, str) and value not in known:
        hint = did_you_mean(value, known) or "; pass a colour map of matplotlib, such as viridis"
        msg = f"unknown {name} {value!r}{hint}"
        raise ValueError(msg)
    if value is not None:
        kinds = (str, require("matplotlib.colors").Colormap)
        check_kind(name, value, kinds, "the name of a colour map, or a Colormap")


#: Checks of the options that several kinds have.
_CHECKS: dict[str, Callable[[str, Any], object]] = {
    "ax": _check_axes,
    "color": _check_color,
    "cmap": _check_map,
    "figsize": _check_size,
    "limit": partial(check_integer, least=1),
    "bins": partial(check_integer, least=1, most=1000),  # each is drawn
    "metric": partial(check_kind, kinds=str, wanted="the name of a score"),
}


def plot_kind(draw: Callable[P, R]) -> Callable[P, R]:
    """Make a function a kind of plot, which checks its options and names unknown ones."""
    first, *names = signature(draw).parameters
    options = [*names[:-1], *Look.__annotations__]  # the last is **look

    @wraps(draw)
    def checked(*args: P.args, **chosen: P.kwargs) -> R:
        for name in chosen:
            if name not in (first, *options):
                choices = f"choose from {', '.join(options)}{did_you_mean(name, options)}"
                msg = f"{draw.__name__} has no option {name!r}; {choices}"
                raise TypeError(msg)
        for name in _CHECKS.keys() & chosen.keys():
            _CHECKS[name](name, chosen[name])
        return draw(*args, **chosen)

    return checked


@contextmanager
def drawing(
    height: float,
    *,
    width: float = COLUMN,
    title: str | None = None,
    figsize: Size = None,
    ax: Axes | None = None,
) -> Iterator[Axes]:
    """Axes to draw on: the given ones in their own style, or new ones in ours."""
    require("matplotlib")
    if ax is not None:
        if figsize is not None:
            msg = "figsize applies to new figures only; omit figsize or ax"
            raise ValueError(msg)
        with _LOCK.lock, _style_of(ax):
            yield ax
            if title is not None:
                ax.set_title(title, parse_math=False)
        return
    with new_figure(figsize or (width, height), layout="constrained") as figure:
        if title is not None:  # of the figure, so that it is above a legend
            figure.suptitle(title, parse_math=False)
        yield figure.add_subplot()


@contextmanager
def new_figure(size: tuple[float, float], **options: Any) -> Iterator[Figure]:
    """A new figure in our style: pyplot's current one, so that notebooks and scripts have it."""
    figure_class = _figure_class()
    pyplot = require("matplotlib.pyplot") if _IN_PYPLOT.get() else None
    options |= {"figsize": size, "dpi": _DPI, "facecolor": "white"}
    # Outside the style, because a backend that is loaded now changes settings for good.
    create = partial(pyplot.figure, FigureClass=figure_class) if pyplot else figure_class
    with _LOCK.lock:
        figure = create(**options)
        try:
            with _our_style():
                yield figure
        except BaseException:
            if pyplot:  # else notebooks would show what was drawn until then
                pyplot.close(figure)
            raise


def _our_style() -> Any:
    """Our style in place of a theme of the user, of which fonts are kept."""
    theme = require("matplotlib").rcParams
    fonts = {name: theme[name] for name in theme if name.startswith(("font.", "mathtext."))}
    # The default resets what a theme set, such as white text or a grid above a matrix.
    return require("matplotlib.style").context(["default", fonts | _STYLE])


def _style_of(axes: Axes) -> Any:
    """The settings for parts that are drawn later, if axes come from another theme."""
    rc_context: Any = require("matplotlib").rc_context
    color, text = axes.xaxis.label.get_color(), axes.title.get_color()
    if color == require("matplotlib").rcParams["axes.labelcolor"]:
        return rc_context()
    names = ("axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
    # The background of legends is that of axes.
    own = {"text.color": text, "axes.facecolor": paper(axes)}
    return rc_context(own | dict.fromkeys(names, color))


def paper(axes: Axes) -> Any:
    """The background of axes, or of their figure if they are transparent."""
    to_rgba = require("matplotlib.colors").to_rgba
    faces = (axes.patch, axes.figure.patch, axes.figure.figure.patch)
    colors = [to_rgba(face.get_facecolor()) for face in faces]
    return next((color for color in colors if color[3] > 0.5), "white")


def ink(axes: Axes) -> str:
    """White on a dark background, otherwise black."""
    return ink_on(require("matplotlib.colors").to_rgba(paper(axes)))


def ink_on(color: Sequence[float]) -> str:
    """The one of black and white that contrasts more with a colour, by WCAG."""
    light = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in color[:3]]
    return "white" if np.dot(light, [0.2126, 0.7152, 0.0722]) < _DARK else "black"


@contextmanager
def no_pyplot() -> Iterator[None]:
    """Keep new figures from pyplot, because they are for files or loggers only."""
    token = _IN_PYPLOT.set(False)
    try:
        yield
    finally:
        _IN_PYPLOT.reset(token)


@cache
def _figure_class() -> type[Any]:
    """The class of figures, created only if matplotlib is installed."""
    figure_base: Any = require("matplotlib.figure").Figure
    rc_context = require("matplotlib").rc_context

    class PaperFigure(figure_base):  # type: ignore[misc]
        """A figure that embeds TrueType fonts however it is saved."""

        def set_canvas(self, canvas: Any) -> None:
            super().set_canvas(canvas)
            save = canvas.print_figure

            def print_figure(filename: Any, *args: Any, **options: Any) -> Any:
                # A PdfPages holds several figures and writes its fonts when it is closed.
                shared = isinstance(filename, require("matplotlib.backends.backend_pdf").PdfPages)
                with _LOCK.lock, rc_context({} if shared else _SAVED):
                    return save(filename, *args, **options)

            canvas.print_figure = print_figure

        def __reduce__(self) -> tuple[Any, ...]:
            return _empty_figure, (), self.__getstate__()

    # Trackers recognise a figure by the module of its class.
    PaperFigure.__module__ = figure_base.__module__
    return PaperFigure


def _empty_figure() -> Any:
    """A figure without state, to be filled by pickle."""
    figure_class: Any = _figure_class()
    return figure_class.__new__(figure_class)


def report_of(source: Any) -> Report:
    """The report of a run, confusion matrix or channels; a report is returned unchanged."""
    report: Any = source.report() if callable(getattr(source, "report", None)) else source
    if not hasattr(report, "tally"):
        msg = (
            f"expected a Report, Run or ConfusionMatrix, got {type(source).__name__}; score first "
            "with segiou.score or segiou.score_folder"
        )
        raise TypeError(msg)
    return cast("Report", report)


def class_index(names: Sequence[str], name: str) -> int:
    """Index of a class by name; the error lists some of the names."""
    check_kind("class_name", name, str, "the name of a class")
    if name not in names:
        msg = f"unknown class {name!r}; choose from {', '.join(names[:12])}"
        raise ValueError(msg)
    return names.index(name)


def legend_above(ax: Axes, columns: int, **options: Any) -> None:
    """Put the legend above the axes, in fewer columns if its names are long."""
    names = ax.get_legend_handles_labels()[1]
    fitting = _LEGEND // (5 + max(map(len, names), default=0))
    place: dict[str, Any] = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "borderpad": 0.1}
    legend = ax.legend(ncols=max(1, min(columns, fitting)), **place, **options)
    for text in legend.get_texts():
        text.set_parse_math(False)


def mark_point(ax: Axes, x: float, y: float, color: Any, **options: Any) -> None:
    """Mark a point of a curve with a dot."""
    ax.plot([x], [y], "o", color=color, markersize=4.5, markeredgecolor=paper(ax), **options)


def format_percent(axis: Axis, unit: str = " %") -> None:
    """Format an axis of ratios in per cent, or of differences in points (without a unit)."""
    # Not a lambda, because figures must be picklable.
    number = partial(_hundredfold, unit)
    axis.set_major_formatter(require("matplotlib.ticker").FuncFormatter(number))


def _hundredfold(unit: str, value: float, _: int) -> str:
    return f"{100 * value:g}{unit}".replace("-", "\N{MINUS SIGN}")


def name_rows(ax: Axes, names: Sequence[str], texts: Sequence[str] = ()) -> None:
    """Label the rows of a chart from top to bottom, with grid lines and without math text.

    Short texts follow the names, which are truncated more.
    """
    if texts:
        short = short_names(names, max(12, 24 - max(map(len, texts))))
        labels = [f"{name}{text}" for name, text in zip(short, texts, strict=True)]
    else:
        labels = short_names(names)
    ax.set_yticks(range(len(names)), labels, parse_math=False)
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.tick_params(axis="y", length=0)
    ax.grid(visible=True, axis="x")
    ax.set_axisbelow(True)
    ax.spines["left"].set_visible(False)


def label_x(ax: Axes, title: str, note: str = "") -> None:
    """Label the horizontal axis of a chart after its rows; long labels are wrapped.

    Labels that are wider than the axis end with it, and extend below the names of the rows.
    """
    first, _, rest = note.partition("\n")
    if first and len(title) + len(first) > _LABEL:
        note = f"\n{first.lstrip(', ')}\n{rest}".rstrip()
    text = f"{title}{note}"
    names = (len(label.get_text()) for label in ax.get_yticklabels())
    is_wide = max(map(len, text.split("\n"))) + max(names, default=0) > _LABEL
    ax.set_xlabel(text, loc="right" if is_wide else "center", parse_math=False)


def short_name(name: str, most: int = 24) -> str:
    """A name on one line, truncated if it is long."""
    name = _line(name)
    return name if len(name) <= most else f"{name[: most - 1]}…"


def _line(name: str) -> str:
    """A name on one line, with control characters escaped, also those that reverse text."""
    return printable(" ".join(name.split()))


def short_names(names: Sequence[str], most: int = 24) -> list[str]:
    """Names on one line each; if truncated names would be equal, they keep their ends."""
    short = [short_name(name, most) for name in names]
    if len(set(short)) == len(set(names)):
        return short
    half = (most - 1) // 2
    lines = [*map(_line, names)]
    return [n if len(n) <= most else f"{n[: most - 1 - half]}…{n[-half:]}" for n in lines]
