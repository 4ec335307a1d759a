"""Templates, styles and scripts → one strict HTML file."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from segiou import __version__
from segiou.html.report import numbers
from segiou.imbalance.wording import called, unbroken

if TYPE_CHECKING:
    from jinja2 import Environment

__all__ = ["assemble"]

#: The explorer's theme is the theme of all pages.
_THEME_STYLE, _THEME_SCRIPT = ("explorer", "theme.css"), ("explorer", "script", "theme.js")
STYLES = ("page.css", "tables.css", "charts.css", "gallery.css", "print.css")

# The order matters: each file uses names that those before it declare.
SCRIPTS = ("base.js", "table.js", "matrix.js", "pictures.js", "gallery.js", "viewer.js", "main.js")


def assemble(template: str, context: Mapping[str, Any], data: Mapping[str, Any]) -> str:
    """Fill a template and put styles, script and data into it.

    Everything in the context is escaped by the template engine. The content
    security policy names the style sheet and the script by their SHA-256, so
    that nothing that slipped through would run.

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
    policy = (
        "default-src 'none'; base-uri 'none'; form-action 'none'; img-src data:; "
        f"style-src {_source(style)}; script-src {_source(script)}"
    )
    return (
        _environment()
        .get_template(template)
        .render(
            **context,
            policy=policy,
            # Our own files, whose hashes are in the policy.
            style=Markup(style),
            script=Markup(script),
            data=data,
            version=__version__,
        )
    )


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
        "number": numbers.number,
        "percent": numbers.percent,
        "count": numbers.count,
        "signed": numbers.signed,
        "plural": numbers.plural,
        "position": numbers.position,
        "p": numbers.p_text,
        "sentence": _sentence,
        "unbroken": unbroken,
        "called": called,
    }
    return environment


def _sentence(text: str) -> str:
    """Begin with a capital and end with a stop."""
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}"


@cache
def _style() -> str:
    return "\n".join([_shared(*_THEME_STYLE), *(_read("style", name) for name in STYLES)])


@cache
def _script() -> str:
    base, *others = (_read("script", name) for name in SCRIPTS)
    parts = "\n".join([base, _shared(*_THEME_SCRIPT), *others])
    return f'"use strict";\n(() => {{\n{parts}}})();'


def _shared(*parts: str) -> str:
    return resources.files("segiou.html").joinpath(*parts).read_text(encoding="utf-8")


def _read(*parts: str) -> str:
    return resources.files(__package__).joinpath(*parts).read_text(encoding="utf-8")


def _source(text: str) -> str:
    """Name an inline element's exact text in a content security policy."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
