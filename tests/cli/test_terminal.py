"""How the command looks on terminals, and what it does where they go away."""

from __future__ import annotations

import json
import os
import pty
import re
import shlex
import subprocess
import sys
import termios
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from command import LABELS, MODELS, SCORE, STREETS, notes, segiou
from PIL import Image

from segiou.cli.console import progress_text


@pytest.mark.parametrize("columns", [24, 40, 60, 80, 120, 200])
def test_no_line_is_wider_than_the_terminal(inside, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    done = inside(*SCORE)
    assert max(map(len, done.stdout.splitlines())) <= columns
    assert "IoU" in done.stdout


@pytest.mark.few(3)
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
        shown = re.sub(r"Hidden\s+columns\s.*?(\n\n|\Z)", "", done.stdout, flags=re.DOTALL)
        words[columns] = {word for word in shown.split() if not set(word) <= set("─█▏▎▍▌▋▊▉")}
    assert words[40] <= words[80] | words[120]
    assert words[80] <= words[120] | {"boundary", "surface", "Boundary"}


def test_details_are_shown_when_asked_and_explained(inside, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    short, full = inside(*SCORE).stdout, inside(*SCORE, "--detail").stdout
    for name in ("mean accuracy", "class-wise mean IoU (C)", "worst 10 % of images"):
        assert name in full and name not in short
    assert "image-wise mean IoU (I)" in full
    report = json.loads(inside(*SCORE, "--format", "json").stdout)
    assert f"{100 * report['fine_grained']['image']:.2f} %" in full
    assert report["mean_accuracy"] > 0


@pytest.mark.parametrize(
    ("options", "unused"),
    [
        (["--resamples", "20"], ["--resamples"]),
        (["--resamples", "20", "--seed", "1"], ["--resamples", "--seed"]),
        (["--resamples", "20", "--seed", "1", "--method", "bca"], []),
        (["--resamples", "20", "--quiet"], []),
    ],
)
def test_options_of_the_bootstrap_are_reported_where_nothing_is_resampled(inside, options, unused):
    done = inside(*SCORE, "--intervals", *options)
    notes = [f"segiou: {one} has no effect without --method percentile or bca" for one in unused]
    assert [line for line in done.stderr.splitlines() if "no effect" in line] == notes
    assert done.returncode == 0


def test_the_gap_is_split_where_pixel_accuracy_stands(inside, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    line = next(x for x in inside(*SCORE).stdout.splitlines() if x.startswith("pixel accuracy"))
    gap, imbalance, false_positives = re.findall(r"(\d+\.\d\d) (?:points|from)", line)
    assert float(gap) == pytest.approx(float(imbalance) + float(false_positives), abs=0.011)


@pytest.mark.gate
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


@pytest.mark.gate
def test_a_terminal_shows_pages_of_help_at_its_width():
    shown = re.sub(r"\x1b\[[\d;]*m", "", on_terminal("help", "imbalance", columns=60))
    # Code is not broken, so that it can be copied, and is indented by one blank.
    assert max(len(line) for line in shown.splitlines() if line[:1] != " ") <= 60
    assert "**" not in shown
    assert "Pixel accuracy counts pixels" in " ".join(shown.split())
    assert "see Confidence intervals (segiou help intervals)." in " ".join(shown.split())


@pytest.mark.gate
def test_commands_on_pages_of_help_can_be_copied():
    shown = re.sub(r"\x1b\[[\d;]*m", "", on_terminal("help", "change", columns=60))
    labels = '"no change,water,forest,building"'
    command = f" segiou score truth/ predictions/ --labels {labels} --change --group-by '[^/]+$'"
    assert command in shown.splitlines()
    assert max(len(line) for line in shown.splitlines() if line[:1] != " ") <= 60


@pytest.mark.gate
def test_pages_of_help_have_no_directives_of_the_site():
    first, terms = (on_terminal("help", page, columns=80) for page in ("first-folder", "glossary"))
    assert "literalinclude" not in first and ":language:" not in first
    assert "fixtures/streets/labels.toml" in first
    assert "absent class: A class in neither" in re.sub(r"\x1b\[[\d;]*m", "", terms)


@pytest.mark.gate
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
        pytest.param(["score", "a", "b", "--labels", "voc"], marks=pytest.mark.gate),
        pytest.param(["score", "a", "b", "--lables", "3"], marks=pytest.mark.gate),
        pytest.param(
            ["labelsets", "a-folder-of-a-very-long-name/and-another-one-of-a-very-long-name.toml"],
            marks=pytest.mark.gate,
        ),
    ],
    ids=lambda command: command[-1],
)
def test_errors_are_broken_at_words(inside, command):
    shown = on_terminal(*command, columns=40)
    plain = inside(*command).stderr
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
    assert shown(speed=35.4, time_remaining=5.0) == "12 of 174 pairs, 35 per second, 5 s left"
    assert shown(speed=1.26, time_remaining=128) == (
        "12 of 174 pairs, 1.3 per second, 2 min 8 s left"
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

    @contextmanager
    def bar(what, quiet):
        yield (lambda done, total: found.append((done, total))), (lambda p: found.append(p.where))

    monkeypatch.setattr("segiou.cli.inputs.progress_bar", bar)
    inside("score", tmp_path / "truth", tmp_path / "pred", "--labels", "2", "--on-error", "skip")
    assert found[0] == (0, 3)
    assert set(found[1:]) == {(1, 3), (2, 3), (3, 3), str(tmp_path / "pred" / "b.png")}


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
        ("merge", "RUN_FILE"),
    ],
)
def test_output_has_the_same_letter_everywhere(inside, command, value):
    full = inside(command, "--help-all")
    assert f"  -o, --output {value} " in full.stdout


