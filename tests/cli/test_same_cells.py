"""Law: a table of a command has the same cells in every format."""

from __future__ import annotations

import csv
import html
import re
from contextlib import redirect_stdout
from functools import cache
from io import BytesIO, StringIO, TextIOWrapper
from pathlib import Path

import numpy as np
import pytest
from command import FIXTURES, LABELS, MODELS, STREETS
from deletable import needs_of
from hypothesis import example, given, strategies as st
from mask_files import write_mask
from tables import by_column, filled, lines_of, of_html, of_latex, of_markdown, of_text

import segiou
from segiou._support.text import listed
from segiou.cli.main import main
from segiou.document.latex import latex_of
from segiou.document.markdown import markdown_of
from segiou.document.notebook import notebook_of
from segiou.document.parts import Column, Line, Table
from segiou.document.terminal import text_of

VOLUMES = FIXTURES / "volumes"
TRUTH = str(STREETS / "truth")
CITIES = ["--slices", "(?P<city>[^_]+)_"]
MEASURED = ["--boundary", "--objects", "--group-by", "none", "--intervals"]
#: Columns that only the table of classes has.
IS_CLASS = {"recall", "share"}
#: Commands with tables, and the places that the fixtures below make.
COMMANDS = {
    "score": ["score", TRUTH, MODELS[1], *LABELS],
    "score of measures": ["score", TRUTH, MODELS[1], *LABELS, *MEASURED],
    "score of lesions": [
        *("score", VOLUMES / "truth", VOLUMES / "model_a", "--labels", VOLUMES / "dataset.json"),
        *("--lesions", "--surface=segiou", "--intervals"),
    ],
    "report": ["report", "{a}", "--intervals", "--detail", *CITIES],
    "report and a baseline": [
        *("report", "{a}", "--baseline", "{b}", "--fail-if-worse", "--worst", "3"),
    ],
    "compare": ["compare", "{a}", "{b}", *CITIES],
    "compare by scores": ["compare", "{a}", "{b}", "--metric", "iou,dice,pixel_accuracy"],
    "compare three": ["compare", "{a}", "{b}", "{c}"],
    "plan": ["plan", "{a}", "--half-width", "2%", "--group-by", "none"],
    "plan by groups": ["plan", "{a}", "--half-width", "2%", "--group-by", "[0-9]$"],
    "compare as a table": ["compare", "{a}", "{b}", "{c}", "--table=intervals"],
    "slices": ["slices", "{a}", *CITIES[1:], "--by-class"],
    "slices of two": ["slices", "{a}", "{b}", *CITIES[1:]],
    "raters": ["raters", TRUTH, *MODELS, *LABELS],
    "raters and a model": ["raters", TRUTH, MODELS[0], "--model", MODELS[1], *LABELS],
    "suspects": ["suspects", "{a}"],
    "map-accuracy": ["map-accuracy", "{sample}", "--areas", "{areas}"],
    "explain": ["explain", TRUTH, MODELS[1], *LABELS],
    "inspect": ["inspect", TRUTH],
}
#: Commands without CSV, and tables that are not in it.
NO_CSV = {"compare by scores", "report and a baseline"}
NOT_IN_CSV = {"image", "rank"}
#: Commands without a page, or whose page has two of three models.
NO_PAGE = {"explain", "inspect", "compare three", "compare as a table"} | {
    *("plan", "plan by groups", "slices", "slices of two"),
}
#: Pages have the images in a table of their own, and slices without the models' scores.
NOT_ON_PAGES = {"image", "slice"}


