"""No output leaves its folder, follows a link in it, or replaces a foreign file."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from segiou._support.output_folder import OutputFolder

PARTS = st.one_of(
    st.sampled_from(
        ["..", ".", "", "a", "A", "a.png", ".segiou", "~", "C:", "\0", "é", "e\u0301", "\ud800"]
    ),
    st.text(max_size=5),
    st.text(min_size=90, max_size=120),
)
NAMES = st.lists(PARTS, min_size=1, max_size=4).map("/".join) | st.lists(PARTS).map("\\".join)


def files_below(root: Path) -> dict[Path, bytes]:
    return {p: p.read_bytes() for p in root.rglob("*") if p.is_file() and not p.is_symlink()}


@pytest.mark.gate
@given(st.lists(NAMES, max_size=6, unique=True))
def test_every_name_gets_its_own_file_in_the_folder(names):
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary)
        out = OutputFolder(root / "a" / "out")
        written = {}
        for name in names:
            path = out.write(f"{name}.png", name.encode("utf-8", "surrogatepass"))
            written[path] = name.encode("utf-8", "surrogatepass")
        found = files_below(root)
        found.pop(root / "a" / "out" / ".segiou", None)
        assert found == written
        assert all((root / "a" / "out") in path.resolve().parents for path in found)
        assert not any(part.startswith(".") for p in found for part in p.relative_to(root).parts)
        # The same names get the same files again, which are ours.
        again = OutputFolder(root / "a" / "out")
        for path, data in written.items():
            name = data.decode("utf-8", "surrogatepass")
            assert again.write(f"{name}.png", b"new").parent == path.parent


def test_a_name_that_is_a_folder_for_others(tmp_path):
    """As ids may have slashes: ``a.png`` is a file, and a folder for ``a.png/b.png``."""
    for order in ((0, 1, 2), (2, 1, 0)):
        names = ["a.png", "a.png/b.png", "a.png/b.png/c.png"]
        out = OutputFolder(tmp_path / str(order[0]))
        paths = [out.write(names[i], names[i]) for i in order]
        assert [path.read_text() for path in paths] == [names[i] for i in order]


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("place", ["x.png", "sub", ".segiou"])
def test_links_are_not_followed(tmp_path, place, overwrite):
    (tmp_path / "out").mkdir()
    target = tmp_path / ("folder" if place == "sub" else "file")
    target.mkdir() if place == "sub" else target.write_text("precious")
    (tmp_path / "out" / place).symlink_to(target)
    name = "sub/x.png" if place == "sub" else "x.png"
    with pytest.raises(OSError, match=r"link|symbolic"):
        OutputFolder(tmp_path / "out", overwrite=overwrite).write(name, b"1")
    assert [*target.iterdir()] == [] if place == "sub" else target.read_text() == "precious"


def test_dangling_links_are_not_followed(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "x.png").symlink_to(tmp_path / "new")
    with pytest.raises(FileExistsError, match="is a link, which is not followed"):
        OutputFolder(tmp_path / "out", overwrite=True).write("x.png", b"1")
    assert not (tmp_path / "new").exists()


def test_the_folder_itself_may_be_a_link(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "out").symlink_to(tmp_path / "real")
    OutputFolder(tmp_path / "out").write("x.png", b"1")
    assert (tmp_path / "real" / "x.png").read_bytes() == b"1"


def test_only_files_of_segiou_are_replaced(tmp_path):
    path = tmp_path / "x.png"
    path.write_bytes(b"mine")
    with pytest.raises(FileExistsError, match=r"not written by segiou.*pass --overwrite"):
        OutputFolder(tmp_path).write("x.png", b"1")
    assert path.read_bytes() == b"mine"
    OutputFolder(tmp_path, overwrite=True).write("x.png", b"1")
    out = OutputFolder(tmp_path)
    out.write("x.png", b"2")  # written by an earlier command
    out.write("x.png", b"3")  # and by this one
    path.write_bytes(b"edited")
    with pytest.raises(FileExistsError):
        OutputFolder(tmp_path).write("x.png", b"4")
    assert path.read_bytes() == b"edited"


def test_pipes_and_folders_are_not_replaced(tmp_path):
    (tmp_path / "x.png").mkdir()
    with pytest.raises(FileExistsError, match="is not a file"):
        OutputFolder(tmp_path, overwrite=True).write("x.png", b"1")


def test_the_names_of_files_are_those_of_ids_where_they_can_be():
    assert OutputFolder("out")._unique_path("town/a b.é.png") == "town/a b.é.png"
    assert OutputFolder("out")._unique_path("../../evil.png") == "_/_/evil.png"
    assert OutputFolder("out")._unique_path("/tmp/evil.png") == "tmp/evil.png"
    out = OutputFolder("out")
    assert [out._unique_path(name) for name in ("a:.png", "a?.png", "A_.png", "a:.png")] == [
        *("a_.png", "a__2.png", "A__3.png", "a_.png")
    ]
