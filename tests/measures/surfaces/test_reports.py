"""Surfaces of patients in intervals, tables, comparisons and pages."""

from __future__ import annotations

import csv
import json
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import segiou
from segiou.cli.main import main
from segiou.measures.surfaces import SurfaceOptions
from segiou.report.measured import score_part

if os.environ.get("SEGIOU_REQUIRE_EXTRAS") != "1":
    pytest.importorskip("nibabel")

FIXTURE = Path(__file__).parents[3] / "fixtures" / "volumes"
INTERRUPTED = Path(__file__).parents[2] / "importable" / "interrupted.py"


def patients(model, **options):
    settings = {"labels": FIXTURE / "dataset.json", "boundary": True} | options
    return segiou.score_folder(FIXTURE / "truth", FIXTURE / model, **settings)


def test_intervals_are_over_cases():
    run = patients("model_a")
    rows = run.report().measures["surfaces"]
    found = run.intervals("surface_dice", resamples=500)
    assert (found.units, found.aggregate) == (10, "class")
    assert [c.name for c in found.classes] == [*run.plan("surfaces").structures]
    means = [row["surface_dice_1"]["mean"] for row in rows]
    assert [c.value for c in found.classes] == pytest.approx(means, nan_ok=True)
    assert found.overall.value == pytest.approx(np.nanmean(means))
    assert found.overall.low < found.overall.value < found.overall.high


@pytest.mark.parametrize("width", [40, 60, 80, 140])
def test_a_terminal_of_any_width_shows_every_measure(width):
    options = SurfaceOptions(tolerances=(1, 3))
    run = patients("model_a", labels=FIXTURE / "regions.json", surfaces=options)
    report = run.report(intervals=run.intervals("surface_dice", resamples=50))
    text = report.to_text(width=width)
    assert max(map(len, text.splitlines())) <= width
    lines = [line.split("  ")[1:] for line in text.splitlines() if line.startswith("core ")]
    found = {value.strip() for line in lines for value in line}
    core = report.to_dict()["surfaces"][-1]
    for name in ("surface_dice_1", "surface_dice_3"):
        assert f"{100 * core[name]['mean']:.2f} %" in found
    assert f"{core['average_surface_distance']['mean_of_found']:.2f}" in found
    assert ("Hidden columns (widen the terminal): Dice" in " ".join(text.split())) == (width == 40)


def test_csv_has_the_surfaces_of_classes():
    report = patients("model_a", exclude=["background"]).report()
    background, organ, *_ = csv.DictReader(report.to_csv().splitlines())
    row = report.to_dict()["surfaces"][0]
    assert (row["label"], organ["surfaces_false_positive"]) == ("organ", "1")
    assert float(organ["dice:mean"]) == row["dice"]["mean"]
    assert float(organ["hausdorff_95:median"]) == row["hausdorff_95"]["median"]
    assert organ["hausdorff_95:mean"] == "inf"
    assert background["hausdorff_95:median"] == background["surfaces_found"] == ""


def test_the_table_has_mean_dice_and_says_what_a_protocol_is_about():
    report = patients("model_a", boundary=None, exclude=["background"]).report("nnunet")
    text = " ".join(report.to_text().split())
    assert f"mean Dice {100 * report.mean_dice:.2f} %" in text
    assert "groups, shares and counts pool voxels over all cases" in text
    assert "applies to means only" not in patients("model_a").report().to_text()
    assert "--exclude background" not in text
    whole = patients("model_a", boundary=None).report("nnunet").to_text(width=200)
    assert "includes background, which this protocol excludes; use --exclude background" in whole


def test_a_structure_that_no_case_has_is_not_listed():
    mask = np.zeros((4, 4), np.uint8)
    mask[1:3, 1:3] = 1
    run = segiou.score([mask], [mask], labels=["ground", "organ", "lesion"], surfaces=True)
    lines = str(run.report()).partition("structure ")[2].splitlines()
    assert any(line.startswith("organ ") for line in lines)
    assert not any(line.startswith("lesion ") for line in lines)


def test_models_are_compared_on_the_same_cases():
    runs = [patients(model) for model in ("model_a", "model_b")]
    compared = segiou.compare(*runs, metric="surface_dice", resamples=200, permutations=200)
    pair = compared.pairs[0]
    intervals = [run.intervals("surface_dice", resamples=200) for run in runs]
    assert pair.overall.a == pytest.approx(intervals[0].overall.value)
    assert pair.overall.b == pytest.approx(intervals[1].overall.value)
    assert "surface Dice" in str(compared)
    other = patients("model_b", boundary=None, surfaces="monai")
    # Only options that differ are named: not the structures and the unit.
    differing = "with convention segiou in model_a but convention monai in model_b; score both"
    with pytest.raises(ValueError, match=differing):
        segiou.compare(runs[0], other, metric="surface_dice")
    plain = patients("model_b", boundary=None)
    with pytest.raises(
        ValueError, match=r"has no surface counts; .* measures=..surfaces'\] \(--surface\)"
    ):
        segiou.compare(runs[0], plain, metric="surface_dice")


