"""Masks in tables and in several archives at once, written by the tools that people use."""

from __future__ import annotations

import io
import json
import os
import pickle
import subprocess
import sys
import tarfile

import numpy as np
import pytest
from mask_files import png, required
from PIL import Image

import segiou
from segiou import DataError, MaskError, read_mask
from segiou.cli.main import main
from segiou.masks import open_source
from segiou.masks.finding import IS_A_PICKLE
from segiou.masks.read import from_bytes

TRUTH = {"a": np.array([[0, 0, 1, 1]], np.uint8), "b": np.array([[1, 1], [0, 0]], np.uint8)}
PRED = {"a": np.array([[0, 1, 1, 1]], np.uint8), "b": np.array([[1, 1], [0, 0]], np.uint8)}
#: Of class 1, 4 pixels are in both, and 1 in the prediction only.
IOU = 4 / 5


def read(place):
    source = open_source(place)
    return {
        name: from_bytes(source.read(path)[0], path).values for name, path in source.find().items()
    }


def score(capsys, *arguments):
    assert (
        main(["score", *map(str, arguments), "--labels", "2", "--format", "json", "--quiet"]) == 0
    )
    return json.loads(capsys.readouterr().out)["classes"][1]["iou"]


@pytest.fixture
def truth(tmp_path):
    (tmp_path / "truth").mkdir()
    for stem, mask in TRUTH.items():
        (tmp_path / "truth" / f"{stem}.png").write_bytes(png(mask))
    return tmp_path / "truth"


def test_npz_of_several_masks(tmp_path, truth, capsys):
    np.savez_compressed(tmp_path / "pred.npz", **PRED)
    assert score(capsys, truth, tmp_path / "pred.npz") == IOU


def test_an_archive_that_was_replaced_is_read_again(tmp_path):
    """Although its size and time are those of the archive before."""
    place = tmp_path / "masks.tar"
    for value in (3, 5):
        content = png(np.full((2, 2), value, np.uint8))
        with tarfile.open(place, "w") as archive:
            info = tarfile.TarInfo("a.png")
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
        os.utime(place, (1, 1))
        assert read(place)["a.png"].tolist() == [[value, value]] * 2


def test_npz_of_one_mask_is_a_mask(tmp_path):
    for name in "xy":
        np.savez(tmp_path / f"{name}.npz", TRUTH["a"])
    assert len(segiou.score_folder(tmp_path / "x.npz", tmp_path / "y.npz", labels=2)) == 1


def test_an_npz_with_objects_is_refused(tmp_path, truth):
    np.savez(tmp_path / "pred.npz", a=np.array([{}], object), b=PRED["b"])
    with pytest.raises(DataError, match=r"unsafe \.npy"):
        segiou.score_folder(truth, tmp_path / "pred.npz", labels=2)


@pytest.mark.gate
def test_pickles_are_refused_with_what_converts_them(tmp_path, truth, capsys):
    file = tmp_path / "FILE"
    file.write_bytes(pickle.dumps(PRED))
    file.rename(tmp_path / "pred.pkl")
    with pytest.raises(DataError) as caught:
        segiou.score_folder(truth, tmp_path / "pred.pkl", labels=2)
    assert caught.value.problems[0].text == IS_A_PICKLE
    with pytest.raises(MaskError, match="is a pickle"):
        read_mask(tmp_path / "pred.pkl")
    # The advice is a program that works.
    (tmp_path / "pred.pkl").rename(file)
    program = IS_A_PICKLE.partition('python -c "')[2].partition('"')[0]
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True)
    assert score(capsys, truth, tmp_path / "masks.npz") == IOU


def write_table(path, columns, **options):
    arrow = required("pyarrow", "SEGIOU_REQUIRE_EXTRAS")
    parquet = required("pyarrow.parquet", "SEGIOU_REQUIRE_EXTRAS")
    parquet.write_table(arrow.table(columns), path, **options)
    return path


def images(masks, paths=True):
    return [
        {"bytes": png(mask), "path": f"{stem}.png" if paths else None}
        for stem, mask in masks.items()
    ]


def test_parquet_from_the_command_line(tmp_path, truth, capsys):
    pred = write_table(tmp_path / "pred.parquet", {"label": images(PRED)}, row_group_size=1)
    assert score(capsys, truth, pred) == IOU


def test_two_columns_of_one_table_in_several_shards(tmp_path, capsys):
    for stem in TRUTH:
        columns = {
            "id": [stem],
            "mask": images({stem: TRUTH[stem]}, paths=False),
            "pred": images({stem: PRED[stem]}, paths=False),
        }
        write_table(tmp_path / f"val-{stem}.parquet", columns)
    places = [tmp_path / f"val-*.parquet/{column}" for column in ("mask", "pred")]
    assert score(capsys, *places, "--run", tmp_path / "run.sqlite", "--processes", "2") == IOU


