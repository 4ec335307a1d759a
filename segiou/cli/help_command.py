"""The command ``help``: pages of the documentation, which are installed with the package."""

from __future__ import annotations

import argparse
import re
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

from segiou._support.text import did_you_mean
from segiou.cli import console
from segiou.cli.options import COMMANDS, build_parser
from segiou.document.parts import Column, Line, Part, Table
from segiou.document.terminal import markdown_text, text_of

#: Folder of the pages below the prefix of the environment.
_INSTALLED = "share/doc/segiou/"
#: Blocks that only the site renders: kind, argument, content.
_DIRECTIVE = re.compile(r"^```\{(\w+)\} *(.*)\n([^`]*)```$", re.MULTILINE)
_TERM = re.compile(r"^(\S.*)\n +", re.MULTILINE)
#: Links to other pages.
_LINK = re.compile(r"\[([^]]+)\]\((?![./]*_generated|[a-z]+:)[./\w-]*?([\w-]+)\.md(?:#[^)]*)?\)")
#: Pages that only list others.
_LISTS = ("explanation", "howto", "index", "project", "reference", "start", "tutorials")


def command(parsed: argparse.Namespace) -> int:
    """Print a page, the help of a command, or the list of pages."""
    pages, name = _pages(), parsed.page
    if name is None:
        titles = [_title(path) for path in pages.values()]
        first, second = (
            Column("page", [*pages], 0, is_text=True),
            Column("title", titles, 1, is_text=True),
        )
        parts: list[Part] = [Table([first, second]), Line("To read a page: segiou help PAGE")]
        console.write(text_of(parts, console.stdout_width(), color=console.wants_color()))
    elif name in pages:
        page = pages[name].read_text(encoding="utf-8")
        if console.stdout_is_terminal():  # else the Markdown itself, for files and viewers
            page = markdown_text(_plain(page), console.stdout_width(), color=console.wants_color())
        console.write(page)
    elif name in COMMANDS:
        build_parser(name).print_help()
    else:
        hint = did_you_mean(name, [*pages, *COMMANDS]) or "; segiou help lists all pages"
        msg = f"unknown page {name!r}{hint}"
        raise ValueError(msg)
    return 0


def _pages() -> dict[str, Path]:
    """The installed pages by name; those of the checkout if the package is run from one."""
    try:
        listed = [file for file in files("segiou") or () if _INSTALLED in file.as_posix()]
        paths = [Path(str(file.locate())) for file in listed]
    except PackageNotFoundError:
        paths = []
    if not any(path.is_file() for path in paths):
        checkout = Path(__file__).parents[2]
        is_ours = (checkout / "pyproject.toml").is_file()
        paths = [*(checkout / "docs").glob("**/*.md")] if is_ours else []
    pages = {path.stem: path for path in paths if "_generated" not in path.parts}
    return {name: pages[name] for name in sorted(pages) if name not in _LISTS}


def _plain(page: str) -> str:
    """A page without the directives of the site; links are the commands that print pages."""

    def replaced(found: re.Match[str]) -> str:
        kind, path, content = found.groups()
        if kind == "glossary":
            return _TERM.sub(r"**\1**: ", content)
        is_file = kind == "literalinclude" and "_generated" not in path
        return f"`{path.replace('../', '')}`" if is_file else ""

    return _LINK.sub(r"\1 (`segiou help \2`)", _DIRECTIVE.sub(replaced, page))


def _title(path: Path) -> str:
    with path.open(encoding="utf-8") as lines:
        return next(lines).removeprefix("# ").strip()
