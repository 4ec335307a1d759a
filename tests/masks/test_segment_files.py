"""Masks of many images in one JSON file, held against pycocotools."""

from __future__ import annotations

import json

import numpy as np
import pytest
from mask_files import required
from PIL import Image

import segiou
from segiou import MaskError
from segiou.cli.main import main
from segiou.masks import open_source
from segiou.masks.formats.drawing import MOST_PIXELS, Painting, run_lengths
from segiou.masks.read import from_bytes
from segiou.report.pages.picture_masks import read_indices, reader_of
from segiou.scoring import DataError

TRUTH = {
    "a": np.array([[7, 7, 9], [9, 9, 9]], np.uint8),
    "b": np.array([[7, 7], [7, 9], [9, 9]], np.uint8),
}
PRED = {
    "a": np.array([[7, 9, 9], [9, 9, 9]], np.uint8),
    "b": np.array([[7, 7], [7, 7], [9, 9]], np.uint8),
}
LABELS = segiou.LabelSet(
    "two", (segiou.labels.LabelClass("sky", (7,)), segiou.labels.LabelClass("sea", (9,)))
)
#: Of 12 pixels 5 are sky in both, 1 is sky in the truth only and 1 in the prediction only.
SKY_IOU = 4 / 6


def runs(mask):
    """Run lengths, column by column, of a mask of truth values."""
    flat = mask.T.ravel().astype(int)
    edges = np.flatnonzero(np.diff(flat, prepend=0)).tolist()
    return np.diff([0, *edges, flat.size]).tolist()


def segments(masks, name_of):
    return [
        {
            **name_of(stem),
            "category_id": int(value),
            "segmentation": {"size": list(mask.shape), "counts": runs(mask == value)},
        }
        for stem, mask in masks.items()
        for value in np.unique(mask)
    ]


def write(path, content):
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def read_any(path):
    return open_source(path).read(path)[0]


def read(path):
    source = open_source(path)
    return {
        name: from_bytes(source.read(where)[0], where).values
        for name, where in source.find().items()
    }


@pytest.fixture
def truth(tmp_path):
    (tmp_path / "truth").mkdir()
    for stem, mask in TRUTH.items():
        Image.fromarray(mask).save(tmp_path / "truth" / f"{stem}.png")
    return tmp_path / "truth"


def test_packed_run_lengths():
    assert run_lengths("1310").tolist() == [1, 3, 1, 3]
    assert run_lengths("").tolist() == []


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
def test_segments_are_those_of_pycocotools():
    coco = required("pycocotools.mask")
    rng = np.random.default_rng(0)
    for case in range(200):
        height, width = (int(n) for n in rng.integers(1, 40, 2))
        corners = rng.random((rng.integers(3, 9), 2)) * [1.4 * width, 1.4 * height] - 4
        corners = np.round(corners) if case % 3 == 0 else corners
        polygons = [corners.ravel().tolist()]
        packed = coco.frPyObjects(polygons, height, width)[0]
        expected = coco.decode(packed)
        text = {"size": packed["size"], "counts": packed["counts"].decode()}
        for segmentation in (polygons, text):
            painting = Painting((height, width), 0, np.uint8)
            painting.add(segmentation, 1)
            np.testing.assert_array_equal(painting.mask, expected)


def test_predictions_of_detectron2_from_the_command_line(tmp_path, truth, capsys):
    items = segments(PRED, lambda stem: {"file_name": f"/data/val/{stem}.jpg"})
    pred = write(tmp_path / "sem_seg_predictions.json", items)
    toml = tmp_path / "two.toml"
    toml.write_text(LABELS.to_toml(), encoding="utf-8")
    args = ["score", str(truth), str(pred), "--labels", str(toml), "--format", "json", "--quiet"]
    assert main(args) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["classes"][0]["iou"] == pytest.approx(SKY_IOU)


