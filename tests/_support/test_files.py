"""Files that appear whole, and what is never replaced by one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from segiou._support.files import read_json, write_whole


def test_a_link_is_followed(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write_whole(tmp_path / "link", "x")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "x"


def test_a_pipe_is_written_into_and_stays_a_pipe(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    got = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_text()))
    reader.start()
    write_whole(pipe, "text")
    reader.join(timeout=600)
    assert got == ["text"]
    assert pipe.is_fifo()


def test_a_linked_pipe_is_not_replaced(tmp_path):
    """What /dev/stdout is: a link to what need not be a file."""
    read, write = os.pipe()
    (tmp_path / "out").symlink_to(f"/proc/self/fd/{write}")
    write_whole(tmp_path / "out", "text")
    os.close(write)
    assert os.read(read, 100) == b"text"
    os.close(read)
    assert (tmp_path / "out").is_symlink()


def test_streams_by_name():
    # By the number of the descriptor: safe to run as root, whatever the code does.
    code = (
        "from segiou._support.files import write_whole, _descriptor;"
        "from pathlib import Path;"
        "assert [_descriptor(Path(p)) for p in ('/dev/stdout', '/dev/stderr', '/dev/fd/7', 'a')]"
        " == [1, 2, 7, None];"
        "print('first'); write_whole('/proc/self/fd/1', 'second\\n'); print('third')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("first\nsecond\nthird\n", "")


def test_errors_name_the_file_that_was_asked_for(tmp_path):
    for path in (tmp_path / "no" / "r.json", tmp_path):
        with pytest.raises(OSError) as caught:
            write_whole(path, "x")
        assert caught.value.filename == str(path)
    assert list(Path(tmp_path).iterdir()) == []


def test_a_large_json_file_is_parsed_once_until_it_changes(tmp_path):
    file = tmp_path / "a.json"
    file.write_text(json.dumps(["a" * 70_000]))
    first = read_json(file)
    assert read_json(str(file)) is first
    file.write_text(json.dumps(["b" * 70_000, 1]))
    assert read_json(file)[1] == 1
