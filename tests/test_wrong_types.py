"""What is no input is refused in words, not by an accident further in."""

from __future__ import annotations

import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import segiou
from segiou import (
    analysis as imbalance,
    geometry,
    inference,
    masks,
    metrics,
    metrics as per_image,
    read_mask,
)
from segiou.counting import ConfusionCounts, count_pairs, scores_to_labels
from segiou.labels import LabelClass
from segiou.measures import measure_of
from segiou.measures.boundary import BoundaryOptions
from segiou.regions import Tolerance
from segiou.report import render_comparison, render_report, save_errors, write_html
from segiou.runs import run_from_counts

RUN = segiou.score([[[0, 1]], [[0, 0]]], [[[0, 1]], [[0, 1]]], labels=2)
CM = RUN.total()
COUNTS = CM.counts
NAMES = ["a", "b"]
BOX = [0, 0, 1, 1]
CORNERS = [(0, 0), (1, 0), (1, 1)]


def folder(**options):
    """Arguments are looked at before any file is."""
    return segiou.score_folder("no truth", "no predictions", labels=2, **options)


PAGE = RUN.report()
COMPARED = segiou.compare(RUN, RUN)
WRONG_KINDS = [
    (lambda: COMPARED.outcome(None), "pair must be one of Comparison.pairs, not NoneType"),
    (lambda: COMPARED.pair_sentences("A"), "pair must be one of Comparison.pairs, not str"),
    (lambda: COMPARED.to_latex(transposed=np.zeros(0)), "transposed must be True or False"),
    (lambda: PAGE.to_latex(transposed=1), "transposed must be True or False, not int"),
    (lambda: PAGE.table(np.zeros(3)), "key must be text, not ndarray"),
    (lambda: RUN.select([[]]), "an id must be text, not list"),
    (lambda: RUN.under("segiou"), "protocol must be a Protocol, not str"),
    (lambda: RUN.merge(RUN, partial=[]), "partial must be True or False, not list"),
    (lambda: metrics.mean_iou(COUNTS) and metrics.cohen_kappa(COUNTS, xp=1), "xp must be a module"),
    (lambda: metrics.pixel_accuracy(COUNTS, xp="torch"), "xp must be a module, such as numpy"),
    (lambda: metrics.frequency_weighted_iou(COUNTS, xp=None), "xp must be a module.*NoneType"),
    (lambda: metrics.mean("0.5"), "values must be numbers with an axis of classes"),
    (lambda: metrics.image_influence(RUN.counts, 1), "whole must be segiou.Counts"),
    (lambda: metrics.image_influence(RUN.counts, metric="iou"), "metric must be a function"),
    (lambda: measure_of([]), "key must be text, not list"),
    (lambda: write_html("x.html", None), "report must be a Report, as from run.report"),
    (lambda: render_report(PAGE, run="r.run"), "expects runs, got str"),
    (lambda: render_report(PAGE, command=1), "command must be text, not int"),
    (lambda: render_report(PAGE, run=RUN, folder=[]), "folder must be a path, not list"),
    (lambda: save_errors("folder", None), "expects runs, got NoneType"),
    (lambda: render_report(PAGE, baseline=1), "baseline must be a Comparison"),
    (lambda: render_report(PAGE, slices=["x"]), "each of slices must be of the class Slices"),
    (lambda: render_report(PAGE, intervals=3), "several results of the class Intervals, not int"),
    (lambda: render_comparison(PAGE, RUN, RUN), "comparison must be a Comparison"),
    (lambda: segiou.ConfusionMatrix(np.array(3)), "labels must be a label set.*not ndarray"),
    (lambda: segiou.ConfusionMatrix(3, ignore=np.array(3)), "ignore must be an integer"),
    (lambda: segiou.ConfusionMatrix.from_options(3), "options must be ClassOptions"),
    (lambda: segiou.score_folder(np.zeros((2, 2)), "pred", labels=2), "truth must be a path"),
    (lambda: scores_to_labels([0.5], threshold=[0.5]), "threshold must be a number, not list"),
    (lambda: segiou.compare(RUN, RUN, blocks=np.zeros(3)), "blocks must be a number"),
    (lambda: segiou.bootstrap(RUN.total()), "a ConfusionMatrix has no per-image counts"),
    (lambda: segiou.bootstrap(RUN.counts, "iou", level="95"), r"level must be a number, not str"),
    (lambda: segiou.bootstrap("run.sqlite"), "not str .*open a run file with segiou.Run.open"),
    (lambda: RUN.report().score(None), "name must be text, not NoneType"),
    (lambda: RUN.report().score("iou", 1), "row must be text, not int"),
    (lambda: segiou.bootstrap(RUN.counts, 3), "metric must be the name of a metric or a function"),
    (lambda: segiou.bootstrap(RUN.counts, groups="drive"), "groups must be a sequence.*not str"),
    (
        lambda: segiou.compare(RUN, "b.sqlite"),
        "expects runs, got str; open a run file with segiou.Run.open",
    ),
    (lambda: segiou.compare(RUN, RUN, names=5), "names must be a sequence of names.*not int"),
    (lambda: RUN.merge(None), "each argument of merge must be a Run, not NoneType"),
    (lambda: RUN.select("0"), "ids must be a sequence of ids, not str"),
    (lambda: RUN.groups(None), "a regular expression, a mapping or a function, not NoneType"),
    (lambda: RUN.report(worst="3"), r"worst must be an integer, not str \('3'\)"),
    (lambda: RUN.report(intervals=True), "intervals must be what Run.intervals gives, not bool"),
    (lambda: segiou.Run.open(3), "path must be a path, not int"),
    (lambda: segiou.load_labels(None), "class names or their number, not NoneType"),
    (lambda: segiou.load_labels(2.0), "class names or their number, not float"),
    (lambda: segiou.ConfusionMatrix(True), "class names or their number, not bool"),
    (lambda: segiou.ConfusionMatrix(2, ignore=2.5), "ignore must be an integer or a class name"),
    (lambda: segiou.ConfusionMatrix(2, ignore=[255.0]), "ignore must be an integer.*not float"),
    (lambda: segiou.ConfusionMatrix(2, exclude=True), "exclude must be an integer.*not bool"),
    (lambda: segiou.ConfusionMatrix(2, unassigned=None), "'error' or 'count', not NoneType"),
    (lambda: CM.update([[0]], [[[0.1], [0.9]]], argmax="0"), "argmax must be an integer, not str"),
    (lambda: CM.update([[0]], [[0.1]], threshold="0.5"), "threshold must be a number"),
    (lambda: CM.add([[1]]), "tally must be ConfusionCounts, as from ConfusionMatrix.count"),
    (lambda: CM.load_state_dict([]), "state must be a mapping as returned by state_dict, not list"),
    (lambda: CM.mean_iou(["segiou"]), "a Protocol or its name, not list"),
    (
        lambda: segiou.LabelSet("x", ("sky",)),
        "a sequence of LabelClass; LabelSet.from_names",
    ),
    (lambda: LabelClass("sky", 0), "values of class 'sky' must be a sequence of integers, not int"),
    (lambda: segiou.LabelSet.numbered("2"), "num_classes must be an integer, not str"),
    (lambda: segiou.explain(COUNTS), "class_names must be passed with counts"),
    (lambda: segiou.explain(CM.matrix), "a run, a confusion matrix or a report, not ndarray"),
    (lambda: metrics.iou(CM), "counts must be segiou.Counts, such as cm.counts"),
    (lambda: metrics.mean(np.array([0.5, 1.0]), [0, 1]), "include must be bool, one per class"),
    (lambda: metrics.mean(np.array([0.5, 1.0]), True), "include must have one bool per class"),
    (lambda: metrics.f_beta(COUNTS, "2"), "beta must be a number, not str"),
    (lambda: metrics.soft_iou(["a"], ["b"]), "truth must be probabilities"),
    (lambda: per_image.image_level_means(RUN), "counts per image must be segiou.Counts"),
    (lambda: per_image.image_level_means(RUN.counts, "iou"), "metric must be a function of Counts"),
    (lambda: per_image.worst_mean([0.5], "10"), "quantile must be a whole percentage.*not str"),
    (
        lambda: imbalance.at_prevalence(CM, "balanced"),
        "tally must be a segiou.counting.counts.ConfusionCounts",
    ),
    (lambda: imbalance.prevalence_curve(CM.tally, 0.0), "class_index must be an integer"),
    (
        lambda: ConfusionCounts([[1, 0]]).group_counts([0]),
        "group 0 must be a sequence of class",
    ),
    (lambda: segiou.score([[[0]]], 3, labels=2), "pred must be an iterable of images, not int"),
    (
        lambda: segiou.score([[[0]]], [[[0]]], labels=2, ids="0"),
        "ids must be one id per image, not str",
    ),
    (lambda: folder(workers="2"), r"workers must be an integer, not str \('2'\)"),
    (lambda: folder(workers=2.0), r"workers must be an integer, not float \(2.0\)"),
    (lambda: folder(executor=3), "executor must be a concurrent.futures.Executor, or a function"),
    (lambda: folder(shard=3), r"shard must be two integers, \(part, parts\), not int"),
    (lambda: folder(progress=1), "progress must be a function of the pairs done and all"),
    (lambda: folder(allow_lossy="no"), r"allow_lossy must be True or False, not str \('no'\)"),
    (lambda: folder(run=0), "run must be a path or a URL, not int"),
    (lambda: geometry.greedy_match([[0.5]], ["a"]), "scores must be numbers, not list"),
    (
        lambda: geometry.greedy_match([[0.5]], threshold="0.5"),
        "threshold must be a number, not str",
    ),
    (
        lambda: geometry.greedy_match([[0.5]], threshold=True),
        "threshold must be a number, not bool",
    ),
    (lambda: geometry.consensus([[[0]], [[0]]], "2"), "num_classes must be an integer, not str"),
    (lambda: geometry.consensus(3, 2), "masks must be label images, one per annotator, not int"),
    (lambda: geometry.count_label_sets(None, []), "truth must be a sequence of samples"),
    (lambda: segiou.compare(RUN, RUN).to_text(width=np.nan), "width must be an integer, not float"),
    (lambda: folder(key=7), "key must be text, not int"),
    (
        lambda: segiou.score([["a.png"]], [["b.png"]], labels=2),
        "truth contains strings",
    ),
    (lambda: read_mask(3), r"path must be a path, not int \(3\)"),
    (lambda: read_mask(b"x.png"), "path must be a path, not bytes"),
    (lambda: read_mask("x.png", "camvid"), "labels must be a LabelSet, as returned by segiou.load"),
    (lambda: read_mask("x.png", allow_lossy="no"), "allow_lossy must be True or False, not str"),
    (lambda: RUN.worst("3"), r"n must be an integer, not str \('3'\)"),
    (lambda: RUN.worst(2.0), r"n must be an integer, not float \(2.0\)"),
    (lambda: RUN.worst(by=3), r"by must be the name of a score, not int \(3\)"),
    (lambda: BoundaryOptions(None), "widths must be a number, a string such as '2%', or several"),
    (lambda: BoundaryOptions(trimaps="no"), "trimaps must be True or False, not str"),
    (lambda: BoundaryOptions(border=None), "border must be 'reference', 'boundary' or 'none', not"),
    (lambda: Tolerance("3"), r"tolerance must be a number, not str \('3'\)"),
    (lambda: count_pairs([0], [0], "2"), r"num_classes must be an integer, not str \('2'\)"),
    (lambda: count_pairs([0], [0], 2.0), r"num_classes must be an integer, not float \(2.0\)"),
    (lambda: count_pairs([0], [0], 2, ignore="255"), r"ignore must be an int.*str \('255'\)"),
    (lambda: count_pairs([0], [0], 2, ignore=[2.5]), r"ignore must be an integer, not float"),
    (lambda: count_pairs([0], [0], 2, unassigned=None), "'error' or 'count', not NoneType"),
    (lambda: run_from_counts(CM.options, 3), "images must be an iterable of ImageCount.*not int"),
    (lambda: run_from_counts(CM.options, [RUN]), "each of images must be an ImageCount, not Run"),
    (
        lambda: run_from_counts(CM.options, skipped=["x"]),
        "each of skipped must be a Problem, not str",
    ),
    (
        lambda: run_from_counts(CM.options, provenance=["a"]),
        "provenance must be a mapping, not list",
    ),
    (lambda: run_from_counts(CM.options, measures=3), "measures must be measures or their keys"),
    (
        lambda: run_from_counts(CM.options, measures=[3]),
        "each of measures must be measures or their keys",
    ),
    (lambda: geometry.mask_to_box("mask"), "mask must be boolean or integer, got dtype <U4"),
    (lambda: geometry.box_to_mask(None, (2, 2)), "each box must consist of integers or floats"),
    (lambda: geometry.box_to_mask(BOX, (2, 2), fmt=None), "'xywh' or 'cxcywh', not NoneType"),
    (lambda: geometry.box_iou([BOX], [BOX], elementwise="no"), "elementwise must be True or False"),
    (
        lambda: geometry.mask_iou([[[1]]], [[[1]]], elementwise=1),
        "elementwise must be True or Fals",
    ),
    (lambda: list(geometry.iter_box_iou([BOX], [BOX], measure=3)), "measure must be .*not int"),
]

