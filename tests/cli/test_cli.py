"""The command as a user runs it: in a process of its own."""

from __future__ import annotations

import csv
import io
import json
import os
import pty
import re
import shlex
import shutil
import subprocess
import sys
import termios
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

from segiou.analysis.comparing import compare
from segiou.cli.console import Progress, progress_text
from segiou.cli.main import main
from segiou.runs.run import Run

FIXTURES = Path(__file__).parents[2] / "fixtures"
STREETS = FIXTURES / "streets"
LABELS = ["--labels", str(STREETS / "labels.toml")]
SCORE = ["score", str(STREETS / "truth"), str(STREETS / "model_b"), *LABELS]
MODELS = [str(STREETS / "model_a"), str(STREETS / "model_b")]


def segiou(*arguments: str, columns: int | None = None, **options) -> subprocess.CompletedProcess:
    environment = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "NO_COLOR")}
    environment["PYTHONIOENCODING"] = "utf-8"
    if columns:
        environment["COLUMNS"] = str(columns)
    return subprocess.run(
        [sys.executable, "-m", "segiou", *map(str, arguments)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env=environment | options.pop("env", {}),
        **options,
    )


@pytest.fixture
def inside(capsys):
    """Run the command in this process, which is faster; for what needs no process of its own."""

    def run(*arguments) -> SimpleNamespace:
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as ended:
            code = ended.code
        found = capsys.readouterr()
        return SimpleNamespace(returncode=code, stdout=found.out, stderr=found.err)

    return run


def test_score_prints_a_table_and_nothing_else():
    done = segiou(*SCORE)
    assert (done.returncode, done.stderr) == (0, "")
    for part in (
        "mean IoU",
        "over 10 of 10 classes",
        "majority baseline",
        "protocol segiou: counts summed over the data set",
        "6 pairs,",
        "bicycle",
        "group",
    ):
        assert part in done.stdout
    assert "\x1b" not in done.stdout


@pytest.mark.parametrize("columns", [24, 40, 60, 80, 120, 200])
def test_no_line_is_wider_than_the_terminal(columns):
    done = segiou(*SCORE, columns=columns)
    assert max(map(len, done.stdout.splitlines())) <= columns
    assert "IoU" in done.stdout


@pytest.mark.parametrize(
    "command",
    [
        [*SCORE, "--detail", "--boundary", "--worst", "2", "--intervals", "--resamples", "20"],
        ["explain", *SCORE[1:]],
        ["compare", *MODELS, "--truth", SCORE[1], *LABELS, "--resamples", "20"],
        ["inspect", SCORE[1]],
        ["labelsets"],
        ["--help"],
        ["score", "--help-all"],
    ],
    ids=lambda command: " ".join(command[-2:])[-20:],
)
def test_every_command_fits_the_terminal_and_breaks_no_word(inside, monkeypatch, command):
    words = {}
    for columns in (40, 80, 120):
        monkeypatch.setenv("COLUMNS", str(columns))
        done = inside(*command)
        assert done.returncode == 0, done.stderr
        assert max(map(len, done.stdout.splitlines())) <= columns
        words[columns] = {word for word in done.stdout.split() if not set(word) <= set("─█▏▎▍▌▋▊▉")}
    assert words[40] <= words[80] | words[120]
    assert words[80] <= words[120] | {"boundary", "surface", "Boundary"}


def test_details_are_shown_when_asked_and_explained(inside):
    short, full = inside(*SCORE).stdout, inside(*SCORE, "--detail").stdout
    for name in ("mean accuracy", "mean over images per class", "worst 10 % of images"):
        assert name in full and name not in short
    assert "I: mean IoU of each image over the classes in its truth" in full
    report = json.loads(inside(*SCORE, "--format", "json").stdout)
    assert f"{100 * report['fine_grained']['image']:.2f} %" in full
    assert report["mean_accuracy"] > 0


def test_the_gap_is_split_where_pixel_accuracy_stands(inside):
    line = next(x for x in inside(*SCORE).stdout.splitlines() if x.startswith("pixel accuracy"))
    gap, imbalance, false_positives = re.findall(r"(\d+\.\d\d) (?:points|by)", line)
    assert float(gap) == pytest.approx(float(imbalance) + float(false_positives), abs=0.011)


def test_colours_where_a_person_looks_and_nowhere_else(inside, monkeypatch):
    compared = ["compare", *MODELS, "--truth", SCORE[1], *LABELS, "--resamples", "20"]
    for command in (SCORE, compared, ["explain", *SCORE[1:]], ["inspect", SCORE[1]], ["--help"]):
        monkeypatch.setenv("FORCE_COLOR", "1")
        monkeypatch.delenv("NO_COLOR", raising=False)
        monkeypatch.setenv("TERM", "xterm")
        colored = inside(*command).stdout
        assert "\x1b[" in colored
        monkeypatch.setenv("NO_COLOR", "1")
        plain = inside(*command).stdout
        assert "\x1b" not in plain
        assert re.sub("\x1b\\[[0-9;]*m", "", colored) == plain


def test_json_is_strict_and_complete():
    done = segiou(*SCORE, "--format", "json")
    report = json.loads(done.stdout, parse_constant=lambda name: pytest.fail(name))
    expected = json.loads((STREETS / "expected.json").read_text())["preds"]["model_b"]["total"]
    assert report["matrix"] == expected["matrix"]
    assert report["ignored"] == expected["ignored"]
    assert report["protocol"] == "segiou"
    assert {"name", "iou", "dice", "precision", "recall", "tp", "fp", "fn", "share"} == set(
        report["classes"][0]
    )
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
    for ending, start in ((".json", "{"), (".csv", "name,"), (".md", "**Mean"), (".txt", "")):
        path = tmp_path / f"report{ending}"
        done = inside(*SCORE, "--output", path)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        assert path.read_text().startswith(start)
        assert path.stat().st_mode & 0o600 == 0o600
    done = inside(*SCORE, "--output", tmp_path / "report.xyz")
    assert done.returncode == 2
    assert "'.xyz' means no format" in done.stderr
    assert [p.suffix for p in sorted(tmp_path.iterdir())] == [".csv", ".json", ".md", ".txt"]


def test_a_hyphen_is_stdout(tmp_path):
    done = segiou(*SCORE, "--output", "table.txt", "--per-image", "-", cwd=tmp_path)
    assert done.returncode == 0
    assert next(row["id"] for row in csv.DictReader(io.StringIO(done.stdout))) == "north_0001"
    assert [path.name for path in tmp_path.iterdir()] == ["table.txt"]


def test_per_image_rows(inside, tmp_path):
    inside(*SCORE, "--per-image", tmp_path / "images.csv")
    rows = list(csv.DictReader(io.StringIO((tmp_path / "images.csv").read_text())))
    assert len(rows) == 6
    assert rows[0]["id"] == "north_0001"
    assert 0 < float(rows[0]["iou:sky"]) <= 1


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
        ("speed=3", 2, "write NAME=VALUE with a name of miou"),
        ("miou=70", 2, "no score is above 1; for 70 % write 0.7"),
        ("boundary_iou=0.5", 2, "boundaries are not measured; score with --boundary"),
        ("miou=nan", 2, "'nan' is not a number"),
        ("miou=high", 2, "'high' is not a number"),
        ("iou:unicorn=0", 2, "no such class"),
    ],
)
def test_thresholds(inside, threshold, code, said):
    done = inside(*SCORE, "--fail-under", threshold)
    assert done.returncode == code
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_outcomes_of_thresholds_are_written(tmp_path):
    asked = ["--fail-under", "miou=0.5", "--fail-under", "iou:pole=0.99"]
    done = segiou(*SCORE, *asked, "--format", "json", "--junit", tmp_path / "j.xml")
    assert done.returncode == 1
    report = json.loads(done.stdout)
    pole = report["classes"][[c["name"] for c in report["classes"]].index("pole")]
    assert report["thresholds"] == [
        {"name": "mean_iou", "value": report["mean_iou"], "at_least": 0.5, "passed": True},
        {"name": "iou:pole", "value": pole["iou"], "at_least": 0.99, "passed": False},
    ]
    (suite,) = ElementTree.parse(tmp_path / "j.xml").getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    assert [case.get("name") for case in suite] == ["mean_iou >= 0.5", "iou:pole >= 0.99"]
    assert [len(case) for case in suite] == [0, 1]
    assert "iou:pole is 48" in suite[1][0].get("message")


