"""Archives and addresses score in place, and hostile ones do no harm."""

from __future__ import annotations

import io
import shutil
import struct
import tarfile
import zipfile
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from mask_files import png

import segiou
from segiou import DataError
from segiou.masks import ArchiveFolder, LocalFolder, RemoteFolder, open_source
from segiou.masks.sources import archives

scored = partial(segiou.score_folder, labels=4)


@pytest.mark.parametrize(
    ("truth", "pred"),
    [
        ("truth.zip", "pred.zip"),
        ("truth.tar", "pred.tar.gz"),
        ("truth.tar.bz2", "pred.tar.xz"),
        ("truth-around.zip", "pred.tar"),
        ("both.zip/data/truth", "both.zip/data/pred"),
    ],
)
def test_archives_score_without_unpacking(packed, expected, truth, pred):
    run = scored(packed / truth, packed / pred)
    assert run.total() == expected
    assert run.images[0].truth.startswith(f"{packed}/{truth}/"[:-1])


@pytest.mark.gate
def test_an_archive_goes_with_a_folder_in_other_processes(packed, masks, expected, tmp_path):
    run = scored(packed / "truth.zip", masks / "pred", processes=2, run=tmp_path / "r.sqlite")
    assert run.total() == expected


def test_a_run_of_archives_goes_on(packed, tmp_path, monkeypatch):
    archive = tmp_path / "pred.zip"
    shutil.copy(packed / "pred.zip", archive)
    first = scored(packed / "truth.tar", archive, run=tmp_path / "r.sqlite").total()
    read = []
    original = ArchiveFolder.read
    monkeypatch.setattr(
        ArchiveFolder, "read", lambda self, path: read.append(path) or original(self, path)
    )
    # The same members in another archive of this name are the same by their checksums.
    with zipfile.ZipFile(packed / "pred.zip") as old, zipfile.ZipFile(archive, "w") as new:
        for name in sorted(old.namelist()):
            data = old.read(name)
            if name == "07.png":
                data = old.read("08.png")
            new.writestr(name, data)
    run = scored(packed / "truth.tar", archive, run=tmp_path / "r.sqlite")
    assert [Path(p).name for p in read] == ["07.png"] * 2
    assert run.total() != first


def zip_of(path: Path, members) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members:
            archive.writestr(name, data)
    return path


def test_names_that_climb_out_of_the_archive_are_keys_and_no_more(tmp_path):
    names = ["../../../climb.png", "a/../b.png", "/etc/root.png", "C:\\x\\dos.png", "ü🦆.png"]
    for side in ("t", "p"):
        zip_of(tmp_path / f"{side}.zip", [(name, png([[1]])) for name in names])
        with tarfile.open(tmp_path / f"{side}.tar", "w") as archive:
            for name in names:
                member = tarfile.TarInfo(name)
                member.size = len(png([[1]]))
                archive.addfile(member, io.BytesIO(png([[1]])))
    before = sorted(tmp_path.rglob("*"))
    for kind in ("zip", "tar"):
        run = scored(
            tmp_path / f"t.{kind}", tmp_path / f"p.{kind}", run=tmp_path / f"{kind}.sqlite"
        )
        assert len(run) == 5
        assert {image.truth.rpartition("/")[2] for image in run} >= {"climb.png", "root.png"}
    assert sorted(p for p in tmp_path.rglob("*") if p.suffix != ".sqlite") == before


def test_links_and_devices_in_a_tar_are_no_masks(tmp_path):
    with tarfile.open(tmp_path / "t.tar", "w") as archive:
        for name, kind in (("link.png", tarfile.SYMTYPE), ("fifo.png", tarfile.FIFOTYPE)):
            member = tarfile.TarInfo(name)
            member.type, member.linkname = kind, "/etc/passwd"
            archive.addfile(member)
        member = tarfile.TarInfo("real.png")
        member.size = len(png([[1]]))
        archive.addfile(member, io.BytesIO(png([[1]])))
    zip_of(tmp_path / "p.zip", [("real.png", png([[1]]))])
    assert list(scored(tmp_path / "t.tar", tmp_path / "p.zip").ids) == ["real"]


