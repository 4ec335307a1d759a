"""The command as a user runs it: reports, findings, files, errors."""

from __future__ import annotations

import csv
import io
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from command import FIXTURES, LABELS, MODELS, SCORE, STREETS
from PIL import Image


def test_score_prints_a_table_and_nothing_else(inside):
    done = inside(*SCORE)
    assert (done.returncode, done.stderr) == (0, "")
    for part in (
        "mean IoU",
        "over 10 of 10 classes",
        "majority baseline",
        "protocol segiou: ",
        "6 pairs,",
        "bicycle",
        "group",
    ):
        assert part in done.stdout
    assert "\x1b" not in done.stdout


def test_json_is_strict_and_complete(inside):
    done = inside(*SCORE, "--format", "json")
    report = json.loads(done.stdout, parse_constant=lambda name: pytest.fail(name))
    expected = json.loads((STREETS / "expected.json").read_text())["preds"]["model_b"]["total"]
    assert report["matrix"] == expected["matrix"]
    assert report["ignored"] == expected["ignored"]
    assert report["protocol"] == "segiou"
    ratios = {"iou", "dice", "precision", "recall", "specificity", "balanced_accuracy"}
    assert set(report["classes"][0]) == {
        *("name", "tp", "fp", "fn", "share", "volumetric_similarity"),
        *ratios,
    }
    assert report["scores"]["iou"]["value"] == report["mean_iou"]
    car = next(row for row in report["classes"] if row["name"] == "car")
    assert report["scores"]["iou"]["rows"]["car"]["value"] == car["iou"]
    assert {"class", "pixel_accuracy", "mean_iou"} == set(report["majority"])


def test_undefined_is_null_in_json_and_empty_in_csv(inside):
    tiny = FIXTURES / "tiny"
    pair = [tiny / "truth" / "absent_class.png", tiny / "pred" / "absent_class.png"]
    command = ["score", *pair, "--labels", tiny / "labels.toml"]
    report = json.loads(inside(*command, "--format", "json").stdout)
    assert report["classes"][2]["iou"] is None
    assert report["skipped"] == {report["classes"][2]["name"]: "absent"}
    rows = list(csv.DictReader(io.StringIO(inside(*command, "--format", "csv").stdout)))
    assert rows[2]["iou"] == ""
    assert float(rows[0]["iou"]) == report["classes"][0]["iou"]


def test_markdown_and_sorting(inside):
    done = inside(*SCORE, "--format", "markdown", "--sort", "iou", "--reverse")
    rows = [line for line in done.stdout.splitlines() if line.startswith("| ")][2:12]
    values = [float(row.split("|")[2].removesuffix(" % ")) for row in rows]
    assert values == sorted(values, reverse=True)


def test_files_take_their_format_from_their_ending(inside, tmp_path):
    for ending, start in ((".json", "{"), (".csv", "name,"), (".md", "**model_b**"), (".txt", "")):
        path = tmp_path / f"report{ending}"
        done = inside(*SCORE, "--output", path)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", f"segiou: wrote {path}\n")
        assert path.read_text().startswith(start)
        assert path.stat().st_mode & 0o600 == 0o600
    done = inside(*SCORE, "--output", tmp_path / "report.xyz")
    assert done.returncode == 2
    assert "unknown extension '.xyz'" in done.stderr
    assert [p.suffix for p in sorted(tmp_path.iterdir())] == [".csv", ".json", ".md", ".txt"]


