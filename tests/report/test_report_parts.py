"""Parts of the report: pictures that can be read back, choices, confusions."""

import base64
import io
import json
import re

import numpy as np
import pytest
from hypothesis import given, strategies as st
from PIL import Image

import segiou
from segiou.analysis.gap.steps import confusion_gains
from segiou.counting import ConfusionCounts
from segiou.labels import ClassOptions
from segiou.masks.reading import Reading
from segiou.measures.scores import ScoreOptions
from segiou.report import match_images
from segiou.report.pages.confusion_part import confusion_rows, heatmap
from segiou.report.pages.image_table import ImageScores, ImageTable, choose
from segiou.report.pages.page import class_colors
from segiou.report.pages.picture_masks import Masks, PictureError, read_indices, reader_of
from segiou.report.pages.pictures import encoded_within, mask_png, read_image, score_maps
from segiou.report.pages.report_page import distribution
from segiou.runs import Columns, ImageCount
from segiou.runs.header import Header
from segiou.scoring.pair import PairScorer


def decoded(uri):
    return Image.open(io.BytesIO(base64.b64decode(uri.partition(",")[2])))


@pytest.mark.parametrize("number", [2, 19, 254, 255, 400])
def test_masks_can_be_read_back_from_their_colors(number):
    colors = class_colors(segiou.LabelSet.numbered(number))
    assert len(set(colors)) == number + 2
    indices = (np.arange(64 * 16) % (number + 2)).astype(np.uint16).reshape(16, 64)
    rgb = np.asarray(decoded(mask_png(indices, colors)).convert("RGB"))
    back = {color: index for index, color in enumerate(colors)}
    assert [back[tuple(c)] for c in rgb.reshape(-1, 3).tolist()] == indices.ravel().tolist()


@pytest.mark.parametrize("number", [4000, pytest.param(20_000, marks=pytest.mark.gate)])
def test_every_one_of_very_many_classes_has_a_color(number):
    assert len(set(class_colors(segiou.LabelSet.numbered(number)))) == number + 2


def test_colors_of_the_label_set_are_kept_where_they_differ():
    labels = segiou.load_labels("camvid")
    assert class_colors(labels)[:2] == ((128, 128, 128), (128, 0, 0))
    every = class_colors(segiou.load_labels("cityscapes"))
    assert len(set(every)) == len(every)


RESIZED = Reading(resize_pred="nearest")


def files_read(options, reading=Reading()):
    """What reads files of these classes."""
    return PairScorer(Header(options), reading=reading)


def test_pictures_shrink_until_they_fit():
    rng = np.random.default_rng(0)
    mask = rng.integers(0, 5, (300, 600)).astype(np.uint16)
    colors = class_colors(segiou.LabelSet.numbered(5))
    masks = Masks((mask[::2, ::2], mask[::2, ::2]), (300, 600))
    large = encoded_within(masks, colors, None, 10_000_000)
    small = encoded_within(masks, colors, None, 20_000)
    assert (large["width"], large["full"]) == (300, (300, 600))
    assert sum(map(len, small["masks"])) <= 20_000 < sum(map(len, large["masks"]))
    assert small["height"] == small["width"] // 2


def test_indices_know_ignored_and_unassigned(tmp_path):
    Image.fromarray(np.array([[7, 9, 255, 4]], np.uint8)).save(tmp_path / "truth.png")
    Image.fromarray(np.array([[9, 8, 7]], np.uint8)).save(tmp_path / "pred.png")
    labels = segiou.LabelSet(
        "two",
        (segiou.labels.LabelClass("a", (7,)), segiou.labels.LabelClass("b", (9,))),
        ignore=(255,),
    )
    options = ClassOptions.of(labels)
    masks = read_indices(
        str(tmp_path / "truth.png"), [str(tmp_path / "pred.png")], [files_read(options, RESIZED)]
    )
    truth, pred = masks.arrays
    assert truth.tolist() == [[0, 1, 2, 3]]
    # The prediction is brought to the truth's width, and 8 names no class.
    assert pred.tolist() == [[1, 3, 3, 0]]


