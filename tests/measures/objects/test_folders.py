"""Objects of folders of masks, in the formats that hold them: counted, kept, compared."""

from __future__ import annotations

import importlib
import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from coco_files import VOID, write_coco
from PIL import Image

import segiou
from segiou.labels import load_labels
from segiou.masks import open_source
from segiou.measures import Parts
from segiou.measures.objects import ObjectOptions
from segiou.report import write_html
from segiou.report.pages.picture_masks import read_indices, reader_of
from segiou.runs.database import checksum
from segiou.scoring import DataError

STREETS = Path(__file__).parents[3] / "fixtures" / "streets"
THINGS = ("tree", "car", "pole", "sign", "person", "bicycle")


@pytest.fixture(scope="session")
def coco(tmp_path_factory):
    """The street scenes as COCO has them: truth with a crowd in each image, and two models."""
    root = tmp_path_factory.mktemp("coco")
    labels = load_labels(STREETS / "labels.toml")
    for side, crowd in (("truth", 2), ("model_a", None), ("model_b", None)):
        masks = {path.stem: path for path in sorted((STREETS / side).glob("*.png"))}
        write_coco(root / side, masks, labels, things=THINGS, crowd=crowd)
    return root


def coco_run(coco, model, **options):
    return segiou.score_folder(
        coco / "truth",
        coco / model,
        labels=coco / "truth.json",
        unassigned="count",
        objects=ObjectOptions("coco", things=THINGS),
        **options,
    )


def test_the_files_of_coco_are_scored_as_panopticapi_does(coco, tmp_path, capsys):
    if os.environ.get("SEGIOU_REQUIRE_PEERS") != "1":
        pytest.importorskip("cityscapesscripts", reason="cityscapesScripts is not installed")
    # It has panopticapi's evaluation, line by line.
    script = importlib.import_module("cityscapesscripts.evaluation.evalPanopticSemanticLabeling")
    run = coco_run(coco, "model_a", run=tmp_path / "a.sqlite")
    truth, pred = (json.loads((coco / f"{s}.json").read_text()) for s in ("truth", "model_a"))
    pairs = list(zip(truth["annotations"], pred["annotations"], strict=True))
    categories = {entry["id"]: entry for entry in truth["categories"]}
    theirs = script.pq_compute_single_core(
        0, pairs, str(coco / "truth"), str(coco / "model_a"), categories
    )
    for part, is_thing in (("all", None), ("things", True), ("stuff", False)):
        expected = theirs.pq_average(categories, is_thing)[0]
        found = run.counts_of("objects").panoptic_quality(part)
        expected["classes"] = expected.pop("n")
        assert found == pytest.approx(expected, rel=1e-12)
    expected = [[theirs[c].tp, theirs[c].fp, theirs[c].fn] for c in categories]
    assert run.counts_of("objects").detections.tolist() == expected
    assert run.counts_of("objects").things.tolist() == [
        bool(c["isthing"]) for c in categories.values()
    ]


def write_panoptic(root, name, ids, segments, categories):
    (root / name).mkdir()
    pixels = np.stack([ids, np.zeros_like(ids), np.zeros_like(ids)], -1).astype(np.uint8)
    Image.fromarray(pixels).save(root / name / "x.png")
    segments = [{"id": i, "category_id": c, "iscrowd": crowd} for i, c, crowd in segments]
    entry = {"image_id": 1, "file_name": "x.png", "segments_info": segments}
    named = [{"id": c, "name": f"c{c}", "isthing": 0} for c in categories]
    (root / f"{name}.json").write_text(json.dumps({"annotations": [entry], "categories": named}))


def read_any(path):
    return open_source(path).read(path)[0]


def panoptic_run(root, **options):
    sides = root / "truth", root / "pred"
    return segiou.score_folder(
        *sides, labels=root / "truth.json", unassigned="count", objects="coco", **options
    )


def test_void_is_not_category_0_of_the_other_file(tmp_path):
    ids = np.array([[1, 1, 2, 2]])
    write_panoptic(tmp_path, "truth", ids, [(1, 0, 0), (2, 1, 0)], (0, 1))
    write_panoptic(tmp_path, "pred", ids * (ids == 2), [(2, 1, 0)], (1,))
    assert panoptic_run(tmp_path).counts_of("objects").panoptic_quality()["pq"] == 0.5