def test_a_hyphen_is_stdout(inside, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    done = inside(*SCORE, "--output", "table.txt", "--per-image", "-")
    assert done.returncode == 0
    assert next(row["id"] for row in csv.DictReader(io.StringIO(done.stdout))) == "north_0001"
    assert [path.name for path in tmp_path.iterdir()] == ["table.txt"]


def test_per_image_rows(inside, tmp_path):
    inside(*SCORE, "--per-image", tmp_path / "images.csv")
    rows = list(csv.DictReader(io.StringIO((tmp_path / "images.csv").read_text())))
    assert len(rows) == 6
    assert rows[0]["id"] == "north_0001"
    assert 0 < float(rows[0]["iou:sky"]) <= 1


def test_every_problem_is_listed_without_a_traceback(inside):
    partners = FIXTURES / "hostile" / "partners"
    done = inside("score", partners / "truth", partners / "pred", "--labels", "3")
    assert (done.returncode, done.stdout) == (3, "")
    for part in ("3 problems", "has the same key", "'one'", "have no prediction", "has no truth"):
        assert part in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ([], 2, "usage: segiou"),
        (["--labels", "3", "score"], 2, "put the command before --labels"),
        (["scor"], 2, "unknown command 'scor'; did you mean score?\n"),
        (["score", "a", "b"], 2, "--labels is required to score masks"),
        (["score", "a", "b", "--labels", "camvd"], 2, "unknown label set 'camvd'"),
        (["score", "a", "b", "--labels", "3"], 3, "2 files do not exist"),
        ([*SCORE, "--exclude", "unicorn"], 2, "unknown class 'unicorn'"),
        ([*SCORE, "--protocol", "mine"], 2, "unknown protocol 'mine'; choose from segiou"),
        ([*SCORE, "--workers", "0"], 2, "expected an integer ≥ 1"),
        ([*SCORE, "--key", "("], 2, "not a valid regular expression"),
        (["labelsets", "nope"], 2, "unknown label set 'nope'"),
        (["labelsets", "--from", STREETS], 2, "is a folder; to find matching label sets"),
        (["inspect", "/nowhere/at/all"], 3, "does not exist"),
    ],
)
def test_usage_and_data_errors_have_their_codes(inside, arguments, code, said):
    done = inside(*arguments)
    assert done.returncode == code, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_skipping_bad_pairs_tells_and_exits_with_3(inside, tmp_path):
    for side in ("truth", "pred"):
        (tmp_path / side).mkdir()
        for name in ("a", "b"):
            Image.fromarray(np.uint8([[0, 1]])).save(tmp_path / side / f"{name}.png")
    (tmp_path / "pred" / "b.png").write_bytes(b"not an image")
    command = ["score", tmp_path / "truth", tmp_path / "pred", "--labels", "2"]
    done = inside(*command, "--on-error", "skip")
    assert done.returncode == 3
    assert "skipped:" in done.stderr
    assert "1 pair (1 skipped), 2 pixels" in done.stdout


def test_ignoring_a_class_is_warned_about(inside):
    done = inside(*SCORE, "--ignore", "sky,road")
    assert done.returncode == 0
    assert "exclude" in done.stderr
    assert "Warning" not in done.stderr
    assert inside(*SCORE, "--ignore", "sky", "--quiet").stderr == ""
    truth, options = str(STREETS / "truth"), [*LABELS, "--ignore", "sky"]
    for command in (["explain", truth, MODELS[0]], ["compare", *MODELS, "--truth", truth]):
        done = inside(*command, *options)
        assert done.stderr.startswith("segiou: ignore includes values of the declared class 'sky'")
        assert len(done.stderr.splitlines()) == 1
        assert inside(*command, *options, "--quiet").stderr == ""


def test_protocols_are_named(inside):
    done = inside(*SCORE, "--protocol", "monai")
    assert "protocol monai: " in done.stdout


def test_labelsets_are_listed_printed_and_read_again(inside, tmp_path):
    listed = inside("labelsets").stdout
    assert "camvid" in listed and "19 classes" in listed
    path = tmp_path / "mine.toml"
    path.write_text(inside("labelsets", "cityscapes").stdout)
    assert inside("labelsets", path).stdout == path.read_text()


def test_inspect_tells_what_is_there(inside):
    done = inside("inspect", STREETS / "truth")
    assert done.returncode == 0
    for part in ("files", "mode", "size", "share"):
        assert part in done.stdout
    found = json.loads(inside("inspect", STREETS / "truth", "--format", "json").stdout)
    assert found["files"] == 6
    assert sum(entry["share"] for entry in found["values"]) == pytest.approx(1)


def test_inspect_takes_no_fitting_set_for_certain(inside, tmp_path):
    Image.fromarray(np.uint8([[0, 1, 2]])).save(tmp_path / "a.png")
    shown = inside("inspect", tmp_path).stdout
    assert "  fits " in shown
    fitting = [line.split()[1] for line in shown.splitlines() if line.startswith("  --labels ")]
    assert fitting[0] == "brats"
    assert {"brats2023", "isprs-index"} <= set(fitting)
    assert "pick the one your masks use" in shown
    assert "segiou labelsets NAME > mine.toml" in shown


def test_inspect_names_the_values_of_a_set_of_ones_own(inside, tmp_path):
    Image.fromarray(np.uint8([[0, 7]])).save(tmp_path / "a.png")
    labels = tmp_path / "mine.toml"
    labels.write_text(
        'name = "mine"\nclasses = [{name = "cat", values = [0]}, {name = "dog", values = [7]}]\n'
    )
    shown = inside("inspect", tmp_path / "a.png", "--labels", labels).stdout
    assert "fits mine" in shown and "dog" in shown
    assert "Label set mine matches: 2 of 2 classes occur." in shown
    assert "Equal values" not in shown
    shown = inside("inspect", tmp_path / "a.png", "--labels", "2").stdout
    assert "fits" not in shown.replace("does not fit", "")
    assert "The label set does not match: 1 pixel has undeclared values." in shown