def test_junit_without_a_threshold_is_refused(tmp_path):
    done = segiou(*SCORE, "--junit", tmp_path / "j.xml")
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
    assert "threshold failed: mean IoU is worse than the baseline's: -16.73 points" in done.stderr
    report = json.loads(done.stdout)
    change = report["baseline"]["pairs"][0]["overall"]
    expected = compare(Run.open(better), Run.open(worse)).pairs[0].overall
    assert (change["low"], change["high"]) == (expected.low, expected.high)
    assert expected.high < 0
    assert report["baseline"]["run"] == str(better)
    assert report["thresholds"] == [
        {"name": "mean_iou:change", "value": expected.high, "at_least": 0.0, "passed": False}
    ]
    (suite,) = ElementTree.parse(tmp_path / "j.xml").getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("1", "1")
    table = inside("report", worse, *asked[:3]).stdout
    assert "the baseline is 16.73 points of mean IoU ahead of this run" in table


@pytest.mark.parametrize("run", ["model_b", "model_a"])
def test_a_run_that_is_not_worse_passes(inside, kept, run):
    asked = ["--baseline", kept / "model_a.sqlite", "--fail-if-worse", "--format", "markdown"]
    done = inside("report", kept / f"{run}.sqlite", *asked, "--fail-under", "miou=0.5")
    assert (done.returncode, done.stderr) == (0, "")
    assert "| mean_iou is " in done.stdout and done.stdout.count("| passed |") == 2
    assert "not shown to be worse" in done.stdout
    assert "| mean IoU | 52.77 % |" in done.stdout
    assert "<details><summary>All scores of the classes</summary>\n\n| class |" in done.stdout
    assert ("| pole | 0.00 % | 48" in done.stdout) == (run == "model_b")


