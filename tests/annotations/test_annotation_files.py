"""Shapes of LabelMe, Label Studio, Supervisely and VIA, and CVAT's masks, as their tools draw."""

from __future__ import annotations

import base64
import io
import json
import zlib
from types import SimpleNamespace

import numpy as np
import pytest
from mask_files import part_of, required, write_masks
from PIL import Image, ImageDraw

import segiou
from segiou import DataError, MaskError
from segiou.cli.main import main
from segiou.labels import LabelClass, LabelSet
from segiou.masks import open_source
from segiou.masks.read import from_bytes, to_labels

ANNOTATORS = "SEGIOU_REQUIRE_ANNOTATORS"
LABELS = segiou.LabelSet.from_names(["background", "car", "tree"], ignore=255)


def read(place, labels=LABELS):
    source = open_source(place)
    return {
        name: to_labels(from_bytes(source.read(path)[0], path), path, labels)
        for name, path in source.find().items()
    }


def labelme(*shapes, height=8, width=10):
    return {"version": "5.4.1", "imageHeight": height, "imageWidth": width, "shapes": list(shapes)}


def shape(label, points, kind="polygon", **more):
    return {"label": label, "points": points, "shape_type": kind, **more}


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def packed(mask):
    out = io.BytesIO()
    Image.fromarray(np.asarray(mask, np.uint8)).save(out, "PNG")
    return base64.b64encode(out.getvalue()).decode()


def test_later_shapes_of_labelme_lie_on_top(tmp_path):
    square = shape("car", [[1, 1], [4, 4]], "rectangle")
    corner = shape("tree", [[4, 4], [6, 4], [6, 6], [4, 6]])
    found = read(write(tmp_path / "a.json", labelme(square, corner)))["a"]
    expected = np.zeros((8, 10), int)
    expected[1:5, 1:5] = 1
    expected[4:7, 4:7] = 2
    assert found.tolist() == expected.tolist()


SHAPES = [
    shape("car", [[1.2, 1.7], [8.4, 2.1], [5.5, 6.9]]),
    shape("car", [[1.2, 1.7], [8.4, 2.1], [5.5, 6.9]], None),
    shape("car", [[6, 5], [2, 1]], "rectangle"),
    shape("car", [[4, 4], [4, 6.5]], "circle"),
    shape("car", [[1, 1], [3, 5]], "line"),
    shape("car", [[1, 1], [3, 5], [30, 8]], "linestrip"),
    shape("car", [[4, 4]], "point"),
    shape("car", [[1, 1], [4, 2], [3, 5], [0, 4]], "oriented_rectangle"),
]


@pytest.mark.parametrize("one", SHAPES)
def test_shapes_are_drawn_as_labelme_does(tmp_path, one):
    utils = part_of("labelme", "labelme.utils.shape", ANNOTATORS, "labelme._label_file")
    expected = utils.shape_to_mask((40, 50), one["points"], one["shape_type"])
    found = read(write(tmp_path / "a.json", labelme(one, height=40, width=50)))["a"]
    np.testing.assert_array_equal(found, expected)


def test_masks_of_labelme(tmp_path):
    one = shape("tree", [[2, 3], [4, 4]], "mask", mask=packed([[1, 0, 1], [0, 1, 0]]))
    found = read(write(tmp_path / "a.json", labelme(one)))["a"]
    assert found[3:5, 2:5].tolist() == [[2, 0, 2], [0, 2, 0]]
    assert (found != 0).sum() == 3


def test_a_folder_of_labelme_from_the_command_line(tmp_path, capsys):
    car = shape("car", [[0, 0], [4, 3]], "rectangle")
    for stem in "ab":
        write(tmp_path / "truth" / f"{stem}.json", labelme(car))
    pred = np.zeros((8, 10))
    pred[:4, :4] = 1
    write_masks(tmp_path / "pred", {"a": pred, "b": pred})
    (tmp_path / "labels.toml").write_text(LABELS.to_toml())
    options = "--labels", str(tmp_path / "labels.toml"), "--format", "json", "--quiet"
    assert (
        main(["score", str(tmp_path / "truth" / "*.json"), str(tmp_path / "pred"), *options]) == 0
    )
    report = json.loads(capsys.readouterr().out)
    assert report["classes"][1]["iou"] == 16 / 20