def test_inspect_looks_into_archives(inside, tmp_path):
    shutil.make_archive(str(tmp_path / "masks"), "zip", STREETS / "truth")
    found = json.loads(inside("inspect", tmp_path / "masks.zip", "--format", "json").stdout)
    folder = json.loads(inside("inspect", STREETS / "truth", "--format", "json").stdout)
    assert {**found, "folder": ""} == {**folder, "folder": ""}


def test_inspect_tells_equal_problems_together(inside, tmp_path):
    for i in range(20):
        (tmp_path / f"{i:02}.png").write_bytes(b"")
    done = inside("inspect", tmp_path)
    assert done.returncode == 3
    # A long path is broken at the edge of the terminal.
    words = "".join(done.stdout.split())
    assert words.startswith(f"unreadable:20filesin{tmp_path}areempty(0bytes)")
    assert words.endswith("and17more")
    assert len(json.loads(inside("inspect", tmp_path, "--format", "json").stdout)["problems"]) == 20


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("binary_255.png", "only 0 and 255 occur"),
        ("interpolated.png", "values are rare and scattered"),
        ("lossy.jpg", "JPEG, a lossy format"),
        ("lossy.jpg", "which is scored only with --allow-lossy"),
        ("truncated.png", "unreadable"),
        ("unknown_color.png", "#00ff00"),
        ("wrong_size", "2 different sizes"),
    ],
)
def test_inspect_calls_out_what_is_suspicious(inside, name, said):
    done = inside("inspect", FIXTURES / "hostile" / name)
    assert done.returncode == (3 if said == "unreadable" else 0)
    assert said in " ".join(done.stdout.split())


@pytest.mark.needs("demo")
@pytest.mark.usefixtures("one_scene")
def test_demo_writes_scores_and_shows_its_commands(inside, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    done = inside("demo", "streets")
    assert done.returncode == 0, done.stderr
    command = "segiou score streets/truth streets/model_a --labels streets/labels.toml"
    assert f"$ {command}" in done.stdout
    again = inside(*command.split()[1:])
    assert (
        again.stdout.splitlines()[1:]
        == done.stdout.split(command)[1].splitlines()[3:][: len(again.stdout.splitlines()) - 1]
    )
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").touch()
    refused = inside("demo", "mine")
    assert refused.returncode in (2, 3)
    assert "Traceback" not in refused.stderr


def test_help_and_version(inside):
    text = inside("--help").stdout
    assert "Exit codes" in text
    commands = text.partition("commands:\n")[2].partition("\n\n")[0].split("\n")
    assert all(line[2] != " " and len(line) <= 80 for line in commands)  # a line per command
    assert inside("--version").stdout.startswith("segiou ")
    for command in ("score", "inspect", "labelsets", "merge"):
        assert "usage: segiou" in inside(command, "--help").stdout


def test_explain_says_what_accuracy_hides(inside):
    done = inside("explain", str(STREETS / "truth"), MODELS[0], *LABELS)
    assert (done.returncode, done.stderr) == (0, "")
    assert "never predicts pole, sign, person and bicycle" in " ".join(done.stdout.split())
    found = json.loads(
        inside("explain", str(STREETS / "truth"), MODELS[0], *LABELS, "--format", "json").stdout
    )
    parts = sum(row["gap_part"] for row in found["classes"])
    assert parts == pytest.approx(found["gap"])
    assert found["gap"] == pytest.approx(found["pixel_accuracy"] - found["mean_iou"])


def test_explain_says_why_two_models_differ(inside, tmp_path):
    runs = [tmp_path / f"{name}.sqlite" for name in "ab"]
    for model, run in zip(MODELS, runs, strict=True):
        inside("score", STREETS / "truth", model, *LABELS, "--run", run)
    said = inside("explain", *runs)
    assert (said.returncode, said.stderr) == (0, "")
    assert "never predicts 4 rare classes (pole, sign, person and bicycle)" in " ".join(
        said.stdout.split()
    )
    # The parts of the classes in points add up to the difference: 69.50 − 52.77 %.
    found = json.loads(inside("explain", *runs, "--format", "json").stdout)
    assert sum(found["mean_iou_parts"].values()) == pytest.approx(found["mean_iou_difference"])
    assert found["mean_iou_difference"] == pytest.approx(0.1673, abs=5e-5)


def test_compare_folders_and_runs_alike(inside, tmp_path):
    now = inside("compare", *MODELS, "--truth", STREETS / "truth", *LABELS, "--names", "a,b")
    assert now.returncode == 0, now.stderr
    runs = []
    for model in MODELS:
        runs.append(tmp_path / f"{Path(model).name}.sqlite")
        inside("score", STREETS / "truth", model, *LABELS, "--run", runs[-1], "--quiet")
    kept = inside("compare", *runs, "--names", "a,b")
    assert kept.stdout == now.stdout
    found = json.loads(inside("compare", *runs, "--format", "json", "--group-by", "^[^_]+").stdout)
    assert found["unit"] == "group"
    assert found["units"] == 2
    table = tmp_path / "drives.csv"
    table.write_text(
        "id,drive\n"
        + "".join(f"{s}_000{i},{s}\n" for s in ("north", "south") for i in range(1, 10))
    )
    by_table = inside("compare", *runs, "--format", "json", "--group-by", f"{table}:drive")
    assert json.loads(by_table.stdout) == found
    by_blocks = inside("compare", *runs, "--format", "json", "--blocks", "2")
    blocks = json.loads(by_blocks.stdout)
    assert (blocks["unit"], blocks["units"], blocks["block_length"]) == ("batch", 4, 1.5)
    assert blocks["dependence"]["sequences"] == {"north": 3, "south": 3}
    stated = inside("compare", *runs, "--names", "a,b", "--group-by", "none")
    assert stated.stdout.partition("Independence")[0] == kept.stdout.partition("Independence")[0]
    no_column = inside("compare", *runs, "--group-by", f"{table}:city")
    assert no_column.returncode == 2
    assert "has no column 'city'; columns: id, drive" in no_column.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["compare", MODELS[0]], "needs at least two models"),
        (["compare", *MODELS, "--truth", str(STREETS / "truth")], "--labels is required"),
        (["explain", "a", "b", "c"], "got 3 paths"),
    ],
)
def test_explain_and_compare_say_what_they_need(inside, arguments, said):
    done = inside(*arguments)
    assert done.returncode == 2
    assert said in done.stderr


