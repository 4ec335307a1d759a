"""Figures of score histograms: what is drawn, against hand-computed counts."""

import numpy as np
import pytest

import segiou
from segiou import plots
from segiou.measures.scores import ScoreOptions

pytest.importorskip("matplotlib")

from matplotlib.figure import Figure

# Four bins; of the second class: scores of other pixels, then of its own.
TRUTH = np.array([[0, 0, 0, 1, 1]])
SCORES = np.array([[0.1, 0.3, 0.6, 0.6, 0.9]])
DRAW = [plots.pr_curve, plots.roc_curve, plots.reliability, plots.thresholds]


def histogram(truth=TRUTH, scores=SCORES):
    return segiou.ScoreHistogram(["other", "cell"], bins=4).update(truth, scores, axis=None)


def scored(**options):
    both = np.stack([1 - SCORES, SCORES])
    measures = [ScoreOptions(bins=4)]
    return segiou.score(
        [TRUTH], [both], labels=["other", "cell"], argmax=1, measures=measures, **options
    )


def lines(ax):
    return {line.get_label(): line for line in ax.lines if not line.get_label().startswith("_")}


def test_the_dot_is_the_best_threshold_between_distant_scores():
    """Any threshold above .3 is best, and the lowest of them is nearer to .3 than to .9."""
    found = segiou.ScoreHistogram(2, bins=100).update([0, 0, 1, 1], [0.3, 0.3, 0.9, 0.9], axis=None)
    assert found.best_threshold().thresholds[1] == 0.31
    assert plots.pr_curve(found, "1").lines[-1].get_xydata().tolist() == [[1, 1]]
    assert plots.roc_curve(found, "1").lines[-1].get_xydata().tolist() == [[0, 1]]


@pytest.mark.parametrize("draw", DRAW)
def test_histograms_runs_and_reports_are_drawn_alike_on_given_axes(draw):
    run, figure = scored(), Figure()
    drawn = []
    for source in (histogram(), run, run.report()):
        ax = figure.add_subplot()
        assert draw(source, ax=ax, title="t") is ax
        figure.draw_without_rendering()
        drawn.append([line.get_xydata().tolist() for line in ax.lines])
    assert drawn[0] == drawn[1] == drawn[2]
    assert source.plot(draw.__name__).figure.get_figwidth() == 3.3


def test_pr_and_roc_curves_of_a_class():
    # Thresholds 0, .25, .5, .75: TP 2 2 2 1, FP 3 2 1 0.
    ax = plots.pr_curve(histogram(), "cell")
    ((label, line),) = lines(ax).items()
    assert label == "cell (AP 0.833)"
    np.testing.assert_allclose(line.get_xdata(), [1, 1, 1, 0.5, 0])
    np.testing.assert_allclose(line.get_ydata(), [2 / 5, 2 / 4, 2 / 3, 1, 1])
    best = ax.lines[1].get_xydata()
    np.testing.assert_allclose(best, [[1, 2 / 3]])  # IoU 2/5, 2/4, 2/3, 1/2
    ax = plots.roc_curve(histogram(), ["cell"])
    ((label, line),) = lines(ax).items()
    assert label == "cell (AUROC 0.917)"
    np.testing.assert_allclose(line.get_xdata(), [0, 0, 1 / 3, 2 / 3, 1])
    np.testing.assert_allclose(line.get_ydata(), [0, 0.5, 1, 1, 1])
    np.testing.assert_allclose(ax.lines[2].get_xydata(), [[1 / 3, 1]])


def test_the_lowest_classes_are_drawn():
    assert [label.split()[0] for label in lines(plots.pr_curve(histogram()))] == ["cell", "other"]
    assert len(lines(plots.pr_curve(histogram(), limit=1))) == 1


def test_reliability_of_a_class_and_of_the_highest_scores():
    # One row per bin: 1 pixel of 0, 1 of 0, 2 with one of the class, 1 of 1.
    ax = plots.reliability(histogram(), "cell", bins=4)
    np.testing.assert_allclose(
        lines(ax)["accuracy"].get_xydata(), [[0.125, 0], [0.375, 0], [0.625, 0.5], [0.875, 1]]
    )
    assert [bar.get_height() for bar in ax.patches] == pytest.approx([0.2, 0.2, 0.4, 0.2])
    assert "cell, ECE 0.175" in ax.get_xlabel()  # (.125 + .375 + 2 * .125 + .125) / 5
    top = histogram().calibration(4)
    drawn = lines(plots.reliability(histogram(), bins=4))["accuracy"].get_ydata()
    np.testing.assert_allclose(drawn, top.accuracy[top.pixels > 0])


def test_thresholds_of_the_rarest_class_mark_the_best():
    ax = plots.thresholds(histogram())
    drawn = {label: line.get_ydata().tolist() for label, line in lines(ax).items()}
    assert drawn["IoU"] == pytest.approx([2 / 5, 2 / 4, 2 / 3, 1 / 2])
    assert drawn["Dice"] == pytest.approx([4 / 7, 4 / 6, 4 / 5, 2 / 3])
    assert drawn["precision"] == pytest.approx([2 / 5, 2 / 4, 2 / 3, 1])
    assert drawn["recall"] == [1, 1, 1, 0.5]
    np.testing.assert_allclose(ax.lines[-1].get_xydata(), [[0.5, 2 / 3]])
    assert "cell" in ax.get_xlabel()
    assert "0.500" in ax.get_xlabel()


@pytest.mark.parametrize("draw", DRAW)
def test_what_cannot_be_drawn_is_refused(draw):
    with pytest.raises(ValueError, match="--scores"):
        draw(segiou.score(TRUTH, TRUTH, labels=2))
    with pytest.raises(ValueError, match="unknown class 'car'; choose from other, cell"):
        draw(histogram(), "car")
    with pytest.raises(TypeError, match="got list"):
        draw([1])
    with pytest.raises(ValueError, match="nothing can be drawn"):
        draw(segiou.ScoreHistogram(2))


def test_kinds_and_files(tmp_path):
    assert histogram().plot().get_ylabel() == "precision"
    with pytest.raises(ValueError, match="kind"):
        histogram().plot("class_bars")
    names = {path.stem for path in plots.save_plots(histogram(), tmp_path / "h", dpi=50)}
    assert names == {draw.__name__ for draw in DRAW}
    of_run = {path.stem for path in plots.save_plots(scored(), tmp_path / "r", dpi=50)}
    assert names | {"class_bars", "confusion_matrix"} <= of_run