def test_names_are_inspected_and_proposed_as_a_label_set(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    car = shape("car", [[0, 0], [4, 3]], "rectangle")
    write(tmp_path / "truth" / "a.json", labelme(car, shape("tree", [[7, 7]], "mask", mask="?")))
    pattern, proposed = str(tmp_path / "truth" / "*.json"), tmp_path / "labels.toml"
    assert main(["inspect", pattern]) == 3
    assert "shape 2 of 2" in " ".join(capsys.readouterr().out.split())
    write(tmp_path / "truth" / "a.json", labelme(car))
    assert main(["inspect", pattern, "--propose", str(proposed)]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "car 25.00 % 20" in out
    assert "use --propose FILE" in out
    assert segiou.load_labels(proposed).class_names == ("background", "car")
    assert main(["inspect", pattern, "--format", "json"]) == 0
    names = json.loads(capsys.readouterr().out)["names"]
    assert names == [{"name": "background", "pixels": 60}, {"name": "car", "pixels": 20}]


def test_a_folder_of_json_files_names_the_pattern(tmp_path):
    write(tmp_path / "project" / "meta.json", {})
    for name in "ab":
        write(tmp_path / "project" / "ds" / "ann" / f"{name}.json", labelme())
    with pytest.raises(ValueError, match=r"pass a pattern: '.*/project/ds/ann/\*.json'"):
        read(tmp_path / "project")


@pytest.mark.parametrize(
    ("one", "words"),
    [
        (shape("car", [[0, 0], [1, float("nan")], [2, 2]]), "not a number, or far outside"),
        (shape("car", [[0, 0], [1, 1e9], [2, 2]]), "not a number, or far outside"),
        (shape("car", [[0, 0], [1, 1]]), "at least 3 corners"),
        (shape("car", [[0, 0]] * 3, "circle"), "a circle has 2 corners, got 3"),
        (shape("car", [[0, 0]] * 3, "star"), "unknown shape_type 'star'"),
        (shape("car", [[0, 0], [1, 1]], "mask", mask="?"), "not a base64 PNG"),
        (shape("car", [[0, 0], [1, 1]], "mask", mask=None), "not a base64 PNG"),
        (shape("car", [[0, 0], [1, 1]], "mask", mask=packed([[1]])), "differs from its corners"),
        (shape(None, [[0, 0]] * 3), "expected a label, got None"),
        (shape("bus", [[0, 0]] * 3), "has 'bus', not declared in label set 'custom'"),
        (3, "shape 1 of 1"),
    ],
)
def test_shapes_with_faults_are_named(tmp_path, one, words):
    path = write(tmp_path / "a.json", labelme(one))
    with pytest.raises(MaskError, match=words) as caught:
        read(path)
    assert caught.value.path == f"{path}/a"


def test_pixels_in_no_shape(tmp_path):
    one = shape("car", [[0, 0], [1, 0]], "rectangle")
    path = write(tmp_path / "a.json", labelme(one, height=1, width=3))
    classes = (segiou.labels.LabelClass("car", (4,)),)
    assert read(path, segiou.LabelSet("a", classes, ignore=(9,)))["a"].tolist() == [[4, 4, 9]]
    with pytest.raises(MaskError, match="pixels outside all shapes, not declared in label set 'a'"):
        read(path, segiou.LabelSet("a", classes))
    full = labelme(shape("__ignore__", [[0, 0], [2, 0]], "rectangle"), height=1, width=3)
    assert read(write(path, full), segiou.LabelSet("a", classes, ignore=(9,)))["a"].tolist() == [
        [9] * 3
    ]


def rle(mask):
    """rle-pack of an RGBA image whose alpha is the mask, in the plainest form: no runs."""
    values = np.repeat(np.where(mask, 255, 0).ravel(), 4)
    bits = f"{values.size:032b}" + f"{7:05b}" + "".join(f"{n:04b}" for n in (2, 3, 7, 15))
    bits += "0" + "11" + f"{values.size - 1:016b}" + "".join(f"{v:08b}" for v in values)
    return [int(bits[i : i + 8].ljust(8, "0"), 2) for i in range(0, len(bits), 8)]


def brush(label, mask, **more):
    mask = np.asarray(mask)
    size = {"original_height": mask.shape[0], "original_width": mask.shape[1]}
    value = {"format": "rle", "rle": rle(mask), "brushlabels": [label]}
    return {"type": "brushlabels", "value": value, **size, **more}


def task(*results, image="/data/upload/1/0a1b2c3d-a.jpg", **more):
    return {"id": 1, "data": {"image": image}, "annotations": [{"result": list(results)}], **more}


def json_min(image="im.png", **tags):
    return {"id": 1, "image": image, "annotator": 1, "annotation_id": 2, **tags}


def test_brushes_and_polygons_of_label_studio(tmp_path):
    size = {"original_height": 4, "original_width": 4}
    value = {"points": [[0, 0], [50, 0], [50, 50], [0, 50]], "polygonlabels": ["tree"]}
    polygon = {"type": "polygonlabels", "value": value, **size}
    car = np.zeros((4, 4), int)
    car[1:3, 1:4] = 1
    choice = {"type": "choices", "value": {"choices": ["good"]}}
    path = write(tmp_path / "export.json", [task(brush("car", car), polygon, choice)])
    assert read(path)["a.jpg"].tolist() == [
        [2, 2, 0, 0],
        [2, 2, 1, 1],
        [0, 1, 1, 1],
        [0, 0, 0, 0],
    ]


def test_brushes_are_those_of_label_studio(tmp_path):
    tool = required("label_studio_sdk.converter.brush", ANNOTATORS)
    rng = np.random.default_rng(0)
    for density in (0.02, 0.5):
        mask = rng.random((13, 17)) < density
        values = np.repeat(np.where(mask, 255, 0).astype(np.uint8).ravel(), 4)
        result = brush("car", mask)
        result["value"]["rle"] = tool.encode_rle(values)
        decoded = tool.decode_rle(result["value"]["rle"]).reshape(13, 17, 4)[..., 3] > 0
        found = read(write(tmp_path / "export.json", [task(result)]))["a.jpg"]
        np.testing.assert_array_equal(found, decoded)


def test_label_studio_is_scored_against_a_folder(tmp_path):
    mask = np.array([[1, 0, 2], [1, 1, 0]])
    results = brush("car", mask == 1), brush("tree", mask == 2)
    export = write(tmp_path / "export.json", [task(*results)])
    write_masks(tmp_path / "pred", {"a": mask})
    assert segiou.score_folder(export, tmp_path / "pred", labels=LABELS).report().mean_iou == 1
    with pytest.raises(DataError, match="has 'car'"):
        segiou.score_folder(export, tmp_path / "pred", labels=["background", "tree", "bus"])


MASK = np.array([[1, 0], [0, 0]])


def broken(change):
    result = brush("car", MASK)
    result["value"]["rle"] = change(result["value"]["rle"])
    return [task(result)]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (broken(lambda data: data[:-4]), "truncated"),
        (broken(lambda data: [*data[:7], 0xFF, 0xFF, *data[9:]]), "exceeds the image|truncated"),
        (broken(lambda data: [1, *data[1:]]), "four bytes per pixel"),
        (broken(lambda data: [300]), "truncated, or not a list of bytes"),
        (broken(lambda data: "x"), "truncated, or not a list of bytes"),
        ([task(brush("car", MASK), brush("car", MASK[:1]))], "task 1: has 2 image sizes"),
        ([task()], "a.jpg: has no size, because .*put the image next to the file"),
        ([task(brush("car", MASK), data={})], "task 1: has 0 possible image names"),
        ([task(brush("car", MASK), data={"a": "1.png", "b": "2.png"})], "has 2 .* .a and b.; exp"),
        ([json_min(), 3], "task 2: unexpected structure"),
        ([json_min(tag=[{"polygonlabels": ["car"]}])], "task 1: 'original_height' is missing"),
        ([task(brush("car", MASK), annotations=[])], "task 1: has 0 annotations"),
        ([task(brush("car", MASK))] * 2, "contains the image 'a.jpg' twice"),
        (
            [task(brush("car", MASK, type="rectanglelabels"))],
            "expected a brush or polygon",
        ),
        ([{"annotations": 3}], "task 1: unexpected structure"),
    ],
)
def test_exports_with_faults_are_named(tmp_path, content, words):
    path = write(tmp_path / "export.json", content)
    with pytest.raises((MaskError, ValueError), match=words) as caught:
        read(path)
    assert str(caught.value).startswith(str(path))