def test_the_worst_images_are_listed_on_request(inside, tmp_path):
    run = tmp_path / "r.sqlite"
    done = inside(*SCORE, "--run", run, "--worst", "2", "--worst-by", "iou:pole")
    assert "worst images" in done.stdout
    again = inside("report", run, "--worst", "2", "--worst-by", "iou:pole", "--format", "json")
    worst = json.loads(again.stdout)["worst_images"]
    assert worst["by"] == "iou:pole"
    values = [row["iou:pole"] for row in worst["rows"]]
    assert len(values) == 2
    assert values == sorted(values)
    assert worst["rows"][0]["id"] in done.stdout
    assert "worst images" not in inside("report", run).stdout


@pytest.mark.parametrize("option", [["--worst", "0"], ["--worst", "2", "--worst-by", "iou:ufo"]])
def test_worst_images_that_cannot_be_are_refused(inside, option):
    done = inside(*SCORE, *option)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "Traceback" not in done.stderr


def test_no_valid_pixels_leave_dashes_and_no_nonsense(inside, tmp_path):
    Image.fromarray(np.full((2, 2), 255, np.uint8)).save(tmp_path / "t.png")
    Image.fromarray(np.zeros((2, 2), np.uint8)).save(tmp_path / "p.png")
    pair = [tmp_path / "t.png", tmp_path / "p.png", "--labels", "2", "--ignore", "255"]
    done = inside("score", *pair, "--worst", "1")
    assert "pixel accuracy     –\n" in done.stdout
    assert ["none", "–"] in [line.split() for line in done.stdout.splitlines()]
    assert "nan" not in inside("explain", *pair).stdout


@pytest.mark.parametrize("option", [["--labels", "99999999999"], ["--examples", "-3"]])
def test_numbers_out_of_reason_are_refused_at_once(inside, option, tmp_path):
    done = inside(*SCORE, *option, "--html", tmp_path / "x.html")
    assert (done.returncode, done.stdout) == (2, "")
    assert "at most 65536" in done.stderr or "expected an integer ≥ 0" in done.stderr


def test_a_slash_asks_for_a_folder_with_all_pictures(inside, tmp_path):
    assert inside(*SCORE, "--html", f"{tmp_path}/new/page/").returncode == 0
    assert (tmp_path / "new" / "page" / "index.html").is_file()
    assert len(list((tmp_path / "new" / "page" / "pictures").iterdir())) == 6
    (tmp_path / "file").touch()
    done = inside(*SCORE, "--html", f"{tmp_path}/file/")
    assert (done.returncode, done.stdout) == (2, "")
    assert f"--html {tmp_path}/file/: expected a folder, got a file" in done.stderr


def test_images_that_are_not_found_are_said(inside, tmp_path):
    (tmp_path / "images").mkdir()
    Image.new("RGB", (8, 8)).save(tmp_path / "images" / "elsewhere.png")
    page = ["--html", tmp_path / "page.html", "--images", tmp_path / "images"]
    done = inside(*SCORE, *page)
    assert done.returncode == 0
    assert "photos for 0 of 6 images in" in done.stderr
    assert "--images" not in inside(*SCORE, *page, "--quiet").stderr
    assert "other files there: elsewhere.png" in done.stderr
    assert "Found photos for 0 of 6 images" in done.stderr
    assert "--images" in (tmp_path / "page.html").read_text(encoding="utf-8")