WRONG_KINDS += [
    (lambda: segiou.slices(RUN, by="(?P<a>.)", search="no"), "search must be True or False"),
    (lambda: segiou.slices(RUN, by="(?P<a>.)", by_class=1), "by_class must be True or False"),
    (lambda: segiou.slices(RUN, by=[{"id": "0"}], key=1), "key must be a regular expression"),
    (lambda: segiou.slices(RUN, by=[{"id": "0"}], columns=[1]), "a name of columns must be text"),
    (lambda: segiou.analysis.model_table(RUN, intervals="no"), "intervals must be True or False"),
    (lambda: scores_to_labels([0.5], threshold=0, allow_nan="no"), "allow_nan must be True or"),
    (lambda: segiou.runs.merge_files([], "x", partial="no"), "partial must be True or False"),
    (lambda: segiou.report.write_html("x/", None, overwrite="no"), "overwrite must be True or"),
    (lambda: segiou.report.write_html("x", None, overwrite="no"), "overwrite must be True or"),
    (lambda: segiou.report.write_html(1, RUN.report()), "path must be a path, not int"),
    (lambda: RUN.report().score(1), "must be text, not int"),
    (lambda: RUN.report().scores(names=1), "names must be names of scores"),
    (lambda: RUN.report().better(None), "the name of a score must be text"),
    (lambda: RUN.report().to_json(indent=1.5), "indent must be an integer, not float"),
    (lambda: RUN.report().to_text(detail="no"), "detail must be True or False"),
    (lambda: RUN.report().to_csv(reverse="no"), "reverse must be True or False"),
    (lambda: RUN.report().to_text(color="no"), "color must be True or False"),
    (lambda: CM.report(title=1), "title must be text, not int"),
    (lambda: RUN.intervals(aggregate=[]), "aggregate must be .*, not list"),
    (lambda: RUN.to_csv(long="no"), "long must be True or False"),
    (lambda: RUN.to_parquet(1), "path must be a path"),
    (lambda: RUN.tally("a"), "index must be an integer"),
    (lambda: RUN.plan([]), "the key of a measure must be text"),
    (lambda: RUN.report(worst_by=1), "worst_by must be the name of a score"),
    (lambda: RUN.structure_counts(1), "members must be a sequence of sequences"),
    (lambda: RUN.to_html(examples="3"), "examples must be an integer"),
    (lambda: segiou.LabelSet.numbered(2).index(1), "the name of a class must be text"),
    (lambda: RUN.report().save("x.json", format=[]), "format must be the name of a format"),
    (lambda: RUN.to_html(images=1), "images must be a path"),
    (lambda: scores_to_labels([[0.5]], argmax="0"), "argmax must be an integer"),
    (lambda: segiou.counting.count_channels([1], [1], axis=None), "axis must be an integer"),
    (lambda: segiou.ScoreHistogram.of_run(1), "run must be a Run, not int"),
    (lambda: segiou.runs.merge_files(1, "x"), "paths must be paths of run files"),
    (lambda: segiou.runs.run_from_counts(CM.options, provenance=[]), "provenance must be a map"),
    (lambda: segiou.analysis.compare_scores(RUN, RUN, metrics=1), "metrics must be scores"),
    (lambda: segiou.analysis.majority_class(1), "counts must be"),
    (lambda: segiou.analysis.skill_score("a", 0.5), "score must be a number or an array"),
    (lambda: segiou.analysis.random_iou([0.5], None), "prior must be a number or an array"),
    (lambda: inference.jackknife(1), "of must be a Statistic"),
    (lambda: inference.permutation_test(1, 1, 10, 0), "a must be a Statistic"),
    (lambda: inference.power(1, len), "units must be Units"),
    (lambda: inference.holm_adjust("a"), "p must be a sequence of p-values"),
    (lambda: inference.median_limits("a"), "values must be numbers"),
    (lambda: inference.units_of("a"), "num_images must be an integer"),
    (lambda: masks.pair_folders(1, {}), "truth must be a mapping of names to paths"),
    (lambda: masks.pair_folders({}, {}, key=1), "key must be text, not int"),
    (lambda: masks.find_masks(1), "folder must be a path, not int"),
    (lambda: segiou.scoring.inspect_folder(1), "must be a path, not int"),
    (lambda: segiou.scoring.inspect_folder(".", labels=3), "labels must be a LabelSet"),
    (lambda: segiou.scoring.inspect_folder(".", progress=1), "progress must be a function"),
    (lambda: segiou.ChannelCounts(2, ignore=1.5), "ignore must be an integer, or several"),
    (
        lambda: segiou.LabelSet.numbered(2).with_values(1),
        "values must be a value, or None, of each class",
    ),
    (lambda: geometry.vote_counts([[0], [0]], 2, ignore=1.5), "ignore must be integers"),
]

