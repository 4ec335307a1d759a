"""Figures: what is drawn, not how its pixels come out."""

import itertools
import pickle
import sys
from io import BytesIO

import numpy as np
import pytest

import segiou
from segiou import plots
from segiou.accumulators.channel_counts import ChannelCounts
from segiou.analysis.comparison.compare_runs import compare
from segiou.analysis.gap.baselines import prevalence_curve as curve_of
from segiou.inference.intervals import bootstrap
from segiou.measures.boundary import BoundaryOptions

pytest.importorskip("matplotlib")

from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.figure import Figure

NAMES = ("road", "car", "pole")
RANKS = {"rank_stability", "case_boxes"}
TRUTH = np.random.default_rng(0).choice(3, (12, 8, 8), p=[0.7, 0.25, 0.05])


def scored(rate, **options):
    rng = np.random.default_rng(1)
    pred = np.where(rng.random(TRUTH.shape) < rate, rng.integers(0, 3, TRUTH.shape), TRUTH)
    return segiou.score(TRUTH, pred, labels=list(NAMES), **options)


@pytest.fixture(scope="module")
def run():
    return scored(0.3)


@pytest.fixture(scope="module")
def comparison(run):
    return compare(run, scored(0.1), names=("old", "new"), resamples=100, permutations=100)


def row_names(ax):
    return [text.get_text() for text in ax.get_yticklabels()]


def drawn_without_complaint(ax):
    """Draw everything: warnings are errors here."""
    assert isinstance(ax, Axes)
    ax.figure.draw_without_rendering()
    return ax


def test_new_figures_are_a_column_wide_and_the_current_one(run):
    for draw in (plots.class_bars, plots.confusion_matrix, plots.class_boxes):
        ax = drawn_without_complaint(draw(run))
        assert ax.figure.get_figwidth() == 3.3
        assert pyplot.gcf() is ax.figure
        assert pyplot.gca() is ax


def test_what_pyplot_saves_is_the_figure(run, tmp_path):
    pyplot.figure()
    run.plot()
    pyplot.savefig(tmp_path / "bars.svg")
    assert ">pole</text>" in (tmp_path / "bars.svg").read_text()


def test_given_axes_and_files_open_no_figure(run, tmp_path):
    ax = Figure().add_subplot()
    run.plot(ax=ax)
    plots.save_plots(run.total(), tmp_path, dpi=40)
    with pytest.raises(ValueError, match="color: expected a colour of matplotlib"):
        plots.class_bars(run, color="colour")  # what was drawn until then is not shown
    assert pyplot.get_fignums() == []


@pytest.mark.parametrize(
    "draw",
    [
        plots.confusion_matrix,
        plots.class_bars,
        plots.accuracy_vs_iou,
        plots.image_distribution,
        plots.class_boxes,
        lambda run, ax: plots.model_bars([run, run], ax=ax),
        lambda run, ax: plots.prevalence_curve(run, "pole", ax=ax),
    ],
)
def test_axes_given_are_drawn_on_and_returned(run, draw):
    figure = Figure()
    ax = figure.add_subplot()
    assert draw(run, ax=ax) is ax
    assert ax.has_data()
    drawn_without_complaint(ax)


@pytest.mark.parametrize("of", ["run", "report", "matrix"])
def test_runs_reports_and_matrices_are_drawn_alike(run, of):
    source = {"run": run, "report": run.report(), "matrix": run.total()}[of]
    widths = [bar.get_width() for bar in plots.class_bars(source).patches]
    assert widths == sorted(run.total().iou().tolist())


def test_other_things_are_refused():
    with pytest.raises(TypeError, match="got ndarray"):
        plots.confusion_matrix(np.eye(3))


def test_confusion_matrix_draws_shares_of_the_truth(run):
    ax = drawn_without_complaint(plots.confusion_matrix(run))
    matrix = run.total().matrix
    shown = ax.images[0].get_array()
    np.testing.assert_array_equal(shown.filled(0), matrix / matrix.sum(1, keepdims=True))
    assert row_names(ax) == list(NAMES)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("prediction", "truth")
    texts = {text.get_position(): text.get_text() for text in ax.texts}
    assert texts[0, 0] == f"{100 * matrix[0, 0] / matrix[0].sum():.0f}"