def test_where_there_is_no_interval_nothing_is_decided_and_the_build_fails(inside, kept):
    asked = ["--baseline", kept / "model_a.sqlite", "--fail-if-worse", "--group-by", "^[a-z]+"]
    done = inside("report", kept / "model_b.sqlite", *asked)
    assert done.returncode == 1
    assert "the change of mean IoU has no interval over 2 groups, so nothing" in done.stderr


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (["--fail-if-worse"], 2, "--fail-if-worse has no effect without --baseline"),
        (["--baseline", "no.sqlite"], 3, "no.sqlite"),
        (["--baseline", "."], 2, "--baseline .: is a folder; name a run file"),
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


def test_every_problem_is_listed_without_a_traceback():
    partners = FIXTURES / "hostile" / "partners"
    done = segiou("score", partners / "truth", partners / "pred", "--labels", "3")
    assert (done.returncode, done.stdout) == (3, "")
    for part in ("4 problems", "shares its key", "'one'", "has no prediction", "has no truth"):
        assert part in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ([], 2, "usage: segiou"),
        (["--labels", "3", "score"], 2, "the command comes first, before --labels"),
        (["scor"], 2, "no command 'scor'; did you mean score?; there are score, explain"),
        (["score", "a", "b"], 2, "folders of masks need --labels SET"),
        (["score", "a", "b", "--labels", "camvd"], 2, "no label set 'camvd'"),
        (["score", "a", "b", "--labels", "3"], 3, "a: does not exist"),
        ([*SCORE, "--exclude", "unicorn"], 2, "no class 'unicorn'"),
        ([*SCORE, "--protocol", "mine"], 2, "no protocol 'mine'; there are segiou, cityscapes"),
        ([*SCORE, "--workers", "0"], 2, "not a number of at least 1"),
        ([*SCORE, "--key", "("], 2, "no regular expression"),
        (["labelsets", "nope"], 2, "no label set 'nope'"),
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
    assert "left out:" in done.stderr
    assert "1 pair (1 left out), 2 pixels" in done.stdout


