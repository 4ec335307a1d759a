"""``segiou score --objects``: from files as COCO has them to a page."""

from __future__ import annotations

import csv
import html
import io
import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from coco_files import write_coco
from deletable import kind_of_scores

import segiou
from segiou.cli.main import main
from segiou.labels import load_labels

STREETS = Path(__file__).parents[3] / "fixtures" / "streets"
THINGS = ("tree", "car", "pole", "sign", "person", "bicycle")
OBJECTS = ["--objects", "coco", "--things", ",".join(THINGS), "--unassigned", "count"]


@pytest.fixture(scope="module")
def coco(tmp_path_factory):
    root = tmp_path_factory.mktemp("coco")
    labels = load_labels(STREETS / "labels.toml")
    for side in ("truth", "model_a", "model_b"):
        masks = {path.stem: path for path in sorted((STREETS / side).glob("*.png"))}
        write_coco(root / side, masks, labels, things=THINGS)
    return root


def score(coco, *more, model="model_a", code=0):
    folders = [str(coco / "truth"), str(coco / model)]
    labels = ["--labels", str(coco / "truth.json")]
    assert main(["score", *folders, *labels, *OBJECTS, "--quiet", *map(str, more)]) == code


@pytest.mark.gate
def test_coco_end_to_end_into_a_page(coco, tmp_path, capsys):
    files = {name: tmp_path / f"a.{name}" for name in ("html", "sqlite", "csv")}
    outputs = ["--html", files["html"], "--run", files["sqlite"], "--per-image", files["csv"]]
    score(coco, "--format", "json", *outputs)
    found = json.loads(capsys.readouterr().out)["objects"]
    run = segiou.Run.open(files["sqlite"])
    assert found["all"] == run.counts_of("objects").panoptic_quality()
    assert found["things"]["classes"] == len(THINGS)
    car = next(row for row in found["classes"] if row["name"] == "car")
    index = run.class_names.index("car")
    assert [car["found"], car["false_positive"], car["missed"]] == run.counts_of(
        "objects"
    ).detections[index].tolist()
    assert found["options"]["source"] == "coco"
    page = without_spans(files["html"])
    assert '<section id="objects"' in page and ">False positive<" in page
    assert f"{100 * found['things']['pq']:.2f} %" in page
    assert "data:image/png" in page and "No pictures:" not in page
    rows = list(csv.DictReader(io.StringIO(files["csv"].read_text())))
    missed = sum(int(row["objects_missed"]) for row in rows)
    assert missed == sum(row["missed"] for row in found["classes"]) > 0


@pytest.mark.parametrize("format", ["table", "markdown", "csv"])
def test_every_form_has_the_objects(coco, capsys, format):
    score(coco, "--format", format)
    printed = capsys.readouterr().out
    words = ("pq", "objects_missed") if format == "csv" else ("PQ", "missed", "mean of things")
    assert all(word in printed for word in words)


def test_images_with_most_missed_objects(coco, capsys):
    score(coco, "--format", "json", "--worst", "2", "--worst-by", "objects_missed")
    worst = json.loads(capsys.readouterr().out)["worst_images"]["rows"]
    numbers = [row["objects_missed"] for row in worst]
    run = segiou.score_folder(
        coco / "truth",
        coco / "model_a",
        labels=coco / "truth.json",
        unassigned="count",
        objects=segiou.measures.objects.ObjectOptions("coco", things=THINGS),
    )
    every = sorted((row["objects_missed"] for row in run.rows()), reverse=True)
    assert numbers == every[:2]
    assert run.to_pandas()["objects_missed"].tolist() == [r["objects_missed"] for r in run.rows()]
    score(coco, "--worst", "1", "--worst-by", "objects_missed")
    assert f"  {every[0]}\n" in capsys.readouterr().out


def test_thresholds_and_intervals(coco, tmp_path, capsys):
    score(coco, "--fail-under", "pq=0.99", code=1)
    assert "threshold failed: pq is" in capsys.readouterr().err
    score(coco, "--fail-under", "pq=0.01")
    plain = ["score", *(str(STREETS / s) for s in ("truth", "model_a"))]
    plain += ["--labels", str(STREETS / "labels.toml"), "--quiet"]
    assert main([*plain, "--fail-under", "pq=0.5"]) == 2
    assert "objects are not measured; score with --objects" in capsys.readouterr().err
    assert main([*plain, "--worst", "1", "--worst-by", "objects_missed"]) == 2
    assert "to score objects, use --objects" in capsys.readouterr().err
    assert main([*plain, "--objects", "--things", "99"]) == 2
    assert "things: no class 99" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["score", "--objects", *plain[1:]])
    assert "/truth'; choose from components, coco, cityscapes, kitti" in capsys.readouterr().err
    assert main([*plain, "--things", "car"]) == 2
    assert "--things has no effect without --objects" in capsys.readouterr().err