def test_annotations_of_both_sides_are_checked_at_any_size(tmp_path):
    for side, size in (("truth", 2), ("pred", 4)):
        write_panoptic(tmp_path, side, np.full((size, size), 3), [(1, 0, 0)], (0, 1))
    with pytest.raises(DataError, match="segment ids missing from its annotation: 3"):
        panoptic_run(tmp_path, resize_pred="nearest")
    Image.fromarray(np.full((2, 2, 3), (3, 0, 0), np.uint8)).save(tmp_path / "pred" / "x.png")
    with pytest.raises(DataError) as caught:
        panoptic_run(tmp_path)
    assert [Path(one.where).parent.name for one in caught.value.problems] == ["pred", "truth"]


@pytest.mark.few(5)
@pytest.mark.parametrize("of_pred", [(0, 1), (1,)])
@pytest.mark.parametrize("of_truth", [(0, 1), (1,)])
@pytest.mark.parametrize(("ending", "objects"), [("", "coco"), (".json", "coco"), (".json", None)])
def test_id_0_is_void_whichever_file_lists_category_0(tmp_path, of_truth, of_pred, ending, objects):
    names = [{"id": 0, "name": "c0"}, {"id": 1, "name": "c1"}]
    (tmp_path / "labels.json").write_text(json.dumps(names))
    t, p = of_truth[0], of_pred[0]
    write_panoptic(tmp_path, "truth", np.array([[0, 1, 1, 1, 2]]), [(1, t, 0), (2, 1, 0)], of_truth)
    write_panoptic(tmp_path, "pred", np.array([[1, 1, 1, 0, 2]]), [(1, p, 0), (2, 1, 0)], of_pred)
    sides = [f"{tmp_path / side}{ending}" for side in ("truth", "pred")]
    how = {"labels": tmp_path / "labels.json", "unassigned": "count", "objects": objects}
    run = segiou.score_folder(*sides, **how)
    pixels = np.zeros((2, 3), int)
    np.add.at(pixels, ([t, t, t, 1], [p, p, 2, 1]), 1)
    total = run.total()
    assert np.column_stack([total.matrix, total.unassigned]).tolist() == pixels.tolist()
    assert total.ignored == 1
    truth, pred = (f"{side}/x.png" for side in sides)
    plan = run.plan("objects")
    drawers = [plan] if plan else []
    masks = read_indices(truth, [pred], [reader_of(run, read_any)], drawers=drawers)
    assert [array.tolist() for array in masks.arrays] == [[[2, t, t, t, 1]], [[p, p, p, 3, 1]]]
    if objects:
        # Of 3 pixels outside void 2 match, enough if the categories agree.
        found = np.zeros((2, 3), int)
        for outcome in [(1, 0), *([(t, 0)] if t == p else [(t, 2), (p, 1)])]:
            found[outcome] += 1
        assert run.counts_of("objects").detections.tolist() == found.tolist()


def test_undeclared_categories_are_named(tmp_path):
    ids = np.array([[1, 1, 2, 2]])
    write_panoptic(tmp_path, "truth", ids, [(1, 5, 0), (2, 6, 0)], (5, 6))
    write_panoptic(tmp_path, "pred", ids, [(1, 1005, 0), (2, 1006, 0)], (1005, 1006))
    with pytest.raises(ValueError, match="undeclared categories: 1005 and 1006"):
        panoptic_run(tmp_path)


def test_each_segment_of_stuff_is_matched_and_crowds_of_stuff_are_forgiven(tmp_path):
    """As panopticapi has it: two segments of grass, one found; water is a crowd."""
    truth = np.array([[1, 1, 2, 2, 3, 3]])
    pred = np.array([[1, 1, 0, 0, 3, 3]])
    write_panoptic(tmp_path, "truth", truth, [(1, 5, 0), (2, 5, 0), (3, 6, 1)], (5, 6))
    write_panoptic(tmp_path, "pred", pred, [(1, 5, 0), (3, 6, 0)], (5, 6))
    # Per class TP, FP, FN.
    assert panoptic_run(tmp_path).counts_of("objects").detections.tolist() == [[1, 0, 1], [0, 0, 0]]


def test_the_annotations_are_a_place_too(coco):
    run = segiou.score_folder(
        coco / "truth.json",
        coco / "model_a.json",
        labels=coco / "truth.json",
        unassigned="count",
        objects="coco",  # things are what its categories say
    )
    found = coco_run(coco, "model_a")
    assert run.counts_of("objects") == found.counts_of("objects")
    assert run.total() == found.total()
    assert len(run.ids) == 6


