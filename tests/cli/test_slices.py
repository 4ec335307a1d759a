"""Slices in reports and comparisons, and thresholds of slices."""

from __future__ import annotations

import csv
import io
import json
from xml.etree import ElementTree

import numpy as np
import pytest

import segiou
from segiou.cli.main import main

IDS = [f"{time}_{i}" for time in ("day", "night") for i in range(6)] + ["dusk_0", "dusk_1"]
BY = "(?P<time>[a-z]+)_"


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """IoU by day 0.9 to 1, at night about 0.5 for the first model and 0.7 for the second."""
    folder = tmp_path_factory.mktemp("runs")
    truth = {id: np.repeat([[0, 1]], 50, 1) for id in IDS}
    for name, wrong, shift in (("a", 30, 0), ("b", 15, 1)):
        pred = {}
        for i, (id, mask) in enumerate(truth.items()):
            pred[id] = mask.copy()
            pred[id][0, : (wrong if "night" in id else 2) + (i + shift) % 3] ^= 1
            if name == "a":
                for kind, own in (("truth", mask), ("pred", pred[id])):
                    (folder / kind).mkdir(exist_ok=True)
                    np.save(folder / kind / f"{id}.npy", own.astype(np.uint8))
        segiou.score(truth, pred, labels=2, name=name).save(folder / f"{name}.sqlite")
    return folder


def report(runs, *options, run="a"):
    return main(["report", str(runs / f"{run}.sqlite"), "--group-by", "none", *map(str, options)])


#: The slice at night in each format, between what stands before and after its name.
SHOWN = {
    "txt": ("points lower on time=", "time=night  "),
    "md": ("points lower on time=", "| time=night | 6 |"),
    "tex": ("points lower on time=", "time=night & 6 &"),
    "html": ('id="slices"', 'data-value="time=night"'),
}


@pytest.mark.gate
@pytest.mark.parametrize("command", ["slices", "report", "score", "compare"])
def test_every_command_has_slices_in_every_format(runs, tmp_path, capsys, command):
    models = ["a"] if command in ("report", "score") else ["a", "b"]
    paths = [str(runs / f"{name}.sqlite") for name in models]
    found = segiou.slices(*map(segiou.Run.open, paths), by=BY, groups="none")["time=night"]
    given = [*paths, BY] if command == "slices" else [*paths, "--slices", BY]
    if command == "score":
        given = [str(runs / "truth"), str(runs / "pred"), "--labels", "2", *given[1:]]
    own = [command, *given, "--group-by", "none", "-q"]
    for ending in ("json", "csv", *SHOWN):
        file = tmp_path / f"out.{ending}"
        # Findings have no format HTML, but comparisons have a page.
        is_page = ending == "html" and command == "compare"
        if ending == "html" and command == "slices":
            continue
        assert main([*own, "--html" if is_page else "-o", str(file)]) == 0
        if is_page:
            main([*own, "-o", "/dev/null", "--format", "json"])
        text = file.read_text(encoding="utf-8")
        for part in SHOWN.get(ending, ()):
            assert part in text, (ending, part)
    data = json.loads((tmp_path / "out.json").read_text())
    sliced = data["slices"] if command == "slices" else data["slices"]["slices"]
    assert sliced[2]["score"] == found.score
    (row,) = [
        row
        for row in csv.DictReader(io.StringIO((tmp_path / "out.csv").read_text()))
        if row["value"] == "night"
    ]
    score = {"report": "iou", "score": "iou", "compare": "delta", "slices": "score"}[command]
    assert float(row[score]) == found.score
    assert float(row["gap_low"]) == found.gap.low
    assert float(row["p_holm" if command == "slices" else "gap_p_holm"]) == found.gap.p_holm
    capsys.readouterr()


@pytest.mark.gate
def test_slices_of_a_comparison_have_its_names(runs, tmp_path):
    """The best model and the second of three are compared, in the page by several scores."""
    both = [str(runs / f"{name}.sqlite") for name in "aab"]
    own = ["compare", *both, "--names", "x,y,z", "--group-by", "none", "--slices", BY, "-q"]
    page = tmp_path / "page.html"
    assert main([*own, "-o", str(tmp_path / "out.csv"), "--html", str(page)]) == 0
    rows = [*csv.DictReader(io.StringIO((tmp_path / "out.csv").read_text()))]
    sliced = [row for row in rows if row["value"] == "night"]
    assert [(row["model_a"], row["model_b"]) for row in sliced] in ([("x", "z")], [("y", "z")])
    text = page.read_text(encoding="utf-8")
    assert all(f'id="sliced-{name}"' in text for name in ("iou", "dice", "pixel_accuracy"))


def test_a_notebook_has_slices(runs):
    found = segiou.Run.open(runs / "a.sqlite").slices(BY, groups="none")
    assert "time=night" in found._repr_html_()


