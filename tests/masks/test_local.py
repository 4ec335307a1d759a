"""Files of this machine, small ones read in one call."""

import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from segiou import MaskError
from segiou.masks import LocalFolder
from segiou.masks.formats.image_files import Scratch, _png
from segiou.runs.image_counts import Stamp

LIMIT = 1 << 18
HOUR = 3600

pytestmark = pytest.mark.skipif(
    not hasattr(_png, "read_small"),
    reason="small files are read by an extension that was not built",
)


@pytest.fixture
def put(tmp_path):
    def put(name, content=b"", age=HOUR):
        path = tmp_path / name
        path.write_bytes(content)
        then = time.time_ns() - age * 10**9
        os.utime(path, ns=(then, then))
        return str(path)

    return put


def read(paths):
    return [LocalFolder(".").read_small(path, Scratch()) for path in paths]


def test_small_files_give_what_reading_gives(put):
    paths = [put("a", b"one"), put("b"), put("ü \udcff", bytes(range(256)) * 64), put("c", b"\0")]
    assert read(paths) == [LocalFolder(".").read(path) for path in paths]
    # Open, because an emulator may give an open file another time than its path.
    with Path(paths[0]).open() as file:
        assert read(paths)[0] == (b"one", Stamp(3, os.fstat(file.fileno()).st_mtime_ns))


def test_what_is_large_new_or_no_file_is_left_to_reading(put, tmp_path):
    at_limit, above = put("most", b"x" * LIMIT), put("more", b"x" * (LIMIT + 1))
    new, tomorrow = put("new", b"x", age=-1), put("tomorrow", b"x", age=-HOUR)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    odd = [tmp_path, tmp_path / "pipe", tmp_path / "loop", tmp_path / "none", "/dev/null", ""]
    assert [found and len(found[0]) for found in read([at_limit, above, new, tomorrow])] == [
        LIMIT,
        None,
        None,
        None,
    ]
    assert read([str(path) for path in odd]) == [None] * len(odd)
    for path in odd:
        with pytest.raises(MaskError):
            LocalFolder(".").read(str(path))


def test_links_are_followed(put, tmp_path):
    (tmp_path / "link").symlink_to(put("a", b"one"))
    assert read([str(tmp_path / "link")])[0][0] == b"one"


def test_a_file_that_may_not_be_read_is_left_to_reading(put):
    if os.getuid() != 0:
        pytest.skip("giving up the rights of root takes root")
    code = """
        import os, sys
        from segiou.masks.formats.image_files import Scratch
        from segiou.masks.sources.folders import LocalFolder
        scratch = Scratch()
        os.setuid(65534)
        found = [LocalFolder(".").read_small(path, scratch) for path in sys.argv[1:]]
        print([one and one[0] for one in found])
    """
    with tempfile.TemporaryDirectory() as folder:  # tmp_path is root's alone
        Path(folder).chmod(0o755)
        paths = [shutil.move(put(name, b"x"), folder) for name in ("open", "secret")]
        Path(paths[1]).chmod(0)
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(code), *paths],
            capture_output=True,
            text=True,
            check=False,
        )
    assert (done.stdout, done.stderr) == ("[b'x', None]\n", "")


@pytest.mark.parametrize("path", [None, 3, {"a": 1}, "a\0b", "\ud800"])
def test_what_no_path_can_be_is_refused(path):
    with pytest.raises((TypeError, ValueError)):
        _png.read_small(path, 0, bytearray())


def test_no_handle_and_no_memory_is_kept(put, tmp_path):
    paths = [put(str(n), b"x" * 1000) for n in range(20)] + [str(tmp_path)]
    handles = Path("/proc/self/fd")
    if not handles.is_dir():
        pytest.skip("needs /proc")
    read(paths)
    before = len(list(handles.iterdir()))
    for _ in range(500):
        read(paths)
    assert len(list(handles.iterdir())) == before


def test_a_file_that_is_replaced_is_given_whole_or_not_at_all(put):
    contents = [bytes([n]) * (1000 + 1000 * n) for n in range(5)]
    path = Path(put("mask", contents[0]))
    going = True

    def replace():
        n = 0
        while going:
            n = (n + 1) % len(contents)
            Path(put("next", contents[n])).replace(path)

    with ThreadPoolExecutor(1) as pool:
        writer = pool.submit(replace)
        found = [read([str(path)])[0] for _ in range(3000)]
        going = False
        writer.result()
    seen = {content for content, _ in filter(None, found)}
    assert seen
    assert seen <= set(contents)
