"""Axes of scores in plots: units, limits, directions, and values that are not finite."""

import inspect
from math import inf, nan
from pathlib import Path

import numpy as np
import pytest
from deletable import kind_of_scores

import segiou
from segiou import plots
from segiou.cli.main import main
from segiou.plots import kinds

pytest.importorskip("matplotlib")

from matplotlib.figure import Figure

from segiou.plots.score_axis import ScoreAxis, mark_interval
from segiou.plots.style import short_names

NAMES = ["road", "car", "pole"]
WHOLE, POLE = "hausdorff_95", "hausdorff_95:pole"


def scored(shift, missed=False, labels=NAMES, images=8):
    """Cars and poles of 10 pixels are predicted ``shift`` pixels to the right; cars may be missed.

    A pixel is 2 mm wide, so the distance is twice the shift.
    """
    kind_of_scores("surfaces")
    truth = np.zeros((images, 20, 40), np.uint8)
    pred = truth.copy()
    truth[:, 2:8, 5:15], truth[:, 12:18, 5:15] = 1, len(labels) - 1
    for i in range(images):
        x = 5 + shift + i % 2
        pred[i, 12:18, x : x + 10] = len(labels) - 1
        if not missed:
            pred[i, 2:8, x : x + 10] = 1
    measured = {"surfaces": "medpy", "spacing": (2.0, 2.0), "exclude": "road"}
    return segiou.score(truth, pred, labels=labels, **measured)


@pytest.fixture(scope="module")
def near():
    return scored(1)


@pytest.fixture(scope="module")
def far():
    return scored(4)


@pytest.fixture(scope="module")
def missing():
    return scored(1, missed=True)


def compared(a, b, metric, names=("A", "B")):
    return segiou.compare(a, b, metric=metric, names=names, permutations=100)


def drawn(ax):
    ax.figure.draw_without_rendering()
    return ax


def row_names(ax):
    return [text.get_text() for text in ax.get_yticklabels()]


def texts(ax):
    return [text.get_text().strip() for text in ax.texts]


def ticks_of(ax):
    low, high = ax.get_xlim()
    return [
        label.get_text() for label in ax.get_xticklabels() if low <= label.get_position()[0] <= high
    ]


def ticks(ax, *values):
    return [ax.xaxis.get_major_formatter()(value, 0) for value in values]


def test_the_better_model_of_a_distance_is_on_the_other_side(near, far):
    found = compared(near, far, POLE)
    ax = drawn(found.plot())
    # B is 3 pixels of 2 mm further away, which is better for A.
    assert found.pairs[0].overall.delta == 6
    assert ax.get_xlabel() == ("difference of median HD95 of pole, units\n← B better    A better →")
    assert ax.get_xlim() == pytest.approx((-0.36, 6.36))  # no empty half
    assert ticks_of(ax) == ["0", "2", "4", "6"]
    ax = drawn(compared(near, far, "dice").plot())
    assert ax.get_xlabel() == "difference of Dice, points\n← A better    B better →"
    assert ticks(ax, 0.25, -0.25) == ["25", "−25"]


def test_an_infinite_difference_is_an_arrow(near, missing):
    found = compared(near, missing, WHOLE)
    assert found.pairs[0].overall.delta == inf
    ax = drawn(found.plot())
    assert row_names(ax) == ["mean of median HD95", "car", "pole"]
    assert texts(ax) == ["∞", "∞"]
    assert all(np.isfinite(ax.get_xlim()))
    arrows = [line for line in ax.lines if line.get_marker() == ">"]
    assert [line.get_ydata()[0] for line in arrows] == [0, 1]
    ax = drawn(compared(missing, near, WHOLE).plot())
    assert texts(ax) == ["−∞", "−∞"]
    ax = drawn(compared(missing, missing, WHOLE).plot())
    assert texts(ax) == ["n/a"]


def test_plots_of_infinite_differences_are_saved(tmp_path, near, missing, capsys):
    runs = [tmp_path / "a.sqlite", tmp_path / "b.sqlite"]
    near.save(runs[0])
    missing.save(runs[1])
    options = ["--metric", WHOLE, "--plots", tmp_path / "plots", "--group-by", "none"]
    assert main([str(one) for one in ("compare", *runs, *options)]) == 0, capsys.readouterr().err
    saved = {path.stem for path in (tmp_path / "plots").iterdir() if path.name != ".segiou"}
    assert saved == {"comparison_forest", "model_bars"}