def test_tasks_without_objects_have_the_size_of_their_image(tmp_path):
    Image.new("RGB", (3, 2)).save(tmp_path / "a.jpg")
    for content in (task(), json_min(image="/data/upload/1/0a1b2c3d-a.jpg")):
        assert read(write(tmp_path / "export.json", [content]))["a.jpg"].tolist() == [[0] * 3] * 2


def test_json_min_of_label_studio(tmp_path):
    """Shapes below the name of their tag, without results."""
    full = brush("car", MASK)
    shape = {**full["value"], "original_height": 2, "original_width": 2}
    path = write(tmp_path / "export.json", [json_min(tag=[shape])])
    expected = read(write(tmp_path / "full.json", [task(full, image="im.png")]))
    assert read(path).keys() == {"im.png"}
    np.testing.assert_array_equal(read(path)["im.png"], expected["im.png"])


@pytest.mark.parametrize(
    "data",
    [
        {"image": "s3://b/im.png", "source": "cam1.mp4"},
        {"image": "s3://b/im.png", "note": "Taken in Rome. Dark."},
        {"image": "im.png", "thumbnail": "small.png"},
        {"any": "https://a.b/im.png?x=1.2", "version": "1.2"},
        {"any": "im.xyz", "note": "a. b"},
    ],
)
def test_the_image_of_a_task_among_other_texts(tmp_path, data):
    content = [task(brush("car", MASK), data=data)]
    (name,) = read(write(tmp_path / "export.json", content))
    assert name.startswith("im.")


