"""Thresholds and the comparison with a baseline: exit codes, JSON, Markdown, JUnit."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from command import FIXTURES, LABELS, MODELS, SCORE
from mask_files import write_masks
from PIL import Image

from segiou import Run, compare, score
from segiou.cli.main import main
from segiou.cli.options import parse


@pytest.mark.few(6)
@pytest.mark.parametrize(
    ("threshold", "code", "said"),
    [
        ("miou=0.5", 0, ""),
        ("miou=0.9", 1, "threshold failed: mean_iou is 69.50 %, below 90.00 %"),
        ("iou:pole=0.99", 1, "threshold failed: iou:pole is"),
        ("pixel_accuracy=0.5", 0, ""),
        ("dice:pole=0.99", 1, "threshold failed: dice:pole is 64.95 %, below 99"),
        ("recall:sky=0.5", 0, ""),
        ("precision:sky=1", 1, "threshold failed: precision:sky is 96.88 %, below 100"),
        ("speed=3", 2, "unknown score 'speed'; choose from iou"),
        ("miou=70", 2, "must be from 0 to 1, the range of the score; for 70 %, use 0.7\n"),
        ("miou=-1", 2, "'miou=-1': threshold must be from 0 to 1, the range of the score\n"),
        ("miou=-5%", 2, "'miou=-5%': threshold must be from 0 to 1, the range of the score\n"),
        ("miou=%", 2, "'%' is not a finite number\n"),
        ("cohen_kappa=-0.5", 0, ""),
        ("cohen_kappa=-1.5", 2, "threshold must be from -1 to 1, the range of the score\n"),
        ("matthews_correlation=70", 2, "from -1 to 1, the range of the score; for 70 %, use 0.7"),
        ("boundary_iou=0.5", 2, "boundaries are not measured; score with --boundary"),
        pytest.param(
            "surface_dice=0.5",
            2,
            "surfaces are not measured; score with --surface",
            marks=pytest.mark.needs("measures.surfaces"),
        ),
        ("miou=nan", 2, "'nan' is not a finite number"),
        ("miou=-inf", 2, "'-inf' is not a finite number"),
        ("miou=high", 2, "'high' is not a finite number"),
        ("miou=60%", 0, ""),
        ("miou=90%", 1, "mean_iou is 69.50 %, below 90.00 %"),
        ("cohen_kappa=95%", 1, "cohen_kappa is 0.87, below 0.95"),
        ("miou=160%", 2, "threshold must be from 0 to 1, the range of the score\n"),
        ("iou:unicorn=0", 2, "unknown class"),
    ],
)
def test_thresholds(inside, threshold, code, said):
    done = inside(*SCORE, "--fail-under", threshold)
    assert done.returncode == code
    assert said in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.needs("measures.surfaces")
@pytest.mark.parametrize(
    ("threshold", "said"),
    [
        ("hausdorff_95=-3", "threshold must be at least 0, the range of the score"),
        ("hausdorff_95=70", ""),
        ("hausdorff_95=70%", "hausdorff_95 is not a ratio; pass a number in px without %"),
        ("surface_dice=-0.1", "threshold must be from 0 to 1, the range of the score"),
        ("surface_dice=1", ""),
    ],
)
def test_thresholds_of_measures_are_in_the_range_of_the_score(inside, threshold, said):
    done = inside(*SCORE, "--surface", "segiou", "--require", threshold)
    assert done.returncode == (2 if said else done.returncode) and said in done.stderr


def test_outcomes_of_thresholds_are_written(inside, tmp_path):
    asked = ["--fail-under", "miou=0.5", "--fail-under", "iou:pole=0.99"]
    done = inside(*SCORE, *asked, "--format", "json", "--junit", tmp_path / "j.xml")
    assert done.returncode == 1
    report = json.loads(done.stdout)
    pole = report["classes"][[c["name"] for c in report["classes"]].index("pole")]
    mean, of_pole = report["thresholds"]
    assert (mean["name"], mean["value"], mean["at_least"]) == ("mean_iou", report["mean_iou"], 0.5)
    assert (mean["passed"], mean["state"]) == (True, "passed")
    assert 0.5 < mean["low"] < mean["value"] < mean["high"]
    assert (of_pole["value"], of_pole["passed"], of_pole["state"]) == (pole["iou"], False, "failed")
    (suite,) = ElementTree.parse(tmp_path / "j.xml").getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    assert [case.get("name") for case in suite] == ["mean_iou >= 0.5", "iou:pole >= 0.99"]
    assert [len(case) for case in suite] == [0, 1]
    assert "iou:pole is 48" in suite[1][0].get("message")


def test_a_limit_of_minus_zero_is_zero(inside, tmp_path):
    asked = ["--fail-under", "mean_iou=-0", "--junit", tmp_path / "j.xml"]
    assert inside(*SCORE, *asked).returncode == 0
    text = (tmp_path / "j.xml").read_text()
    assert 'name="mean_iou &gt;= 0.0"' in text
    assert not any(line != line.rstrip() for line in text.split("\n"))


def test_junit_without_a_threshold_is_refused(inside, tmp_path):
    done = inside(*SCORE, "--junit", tmp_path / "j.xml")
    assert done.returncode == 2
    assert "--junit has no effect without --fail-under" in done.stderr


def test_a_threshold_that_is_nearly_reached_shows_the_digits_that_differ(inside):
    value = json.loads(inside(*SCORE, "--format", "json").stdout)["mean_iou"]
    said = inside(*SCORE, "--fail-under", f"miou={value + 1e-6:.17g}").stderr
    value, least = re.search(r"mean_iou is ([\d.]+) %, below ([\d.]+) %", said).groups()
    assert value != least and len(value) == len(least) <= 8
    said = inside(*SCORE, "--fail-under", "cohen_kappa=0.95").stderr
    assert "cohen_kappa is 0.87, below 0.95" in said


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """Run files of both models."""
    folder = tmp_path_factory.mktemp("kept")
    for model in MODELS:
        run = folder / f"{Path(model).name}.sqlite"
        options = ["--run", str(run), "--quiet", "--output", os.devnull]
        assert main(["score", SCORE[1], model, *LABELS, *options]) == 0
    return folder


def test_a_run_that_is_worse_than_its_baseline_fails(inside, kept, tmp_path):
    worse, better = kept / "model_a.sqlite", kept / "model_b.sqlite"
    asked = ["--baseline", better, "--fail-if-worse", "--junit", tmp_path / "j.xml"]
    done = inside("report", worse, *asked, "--format", "json")
    assert done.returncode == 1
    assert "threshold failed: mean IoU is lower than the baseline (−16.73 points, " in done.stderr
    report = json.loads(done.stdout)
    change = report["baseline"]["pairs"][0]["overall"]
    expected = compare(Run.open(better), Run.open(worse)).pairs[0].overall
    assert (change["low"], change["high"]) == (expected.low, expected.high)
    assert expected.high < 0
    assert report["baseline"]["run"] == str(better)
    (change,) = report["thresholds"]
    assert (change["name"], change["value"]) == ("mean_iou:change", expected.delta)
    high = compare(Run.open(better), Run.open(worse), level=0.9).pairs[0].overall.high
    assert (change["passed"], change["state"], change["high"]) == (False, "failed", high)
    (suite,) = ElementTree.parse(tmp_path / "j.xml").getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("1", "1")
    page = tmp_path / "report.html"
    table = inside("report", worse, *asked[:3], "--html", page).stdout
    assert "this run − baseline: −16.73 points, " in table
    assert "his run − baseline: −16.73 points, " in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("run", ["model_b", "model_a"])
def test_a_run_that_is_not_worse_passes(inside, kept, run):
    asked = ["--baseline", kept / "model_a.sqlite", "--fail-if-worse", "--format", "markdown"]
    done = inside("report", kept / f"{run}.sqlite", *asked, "--fail-under", "miou=0.5")
    assert (done.returncode, done.stderr) == (0, "")
    assert "| mean_iou is " in done.stdout and done.stdout.count("| passed |") == 2
    assert "is not lower than the baseline" in done.stdout
    assert "| mean IoU | 52.77 % |" in done.stdout
    assert "<details><summary>All class scores</summary>\n\n| class |" in done.stdout
    assert ("| pole | 0.00 % | **48" in done.stdout) == (run == "model_b")


def test_the_method_of_intervals_of_scores_does_not_decide_a_gate(inside, tmp_path):
    # The change of IoU is that of the hits: −4 on six of seven images, +4 on the other. Of the
    # 2^7 permutations, 1 + 7 have so low a sum: one-sided p is 8/128. A bootstrap interval
    # excludes 0, because 4 of 7 draws of the other image are rare (1 %).
    truth = np.repeat([0, 1], 100)[None]
    paths = [
        score(
            [truth] * 7,
            [(np.arange(200) >= 200 - hits)[None].astype(int) for hits in found],
            labels=["back", "cell"],
            exclude="back",
        ).save(tmp_path / f"{name}.sqlite")
        for name, found in (("old", [60] * 7), ("new", [56] * 6 + [64]))
    ]
    method = ["--method", "percentile", "--resamples", "400"]
    done = inside("report", paths[1], "--baseline", paths[0], "--fail-if-worse", *method)
    assert done.returncode == 0
    assert "is not significantly lower" in done.stderr and "one-sided p = 0.06" in done.stderr


def test_without_an_interval_nothing_is_decided(inside, kept):
    asked = ["--baseline", kept / "model_b.sqlite", "--fail-if-worse", "--group-by", "^[a-z]+"]
    done = inside("report", kept / "model_a.sqlite", *asked)
    assert done.returncode == 0
    assert "threshold passed: mean IoU is not significantly lower" in done.stderr
    assert "no interval from 2 groups, one-sided p = 0.25), within noise" in done.stderr
    sure = inside("report", kept / "model_a.sqlite", *asked, "--confident")
    assert sure.returncode == 1 and "threshold undecided: " in sure.stderr


def test_a_score_near_the_threshold_is_within_noise(inside, tmp_path):
    junit = ["--junit", tmp_path / "j.xml"]
    near = inside(*SCORE, "--fail-under", "mean_iou=0.7", *junit)
    assert near.returncode == 1
    assert "threshold failed: mean_iou is 69.50 %, below 70.00 %, within noise" in near.stderr
    (suite,) = ElementTree.parse(tmp_path / "j.xml").getroot()
    assert (suite.get("failures"), suite.get("skipped")) == ("1", "0")
    above = inside(*SCORE, "--fail-under", "mean_iou=0.69", *junit)
    assert above.returncode == 0 and "threshold passed: " in above.stderr
    (suite,) = ElementTree.parse(tmp_path / "j.xml").getroot()
    assert (suite.get("failures"), suite.get("skipped")) == ("0", "1")
    sure = inside(*SCORE, "--fail-under", "mean_iou=0.69", "--confident")
    assert sure.returncode == 1 and "threshold undecided: " in sure.stderr
    assert inside(*SCORE, "--fail-under", "mean_iou=0.5", "--confident").returncode == 0


def test_a_margin_is_confirmed_by_the_images_or_not(inside, kept):
    run = kept / "model_b.sqlite"
    for margin, code in (("0.01", 1), ("0.5", 0)):
        asked = ["--baseline", run, f"--fail-if-worse={margin}", "--confident"]
        assert inside("report", kept / "model_a.sqlite", *asked).returncode == code
    same = inside("report", run, "--baseline", run, "--fail-if-worse=0.01", "--confident")
    assert (same.returncode, same.stderr) == (0, "")


@pytest.mark.parametrize(
    "margin", ["nan", "inf", "-inf", "-0.01", "-1%", "1", "5", "100%", "1e300"]
)
@pytest.mark.parametrize("option", ["--fail-if-worse", "--fail-if-worse-slice"])
def test_a_margin_is_a_loss_below_100_points(option, margin, capsys):
    # With inf or 5 (meant as points), every loss would pass.
    with pytest.raises(SystemExit) as ended:
        main(["report", "run.sqlite", "--baseline", "old.sqlite", f"{option}={margin}"])
    assert ended.value.code == 2
    assert "expected a margin from 0 to below 1" in capsys.readouterr().err


def test_recipes_are_compared_from_the_command_line(inside, kept):
    a, b = (kept / f"model_{x}.sqlite" for x in "ab")
    done = inside("compare", "--recipes", f"old={a},{b}", f"new={b},{b}", "--detect", "0.05")
    assert done.returncode == 0
    text = " ".join(done.stdout.split())
    assert "2 and 2 training runs" in text and "5.00 points with" in text
    wrong = inside("compare", "--recipes", str(a), str(b))
    assert wrong.returncode == 2 and "expected NAME=RUN,RUN" in wrong.stderr


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (["--fail-if-worse"], 2, "--fail-if-worse has no effect without --baseline"),
        (["--baseline", "no.sqlite"], 3, "no.sqlite"),
        (["--baseline", "."], 2, "--baseline .: is a folder; expected a run file"),
        (["--seed", "1", "--baseline", "no.sqlite"], 3, "no.sqlite"),
    ],
)
def test_baselines_are_looked_at_before_anything_is_scored(inside, options, code, said):
    done = inside("score", "no-truth", "no-pred", "--labels", "3", *options)
    assert (done.returncode, done.stdout) == (code, "")
    assert said in done.stderr


def test_a_baseline_of_other_images_is_refused(inside, kept, tmp_path):
    for side in ("truth", "pred"):
        (tmp_path / side).mkdir()
        Image.fromarray(np.uint8([[0, 1]])).save(tmp_path / side / "other.png")
    pair = [tmp_path / "truth", tmp_path / "pred", *LABELS]
    done = inside("score", *pair, "--baseline", kept / "model_a.sqlite")
    assert done.returncode in (2, 3)
    assert "other" in done.stderr and "Traceback" not in done.stderr


def test_undefined_scores_fail_a_threshold(inside):
    tiny = FIXTURES / "tiny"
    pair = [tiny / "truth" / "all_ignored.png", tiny / "pred" / "all_ignored.png"]
    done = inside("score", *pair, "--labels", tiny / "labels.toml", "--fail-under", "miou=0")
    assert done.returncode == 1
    assert "mean_iou is undefined" in done.stderr


def test_a_changed_test_set_is_compared_on_its_common_images(inside, tmp_path):
    # Images b and c are in both; there, the mean IoU falls from 1 to (2/4 + 4/6) / 2.
    truth = {name: np.array([[0, 0, 1, 1]]) for name in "abcd"}
    worse = {name: np.array([[0, 1, 1, 1]]) for name in "abcd"}
    for folder, masks in (("truth", truth), ("main", truth), ("new", worse)):
        write_masks(tmp_path / folder, masks)
    runs = tmp_path / "main.sqlite", tmp_path / "new.sqlite"
    for run, pred, ids in zip(runs, ("main", "new"), ("abc", "bcd"), strict=True):
        listed = tmp_path / f"{pred}.txt"
        listed.write_text("\n".join(ids))
        folders = tmp_path / "truth", tmp_path / pred
        done = inside("score", *folders, "--labels", "2", "--ids", listed, "--run", run)
        assert done.returncode == 0
    asked = ["report", runs[1], "--baseline", runs[0], "--format", "json"]
    refused = inside(*asked)
    assert refused.returncode == 2
    assert "only in baseline: a; only in run: d; --common compares the images" in refused.stderr
    done = inside(*asked, "--common")
    assert "--common: 2 images compared, of 3 in the baseline and 3 in the run" in done.stderr
    (pair,) = json.loads(done.stdout)["baseline"]["pairs"]
    assert pair["overall"]["delta"] == pytest.approx((1 / 2 + 2 / 3) / 2 - 1)
    alone = inside("report", runs[1], "--common")
    assert alone.returncode == 2 and "--common has no effect without --baseline" in alone.stderr


def test_junit_is_written_if_the_masks_cannot_be_scored(inside, tmp_path):
    write_masks(tmp_path / "truth", {"a": np.array([[7]])})
    write_masks(tmp_path / "pred", {"a": np.array([[0]])})
    folders = tmp_path / "truth", tmp_path / "pred"
    options = ["--labels", "2", "--fail-under", "mean_iou=0.5", "--junit", tmp_path / "j.xml"]
    assert inside("score", *folders, *options).returncode == 3
    (suite,) = ElementTree.parse(tmp_path / "j.xml").getroot()
    assert (suite.get("tests"), suite.get("errors")) == ("1", "1")
    assert "undeclared value" in suite.find("testcase/error").get("message")


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["compare", "a", "b", "--detect", "1%"], "detect"),
        (["report", "a", "--fail-if-worse=1%"], "fail_if_worse"),
        (["report", "a", "--fail-if-worse-slice=1%"], "fail_if_worse_slice"),
        (["report", "a", "--level", "1%"], "level"),
        pytest.param(
            ["suspects", "a", "--max-extent", "1%"],
            "max_extent",
            marks=pytest.mark.needs("suspects"),
        ),
    ],
)
def test_fractions_may_be_in_per_cent(words, name):
    assert getattr(parse(words), name) == 0.01


def test_a_level_of_95_is_meant_in_per_cent(inside, kept):
    done = inside("report", kept / "model_a.sqlite", "--intervals", "--level", "95")
    assert (done.returncode, done.stdout) == (2, "")
    assert "got 95.0; for 95 %, pass 0.95" in done.stderr
