"""LaTeX of reports, comparisons, rankings and intervals."""

from __future__ import annotations

import csv
from io import StringIO

import pytest
from mask_files import write_mask

import segiou
from segiou.cli.main import main
from segiou.document.latex import latex_of
from segiou.document.parts import Cell, Column, Table

TRUTH = [[[0, 0, 1, 1]], [[0, 0, 1, 1]], [[0, 0, 1, 1]]]
#: Pooled IoU of the classes: 6/8 and 4/6; of the other model 6/7 and 5/6.
MODEL_A = [[[0, 0, 1, 1]], [[0, 0, 0, 1]], [[0, 0, 0, 1]]]
MODEL_B = [[[0, 0, 1, 1]], [[0, 0, 1, 1]], [[0, 0, 0, 1]]]


def runs(names=("sky_blue", "50 % & more")):
    return [
        segiou.score(TRUTH, pred, labels=names, ids=["x", "y", "z"]) for pred in (MODEL_A, MODEL_B)
    ]


def rows_of(text):
    """Cells of the first table; every row has as many as its columns."""
    inside = text.split("\\begin{tabular}{")[1].split("\\end{tabular}")[0].splitlines()
    rows = [line.strip().removesuffix("\\\\").strip().split(" & ") for line in inside[1:]]
    rows = [row for row in rows if not row[0].startswith(("\\toprule", "\\midrule", "\\bottom"))]
    rows = [row for row in rows if row != [""]]
    return inside[0].rstrip("}"), rows


def test_a_report_has_its_classes_and_their_mean():
    aligned, rows = rows_of(runs()[0].total().report().to_latex(columns="iou,dice"))
    assert aligned == "lrr"
    assert rows == [
        ["class", "IoU (\\%)", "Dice (\\%)"],
        ["sky\\_blue", "75.00", "85.71"],
        ["50\\,\\% \\& more", "66.67", "80.00"],
        ["mean", "70.83", "82.86"],
    ]


def test_classes_are_in_columns_on_request():
    report = runs()[0].total().report()
    _, rows = rows_of(report.to_latex(columns="iou", transposed=True))
    assert rows[0] == ["class", "sky\\_blue", "50\\,\\% \\& more", "mean"]
    assert rows[1] == ["IoU (\\%)", "75.00", "66.67", "70.83"]


def test_values_have_their_intervals():
    run = runs()[0]
    found = run.intervals()
    _, rows = rows_of(run.report(intervals=found).to_latex(columns="iou"))
    assert rows[0] == ["class", "IoU (\\%), 95\\,\\% interval"]
    limits = f"{100 * found.overall.low:.2f} to {100 * found.overall.high:.2f}"
    assert rows[-1] == ["mean", f"70.83 ({limits})"]


def test_the_better_model_of_a_comparison_is_bold():
    found = segiou.compare(*runs(), names=("a", "b"))
    _, rows = rows_of(found.to_latex())
    assert rows[0][:3] == ["class", "a (\\%)", "b (\\%)"]
    assert rows[1][:3] == ["mean IoU", "70.83", "\\textbf{84.52}"]
    assert rows[2][:3] == ["sky\\_blue", "75.00", "\\textbf{85.71}"]


def test_the_first_of_a_ranking_is_bold():
    a, b = runs()
    _, rows = rows_of(segiou.rank({"a": a, "b": b}, groups="none").to_latex())
    bold = {row[1]: row[2].startswith("\\textbf{") for row in rows[1:]}
    assert bold == {"a": False, "b": True}


def test_names_cannot_be_commands():
    names = ["\\input{x}", "[2cm]", "*", "a~b^c#$_{}|<>", "e\x1b\u202e"]
    text = latex_of([Table([Column("class", [Cell(name) for name in names], 1, is_text=True)])])
    body = text.split("\\midrule\n")[1].split("    \\bottomrule")[0]
    assert [line.strip().removesuffix(" \\\\") for line in body.splitlines()] == [
        "\\textbackslash{}input\\{x\\}",
        "{[}2cm{]}",
        "{*}",
        "a\\textasciitilde{}b\\textasciicircum{}c\\#\\$\\_\\{\\}\\textbar{}\\textless{}\\textgreater{}",
        "e\\textbackslash{}x1b\\textbackslash{}u202e",
    ]


def test_a_comparison_as_csv_and_data_frame():
    found = segiou.compare(*runs(), names=("a", "b"))
    rows = [*csv.DictReader(StringIO(found.to_csv()))]
    assert [row["name"] for row in rows] == ["mean IoU", "sky_blue", "50 % & more"]
    assert float(rows[1]["a"]) == 6 / 8 and float(rows[1]["b"]) == 6 / 7
    assert float(rows[1]["delta"]) == pytest.approx(6 / 7 - 6 / 8)
    pytest.importorskip("pandas")
    table = found.to_pandas()
    assert list(table.columns) == [*rows[0]]
    assert table["delta"][0] == found.pairs[0].overall.delta
    of_class = runs()[0].intervals().to_pandas().loc["sky_blue"]
    assert of_class["value"] == 0.75 and of_class["low"] < 0.75 < of_class["high"]


def test_the_command_writes_tables_for_papers(tmp_path, capsys):
    paths = []
    for name, masks in {"truth": TRUTH, "a": MODEL_A, "b": MODEL_B}.items():
        for image, mask in zip("xyz", masks, strict=True):
            write_mask(tmp_path / name / f"{image}.png", mask)
    for name in "ab":
        paths.append(str(tmp_path / f"{name}.sqlite"))
        folders = tmp_path / "truth", tmp_path / name
        segiou.score_folder(*folders, labels=2, run=paths[-1])
    target = tmp_path / "table.tex"
    assert main(["report", paths[0], "-o", str(target)]) == 0
    assert target.read_text().count("\\begin{tabular}") == 1
    assert main(["compare", *paths, "--format", "latex", "--transposed"]) == 0
    assert "class & mean IoU & 0 & 1" in capsys.readouterr().out
    assert main(["compare", *paths, "-o", str(tmp_path / "table.csv")]) == 0
    assert (tmp_path / "table.csv").read_text().startswith("model_a,model_b,name,a,b,delta")
    assert main(["report", paths[0], "--transposed"]) == 2
    assert "--transposed needs LaTeX" in capsys.readouterr().err