WRONG_POLYGONS = [
    (
        lambda: geometry.polygon_iou(None, [CORNERS]),
        "truth polygons must be a sequence of polygons",
    ),
    (
        lambda: geometry.polygon_iou([CORNERS], "ab"),
        "predicted polygons must be a sequence.*not str",
    ),
    (
        lambda: geometry.polygon_iou([CORNERS], [None]),
        "predicted polygon 0 must be a shapely Polyg",
    ),
    (
        lambda: geometry.polygon_iou([CORNERS], [CORNERS], elementwise="no"),
        "elementwise must be True or False, not str",
    ),
    (
        lambda: geometry.polygon_to_mask(CORNERS, (2, 2), repair=None),
        "repair must be True or False",
    ),
]


@pytest.mark.parametrize(("call", "text"), WRONG_KINDS, ids=[text for _, text in WRONG_KINDS])
def test_wrong_kinds(call, text):
    with pytest.raises(TypeError, match=text):
        call()


@pytest.mark.parametrize(("call", "text"), WRONG_POLYGONS, ids=[text for _, text in WRONG_POLYGONS])
def test_wrong_kinds_of_polygons(call, text):
    pytest.importorskip("shapely", reason="polygons need shapely")
    with pytest.raises(TypeError, match=text):
        call()


