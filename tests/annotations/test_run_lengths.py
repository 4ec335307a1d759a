"""Run lengths of Kaggle, and annotations of CVAT: read in place of a folder, or refused by name."""

from __future__ import annotations

import csv

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from mask_files import required, write_masks
from PIL import Image

import segiou
from segiou import MaskError
from segiou.annotations.kaggle import Runs
from segiou.masks import open_source
from segiou.masks.sources.segment_files import SegmentFile
from segiou.scoring import inspect_folder

FIXTURE = [HealthCheck.function_scoped_fixture]
LABELS = ["background", "car", "tree"]
RANDOM = np.random.default_rng(2)
TRUTH = {f"im{i}": np.repeat(np.repeat(RANDOM.integers(0, 3, (3, 4)), 4, 0), 5, 1) for i in "ab"}
PRED = {id: np.where(RANDOM.random(mask.shape) < 0.2, 1, mask) for id, mask in TRUTH.items()}
EXPECTED = segiou.score([*TRUTH.values()], [*PRED.values()], labels=LABELS).total()


def encoded(area, order="F"):
    """As the kernels of Kaggle do it."""
    padded = np.concatenate([[0], np.asarray(area).flatten(order), [0]])
    runs = np.flatnonzero(padded[1:] != padded[:-1]) + 1
    runs[1::2] -= runs[::2]
    return " ".join(map(str, runs))


def rows_of(masks, order="F"):
    for id, mask in masks.items():
        for value in (1, 2):
            yield id, value, encoded(mask == value, order), mask.shape


def write_csv(path, rows):
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    return path


def numbered(rows):
    return [("ImageId", "ClassId", "EncodedPixels"), *((f"{i}.jpg", v, t) for i, v, t, _ in rows)]


def joined(rows):
    return [("ImageId_ClassId", "EncodedPixels"), *((f"{i}.jpg_{v}", t) for i, v, t, _ in rows)]


def sized(rows):
    head = ("id", "class", "rle", "height", "width")
    return [head, *((i, v, t, *size) for i, v, t, size in rows)]


def named(rows):
    return [("Image_Label", "EncodedPixels"), *((f"{i}.jpg_{LABELS[v]}", t) for i, v, t, _ in rows)]


@pytest.fixture
def images(tmp_path):
    (tmp_path / "train_images").mkdir()
    for id, mask in TRUTH.items():
        Image.new("RGB", mask.shape[::-1]).save(tmp_path / "train_images" / f"{id}.jpg")
    return tmp_path


@pytest.mark.parametrize("table", [numbered, joined, sized, named])
def test_tables_of_kaggle(images, table):
    truth = write_csv(images / "train.csv", table(rows_of(TRUTH)))
    submission = write_csv(images / "submission.csv", table(rows_of(PRED)))
    write_masks(images / "pred", PRED)
    for pred in (submission, images / "pred"):
        run = segiou.score_folder(truth, pred, labels=LABELS, ignore=())
        assert run.total() == EXPECTED


def test_a_single_class_and_images_without_objects(images):
    rows = [("ImageId", "EncodedPixels"), ("ima.jpg", "1 3 13 2"), ("imb.jpg", "")]
    source = open_source(write_csv(images / "train.csv", rows))
    values = [source.read(path)[0].values for path in source.find().values()]
    assert [int(one.sum()) for one in values] == [5, 0]
    assert values[0][:3, 0].tolist() == [1, 1, 1]  # along columns
    assert values[0][:2, 1].tolist() == [1, 1]