def test_scores_of_the_classes_with_errors_are_drawn(tmp_path):
    for name in ("truth", "scores"):
        (tmp_path / name).mkdir()
    Image.fromarray(np.array([[0, 0, 1, 1, 9]], np.uint8)).save(tmp_path / "truth" / "a.png")
    shares = [[0.8, 0.3, 0.25, 0.1, 1], [0.15, 0.6, 0.7, 0.88, 1], [0.05, 0.1, 0.05, 0.02, np.nan]]
    np.save(tmp_path / "scores" / "a.npy", np.log(shares)[:, None])
    labels = segiou.LabelSet.from_names(["a", "b", "c"], ignore=9)
    run = segiou.score_folder(
        tmp_path / "truth", tmp_path / "scores", labels=labels, measures=[ScoreOptions("softmax")]
    )
    truth, pred = (str(tmp_path / name) for name in ("truth/a.png", "scores/a.npy"))
    masks = read_indices(truth, [pred], [reader_of(run)])
    # One pixel of a is predicted as b; c does not occur.
    assert masks.scored == (0, 1)
    drawn = [[[80, 30, 25, 10, 0]], [[15, 60, 70, 88, 0]]]
    assert masks.scores[0].tolist() == drawn
    pictures = encoded_within(masks, class_colors(labels), None, None)
    maps = score_maps(masks, pictures, None)
    assert maps["scored"] == (0, 1)
    assert [np.asarray(decoded(uri)).tolist() for uri in maps["maps"][0]] == drawn
    few = score_maps(masks, pictures, len(maps["maps"][0][0]))
    assert (few["scored"], few["maps"]) == ((0,), [maps["maps"][0][:1]])


def test_indices_of_missing_files_are_refused(tmp_path):
    options = ClassOptions.of(2)
    with pytest.raises(PictureError, match="from arrays"):
        read_indices("", [""], [files_read(options)])
    with pytest.raises(PictureError, match="does not exist"):
        read_indices(
            str(tmp_path / "gone.png"), [str(tmp_path / "gone.png")], [files_read(options)]
        )
    np.save(tmp_path / "film.npy", np.zeros((2, 2, 2, 2), np.uint8))
    path = str(tmp_path / "film.npy")
    with pytest.raises(PictureError, match=r"shape \(2, 2, 2, 2\), which cannot be drawn"):
        read_indices(path, [path], [files_read(options)])


def test_volumes_are_seen_from_the_front_and_the_top(tmp_path):
    nibabel = pytest.importorskip("nibabel")
    values = np.zeros((2, 3, 4), np.uint8)
    values[1, 2, 3] = 1  # right, front, top
    affine = np.diag([0.5, 1.0, 3.0, 1.0])
    nibabel.save(nibabel.Nifti1Image(values, affine), tmp_path / "ras.nii.gz")
    # The same with its axes to the left, the back and the top.
    turned = np.diag([-0.5, -1.0, 3.0, 1.0])
    turned[:2, 3] = 0.5, 2  # of the last voxel
    nibabel.save(nibabel.Nifti1Image(values[::-1, ::-1], turned), tmp_path / "lps.nii.gz")
    path, other = str(tmp_path / "ras.nii.gz"), str(tmp_path / "lps.nii.gz")
    reading = Reading(geometry="reorient")
    masks = read_indices(path, [other], [files_read(ClassOptions.of(2), reading)])
    truth, pred = masks.arrays
    assert (masks.full, masks.spacing) == ((4, 3, 2), (3.0, 1.0, 0.5))
    # The top plane comes first, its front row above, the right of the patient on the left.
    assert np.argwhere(truth).tolist() == [[0, 0, 0]]
    assert pred.tolist() == truth.tolist()
    colors = class_colors(segiou.LabelSet.numbered(2))
    pictures = encoded_within(masks, colors, None, None)
    assert (pictures["depth"], pictures["columns"]) == (4, 2)
    assert pictures["spacing"] == [0.5, 1.0, 3.0]
    sheet = np.asarray(decoded(pictures["masks"][0]))
    assert sheet.shape == (6, 4)
    assert np.argwhere(sheet).tolist() == [[0, 0]]


def test_planes_of_a_volume_are_reduced_and_their_pixels_grow():
    volume = np.zeros((3, 200, 200), np.uint16)
    pictures = encoded_within(
        Masks((volume[:, ::2, ::2],), (3, 200, 200), (5.0, 1.0, 1.0)),
        class_colors(segiou.LabelSet.numbered(2)),
        None,
        None,
    )
    assert (pictures["width"], pictures["depth"]) == (100, 3)
    assert pictures["spacing"] == [2.0, 2.0, 5.0]


def files_of(folder, *names):
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("L", (8, 6), 90).save(folder / name)


def test_images_go_by_id_then_name_then_beginning(tmp_path):
    files_of(tmp_path, "a/x_1.png", "b/x_1.png", "b/y_2_left.jpg", "b/y_22.png")
    (tmp_path / "b/z.txt").write_text("no image")
    found = match_images(tmp_path, ["b/x_1", "y_2", "c/x_1", "z"])
    names = {id: path.relative_to(tmp_path).as_posix() for id, path in found.files.items()}
    # Two files have the name of c/x_1, so which is meant nobody knows.
    assert names == {"b/x_1": "b/x_1.png", "y_2": "b/y_2_left.jpg"}
    assert found.missing == ("c/x_1", "z")
    assert found.others == ("a/x_1.png", "b/y_22.png")