def test_a_zip_bomb_is_refused_by_what_it_declares(tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "MOST_MEMBER_BYTES", 1 << 20)
    with zipfile.ZipFile(tmp_path / "p.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.png", bytes(2 << 20))
    zip_of(tmp_path / "t.zip", [("a.png", png([[1]]))])
    with pytest.raises(DataError, match=r"p.zip/a.png: declares 2097152 bytes, above the limit"):
        scored(tmp_path / "t.zip", tmp_path / "p.zip")


def test_a_member_larger_than_it_declares_is_damaged(tmp_path):
    with zipfile.ZipFile(tmp_path / "p.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.png", bytes(3 << 20))
    data = bytearray((tmp_path / "p.zip").read_bytes())
    for at in (data.index(b"PK\x03\x04") + 22, data.index(b"PK\x01\x02") + 24):
        struct.pack_into("<I", data, at, 1000)
    (tmp_path / "p.zip").write_bytes(data)
    zip_of(tmp_path / "t.zip", [("a.png", png([[1]]))])
    with pytest.raises(DataError, match=r"p.zip/a.png: .* has more bytes than the 1000"):
        scored(tmp_path / "t.zip", tmp_path / "p.zip")


def test_a_compressed_tar_that_grows_without_end_is_stopped(tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "LEAST_BOUND", 1 << 20)
    with tarfile.open(tmp_path / "p.tar.gz", "w:gz") as archive:
        member = tarfile.TarInfo("a.png")
        member.size = 8 << 20
        archive.addfile(member, io.BytesIO(bytes(8 << 20)))
    zip_of(tmp_path / "t.zip", [("a.png", png([[1]]))])
    with pytest.raises(DataError, match=r"p.tar.gz: .*decompresses to more than \d+ bytes"):
        scored(tmp_path / "t.zip", tmp_path / "p.tar.gz")


