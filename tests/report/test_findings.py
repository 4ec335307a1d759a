"""Law: every finding has the same methods, and the same cells in every format."""

import json
from csv import DictReader
from io import StringIO

import numpy as np
import pytest
from tables import by_column, filled, lines_of, of_html, of_latex, of_markdown, of_text

import segiou
from segiou.analysis import compare_scores, explain_difference
from segiou.raters.scores import rater_agreement
from segiou.raters.votes import Votes
from segiou.scoring import inspect_folder

RNG = np.random.default_rng(0)
TRUTH = np.kron(RNG.integers(0, 3, (12, 3, 3)), np.ones((1, 3, 3), int))
TIMES = ("day", "night")


def model(name, share):
    wrong = RNG.random(TRUTH.shape) < share
    return segiou.score(TRUTH, np.where(wrong, 0, TRUTH), labels=["road", "car", "sky"], name=name)


A, B, C = (model(name, share) for name, share in (("a", 0.3), ("b", 0.1), ("c", 0.5)))
FEW = {"resamples": 20, "permutations": 20}
METHODS = (
    *("to_dict", "to_json", "to_csv", "to_pandas", "to_text", "to_markdown", "to_latex"),
    *("to_html", "_repr_html_"),
)


def raters():
    masks = [A, B, C]
    votes = [Votes.of([TRUTH[i : i + 1], np.roll(TRUTH[i : i + 1], 1)])[0] for i in range(3)]
    return rater_agreement(votes, [one.name for one in masks], ("anna", "ben"), A.class_names)


def accuracy():
    from segiou.maps import map_accuracy

    return map_accuracy([[97, 3, 2], [0, 279, 1], [3, 18, 97]], {"x": 223, "y": 1122, "z": 610})


def inspection(tmp_path):
    np.save(tmp_path / "a.npy", TRUTH[0])
    return inspect_folder(tmp_path)


FINDINGS = {
    "Imbalance": lambda _: segiou.explain(A),
    "ImbalanceDifference": lambda _: explain_difference(A.counts, B.counts, A.class_names),
    "MapAccuracy": lambda _: accuracy(),
    "Comparison": lambda _: segiou.compare(A, B, permutations=200),
    "Comparison of three": lambda _: segiou.compare(A, B, C, **FEW),
    "SideBySide": lambda _: compare_scores(A, B, metrics=["iou", "dice"], permutations=200),
    "ModelTable": lambda _: segiou.compare(A, B, C, **FEW).table(),
    "Ranking": lambda _: segiou.rank([A, B, C], draws=20),
    "Intervals": lambda _: A.intervals(),
    "SampleSizes": lambda _: A.sample_sizes(half_width=0.05),
    "Slices": lambda _: segiou.slices(
        A, by={name: {"time": TIMES[i % 2]} for i, name in enumerate(A.ids)}
    ),
    "RaterAgreement": lambda _: raters(),
    "Suspects": lambda _: segiou.find_suspects(A),
    "Inspection": inspection,
}


NEEDED = {
    "MapAccuracy": pytest.mark.needs("maps"),
    "SampleSizes": pytest.mark.needs("planning"),
}


@pytest.fixture(params=[pytest.param(n, marks=NEEDED.get(n, ())) for n in FINDINGS])
def finding(request, tmp_path):
    return FINDINGS[request.param](tmp_path)


@pytest.mark.few(4)
def test_findings_have_the_same_methods_and_a_short_repr(finding):
    assert [name for name in METHODS if not hasattr(finding, name)] == []
    shown = repr(finding)
    assert shown.startswith(f"<{type(finding).__name__}") and shown.endswith(">")
    assert "\n" not in shown and len(shown) < 400


@pytest.mark.few(4)
def test_documents_have_the_same_cells(finding):
    markdown = of_markdown(finding.to_markdown())
    assert markdown
    assert by_column(of_latex(finding.to_latex())) == by_column(markdown)
    rows = [row for table in markdown for row in lines_of(table)]
    lines = iter(of_text(finding.to_text(2000)))
    for row in map(filled, rows):
        assert row in lines, row
    for page in (finding.to_html(), finding._repr_html_()):
        cells = [[cell for cell in row if cell] for table in of_html(page) for row in table]
        assert [row for row in map(filled, rows) if row not in cells] == []


@pytest.mark.few(4)
def test_data_are_those_of_the_rows(finding):
    pytest.importorskip("pandas")
    rows, frame = [*finding.rows()], finding.to_pandas().reset_index()
    read = [*DictReader(StringIO(finding.to_csv()))]
    assert len(rows) == len(read) == len(frame) > 0
    assert {*read[0]} == {*frame.columns} - {"index"} == {key for row in rows for key in row}
    for row, line, (_, cells) in zip(rows, read, frame.iterrows(), strict=True):
        for name, value in row.items():
            if isinstance(value, float) and not np.isnan(value):
                assert float(line[name]) == cells[name] == value
    assert json.loads(finding.to_json()) == finding.to_dict()
    assert json.loads(finding.to_json(indent=None)) == finding.to_dict()


@pytest.mark.few(4)
def test_pages_are_whole_and_have_the_colours_of_the_system(finding):
    page = finding.to_html()
    assert page.startswith('<!doctype html>\n<html lang="en">') and page.endswith("</html>\n")
    assert "color-scheme: light dark" in page and 'name="viewport"' in page