def test_counts_of_numpy_do_not_overflow():
    counts = segiou.ChannelCounts(2)
    for _ in range(3):
        counts.add(COUNTS if COUNTS.tp.ndim == 1 else COUNTS.summed(), pairs=np.int8(100))
    assert counts.pairs == 300


def test_no_comparison_to_draw():
    plots = pytest.importorskip("segiou.plots")
    with pytest.raises(TypeError, match=r"comparison must be a result of segiou\.compare, not Run"):
        plots.comparison_forest(RUN)


WRONG_VALUES = [
    (lambda: metrics.soft_iou([0.5], [0.5], axis=2**63), "axis must be at most 0"),
    (lambda: metrics.soft_dice([0.5], [0.5], axis=(0, -1)), "axis has an axis twice"),
    (lambda: inference.units_of(2**63), "num_images must be at most"),
    (lambda: read_mask("a\0b.png"), "cannot be the path of a file"),
    (lambda: read_mask("\ud800.png"), "cannot be the path of a file"),
    (lambda: segiou.score([[[0]]], [[[0]]], labels=1, ids=["\ud800"]), "correct the id"),
    (lambda: ConfusionCounts.of_matrix(3), r"matrix must have shape \(\.\.\., C, C\)"),
    (lambda: ConfusionCounts.of_matrix([[1]], [[]]), r"unassigned must be an integer, or have"),
    (lambda: segiou.slices(RUN, by="(?P<a>.)", key="x"), "key='x' applies to tables"),
    (lambda: folder(workers=0), "workers must be at least 1, got 0"),
    (lambda: folder(processes=-1), "processes must be at least 1, got -1"),
    (lambda: folder(missing="ignore"), "missing must be 'error' or 'skip', got 'ignore'"),
    (lambda: folder(on_error="ignore"), "on_error must be 'stop' or 'skip', got 'ignore'"),
    (lambda: folder(resize_pred="bilinear"), "resize_pred must be 'nearest', got 'bilinear'"),
    (lambda: folder(shard=(3, 2)), "shard 3/2: part must be between 1 and 2"),
    (lambda: segiou.ConfusionMatrix(0), "num_classes must be at least 1, got 0"),
    (lambda: segiou.ConfusionMatrix([]), "has no classes; expected at least one"),
    (lambda: segiou.ConfusionMatrix(2, exclude=-1), "no class -1, expected an index from 0 to 1"),
    (lambda: CM.update([[0]], [[0.1]], threshold=np.nan), "threshold must be a number, got NaN"),
    (lambda: CM.load_state_dict({}), "missing: options"),
    (lambda: LabelClass("sky", (0,), ((1, 2, 300),)), "three numbers from 0 to 255"),
    (lambda: segiou.LabelSet.from_toml("none.toml"), "none.toml is not a file"),
    (lambda: metrics.mean(np.array([0.5, 1.0]), [True]), "one bool per class"),
    (lambda: imbalance.prevalence_curve(CM.tally, -1), "class_index must be at least 0, got -1"),
    (lambda: imbalance.prevalence_curve(CM.tally, 2), "class_index must be at most 1, got 2"),
    (lambda: RUN.report(worst=-1), "worst must be at least 0, got -1"),
    (lambda: RUN.intervals(level=np.nan), "level must be a number, got NaN"),
    (lambda: RUN.intervals(ids=["a"]), "ids are those of the run or report; omit ids"),
    (lambda: RUN.intervals(protocol=""), "unknown protocol ''"),
    (lambda: RUN.report().to_json(indent=2**63), "indent must be at most 100, got 9223372036854"),
    (lambda: segiou.compare(RUN, RUN).to_json(indent=-1), "indent must be at least 0, got -1"),
    (lambda: RUN.report().intervals_of("speed"), "unknown score 'speed'"),
    (lambda: RUN.report().save("x.json", format=""), "''"),
    (lambda: RUN.tally(2**63), "index must be at most"),
    (lambda: segiou.runs.merge_files([], "x"), "paths is empty; pass at least one run file"),
    (lambda: segiou.analysis.majority_counts(COUNTS, 9), "majority must be at most"),
    (lambda: segiou.analysis.rank_cases([[0.1], [0.2]], alpha=7), "alpha must be at most 1"),
    (lambda: inference.power(inference.units_of(4), lambda n: (1, 1), target=1), "target must be"),
    (lambda: geometry.vote_counts([[0], [0]], 2**63), "num_classes must be at most 65536"),
    (lambda: geometry.vote_counts([], 2), "masks of at least two annotators, got 0"),
    (lambda: [*masks.window_slices((4, 4), (2,))], "must have one step per axis"),
    (lambda: [*masks.window_slices((4, 4), pixels=0)], "pixels must be at least 1, got 0"),
    (lambda: segiou.scoring.inspect_folder(".", workers=0), "workers must be at least 1, got 0"),
    (lambda: RUN.intervals(resamples=10**12), "resamples must be at most 1000000, got 10{12}"),
    (lambda: segiou.compare(RUN, RUN, resamples=10**7), "resamples must be at most 1000000"),
    (lambda: segiou.compare(RUN, RUN, permutations=10**12), "permutations must be at most 1000000"),
    (lambda: segiou.rank([RUN, RUN], draws=10**12), "draws must be at most 1000000"),
    (lambda: imbalance.explain_difference(COUNTS, COUNTS, NAMES, names=["x"]), "names must be two"),
    (lambda: RUN.worst(-1), "n must be at least 0, got -1"),
    (lambda: RUN.worst(by="iuo"), "unknown score 'iuo'; choose from iou, dice, precision"),
    (lambda: count_pairs([0], [0], 0), "num_classes must be at least 1, got 0"),
    (lambda: geometry.box_to_mask(BOX, 3), r"shape must be two sizes, \(height, width\), got 3"),
    (
        lambda: geometry.mask_to_box([[0, 1], [1]]),
        "mask is not a rectangular array",
    ),
    (
        lambda: geometry.box_iou([BOX, [0]], [BOX]),
        "each truth box is not a rectangular array",
    ),
]


