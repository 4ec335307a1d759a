"""The table of contents by format in docs/reports.md, checked against a report in every format."""

import json
import re
from html import unescape

import pytest
from command import FIXTURES

import segiou
from segiou.cli.main import main

STREETS = FIXTURES / "streets"
PAGE = FIXTURES.parent / "docs" / "reports.md"
FORMATS = {"text": "table", "Markdown": "markdown", "JSON": "json", "CSV": "csv", "LaTeX": "latex"}


def table_of_the_page():
    """The marks of each content, by format."""
    part = PAGE.read_text("utf-8").split("### Contents of each format")[1].split("\n### ")[0]
    lines = [line for line in part.splitlines() if line.startswith("|")]
    heads, _, *rows = ([cell.strip() for cell in line.strip("| ").split("|")] for line in lines)
    return {row[0]: dict(zip(heads[1:], row[1:], strict=True)) for row in rows}


MARKS = table_of_the_page()


@pytest.fixture(scope="module")
def outputs(tmp_path_factory):
    """A report with intervals, thresholds, a baseline and slices in every format."""
    folder = tmp_path_factory.mktemp("contents")
    runs = [folder / "a.run", folder / "b.run"]
    for run, model in zip(runs, ("model_a", "model_b"), strict=True):
        how = {"labels": STREETS / "labels.toml", "exclude": ["bicycle"], "measures": ["boundary"]}
        segiou.score_folder(STREETS / "truth", STREETS / model, run=run, **how)
    ids = segiou.Run.open(runs[1]).ids
    rows = "".join(f"{id},{'ab'[i % 2]}\n" for i, id in enumerate(ids))
    (folder / "meta.csv").write_text(f"id,part\n{rows}")
    asked = ["report", runs[1], "--intervals", "--worst", 2, "--baseline", runs[0], "--quiet"]
    asked += ["--slices", folder / "meta.csv", "--fail-under", "mean_iou=0.5"]
    for name, kind in FORMATS.items():
        written = ["--format", kind, "--output", folder / name]
        written += ["--html", folder / "page"] if name == "text" else []
        assert main([str(word) for word in (*asked, *written)]) == 0
    texts = {name: (folder / name).read_text("utf-8") for name in (*FORMATS, "page")}
    return segiou.Run.open(runs[1]), {name: plain(text) for name, text in texts.items()}


def plain(text):
    """A text without markup, line breaks, escapes and separators of thousands."""
    text = unescape(re.sub(r"<(style|script>).*?</\1|</?[a-z][^>]*>", " ", text, flags=re.DOTALL))
    text = text.replace("\\_", "_").replace("\\,", "")
    text = re.sub(r"(?<=\d)[\u00a0\u2009\u202f](?=\d)", "", text)
    return re.sub(r"\s+", " ", text.replace("\N{NO-BREAK SPACE}", " "))


def has(text, value):
    """Whether a text has a number, in per cent or in full precision."""
    if isinstance(value, int):
        return re.search(rf"\b{f'{value:,}'.replace(',', ' ?')}\b", text)
    return any(
        re.search(rf"(?<![\d.]){re.escape(one)}", text)
        for one in (f"{100 * value:.2f}", repr(value))
    )


def probes(run):
    """For each content, whether a text has it."""
    intervals = run.intervals()
    report = run.report(intervals=intervals)
    pole = next(one for one in intervals.classes if one.name == "pole")
    step, furniture = report.next_steps[0], report.score("iou:furniture")
    measured, of_group = report.score("boundary_iou"), run.intervals("iou:furniture")
    return {
        "mean IoU": lambda text: has(text, report.mean_iou),
        "its interval": lambda text: has(text, intervals.overall.low),
        "method of the intervals": lambda text: "jackknife" in text,
        "protocol": lambda text: "pooled over the images" in text,
        "classes outside the mean": lambda text: re.search(r"bicycle.{,40}excluded", text),
        "majority baseline": lambda text: has(text, report.majority["mean_iou"]),
        "costliest error": lambda text: has(text, step.gain),
        "scores of classes": lambda text: has(text, report.score("iou:pole")),
        "intervals of classes": lambda text: has(text, pole.low),
        "scores of groups": lambda text: has(text, furniture),
        "intervals of groups": lambda text: has(text, of_group.overall.low),
        "scores of measures": lambda text: has(text, measured),
        "images and pixels": lambda text: has(text, int(report.pixels)),
        "confusion matrix": lambda text: has(text, int(report.matrix[1, 6])),
        "worst images": lambda text: "north_0002" in text,
        "thresholds": lambda text: re.search(r'mean_iou is|"thresholds"', text),
        "baseline": lambda text: has(text, 0.1195) or "11.96" in text or "0.1196" in text,
        "slices": lambda text: re.search(r'part=a|"slices"', text),
        "version": lambda text: segiou.__version__ in text,
    }


@pytest.mark.parametrize("content", MARKS)
@pytest.mark.gate
def test_a_format_has_what_its_mark_says(content, outputs):
    run, texts = outputs
    found = {name: bool(probes(run)[content](text)) for name, text in texts.items()}
    assert found == {name: mark == "✓" for name, mark in MARKS[content].items()}


@pytest.mark.gate
def test_every_content_is_in_the_table(outputs):
    assert [*probes(outputs[0])] == [*MARKS]


def test_the_probes_are_of_these_runs(outputs):
    run, texts = outputs
    delta = json.loads("0.1196")
    assert round(run.report().mean_iou - 0.5863, 3) == pytest.approx(delta, abs=6e-4)
    assert not has(texts["JSON"], 0.123456)