def test_a_label_file_without_categories_names_no_things(coco, tmp_path):
    names = load_labels(coco / "truth.json").class_names
    (tmp_path / "config.json").write_text(json.dumps({"id2label": dict(enumerate(["", *names]))}))
    found = ObjectOptions("coco").with_things_of(tmp_path / "config.json")
    assert found.things is None
    assert ObjectOptions("coco").with_things_of(coco / "truth.json").things == THINGS


def test_objects_are_kept_merged_compared_and_given_intervals(coco, tmp_path):
    a, b = (coco_run(coco, f"model_{x}", run=tmp_path / f"{x}.sqlite") for x in "ab")
    again = segiou.Run.open(tmp_path / "a.sqlite")
    assert again.counts_of("objects") == a.counts_of("objects")
    assert again.plan("objects").measure == ObjectOptions("coco", things=THINGS)
    halves = [coco_run(coco, "model_a", shard=(i, 2)) for i in (1, 2)]
    assert halves[0].merge(halves[1]).counts_of("objects") == a.counts_of("objects")
    found = segiou.compare(again, b, metric="pq", resamples=50, permutations=50)
    means = [run.counts_of("objects").panoptic_quality()["pq"] for run in (a, b)]
    overall = found.pairs[0].overall
    assert [overall.a, overall.b] == pytest.approx(means, abs=1e-9)
    interval = again.intervals("pq", resamples=50).overall
    assert interval.low <= means[0] <= interval.high
    for metric in ("pq", "sq", "rq"):
        for protocol in ("segiou", "ade20k", "detectron2"):
            value = again.intervals(metric, resamples=50, protocol=protocol).overall.value
            assert value == pytest.approx(
                a.counts_of("objects").panoptic_quality()[metric], abs=1e-9
            )


def test_a_class_without_a_match_has_an_sq_of_0_in_tables_and_intervals():
    truth, pred = np.array([[[0, 0, 1, 1]]] * 2), np.array([[[0, 0, 2, 2]]] * 2)
    run = segiou.score(truth, pred, labels=4, objects=True)
    np.testing.assert_array_equal(run.counts_of("objects").sq(), [1, 0, 0, np.nan])
    for name, mean in run.counts_of("objects").panoptic_quality().items():
        if name != "classes":
            assert run.intervals(name, resamples=20).overall.value == mean == 1 / 3


def test_objects_of_one_image_stand_with_its_boundaries(coco):
    alone = coco_run(coco, "model_a")
    both = coco_run(coco, "model_a", boundary=True)
    boundaries = segiou.score_folder(
        coco / "truth",
        coco / "model_a",
        labels=coco / "truth.json",
        unassigned="count",
        objects="coco",
        boundary=True,
    )
    assert both.counts_of("objects") == alone.counts_of("objects")
    assert (both.counts_of("boundary").table == boundaries.counts_of("boundary").table).all()
    found = sum(
        (both.select([id]).counts_of("objects") for id in both.ids),
        alone.counts_of("objects").empty(),
    )
    assert found == alone.counts_of("objects")


def with_categories(file, changed):
    """The annotations with the categories of the first segments of some images changed."""
    found = json.loads(file.read_text())
    for entry in found["annotations"]:
        for segment, category in zip(
            entry["segments_info"], changed.get(entry["image_id"], ()), strict=False
        ):
            segment["category_id"] = category
    file.write_text(json.dumps(found))


@pytest.mark.parametrize("unassigned", ["count", "error"])
def test_pairs_that_are_counted_together_have_their_own_problems(coco, tmp_path, unassigned):
    labels = load_labels(STREETS / "labels.toml")
    masks = {path.stem: path for path in sorted((STREETS / "truth").glob("*.png"))}
    wrong = sorted(masks)[1::2]
    for side in ("truth", "pred"):
        write_coco(tmp_path / side, masks, labels, things=THINGS)
    with_categories(tmp_path / "pred.json", {id: (70 + i,) for i, id in enumerate(wrong)})
    options = {"labels": coco / "truth.json", "objects": "coco", "unassigned": unassigned}
    options["ignore"] = 0
    run = segiou.score_folder(
        tmp_path / "truth", tmp_path / "pred", on_error="skip", workers=1, **options
    )
    problems = {Path(problem.where).stem: problem.text for problem in run.skipped}
    assert {*run.ids} == {*masks} - {*wrong} and sorted(problems) == wrong
    for i, id in enumerate(wrong):
        assert str(70 + i) in problems[id]
    for id in run.ids:
        paths = [tmp_path / side / f"{id}.png" for side in ("truth", "pred")]
        alone = segiou.score_folder(*paths, **options)
        assert run.select([id]).counts_of("objects") == alone.counts_of("objects")
        assert run.select([id]).total() == alone.total()