def test_bars_of_models_have_the_unit_of_the_score(near, far, missing):
    ax = drawn(compared(near, far, WHOLE).plot("model_bars"))
    assert ax.get_xlabel() == "median HD95, units"
    assert [bar.get_width() for bar in ax.containers[1]] == [9, 9, 9]
    assert ax.get_xlim() == pytest.approx((0, 9.45))
    assert ticks_of(ax) == ["0.0", "2.5", "5.0", "7.5"]
    ax = drawn(plots.model_bars([near, missing], metric=WHOLE, names=["A", "B"]))
    assert ax.get_xlabel() == "median HD95, units"
    assert row_names(ax) == ["mean median HD95", "car", "pole"], "the worst class is on top"
    assert texts(ax) == ["∞", "∞"]
    ax = drawn(plots.model_bars([missing], metric="dice"))
    assert ax.get_xlim() == (0, 1)
    assert ticks(ax, 0.5) == ["50 %"]


def test_bars_of_models_by_a_score_without_classes(near, far):
    ax = drawn(compared(near, far, "pixel_accuracy").plot("model_bars"))
    assert row_names(ax) == ["pixel accuracy"]
    assert ax.get_xlabel() == "pixel accuracy"


def test_bars_of_classes_mark_infinite_values(near, missing):
    ax = drawn(missing.plot("class_bars", metric=WHOLE))
    assert row_names(ax) == ["car", "pole"]
    assert texts(ax) == ["∞"]
    assert ax.get_xlabel() == "median HD95, units, mean: ∞"
    assert ax.get_xlim() == pytest.approx((0, 3.15))
    assert near.plot("class_bars", metric=WHOLE).get_xlabel() == "median HD95, units, dashed: mean"
    ax = drawn(missing.plot("class_bars", metric="surfaces_missed"))
    assert ax.get_xlabel() == "missed"
    assert ax.get_xlim() == pytest.approx((0, 8.4))
    assert not any("%" in tick for tick in ticks_of(ax))


def test_boxes_and_histograms_of_a_score_of_a_measure(near, missing):
    ax = drawn(near.plot("class_boxes", metric="hd95"))
    # Half of the images are shifted by 2 mm, the others by 4 mm.
    assert [patch.get_x() for patch in ax.patches] == [2, 2]
    assert ax.get_xlabel() == "HD95 per image, units"
    assert ax.get_xlim() == pytest.approx((0, 4.2))
    ax = drawn(missing.plot("class_boxes", metric=WHOLE))
    assert row_names(ax) == ["car (0, 8 without)", "pole (8)"]
    ax = drawn(near.plot("image_distribution", metric=WHOLE))
    assert ax.get_xlabel() == "mean HD95 per image, units"
    assert sum(bar.get_height() for bar in ax.patches) == 8
    assert ax.get_xlim() == pytest.approx((0, 4.2))
    assert near.plot("image_distribution", metric="dice").get_xlabel() == "mean Dice per image"
    with pytest.raises(ValueError, match="no image has a finite score"):
        missing.plot("image_distribution", metric=WHOLE)
    with pytest.raises(ValueError, match="in each image are not available"):
        near.report().plot("class_boxes", metric=WHOLE)
    with pytest.raises(ValueError, match="unknown metric 'iou:car'; choose from iou, dice"):
        near.plot("class_boxes", metric="iou:car")


def test_boxes_of_cases_are_ratios_or_distances(near, missing):
    ax = drawn(near.plot("distance_boxes", measure="dice"))
    assert ax.get_xlim() == (0, 1)
    assert ticks(ax, 0.5) == ["50 %"]
    assert drawn(missing.plot("distance_boxes")).get_xlabel() == "HD95, units"
    models = {"A": near, "B": missing}
    ranking = segiou.rank(models, by=WHOLE, groups="none", draws=0)
    ax = drawn(ranking.plot("case_boxes"))
    assert row_names(ax) == ["A", "B (8 infinite)"]
    assert ax.get_xlabel() == "mean of median HD95 per image, units"


@pytest.mark.needs("measures.surfaces")
def test_plots_of_volumes_call_images_cases():
    pytest.importorskip("nibabel")
    folder = Path(__file__).parents[2] / "fixtures" / "volumes"
    masks, labels = (folder / "truth", folder / "model_a"), folder / "dataset.json"
    run = segiou.score_folder(*masks, labels=labels, boundary=True)
    assert run.plot("class_boxes", metric=WHOLE).get_xlabel() == "HD95 per case, mm"
    ax = drawn(run.plot("image_distribution"))
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("mean IoU per case", "cases")
    assert ax.get_legend_handles_labels()[1] == ["mean over cases", "data set"]
    found = run.slices({id: "ab"[i % 2] for i, id in enumerate(run.ids)}, groups="none")
    assert found.plot().get_xlabel() == "mean IoU, dashed: all cases"


def test_slices_of_distances_and_changes_in_points(near, far, missing):
    values = {id: "ab"[i % 2] for i, id in enumerate(near.ids)}
    ax = drawn(near.slices(values, groups="none", metric=POLE).plot())
    assert ax.get_xlabel() == "median HD95 of pole, units, dashed: all images"
    ax = drawn(missing.slices(values, groups="none", metric=WHOLE).plot())
    assert texts(ax) == ["∞", "∞"]
    assert ax.get_xlabel() == "mean of median HD95, units"
    ax = drawn(segiou.slices(near, far, by=values, groups="none", metric="iou").plot())
    assert ax.get_xlabel() == "change of mean IoU, points, dashed: all images"


