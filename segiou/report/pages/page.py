"""Parts that every HTML page of a report shares."""

from __future__ import annotations

import base64
import colorsys
import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib import resources
from itertools import chain, count as count_up
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from segiou._support import __version__, text as words
from segiou._support.files import printable
from segiou._support.numbers import (
    cell,
    cell_range,
    count,
    p_text,
    points,
    short_percent,
    shown,
    shown_change,
    shown_range,
    signed_points,
    unit_text,
)
from segiou._support.text import called, capital, unbroken
from segiou.inference.units import plural_of
from segiou.labels.label_set import BACKGROUNDS, LabelSet

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

    from segiou.analysis.gap.steps import NextStep


def position(value: float) -> str:
    """Write a ratio as a place along an axis, in per cent for SVG.

    >>> position(0.4679)
    '46.79%'
    """
    # Undefined is at the beginning.
    return f"{100 * min(max(0.0, value), 1.0):.2f}%"


def plural(number: int, noun: str, many: str | None = None) -> str:
    """A number and its noun, with the digits grouped by narrow blanks."""
    return words.plural(number, noun, many, write=count)


Color = tuple[int, int, int]

BACKGROUND_COLOR: Color = (62, 66, 74)
IGNORED_COLOR: Color = (214, 211, 203)
UNASSIGNED_COLOR: Color = (255, 0, 170)
_GOLDEN = 0.618033988749895
#: So many hues a golden angle apart are different colours; and what mixes the others.
_HUES, _ODD = 1024, 0x9E3779


def class_colors(labels: LabelSet) -> tuple[Color, ...]:
    """Colours of the classes, then of ignored and of unassigned pixels, all different.

    A class keeps the first colour of its label set if no other has it; a background
    is dark grey, and the others get hues a golden angle apart.

    >>> colors = class_colors(LabelSet.from_names(["road", "car"]))
    >>> len(colors), len(set(colors))
    (4, 4)
    """
    used = {IGNORED_COLOR, UNASSIGNED_COLOR}
    colors = []
    for index, entry in enumerate(labels.classes):
        muted = [BACKGROUND_COLOR] if entry.name.lower() in BACKGROUNDS else []
        candidates = chain(entry.colors[:1], muted, map(_invented, count_up(index)))
        color = next(color for color in candidates if color not in used)
        used.add(color)
        colors.append(color)
    return (*colors, IGNORED_COLOR, UNASSIGNED_COLOR)


def _invented(step: int) -> Color:
    if step >= _HUES:  # more classes than such colours: any others, each once
        mixed = step * _ODD % (1 << 24)
        return (mixed >> 16, mixed >> 8 & 255, mixed & 255)
    # Three rings of lightness, so that neighbours in hue still differ.
    lightness = (0.48, 0.64, 0.34)[step % 3]
    red, green, blue = colorsys.hls_to_rgb((0.58 + step * _GOLDEN) % 1.0, lightness, 0.52)
    return (round(255 * red), round(255 * green), round(255 * blue))


#: The files of a page.
STYLES = tuple(
    f"style/{name}.css" for name in ("theme", "page", "tables", "charts", "images", "print")
)
# The order matters: each file uses names that those before it declare.
SCRIPTS = (
    "script/dom.js",
    "script/base.js",
    "script/theme.js",
    *(
        f"script/{name}.js"
        for name in ("address", "table", "curves", "matrix", "pictures", "objects", "scores")
    ),
    *(f"script/{name}.js" for name in ("viewer", "panels", "slices", "images", "main")),
)


def _content_policy(style: str, script: str, *, more: bool = False) -> str:
    """A content security policy for one style sheet and one script, without network access.

    Both are identified by their SHA-256, so injected code does not run. With
    ``more``, the script may load others.
    """
    style_source, script_source = (
        f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
        for text in (style, script)
    )
    others = " 'strict-dynamic'" if more else ""
    return (
        "default-src 'none'; base-uri 'none'; form-action 'none'; img-src data:; "
        f"style-src {style_source}; script-src {script_source}{others}"
    )


@cache
def _read_file(path: str) -> str:
    """Read a file of a page: ``PATH`` in this package, or ``PACKAGE:PATH`` in another one."""
    package, _, path = path.rpartition(":")
    return resources.files(package or __package__).joinpath(path).read_text(encoding="utf-8")


#: JSON's escapes of characters that a page shows as escapes.
_UNSEEN = re.compile(r"\\u(?:00[0189]|007f|20|feff|d)")


def _shown(data: Any) -> Any:
    """Plain data whose texts are as in the page."""
    if isinstance(data, str):
        return printable(data, blanks=True)
    if isinstance(data, Mapping):
        return {_shown(key): _shown(value) for key, value in data.items()}
    return [*map(_shown, data)] if isinstance(data, list | tuple) else data