def test_data_sets_of_hugging_face(tmp_path, truth, capsys):
    datasets = required("datasets")
    rows = {"annotation": [Image.fromarray(mask) for mask in PRED.values()], "id": list(PRED)}
    features = datasets.Features({"annotation": datasets.Image(), "id": datasets.Value("string")})
    table = datasets.Dataset.from_dict(rows, features=features)
    table.to_parquet(str(tmp_path / "pred.parquet"))
    assert score(capsys, truth, tmp_path / "pred.parquet") == IOU
    again = datasets.Dataset.from_parquet(str(tmp_path / "pred.parquet"), cache_dir=str(tmp_path))
    for row in again:
        ours = read(tmp_path / "pred.parquet")[row["id"]]
        np.testing.assert_array_equal(ours, np.asarray(row["annotation"]))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"x": [1, 2]}, "0 image columns"),
        ({"a": images(TRUTH), "b": images(TRUTH)}, "2 image columns .found: a, b.; append"),
        ({"a": images(TRUTH, paths=False)}, r"no column identifies the rows .*tried: a.path"),
        ({"a": images(TRUTH, paths=False), "id": [1, 1]}, r"tried: a.path, id"),
    ],
)
def test_tables_without_names_or_images_are_refused(tmp_path, columns, message):
    path = write_table(tmp_path / "a.parquet", columns)
    with pytest.raises(ValueError, match=message):
        open_source(path).find()


def test_faults_of_tables_are_named(tmp_path):
    required("pyarrow", "SEGIOU_REQUIRE_EXTRAS")
    path = tmp_path / "a.parquet"
    with pytest.raises(ValueError, match=r"does not exist|No such file"):
        open_source(path).find()
    path.write_bytes(b"PAR1 but no more")
    with pytest.raises(ValueError, match="cannot be read as Parquet"):
        open_source(path).find()
    linked = [{"bytes": None, "path": "/etc/passwd"}, {"bytes": png(TRUTH["a"]), "path": "b"}]
    write_table(path, {"a": linked})
    with pytest.raises(MaskError, match="has no bytes in its row"):
        read(path)
    with pytest.raises(ValueError, match="no image column 'z'"):
        open_source(f"{path}/z").find()
    arrow = required("pyarrow")
    write_table(path, {"a": arrow.array([], arrow.binary()), "id": arrow.array([], arrow.string())})
    with pytest.raises(ValueError, match=r"a.parquet: has no rows"):
        open_source(path).find()


def write_tar(path, members):
    with tarfile.open(path, "w") as tar:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))


def test_shards_of_webdataset(tmp_path, capsys):
    webdataset = required("webdataset")
    with webdataset.ShardWriter(str(tmp_path / "val-%03d.tar"), maxcount=1, verbose=0) as writer:
        for key in TRUTH:
            masks = {"seg.png": png(TRUTH[key]), "pred.png": png(PRED[key])}
            writer.write({"__key__": key, "jpg": b"an image", **masks})
    for pattern in ("val-*.tar", "val-{000..001}.tar"):
        place = tmp_path / pattern
        sides = "--truth-suffix", ".seg.png", "--pred-suffix", ".pred.png"
        assert score(capsys, place, place, *sides) == IOU


def test_shards_are_all_there_and_hold_each_name_once(tmp_path):
    write_tar(tmp_path / "v-0.tar", {"a.png": png(TRUTH["a"])})
    with pytest.raises(ValueError, match=r"v-1.tar: does not exist"):
        open_source(tmp_path / "v-{0..1}.tar").find()
    write_tar(tmp_path / "v-1.tar", {"a.png": png(TRUTH["a"])})
    with pytest.raises(ValueError, match=r"'a.png' is in two shards, .*v-0.tar.* and .*v-1.tar"):
        open_source(tmp_path / "v-*.tar").find()
    with pytest.raises(ValueError, match="no files match"):
        open_source(tmp_path / "w-*.tar").find()


def test_shards_in_a_folder_with_the_signs_of_a_pattern(tmp_path):
    (folder := tmp_path / "[old] shards").mkdir()
    for key, mask in TRUTH.items():
        write_tar(folder / f"val-{key}.tar", {f"{key}.png": png(mask)})
    assert [*open_source(folder / "val-*.tar").find()] == ["a.png", "b.png"]


def test_links_in_a_shard_are_no_masks(tmp_path):
    write_tar(tmp_path / "v-0.tar", {"a.png": png(TRUTH["a"])})
    with tarfile.open(tmp_path / "v-0.tar", "a") as tar:
        info = tarfile.TarInfo("b.png")
        info.type, info.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(info)
    assert list(open_source(tmp_path / "v-*.tar").find()) == ["a.png"]


def test_a_name_with_the_signs_of_a_pattern_is_a_name(tmp_path):
    write_tar(tmp_path / "v[0].tar", {"a.png": png(TRUTH["a"])})
    assert read(tmp_path / "v[0].tar")["a.png"].tolist() == TRUTH["a"].tolist()


def test_one_folder_is_truth_and_prediction_by_their_suffixes(tmp_path, capsys):
    for stem in TRUTH:
        (tmp_path / f"{stem}_gt.png").write_bytes(png(TRUTH[stem]))
        (tmp_path / f"{stem}_pred.png").write_bytes(png(PRED[stem]))
    sides = "--truth-suffix", "_gt", "--pred-suffix", "_pred"
    assert score(capsys, tmp_path, tmp_path, *sides) == IOU
    file = tmp_path / "a_gt.png"
    with pytest.raises(DataError, match="are the same"):
        segiou.score_folder(file, file, labels=2, truth_suffix="_gt")