def test_ignoring_a_class_is_warned_about(inside):
    done = inside(*SCORE, "--ignore", "sky,road")
    assert done.returncode == 0
    assert "use exclude instead of ignore" in done.stderr
    assert "Warning" not in done.stderr
    assert inside(*SCORE, "--ignore", "sky", "--quiet").stderr == ""
    truth, options = str(STREETS / "truth"), [*LABELS, "--ignore", "sky"]
    for command in (["explain", truth, MODELS[0]], ["compare", *MODELS, "--truth", truth]):
        done = inside(*command, *options)
        assert done.stderr.startswith("segiou: ignored values belong to the declared class 'sky'")
        assert len(done.stderr.splitlines()) == 1
        assert inside(*command, *options, "--quiet").stderr == ""


def test_protocols_are_named(inside):
    done = inside(*SCORE, "--protocol", "monai")
    assert "protocol monai: divided per image" in done.stdout


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


def test_inspect_takes_no_fitting_set_for_certain(tmp_path):
    Image.fromarray(np.uint8([[0, 1, 2]])).save(tmp_path / "a.png")
    shown = segiou("inspect", tmp_path).stdout
    assert "  fits " in shown
    fitting = [line.split()[1] for line in shown.splitlines() if line.startswith("  --labels ")]
    assert fitting[0] == "brats"
    assert {"camvid", "cityscapes-train"} <= set(fitting)
    assert "Equal values mean other classes in each" in shown
    assert "segiou labelsets NAME prints one as TOML" in shown


def test_inspect_names_the_values_of_a_set_of_ones_own(tmp_path):
    Image.fromarray(np.uint8([[0, 7]])).save(tmp_path / "a.png")
    labels = tmp_path / "mine.toml"
    labels.write_text(
        'name = "mine"\nclasses = [{name = "cat", values = [0]}, {name = "dog", values = [7]}]\n'
    )
    shown = segiou("inspect", tmp_path / "a.png", "--labels", labels).stdout
    assert "fits mine" in shown and "dog" in shown
    assert "Equal values" not in shown
    shown = segiou("inspect", tmp_path / "a.png", "--labels", "2").stdout
    assert "fits" not in shown.replace("does not fit", "")
    assert "label set custom does not fit: it does not declare 1 pixel" in shown


def test_inspect_looks_into_archives(tmp_path):
    shutil.make_archive(str(tmp_path / "masks"), "zip", STREETS / "truth")
    found = json.loads(segiou("inspect", tmp_path / "masks.zip", "--format", "json").stdout)
    folder = json.loads(segiou("inspect", STREETS / "truth", "--format", "json").stdout)
    assert {**found, "folder": ""} == {**folder, "folder": ""}


def test_inspect_tells_equal_problems_together(inside, tmp_path):
    for i in range(20):
        (tmp_path / f"{i:02}.png").write_bytes(b"")
    done = inside("inspect", tmp_path)
    assert done.returncode == 3
    assert done.stdout.startswith("unreadable: 20 files: is empty (0 bytes)\n")
    assert done.stdout.endswith("and 17 more\n")
    assert len(json.loads(inside("inspect", tmp_path, "--format", "json").stdout)["problems"]) == 20


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("binary_255.png", "0 and 255 only"),
        ("interpolated.png", "values are rare and scattered"),
        ("lossy.jpg", "JPEG"),
        ("truncated.png", "unreadable"),
        ("unknown_color.png", "#00ff00"),
        ("wrong_size", "2 different sizes"),
    ],
)
def test_inspect_calls_out_what_is_suspicious(inside, name, said):
    done = inside("inspect", FIXTURES / "hostile" / name)
    assert done.returncode == (3 if said == "unreadable" else 0)
    assert said in " ".join(done.stdout.split())