def test_confusion_matrix_by_prediction_and_in_pixels(run):
    matrix = run.total().matrix
    by_pred = plots.confusion_matrix(run, normalize="pred").images[0].get_array().filled(0)
    np.testing.assert_allclose(by_pred.sum(0), 1)
    ax = drawn_without_complaint(plots.confusion_matrix(run, normalize=None))
    np.testing.assert_array_equal(ax.images[0].get_array().filled(0), matrix)
    with pytest.raises(ValueError, match="'truth', 'pred' or None, got 'rows'"):
        plots.confusion_matrix(run, normalize="rows")


def test_many_classes_go_unnamed():
    matrix = segiou.ConfusionMatrix(150).update(np.arange(150), np.arange(150))
    ax = drawn_without_complaint(plots.confusion_matrix(matrix))
    assert ax.figure.get_figwidth() == 7
    assert not ax.texts
    assert not row_names(ax)
    assert "40 lowest of 150 classes" in plots.class_bars(matrix).get_xlabel()


def touches(texts):
    """Whether boxes of neighbouring texts overlap."""
    boxes = [text.get_window_extent() for text in texts]
    return any(one.overlaps(other) for one, other in itertools.pairwise(boxes))


@pytest.mark.parametrize("number", [2, 6, 11, 19, 20, 21, 40, 65, 100])
def test_names_and_numbers_of_a_matrix_fit(number):
    rng = np.random.default_rng(0)
    truth = rng.integers(0, number, (4, 200, 200))
    pred = np.where(rng.random(truth.shape) < 0.3, rng.permuted(truth), truth)
    matrix = segiou.ConfusionMatrix([f"furniture {i}" for i in range(number)]).update(truth, pred)
    ax = drawn_without_complaint(plots.confusion_matrix(matrix))
    assert not touches(ax.get_xticklabels())
    assert not touches(ax.get_yticklabels())
    row = [text for text in ax.texts if text.get_position()[1] == 0]
    assert not touches(row)
    assert bool(row) == (number <= 40)
    assert len(row_names(ax)) == (number if number <= 65 else 0)
    box = ax.figure.get_tightbbox()  # nothing is outside, and nothing blank
    assert box.x0 >= 0
    assert box.x1 <= ax.figure.get_figwidth()
    assert 0 <= box.y0 < 0.06
    assert ax.figure.get_figheight() - 0.06 < box.y1 <= ax.figure.get_figheight()


def test_absent_classes_are_left_out_of_the_matrix():
    names = ["road", "tram", "car", "pole"]
    matrix = segiou.ConfusionMatrix(names).update([0, 0, 2], [0, 3, 2])
    ax = drawn_without_complaint(plots.confusion_matrix(matrix))
    assert row_names(ax) == ["road", "car", "pole"]
    shown = ax.images[0].get_array().filled(0)
    np.testing.assert_array_equal(shown, [[0.5, 0, 0.5], [0, 1, 0], [0, 0, 0]])
    assert ax.get_xlabel() == "prediction\n(3 occurring of 4 classes)"
    ax = drawn_without_complaint(plots.confusion_matrix(matrix, absent=True))
    assert row_names(ax) == names
    assert ax.get_xlabel() == "prediction"


def test_bars_carry_their_intervals(run):
    found = bootstrap(run.counts, class_names=NAMES, resamples=200)
    ax = drawn_without_complaint(plots.class_bars(run, intervals=found))
    order = row_names(ax)
    segments = ax.collections[0].get_segments()
    for name, ((low, _), (high, _)) in zip(order, segments, strict=True):
        (own,) = (c for c in found.classes if c.name == name)
        assert (low, high) == pytest.approx((own.low, own.high))
    of_report = plots.class_bars(run.report(intervals=found)).collections[0]
    assert len(of_report.get_segments()) == len(segments)
    recall = bootstrap(run.counts, "recall", class_names=NAMES, resamples=50)
    with pytest.raises(ValueError, match="for 'recall', but metric is 'iou'"):
        plots.class_bars(run, intervals=recall)
    with pytest.raises(ValueError, match="unknown metric 'kappa'"):
        plots.class_bars(run, metric="kappa")


