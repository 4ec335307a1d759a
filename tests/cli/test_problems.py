"""What the command says about many bad files, odd names and parts without pairs."""

from __future__ import annotations

import csv
import json
import os
import re
from pathlib import Path

import pytest
from mask_files import write_mask

from segiou.cli.main import main

STREETS = Path(__file__).parents[2] / "fixtures" / "streets"


@pytest.fixture
def many(tmp_path):
    """Thirty pairs whose truth has the undeclared value 9, and one good pair."""
    for i in range(30):
        write_mask(tmp_path / "truth" / f"{i:02}.png", [[0, 1, 9]])
        write_mask(tmp_path / "pred" / f"{i:02}.png", [[0, 1, 1]])
    for side in ("truth", "pred"):
        write_mask(tmp_path / side / "good.png", [[0, 1]])
    return ["score", str(tmp_path / "truth"), str(tmp_path / "pred"), "--labels", "2"]


def test_equal_problems_are_told_together(many, capsys):
    assert main(many) == 3
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("segiou: 30 files in ")
    assert "truth have undeclared values: 9; add them" in lines[0]
    assert "--ignore 9; if all values from 1 on are one class" in lines[0]
    assert lines[1] == "  00.png, 01.png, 02.png and 27 more"
    assert lines[2].startswith("Full list: --problems FILE")
    assert len(lines) == 3


@pytest.mark.parametrize("on_error", ["stop", "skip"])
def test_all_of_them_go_into_a_file(many, capsys, tmp_path, on_error):
    path = tmp_path / "problems.csv"
    assert main([*many, "--on-error", on_error, "--problems", str(path)]) == 3
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [Path(row["file"]).name for row in rows] == [f"{i:02}.png" for i in range(30)]
    assert {row["problem"][-10:] for row in rows} == {"9 [9: 1 px]"[-10:]}


def test_left_out_pairs_are_told_together_from_a_run_file_too(many, capsys, tmp_path):
    run = str(tmp_path / "r.sqlite")
    assert main([*many, "--on-error", "skip", "--run", run]) == 3
    *said, written = capsys.readouterr().err.splitlines()
    assert said[0] == "segiou: skipped:"
    assert "truth have undeclared values: 9;" in said[1]
    assert written == f"segiou: wrote {run}"
    main(["report", run])
    # Values are stored as text only.
    assert capsys.readouterr().err.splitlines() == said


def test_json_lists_skipped_pairs_even_if_quiet(many, capsys):
    assert main([*many, "--on-error", "skip", "--format", "json", "--quiet"]) == 3
    out, err = capsys.readouterr()
    found = json.loads(out)["problems"]
    assert [Path(problem["file"]).name for problem in found] == [f"{i:02}.png" for i in range(30)]
    assert all("undeclared values: 9" in problem["problem"] for problem in found)
    assert err == ""


def test_written_files_are_named_unless_quiet(many, capsys, tmp_path):
    page, table = tmp_path / "report.html", tmp_path / "table.csv"
    command = [*many, "--ignore", "9", "--html", str(page), "--output", str(table)]
    assert main([*command, "-q"]) == 0
    assert capsys.readouterr().err == ""
    assert main(command) == 0
    assert capsys.readouterr().err == f"segiou: wrote {table} and {page}\n"


@pytest.mark.skipif(os.name != "posix", reason="file names are bytes only on POSIX")
@pytest.mark.parametrize(
    "measures",
    [
        [],
        ["--boundary", "--objects"],
        pytest.param(["--surface", "segiou"], marks=pytest.mark.needs("measures.surfaces")),
    ],
)
def test_names_that_are_not_utf8_have_a_page_and_tables(tmp_path, capsys, measures):
    for side in ("truth", "pred"):
        write_mask(tmp_path / side / "a.png", [[0, 1]])
        (tmp_path / side / "a.png").rename(tmp_path / side / os.fsdecode(b"\x1b\xff.png"))
    page, table = tmp_path / "page.html", tmp_path / "table.csv"
    command = ["score", str(tmp_path / "truth"), str(tmp_path / "pred"), "--labels", "2"]
    assert main([*command, *measures, "--html", str(page), "--per-image", str(table)]) == 0
    assert re.search(r"\\x1b\\+udcff", page.read_text(encoding="utf-8"))
    assert "\\x1b\\udcff" in table.read_text(encoding="utf-8")


def test_a_file_without_problems_says_so(capsys, tmp_path):
    write_mask(tmp_path / "t.png", [[0, 1]])
    write_mask(tmp_path / "p.png", [[0, 1]])
    pair = [str(tmp_path / "t.png"), str(tmp_path / "p.png"), "--labels", "2"]
    assert main(["score", *pair, "--problems", str(tmp_path / "x.csv")]) == 0
    assert (tmp_path / "x.csv").read_text() == "file,problem\n"