def test_demo_writes_scores_and_shows_its_commands(tmp_path):
    done = segiou("demo", "streets", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    command = "segiou score streets/truth streets/model_a --labels streets/labels.toml"
    assert f"$ {command}" in done.stdout
    again = segiou(*command.split()[1:], cwd=tmp_path)
    assert (
        again.stdout.splitlines()[1:]
        == done.stdout.split(command)[1].splitlines()[3:][: len(again.stdout.splitlines()) - 1]
    )
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").touch()
    refused = segiou("demo", "mine", cwd=tmp_path)
    assert refused.returncode in (2, 3)
    assert "Traceback" not in refused.stderr


def on_terminal(*arguments, columns: int) -> str:
    """What a command shows on a terminal, stdout and stderr together."""
    leader, follower = pty.openpty()
    termios.tcsetwinsize(follower, (24, columns))
    environment = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "NO_COLOR")}
    command = [sys.executable, "-m", "segiou", *map(str, arguments)]
    with subprocess.Popen(
        command, stdout=follower, stderr=follower, env=environment | {"TERM": "xterm-256color"}
    ):
        os.close(follower)
        output = b""
        # The end of a terminal is an error or empty, by system.
        with suppress(OSError):
            while chunk := os.read(leader, 65536):
                output += chunk
    os.close(leader)
    return output.decode().replace("\r\n", "\n")


def test_colours_and_progress_only_where_a_person_looks():
    """A real terminal on stderr and stdout: progress while it works, colours in the table."""
    shown = on_terminal(*SCORE, columns=90)
    assert "scoring" in shown
    assert "of 6 pairs" in shown
    assert "\x1b[3" in shown


@pytest.mark.parametrize(
    "command",
    [
        ["socre"],
        ["score", "a", "b", "--labels", "voc"],
        ["score", "a", "b", "--lables", "3"],
        ["labelsets", "a-folder-of-a-very-long-name/and-another-one-of-a-very-long-name.toml"],
    ],
    ids=lambda command: command[-1],
)
def test_errors_are_broken_at_words(command):
    shown = on_terminal(*command, columns=40)
    plain = segiou(*command).stderr
    assert shown.split() == plain.split()
    lines = shown.splitlines()
    assert all(len(line) <= 40 or " " not in line.strip() for line in lines)
    assert len(lines) > len(plain.splitlines())


def test_progress_says_how_fast_how_long_still_and_how_many_problems():
    def shown(**facts):
        task = {"completed": 12, "total": 174, "speed": None, "time_remaining": None}
        rest = {"finished": False, "fields": {"problems": 0}}
        return progress_text(SimpleNamespace(**(task | rest | facts)), "pairs")

    assert shown() == "12 of 174 pairs"
    assert shown(total=None, completed=0) == "0 of ? pairs"
    assert shown(speed=35.4, time_remaining=5.0) == "12 of 174 pairs, 35 a second, 5 s left"
    assert shown(speed=1.26, time_remaining=128) == (
        "12 of 174 pairs, 1.3 a second, 2 min 8 s left"
    )
    assert shown(time_remaining=7500).endswith(", 2 h 5 min left")
    assert shown(fields={"problems": 1}).endswith(", 1 problem")
    assert shown(fields={"problems": 3}, finished=True, time_remaining=0).endswith("3 problems")


def test_problems_are_counted_while_they_come(tmp_path, monkeypatch, inside):
    for side in ("truth", "pred"):
        (tmp_path / side).mkdir()
        for name in "abc":
            Image.fromarray(np.uint8([[0, 1]])).save(tmp_path / side / f"{name}.png")
    (tmp_path / "pred" / "b.png").write_bytes(b"not an image")
    found = []
    monkeypatch.setattr(Progress, "begin", lambda self, pairs: found.append(len(pairs)))
    monkeypatch.setattr(Progress, "problem", lambda self, problem: found.append(problem.where))
    inside("score", tmp_path / "truth", tmp_path / "pred", "--labels", "2", "--on-error", "skip")
    assert found == [3, str(tmp_path / "pred" / "b.png")]


