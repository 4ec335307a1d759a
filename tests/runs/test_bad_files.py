"""Run files that are none: each is refused with its name, and never changed."""

from __future__ import annotations

import os
import pickle
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

import pytest

import segiou
from segiou.runs import RunFileError
from segiou.runs.database import checksum


@pytest.fixture
def made(score, tmp_path):
    """A sound run file and its total."""
    run = score(run=tmp_path / "r.sqlite")
    return tmp_path / "r.sqlite", run.total()


def change(path, *statements):
    connection = sqlite3.connect(path)
    with connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()


def refused(path, score, text):
    """Neither read nor gone on with, and left as it is."""
    before = path.read_bytes()
    for attempt in (lambda: segiou.Run.open(path).total(), lambda: score(run=path)):
        with pytest.raises(RunFileError, match=text) as caught:
            attempt()
        assert str(caught.value).startswith(str(path))
    assert path.read_bytes() == before


def test_what_is_not_sqlite(score, tmp_path):
    for name, content in (("text", b"all my results\n" * 500), ("short", b"SQLite format 3\0")):
        path = tmp_path / name
        path.write_bytes(content)
        refused(path, score, "not SQLite|corrupt")


def test_a_file_of_one_byte_which_sqlite_takes_for_an_empty_one(score, tmp_path):
    (tmp_path / "short").write_bytes(b"x")
    refused(tmp_path / "short", score, "not SQLite")
    (tmp_path / "empty").touch()
    assert len(score(run=tmp_path / "empty")) == 12


def test_sqlite_of_somebody_else(score, tmp_path):
    path = tmp_path / "notes.sqlite"
    change(path, "CREATE TABLE notes (text)", "INSERT INTO notes VALUES ('do not lose me')")
    refused(path, score, "not a segiou run")


def test_a_newer_format(made, score):
    change(made[0], "PRAGMA user_version = 7")
    refused(made[0], score, "run format 7; .* reads format 5; update segiou")


@pytest.mark.parametrize(
    "statement",
    [
        "DROP VIEW cell",
        "ALTER TABLE image ADD COLUMN more",
        "CREATE TRIGGER t AFTER INSERT ON image BEGIN DELETE FROM image; END",
        "DROP TABLE skipped",
        "CREATE VIEW more AS SELECT 1",
        "CREATE INDEX more ON image (pixels)",
        "CREATE TABLE more (x)",
    ],
)
def test_tables_that_are_not_ours(made, score, statement):
    change(made[0], statement)
    refused(made[0], score, "unexpected schema")


def test_an_image_that_is_a_view_without_end_is_never_asked(made, score):
    change(
        made[0],
        "DROP VIEW cell",
        "DROP VIEW class_count",
        "DROP TABLE image",
        "CREATE VIEW image AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n) "
        "SELECT i AS id FROM n",
    )
    refused(made[0], score, "unexpected schema")


@pytest.mark.few(4)
@pytest.mark.parametrize(
    ("statement", "text"),
    [
        ("UPDATE image SET cells = x'0107' WHERE id LIKE '%/00'", "checksum mismatch"),
        ("UPDATE image SET ignored = ignored + 1", "checksum mismatch"),
        ("UPDATE image SET id = 'x' || id", "checksum mismatch"),
        ("UPDATE image SET ignored = 'many'", "checksum mismatch"),
        ("UPDATE image SET pixels = pixels + 1", "checksum mismatch"),
        ("DELETE FROM image WHERE id LIKE '%/00'", "expected 12 images, found 11"),
        ("INSERT INTO skipped VALUES ('', '', 'x', 0)", "expected 0 problems, found 1"),
        ("INSERT INTO missing SELECT * FROM image", "expected 0 missing images, found 12"),
        ("DELETE FROM run WHERE key = 'measures'", "table run: KeyError"),
    ],
)
def test_counts_that_were_changed(made, statement, text):
    change(made[0], statement)
    with pytest.raises(RunFileError, match=text):
        segiou.Run.open(made[0]).total()


@pytest.mark.parametrize(
    "value", ["{}", "[1", "null", '{"labels": 3}', '{"__class__": "os.system"}']
)
def test_options_that_are_none(made, score, value):
    crc = zlib.crc32(f"options\0{value}".encode())
    change(made[0], f"UPDATE run SET value = '{value}', crc = {crc} WHERE key = 'options'")
    with pytest.raises(RunFileError, match="is corrupt"):
        segiou.Run.open(made[0])
    change(made[0], "UPDATE run SET crc = crc + 1 WHERE key = 'options'")
    with pytest.raises(RunFileError, match=r"checksum mismatch in entry 'options'"):
        segiou.Run.open(made[0])