def test_runs_along_rows_are_an_error_until_they_are_declared(images):
    rows = sized(rows_of(TRUTH, "C"))
    write_masks(images / "pred", PRED)
    blocks = np.kron(np.eye(8, dtype=int), np.ones((5, 12), int))
    table = write_csv(images / "a.csv", sized([("x", 1, encoded(blocks, "C"), blocks.shape)]))
    source = open_source(table)
    with pytest.raises(MaskError, match=r"go along rows, .* add a column 'order' with 'rows'"):
        source.read(next(iter(source.find().values())))
    table = write_csv(
        images / "b.csv", [(*one, "order" if i == 0 else "rows") for i, one in enumerate(rows)]
    )
    run = segiou.score_folder(table, images / "pred", labels=LABELS)
    assert run.total() == EXPECTED


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([("i.jpg", "1 3 5")], "not pairs of a start"),
        ([("i.jpg", "0 3")], "not pairs of a start"),
        ([("i.jpg", "1 x")], "not pairs of a start"),
        ([("i.jpg", "1 99999999999999999999")], "not pairs of a start"),
        ([("i.jpg", "5 3 1 2")], "not in ascending order"),
        ([("i.jpg", "1 3 2 2")], "not in ascending order"),
        ([("i.jpg", "239 5")], "end at pixel 243, but the image has 240"),
        ([("i.jpg", "1 1000000000000")], "end at pixel 1000000000000, but"),
        ([("", "1 3")], "row 1: names no image"),
        ([("gone.jpg", "1 3")], "has no size; put the images into .*columns height and width"),
    ],
)
def test_faults_of_tables_are_named(tmp_path, rows, message):
    Image.new("RGB", (20, 12)).save(tmp_path / "i.jpg")
    path = write_csv(tmp_path / "a.csv", [("ImageId", "EncodedPixels"), *rows])
    with pytest.raises((MaskError, ValueError), match=message) as caught:
        source = open_source(path)
        source.read(next(iter(source.find().values())))
    assert str(caught.value).startswith(str(path))


def test_other_tables_are_no_masks(tmp_path):
    path = write_csv(tmp_path / "a.csv", [("a", "b"), (1, 2)])
    with pytest.raises(MaskError, match=r"if it has run lengths \(columns ImageId and Enc"):
        segiou.masks.read_mask(path)
    with pytest.raises(ValueError, match=r"but 1 .csv file; each is read in place of a folder"):
        open_source(tmp_path).find()


def read_or_refused(path):
    """Read every mask of a file; errors name it."""
    try:
        source = SegmentFile(str(path), str(path))
        for one in source.find().values():
            source.read(one)
    except (MaskError, ValueError) as error:
        assert str(error).startswith(str(path))


@given(st.binary(max_size=300), st.booleans())
@settings(max_examples=80, deadline=None, suppress_health_check=FIXTURE)
def test_random_tables_and_annotations(tmp_path, data, is_xml):
    path = tmp_path / ("a.xml" if is_xml else "a.csv")
    head = b"<annotations>" if is_xml else b"ImageId,EncodedPixels,height,width\n"
    path.write_bytes(head + data)
    read_or_refused(path)


@given(st.integers(1, 9), st.integers(1, 9), st.data())
def test_runs_give_their_area(height, width, data):
    bits = data.draw(st.integers(1, 2 ** (height * width) - 1))
    area = np.array([bits >> i & 1 for i in range(height * width)], bool)
    area = area.reshape(height, width)
    for order, name in (("F", "columns"), ("C", "rows")):
        np.testing.assert_array_equal(Runs(encoded(area, order), name).area((height, width)), area)


SIZED = ("ImageId", "ClassId", "EncodedPixels", "height", "width")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([("a", 1, "1 2", 4, 4), ("a", 2, "5 2", 2, 8)], "image 'a' has the sizes 4 × 4 and 2 × 8"),
        ([("a", 1, "1 2", 4.5, 4)], "row 1: invalid height '4.5' and width '4'"),
        ([("a", 1, "1 2", 4, 4), ("b", "", "1 2", 4, 4)], "row 2: has run lengths without a class"),
        ([("a", "car", "1 2", 4, 4), ("b", "", "1 2", 4, 4)], "row 2: has run lengths without a"),
        ([], r"g\.csv: has no rows$"),
    ],
)
def test_tables_that_contradict_themselves(tmp_path, rows, message):
    table = write_csv(tmp_path / "g.csv", [SIZED, *rows])
    with pytest.raises(ValueError, match=message):
        open_source(table).find()


@pytest.mark.parametrize("cell", ["a", "a_", "_1"])
def test_image_and_class_in_one_column_are_both_given(tmp_path, cell):
    head = ("ImageId_ClassId", "EncodedPixels", "height", "width")
    table = write_csv(tmp_path / "g.csv", [head, ("a_1", "1 2", 4, 4), (cell, "1 2", 4, 4)])
    with pytest.raises(ValueError, match=rf"row 2: expected .* IMAGE_CLASS, got '{cell}'"):
        open_source(table).find()