def test_without_annotations(coco, tmp_path):
    with pytest.raises(ValueError, match="arrays have no 'coco' object ids"):
        segiou.score([[0, 1]], [[0, 1]], labels=2, objects="coco")
    for source, problem in (
        ("kitti", "PNG with one channel; --objects kitti expects a .label file"),
        ("coco", "requires COCO annotations"),
    ):
        with pytest.raises(DataError, match=problem):
            segiou.score_folder(STREETS / "truth", STREETS / "model_a", labels=2, objects=source)
    colours = coco / "truth", coco / "model_a"
    with pytest.raises(DataError, match="is a PNG with colours; --objects cityscapes expects"):
        segiou.score_folder(*colours, labels=2, objects="cityscapes")
    with pytest.raises(DataError, match="pass objects='coco'"):
        segiou.score_folder(*colours, labels=coco / "truth.json", objects=True)
    with pytest.raises(DataError, match=r"requires COCO annotations; .* does not exist"):
        segiou.score_folder(STREETS / "truth", STREETS / "model_a", labels=2, objects="coco")
    Image.fromarray(np.zeros((2, 2, 3), np.uint8)).save(tmp_path / "x.png")
    truth = coco / "truth" / "north_0001.png"
    with pytest.raises(DataError, match=r"requires COCO annotations; .* does not exist"):
        segiou.score_folder(truth, tmp_path / "x.png", labels=2, objects="coco")


def test_two_files_of_coco_have_the_annotations_beside_their_folders(coco):
    first = [coco / side / "north_0001.png" for side in ("truth", "model_a")]
    options = {"labels": coco / "truth.json", "unassigned": "count", "objects": "coco"}
    assert segiou.score_folder(*first, **options).counts_of("objects") == coco_run(
        coco, "model_a"
    ).select(["north_0001"]).counts_of("objects")


@pytest.mark.parametrize("ending", ["", ".json"])
@pytest.mark.parametrize("changed", ["pred.json", "pred/x.png"])
def test_what_is_scored_already_is_read_again_if_a_file_of_coco_changes(tmp_path, ending, changed):
    Image.fromarray(np.array([[0, 0, 1]], np.uint8)).save(tmp_path / "mask.png")
    for side in ("truth", "pred"):
        masks = {"x": tmp_path / "mask.png"}
        write_coco(tmp_path / side, masks, load_labels(["a", "b"]), things=())
    sides = [tmp_path / f"{side}{ending}" for side in ("truth", "pred")]
    options = {"labels": tmp_path / "truth.json", "objects": "coco"}
    first = segiou.score_folder(*sides, **options, run=tmp_path / "a.sqlite").counts_of("objects")
    if changed == "pred.json":
        found = json.loads((tmp_path / changed).read_text())
        found["annotations"][0]["segments_info"][0]["category_id"] = 2
        (tmp_path / changed).write_text(json.dumps(found))
    else:
        pixels = np.asarray(Image.open(tmp_path / changed))
        Image.fromarray(pixels[:, ::-1]).save(tmp_path / changed)
    again = segiou.score_folder(*sides, **options, run=tmp_path / "a.sqlite")
    assert (
        again.counts_of("objects")
        == segiou.score_folder(*sides, **options).counts_of("objects")
        != first
    )