@pytest.mark.parametrize(("call", "text"), WRONG_VALUES, ids=[text for _, text in WRONG_VALUES])
def test_wrong_values(call, text):
    with pytest.raises(ValueError, match=text):
        call()


@pytest.mark.parametrize("flag", [np.True_, np.False_])
def test_flags_of_numpy_are_flags(flag):
    found = geometry.box_iou([BOX], [BOX], elementwise=flag)
    assert found.tolist() == ([1.0] if flag else [[1.0]])


def test_boundary_options_of_a_run_may_be_asked_for_with_true():
    assert (
        run_from_counts(CM.options, measures=["boundary"]).plan("boundary").measure
        == BoundaryOptions()
    )
    assert run_from_counts(CM.options).plan("boundary") is None


@pytest.mark.parametrize("number", [np.int64(19), np.uint8(19)])
def test_integers_of_numpy_are_integers(number):
    assert segiou.ConfusionMatrix(number, ignore=np.uint8(255)).num_classes == 19
    assert segiou.ConfusionMatrix(19, exclude=[np.int32(0)]).include.sum() == 18
    assert segiou.ChannelCounts(number).num_classes == 19


def test_names_in_an_array_are_names():
    assert segiou.explain(COUNTS, np.array(NAMES)).classes[0].name == "a"