def test_what_images_were_found_is_said(tmp_path):
    files_of(tmp_path, "a_1.png", "b_left.png", "other.png")
    assert match_images(tmp_path, ["a_1", "b"]).sentences() == []
    some, rule = match_images(tmp_path, ["b", "c", "d"]).sentences()
    assert some == (
        f"Found photos for 1 of 3 images in {tmp_path}, e.g. b_left.png for b; 2 missing, "
        "e.g. c; other files there: a_1.png and other.png."
    )
    assert rule.startswith("Photos are matched by name")
    none, _ = match_images(tmp_path, ["c"]).sentences()
    assert none.startswith(f"Found photos for 0 of 1 images in {tmp_path}; 1 missing, e.g. c")
    with pytest.raises(FileNotFoundError, match=r"gone is not a folder"):
        match_images(tmp_path / "gone", ["a_1"])


def test_images_are_read_at_a_size(tmp_path):
    Image.new("L", (80, 60), 90).save(tmp_path / "grey.jpg")
    image = read_image(tmp_path / "grey.jpg", (8, 6))
    assert (image.mode, image.size) == ("RGB", (8, 6))
    (tmp_path / "text.jpg").write_text("no picture")
    with pytest.raises(PictureError, match=r"text.jpg cannot be shown"):
        read_image(tmp_path / "text.jpg", (8, 6))


def table_of(*scores):
    """A table whose images are named by their places."""
    images = [ImageCount(str(i), np.zeros(0, int), np.zeros(0, int)) for i in range(len(scores[0]))]
    arrays = tuple(np.array(values, dtype=float) for values in scores)
    columns = (Columns.of(images),) * len(scores)
    return ImageTable(scores, ("",) * len(scores), ImageScores("mean IoU", "", arrays), columns)