def test_accuracy_stands_against_iou_the_frequent_class_on_top(run):
    ax = drawn_without_complaint(plots.accuracy_vs_iou(run))
    assert row_names(ax) == ["road", "car", "pole"]
    recall, iou = (c.get_offsets()[:, 0] for c in ax.collections[1:3])
    np.testing.assert_allclose(iou, run.total().iou())
    np.testing.assert_allclose(recall, run.total().recall())
    # Told apart without colour: one kind is open, the other filled.
    faces = [tuple(c.get_facecolor()[0]) for c in ax.collections[1:3]]
    assert faces[0] == (1, 1, 1, 1) != faces[1]


def test_prevalence_curve_goes_through_the_class_itself(run):
    ax = drawn_without_complaint(plots.prevalence_curve(run, "pole"))
    row = run.report().classes[2]
    (x,), (y,) = ax.lines[-1].get_data()
    assert (x, y) == (row.share, row.iou)
    shares, ious = ax.lines[1].get_data()
    expected = curve_of(run.total().tally, 2, shares).iou
    np.testing.assert_array_equal(ious, expected)
    styles = {(line.get_linestyle(), line.get_linewidth()) for line in ax.lines[:3]}
    assert len(styles) == 3
    with pytest.raises(ValueError, match="unknown class 'tram'"):
        plots.prevalence_curve(run, "tram")


def test_distribution_counts_every_image(run):
    ax = drawn_without_complaint(plots.image_distribution(run))
    assert sum(bar.get_height() for bar in ax.patches) == 12
    with pytest.raises(ValueError, match="per-image counts are not available"):
        plots.image_distribution(run.total())


def test_forest_has_a_row_a_class_below_the_score(comparison):
    ax = drawn_without_complaint(plots.comparison_forest(comparison))
    pair = comparison.pairs[0]
    assert row_names(ax)[0] == "mean IoU"
    assert set(row_names(ax)[1:]) == set(NAMES)
    (delta,), (place,) = ax.lines[1].get_data()
    assert (delta, place) == (pair.overall.delta, 0)
    assert "old better" in ax.get_xlabel()
    assert "new better" in ax.get_xlabel()


def test_overlapping_channels_have_bars_and_no_matrix(tmp_path):
    channels = ChannelCounts(["edema", "tumour"])
    channels.update([[[1, 1, 0]], [[0, 1, 0]]], [[[1, 0, 0]], [[0, 1, 1]]], axis=0)
    drawn_without_complaint(plots.class_bars(channels))
    with pytest.raises(ValueError, match="no confusion matrix"):
        plots.confusion_matrix(channels)
    with pytest.raises(ValueError, match="exclusive classes"):
        plots.prevalence_curve(channels, "edema")
    files = plots.save_plots(channels, tmp_path, dpi=40)
    assert {p.stem for p in files} == {"class_bars", "accuracy_vs_iou"}


def test_names_are_never_read_as_formulas():
    names = ["$x$", "a_b$", r"\frac{"]
    run = segiou.score(TRUTH, TRUTH, labels=names)
    for ax in (plots.class_bars(run), plots.confusion_matrix(run)):
        drawn_without_complaint(ax)
        assert set(row_names(ax)) == set(names)


def test_every_figure_is_saved_in_three_formats(tmp_path, run):
    files = plots.save_plots(run, tmp_path / "figures", dpi=60)
    names = ["confusion_matrix", "class_bars", "accuracy_vs_iou", "prevalence_curve"]
    names += ["image_distribution", "class_boxes"]
    assert [p.name for p in files] == [f"{n}.{e}" for n in names for e in ("png", "svg", "pdf")]
    begins = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}
    for path in files:
        content = path.read_bytes()
        assert content.startswith(begins[path.suffix])
    svg = (tmp_path / "figures" / "class_bars.svg").read_text()
    # Text stays text.
    assert ">pole</text>" in svg