def test_an_executor_or_what_gives_one(tmp_path):
    for name in ("truth", "pred"):
        (tmp_path / name).mkdir()
        np.save(tmp_path / name / "a.npy", np.zeros((2, 2), dtype=np.uint8))
    paths = (tmp_path / "truth", tmp_path / "pred")
    with ThreadPoolExecutor(1) as pool:
        for executor in (pool, lambda: pool):
            assert len(segiou.score_folder(*paths, labels=2, executor=executor)) == 1
    with pytest.raises(TypeError, match=r"result of executor\(\) must be .*Executor, not int"):
        segiou.score_folder(*paths, labels=2, executor=lambda: 3)


# -- generators --------------------------------------------------------------------------------


def test_images_may_come_one_by_one():
    alive, most = set(), [0]

    def images(values, name):
        for i, value in enumerate(values):
            alive.add((name, i))
            most[0] = max(most[0], len(alive))
            yield np.array([[value, 1]])
            alive.discard((name, i))

    found = segiou.score(
        images([0, 1, 0], "truth"), images([0, 0, 1], "pred"), labels=2, ids=(i for i in "abc")
    )
    assert found.ids == ("a", "b", "c")
    assert found.total().matrix.tolist() == [[1, 1], [1, 3]]
    assert most[0] == 2  # a truth and its prediction