def options_of(text: str) -> set[str]:
    """The options that a help lists, one a line."""
    return set(re.findall(r"^  (?:-\w(?: \w+)?, )?(--[a-z-]+)", text, re.MULTILINE))


@pytest.mark.parametrize("command", ["score", "compare", "report"])
def test_help_shows_what_matters_and_the_rest_when_asked(inside, command):
    short, full = (inside(command, option) for option in ("--help", "--help-all"))
    assert (short.returncode, full.returncode, short.stderr, full.stderr) == (0, 0, "", "")
    assert len(options_of(short.stdout) - {"--help", "--help-all"}) == 10
    hidden = len(options_of(full.stdout)) - len(options_of(short.stdout))
    assert f"{hidden} more options: segiou {command} --help-all" in short.stdout
    assert "--resamples" in full.stdout and "--resamples" not in short.stdout
    assert "more options" not in full.stdout


@pytest.mark.parametrize(
    ("command", "value"),
    [
        *((name, "FILE") for name in ("score", "explain", "compare", "report", "inspect")),
        *(("explore", "FILE"), ("merge", "RUN_FILE")),
    ],
)
def test_output_has_the_same_letter_everywhere(inside, command, value):
    full = inside(
        command, "--help-all" if command in ("score", "explain", "compare", "report") else "-h"
    )
    # Python 3.13 writes the value once.
    assert re.search(rf"-o( {value})?, --output {value}", full.stdout)


def test_help_keeps_the_capitals_of_names(inside):
    assert "print one as TOML." in inside("labelsets", "--help").stdout
    assert "to try IoU on" in inside("explore", "--help").stdout


def test_an_infinite_distance_is_said_in_ascii_and_in_its_column():
    lines = [
        line
        for line in segiou(
            "score", STREETS / "truth", STREETS / "model_a", *LABELS, "--boundary",
            env={"PYTHONIOENCODING": "ascii"},
        ).stdout.splitlines()
        if line.startswith(("sky ", "pole "))
    ][2:]  # fmt: skip
    assert lines[1].split()[-1] == "inf"
    assert len(lines[0]) == len(lines[1])


def test_no_line_breaks_before_a_per_cent_sign():
    for columns in (37, 61, 80):
        done = segiou("explain", STREETS / "truth", STREETS / "model_a", *LABELS, columns=columns)
        assert not [line for line in done.stdout.splitlines() if line.startswith("%")]
        assert "\N{NO-BREAK SPACE}" not in done.stdout