@pytest.mark.parametrize("form", ["floats", "utf-16", "sep", "size in one row"])
def test_tables_as_other_programs_write_them(tmp_path, form):
    """pandas writes classes beside empty cells as 1.0, Excel writes UTF-16 and a line ``sep=``."""
    rows = [("a", 1, "1 2", 4, 4), ("a", 2, "5 2", 4, 4), ("b", "", "", 4, 4)]
    if form == "floats":
        rows = [(id, f"{label:.1f}" if label else "", *rest) for id, label, *rest in rows]
    if form == "size in one row":
        rows = [("a", 1, "1 2", "", ""), *rows[1:]]
    table = write_csv(tmp_path / "g.csv", [SIZED, *rows])
    if form == "utf-16":
        table.write_text(table.read_text(), encoding="utf-16")
    if form == "sep":
        table.write_text("sep=,\n" + table.read_text())
    source = open_source(table)
    masks = {name: source.read(path)[0].values.tolist() for name, path in source.find().items()}
    assert masks == {"a": [[1, 2, 0, 0], [1, 2, 0, 0], [0] * 4, [0] * 4], "b": [[0] * 4] * 4}


def test_images_that_were_put_beside_a_table_have_the_sizes(tmp_path):
    """As the error asks; what the table contains is kept in memory."""
    (tmp_path / "x.csv").write_text("ImageId,EncodedPixels\na.png,1 2\n")
    path = open_source(tmp_path / "x.csv").find()["a.png"]
    with pytest.raises(MaskError, match="has no size; put the images into"):
        open_source(tmp_path / "x.csv").read(path)
    (tmp_path / "photos").mkdir()
    Image.new("RGB", (3, 2)).save(tmp_path / "photos" / "a.png")
    source = open_source(tmp_path / "x.csv")
    mask, _ = source.read(source.find()["a.png"])
    assert mask.values.tolist() == [[1, 0, 0], [1, 0, 0]]


def test_images_of_one_name_in_several_folders(tmp_path):
    """Sizes are taken from the image of the folder, and never from one of several by chance."""
    for place, size in (("one", (4, 2)), ("two", (3, 5))):
        (tmp_path / place).mkdir()
        Image.new("RGB", size).save(tmp_path / place / "a.v1.jpg")
    head = ("ImageId", "EncodedPixels")
    for image in ("two/a.v1", "two/a.v1.jpg"):
        source = open_source(write_csv(tmp_path / "g.csv", [head, (image, "1 1")]))
        assert source.read(source.find()[image])[0].values.shape == (5, 3)
    for image in ("a.v1", "a.v1.jpg"):
        table = write_csv(tmp_path / "g.csv", [head, (image, "1 1")])
        with pytest.raises(ValueError, match=r"row 1: image 'a.v1.*of other sizes; add columns"):
            open_source(table).find()


# CVAT ------------------------------------------------------------------------------------


def cvat(*shapes, name="a.jpg", size=(12, 20)):
    inner = "".join(shapes)
    image = f'<image id="0" name="{name}" width="{size[1]}" height="{size[0]}">{inner}</image>'
    return f'<?xml version="1.0" encoding="utf-8"?>\n<annotations><meta/>{image}</annotations>'


def shape(kind, label="car", **attributes):
    written = "".join(f' {name}="{value}"' for name, value in attributes.items())
    return f'<{kind} label="{label}"{written}></{kind}>'


def read(path, text):
    path.write_text(text)
    source = open_source(path)
    ((name, place),) = source.find().items()
    raw, _ = source.read(place)
    return name, np.array(raw.names, object)[raw.values]


def test_masks_and_their_order(tmp_path):
    # Row by row: outside 1, inside 2, outside 1, inside 2.
    below = shape("mask", rle="1, 2, 1, 2", left=3, top=5, width=3, height=2, z_order=0)
    above = shape("mask", "tree", rle="0, 2", left=4, top=5, width=1, height=2, z_order=1)
    name, found = read(tmp_path / "annotations.xml", cvat(above, below, shape("tag", "x")))
    assert name == "a.jpg"
    assert found[5, 3:6].tolist() == ["", "tree", "car"]
    assert found[6, 3:6].tolist() == ["", "tree", "car"]
    assert (found != "").sum() == 4


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
def test_polygons_and_boxes_are_those_of_pycocotools(tmp_path):
    tool = required("pycocotools.mask")
    corners = [1.5, 2.25, 15.5, 1.0, 11.0, 10.75]
    points = ";".join(f"{x},{y}" for x, y in zip(corners[::2], corners[1::2], strict=True))
    _, found = read(tmp_path / "a.xml", cvat(shape("polygon", points=points)))
    expected = tool.decode(tool.frPyObjects([corners], 12, 20))[..., 0]
    np.testing.assert_array_equal(found == "car", expected.astype(bool))
    box = shape("box", xtl=1.2, ytl=2.6, xbr=7.9, ybr=9.1)
    _, found = read(tmp_path / "b.xml", cvat(box))
    expected = tool.decode(tool.frPyObjects(np.array([[1.2, 2.6, 6.7, 6.5]]), 12, 20))[..., 0]
    np.testing.assert_array_equal(found == "car", expected.astype(bool))