def test_images_of_label_studio_by_their_address(tmp_path):
    for image, name in (
        ("/data/local-files/?d=images/a%20b.jpg", "a%20b.jpg"),
        ("s3://bucket/x/c.png?token=1", "c.png"),
        ("/data/upload/12/deadbeef-d_e.jpg", "d_e.jpg"),
    ):
        content = [task(brush("car", MASK), image=image)]
        assert list(read(write(tmp_path / "export.json", content))) == [name]


def supervisely_code():
    """What Supervisely makes its files with, and draws them."""
    required("cv2", ANNOTATORS)
    required("shapely.geometry", ANNOTATORS)
    return part_of(
        "supervisely",
        "supervisely.geometry.bitmap",
        ANNOTATORS,
        *("supervisely.imaging", "supervisely.imaging.image", "supervisely.imaging.font"),
        *("supervisely.sly_logger", "supervisely.io"),
        supervisely___utils=SimpleNamespace(unwrap_if_numpy=lambda number: number),
        supervisely__io__json=SimpleNamespace(JsonSerializable=object),
    )


def supervisely(*objects, height=40, width=40):
    size = {"height": height, "width": width}
    return {"description": "", "tags": [], "size": size, "objects": list(objects)}


def thing(title, kind="polygon", **more):
    return {"id": 1, "classId": 2, "classTitle": title, "geometryType": kind, "tags": [], **more}


def outline(exterior, *interior):
    return {"points": {"exterior": exterior, "interior": list(interior)}}


def test_objects_of_supervisely(tmp_path):
    ring = outline([[1, 1], [5, 1], [5, 5], [1, 5]], [[2, 2], [4, 2], [4, 4], [2, 4]])
    packed_mask = base64.b64encode(zlib.compress(base64.b64decode(packed([[1, 0], [1, 1]]))))
    bitmap = {"data": packed_mask.decode(), "origin": [6, 5]}
    objects = (
        thing("car", **ring),
        thing("tree", "bitmap", bitmap=bitmap),
        thing("car", "rectangle", **outline([[6, 1], [7, 0]])),
    )
    write(tmp_path / "ann" / "a.jpg.json", supervisely(*objects, height=8, width=8))
    assert read(str(tmp_path / "ann" / "*.json"))["a.jpg"].tolist() == [
        [0, 0, 0, 0, 0, 0, 1, 1],
        [0, 1, 1, 1, 1, 1, 1, 1],
        [0, 1, 0, 0, 0, 1, 0, 0],
        [0, 1, 0, 0, 0, 1, 0, 0],
        [0, 1, 0, 0, 0, 1, 0, 0],
        [0, 1, 1, 1, 1, 1, 2, 0],
        [0, 0, 0, 0, 0, 0, 2, 2],
        [0, 0, 0, 0, 0, 0, 0, 0],
    ]