@pytest.mark.parametrize("number", [2, 3, 5, 6])
@pytest.mark.parametrize("normalize", ["truth", "pred", None])
def test_labels_of_the_matrix_are_within_the_figure(number, normalize):
    rng = np.random.default_rng(0)
    truth = rng.integers(0, number, (2, 30, 30))
    names = ["background", "vegetation", "car", "pole", "pedestrian", "road"][:number]
    matrix = segiou.score(truth, truth[::-1], labels=names).total()
    axes = drawn_without_complaint(plots.confusion_matrix(matrix, normalize=normalize))
    boxes = [part.get_tightbbox() for part in axes.figure.axes]
    assert min(box.x0 for box in boxes) >= 0
    assert min(box.y0 for box in boxes) >= 0
    assert max(box.x1 for box in boxes) <= axes.figure.bbox.width
    assert max(box.y1 for box in boxes) <= axes.figure.bbox.height


def test_zero_and_undefined_scores_differ():
    truth = [[0, 0, 1, 1]]
    missed = segiou.score([truth], [[[0, 0, 0, 0]]], labels=["road", "car"])
    wrong = segiou.score([truth], [[[1, 1, 0, 0]]], labels=["road", "car"])
    axes = drawn_without_complaint(plots.model_bars([missed, wrong], metric="precision"))
    # Cars are never predicted by the first model, and every class is wrong in the second.
    assert [text.get_text().strip() for text in axes.texts] == ["n/a"]
    assert sum(len(line.get_xdata()) for line in axes.lines if line.get_marker() == "|") == 3


def test_files_of_several_comparisons_name_their_pair(tmp_path, run):
    several = compare(run, scored(0.1), scored(0.2), names=("old", "a/b c", "new"), groups="none")
    files = plots.save_plots(several, tmp_path, dpi=30)
    pairs = {path.stem for path in files if path.stem.startswith("comparison_forest")}
    ends = {f"{pair.b}_vs_{pair.a}".replace("a/b c", "a_b_c") for pair in several.pairs}
    assert pairs == {f"comparison_forest_{end}" for end in ends}


def test_saved_files_are_the_same_every_time(tmp_path, run):
    first, second = (plots.save_plots(run.total(), tmp_path / n, dpi=40) for n in ("a", "b"))
    for one, other in zip(first, second, strict=True):
        assert one.read_bytes() == other.read_bytes(), one.name


@pytest.fixture(scope="module")
def ranking(run):
    runs = {"old": run, "new": scored(0.1), "perfect": scored(0.0)}
    return segiou.rank(runs, draws=100, groups="none")


def test_ranks_are_drawn_in_their_order(ranking):
    ax = drawn_without_complaint(ranking.plot())
    assert row_names(ax) == ["perfect", "new", "old"]
    dots = [part for part in ax.collections if hasattr(part, "get_sizes")]
    assert ax.get_xlim() == (0.5, 3.5)
    assert np.ptp([part.get_sizes().sum() for part in dots]) < 1e-9  # all resamples of each


def test_boxes_of_a_ranking_are_those_of_the_images(ranking):
    ax = drawn_without_complaint(ranking.plot("case_boxes"))
    assert row_names(ax) == ["perfect", "new", "old"]
    assert ax.get_xlabel() == "mean IoU per image"


def test_a_comparison_of_three_draws_its_ranking(tmp_path, run, comparison, ranking):
    options = {"resamples": 50, "permutations": 50}
    three = compare(run, scored(0.1), scored(0.0), **options)
    assert len(row_names(three.plot("rank_stability"))) == 3
    names = {path.stem for path in plots.save_plots(three, tmp_path, dpi=40)}
    pairs = ("B_vs_A", "C_vs_A", "C_vs_B")
    assert names == {*(f"comparison_forest_{one}" for one in pairs), "model_bars", *RANKS}
    assert {path.stem for path in plots.save_plots(ranking, tmp_path, dpi=40)} == RANKS
    with pytest.raises(ValueError, match="compare three"):
        plots.rank_stability(comparison)
    with pytest.raises(ValueError, match="draws"):
        plots.rank_stability(segiou.rank([run, scored(0.1)], draws=0))
    with pytest.raises(TypeError, match=r"segiou\.rank"):
        plots.case_boxes(run)


