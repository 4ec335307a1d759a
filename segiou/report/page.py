"""What every HTML page of a report is made of."""

from __future__ import annotations

import colorsys
import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from segiou._support import __version__
from segiou._support.html import content_policy, script_of
from segiou._support.text import called, p_text, points, unbroken
from segiou.labels.label_set import LabelSet
from segiou.report.wording import cell, range_text, signed

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

    from segiou.analysis.bootstrapping import Interval, Intervals
    from segiou.analysis.steps import NextStep


def count(value: int) -> str:
    """Write an integer in groups of three, kept together on a line.

    Examples
    --------
    >>> count(1234567).replace("\N{NARROW NO-BREAK SPACE}", "_")
    '1_234_567'
    """
    return f"{value:,}".replace(",", "\N{NARROW NO-BREAK SPACE}")


def position(value: float) -> str:
    """Write a ratio as a place along an axis, in per cent for SVG.

    Examples
    --------
    >>> position(0.4679)
    '46.79%'
    """
    return f"{100 * min(max(value, 0.0), 1.0):.2f}%"


def plural(number: int, one: str, many: str | None = None) -> str:
    """Put a number before a noun.

    Examples
    --------
    >>> plural(1, "class", "classes"), plural(3, "image")
    ('1 class', '3 images')
    """
    return f"{count(number)} {one if number == 1 else many or one + 's'}"


Color = tuple[int, int, int]

IGNORED_COLOR: Color = (214, 211, 203)
UNASSIGNED_COLOR: Color = (255, 0, 170)
_GOLDEN = 0.618033988749895
#: So many hues a golden angle apart are different colours; and what mixes the others.
_HUES, _ODD = 1024, 0x9E3779


def class_colors(labels: LabelSet) -> tuple[Color, ...]:
    """Colours of the classes, then of ignored and of unassigned pixels, all different.

    A class keeps the first colour of its label set where no other has it; the
    others get hues a golden angle apart.

    Examples
    --------
    >>> colors = class_colors(LabelSet.from_names(["road", "car"]))
    >>> len(colors), len(set(colors))
    (4, 4)
    """
    used = {IGNORED_COLOR, UNASSIGNED_COLOR}
    colors = []
    for index, entry in enumerate(labels.classes):
        own = entry.colors[0] if entry.colors else None
        color = own if own is not None and own not in used else _invented(index, used)
        used.add(color)
        colors.append(color)
    return (*colors, IGNORED_COLOR, UNASSIGNED_COLOR)


def _invented(index: int, used: set[Color]) -> Color:
    step = index
    while True:
        hue = (0.58 + step * _GOLDEN) % 1.0
        # Three rings of lightness, so that neighbours in hue still differ.
        lightness = (0.48, 0.64, 0.34)[step % 3]
        red, green, blue = colorsys.hls_to_rgb(hue, lightness, 0.52)
        color = (round(255 * red), round(255 * green), round(255 * blue))
        if step >= _HUES:  # there are no more such colours: any others, each of them once
            mixed = step * _ODD % (1 << 24)
            color = (mixed >> 16, mixed >> 8 & 255, mixed & 255)
        if color not in used:
            return color
        step += 1


def hex_color(color: Color) -> str:
    """Write a colour as ``#rrggbb``."""
    return "#{:02x}{:02x}{:02x}".format(*color)


Range = tuple[float, float]

#: The report's names of the scores over all classes, by the metric that is averaged.
_OVERALL = {"iou": "mean_iou", "dice": "mean_dice", "recall": "mean_accuracy"}


@dataclass(frozen=True, slots=True)
class Bounds:
    """Lower and upper ends of what is shown.

    Attributes
    ----------
    level : str
        Such as ``"95 %"``.
    about : str
        Level, method, unit and seed, in words.
    cautions : tuple of str
        What makes them unsafe, in sentences.
    overall : mapping of str to (float, float)
        By name of the score: ``"mean_iou"``, ``"pixel_accuracy"``, …
    classes : mapping of str to (float, float)
        IoU by name of the class.
    unsure : mapping of str to str
        Classes that are in few of the units, and in how many.
    """

    level: str = ""
    about: str = ""
    cautions: tuple[str, ...] = ()
    overall: Mapping[str, Range] = field(default_factory=dict)
    classes: Mapping[str, Range] = field(default_factory=dict)
    unsure: Mapping[str, str] = field(default_factory=dict)