@pytest.mark.parametrize("column", ["truth", "pred", "truth_size", "pred_version"])
def test_files_that_were_changed(made, score, column):
    change(made[0], f"UPDATE image SET {column} = 7 WHERE id LIKE '%/00'")
    assert segiou.Run.open(made[0]).total() == made[1]
    with pytest.raises(RunFileError, match="checksum mismatch in the files of image 'scene0/00'"):
        segiou.Run.open(made[0]).rows()
    with pytest.raises(RunFileError, match="checksum mismatch in the files of image 'scene0/00'"):
        score(run=made[0])


@pytest.mark.parametrize("column", ["id", "truth", "pred", "truth_size", "pred_version"])
@pytest.mark.parametrize("value", [1.5, b"\xff", 7])
@pytest.mark.gate
def test_files_of_wrong_kinds_with_a_right_checksum(made, score, column, value):
    connection = sqlite3.connect(made[0])
    names = [row[1] for row in connection.execute("PRAGMA table_info(image)")]
    row = dict(zip(names, connection.execute("SELECT * FROM image").fetchone(), strict=True))
    old = row["id"]
    row[column] = value
    row["files_crc"] = checksum(*list(row.values())[:7])
    row["crc"] = checksum(row["id"], row["pixels"], row["ignored"], row["cells"])
    with connection:
        connection.execute("DELETE FROM image WHERE id = ?", (old,))
        marks = ", ".join("?" * len(row))
        connection.execute(f"INSERT INTO image VALUES ({marks})", list(row.values()))
    connection.close()
    sound = isinstance(value, bytes) and column in ("id", "truth", "pred")
    if sound or (value == 7 and column in ("truth_size", "pred_version")):
        assert len(segiou.Run.open(made[0]).rows()) == 12
        return
    with pytest.raises(RunFileError, match=r"checksum mismatch"):
        segiou.Run.open(made[0]).rows()
    with pytest.raises(RunFileError, match="checksum mismatch"):
        score(run=made[0])


def test_the_number_of_left_out_pairs_has_a_checksum(score, tmp_path):
    (tmp_path / "pred/scene0/00.png").write_bytes(b"no mask")
    path = tmp_path / "r.sqlite"
    assert score(run=path, on_error="skip").report().left_out == 1
    change(path, "UPDATE skipped SET problem = problem || '.'")
    with pytest.raises(RunFileError, match=r"checksum mismatch in the problem of .*00.png'"):
        segiou.Run.open(path)
    change(path, "DELETE FROM skipped")
    with pytest.raises(RunFileError, match="expected 1 problems, found 0"):
        segiou.Run.open(path)


@pytest.mark.parametrize("key", ["revision", "images", "skipped", "expected", "shards", "name"])
@pytest.mark.parametrize(
    "value", ["null", '"x"', "-1", "1.5", "true", "1e999", "[" * 100_000, "[[1, 2]]", "9" * 30]
)
@pytest.mark.gate
def test_wrong_kinds_with_a_right_checksum(made, score, key, value):
    if (key, value) in {("expected", "null"), ("name", '"x"')}:
        return
    crc = zlib.crc32(f"{key}\0{value}".encode())
    change(made[0], f"UPDATE run SET value = '{value}', crc = {crc} WHERE key = '{key}'")
    refused(made[0], score, "is corrupt")


@pytest.mark.parametrize("old", [b"CREATE TABLE image", b"run_key", b"class_count", b"CREATE VIEW"])
def test_a_schema_that_is_no_text(made, score, old):
    content = made[0].read_bytes()
    at = content.find(old) if old in content else content.find(b"CREATE")
    for offset in (0, len(old) - 1):
        bad = bytearray(content)
        bad[at + offset] = 0xFF
        made[0].write_bytes(bad)
        refused(made[0], score, "is corrupt")