@given(
    scores=st.lists(st.one_of(st.floats(0, 1), st.just(float("nan"))), max_size=40),
    number=st.integers(0, 30),
    seed=st.integers(0, 3),
)
def test_choice_takes_the_worst_and_the_best(scores, number, seed):
    chosen = choose(table_of(scores), number, (), seed)
    defined = sorted(value for value in scores if value == value)
    assert len(set(chosen)) == len(chosen) == min(number, len(scores))
    values = sorted(scores[i] for i in chosen if scores[i] == scores[i])
    # Images without a score come last.
    assert len(values) == min(number, len(defined))
    # In turn two of the worst, one of the best and one at random: some of them may be the same.
    assert values[: number // 4] == defined[: number // 4]
    if number >= 4 and values:
        assert values[-1] == defined[-1]
    assert chosen == choose(table_of(scores), number, (), seed)


def test_choice_takes_half_of_the_images_that_come_first():
    scores = [0.5, 0.1, 0.9, 0.3, 0.8, 0.7]
    assert choose(table_of(scores), 4, ["5", "4", "0", "gone"], 0) == [1, 2, 4, 5]


def test_choice_of_two_models_takes_where_they_differ_most():
    assert choose(table_of([0.5, 0.4, 0.9, 0.2], [0.6, 0.1, 0.9, float("nan")]), 2, (), 0) == [0, 1]


@pytest.mark.gate
def test_data_of_5000_images_and_150_classes_stay_below_10_mb():
    rng = np.random.default_rng(0)
    images = [
        ImageCount(
            f"validation/ADE_val_{i:08}",
            np.sort(rng.choice(150 * 151, 150, replace=False)),
            rng.integers(1, 2_000_000, 150),
        )
        for i in range(5000)
    ]
    run = segiou.score([[0]], [[0]], labels=2)
    scores = ImageScores("mean IoU", "", (rng.random(5000),))
    table = ImageTable((run,), ("model",), scores, (Columns.of(images),))
    payload = table.payload(class_colors(segiou.LabelSet.numbered(150)), [])
    assert (table.kept, table.cut) == (120, True)
    assert len(payload["cells"][0]["steps"]) == 120 * 5000
    assert len(json.dumps(payload, separators=(",", ":"))) < 9_500_000


TALLY = ConfusionCounts.of_matrix(
    np.array([[80, 15, 5], [0, 50, 50], [0, 0, 0]]), np.array([0, 100, 0]), np.int64(0)
)


def test_heat_map_pictures_hold_the_shares():
    drawn = heatmap(TALLY, ["a", "b", "c"])
    assert [name for name, _ in drawn["columns"]] == ["a", "b", "c", "no class"]
    rows, columns, counts = (np.asarray(decoded(view["picture"])) for view in drawn["views"])
    # Greys are square roots of shares; row b has 200 pixels with those of no class.
    assert rows[0].tolist() == [round(255 * x**0.5) for x in (0.8, 0.15, 0.05, 0)]
    assert rows[1].tolist() == [0, *(round(255 * x**0.5) for x in (0.25, 0.25, 0.5))]
    assert columns[:, 1].tolist() == [round(255 * (x / 65) ** 0.5) for x in (15, 50, 0)]
    assert rows[2].tolist() == [0, 0, 0, 0]
    assert counts[1, 3] == 255
    texts = [text for _, _, text, _ in drawn["views"][0]["texts"]]
    assert texts == ["80", "15", "5", "25", "25", "50"]


def test_what_is_rare_is_still_seen():
    tally = ConfusionCounts.of_matrix(
        np.array([[10_000_000, 1], [0, 1]]), np.zeros(2, int), np.int64(0)
    )
    rows = np.asarray(decoded(heatmap(tally, ["a", "b"])["views"][0]["picture"]))
    assert rows[0, 1] == 14


def test_confusions_by_worth_by_pixels_and_by_share():
    every = (TALLY, segiou.metrics.load_protocol("segiou"), np.ones(3, bool))
    rows = confusion_rows(TALLY, ["a", "b", "c"], confusion_gains(*every))
    found = {(c["truth"], c["pred"]): c for c in rows}
    assert set(found) == {("a", "b"), ("a", "c"), ("b", "c"), ("b", "no class")}
    assert found["b", "no class"]["pixels"] == 100
    assert found["b", "c"]["of_truth"] == 0.25
    assert found["b", "c"]["of_pred"] == pytest.approx(50 / 55)
    # IoU of b is 50 / 215 and becomes 150 / 215; that of c is 0.
    assert found["b", "no class"]["gain"] == pytest.approx(100 / 215 / 3)
    assert [row["gain"] for row in rows] == sorted((row["gain"] for row in rows), reverse=True)


def test_way_from_accuracy_to_iou_adds_up():
    matrix = segiou.ConfusionMatrix(["road", "car"])
    report = matrix.update([0] * 9 + [1], [0] * 8 + [1, 1]).report()
    bar = (
        r'<tr class="step (\w+)">.*?row">(.).*?<rect class="bar[^>]*? x="(.*?)%".*? width="(.*?)%"'
    )
    kinds, names, starts, widths = zip(*re.findall(bar, report.to_html(), re.S), strict=True)
    assert kinds == ("accuracy", "imbalance", "recall", "positives", "iou")
    lost = abs(report.pixel_accuracy - report.mean_accuracy)
    assert float(widths[1]) == pytest.approx(100 * lost, abs=0.01)
    assert float(widths[0]) == pytest.approx(100 * report.pixel_accuracy, abs=0.01)
    assert float(widths[4]) == pytest.approx(100 * report.mean_iou, abs=0.01)
    assert float(starts[1]) == pytest.approx(float(widths[0]), abs=0.01)
    # Here the mean accuracy is above the pixel accuracy: imbalance adds.
    assert (names[1], names[3]) == ("+", "−")


def test_distribution_counts_every_image():
    run = segiou.score(
        [[[0, 1]], [[1, 1]], [[9, 9]]], [[[0, 1]], [[0, 1]], [[0, 0]]], labels=2, ignore=9
    )
    spread = distribution(run.report())
    assert sum(images for _, _, images in spread["bins"]) == 2
    assert spread["undefined"] == 1
    assert spread["scores"] == [0.5, 1.0]
    assert distribution(run.total().report()) is None


def test_huge_masks_are_reduced_by_the_nearest_pixel(tmp_path):
    large = np.lib.format.open_memmap(
        tmp_path / "large.npy", mode="w+", dtype=np.uint8, shape=(3000, 6000)
    )
    large[:, 3000:] = 1
    large.flush()
    np.save(tmp_path / "small.npy", np.array([[0, 0, 1, 1]], np.uint8))
    options = ClassOptions.of(2)
    masks = read_indices(
        str(tmp_path / "large.npy"), [str(tmp_path / "small.npy")], [files_read(options, RESIZED)]
    )
    assert masks.full == (3000, 6000)
    for array in masks.arrays:
        assert array.shape == (240, 480)
        assert not array[:, :240].any()
        assert array[:, 240:].all()