def test_results_of_coco_are_paired_by_the_number_in_a_file_name(tmp_path):
    folder = tmp_path / "truth"
    folder.mkdir()
    ids = {"a": 139, "b": 2}
    for stem, mask in TRUTH.items():
        Image.fromarray(mask).save(folder / f"COCO_{ids[stem]:012d}.png")
    pred = write(tmp_path / "p.json", segments(PRED, lambda stem: {"image_id": ids[stem]}))
    run = segiou.score_folder(folder, pred, labels=LABELS)
    assert run.ids == ("COCO_000000000002", "COCO_000000000139")
    assert run.report().classes[0].iou == pytest.approx(SKY_IOU)


def annotations(masks):
    ids = {"a": 5, "b": 6}
    return {
        "images": [
            {"id": ids[s], "file_name": f"x/{s}.jpg", "height": m.shape[0], "width": m.shape[1]}
            for s, m in masks.items()
        ],
        "annotations": segments(masks, lambda stem: {"image_id": ids[stem]}),
        "categories": [{"id": 7, "name": "sky"}, {"id": 9, "name": "sea"}],
    }


def test_annotations_and_results_are_paired_by_the_id_of_the_image(tmp_path):
    truth = write(tmp_path / "truth.json", annotations(TRUTH))
    items = segments(PRED, lambda stem: {"image_id": {"a": 5, "b": 6}[stem]})
    pred = write(tmp_path / "pred.json", items)
    file = tmp_path / "run.sqlite"
    for processes in (None, 2):
        run = segiou.score_folder(truth, pred, labels=LABELS, run=file, processes=processes)
        assert run.ids == ("x/a", "x/b")
        assert run.report().classes[0].iou == pytest.approx(SKY_IOU)


def test_pixels_in_no_segment(tmp_path):
    part = {"size": [1, 2], "counts": [0, 1, 1]}
    coco = [{"image_id": 1, "category_id": 3, "segmentation": part}]
    assert read(write(tmp_path / "a.json", coco))["1"].tolist() == [[3, 0]]
    coco[0]["category_id"] = 0
    assert read(write(tmp_path / "b.json", coco))["1"].tolist() == [[0, 255]]
    detectron2 = [{"file_name": "i.png", "category_id": 3, "segmentation": part}]
    assert read(write(tmp_path / "c.json", detectron2))["i.png"].tolist() == [[3, 255]]
    detectron2[0]["category_id"] = 255
    assert read(write(tmp_path / "d.json", detectron2))["i.png"].tolist() == [[255, 65535]]


def test_the_background_of_a_label_file_is_that_of_its_masks(tmp_path):
    """With categories 0, 255 and 65535, the value outside all segments is -1 in both."""
    names = [{"id": id, "name": f"c{id}"} for id in (0, 255, 65535)]
    image = {"id": 1, "file_name": "x.png", "height": 1, "width": 2}
    where = {"image_id": 1, "segmentation": {"size": [1, 2], "counts": [1, 1]}}
    content = {"images": [image], "categories": names, "annotations": [where | {"category_id": 0}]}
    truth = write(tmp_path / "truth.json", content)
    assert read(truth)["x.png"].tolist() == [[-1, 0]]
    pred = write(tmp_path / "pred.json", content)
    assert segiou.score_folder(truth, pred, labels=truth).total().matrix.trace() == 2