def bounds_of(intervals: Iterable[Intervals]) -> Bounds:
    """Take what the pages show from bootstrap intervals of several metrics."""
    level = about = ""
    cautions: list[str] = []
    overall: dict[str, Range] = {}
    classes: dict[str, Range] = {}
    unsure: dict[str, str] = {}
    for found in intervals:
        level = level or f"{100 * found.level:g}\N{NO-BREAK SPACE}%"
        about = about or _about(found)
        _take(found.overall, _OVERALL.get(found.metric, found.metric), overall)
        if found.metric != "iou":
            continue
        cautions = found.cautions()
        for interval in found.classes:
            _take(interval, interval.name, classes)
            if interval.few and 0 < interval.units < found.units:
                unsure[interval.name] = f"in {plural(interval.units, found.unit)} only"
    return Bounds(level, about, tuple(cautions), overall, classes, unsure)


def _take(interval: Interval, name: str, into: dict[str, Range]) -> None:
    if not math.isnan(interval.low):
        into[name] = (interval.low, interval.high)


def _about(found: Intervals) -> str:
    return (
        f"{100 * found.level:g} % bootstrap intervals over {found.resampled}, "
        f"{count(found.resamples)} resamples, seed {found.seed}"
    )


#: The explorer's theme is the theme of all pages.
_THEME_STYLE, _THEME_SCRIPT = (
    ("explorer_files", "theme.css"),
    ("explorer_files", "script", "theme.js"),
)
STYLES = ("page.css", "tables.css", "charts.css", "images.css", "print.css")

# The order matters: each file uses names that those before it declare.
SCRIPTS = (
    *(
        "base.js",
        "address.js",
        "table.js",
        "matrix.js",
        "pictures.js",
        "objects.js",
        "viewer.js",
        "panels.js",
    ),
    *("images.js", "main.js"),
)


def assemble(template: str, context: Mapping[str, Any], data: Mapping[str, Any]) -> str:
    """Fill a template and put styles, script and data into it.

    Everything in the context is escaped by the template engine.

    Parameters
    ----------
    template : str
        Name of the template.
    context : mapping
        What it shows.
    data : mapping
        What the script needs, as plain data.
    """
    from markupsafe import Markup

    style, script = _style(), _script()
    return (
        _environment()
        .get_template(template)
        .render(
            **context,
            policy=content_policy(style, script, more=bool((data["images"] or {}).get("folder"))),
            # Our own files, whose hashes are in the policy.
            style=Markup(style),
            script=Markup(script),
            data=Markup(_json_in_html(data)),
            version=__version__,
        )
    )


def _json_in_html(data: Mapping[str, Any]) -> str:
    """Compact JSON that no HTML parser takes for the end of its element."""
    text = json.dumps(data, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def images_link(**state: str | None) -> str:
    """The address, within the page, of some images: ``t``, ``p``, ``c``, ``image``.

    Examples
    --------
    >>> images_link(t="fence", p="building"), images_link(t=None, p="no class")
    ('#t=fence&p=building', '#p=no+class')
    """
    return "#" + urlencode({key: text for key, text in state.items() if text is not None})


def _step_link(step: NextStep, image: str | None = None) -> str:
    if step.kind in ("few_images", "swapped_classes"):
        return images_link(c=step.truth, image=image)
    pred = "no class" if step.kind == "confusion" and step.pred is None else step.pred
    return images_link(t=step.truth, p=pred, image=image)


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    environment = Environment(
        loader=FunctionLoader(lambda name: _read("templates", name)),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "percent": cell,
        "points": points,
        "range": range_text,
        "count": count,
        "signed": signed,
        "plural": plural,
        "position": position,
        "p": p_text,
        "sentence": _sentence,
        "unbroken": _unbroken,
        "called": called,
        "link": lambda truth, pred: images_link(t=truth, p=pred),
        "class_link": lambda name: images_link(c=name),
        "image_link": lambda id: images_link(image=id),
        "step_link": _step_link,
        "step_text": lambda step: str(replace(step, images=())),
    }
    return environment


def _unbroken(text: str) -> Markup:
    """A text whose numbers and options are not broken."""
    from markupsafe import Markup, escape

    whole = r'<span class="whole">\g<0></span>'
    return Markup(re.sub(r"--[a-z]+(-[a-z]+)*( auto| none)?", whole, str(escape(unbroken(text)))))


def _sentence(text: str) -> str:
    """Begin with a capital and end with a stop."""
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}"


@cache
def _style() -> str:
    return "\n".join([_read(*_THEME_STYLE), *(_read("style", name) for name in STYLES)])


@cache
def _script() -> str:
    base, *others = (_read("script", name) for name in SCRIPTS)
    return script_of([base, _read(*_THEME_SCRIPT), *others])


def _read(*parts: str) -> str:
    return resources.files(__package__).joinpath(*parts).read_text(encoding="utf-8")