def test_an_ascii_terminal_still_gets_its_table():
    done = segiou(*SCORE, env={"PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0
    assert re.search("^sky +9", done.stdout, re.MULTILINE)
    assert "----------" in done.stdout
    assert "########" in done.stdout
    assert "?" not in done.stdout


def test_a_reader_that_goes_away_does_not_pass_the_threshold(tmp_path):
    command = [sys.executable, "-m", "segiou", *SCORE, "--fail-under", "miou=1"]
    files = ["--per-image", tmp_path / "i.csv"]
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write) as closed:
        done = subprocess.run([*command, *files], stdout=closed, stderr=closed)
    assert done.returncode == 1
    assert len((tmp_path / "i.csv").read_text().splitlines()) == 7


@pytest.mark.parametrize("command", ["labelsets", "labelsets ade20k", "score --help"])
def test_a_reader_that_goes_away_is_no_error(command):
    done = in_shell(f"{command} | head -1; exit ${{PIPESTATUS[0]}}")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_reader_of_a_named_stdout_may_go_away_too():
    score = shlex.join(SCORE)
    done = in_shell(f"{score} --output - | head -1; exit ${{PIPESTATUS[0]}}")
    assert (done.returncode, done.stdout, done.stderr) == (0, "model_b\n", "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("command", ["labelsets ade20k", "--help", "--version", shlex.join(SCORE)])
def test_a_full_disk_is_said_once(command):
    done = in_shell(f"{command} > /dev/full")
    assert (done.returncode, done.stderr) == (3, "segiou: stdout: No space left on device\n")


@pytest.mark.parametrize("command", ["labelsets", "--help", shlex.join(SCORE)])
def test_a_closed_stdout_is_said(command):
    done = in_shell(f"{command} >&-")
    assert (done.returncode, done.stderr) == (3, "segiou: stdout: is closed\n")


def test_stdout_may_be_closed_where_nothing_is_written_to_it(tmp_path):
    done = in_shell(f"{shlex.join(SCORE)} --output {tmp_path}/r.json >&-")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads((tmp_path / "r.json").read_text())["pairs"] == 6


def test_notes_never_go_where_data_go():
    done = in_shell(f"{shlex.join(SCORE)} --format json --fail-under miou=1 2>&-")
    assert done.returncode == 1
    assert json.loads(done.stdout)["pairs"] == 6


def in_shell(command: str) -> subprocess.CompletedProcess:
    full = f"{shlex.quote(sys.executable)} -m segiou {command}"
    return subprocess.run(["bash", "-c", full], capture_output=True, text=True, encoding="utf-8")


def test_help_and_version():
    assert "Exit codes" in segiou("--help").stdout
    assert segiou("--version").stdout.startswith("segiou ")
    for command in ("score", "inspect", "labelsets", "demo"):
        assert "usage: segiou" in segiou(command, "--help").stdout


def test_explore_writes_its_page(tmp_path):
    done = segiou("explore", "--output", tmp_path / "iou.html", "--no-open")
    assert (done.returncode, done.stdout.strip()) == (0, str(tmp_path / "iou.html"))
    assert (tmp_path / "iou.html").read_text().startswith("<!doctype html>")


def test_explain_says_what_accuracy_hides():
    done = segiou("explain", str(STREETS / "truth"), MODELS[0], *LABELS)
    assert (done.returncode, done.stderr) == (0, "")
    assert "never predicts pole, sign, person and bicycle" in " ".join(done.stdout.split())
    found = json.loads(
        segiou("explain", str(STREETS / "truth"), MODELS[0], *LABELS, "--format", "json").stdout
    )
    parts = sum(row["gap_part"] for row in found["classes"])
    assert parts == pytest.approx(found["gap"])
    assert found["gap"] == pytest.approx(found["pixel_accuracy"] - found["mean_iou"])


def test_compare_folders_and_runs_alike(tmp_path):
    now = segiou("compare", *MODELS, "--truth", STREETS / "truth", *LABELS, "--names", "a,b")
    assert now.returncode == 0, now.stderr
    assert "b is " in now.stdout and "points of mean IoU ahead of a" in now.stdout
    runs = []
    for model in MODELS:
        runs.append(tmp_path / f"{Path(model).name}.sqlite")
        segiou("score", STREETS / "truth", model, *LABELS, "--run", runs[-1], "--quiet")
    kept = segiou("compare", *runs, "--names", "a,b")
    assert kept.stdout == now.stdout
    found = json.loads(segiou("compare", *runs, "--format", "json", "--group-by", "^[^_]+").stdout)
    assert found["unit"] == "group"
    assert found["units"] == 2
    table = tmp_path / "drives.csv"
    table.write_text(
        "id,drive\n"
        + "".join(f"{s}_000{i},{s}\n" for s in ("north", "south") for i in range(1, 10))
    )
    by_table = segiou("compare", *runs, "--format", "json", "--group-by", f"{table}:drive")
    assert json.loads(by_table.stdout) == found
    by_blocks = segiou("compare", *runs, "--format", "json", "--blocks", "2")
    blocks = json.loads(by_blocks.stdout)
    assert (blocks["unit"], blocks["units"], blocks["block_length"]) == ("block", 4, 2.0)
    assert blocks["dependence"]["sequences"] == {"north": 3, "south": 3}
    stated = segiou("compare", *runs, "--names", "a,b", "--group-by", "none")
    assert stated.stdout == kept.stdout
    no_column = segiou("compare", *runs, "--group-by", f"{table}:city")
    assert no_column.returncode == 2
    assert "has no column 'city'; its columns are id, drive" in no_column.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["compare", MODELS[0]], "needs two or more models"),
        (["compare", *MODELS, "--truth", str(STREETS / "truth")], "need --labels SET"),
        (["explain", "a", "b", "c"], "got 3 paths"),
    ],
)
def test_explain_and_compare_say_what_they_need(arguments, said):
    done = segiou(*arguments)
    assert done.returncode == 2
    assert said in done.stderr