def test_background_of_results_is_that_of_their_truth(tmp_path):
    """Results that lack category 0 read 0 outside their objects, where the truth has 255."""

    def parts(category, *counts):
        where = {"size": [1, 4], "counts": counts}
        return {"image_id": 1, "category_id": category, "segmentation": where}

    names = [{"id": 0, "name": "a"}, {"id": 1, "name": "b"}]
    image = {"id": 1, "file_name": "x.jpg", "height": 1, "width": 4}
    content = {"images": [image], "categories": names}
    content["annotations"] = [parts(0, 0, 1, 3), parts(1, 1, 2, 1)]
    truth = write(tmp_path / "truth.json", content)
    pred = write(tmp_path / "pred.json", [parts(1, 1, 1, 2)])
    run = segiou.score_folder(truth, pred, labels=truth)
    assert run.labels.class_names == ("background", "a", "b")
    assert run.total().matrix.tolist() == [[1, 0, 0], [1, 0, 0], [1, 0, 1]]
    masks = read_indices(f"{truth}/x.jpg", [f"{pred}/1"], [reader_of(run, read_any)])
    assert [array.tolist() for array in masks.arrays] == [[[1, 2, 2, 0]], [[0, 2, 0, 0]]]
    # The truth does not list category 0, so that 0 is its background.
    content["categories"], content["annotations"] = names[1:], [parts(1, 1, 2, 1)]
    write(truth, content)
    write(pred, [parts(0, 0, 1, 3)])
    with pytest.raises(DataError, match=r"category 0, .* add category 0"):
        segiou.score_folder(truth, pred, labels=truth)


def test_the_highest_score_is_on_top(tmp_path):
    whole = {"size": [1, 2], "counts": [0, 2]}
    items = [
        {"image_id": 1, "category_id": 1, "segmentation": whole, "score": 0.9},
        {"image_id": 1, "category_id": 2, "segmentation": whole, "score": 0.3},
    ]
    assert read(write(tmp_path / "a.json", items))["1"].tolist() == [[1, 1]]
    for item in items:
        del item["score"]
    assert read(write(tmp_path / "b.json", items))["1"].tolist() == [[2, 2]]


def test_an_image_of_annotations_without_segments_is_background(tmp_path):
    content = annotations(TRUTH)
    content["annotations"] = []
    assert not read(write(tmp_path / "a.json", content))["x/a.jpg"].any()


def panoptic(tmp_path):
    folder = tmp_path / "panoptic"
    folder.mkdir()
    ids = np.array([[0, 300, 300], [70000, 70000, 0]])
    colors = np.stack([ids % 256, ids // 256 % 256, ids // 65536], axis=-1).astype(np.uint8)
    Image.fromarray(colors).save(folder / "a.png")
    parts = [{"id": 300, "category_id": 7}, {"id": 70000, "category_id": 9, "iscrowd": 1}]
    return {
        "images": [{"id": 1, "file_name": "a.jpg"}, {"id": 2, "file_name": "b.jpg"}],
        "annotations": [{"image_id": 1, "file_name": "a.png", "segments_info": parts}],
        "categories": [{"id": 7}, {"id": 9}],
    }


def test_panoptic_pngs_give_categories(tmp_path):
    path = write(tmp_path / "panoptic.json", panoptic(tmp_path))
    assert read(path)["a.jpg"].tolist() == [[0, 7, 7], [9, 9, 0]]
    assert list(read(path)) == ["a.jpg"], "b has no annotation, and so no mask"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"segments_info": [{"id": 300, "category_id": 7}]}, "not listed in segments_info: 70000"),
        ({"file_name": "../panoptic/a.png"}, "outside the mask folder"),
        ({"file_name": "z.png"}, "does not exist"),
    ],
)
def test_panoptic_faults_are_named(tmp_path, change, words):
    content = panoptic(tmp_path)
    content["annotations"][0] |= change
    with pytest.raises(MaskError, match=words):
        read(write(tmp_path / "panoptic.json", content))