def json_in_html(data: Any) -> Markup:
    """Compact JSON that cannot end its HTML element."""
    from markupsafe import Markup

    text = json.dumps(data, separators=(",", ":"))
    if _UNSEEN.search(text):
        text = json.dumps(_shown(data), separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def filled(
    template: str, styles: Iterable[str], scripts: Iterable[str], *, loads: bool, **context: Any
) -> str:
    """Fill a template, which escapes the context, with the files of its style and its script.

    The script has its own scope; ``loads`` is whether it may load others.
    """
    from markupsafe import Markup

    style = "\n".join(map(_read_file, styles))
    parts = "\n".join(map(_read_file, scripts))
    script = f'"use strict";\n(() => {{\n{parts}}})();'
    # Our own files, whose hashes are in the policy.
    own = {"style": style, "script": script, "policy": _content_policy(style, script, more=loads)}
    own = {name: Markup(text) for name, text in own.items()}
    return _environment().get_template(template).render(**context, **own)


def assemble(
    template: str,
    context: Mapping[str, Any],
    data: Mapping[str, Any],
    more: tuple[Sequence[str], Sequence[str]] = ((), ()),
) -> str:
    """The page of a report or a feature, with plain data for its script.

    ``more`` are styles and scripts of the page alone.
    """
    context = {**context, "data": json_in_html(data), "version": __version__}
    styles, scripts = (*STYLES, *more[0]), (*SCRIPTS, *more[1])
    loads = bool((data["images"] or {}).get("folder"))
    return filled(template, styles, scripts, loads=loads, **context)


def feature_page(
    template: str,
    context: Mapping[str, Any],
    names: Sequence[str],
    unit: str,
    more: tuple[Sequence[str], Sequence[str]] = ((), ()),
    **data: Any,
) -> str:
    """Assemble the page of a feature, which has no confusion matrix and no table of images."""
    data = {"names": [*names], "unit": unit, "confusion": None, "images": None, **data}
    return assemble(template, {**context, "table": None}, data, more)


def images_link(**state: str | None) -> str:
    """The address, within the page, of some images: ``t``, ``p``, ``c``, ``image``.

    >>> images_link(t="fence", p="building"), images_link(t=None, p="no class")
    ('#t=fence&p=building', '#p=no+class')
    """
    known = {key: text for key, text in state.items() if text is not None}
    return "#" + urlencode({key: printable(text, blanks=True) for key, text in known.items()})


def _step_link(step: NextStep, image: str | None = None) -> str:
    if step.kind in ("few_images", "swapped_classes"):
        return images_link(c=step.truth, image=image)
    pred = "no class" if step.kind == "confusion" and step.pred is None else step.pred
    return images_link(t=step.truth, p=pred, image=image)


def _finalized(value: Any) -> Any:
    """Output of templates: our own markup unchanged, other text without control characters."""
    is_text = isinstance(value, str) and not hasattr(value, "__html__")
    return printable(value, blanks=True) if is_text else value


#: Words in scripts that are written from right to left.
_LEFTWARD = re.compile(r"[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]+(?:[ ._-]+[\u0590-\u08ff]+)*")


def _options(text: str) -> Markup:
    """A text whose options do not break across lines, and whose numbers stay after their names."""
    from markupsafe import Markup, escape

    whole = r'<span class="whole">\g<0></span>'
    shown = _LEFTWARD.sub(r"<bdi>\g<0></bdi>", str(escape(printable(text, blanks=True))))
    return Markup(re.sub(r"--[a-z]+(-[a-z]+)*( auto| none)?", whole, shown))


def sentence(text: str) -> str:
    """Begin with a capital and end with a stop."""
    return f"{capital(text)}{'' if text.endswith('.') else '.'}"


#: Functions that templates apply to values, by name.
_FILTERS: dict[str, Any] = {
    "percent": cell,
    "points": points,
    "range": cell_range,
    "count": count,
    "shown": shown,
    "shown_change": shown_change,
    "unit_text": unit_text,
    "shown_range": shown_range,
    "signed": signed_points,
    "plural": plural,
    "plural_of": plural_of,
    "capital": capital,
    "position": position,
    "p": p_text,
    "short_percent": short_percent,
    "sentence": sentence,
    "unbroken": lambda text: _options(unbroken(text)),
    "options": _options,
    "called": called,
    "link": lambda truth, pred: images_link(t=truth, p=pred),
    "class_link": lambda name: images_link(c=name),
    "slice_link": lambda name: images_link(slice=name),
    "image_link": lambda id: images_link(image=id),
    "step_link": _step_link,
    "step_text": lambda step: str(replace(step, images=())),
}


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    environment = Environment(
        loader=FunctionLoader(lambda at: _read_file(at if ":" in at else f"templates/{at}")),
        autoescape=True,
        finalize=_finalized,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= _FILTERS
    return environment