@pytest.mark.parametrize("place", ["folder", "file"])
def test_masks_of_coco_may_lie_in_subfolders_and_are_drawn(tmp_path, place):
    Image.fromarray(np.array([[0, 0, 1]], np.uint8)).save(tmp_path / "mask.png")
    for side in ("truth", "pred"):
        masks = {"x": tmp_path / "mask.png"}
        write_coco(tmp_path / side, masks, load_labels(["a", "b"]), things=())
        if place == "folder":
            (tmp_path / side / "sub").mkdir()
            (tmp_path / side / "x.png").rename(tmp_path / side / "sub" / "x.png")
        else:
            file = tmp_path / f"{side}.json"
            file.write_text(file.read_text().replace("x.jpg", "sub/x.jpg"))
    sides = [tmp_path / side for side in ("truth", "pred")]
    if place == "file":
        sides = [side.with_suffix(".json") for side in sides]
    run = segiou.score_folder(*sides, labels=tmp_path / "truth.json", objects="coco")
    assert run.counts_of("objects").tp.tolist() == [1, 1]
    read = {"read": lambda path: open_source(path).read(path)[0]}
    page = write_html(tmp_path / "page.html", run.report(), run=run, **read).read_text()
    assert "data:image/png" in page and "No pictures:" not in page


@pytest.mark.parametrize("dtype", [np.int64, np.uint8])
def test_scores_and_masked_pixels_of_arrays(dtype):
    truth = np.array([[[0, 1, 1, 0]]], dtype)
    scores = np.eye(2)[[[[0, 1, 1, 1]]]]
    run = segiou.score(truth, scores, labels=2, argmax=-1, objects=True)
    assert run.counts_of("objects").detections.tolist() == [[1, 0, 1], [1, 0, 0]]
    mask = np.array([[[True, True, True, False]]])
    run = segiou.score(truth, scores, labels=2, argmax=-1, objects=True, mask=mask)
    assert run.counts_of("objects").detections.tolist() == [[1, 0, 0], [1, 0, 0]]
    assert run.counts_of("objects").pq().tolist() == [1, 1]


@pytest.mark.parametrize(
    ("pred", "how"), [(np.eye(3)[[[[0, 1, 1, 2]]]], {"argmax": -1}), ([[[1, 2, 2, 0]]], {})]
)
def test_objects_have_their_class_whatever_the_order_of_the_predicted_labels(pred, how):
    labels, other = ({n: i for i, n in enumerate(names)} for names in ("abc", "cab"))
    objects = ObjectOptions(things=("a", "b"))
    options = {"labels": labels, "pred_labels": other, "objects": objects, **how}
    run = segiou.score([[[0, 1, 1, 2]]], pred, **options)
    assert run.counts_of("objects").detections.tolist() == [[1, 0, 0], [1, 0, 0], [1, 0, 0]]
    assert run.total().matrix.tolist() == [[1, 0, 0], [0, 2, 0], [0, 0, 1]]


def test_the_row_of_means_says_that_its_counts_are_sums():
    report = segiou.score([[[0, 1]]], [[[0, 1]]], labels=2, objects=True).report()
    assert "mean over 2 classes; found, missed and false positive are totals" in " ".join(
        str(report).split()
    )


def test_intervals_have_the_mean_of_the_table_where_absent_classes_count_0():
    images = [np.array([[0, 0, 1, 1]]), np.array([[1, 1, 0, 0]])]
    objects = ObjectOptions(protocol="semantickitti")
    run = segiou.score(images, images, labels=4, objects=objects)
    assert run.counts_of("objects").panoptic_quality()["pq"] == 0.5
    assert run.intervals("pq", groups="none").overall.value == 0.5
    assert (
        segiou.compare(run, run, metric="pq", groups="none", resamples=20).pairs[0].overall.a == 0.5
    )


def test_what_is_not_measured_is_said(coco):
    run = segiou.score([[0, 1]], [[0, 1]], labels=2)
    with pytest.raises(ValueError, match=r"no object counts; rescore with measures=..objects"):
        run.intervals("pq")
    other = coco_run(coco, "model_b")
    alike = segiou.score_folder(
        coco / "truth",
        coco / "model_b",
        labels=coco / "truth.json",
        unassigned="count",
        objects=ObjectOptions("coco", things=("car",)),
    )
    with pytest.raises(
        ValueError, match=r"with things \[.*\] in model_b \(A\) but things \['car'\] in"
    ):
        segiou.compare(other, alike, metric="pq")
    with pytest.raises(ValueError, match="objects are"):
        other.merge(alike)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"objects": "voc"}, ValueError, "source must be 'components', 'coco'"),
        ({"objects": 3}, TypeError, "objects must be ObjectOptions, a source's name"),
        ({"objects": True, "labels": 1.5}, TypeError, "labels"),
    ],
)
def test_wrong_options_are_named(options, error, message):
    with pytest.raises(error, match=message):
        segiou.score_folder("truth", "pred", **{"labels": 2, **options})
    with pytest.raises(ValueError, match="protocol must be"):
        ObjectOptions(protocol="voc")
    with pytest.raises(TypeError, match="protocol must be"):
        ObjectOptions(protocol=np.zeros(0))
    with pytest.raises(ValueError, match="apply to components only; files of source 'coco'"):
        ObjectOptions("coco", min_size=5)
    with pytest.raises(TypeError, match="things must be names of classes, such as"):
        ObjectOptions(things="car")
    assert ObjectOptions(things=["car"]) == ObjectOptions(things=("car",))