@pytest.mark.parametrize(
    ("segmentation", "words"),
    [
        ({"counts": [1, 2]}, "cover 3 of 2 pixels"),
        ({"counts": [0, 1]}, "cover 1 of 2 pixels"),
        ({"counts": [5, -3]}, "negative, or longer"),
        ({"counts": [2**62, 2**62, 2**62, 2**62, 2]}, "negative, or longer"),
        ({"counts": [2**70]}, "larger than any image"),
        ({"counts": [0, 1.5]}, "neither text nor a list of integers"),
        ({"counts": "~"}, "corrupt or truncated"),
        ({"counts": "o"}, "corrupt or truncated"),
        ({"counts": "o" * 20 + "1"}, "larger than any image"),
        ({"counts": "0é"}, "corrupt or truncated"),
        ({"counts": None}, "neither text"),
        ({"size": [9, 9], "counts": [2]}, "its size .9, 9. differs"),
        ([[0, 0, 1, float("nan"), 1, 1]], "not a number, or far outside"),
        ([[0, 0, 1, 1e300, 1, 1]], "not a number, or far outside"),
        ([[0, 0, 1, 1]], "at least 3 corners"),
        ([[0, 0, 1, 1, 1]], "at least 3 corners"),
        ([["x"] * 6], "at least 3 corners"),
        ([5], "at least 3 corners"),
    ],
)
def test_faulty_segments_are_named(tmp_path, segmentation, words):
    path = write(
        tmp_path / "a.json",
        {
            "images": [{"id": 4, "height": 1, "width": 2}],
            "annotations": [{"image_id": 4, "category_id": 3, "segmentation": segmentation}],
        },
    )
    with pytest.raises(MaskError, match=f"segment 1 of 1 \\(category 3\\).*{words}") as caught:
        read(path)
    assert caught.value.path == f"{path}/4"


def test_an_outline_without_end_is_refused():
    painting = Painting((4000, 4000), 0, np.uint8)
    with pytest.raises(ValueError, match="outline is longer"):
        painting.add([[0, 0, 4000, 4000] * 4000], 1)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ([], "is an empty list; expected at least one result or task"),
        ({"shapes": 3}, "is not a supported annotation file"),
        ({"shapes": []}, "invalid size"),
        ([{"image_id": 1}], "entry 0: 'category_id' is missing"),
        ([{"image_id": 1, "category_id": True}], "must be int, got True"),
        ([{"image_id": 1, "category_id": -1}], "category_id from 0"),
        ([{"image_id": 1, "category_id": 1, "segmentation": 3}], "must be dict or list"),
        ([{"category_id": 1}], "'image_id' is missing"),
        (["x"], "is not a supported annotation file"),
        ([{"image_id": 1, "category_id": 1, "segmentation": []}, "x"], "entry 1"),
        ([{"image_id": 1, "score": float("nan")}], "'score' must be"),
        ({"images": [], "annotations": []}, "names no images"),
        ({"annotations": []}, "'images' is missing"),
        ({"images": [{"id": 1}, {"id": 1}], "annotations": []}, "occurs twice"),
        ({"images": [{"id": 1}], "annotations": [{"image_id": 2}]}, "no image has the id 2"),
        ({"images": [{"id": 1, "height": 0, "width": 3}], "annotations": []}, "invalid size"),
        (
            {"images": [{"id": 1, "height": MOST_PIXELS, "width": 3}], "annotations": []},
            "invalid size",
        ),
    ],
)
def test_faulty_files_are_named(tmp_path, content, words):
    path = write(tmp_path / "a.json", content)
    with pytest.raises(ValueError, match=words) as caught:
        open_source(path).find()
    assert str(caught.value).startswith(str(path))


@pytest.mark.parametrize("text", ["{", "[" * 100_000, '{"a": ' + "9" * 5000 + "}", "\x00\xff"])
def test_what_is_no_json_is_refused(tmp_path, text):
    path = tmp_path / "a.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=r"is not valid JSON|nested too deep"):
        open_source(path).find()


def test_a_huge_file_is_refused_unread(tmp_path):
    path = tmp_path / "a.json"
    with path.open("wb") as file:
        file.truncate(1 << 30)
    with pytest.raises(ValueError, match="is too large"):
        open_source(path).find()


def test_sizes_that_are_not_known(tmp_path):
    item = {"image_id": 1, "category_id": 1, "segmentation": [[0, 0, 1, 0, 1, 1]]}
    with pytest.raises(MaskError, match="has no size"):
        read(write(tmp_path / "a.json", [item]))