def test_two_models_are_compared_by_their_objects(coco, tmp_path, capsys):
    runs = [tmp_path / f"{model}.sqlite" for model in ("model_a", "model_b")]
    for run in runs:
        score(coco, "--run", run, model=run.stem)
    capsys.readouterr()
    command = ["compare", *map(str, runs), "--metric", "pq", "--resamples", "100"]
    page = ["--html", str(tmp_path / "page.html")]
    assert main([*command, *page, "--format", "json", "--group-by", "none"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["metric"], found["protocol"]) == ("pq", "coco")
    verdict = (tmp_path / "page.html").read_text().partition('class="verdict"')[2][:200]
    assert "PQ" in verdict, verdict
    means = [segiou.Run.open(run).counts_of("objects").panoptic_quality()["pq"] for run in runs]
    overall = found["pairs"][0]["overall"]
    assert [overall["a"], overall["b"]] == pytest.approx(means, abs=1e-9)


def test_pq_has_an_interval_where_intervals_are_asked_for(coco, tmp_path, capsys):
    asked = ["--intervals", "--group-by", "none", "--level", "0.9"]
    path = tmp_path / "a.sqlite"
    score(coco, *asked, "--run", path, "--html", tmp_path / "a.html")
    printed = capsys.readouterr().out
    run = segiou.Run.open(path)
    found = run.intervals("pq", groups="none", level=0.9)
    low, high = (f"{100 * limit:.2f}" for limit in (found.overall.low, found.overall.high))
    assert f"{low} to {high} %" in printed
    assert f"{low} to {high} %" in (tmp_path / "a.html").read_text()
    assert main(["report", str(path), *asked, "--format", "json"]) == 0
    quality = json.loads(capsys.readouterr().out)["scores"]["pq"]
    assert (quality["low"], quality["high"]) == (found.overall.low, found.overall.high)
    assert main(["report", str(path), *asked, "--format", "csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    car = next(row for row in rows if row["name"] == "car")
    expected = next(entry for entry in found.classes if entry.name == "car")
    assert float(car["pq_low"]) == expected.low
    # Without PQ the report has intervals of IoU as before.
    assert run.report(intervals=run.intervals("iou", groups="none")).intervals.metric == "iou"
    assert run.report(intervals=found).intervals is None


def objects_of(command, capsys):
    capsys.readouterr()
    code = main([*command, "--quiet", "--format", "json"])
    found = capsys.readouterr()
    assert code == 0, found.err
    return json.loads(found.out)["objects"]


def without_spans(page):
    """A page in which options of commands may be broken anywhere."""
    return re.sub(r"</?span[^>]*>", "", page.read_text())


def recipe_of(page):
    """The command that a page shows."""
    (command,) = re.findall(r"segiou score [^<]*", without_spans(page))
    return shlex.split(html.unescape(command))[1:]


def test_a_least_size_in_mm_is_in_the_command_that_a_page_shows(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)  # the command shown writes a page here
    nibabel = pytest.importorskip("nibabel", reason="needs nibabel")
    for side in ("truth", "pred"):
        for name, depth in (("fine", 1.0), ("thick", 2.0)):
            (tmp_path / side).mkdir(exist_ok=True)
            image = nibabel.Nifti1Image(np.uint8([[[1, 1, 1, 0, 1, 1]]]), np.diag([1, 1, depth, 1]))
            image.to_filename(tmp_path / side / f"{name}.nii.gz")
    page = tmp_path / "page.html"
    command = ["score", str(tmp_path / "truth"), str(tmp_path / "pred"), "--labels", "2"]
    command += ["--objects", "--things", "1", "--html", str(page)]
    for least, found in (("2.1234567mm³", 3), ("3.0001", 0), ("2", 4)):
        objects = objects_of([*command, "--min-size", least], capsys)
        assert objects["classes"][1]["found"] == found
        again = recipe_of(page)
        assert again[again.index("--min-size") + 1] == least
        assert objects_of(again, capsys) == objects
    kind_of_scores("surfaces")
    # TotalSegmentator measures surfaces with voxels of its own size; objects have their file's.
    own = [*command, "--min-size=2.5mm3", "--surface", "totalsegmentator"]
    objects = objects_of(own, capsys)
    assert objects["classes"][1]["found"] == 3
    assert objects_of(recipe_of(page), capsys) == objects
    objects = objects_of([*own, "--spacing", "1,1,0.1234567"], capsys)
    assert objects["classes"][1]["found"] == 0
    assert "1,1,0.1234567" in recipe_of(page)
    assert objects_of(recipe_of(page), capsys) == objects


def test_a_least_size_in_mm_of_images_needs_a_spacing(capsys):
    command = ["score", str(STREETS / "truth"), str(STREETS / "model_a"), "--quiet"]
    command += ["--labels", str(STREETS / "labels.toml"), "--objects", "--min-size", "5mm2"]
    assert main(command) == 3
    assert "min_size=5mm2 requires masks with 2 axes and a spacing" in capsys.readouterr().err
    pixels = objects_of([*command[:-1], "20"], capsys)
    in_mm = objects_of([*command, "--spacing", "0.5,0.5"], capsys)
    assert in_mm["classes"] == pixels["classes"]
    assert in_mm["options"]["spacing"] == [0.5, 0.5]
    assert main([*command[:-1], "small"]) == 2
    assert "invalid min_size 'small'" in capsys.readouterr().err