def test_the_command_compares_runs(tmp_path, capsys):
    for model in ("model_a", "model_b"):
        patients(model, run=tmp_path / model)
    command = ["compare", str(tmp_path / "model_a"), str(tmp_path / "model_b"), "--quiet"]
    assert main([*command, "--metric", "surface_dice", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["metric"] == "surface_dice"


@pytest.mark.gate
def test_what_was_killed_goes_on(tmp_path):
    """SIGKILL between cases and in a commit: the totals are the same."""
    arguments = ["score", str(FIXTURE / "truth"), str(FIXTURE / "model_a"), "--quiet"]
    arguments += ["--labels", str(FIXTURE / "regions.json"), "--format", "json"]
    arguments += ["--boundary", "--surface", "medpy", "--run"]
    whole = patients("model_a", labels=FIXTURE / "regions.json", surfaces="medpy")
    for number, where in enumerate(("RunWriter.add:3", "RunWriter._write_entries:2")):
        path = tmp_path / f"{number}.sqlite"
        killed = subprocess.run(
            [sys.executable, str(INTERRUPTED), "at", where, "SIGKILL", *arguments, str(path)],
            capture_output=True,
            start_new_session=True,
        )
        assert killed.returncode == -signal.SIGKILL, killed.stderr
        command = [sys.executable, "-m", "segiou", *arguments, str(path)]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert segiou.Run.open(path).counts_of("surfaces") == whole.counts_of("surfaces")
        assert json.loads(done.stdout)["surfaces"] == whole.report().to_dict()["surfaces"]


def test_the_page_has_the_distances(tmp_path):
    from segiou.report import write_html

    run = patients("model_a", run=tmp_path / "r.sqlite")
    page = write_html(tmp_path / "page.html", run.report(), run=run).read_text()
    section = page[page.index('<section id="surfaces"') :]
    section = section[: section.index("</section>")]
    for row in run.report().measures["surfaces"]:
        assert f'<span class="name">{row["label"]}</span>' in section
    assert "Surfaces: convention segiou, distances in mm." in section
    assert '"unit":"voxels"' in page
    # Volumes have voxels in every sentence.
    text = re.sub(r"<(style|script).*?</\1>", "", page, flags=re.DOTALL)
    assert "Voxel accuracy" in text and not re.search(r"\bpixels?\b(?![-\"])", text, re.IGNORECASE)
    assert "HD95 median, mm</th>" in section
    assert "2.06\xa0% of organ voxels predicted as tumour" in page
    case = next(c for c in run.report().measures["surface_cases"] if c["case"] == "patient_05")
    known = f"organ {100 * case['dice']:.2f} %, {case['hausdorff_95']:.2f}; tumour missed; vessel "
    assert f"Dice and HD95 in mm: {known}" in page


def test_structures_show_surface_dice_at_their_own_tolerance():
    """Two cubes a voxel apart: at 1 mm nothing of the other's front and back is within reach."""
    truth, pred = np.zeros((2, 6, 6, 6), np.uint8)
    truth[1:3, 1:3, 1:3], pred[1:3, 1:3, 2:4] = 1, 1
    truth[4:, 4:, 3:5], pred[4:, 4:, 4:] = 2, 2
    surfaces = SurfaceOptions((0.5,), tolerances_of={"b": (3.0,)})
    run = segiou.score([truth], [pred], labels=["air", "a", "b"], exclude="air", surfaces=surfaces)
    table = score_part(run.report().tables[0])
    at = next(i for i, c in enumerate(table.filled) if c.head.startswith("surface Dice 0.5"))
    rows = {row[0].text: row[at].text for row in table.rows}
    assert rows["b"].startswith("100.00 % at 3") and " at " not in rows["a"]


def test_the_page_on_volumes_shows_what_its_command_prints(monkeypatch, tmp_path, capsys):
    page = (FIXTURE.parents[1] / "docs" / "volumes.md").read_text(encoding="utf-8")
    command = next(line for line in page.splitlines() if line.startswith("segiou score fixtures"))
    table = page[page.index("```text\n") :].split("```")[1].removeprefix("text\n")
    monkeypatch.chdir(FIXTURE.parents[1])
    monkeypatch.setenv("COLUMNS", "160")
    words = shlex.split(command.replace("model_a.sqlite", str(tmp_path / "a.sqlite")))
    assert main([*words[1:], "--quiet"]) == 0
    assert table in capsys.readouterr().out


@pytest.mark.parametrize(("least", "code"), [("0.5", 0), ("0.95", 1)])
def test_surface_dice_may_have_a_threshold(capsys, least, code):
    """The mean of the structures at the first tolerance."""
    folders = [str(FIXTURE / name) for name in ("truth", "model_a")]
    labels = ["--labels", str(FIXTURE / "dataset.json"), "--format", "json"]
    asked = ["--boundary", "--boundary-tolerance", "2mm", "--fail-under", f"surface_dice={least}"]
    assert main(["score", *folders, *labels, *asked]) == code
    found = json.loads(capsys.readouterr().out)
    means = [row["surface_dice_2"]["mean"] for row in found["surfaces"]]
    assert found["thresholds"][0]["value"] == pytest.approx(sum(means) / len(means), abs=1e-12)


def test_without_a_tolerance_there_is_no_surface_dice():
    mask = np.pad(np.ones((2, 2), np.uint8), 1)
    options = SurfaceOptions(tolerances=())
    for measured in (options, None):
        report = segiou.score([mask], [mask], labels=2, surfaces=measured).report()
        with pytest.raises(ValueError, match="surface_dice was not measured"):
            report.score("surface_dice")


def test_the_command_from_two_folders_to_the_page(tmp_path, capsys, monkeypatch):
    """With and without a run, in parts, merged, compared, with intervals over patients."""
    monkeypatch.setenv("COLUMNS", "200")
    labels = ["--labels", str(FIXTURE / "regions.json"), "--exclude", "background", "--quiet"]
    measured = ["--boundary", "--boundary-tolerance", "1mm,2mm", "--surface", "medpy"]
    sampled = ["--intervals", "--group-by", r"^(patient_\d\d)", "--resamples", "200"]

    def command(*words, code=0):
        assert main([*map(str, words)]) == code
        return capsys.readouterr().out

    def scored_of(model, *options):
        folders = FIXTURE / "truth", FIXTURE / model
        return command("score", *folders, *labels, *measured, *options)

    whole = json.loads(scored_of("model_a", "--format", "json", *sampled))
    for part in (1, 2):
        scored_of("model_a", "--run", tmp_path / f"part{part}", "--shard", f"{part}/2")
    parts = tmp_path / "part1", tmp_path / "part2"
    command("merge", *parts, "--output", tmp_path / "model_a.sqlite", "--quiet")
    shown = command("report", tmp_path / "model_a.sqlite", "--format", "json", *sampled, "--quiet")
    again = json.loads(shown)
    for key in ("surfaces", "surface_cases", "mean_iou", "groups", "intervals"):
        assert again[key] == whole[key]
    found = segiou.Run.open(tmp_path / "model_a.sqlite").intervals(
        "surface_dice", groups=r"^(patient_\d\d)", resamples=200
    )
    assert (found.unit, found.units) == ("group", 10)
    score = again["scores"]["surface_dice"]["rows"]
    for row, interval in zip(again["surfaces"], found.classes, strict=True):
        dice = score[row["label"]]
        assert (dice["low"], dice["high"]) == (interval.low, interval.high)
        assert interval.value == pytest.approx(row["surface_dice_1"]["mean"], abs=1e-9)
        assert dice["low"] < dice["value"] < dice["high"]
    table = command("report", tmp_path / "model_a.sqlite", *sampled, "--quiet")
    assert "95 % interval" in table.split("\nstructure")[2]
    page = tmp_path / "page.html"
    command("report", tmp_path / "model_a.sqlite", "--html", page, *sampled, "--quiet")
    text = page.read_text()
    section = text[text.index('<section id="surfaces"') :].split("</section>")[0]
    assert section.count('<rect class="box"') == len(again["surfaces"])
    assert "9 of 10 cases" in section
    assert "voxels that was found" in " ".join(text.split())
    scored_of("model_b", "--run", tmp_path / "model_b.sqlite")
    runs = tmp_path / "model_a.sqlite", tmp_path / "model_b.sqlite"
    differing = ["--metric", "surface_dice", "--group-by", r"^(patient_\d\d)", "--quiet"]
    compared = json.loads(command("compare", *runs, *differing, "--format", "json"))
    assert compared["metric"] == "surface_dice"
    cases = tmp_path / "cases.csv"
    command("report", runs[0], "--per-image", cases, "--quiet")
    with cases.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 10
    assert {"dice:core", "hausdorff_95:core", "surface_dice_2:whole"} <= rows[0].keys()