@pytest.mark.gate
def test_too_many_annotations_of_an_image_are_refused(tmp_path):
    annotation = {"image_id": 1, "category_id": 1, "segmentation": [[0, 0, 3, 0, 3, 3]]}
    content = {
        "images": [{"id": 1, "file_name": "a.png", "height": 4, "width": 4}],
        "categories": [{"id": 1, "name": "x"}],
        "annotations": [{**annotation, "id": i} for i in range(100_000)],
    }
    (tmp_path / "a.json").write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(ValueError, match="has 100000 annotations; at most 20000 polygons"):
        open_source(tmp_path / "a.json").find()


def test_run_lengths_far_apart_and_close_together(tmp_path):
    """Runs are set one by one or at once, depending on their lengths."""
    far = {"size": [100, 4], "counts": [100, 2, 98, 1, 199]}
    close = {"size": [100, 4], "counts": [304, 1, 1, 1, 93]}
    items = [
        {"image_id": 1, "segmentation": rle, "category_id": v} for v, rle in ((1, far), (2, close))
    ]
    expected = np.zeros((100, 4), dtype=np.uint8)
    expected[[0, 1, 0], [1, 1, 2]] = 1
    expected[[4, 6], 3] = 2
    assert (read(write(tmp_path / "a.json", items))["1"] == expected).all()


def test_names_of_images_from_windows(tmp_path, truth):
    content = annotations(PRED)
    for image in content["images"]:
        image["file_name"] = image["file_name"].replace("/", "\\")
    run = segiou.score_folder(truth, write(tmp_path / "p.json", content), labels=LABELS)
    assert run.ids == ("a", "b")
    assert run.report().classes[0].iou == pytest.approx(SKY_IOU)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"height": "2"}, r"image 0: 'x/a.jpg' has an invalid size \(height, width\): \('2', 3\)"),
        ({"width": 0}, r"image 0: 'x/a.jpg' has an invalid size"),
        ({"id": "5"}, r"annotation 0: no image has the id 5$"),
        ({"id": 7}, r"annotation 0: no image has the id 5$"),
    ],
)
def test_images_with_faults_are_named(tmp_path, change, words):
    content = annotations(TRUTH)
    content["images"][0].update(change)
    with pytest.raises(ValueError, match=words):
        open_source(write(tmp_path / "t.json", content)).find()


def test_results_leave_out_images_without_objects(tmp_path):
    """The error shows what stores such an image, because ``missing='skip'`` changes the score."""
    place = write(tmp_path / "t.json", annotations(TRUTH))
    results = segments({"a": PRED["a"]}, lambda stem: {"image_id": 5})
    pred = write(tmp_path / "p.json", results)
    how = {"labels": "none=0,sky=7,sea=9"}
    with pytest.raises(DataError, match=r"no prediction; add one \(for an empty image, a result"):
        segiou.score_folder(place, pred, **how)
    empty = {"image_id": 6, "category_id": 7, "segmentation": {"size": [3, 2], "counts": [6]}}
    run = segiou.score_folder(place, write(tmp_path / "p.json", [*results, empty]), **how)
    # Sky: 1 of 2 pixels of a, 0 of 3 of b.
    assert run.total().counts.tp.tolist() == [0, 1, 4]
    with pytest.raises(ValueError, match="is an empty list; expected at least one result or task"):
        open_source(write(tmp_path / "p.json", [])).find()


def test_polygons_of_results_have_no_size(tmp_path):
    polygon = {"image_id": 5, "category_id": 7, "segmentation": [[0, 0, 1, 0, 1, 1]]}
    source = open_source(write(tmp_path / "p.json", [polygon]))
    with pytest.raises(MaskError, match="has no size, because results list none; save its segm"):
        source.read(source.find()["5"])


def test_two_panoptic_annotations_of_one_image(tmp_path):
    content = panoptic(tmp_path)
    content["annotations"] *= 2
    with pytest.raises(ValueError, match="is another annotation of the same image; keep one"):
        open_source(write(tmp_path / "panoptic.json", content)).find()