def test_the_worst_images_are_listed_on_request(tmp_path):
    run = tmp_path / "r.sqlite"
    done = segiou(*SCORE, "--run", run, "--worst", "2", "--worst-by", "iou:pole")
    assert "worst images" in done.stdout
    again = segiou("report", run, "--worst", "2", "--worst-by", "iou:pole", "--format", "json")
    worst = json.loads(again.stdout)["worst_images"]
    assert worst["by"] == "iou:pole"
    values = [row["iou:pole"] for row in worst["rows"]]
    assert len(values) == 2
    assert values == sorted(values)
    assert worst["rows"][0]["id"] in done.stdout
    assert "worst images" not in segiou("report", run).stdout


@pytest.mark.parametrize("option", [["--worst", "0"], ["--worst", "2", "--worst-by", "iou:ufo"]])
def test_worst_images_that_cannot_be_are_refused(option):
    done = segiou(*SCORE, *option)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "Traceback" not in done.stderr


def test_no_valid_pixels_leave_dashes_and_no_nonsense(tmp_path):
    Image.fromarray(np.full((2, 2), 255, np.uint8)).save(tmp_path / "t.png")
    Image.fromarray(np.zeros((2, 2), np.uint8)).save(tmp_path / "p.png")
    pair = [tmp_path / "t.png", tmp_path / "p.png", "--labels", "2", "--ignore", "255"]
    done = segiou("score", *pair, "--worst", "1")
    assert "pixel accuracy     –\n" in done.stdout
    assert "\nnone                 –\n" in done.stdout
    assert "nan" not in segiou("explain", *pair).stdout


@pytest.mark.parametrize("option", [["--labels", "99999999999"], ["--examples", "-3"]])
def test_numbers_out_of_reason_are_refused_at_once(inside, option, tmp_path):
    done = inside(*SCORE, *option, "--html", tmp_path / "x.html")
    assert (done.returncode, done.stdout) == (2, "")
    assert "at most 65536" in done.stderr or "is not a number of at least 0" in done.stderr


def test_a_slash_asks_for_a_folder_with_all_pictures(inside, tmp_path):
    assert inside(*SCORE, "--html", f"{tmp_path}/new/page/").returncode == 0
    assert (tmp_path / "new" / "page" / "index.html").is_file()
    assert len(list((tmp_path / "new" / "page" / "pictures").iterdir())) == 6
    (tmp_path / "file").touch()
    done = inside(*SCORE, "--html", f"{tmp_path}/file/")
    assert (done.returncode, done.stdout) == (2, "")
    assert f"--html {tmp_path}/file/: is a file; name a folder" in done.stderr


def test_images_that_are_not_found_are_said(tmp_path):
    (tmp_path / "images").mkdir()
    Image.new("RGB", (8, 8)).save(tmp_path / "images" / "elsewhere.png")
    page = ["--html", tmp_path / "page.html", "--images", tmp_path / "images"]
    done = segiou(*SCORE, *page)
    assert done.returncode == 0
    assert "--images: 0 of 6 images have a file in" in done.stderr
    assert "other files there: elsewhere.png" in done.stderr
    assert "has its id as name" in done.stderr
    assert "--images" in (tmp_path / "page.html").read_text(encoding="utf-8")