@pytest.mark.parametrize(("truths", "preds"), [(2, 3), (3, 2)])
def test_generators_that_do_not_end_together(truths, preds):
    text = "got 2 (truth images, but more predictions|predictions, but more truth)"
    with pytest.raises(ValueError, match=text):
        segiou.score(([[0]] for _ in range(truths)), ([[0]] for _ in range(preds)), labels=2)


# -- explanations ------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", [None, "monai"])
def test_whatever_was_scored_can_be_explained(protocol):
    run = segiou.score([[[0, 1]], [[0, 2]]], [[[0, 1]], [[0, 1]]], labels=3, exclude=2)
    names = run.class_names
    expected = segiou.explain(
        run.counts, names, include=run.include, protocol=protocol or "segiou"
    ).to_dict()
    assert segiou.explain(run, protocol=protocol).to_dict() == expected
    assert segiou.explain(run.report(protocol)).to_dict() == expected
    if protocol is None:
        total = run.total()
        assert segiou.explain(total).to_dict() == expected
        assert segiou.explain(total.report()).to_dict() == expected
    else:
        with pytest.raises(ValueError, match="averages over images and needs per-image counts"):
            segiou.explain(run.total(), protocol=protocol)


# -- memory ------------------------------------------------------------------------------------

LITTLE_MEMORY = """
import resource
import segiou
resource.setrlimit(resource.RLIMIT_AS, (6 << 30, resource.RLIM_INFINITY))
run = segiou.score([[[0, 29_999]]], [[[0, 7]]], labels=30_000)
report = run.report()
assert report.mean_iou == 1 / 3  # nothing of this needs a table of all pairs
assert '"matrix_cells": [' in report.to_json() and str(report) and report.to_markdown()
for call in (segiou.ConfusionMatrix, lambda n: run.total(), lambda n: run.report().matrix):
    try:
        call(30_000)
    except ValueError as error:
        print(error)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the limit holds on Linux")
@pytest.mark.gate
def test_too_many_classes_for_the_memory():
    done = subprocess.run(
        [sys.executable, "-c", LITTLE_MEMORY], capture_output=True, text=True, check=True
    )
    refused = re.compile(
        r".*30000 classes need (20\.1|6\.7) GiB, but "
        r"[\d.]+ GiB of memory fit \d+ classes; .*"
    )
    assert [bool(refused.fullmatch(line)) for line in done.stdout.splitlines()] == [True] * 3


MASKED = np.ma.array(np.eye(3, dtype=int), mask=np.tri(3, dtype=bool))
LOST_MASKS = [
    lambda: metrics.soft_iou(MASKED, MASKED),
    lambda: segiou.Counts(*[MASKED] * 4),
    lambda: geometry.box_iou(np.ma.array([BOX], mask=[[1, 0, 0, 0]]), [BOX]),
    lambda: geometry.mask_iou(MASKED[None], MASKED[None]),
    lambda: geometry.mask_to_box(MASKED),
    lambda: geometry.greedy_match(MASKED / 2),
    lambda: geometry.count_indicators(MASKED, MASKED),
    lambda: geometry.polygon_iou([np.ma.array([[0, 0], [1, 0], [1, 1.0]], mask=True)], []),
    lambda: segiou.analysis.rank_cases(MASKED / 2),
]


@pytest.mark.parametrize("call", LOST_MASKS)
def test_masks_of_masked_arrays_are_not_lost(call):
    with pytest.raises(TypeError, match="is a masked array; pass"):
        call()


def test_tensors_with_gradients_are_values():
    torch = pytest.importorskip("torch")
    scores = torch.tensor([0.25, 0.75], requires_grad=True)
    assert metrics.soft_iou([0.25, 0.75], scores) == 1
    boxes = torch.tensor([[0.0, 0.0, 2.0, 2.0]], requires_grad=True)
    assert geometry.box_iou(boxes, boxes).tolist() == [[1.0]]