@pytest.mark.parametrize("tries", [40, pytest.param(150, marks=pytest.mark.gate)])
def test_a_flipped_bit_never_changes_a_number_silently(made, tmp_path, tries):
    path, total = made
    content = path.read_bytes()
    chance = random.Random(1)
    harmless = 0
    for _ in range(tries):
        at = chance.randrange(8 * len(content))
        bad = bytearray(content)
        bad[at // 8] ^= 1 << at % 8
        flipped = tmp_path / "flipped.sqlite"
        flipped.write_bytes(bad)
        try:
            found = segiou.Run.open(flipped).total()
        except RunFileError as error:
            assert str(error).startswith(str(flipped))
        else:
            harmless += 1
            assert found == total
    assert 0 < harmless < tries


def test_files_that_are_missing_or_no_files(score, tmp_path):
    with pytest.raises(RunFileError, match="does not exist"):
        segiou.Run.open(tmp_path / "none.sqlite")
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(RunFileError, match="is not a regular file"):
            segiou.Run.open(path)
        with pytest.raises(RunFileError, match="is not a regular file"):
            score(run=path)
    with pytest.raises(RunFileError, match="cannot be opened"):
        score(run=tmp_path / "no" / "folder" / "r.sqlite")


def test_the_error_survives_pickling():
    error = pickle.loads(pickle.dumps(RunFileError("a.sqlite", "is odd")))
    assert (error.path, error.problem, str(error)) == ("a.sqlite", "is odd", "a.sqlite: is odd")


@pytest.mark.gate
def test_a_second_process_on_the_same_file_gets_a_clear_error(score, tmp_path):
    path = tmp_path / "r.sqlite"
    code = (
        "import sys, segiou\n"
        "from segiou.runs.run_writing import RunWriter, Header\n"
        "from segiou.labels.class_options import ClassOptions\n"
        "with RunWriter(sys.argv[1], Header(ClassOptions.of(2))):\n"
        "    print('open', flush=True); sys.stdin.read()\n"
    )
    command = [sys.executable, "-c", code, str(path)]
    with subprocess.Popen(command, stdin=-1, stdout=-1) as first:
        assert first.stdout.readline() == b"open\n"
        with pytest.raises(RunFileError, match="another process or thread is writing"):
            score(run=path)
        with pytest.raises(RunFileError, match="another process or thread is writing"):
            segiou.Run.open(path)
        first.kill()
        first.wait()
    # Nobody holds it any more, however the other ended.
    assert len(segiou.Run.open(path)) == 0


def test_a_run_that_grew_since_it_was_opened_says_so(score, tmp_path, write_mask):
    run = score(run=tmp_path / "r.sqlite")
    for side in ("truth", "pred"):
        write_mask(tmp_path / side / "scene0/50.png", [[1]])
    score(run=tmp_path / "r.sqlite")
    # Scoring has summed the pixels already, but not kept the counts of the images.
    with pytest.raises(RunFileError, match="has changed since it was opened"):
        _ = run.counts


WITHOUT_RIGHTS = """
import os, sys, segiou
from segiou.scoring import score_folder
segiou.Run.open(sys.argv[1]).total()
if os.getuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
print(len(segiou.Run.open(sys.argv[1])))
try:
    score_folder(*sys.argv[2:4], labels=["void", "road", "car", "tree"], run=sys.argv[4])
except ValueError as error:
    print(error)
"""


def test_a_finished_run_is_read_where_nothing_can_be_written(made, tmp_path):
    # Root may write anywhere, so a process without its rights has to try; and
    # those above pytest's folders are closed to it.
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "r.sqlite"
        shutil.copy(made[0], path)
        for side in ("truth", "pred"):
            shutil.copytree(tmp_path / side, folder / side)
        folder.chmod(0o555)
        try:
            result = subprocess.run(
                [
                    *(sys.executable, "-c", WITHOUT_RIGHTS),
                    *(str(path), str(folder / "truth"), str(folder / "pred")),
                    str(folder / "new.sqlite"),
                ],
                capture_output=True,
                text=True,
                check=False,
            )
        finally:
            folder.chmod(0o755)
    lines = result.stdout.splitlines()
    assert lines[0] == "12", result.stderr
    assert lines[1].startswith(f"{folder}/new.sqlite: ")
    assert "cannot be opened" in lines[1] or "may not be written" in lines[1]


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="/proc tells what is open")
def test_what_is_refused_is_not_left_open(tmp_path):
    path = tmp_path / "r.sqlite"
    path.write_bytes(b"no SQLite " * 1000)
    with pytest.raises(RunFileError, match="not SQLite") as caught:
        segiou.Run.open(path)
    # The error is still there, and with its traceback everything that was not closed.
    opened = [link.resolve() for link in Path("/proc/self/fd").iterdir()]
    assert caught and path.resolve() not in opened