@pytest.mark.few(1)
@pytest.mark.parametrize("command", ["slices", "report"])
def test_another_mix(runs, tmp_path, command):
    shares = {"day": 0.7, "night": 0.3}
    run = segiou.Run.open(runs / "a.sqlite")
    (expected,) = run.slices(BY, groups="none", mix={"time": shares}).mixes
    source = [BY] if command == "slices" else ["--slices", BY]
    own = [command, str(runs / "a.sqlite"), *source, "--group-by", "none"]
    for name in ("out.json", "out.md"):
        assert main([*own, "--mix", "time:day=70%,night=0.3", "-o", str(tmp_path / name)]) == 0
    data = json.loads((tmp_path / "out.json").read_text())
    (mix,) = (data if command == "slices" else data["slices"])["mixes"]
    assert mix["shares"] == shares
    assert (mix["low"], mix["high"]) == (expected.low, expected.high)
    text = (tmp_path / "out.md").read_text(encoding="utf-8")
    assert f"Mean IoU of a is {100 * expected.score:.2f} %" in text
    assert "in a mix of 70 % day and 30 % night (time)." in text


def test_blocks_are_not_those_of_slices(runs, capsys):
    options = ["--slices", BY, "--blocks", "2", "-o", "/dev/null", "--format", "json"]
    assert main(["report", str(runs / "a.sqlite"), *options]) == 0
    assert "--blocks has no effect on --slices" in capsys.readouterr().err


@pytest.mark.gate
def test_threshold_of_every_slice_and_of_one(runs, tmp_path, capsys):
    night = segiou.Run.open(runs / "a.sqlite").slices(BY, groups="none", level=0.9)["time=night"]
    out = tmp_path / "r.json"
    gates = ["--fail-under", "mean_iou@time=0.8", "--fail-under", "iou:1@time=night=0.1"]
    assert report(runs, "--slices", BY, *gates, "-o", out, "--junit", tmp_path / "j.xml") == 1
    found = {one["name"]: one for one in json.loads(out.read_text())["thresholds"]}
    states = {name: one["state"] for name, one in found.items()}
    assert states == {
        "mean_iou@time=day": "passed",
        "mean_iou@time=dusk": "undecided",  # two images have no interval
        "mean_iou@time=night": "failed",
        "iou:1@time=night": "passed",
    }
    own = found["mean_iou@time=night"]
    assert (own["value"], own["low"], own["high"]) == (night.score, night.low, night.high)
    error = capsys.readouterr().err
    assert "mean_iou@time=dusk is" in error and "no interval from 2 images" in error
    suite = ElementTree.parse(tmp_path / "j.xml").getroot()[0]
    assert [suite.get(key) for key in ("tests", "failures", "skipped")] == ["4", "1", "1"]
    assert suite[2].get("name") == "mean_iou@time=night >= 0.8"
    assert report(runs, "--slices", BY, "--fail-under", "mean_iou@time=dusk=0.1", "-q") == 0
    asked = ["--slices", BY, "--fail-under", "mean_iou@time=dusk=0.1", "--confident"]
    assert report(runs, *asked) == 1


@pytest.mark.gate
def test_a_slice_that_is_worse_than_the_baseline_fails(runs, capsys):
    asked = ["--slices", BY, "--baseline", runs / "b.sqlite", "--fail-if-worse-slice"]
    assert report(runs, *asked, "-o", "/dev/null") == 1
    assert "failed: mean IoU on time=night is lower than the baseline" in capsys.readouterr().err
    assert report(runs, *asked[:3], runs / "a.sqlite", asked[-1], run="b") == 0
    assert report(runs, *asked[:-1], "--fail-if-worse-slice=0.5") == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--slices", BY, "--fail-under", "mean_iou@tim=0.5"], "columns: time; did you mean time"),
        (["--slices", BY, "--fail-under", "mean_iou@time=nite=0.5"], "values: day, dusk, night"),
        (["--slices", BY, "--require", "mean_iou@time=nite=0.5"], "time=nite does not occur"),
        (["--fail-under", "mean_iou@time=0.5"], "need --slices"),
        (["--slices", "(?P<x>z)"], "matches no id"),
        (["--slices-key", "x"], "--slices-key has no effect without --slices"),
        (["--mix", "time:day=1"], "--mix has no effect without --slices"),
        (["--slices", BY, "--mix", "time:day"], "expected COLUMN:VALUE=SHARE"),
        (["--slices", BY, "--mix", "time:dawn=1"], "time=dawn does not occur"),
        (["--slices", BY, "--mix", "time:day=70%,night=20%"], "sum to 1"),
        (["--baseline", "RUN", "--fail-if-worse-slice"], "no effect without --slices"),
        (["--slices", BY, "--fail-if-worse-slice"], "no effect without --baseline"),
    ],
)
def test_wrong_options(runs, capsys, options, message):
    given = [str(runs / "b.sqlite") if one == "RUN" else one for one in options]
    assert report(runs, *given) == 2
    assert message in capsys.readouterr().err