def test_resamples_of_too_few_units_are_not_drawn(tmp_path):
    truth = [np.array([[0, 0, 1, 1, 1, 0, 1, 0]])] * 5
    wrong = [[0, 1], [2, 3], [4], [5, 6], [7]]
    preds = [[t.copy() for t in truth] for _ in range(2)]
    for i, places in enumerate(wrong):
        preds[0][i][0, places] ^= 1
        preds[1][i][0, places[:1]] ^= 1
    few = segiou.rank(
        {name: segiou.score(truth, p, labels=2) for name, p in zip("ab", preds, strict=True)},
        groups="none",
    )
    with pytest.raises(ValueError, match="P\\(best\\) cannot be estimated from 5 images"):
        plots.rank_stability(few)
    assert {path.stem for path in plots.save_plots(few, tmp_path, dpi=40)} == {"case_boxes"}


def test_training_runs_are_points_on_the_bar_of_their_mean(run):
    recipes = {"old": [run, scored(0.25)], "new": [scored(0.1), scored(0.2), scored(0.15)]}
    found = compare(recipes, groups="none")
    ax = drawn_without_complaint(found.plot("model_bars"))
    points = [line.get_xdata().tolist() for line in ax.lines if line.get_marker() == "o"]
    assert points == [list(own) for own in found.run_scores]


def test_comparisons_are_saved(tmp_path, comparison):
    files = plots.save_plots(comparison, tmp_path, dpi=40)
    names = [f"{n}.{e}" for n in ("comparison_forest", "model_bars") for e in ("png", "svg", "pdf")]
    assert [p.name for p in files] == names


def test_nothing_counted_is_still_saved(tmp_path):
    files = plots.save_plots(segiou.ConfusionMatrix(2), tmp_path, dpi=40)
    assert [p.stem for p in files] == ["confusion_matrix"] * 3
    with pytest.raises(ValueError, match="no class has a defined iou"):
        plots.class_bars(segiou.ConfusionMatrix(2))


def test_without_matplotlib_the_extra_is_named(monkeypatch, run):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install 'segiou\[plot\]'"):
        plots.class_bars(run)


def test_boundaries_beside_whole_masks():
    measured = scored(0.3, boundary=True)
    axes = plots.boundary_vs_iou(measured)
    assert row_names(axes) == ["road", "car", "pole"]
    drawn = [c.get_offsets()[:, 0] for c in axes.collections if c.get_label() == "IoU"]
    assert drawn[0].tolist() == [row.iou for row in measured.report().classes]
    ax = plots.boundary_vs_iou(scored(0.3, boundary=BoundaryOptions(widths=3)))
    assert ax.get_legend_handles_labels()[1] == ["IoU", "Boundary IoU 3 px"]
    with pytest.raises(ValueError, match="boundaries were not measured"):
        plots.boundary_vs_iou(scored(0.3))


def test_the_longest_lines_are_kept_in_both_directions():
    """The border of a hollow prediction is right: IoU 0.51, Boundary IoU 0.71 (box: 0.92, 0.77)."""
    truth = np.zeros((40, 40), int)
    truth[2:22, 2:22], truth[25:38, 25:38] = 1, 2
    pred = truth.copy()
    pred[5:19, 5:19] = pred[25, 25:38] = 0
    boundary = BoundaryOptions(widths=2)
    run = segiou.score([truth], [pred], labels=["ground", "ring", "box"], boundary=boundary)
    assert row_names(plots.boundary_vs_iou(run, limit=1)) == ["ring"]


def test_equal_names_of_models_keep_all_of_them():
    scored = segiou.ConfusionMatrix(2).update([0, 1], [0, 0])
    models = [scored.report(title=title) for title in ("a", "a (3)", "a")]
    names = plots.model_bars(models).get_legend_handles_labels()[1]
    assert names == ["a", "a (3)", "a (3) (3)"]


def test_dots_at_the_ends_of_the_axis_are_whole():
    run = segiou.score([[0, 1, 1]], [[0, 0, 0]], labels=["road", "car"])
    ax = plots.accuracy_vs_iou(run)
    assert [dots.get_clip_on() for dots in ax.collections[1:]] == [False, False]
    assert ax.collections[1].get_offsets()[:, 0].tolist() == [0.0, 1.0]


