"""The table of classes and models: values, what is bold, and every format."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace

import numpy as np
import pytest

import segiou
from segiou.analysis import model_table
from segiou.cli.main import main

NAMES = ["road", "car", "bus"]


@pytest.fixture(scope="module")
def runs():
    """Three models of 12 images: the second repairs the first, the third is as good as it."""
    rng = np.random.default_rng(0)
    truths = [rng.integers(0, 2, (20, 20)) for _ in range(12)]
    noise = [rng.random((2, 20, 20)) for _ in truths]

    def of(share, which):
        preds = [np.where(n[which] < share, 1 - t, t) for t, n in zip(truths, noise, strict=True)]
        return segiou.score(truths, preds, labels=NAMES)

    return [of(0.3, 0), of(0.1, 0), of(0.3, 1)]


def test_values_are_those_of_the_reports(runs):
    found = model_table(*runs, names=("a", "b", "c"), metrics=["iou", "dice"])
    rows = {row["class"]: row for row in found.rows()}
    assert [*rows] == ["road", "car", "mean"]  # no image has a bus
    for name, run in zip("abc", runs, strict=True):
        report = run.report()
        assert rows["road"][f"iou:{name}"] == run.total().iou()[0]
        assert rows["mean"][f"iou:{name}"] == report.mean_iou
        assert rows["mean"][f"dice:{name}"] == report.mean_dice


def test_only_a_significant_best_is_bold(runs):
    found = segiou.compare(*runs, names=("a", "b", "c")).table()
    (table,) = found.scores
    assert [[one.best for one in ones] for ones in table.values()] == [[False, True, False]] * 3
    assert "**" in found.to_markdown() and "bold: better than every other" in found.to_text()
    same = segiou.compare(runs[0], runs[0], names=("a", "b")).table()
    assert not any(one.best for ones in same.scores[0].values() for one in ones)
    assert "no value is better than those of all other models" in same.to_text()


@pytest.mark.needs("measures.topology")
def test_lower_is_better_of_errors():
    truths = [np.zeros((20, 20), int) for _ in range(9)]
    many = [truth.copy() for truth in truths]
    for i, pred in enumerate(many):
        pred[:, : 4 * (1 + i % 4) : 4] = 1  # one to four components that the truth lacks
    runs = [
        segiou.score(truths, preds, labels=2, measures=["topology"]) for preds in (many, truths)
    ]
    found = model_table(*runs, metrics="betti_0_error", names=("many", "none"), groups="none")
    assert [[one.best for one in ones] for ones in found.scores[0].values()] == [[False, True]] * 2


def test_intervals_on_demand(runs):
    found = model_table(*runs, names=("a", "b", "c"), intervals=True)
    interval = segiou.confidence_intervals(runs[1])
    row = next(iter(found.rows()))
    first = interval.classes[0]
    assert (row["iou:b:low"], row["iou:b:high"]) == (first.low, first.high)
    assert f"({100 * first.low:.2f} to {100 * first.high:.2f})" in found.to_latex()


def test_a_row_called_mean_and_classes_of_one_model_only():
    truth = np.array([[0, 0, 1, 1]])
    runs = [
        segiou.score([truth] * 6, [pred] * 6, labels=["mean", "b", "c"])
        for pred in (truth, truth + 1)
    ]
    found = segiou.compare(*runs, names=("x", "y")).table()
    assert found.to_dict()["models"] == ["x", "y"]
    assert [row["class"] for row in found.rows()][-1] == "mean"
    assert "excluded from the mean: c (not scored for all models)" in found.to_text(width=200)


def test_wrong_arguments(runs):
    with pytest.raises(ValueError, match="metrics is empty"):
        model_table(*runs, metrics=[])
    with pytest.raises(ValueError, match="unknown"):
        model_table(*runs, metrics="iu")


@pytest.mark.gate
def test_the_command(runs, tmp_path, capsys):
    paths = [
        str(run.save(tmp_path / f"{name}.sqlite")) for run, name in zip(runs, "abc", strict=True)
    ]
    words = ["compare", *paths, "--names", "a,b,c", "--table", "--metric", "iou,dice", "-q"]
    assert main([*words, "--format", "json"]) == 0
    scores = json.loads(capsys.readouterr().out)["scores"]
    assert main([*words, "--format", "csv"]) == 0
    rows = [*csv.DictReader(io.StringIO(capsys.readouterr().out))]
    assert float(rows[0]["dice:b"]) == scores["dice"]["road"][1]["value"]
    assert main([*words, "-o", str(tmp_path / "t.tex")]) == 0
    text = (tmp_path / "t.tex").read_text()
    assert text.count(r"\begin{tabular}") == 1 and r"\textbf{" in text
    one = ["compare", *paths, "--table", "-q", "--html", str(tmp_path / "p.html")]
    assert main(one) == 2
    assert "omit --html" in capsys.readouterr().err


def test_parts_of_a_latex_file_are_apart(runs):
    text = segiou.compare(*runs, names=("a", "b", "c")).to_latex()
    lines = text.splitlines()
    for at in (i for i, line in enumerate(lines) if line.startswith(r"\begin{tabular}")):
        assert "" in lines[max(0, at - 6) : at]


@pytest.fixture
def grouped():
    """Two models of six images with three classes, of which two are a group."""
    labels = segiou.LabelSet.from_names(NAMES)
    labels = replace(labels, groups={"vehicle": ("car", "bus")})
    rng = np.random.default_rng(1)
    truths = rng.integers(0, 3, (6, 20, 20))
    wrong = rng.random((2, *truths.shape)) < np.array([0.3, 0.1])[:, None, None, None]
    return [segiou.score(truths, np.where(one, 0, truths), labels=labels) for one in wrong]


def test_groups_are_rows_of_their_own(grouped):
    found = model_table(*grouped, names=("a", "b"), metrics=["iou", "dice"], intervals=True)
    *_, mean, group = found.rows()
    assert (mean["class"], group["class"]) == ("mean", "vehicle")
    for name, run in zip("ab", grouped, strict=True):
        for metric in ("iou", "dice"):
            assert group[f"{metric}:{name}"] == run.report().score(f"{metric}:vehicle")
        limits = run.intervals("iou:vehicle").overall
        assert group[f"iou:{name}:low"] == limits.low < group[f"iou:{name}"] < limits.high
    assert [one["best"] for one in found.to_dict()["groups"]["iou"]["vehicle"]] == [False, True]
    text = found.to_text(200)
    assert text.index("mean ") < text.index("Groups") < text.index("vehicle") < text.index("bold:")
    latex = found.to_latex()
    assert latex.count("\\begin{tabular}") == 2 and "\\end{tabular}\n\n% Groups\n" in latex


def test_parts_are_written_alone_and_in_order(tmp_path, capsys):
    for number, share in enumerate((0.3, 0.1, 0.5)):
        rng = np.random.default_rng(number)
        truths = np.random.default_rng(9).integers(0, 3, (8, 9, 9))
        preds = np.where(rng.random(truths.shape) < share, 0, truths)
        segiou.score(truths, preds, labels=3).save(tmp_path / f"{number}.sqlite")
    paths = [str(tmp_path / f"{number}.sqlite") for number in range(3)]
    wanted = ["compare", *paths, "--names", "a,b,c", "--parts", "classes,ranking"]
    out = tmp_path / "t.tex"
    assert main([*wanted, "-o", str(out)]) == 0
    written = out.read_text()
    titles = [
        line for line in written.splitlines() if line in ("% Models and classes", "% Ranking")
    ]
    assert titles == ["% Models and classes", "% Ranking"]
    assert written.count("\\begin{tabular}") == 2 and "% Method" not in written
    capsys.readouterr()
    assert main([*wanted[:-1], "classes,table"]) == 2
    assert "unknown part 'table'; choose from classes, images" in capsys.readouterr().err
    assert main(["compare", *paths[:2], "--parts", "ranking"]) == 2
    assert "ranking needs three or more models" in capsys.readouterr().err
    for other in (["--table"], ["--format", "json"], ["--metric", "iou,dice"]):
        assert main([*wanted, *other]) == 2
        assert "--parts chooses parts" in capsys.readouterr().err