def test_help_keeps_the_capitals_of_names(inside):
    assert "print one as TOML." in inside("labelsets", "--help").stdout
    assert "intervals and tests" in inside("compare", "--help").stdout


@pytest.mark.needs("measures.surfaces")
@pytest.mark.gate
def test_an_ascii_terminal_still_gets_its_table():
    command = ["score", STREETS / "truth", STREETS / "model_a", *LABELS, "--surface", "segiou"]
    done = segiou(*command, env={"PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0
    assert re.search("^sky +9", done.stdout, re.MULTILINE)
    assert "----------" in done.stdout
    assert "########" in done.stdout
    assert "?" not in done.stdout
    rows = [line for line in done.stdout.splitlines() if line.startswith(("sky ", "pole "))]
    sky, pole = rows[2:4]
    assert "inf" in pole.split()
    assert len(sky) == len(pole)


def test_no_line_breaks_before_a_per_cent_sign(inside, monkeypatch):
    for columns in (37, 61, 80):
        monkeypatch.setenv("COLUMNS", str(columns))
        done = inside("explain", STREETS / "truth", STREETS / "model_a", *LABELS)
        assert not [line for line in done.stdout.splitlines() if line.startswith("%")]
        assert "\N{NO-BREAK SPACE}" not in done.stdout


@pytest.mark.gate
def test_a_reader_that_goes_away_does_not_pass_the_threshold(tmp_path):
    command = [sys.executable, "-m", "segiou", *SCORE, "--fail-under", "miou=1"]
    files = ["--per-image", tmp_path / "i.csv"]
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write) as closed:
        done = subprocess.run([*command, *files], stdout=closed, stderr=closed)
    assert done.returncode == 1
    assert len((tmp_path / "i.csv").read_text().splitlines()) == 7


# One of a command's many ways to print is enough by default.
SCORED = pytest.param(shlex.join(SCORE), marks=pytest.mark.gate, id="score")
HELP, VERSION = (pytest.param(option, marks=pytest.mark.gate) for option in ("--help", "--version"))
LABELSET = pytest.param("labelsets ade20k", marks=pytest.mark.gate)


@pytest.mark.parametrize("command", ["labelsets ade20k", HELP])
@pytest.mark.gate
def test_a_reader_that_goes_away_is_no_error(command):
    done = in_shell(f"{command} | head -1; exit ${{PIPESTATUS[0]}}")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.gate
def test_a_reader_of_a_named_stdout_may_go_away_too():
    score = shlex.join(SCORE)
    done = in_shell(f"{score} --output - | head -1; exit ${{PIPESTATUS[0]}}")
    assert (done.returncode, done.stdout, done.stderr) == (0, "model_b\n", "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("command", ["--help", VERSION, LABELSET, SCORED])
def test_a_full_disk_is_said_once(command):
    done = in_shell(f"{command} > /dev/full")
    assert (done.returncode, done.stderr) == (
        3,
        "segiou: stdout: No space left on device; free some space, or write elsewhere\n",
    )


@pytest.mark.parametrize("command", ["labelsets", HELP, SCORED])
@pytest.mark.gate
def test_a_closed_stdout_is_said(command):
    done = in_shell(f"{command} >&-")
    assert (done.returncode, done.stderr) == (3, "segiou: stdout: is closed\n")


@pytest.mark.gate
def test_stdout_may_be_closed_where_nothing_is_written_to_it(tmp_path):
    done = in_shell(f"{shlex.join(SCORE)} --output {tmp_path}/r.json >&-")
    assert (done.returncode, notes(done.stderr)) == (0, f"segiou: wrote {tmp_path}/r.json\n")
    assert json.loads((tmp_path / "r.json").read_text())["pairs"] == 6


@pytest.mark.gate
def test_notes_never_go_where_data_go():
    done = in_shell(f"{shlex.join(SCORE)} --format json --fail-under miou=1 2>&-")
    assert done.returncode == 1
    assert json.loads(done.stdout)["pairs"] == 6


def in_shell(command: str) -> subprocess.CompletedProcess:
    full = f"{shlex.quote(sys.executable)} -m segiou {command}"
    return subprocess.run(["bash", "-c", full], capture_output=True, text=True, encoding="utf-8")