@pytest.mark.parametrize(
    ("match", "cut", "message"),
    [
        ([9, 1, 1], None, "unknown class"),
        ([0, 3, 2], None, "impossible numbers"),
        ([0, 0, 2], None, "unknown class"),
        ([0, 1, 2], None, "impossible numbers"),  # IoU of one half is no match
        ([0, 2, 2], -1, "is truncated"),
    ],
)
def test_damaged_counts_of_objects_are_refused(tmp_path, match, cut, message):
    run = segiou.score([[0, 0]], [[0, 0]], labels=1, objects=True)
    run.save(tmp_path / "a.sqlite")
    (packed,) = Parts.of(run.plans[0].layout, detections=[[1, 0, 0]], overlaps=[match]).pack()
    packed = packed[:cut]
    with closing(sqlite3.connect(tmp_path / "a.sqlite")) as file, file:
        values = (packed, checksum("0", packed))
        file.execute("UPDATE image SET measured = ?, measured_crc = ?", values)
    with pytest.raises(segiou.runs.RunFileError, match=message):
        segiou.Run.open(tmp_path / "a.sqlite").counts_of("objects")


def test_things_have_a_match_for_each_found_object_whatever_the_rule_for_stuff():
    objects = ObjectOptions(things=("a",), protocol="torchmetrics-modified")
    (plan,) = segiou.score([[0, 1]], [[0, 1]], labels=["a", "b"], objects=objects).plans
    of_stuff = {"detections": [[1, 0, 0], [2, 0, 0]], "overlaps": [[0, 3, 4], [1, 1, 4]]}
    plan.check(Parts.of(plan.layout, **of_stuff))
    for wrong in ([[0, 2, 4]], []):  # IoU of one half, and no match of the found object
        with pytest.raises(ValueError, match="impossible numbers"):
            plan.check(Parts.of(plan.layout, **of_stuff | {"overlaps": wrong}))


def test_categories_that_begin_at_0_leave_no_segment_another_value(tmp_path):
    Image.fromarray(np.array([[0, 0, 0, VOID, 1]], np.uint8)).save(tmp_path / "mask.png")
    for side in ("truth", "pred"):
        masks = {"x": tmp_path / "mask.png"}
        write_coco(tmp_path / side, masks, load_labels(["a", "b"]), things=())
        file = tmp_path / f"{side}.json"
        found = json.loads(file.read_text())
        for entry in found["categories"]:
            entry["id"] -= 1
        for segment in found["annotations"][0]["segments_info"]:
            segment["category_id"] -= 1
        file.write_text(json.dumps(found))
    run = segiou.score_folder(
        tmp_path / "truth", tmp_path / "pred", labels=tmp_path / "truth.json", objects="coco"
    )
    assert run.total().matrix.tolist() == [[3, 0], [0, 1]]
    assert run.total().ignored == 1
    assert run.counts_of("objects").overlaps.tolist() == [[0, 3, 3, 1], [1, 1, 1, 1]]


def test_ids_of_a_resized_prediction_are_resized_with_it(tmp_path):
    small = np.array([[7, 26001, 26002]], np.uint16)
    for side, values in (("truth", np.kron(small, np.ones((2, 2), np.uint16))), ("pred", small)):
        (tmp_path / side).mkdir()
        Image.fromarray(values).save(tmp_path / side / "x.png")
    run = segiou.score_folder(
        tmp_path / "truth",
        tmp_path / "pred",
        labels="cityscapes",
        objects="cityscapes",
        resize_pred="nearest",
    )
    road, car = (run.labels.index(name) for name in ("road", "car"))
    assert run.counts_of("objects").overlaps.tolist() == [[road, 4, 4, 1], [car, 4, 4, 2]]
