"""Columns of the class table by the names of a field."""

from __future__ import annotations

import csv
import re

import pytest

import segiou

RUN = segiou.score([[[0, 1, 1, 1]]], [[[0, 1, 1, 0]]], labels=["sea", "land"])


def heads(text):
    """The headings of the class table."""
    line = next(line for line in text.splitlines() if line.lstrip("| ").startswith("class"))
    return [head for head in re.split(r"\s*\|\s*|\s{2,}", line) if head][1:]


def test_the_default_stays():
    report = RUN.report()
    assert heads(report.to_text())[:5] == ["IoU", "Dice", "precision", "recall", "share"]
    assert heads(report.to_markdown()) == ["IoU", "Dice", "precision", "recall", "share"]
    assert "kappa" not in report.to_text()


def test_columns_of_a_map():
    text = RUN.report().to_text(columns="map", width=120)
    assert heads(text)[:3] == ["user's accuracy", "producer's accuracy", "F1"]
    # Of 3 pixels of land 2 are found; kappa is (3/4 - 1/2) / (1 - 1/2).
    assert re.search(r"land\s+100.00 %\s+66.67 %\s+80.00 %", text)
    assert re.search(r"overall accuracy\s+75.00 %", text)
    assert re.search(r"kappa\s+0.5000", text)
    markdown = RUN.report().to_markdown(columns="map")
    assert "| land | 100.00 % | 66.67 % | 80.00 % |" in markdown
    assert "0.5000" in markdown


def test_columns_by_name():
    report = RUN.report()
    assert heads(report.to_text(columns="medical"))[:2] == ["Dice", "IoU"]
    assert heads(report.to_markdown(columns=["sensitivity", "ppv", "fn"])) == [
        "sensitivity",
        "PPV",
        "FN",
    ]
    assert "| land | 66.67 % | 1 |" in report.to_markdown(columns="recall,fn")
    page = report.to_html(columns="map")
    keys = [key for key in re.findall(r'data-key="(\w+)"', page) if key != "name"]
    assert keys[:4] == ["precision", "recall", "dice", "share"]
    assert "User's accuracy" in page or "User&#39;s accuracy" in page
    assert re.findall(r'data-key="(\w+)"', report.to_html())[:4] == [
        *("name", "iou", "dice", "precision")
    ]


@pytest.mark.parametrize(
    ("columns", "named"),
    [("iuo", "iou"), ("iou,nothing", "nothing"), ("recall,producers_accuracy", "recall")],
)
def test_unknown_columns_are_named(columns, named):
    with pytest.raises(ValueError, match=named):
        RUN.report().to_text(columns=columns)


def test_columns_of_the_command(tmp_path, capsys):
    from segiou.cli.main import main

    path = tmp_path / "run.sqlite"
    RUN.save(path)
    words = "report", str(path), "--columns"
    assert main([*words, "map"]) == 0
    assert "producer's accuracy" in capsys.readouterr().out
    assert main([*words, "dice,iou", "--format", "markdown"]) == 0
    assert "| class | Dice | IoU |" in capsys.readouterr().out
    assert main([*words, "dicee"]) == 2
    assert "did you mean dice" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("columns", "first", "computed"),
    [
        ("dice", "dice", ["iou", "recall", "dice"]),
        ("medical", "dice", ["iou", "recall", "dice", "precision"]),
        ("map", "precision", ["iou", "recall", "precision", "dice"]),
        ("specificity,iou", "specificity", ["iou", "recall", "specificity"]),
    ],
)
def test_columns_have_intervals(tmp_path, capsys, columns, first, computed):
    from segiou.cli.main import main

    truths = [[[0, 0, 1, 1]], [[0, 1, 1, 1]], [[0, 0, 0, 1]], [[1, 1, 0, 0]]]
    preds = [[[0, 1, 1, 1]], [[0, 1, 1, 0]], [[0, 0, 1, 1]], [[1, 1, 0, 1]]]
    run = segiou.score(truths, preds, labels=["sea", "land"])
    run.save(path := tmp_path / "run.sqlite")
    words = ["report", str(path), "--intervals", "--columns", columns, "--format"]
    assert main([*words, "csv"]) == 0
    table = [*csv.DictReader(capsys.readouterr().out.splitlines())]
    for name in computed:
        for row, interval in zip(table, run.intervals(name).classes, strict=False):
            ends = float(row[f"{name}_low"]), float(row[f"{name}_high"])
            assert ends == (interval.low, interval.high)
    assert main([*words, "markdown"]) == 0
    text = capsys.readouterr().out
    shown = [head for head in heads(text) if head.endswith("95 % interval")]
    assert len(shown) == 1 and shown[0].startswith(heads(text)[0])
    low = run.intervals(first).classes[1].low
    assert f"{100 * low:.2f} to" in next(line for line in text.splitlines() if "| land" in line)