def test_an_empty_matrix_has_an_edge():
    ax = plots.confusion_matrix(segiou.ConfusionMatrix(60).update([0], [0]))
    assert all(spine.get_visible() for spine in ax.spines.values())


def test_methods_draw_kinds_by_their_names(run, comparison):
    assert row_names(run.total().plot()) == list(NAMES)
    assert run.plot().get_xlabel() == run.report().plot("class_bars").get_xlabel()
    assert (
        run.report()
        .plot("prevalence_curve", class_name="car")
        .get_xlabel()
        .startswith("share of car")
    )
    assert "pole" in run.plot("prevalence_curve").get_xlabel(), "the rarest by default"
    assert row_names(comparison.plot())[0] == "mean IoU"
    assert row_names(comparison.plot("model_bars"))[0] == "mean IoU"
    with pytest.raises(ValueError, match="kind must be 'confusion_matrix', 'class_bars'"):
        run.plot("model_bars")
    with pytest.raises(ValueError, match="kind must be 'comparison_forest' or 'model_bars'"):
        comparison.plot("class_bars")
    ax = Figure().add_subplot()
    assert run.plot("class_boxes", ax=ax) is ax


def test_boxes_are_of_the_images_that_have_the_class():
    truth = [[[0, 0, 1, 1]], [[0, 0, 0, 0]], [[0, 1, 1, 1]]]
    pred = [[[0, 0, 1, 0]], [[0, 0, 0, 1]], [[0, 1, 1, 1]]]
    ax = drawn_without_complaint(
        plots.class_boxes(segiou.score(truth, pred, labels=["road", "car"]))
    )
    # IoU of car: 1/2 and 1, and 0 in an image whose truth has none; of road 2/3, 3/4 and 1.
    assert row_names(ax) == ["car (2)", "road (3)"] or row_names(ax) == ["road (3)", "car (2)"]
    medians = {lines.get_segments()[0][0][0] for lines in ax.collections[1::2]}
    assert medians == {0.75}
    with pytest.raises(ValueError, match="per-image counts are not available"):
        plots.class_boxes(segiou.ConfusionMatrix(2))


@pytest.mark.needs("measures.surfaces")
def test_boxes_of_distances_are_of_the_cases_that_have_them():
    from segiou.measures.surfaces import SurfaceOptions

    truth = np.zeros((3, 4, 8), int)
    pred = truth.copy()
    truth[:, 1, 1], pred[0, 1, 1], pred[1, 1, 4] = 1, 1, 1
    truth[0, 3, 3] = pred[0, 3, 3] = 2
    run = segiou.score(
        truth, pred, labels=["road", "car", "pole"], exclude="road", surfaces="medpy"
    )
    ax = drawn_without_complaint(run.plot("distance_boxes"))
    # Distances of car: 0 and 3, and the last case misses it.
    assert row_names(ax) == ["car (2, 1 without)", "pole (1)"]
    assert {lines.get_segments()[0][0][0] for lines in ax.collections[1::2]} == {1.5, 0}
    assert ax.get_xlabel() == "HD95, px"
    ax = run.plot("distance_boxes", measure="surface_dice_1")
    assert sorted(row_names(ax)) == ["car (3)", "pole (1)"]
    options = SurfaceOptions(percentiles=(), widths=(1,))
    run = segiou.score(truth, pred, labels=3, surfaces=options, spacing=(1, 1))
    assert run.plot("distance_boxes").get_xlabel() == "HD, units"
    ax = run.plot("distance_boxes", measure="boundary_iou_1")
    assert ax.get_xlabel() == "boundary iou 1"
    run = segiou.score(truth, pred, labels=3, surfaces="medpy")
    with pytest.raises(ValueError, match="'hausdorff_59' was not measured; did you mean"):
        run.plot("distance_boxes", measure="hausdorff_59")
    with pytest.raises(ValueError, match="surfaces were not measured"):
        scored(0.1).plot("distance_boxes")


