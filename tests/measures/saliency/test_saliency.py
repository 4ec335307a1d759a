"""Scores of grey maps: hand-computed values, PySODMetrics itself, folders and loops."""

import json
import warnings
from pathlib import Path

import numpy as np
import pytest
from mask_files import required
from PIL import Image

import segiou
from segiou.measures.saliency import SaliencyOptions, saliency_scores
from segiou.scoring import Evaluator

FOLDER = Path(__file__).parents[4] / "shared" / "kinds" / "saliency"
#: Names of PySODMetrics, and the names here.
NAMES = {
    "S": "s_measure",
    "wF": "weighted_f_measure",
    "MAE": "mae",
    "E_max": "e_measure_max",
    "E_mean": "e_measure_mean",
    "E_adaptive": "e_measure_adaptive",
    "F_max": "f_measure_max",
    "F_mean": "f_measure_mean",
    "F_adaptive": "f_measure_adaptive",
    "at_half_dice": "dice_at_half",
    "mean_dice": "dice_over_thresholds",
    "max_dice": "dice_best_threshold",
    "at_half_iou": "iou_at_half",
    "mean_iou": "iou_over_thresholds",
    "max_iou": "iou_best_threshold",
}


def test_hand_computed_scores():
    # Values 1, 0.5, 0.25, 0 (255, 127, 63 and 0 of 256 bins); the first two pixels are true.
    found = saliency_scores([[1, 1], [0, 0]], [[1.0, 0.5], [0.25, 0.0]])
    assert found["mae"] == (0 + 0.5 + 0.25 + 0) / 4
    assert found["dice_at_half"] == 2 / 3  # 0.5 is not above 0.5
    assert found["iou_at_half"] == 1 / 2
    # Of 256 thresholds, 128 find one pixel, 64 two, 63 these and a false one, and one all four.
    assert found["iou_over_thresholds"] == pytest.approx(
        (128 * 1 / 2 + 64 * 1 + 63 * 2 / 3 + 2 / 4) / 256
    )
    assert found["dice_over_thresholds"] == pytest.approx(
        (128 * 2 / 3 + 64 * 1 + 63 * 4 / 5 + 4 / 6) / 256
    )
    assert found["iou_best_threshold"] == found["f_measure_max"] == 1
    # Twice the mean is 0.875: precision 1, recall 1/2.
    assert found["f_measure_adaptive"] == pytest.approx(1.3 * 1 * 0.5 / (0.3 * 1 + 0.5))


def test_an_inverse_map_and_a_perfect_one():
    truth = np.zeros((9, 12), bool)
    truth[2:6, 3:9] = True
    perfect = saliency_scores(truth, truth)
    assert perfect["mae"] == 0
    assert perfect["weighted_f_measure"] == 1
    assert perfect["s_measure"] == pytest.approx(1)
    inverse = saliency_scores(truth, ~truth)
    assert inverse["mae"] == 1
    assert inverse["iou_at_half"] == 0
    assert inverse["weighted_f_measure"] < 0.02  # errors at the edge are smoothed with zeros


def test_nothing_true_and_everything_true():
    map_ = np.array([[0, 51, 255]], np.uint8)  # stretched: 0, 0.2, 1
    empty, full = saliency_scores([[0, 0, 0]], map_), saliency_scores([[1, 1, 1]], map_)
    assert empty["s_measure"] == pytest.approx(1 - 0.4)
    assert full["s_measure"] == pytest.approx(0.4)
    assert empty["weighted_f_measure"] == empty["f_measure_max"] == 0
    assert empty["e_measure_max"] == pytest.approx(2 / (3 - 1))  # 2 pixels below the threshold
    assert full["e_measure_max"] == pytest.approx(3 / (3 - 1))


def test_an_image_without_pixels_has_no_score_and_a_single_pixel_no_e():
    single = saliency_scores([[1]], [[1.0]])  # its sum would be divided by 1 − 1
    assert np.isnan([single[f"e_measure_{kind}"] for kind in ("max", "mean", "adaptive")]).all()
    assert single["f_measure_max"] == single["dice_at_half"] == single["s_measure"] == 1
    assert np.isnan([*saliency_scores(np.zeros((0, 3), int), np.zeros((0, 3))).values()]).all()
    loop = Evaluator(2, measures=["saliency"], ignore=255)
    # Three of four pixels are true and found from some threshold on: E is 4 / (4 − 1).
    loop.update([[0, 1], [1, 1]], [[0.1, 0.9], [0.8, 0.7]], threshold=0.5)
    alone = loop.scores()
    assert alone["f_measure_max"] == alone["dice_best_threshold"] == 1
    assert alone["e_measure_max"] == pytest.approx(4 / 3)
    loop.update([[255, 255]], [[0.1, 0.9]], threshold=0.5)  # all pixels ignored
    assert loop.scores() == alone