def test_objects_are_drawn_as_supervisely_does(tmp_path):
    tool = supervisely_code()
    rng = np.random.default_rng(0)
    for number in range(40):
        polygons = (rng.integers(0, 40, (rng.integers(3, 9), 2)).tolist() for _ in range(2))
        polygon = tool.Polygon.from_json(outline(*polygons))
        mask = rng.random((rng.integers(1, 9), rng.integers(1, 9))) < 0.5
        mask[0, 0] = True
        bitmap = tool.Bitmap(mask, tool.PointLocation(*rng.integers(0, 30, 2).tolist()))
        expected = np.zeros((40, 40), np.uint8)
        objects = []
        for value, title, figure in ((1, "car", polygon), (2, "tree", bitmap)):
            figure._draw_impl(expected, value)
            objects.append(thing(title, **figure.to_json()))
        path = write(tmp_path / f"{number}.png.json", supervisely(*objects))
        np.testing.assert_array_equal(read(path)[f"{number}.png"], expected)


def test_supervisely_is_scored_with_the_classes_of_its_project(tmp_path, capsys):
    square = thing("car", "rectangle", **outline([[0, 0], [3, 3]]))
    write(tmp_path / "ds" / "ann" / "a.jpg.json", supervisely(square, height=8, width=10))
    classes = [{"title": "car", "shape": "rectangle", "color": "#0A141E"}]
    write(tmp_path / "meta.json", {"classes": classes, "tags": []})
    pred = np.zeros((8, 10))
    pred[:4, :5] = 1
    write_masks(tmp_path / "pred", {"a": pred})
    places = str(tmp_path / "ds" / "ann" / "*.json"), str(tmp_path / "pred")
    options = "--labels", str(tmp_path / "meta.json"), "--format", "json", "--quiet"
    assert main(["score", *places, *options]) == 0
    found = json.loads(capsys.readouterr().out)["classes"][1]
    assert (found["name"], found["iou"]) == ("car", 16 / 20)


def via(*regions, **more):
    attributes = {"file_attributes": {}, "regions": list(regions)}
    return {"a.png123": {"filename": "a.png", "size": 123, **attributes, **more}}


def region(name, attributes=None, **shape):
    kept = {"class": "car"} if attributes is None else attributes
    return {"shape_attributes": {"name": name, **shape}, "region_attributes": kept}


BOX = region("rect", x=1, y=2, width=3, height=2)


def test_regions_of_via_are_on_the_photo_as_browsers_turn_it(tmp_path):
    """A photo stored with 4 rows of 6 pixels, on its side, is shown with 6 rows of 4."""
    exif = Image.Exif()
    exif[274] = 6
    Image.new("L", (6, 4)).save(tmp_path / "a.jpg", exif=exif)
    expected = np.zeros((6, 4), int)
    expected[2:4, 1:4] = 1
    found = read(write(tmp_path / "via.json", via(BOX, filename="a.jpg")))
    np.testing.assert_array_equal(found["a.jpg"], expected)


@pytest.mark.parametrize("name", ["background", "_background_", "Background", "bg"])
def test_pixels_outside_all_shapes_are_the_background(tmp_path, name):
    """Not the ignored value, whichever name of the background the label set has."""
    labels = LabelSet("x", (LabelClass("car", (1,)), LabelClass(name, (3,))), ignore=(255,))
    write_masks(tmp_path, {"a": np.zeros((1, 4))})
    box = region("rect", x=0, y=0, width=3, height=1)
    found = read(write(tmp_path / "via.json", via(box)), labels)
    assert found["a.png"].tolist() == [[1, 1, 1, 3]]