def test_one_class_one_image_one_model():
    run = scored(1, labels=["road", "car"], images=1)
    for kind in ("class_bars", "class_boxes", "image_distribution"):
        for metric in ("iou", WHOLE):
            drawn(run.plot(kind, metric=metric))
    for kind in ("confusion_matrix", "accuracy_vs_iou", "prevalence_curve", "distance_boxes"):
        drawn(run.plot(kind))
    drawn(plots.model_bars([run], metric=WHOLE))


def test_long_names_stay_in_the_figure(near, far):
    names = ["x" * 72 + "_model_a", "x" * 72 + "_model_b"]
    found = compared(near, far, "iou", names)
    sides = "← xxxxxxx…odel_a better    xxxxxxx…odel_b better →"
    assert found.plot().get_xlabel() == f"difference of IoU, points\n{sides}"
    legend = drawn(found.plot("model_bars")).get_legend()
    assert [text.get_text() for text in legend.get_texts()] == [
        "xxxxxxxxxxxx…xxx_model_a",
        "xxxxxxxxxxxx…xxx_model_b",
    ]
    run = scored(1, labels=["road", "c" * 80, "p" * 80])
    for metric in ("iou", WHOLE):
        for ax in (
            run.plot("class_bars", metric=metric),
            run.plot("class_boxes", metric=metric),
            compared(run, run, f"{metric}:{'c' * 80}").plot(),
        ):
            drawn(ax)
            box = ax.xaxis.label.get_window_extent()
            assert 0 <= box.x0 < box.x1 <= ax.figure.bbox.width, (metric, ax.get_xlabel())


def test_curves_of_names_that_begin_alike_differ():
    names = ["c" * 79 + end for end in "abc"]
    histogram = segiou.ScoreHistogram(names)
    truth = np.random.default_rng(0).integers(0, 3, (2, 8, 8))
    scores = np.random.default_rng(1).random((2, 3, 8, 8))
    histogram.update(truth, scores, activation="softmax")
    legend = drawn(histogram.plot("pr_curve")).get_legend()
    shown = {text.get_text().partition(" ")[0] for text in legend.get_texts()}
    assert shown == {f"cccccccccc…cccccccc{end}" for end in "abc"}
    box = legend.get_window_extent()
    assert 0 <= box.x0 < box.x1 <= legend.figure.bbox.width


def test_names_that_begin_alike_keep_their_ends():
    assert short_names(["night_rain_a", "night_rain_b"], 9) == ["nigh…in_a", "nigh…in_b"]
    assert short_names(["night_rain_a", "day"], 9) == ["night_ra…", "day"]
    # Names cannot reverse the text after them, such as the number of images.
    assert short_names(["\u202edaor", "a\nb"]) == ["\\u202edaor", "a b"]


@pytest.mark.parametrize(
    ("unit", "values", "limits", "label"),
    [
        ("", [0.6, nan], (0, 1), "S"),
        ("", [0.2, nan], (0, 0.21), "S"),  # else more than half would be empty
        ("", [0, nan], (0, 1), "S"),
        ("", [-0.5, 0.6], (-0.5, 1), "S"),
        ("mm", [6, inf], (0, 6.3), "S, mm"),
        ("number", [-10, 10], (-11, 11), "S"),
        ("mm", [inf, nan], (0, 1), "S, mm"),
    ],
)
def test_limits_cover_the_finite_values(unit, values, limits, label):
    ax = Figure().add_subplot()
    ScoreAxis("S", unit).show(ax, values)
    assert ax.get_xlim() == pytest.approx(limits)
    assert ax.get_xlabel() == label


def test_intervals_without_end_are_arrows():
    ax = Figure().add_subplot()
    ax.set_xlim(-2, 2)
    mark_interval(ax, 0, (1.0, -inf, 1.5), "red")
    (segment,) = ax.collections[0].get_segments()
    assert segment[:, 0].tolist() == [-2, 1.5]
    marks = [(line.get_marker(), line.get_xdata()[0]) for line in ax.lines]
    assert marks == [("o", 1.0), ("<", -2)]


@pytest.mark.parametrize("kind", ["class_bars", "image_distribution", "confusion_matrix"])
def test_unknown_options_name_the_kind(near, kind):
    with pytest.raises(TypeError, match=f"^{kind} has no option 'colour'; choose from"):
        near.plot(kind, colour="red")


def test_every_kind_checks_its_options():
    for group in (name for name in vars(kinds) if name.startswith("_OF_")):
        for name, draw in getattr(kinds, group).items():
            with pytest.raises(TypeError, match=f"^{name} has no option 'unheard_of'"):
                draw(None, unheard_of=1)
            assert "look" in inspect.signature(draw).parameters