def test_a_map_without_range_is_not_stretched():
    assert saliency_scores([[1, 0]], np.full((1, 2), 51, np.uint8))["mae"] == pytest.approx(0.5)
    assert saliency_scores([[1, 1]], np.full((1, 2), 51, np.uint8))["mae"] == pytest.approx(0.8)


def test_a_quadrant_without_variance_is_right():
    """A constant quadrant has variance 0, whatever the rounding of its mean."""
    truth = np.zeros((12, 12), bool)
    truth[1:3, 1:3] = True
    for value in range(1, 255, 23):
        x = value / 255
        found = saliency_scores(truth, np.full((12, 12), value, np.uint8))["s_measure"]
        share = 4 / 144
        objects = share * 2 * x / (x**2 + 1) + (1 - share) * 2 * (1 - x) / ((1 - x) ** 2 + 1)
        # The quadrant of the truth, 3 × 3 of which 4, has no covariance: 0; the others have 1.
        assert found == pytest.approx((objects + 135 / 144) / 2)


@pytest.mark.parametrize("seed", range(12))
def test_values_of_the_tool(seed):
    sod = required("py_sod_metrics")
    rng = np.random.default_rng(seed)
    shape = rng.integers(12, 50, 2)
    rows, columns = np.mgrid[: shape[0], : shape[1]] / shape[:, None, None]
    truth = (rows - 0.4) ** 2 + (columns - 0.5) ** 2 < rng.uniform(0.02, 0.2)
    noise = rng.integers(0, (40, 256)[seed % 2], shape)
    grey = np.clip(truth * 150 + noise, 0, 255).astype(np.uint8)
    if seed % 3 == 0:
        grey = np.where(grey > 127, np.uint8(255), np.uint8(0))
    which = {"with_dynamic": True, "with_adaptive": True, "with_binary": True}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        handlers = {"dice": sod.DICEHandler(**which), "iou": sod.IOUHandler(**which)}
        tools = [sod.MAE(), sod.Smeasure(), sod.Emeasure(), sod.WeightedFmeasure()]
        tools += [sod.Fmeasure(), sod.FmeasureV2(handlers)]
    theirs = {}
    for tool in tools:
        tool.step(grey, (truth * 255).astype(np.uint8))
        theirs |= tool.get_results()
    expected = {"s_measure": theirs["sm"], "weighted_f_measure": theirs["wfm"]}
    expected["mae"] = theirs["mae"]
    for name, found in (("e_measure", theirs["em"]), ("f_measure", theirs["fm"])):
        expected[f"{name}_max"] = found["curve"].max()
        expected[f"{name}_mean"] = found["curve"].mean()
        expected[f"{name}_adaptive"] = found["adp"]
    for name in ("dice", "iou"):
        expected[f"{name}_at_half"] = theirs[name]["binary"]
        expected[f"{name}_over_thresholds"] = theirs[name]["dynamic"].mean()
        expected[f"{name}_best_threshold"] = theirs[name]["dynamic"].max()
    for scores in (grey, grey / 255, grey.astype(np.uint16) * 257):
        ours = saliency_scores(truth, scores)
        assert ours == pytest.approx(expected, abs=1e-9)
        assert [*ours] == [*SaliencyOptions.score_names]


@pytest.mark.skipif(not FOLDER.exists(), reason="needs the shared maps")
def test_a_folder_has_the_values_of_the_tool():
    golden = json.loads((FOLDER / "golden.json").read_text())
    run = segiou.score_folder(FOLDER / "truth", FOLDER / "pred", measures=["saliency"])
    report = run.report()
    for name, value in golden["scores"].items():
        assert report.score(NAMES[name]) == pytest.approx(value, abs=1e-9), name
    for name, values in golden["per_image"].items():
        columns = run.parts("saliency")
        at = ("S", "wF", "MAE").index(name)
        assert columns["cases"][:, 0, at] == pytest.approx(np.array(values), abs=1e-9)


@pytest.fixture
def folders(tmp_path):
    """Two maps; the soft edge of the first truth has 128 and 129, of which 129 is inside."""
    rng = np.random.default_rng(0)
    for side in ("truth", "pred"):
        (tmp_path / side).mkdir()
    for name in "ab":
        truth = np.zeros((20, 30), np.uint8)
        truth[5:12, 8:20] = 255
        if name == "a":
            truth[4, 8:20], truth[12, 8:20] = 128, 129
        grey = np.clip(truth * 0.6 + rng.integers(0, 100, truth.shape), 0, 255).astype(np.uint8)
        Image.fromarray(truth).save(tmp_path / "truth" / f"{name}.png")
        Image.fromarray(grey).save(tmp_path / "pred" / f"{name}.png")
    return [str(tmp_path / side) for side in ("truth", "pred")]


def both(folders, name):
    """Truth as the field reads it, and the map."""
    truth, grey = (np.array(Image.open(Path(side) / f"{name}.png")) for side in folders)
    return truth > 128, grey