@pytest.mark.parametrize("of_project", [False, True])
def test_regions_of_via(tmp_path, of_project):
    corners = {"all_points_x": [5, 8, 8, 5], "all_points_y": [0, 0, 6, 6]}
    regions = BOX, region("polygon", {"kind": {"tree": True, "car": False}}, **corners)
    content = via(*regions)
    write_masks(tmp_path, {"a": np.zeros((7, 9))})
    if of_project:
        content = {"_via_settings": {}, "_via_img_metadata": content, "_via_attributes": {}}
    expected = np.zeros((7, 9), int)
    expected[2:4, 1:4] = 1
    expected[0:6, 5:8] = 2
    found = read(write(tmp_path / "via.json", content))
    assert found["a.png"].tolist() == expected.tolist()


def test_circles_and_ellipses_of_via_are_near_those_of_pillow(tmp_path):
    write_masks(tmp_path, {"a": np.zeros((60, 80))})
    for shape in (
        region("circle", cx=40, cy=30, r=20),
        region("ellipse", cx=40, cy=30, rx=12, ry=25, theta=np.pi / 2),
    ):
        place = shape["shape_attributes"]
        wide, tall = (20, 20) if place["name"] == "circle" else (25, 12)
        image = Image.new("L", (80, 60))
        corners = (40 - wide, 30 - tall, 40 + wide, 30 + tall)
        ImageDraw.Draw(image).ellipse(corners, fill=1)
        found = read(write(tmp_path / "via.json", via(shape)))["a.png"]
        assert (found != np.asarray(image)).mean() < 0.03


def test_via_is_scored_from_the_command_line(tmp_path, capsys):
    write_masks(tmp_path / "images", {"a": np.zeros((7, 9))})
    pred = np.zeros((7, 9))
    pred[2:4, 1:5] = 1
    write_masks(tmp_path / "pred", {"a": pred})
    path = write(tmp_path / "images" / "via.json", via(BOX))
    (tmp_path / "labels.toml").write_text(LABELS.to_toml())
    options = "--labels", str(tmp_path / "labels.toml"), "--format", "json", "--quiet"
    assert main(["score", str(path), str(tmp_path / "pred"), *options]) == 0
    assert json.loads(capsys.readouterr().out)["classes"][1]["iou"] == 6 / 8


def bitmap(data, origin=(0, 0)):
    return thing("car", "bitmap", bitmap={"data": data, "origin": list(origin)})


BOMB = base64.b64encode(zlib.compress(bytes(1 << 20))).decode()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (supervisely(thing("car", **outline([[0, 0], [float("nan"), 1], [2, 2]]))), "not a number"),
        (supervisely(thing("car", **outline([[0, 0], [1, 1]]))), "at least 3 corners"),
        (supervisely(thing("car", **outline([[0, 0]] * 3, [[1]]))), "at least 3 corners"),
        (supervisely(thing("car", "point", **outline([[0, 0]]))), "expected a bitmap, polygon or"),
        (supervisely(thing("", **outline([[0, 0]] * 3))), "expected a label, got ''"),
        (supervisely(thing("car")), "'points' is missing"),
        (supervisely(bitmap("?")), "not a base64 PNG"),
        (supervisely(bitmap("abc")), "not a base64 PNG: Incorrect padding"),
        (
            supervisely(bitmap(packed([[1]]), (float("inf"), 0))),
            "unexpected structure",
        ),
        (supervisely(bitmap(BOMB)), "not a base64 PNG"),
        (supervisely(bitmap(packed(np.ones((41, 1))))), r"1 × 41 from \(0, 0\), is outside"),
        (supervisely(bitmap(packed([[1]]), (-1, 0))), r"from \(-1, 0\), is outside"),
        (supervisely(bitmap(packed([[1]]), ("x", 0))), "invalid literal"),
        (supervisely(3), "expected an object, got 3"),
        (supervisely(height=-1), "invalid size"),
        ({"objects": [], "size": 3}, "invalid size"),
        (via(BOX, filename="b.png"), "b.png does not exist; put the image next to"),
        (via(BOX, filename=3), "an image has filename 3"),
        (via(region("line", all_points_x=[0], all_points_y=[1])), "unsupported shape 'line'"),
        (via(region("polygon", all_points_x=[0, 1], all_points_y=[1])), "has 2 x and 1 y"),
        (via(region("circle", cx=0, cy=0, r=1e300)), "far outside"),
        (via(region("rect", x=0, y=0, width=float("nan"), height=1)), "not a number"),
        (via(region("rect", x=0)), "'y' is missing"),
        (
            via(region("rect", {"a": "x", "b": "y"}, x=0, y=0, width=1, height=1)),
            "exactly one attribute",
        ),
        ({**via(BOX), **{"b": via(BOX)["a.png123"]}}, "contains the image 'a.png' twice"),
        ([3], "is not a supported annotation file|is missing"),
    ],
)
def test_objects_and_regions_with_faults_are_named(tmp_path, content, words):
    write_masks(tmp_path, {"a": np.zeros((40, 40))})
    path = write(tmp_path / "export.json", content)
    with pytest.raises((MaskError, ValueError), match=words) as caught:
        read(path)
    assert str(caught.value).startswith(str(path))