def test_bars_of_models_stand_side_by_side(run):
    better = scored(0.1, name="better")
    ax = drawn_without_complaint(plots.model_bars([run, better], names=["old", "new"]))
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["old", "new"]
    assert row_names(ax)[0] == "mean IoU"
    old, new = (
        {name: bar.get_width() for name, bar in zip(row_names(ax), bars, strict=True)}
        for bars in ax.containers
    )
    for bars, source in ((old, run), (new, better)):
        report = source.report()
        assert bars.pop("mean IoU") == pytest.approx(report.mean_iou)
        assert bars == {row.name: row.iou for row in report.classes}
    legend = plots.model_bars([run, better, run.report()], limit=1).get_legend()
    assert [text.get_text() for text in legend.get_texts()] == ["A", "better", "C"]
    with pytest.raises(ValueError, match="different classes"):
        plots.model_bars([run, segiou.ConfusionMatrix(3)])
    with pytest.raises(ValueError, match="names must be 2"):
        plots.model_bars([run, better], names=["only"])
    with pytest.raises(TypeError, match="names="):
        plots.model_bars({"a": run})


def test_bars_of_a_comparison_are_its_scores(comparison):
    ax = comparison.plot("model_bars")
    pair = comparison.pairs[0]
    widths = {
        name: [bars[k].get_width() for bars in ax.containers]
        for k, name in enumerate(row_names(ax))
    }
    assert widths == {row.name: [row.a, row.b] for row in (pair.overall, *pair.classes)}


def test_fonts_are_truetype_however_a_figure_is_saved(run, tmp_path):
    from matplotlib import rc_context
    from matplotlib.backends.backend_pdf import PdfPages

    figure = run.plot().figure
    figure.savefig(tmp_path / "saved.pdf")
    figure.canvas.print_figure(tmp_path / "printed.pdf")
    # Several figures share these pages, so that their fonts are what the user says of all.
    with rc_context({"pdf.fonttype": 42}), PdfPages(tmp_path / "pages.pdf") as pages:
        pages.savefig(figure)
    pickle.loads(pickle.dumps(figure)).savefig(tmp_path / "pickled.pdf")
    for path in tmp_path.iterdir():
        content = path.read_bytes()
        assert b"/FontFile2" in content, path.name
        assert b"/Type3" not in content, path.name
    out = BytesIO()
    figure.savefig(out, format="svg")
    assert b">pole</text>" in out.getvalue()
    out = BytesIO()
    figure.savefig(out, format="eps")
    assert b"/FontType 42" in out.getvalue()


def test_long_names_are_cut_and_the_count_stays():
    names = ["a name that is far too long to be files out", "car"]
    run = segiou.score([[[0, 1]], [[0, 0]]], [[[0, 1]], [[0, 1]]], labels=names)
    assert row_names(plots.class_boxes(run))[0] == "a name that is far … (2)"
    assert (
        plots.prevalence_curve(run, names[0]).get_xlabel().startswith("share of a name that is far")
    )


def test_colours_titles_and_sizes_are_passed_on(run, comparison):
    ax = run.plot("class_bars", color="red", title="a $b", figsize=(5, 2))
    drawn_without_complaint(ax)
    assert ax.figure.get_size_inches().tolist() == [5, 2]
    assert ax.figure.get_suptitle() == "a $b"
    assert ax.patches[0].get_facecolor() == (1, 0, 0, 1)
    assert run.plot("confusion_matrix", cmap="Reds").images[0].get_cmap().name == "Reds"
    given = Figure().add_subplot()
    assert comparison.plot("model_bars", title="two", ax=given).get_title() == "two"
    with pytest.raises(ValueError, match="omit figsize or ax"):
        run.plot("class_boxes", figsize=(1, 1), ax=given)


def test_slices_have_a_mark_and_an_interval_each():
    run = segiou.score(TRUTH, TRUTH[::-1], labels=NAMES)
    found = run.slices({str(i): "ab"[i % 2] for i in range(12)}, groups="none")
    axes = plots.slices(found)
    assert [text.get_text() for text in axes.get_yticklabels()] == ["slice=a", "slice=b"]
    marks = [line.get_xdata()[0] for line in axes.lines if len(line.get_xdata()) == 1]
    assert marks == [one.score for one in found]
    assert found.plot(title="x").figure.get_suptitle() == "x"
    assert plots.slices(found, limit=1).get_xlabel().endswith("\n(1 most different of 2 slices)")
    with pytest.raises(TypeError, match=r"segiou\.slices"):
        plots.slices(run)