def test_annotations_are_scored(tmp_path):
    mask = np.zeros((12, 20), int)
    mask[2:5, 3:9] = 1
    text = cvat(shape("mask", rle="0, 18", left=3, top=2, width=6, height=3))
    (tmp_path / "annotations.xml").write_text(text)
    write_masks(tmp_path / "pred", {"a": mask})
    run = segiou.score_folder(tmp_path / "annotations.xml", tmp_path / "pred", labels=LABELS)
    assert run.report().mean_iou == 1
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "annotations.xml").write_text(text)
    with pytest.raises(segiou.DataError, match=r"if it is of CVAT \(annotations\.xml"):
        segiou.score_folder(tmp_path / "other", tmp_path / "pred", labels=LABELS)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (cvat(shape("ellipse", cx=1, cy=2, rx=3, ry=4)), "unsupported ellipse; expected a mask"),
        (cvat(shape("box", xtl=1, ytl=1, xbr=5, ybr=5, rotation=30)), "unsupported rotated box"),
        (cvat(shape("polygon", points="1,2;x,3;4,5")), "at least 3 corners"),
        (cvat(shape("polygon")), "'points' is missing"),
        (cvat(shape("mask", rle="0, 5", left=0, top=0, width=2, height=2)), "do not cover its 4"),
        (
            cvat(shape("mask", rle="0, x", left=0, top=0, width=2, height=2)),
            "not whole: .*0, x",
        ),
        (cvat(shape("mask", rle="0, 4", left=19, top=0, width=2, height=2)), "is outside"),
        (cvat(shape("mask", rle="0, 4", left=-1, top=0, width=2, height=2)), "has a box of 2 × 2"),
        (cvat(shape("polygon", label="", points="1,2;3,3;4,5")), "expected a label"),
        (cvat(size=(0, 5)), "has an invalid size"),
        (cvat(size=(1 << 20, 1 << 20)), "has an invalid size"),
        (cvat(name=""), "an image without a name"),
        (cvat()[:-20], "is not valid XML"),
        ("<annotations></annotations>", "contains no images"),
        ('<annotations><track id="0" label="car"/></annotations>', "an export of tracks"),
        ('<!DOCTYPE a [<!ENTITY b "c">]><annotations>&b;</annotations>', "a document type"),
    ],
)
def test_faults_of_annotations_are_named(tmp_path, text, message):
    with pytest.raises((MaskError, ValueError), match=message) as caught:
        read(tmp_path / "annotations.xml", text)
    assert str(caught.value).startswith(str(tmp_path / "annotations.xml"))


def test_annotations_in_utf_16(tmp_path):
    text = cvat(shape("box", xtl=0, ytl=0, xbr=20, ybr=12)).replace("utf-8", "utf-16")
    (tmp_path / "a.xml").write_text(text, encoding="utf-16")
    source = open_source(tmp_path / "a.xml")
    raw, _ = source.read(source.find()["a.jpg"])
    assert raw.names[1] == "car"
    assert raw.values.all()


@settings(max_examples=60, deadline=None, suppress_health_check=FIXTURE)
@given(st.data())
def test_damaged_annotations(tmp_path, data):
    text = cvat(shape("mask", rle="1, 2, 1, 2", left=3, top=5, width=3, height=2))
    damaged = bytearray(text.encode()[: data.draw(st.integers(60, len(text)))])
    for _ in range(data.draw(st.integers(0, 3))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path / "a.xml"
    path.write_bytes(bytes(damaged))
    read_or_refused(path)


def test_inspection_names_the_kind_of_file(tmp_path):
    table = write_csv(tmp_path / "a.csv", sized(rows_of(TRUTH)))
    xml = tmp_path / "annotations.xml"
    xml.write_text(
        '<annotations><image name="a.jpg" width="5" height="4"><polygon label="car" '
        'points="1,1;3,1;3,3"/></image></annotations>'
    )
    assert inspect_folder(table).kinds == {"CSV": 2}
    assert inspect_folder(xml).kinds == {"XML": 1}