def test_names_cannot_break_lines_or_move_the_cursor(capsys, tmp_path):
    name = "a\nb\x1b[2J.png"
    write_mask(tmp_path / "truth" / name, [[0, 9]])
    write_mask(tmp_path / "pred" / name, [[0, 1]])
    command = ["score", str(tmp_path / "truth"), str(tmp_path / "pred"), "--labels", "2"]
    assert main(command) == 3
    said = capsys.readouterr().err
    assert len(said.splitlines()) == 1
    assert r"truth/a\nb\x1b[2J.png: has undeclared values" in said
    assert main([*command, "--ignore", "9", "--worst", "1"]) == 0
    shown = capsys.readouterr().out
    assert r"a\nb\x1b[2J " in shown
    assert "\x1b" not in shown


EVIL = r"""
name = "e\u001b[2Jvil"
classes = [
  {name = "a\u001b[2J", values = [0]},
  {name = "c\u0008\u202ed", values = [1]},
  {name = "e\rf", values = [2]},
]
[groups]
"g\u001b[1m" = ["a\u001b[2J", "e\rf"]
"""


@pytest.mark.usefixtures("one_scene")
@pytest.mark.parametrize(
    "command",
    [
        ["score", "truth", "pred", "--labels", "evil.toml", "--boundary"],
        ["score", "truth", "pred", "--labels", "2"],
        ["report", "run", "--worst", "2"],
        ["report", "run", "--worst", "2", "--format", "markdown"],
        ["report", "run", "--intervals", "--resamples", "20"],
        ["report", "run", "--fail-under", "iou:a=1"],
        ["report", "run", "--fail-under", "iou:a\x1b[2J=1"],
        ["explain", "run"],
        ["compare", "run", "run", "--resamples", "20"],
        ["inspect", "truth", "--labels", "evil.toml"],
        ["labelsets", "evil.toml"],
        pytest.param(["demo", "de\x1b[2Jmo"], marks=pytest.mark.needs("demo")),
    ],
)
@pytest.mark.gate
def test_names_of_classes_and_paths_cannot_move_the_cursor(capsys, tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    Path("evil.toml").write_text(EVIL)
    for side in ("truth", "pred"):
        for i in range(2):
            write_mask(tmp_path / side / f"f\x1b[31m{i}.png", [[0, 1, 2], [i, 1, 0]])
    assert main(["score", "truth", "pred", "--labels", "evil.toml", "--run", "run"]) == 0
    capsys.readouterr()
    main(command)
    found = capsys.readouterr()
    assert found.out + found.err
    for character in "\x1b\b\r\x07":
        assert character not in found.out + found.err


def test_a_part_without_pairs_is_empty_and_merges(capsys, tmp_path):
    for path in (STREETS / "truth").iterdir():  # whose names decide which parts are empty
        write_mask(tmp_path / "truth" / path.name, [[0, 1, 1]])
        write_mask(tmp_path / "pred" / path.name, [[0, 0, 1]])
    command = ["score", str(tmp_path / "truth"), str(tmp_path / "pred"), "--labels", "2"]
    runs, empty = [], 0
    for part in range(1, 9):
        runs.append(str(tmp_path / f"{part}.sqlite"))
        page = str(tmp_path / "page.html")
        shard = ["--shard", f"{part}/8", "--run", runs[-1], "--html", page]
        assert main([*command, *shard, "--output", str(tmp_path / "r.json")]) == 0
        pairs = json.loads((tmp_path / "r.json").read_text())["pairs"]
        said = capsys.readouterr().err
        assert (f"part {part} of 8 has no pairs" in said) == (pairs == 0)
        assert (f"part {part} of 8: {pairs} pair" in said) == (pairs > 0)
        assert "incomplete" not in said and "missing" not in said
        empty += pairs == 0
    assert empty >= 2
    merged = str(tmp_path / "all.sqlite")
    assert main(["merge", *runs, "--output", merged]) == 0
    without = capsys.readouterr().err.partition("without images: ")[2].partition("\n")[0]
    assert without.count(".sqlite") == empty
    assert main(["report", merged, "--format", "json"]) == 0
    whole = json.loads(capsys.readouterr().out)
    assert main([*command, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["matrix"] == whole["matrix"]


def test_names_that_are_no_unicode_come_through(capsys, tmp_path):
    name = os.fsdecode(b"\xff.png")
    try:
        write_mask(tmp_path / "truth" / name, [[0, 1]])
    except OSError:
        pytest.skip("this file system takes Unicode only")
    write_mask(tmp_path / "pred" / name, [[0, 1]])
    (tmp_path / "truth" / os.fsdecode(b"\xfe.png")).write_bytes(b"broken")
    assert main(["inspect", str(tmp_path / "truth"), "--format", "json"]) == 3
    shown = json.loads(capsys.readouterr().out)
    path = tmp_path / "found.json"
    assert main(["inspect", str(tmp_path / "truth"), "--output", str(path)]) == 3
    assert json.loads(path.read_text(encoding="utf-8")) == shown
    assert os.fsencode(shown["problems"][0]["file"]).endswith(b"truth/\xfe.png")
    command = ["score", str(tmp_path / "truth"), str(tmp_path / "pred"), "--labels", "2"]
    command += ["--missing", "skip", "--worst", "1", "--format", "json"]
    assert main([*command, "--html", str(tmp_path / "r.html")]) == 0
    assert json.loads(capsys.readouterr().out)["pairs"] == 1
    assert "\\udcff" in (tmp_path / "r.html").read_text(encoding="utf-8")