def marked(names):
    """Commands, with the folders of segiou that they need."""
    words = {name: " ".join(map(str, COMMANDS[name])) for name in names}
    return [pytest.param(name, marks=needs_of(text)) for name, text in words.items()]


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """Runs of three models, and a sample of a map, with signs of each format in the names.

    One class never occurs, others in one image; an image is ignored, and one has one class.
    """
    folder = tmp_path_factory.mktemp("places")
    rng, found = np.random.default_rng(0), {}
    labels = folder / "l.toml"
    names = ["a | b", "50 % & x_y", "=sum", "never", "rare", "straße <i>"]
    labels.write_text(segiou.LabelSet.from_names(names).to_toml(), encoding="utf-8")
    truth = {
        f"{city}_{i}": rng.integers(0, 3, (9, 8)) for city in ("bonn", "ulm") for i in range(9)
    }
    truth["bonn_0"][:2], truth["ulm_4"][:, :3] = 4, 5
    truth["bonn_1"][:], truth["ulm_3"][:] = 0, 255
    for name, share in zip("abc", (0.5, 0.3, 0.35), strict=True):
        pred = {
            id: np.where(rng.random(mask.shape) < share, rng.integers(0, 3, mask.shape), mask % 255)
            for id, mask in truth.items()
        }
        pred["bonn_1"][:] = 0
        found[name] = folder / f"{name}.sqlite"
        for id, mask in truth.items():
            write_mask(folder / "truth" / f"{id}.png", mask.astype(np.uint8))
            write_mask(folder / name / f"{id}.png", pred[id].astype(np.uint8))
        options = {"labels": labels, "ignore": 255, "run": found[name]}
        segiou.score_folder(folder / "truth", folder / name, **options)
    found |= {"sample": folder / "sample.csv", "areas": folder / "areas.csv"}
    pairs = [("fi|eld", "fi|eld")] * 7 + [
        ("fi|eld", "w_d %"),
        ("w_d %", "w_d %"),
        ("w_d %", "w_d %"),
    ]
    found["sample"].write_text("map,reference\n" + "".join(f"{a},{b}\n" for a, b in pairs))
    found["areas"].write_text("class,area\nfi|eld,1200\nw_d %,340\n")
    return found


@pytest.fixture(scope="module")
def output(places):
    """The output of a command in a format, wide enough for every column; each is made once."""

    @cache
    def of(command, kind):
        if command == "score of lesions":
            pytest.importorskip("nibabel", reason="volumes need nibabel")
        words = [str(places.get(str(word).strip("{}"), word)) for word in COMMANDS[command]]
        page, printed = places["sample"].with_name("page.html"), BytesIO()
        written = ["--html", str(page)] if kind == "html" else ["--format", kind]
        with redirect_stdout(TextIOWrapper(printed, encoding="utf-8")) as stdout:
            assert main([*words, *written]) < 2
            stdout.flush()
        return page.read_text() if kind == "html" else printed.getvalue().decode()

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "2000")
        yield of


@pytest.mark.gate
@pytest.mark.parametrize("command", marked(COMMANDS))
def test_documents_have_the_same_cells(command, output):
    markdown, latex = of_markdown(output(command, "markdown")), of_latex(output(command, "latex"))
    if command.startswith(("score", "report")):
        (classes,) = (
            table
            for table in latex
            if ("class", "mean") in table[-1] and {head for head, _ in table[-1]} >= IS_CLASS
        )
        classes.pop()
    assert markdown
    assert by_column(latex) == by_column(markdown)
    lines = iter(of_text(output(command, "table")))
    for row in (filled(cells) for table in markdown for cells in lines_of(table)):
        assert row in lines, row


REPORTS = Path(__file__).parents[2] / "docs" / "reports.md"
NARROW = REPORTS.read_text("utf-8").partition("### Narrow terminals")[2]
#: Commands whose table the page on reports has under a name, and headings by their words there.
NAMED = {
    "classes of a report": (
        ["report", "{a}", "--intervals"],
        {"interval of IoU": "IoU, 95 % interval"},
    ),
    "classes of a comparison": (
        ["compare", "{a}", "{b}"],
        {"units": "images", "p": "p (Holm)", "models": "a & b", "difference": "b − a"},
    ),
    "ranking": (
        ["compare", "{a}", "{b}", "{c}", "--parts", "ranking"],
        {"ranks": "ranks (95 %)", "score": "mean IoU"},
    ),
    "slices": (
        ["slices", "{a}", "{b}", *CITIES[1:]],
        {
            "units": "",
            "models": "a & b",
            "score": "change",
            "interval of the score": "95 % interval of change",
            "interval of the difference": "95 % interval of minus rest",
            "difference": "minus rest",
        },
    ),
    "explain": (["explain", "{a}"], {}),
    "plan": (
        ["plan", "{a}", "--half-width", "2%", "--group-by", "[0-9]$"],
        {"units now": "groups now", "units needed": "groups needed", "interval": "95 % interval"},
    ),
    "raters": (["raters", TRUTH, *MODELS, *LABELS], {}),
    "suspects": (["suspects", "{a}"], {"box": ""}),
}