@pytest.mark.parametrize("name", ["p.zip", "p.tar", "p.tar.gz", "p.tar.xz"])
def test_damaged_archives_are_named(tmp_path, packed, name):
    zip_of(tmp_path / "t.zip", [("a.png", png([[1]]))])
    whole = (packed / name.replace("p.", "pred.")).read_bytes()
    for content in (b"", b"no archive at all", whole[: len(whole) // 2]):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(DataError) as caught:
            scored(tmp_path / "t.zip", tmp_path / name)
        assert str(tmp_path / name) in str(caught.value) or "t.zip/a.png" in str(caught.value)


def test_one_name_twice_is_refused(tmp_path):
    zip_of(tmp_path / "t.zip", [("a.png", png([[1]]))])
    with pytest.warns(UserWarning, match="Duplicate name"):
        zip_of(tmp_path / "p.zip", [("a.png", png([[1]])), ("a.png", png([[2]]))])
    with pytest.raises(DataError, match=r"p.zip: contains .a.png. more than once"):
        scored(tmp_path / "t.zip", tmp_path / "p.zip")


def test_archives_without_masks_or_not_there(tmp_path):
    zip_of(tmp_path / "t.zip", [("a.txt", b"hello"), ("__MACOSX/._a.png", b"")])
    with pytest.raises(DataError) as caught:
        scored(tmp_path / "t.zip", tmp_path / "p.tar.gz")
    assert f"{tmp_path}/t.zip: no mask files found" in str(caught.value)
    assert f"{tmp_path}/p.tar.gz: does not exist" in str(caught.value)


def test_a_tar_that_ends_in_an_npz_is_still_a_tar(tmp_path):
    for side in ("t", "p"):
        np.savez(tmp_path / "a.npz", np.array([[1, 2]]))
        with tarfile.open(tmp_path / f"{side}.tar", "w") as archive:
            archive.add(tmp_path / "a.npz", "a.npz")
    assert scored(tmp_path / "t.tar", tmp_path / "p.tar").total().pixels == 2


def test_what_a_place_is():
    assert open_source("a/b") == LocalFolder("a/b")
    assert open_source(Path("a/b.ZIP")) == ArchiveFolder("a/b.ZIP", "a/b.ZIP")
    assert open_source("b.tgz/x/y") == ArchiveFolder("b.tgz/x/y", "b.tgz")
    assert open_source("s3://bucket/x/") == RemoteFolder("s3://bucket/x")
    assert open_source("zip://::s3://bucket/x.zip") == RemoteFolder("zip://::s3://bucket/x.zip")
    assert "secret" not in repr(open_source("s3://b", {"key": "secret"}))


@pytest.mark.parametrize("part", ["", "gt", "gt/sub"])
def test_zips_with_backslashes(tmp_path, part):
    """Some programs on Windows write them in place of slashes."""
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        for name in ("gt\\", "gt\\sub\\a.png", "gt\\sub\\b.png"):
            info = zipfile.ZipInfo("x")
            info.filename = name  # as it is
            archive.writestr(info, png(np.eye(2)))
    source = open_source(tmp_path / "a.zip" / part)
    found = source.find()
    assert [name.rpartition("/")[2] for name in found] == ["a.png", "b.png"]
    for path in found.values():
        assert source.read(path)[0] == png(np.eye(2))


def tar_of(path: Path, members) -> Path:
    with tarfile.open(path, "w") as archive:
        for name, data in members:
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return path


@pytest.mark.parametrize("write", [tar_of, zip_of])
def test_names_that_begin_with_the_current_folder(tmp_path, write):
    """As ``tar cf masks.tar ./truth`` writes them."""
    path = write(tmp_path / "a.tar", [("./x/a.png", png([[1]])), ("./y/b.png", png([[2]]))])
    assert open_source(path).find() == {"x/a.png": f"{path}/x/a.png", "y/b.png": f"{path}/y/b.png"}
    assert open_source(f"{path}/x").find() == {"a.png": f"{path}/x/a.png"}
    write(path, [("a.png", png([[1]])), ("./a.png", png([[2]]))])
    with pytest.raises(ValueError, match=r"contains 'a.png' more than once; keep one"):
        open_source(path).find()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda data, at: data[: at + 100], "unexpected end of data"),
        (lambda data, at: data[:at] + b"\1" + data[at + 1 :], r"the header at byte \d+ is corrupt"),
        (lambda data, at: data + data, "contains data after its end; if it is several archives"),
    ],
)
def test_a_tar_never_ends_before_its_last_member(tmp_path, change, words):
    """Where the second header is damaged, tarfile stops as if the archive ended."""
    path = tar_of(tmp_path / "a.tar", [("a.png", png([[1]])), ("b.png", png([[2]]))])
    with tarfile.open(path) as archive:
        at = archive.getmembers()[1].offset
    path.write_bytes(change(path.read_bytes(), at))
    with pytest.raises(ValueError, match=words):
        open_source(path).find()


def test_encrypted_members_and_other_archives_are_named(tmp_path):
    path = zip_of(tmp_path / "a.zip", [("a.png", png([[1]]))])
    data = bytearray(path.read_bytes())
    data[6] |= 1
    data[data.find(b"PK\1\2") + 8] |= 1
    path.write_bytes(data)
    source = open_source(path)
    with pytest.raises(segiou.MaskError, match=r"a.png: cannot be .*: is encrypted; extract the"):
        source.read(source.find()["a.png"])
    (tmp_path / "b.7z").write_bytes(b"7z")
    with pytest.raises(ValueError, match=r"b.7z: is an archive that is not read; save it as .zip"):
        open_source(tmp_path / "b.7z").find()
    with pytest.raises(ValueError, match=r"but 1 .* each is an archive; pass it in place of a"):
        open_source(zip_of(tmp_path / "c.zip", [("a.zip", bytes(data))])).find()
