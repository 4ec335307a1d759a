"""The formats of documents by name: how their parts become text, and the files of each."""

from __future__ import annotations

# Importing typing would add a tenth to the time of --help.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from segiou.document.parts import Part


class Renderer:
    """A function ``MODULE:NAME`` from parts to text, and the extensions of its files.

    It receives only the options that it names.
    """

    def __init__(
        self, function: str, endings: tuple[str, ...], options: tuple[str, ...] = ()
    ) -> None:
        self.function: str = function
        self.endings: tuple[str, ...] = endings
        self.options: tuple[str, ...] = options


RENDERERS = {
    "table": Renderer("segiou.document.terminal:text_of", (".txt", ""), ("width", "color")),
    "markdown": Renderer("segiou.document.markdown:markdown_of", (".md", ".markdown")),
    "latex": Renderer("segiou.document.latex:latex_of", (".tex",), ("transposed",)),
}


def rendered(parts: Iterable[Part], format: str, **options: Any) -> str:
    """Parts in a format by name."""
    from importlib import import_module

    renderer = RENDERERS[format]
    module, _, name = renderer.function.partition(":")
    accepted = {key: value for key, value in options.items() if key in renderer.options}
    text: str = getattr(import_module(module), name)(parts, **accepted)
    return text