@pytest.mark.gate
@pytest.mark.parametrize("name", NAMED)
def test_narrow_terminals_omit_columns_in_the_order_of_the_page(name, places, monkeypatch, capsys):
    (row,) = re.findall(rf"^\| {name} \| (.*) \|$", NARROW, re.MULTILINE)
    command, heads = NAMED[name]
    order = [one for word in row.split(", ") for one in heads.get(word, word).split(" & ") if one]
    several, hidden = [listed(order[:number]) for number in range(len(order) + 1)], []
    for width in range(110, 23, -6):
        monkeypatch.setenv("COLUMNS", str(width))
        assert main([str(places.get(word.strip("{}"), word)) for word in map(str, command)]) < 2
        note = r"Hidden columns\s+\(widen\s+the\s+terminal\):(.*?)(?:\n\n|\Z)"
        (text, *_) = [*re.findall(note, capsys.readouterr().out, re.DOTALL), ""]
        hidden.append(several.index(" ".join(text.split())))
    assert hidden == sorted(hidden) and hidden[-1] > 1


COLUMNS = st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 9)), min_size=1, max_size=6)


@given(COLUMNS)
def test_columns_with_equal_headings_are_all_there(columns):
    parts = [Table([Column(head, [f"{cell}.50 %"], 1) for head, cell in columns])]
    cells = [(head, f"{cell}.50") for head, cell in columns]
    assert of_markdown(markdown_of(parts)) == of_latex(latex_of(parts)) == [[cells]]
    shown = [[head for head, _ in cells], [cell for _, cell in cells]]
    assert of_html(notebook_of(parts, "test")) == [shown]
    assert [row for row in of_text(text_of(parts, 500)) if row and row[0][0] != "─"] == shown


NAMES = st.text("ab1 _~*&#;<>|\\`[]()!$", min_size=1).map(str.strip).filter(bool)


@given(NAMES)
@example("&amp;")
@example("&#65;")
@example("__init__")
@example("~~x~~")
def test_markdown_shows_every_name_as_it_is(name):
    parser = pytest.importorskip("markdown_it").MarkdownIt("commonmark")
    parser.enable(["table", "strikethrough"])
    page = parser.render(markdown_of([Table([Column("class", [name], 1)])]))
    (cell,) = re.findall("<td[^>]*>(.*?)</td>", page)
    assert html.unescape(cell) == " ".join(name.split())


def test_dollars_in_markdown_are_no_formulas():
    parser = pytest.importorskip("markdown_it").MarkdownIt("commonmark")
    pytest.importorskip("mdit_py_plugins.dollarmath").dollarmath_plugin(parser)
    assert "$a_b$ $" in parser.render(markdown_of([Line("$a_b$ $")]))


def numbers(text):
    """The numbers in a cell, without blanks between groups of three digits."""
    return {*re.findall(r"\d[\d.]*", re.sub(r"(?<=\d) (?=\d{3})", "", text))}


def written(row):
    """How tables may write the numbers of a row of CSV: with fewer digits, and margins."""
    values = [float(cell) for cell in row.values() if re.fullmatch(r"-?[\d.]+(e-?\d+)?", cell)]
    if row.get("low") and row.get("high"):
        values.append((float(row["high"]) - float(row["low"])) / 2)
    forms = {f"{abs(value):{form}}" for value in values for form in (".0f", ".2f", ".3g", ".4f")}
    forms |= {f"{abs(100 * value):.2f}" for value in values}
    return {"0.0001", "0.01"}.union(forms, *map(numbers, row.values()))


@pytest.mark.few(4)
@pytest.mark.parametrize("command", marked(sorted(COMMANDS.keys() - NO_CSV)))
def test_csv_has_the_numbers_of_the_tables(command, output):
    rows = [*csv.DictReader(StringIO(output(command, "csv")))]
    for table in of_markdown(output(command, "markdown")):
        for (kind, name), *cells in () if table[0][0][0] in NOT_IN_CSV else table:
            named = [row for row in rows if {*name.split(", ")} <= {*row.values()}] or rows
            known = set().union(*map(written, named))
            for head, cell in () if (kind, name) == ("class", "classes") else cells:
                assert numbers(cell) <= known, (command, name, head, cell)


@pytest.mark.gate
@pytest.mark.parametrize("command", marked(sorted(COMMANDS.keys() - NO_PAGE - NO_CSV)))
def test_pages_have_the_numbers_of_the_tables(command, output):
    page = output(command, "html")
    rows = [row for table in of_html(page) for row in table]
    elsewhere = [[re.sub("<[^>]*>", " ", page).replace("\N{NO-BREAK SPACE}", " ")]]
    for table in of_markdown(output(command, "markdown")):
        for (_, name), *cells in () if table[0][0][0] in NOT_ON_PAGES else table:
            named = [row for row in rows if row and row[0].startswith(name)] or elsewhere
            known = set().union(*(numbers(cell) for row in named for cell in row))
            for head, cell in cells:
                assert head == "images" or numbers(cell) <= known, (command, name, head, cell)