def test_one_option_reads_grey_folders(folders, tmp_path, command):
    code, out, _ = command("score", *folders, "--saliency", "--format", "json")
    assert code == 0
    found = json.loads(out)
    assert both(folders, "a")[0].sum() == 8 * 12
    each = [saliency_scores(*both(folders, name))["mae"] for name in "ab"]
    assert found["scores"]["mae"]["value"] == pytest.approx(np.mean(each))
    assert [row["name"] for row in found["classes"]] == ["background", "foreground"]


def test_the_largest_value_is_that_of_the_mean_curve(folders):
    run = segiou.score_folder(*folders, measures=["saliency"])
    each = [saliency_scores(*both(folders, name)) for name in "ab"]
    whole = run.report().score("iou_best_threshold")
    assert whole <= np.mean([one["iou_best_threshold"] for one in each])
    assert run.report().score("iou_over_thresholds") == pytest.approx(
        np.mean([one["iou_over_thresholds"] for one in each])
    )


def test_masks_of_0_and_1_name_the_threshold(folders):
    for path in Path(folders[0]).glob("*.png"):
        Image.fromarray(np.array(Image.open(path)) // 255).save(path)
    with pytest.raises(ValueError, match="all below the threshold 129; set it to 1"):
        segiou.score_folder(*folders, measures=["saliency"])
    run = segiou.score_folder(*folders, measures=["saliency"], truth_threshold=1)
    assert run.report().score("mae") < 0.5


@pytest.mark.parametrize(
    ("image", "problem"),
    [
        (Image.new("RGB", (30, 20), (1, 2, 3)), "is a colour image; save it as greyscale"),
        (Image.new("L", (30, 21)), r"shape \(H, W\) of the truth, \(20, 30\), got \(21, 30\)"),
        (Image.new("P", (30, 20)), "expected 8- or 16-bit greyscale"),
    ],
)
def test_files_that_are_not_maps(folders, image, problem):
    image.save(Path(folders[1]) / "a.png")
    with pytest.raises(ValueError, match=problem):
        segiou.score_folder(*folders, measures=["saliency"])


def test_grey_values_in_colour_channels_and_scores_in_arrays(folders):
    first = segiou.score_folder(*folders, measures=["saliency"]).report()
    path = Path(folders[1]) / "a.png"
    grey = Image.open(path)
    grey.convert("RGB").save(path)
    np.save(path.with_name("b.npy"), np.array(Image.open(path.with_name("b.png"))) / 255)
    path.with_name("b.png").unlink()
    second = segiou.score_folder(*folders, measures=["saliency"]).report()
    for name in SaliencyOptions.score_names:
        assert second.score(name) == pytest.approx(first.score(name)), name


def test_loops_pass_scores(folders):
    inside, grey = both(folders, "b")
    truth = inside.astype(np.uint8)
    run = segiou.score([truth], [grey / 255], labels=2, threshold=0.5, measures=["saliency"])
    expected = saliency_scores(truth, grey)
    assert run.report().score("s_measure") == pytest.approx(expected["s_measure"])
    with pytest.raises(ValueError, match="the prediction contains labels"):
        segiou.score([truth], [grey // 128], labels=2, measures=["saliency"])
    with pytest.raises(ValueError, match="so two classes, not 3 classes"):
        segiou.score([truth], [grey // 128], labels=3, measures=["saliency"])


def test_ignored_pixels_are_not_scored():
    truth = np.zeros((1, 10, 12), np.uint8)
    truth[:, 3:7, 2:9] = 1
    scores = np.random.default_rng(1).random(truth.shape)
    wide = [np.concatenate([side, np.full((1, 10, 3), 7, side.dtype)], 2) for side in (truth,)]
    extra = np.concatenate([scores, np.full((1, 10, 3), 0.5)], 2)
    options = {"labels": 2, "threshold": 0.5, "measures": ["saliency"]}
    inner = segiou.score(truth, scores, **options).report()
    outer = segiou.score(wide[0], extra, ignore=[7], **options).report()
    for name in ("mae", "s_measure", "e_measure_mean", "f_measure_adaptive", "iou_at_half"):
        assert outer.score(name) == pytest.approx(inner.score(name)), name


@pytest.mark.parametrize(
    ("scores", "error", "problem"),
    [
        ([[0.0, 1.5]], ValueError, r"must be in \[0, 1\], got 0 to 1.5"),
        ([[0.0, np.nan]], ValueError, r"must be in \[0, 1\]"),
        ([[0, 1]], TypeError, "must be floats, bool, uint8 or uint16, got int64"),
        ([0.5, 0.5], ValueError, "must have the shape"),
    ],
)
def test_refused(scores, error, problem):
    with pytest.raises(error, match=problem):
        saliency_scores([[0, 1]], scores)