def test_segmentation_masks_of_cvat(tmp_path):
    """SegmentationClass with colours, SegmentationObject, ImageSets, labelmap.txt."""
    colors = np.array([[0, 0, 0], [10, 20, 30], [250, 50, 83]], np.uint8)
    truth = np.array([[0, 1, 2], [2, 1, 0]])
    for folder in ("SegmentationClass", "SegmentationObject"):
        (tmp_path / "cvat" / folder).mkdir(parents=True)
        Image.fromarray(colors[truth]).save(tmp_path / "cvat" / folder / "a.png")
    labelmap = "# label:color_rgb:parts:actions\nbackground:0,0,0::\ncar:10,20,30::\n"
    (tmp_path / "cvat" / "labelmap.txt").write_text(labelmap + "tree:250,50,83::\n")
    write_masks(tmp_path / "pred", {"a": truth})
    labels = tmp_path / "cvat" / "labelmap.txt"
    run = segiou.score_folder(tmp_path / "cvat", tmp_path / "pred", labels=labels)
    assert run.report().mean_iou == 1


@pytest.mark.parametrize("is_min", [False, True])
def test_shapes_without_a_label_are_an_error(tmp_path, is_min):
    """Label Studio's export of a polygon that got no label; it was left out."""
    points = [[0, 0], [50, 0], [50, 50]]
    size = {"original_height": 4, "original_width": 4}
    content = task({"type": "polygon", "value": {"points": points}, **size})
    if is_min:
        content = json_min("a.jpg", label=[{"points": points, **size}])
    place = open_source(write(tmp_path / "export.json", [content]))
    with pytest.raises(MaskError, match="shape 1 of 1: has a polygon without a label; label or"):
        place.read(place.find()["a.jpg"])


def test_a_shape_of_no_known_kind_is_named(tmp_path):
    path = write(tmp_path / "a.json", labelme(shape("car", [[0, 0], [1, 1]], ["polygon"])))
    with pytest.raises(MaskError, match="shape 1 of 1: unexpected structure"):
        read(path)


def test_keys_that_occur_twice_are_an_error(tmp_path):
    path = tmp_path / "a.json"
    path.write_text('{"shapes": [1], "shapes": [], "imageHeight": 8, "imageWidth": 8}')
    with pytest.raises(ValueError, match=r"a.json: is not valid JSON: key 'shapes' occurs 2 times"):
        read(path)


@pytest.mark.parametrize("form", ["coco", "via", "cvat", "table"])
def test_images_that_differ_in_their_extension_are_not_left_out(tmp_path, form):
    """As files, ``a.jpg`` would be the photo of the mask ``a.png``."""
    names = ("a.jpg", "a.png")
    place = tmp_path / "export.json"
    if form == "coco":
        images = [{"id": i, "file_name": n, "height": 2, "width": 2} for i, n in enumerate(names)]
        write(place, {"images": images, "annotations": []})
    elif form == "via":
        write(place, {n: {"filename": n, "regions": []} for n in names})
    elif form == "cvat":
        place = tmp_path / "a.xml"
        images = "".join(f'<image name="{n}" width="2" height="2"/>' for n in names)
        place.write_text(f"<annotations>{images}</annotations>")
    else:
        place = tmp_path / "a.csv"
        place.write_text("id,rle,height,width\n" + "".join(f"{n},,2,2\n" for n in names))
    write_masks(tmp_path / "pred", {"a": np.zeros((2, 2))})
    with pytest.raises(DataError, match=r"a.jpg: has the same key as another file.*a.png"):
        segiou.score_folder(place, tmp_path / "pred", labels=LABELS)
