"""What LaTeX would reject in our output, found without it: by pylatexenc and counts of cells."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

#: Commands of LaTeX, of booktabs and of graphicx; escaped signs are commands as well.
KNOWN = {
    *("documentclass", "usepackage", "input", "centering", "caption", "includegraphics"),
    *("toprule", "midrule", "bottomrule", "textbf", "linewidth", "\\"),
    *("textbackslash", "textasciitilde", "textasciicircum", "textless", "textgreater", "textbar"),
    *("pm", "cdot", "times", "Delta", "infty", "geq", "leq", *"&%$#_{},"),
}
ENVIRONMENTS = {"document", "table", "figure", "tabular"}
#: Signs that pdflatex reads in UTF-8 without a package: letters of Latin, and quotation marks.
LETTERS = re.compile(r"[\x20-\x7e\n\xa0-\u017f‘’“”…–—]*")


def check_latex(text: str) -> list[list[list[str]]]:
    """The rows of every tabular; AssertionError, or an error of pylatexenc, if LaTeX would fail."""
    walker = pytest.importorskip("pylatexenc.latexwalker")
    nodes, _, end = walker.LatexWalker(text, tolerant_parsing=False).get_latex_nodes()
    assert end == len(text)
    tables: list[list[list[str]]] = []
    for node in every(nodes):
        kind = type(node).__name__
        if kind == "LatexMacroNode":
            assert node.macroname in KNOWN, node.latex_verbatim()
        elif kind == "LatexCharsNode":
            assert LETTERS.fullmatch(node.chars), node.chars
            in_math = node.parsing_state.in_math_mode
            assert not set("#_^"[: 1 if in_math else 3]) & {*node.chars}, node.chars
        elif kind == "LatexEnvironmentNode":
            assert node.environmentname in ENVIRONMENTS, node.environmentname
            if node.environmentname == "tabular":
                tables.append(rows_of(node))
    return tables


def every(nodes: Iterable[Any]) -> Iterator[Any]:
    """Nodes, those inside them, and those in arguments of commands."""
    for node in nodes:
        if node is not None:
            yield node
            yield from every(getattr(node, "nodelist", None) or ())
            yield from every(getattr(getattr(node, "nodeargd", None), "argnlist", None) or ())


def rows_of(tabular: Any) -> list[list[str]]:
    """The cells of a tabular, each row with as many as it has columns."""
    (columns,) = tabular.nodeargd.argnlist[-1].nodelist
    assert set(columns.chars) <= {*"lr"}, columns.chars
    rows: list[list[str]] = [[""]]
    for node in tabular.nodelist:
        if getattr(node, "macroname", "") == "\\":
            # A bracket or star after the end of a row would be its argument.
            assert node.nodeargd.argnlist == [None, None], node.latex_verbatim()
            rows.append([""])
        elif getattr(node, "specials_chars", "") == "&":
            rows[-1].append("")
        elif getattr(node, "macroname", "")[-4:] != "rule":
            rows[-1][-1] += node.latex_verbatim()
        else:
            assert not "".join(rows[-1]).strip(), "a rule stands between rows"
    last = rows.pop()
    assert not "".join(last).strip(), "the last row has an end"
    assert {len(row) for row in rows} == {len(columns.chars)}
    return [[cell.strip() for cell in row] for row in rows]
