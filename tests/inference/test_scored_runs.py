"""Scores of groups of classes, means over cases and contours: one name, one value, intervals."""

import json
from pathlib import Path

import numpy as np
import pytest

import segiou
from segiou import explain
from segiou.analysis import explain_difference
from segiou.cli.main import main
from segiou.inference.scored_runs import scored_images

LABELS = """name = "streets"
classes = [
  {name = "sky", values = [0]},
  {name = "road", values = [1]},
  {name = "car", values = [2]},
  {name = "bus", values = [3]},
]
[groups]
vehicles = ["car", "bus"]
"""


@pytest.fixture(scope="module")
def labels(tmp_path_factory):
    path = tmp_path_factory.mktemp("labels") / "streets.toml"
    path.write_text(LABELS)
    return path


def masks(number=6):
    blocks = np.random.default_rng(1).integers(0, 4, (number, 5, 5))
    truth = np.kron(blocks, np.ones((4, 4), int)).astype(np.uint8)
    return truth, np.roll(truth, 1, 1)


@pytest.mark.parametrize("protocol", ["segiou", "nnunet", "monai"])
@pytest.mark.parametrize("score", ["iou", "recall", "specificity"])
def test_a_group_is_the_class_that_its_classes_make_together(labels, protocol, score):
    truth, pred = masks()
    run = segiou.score(truth, pred, labels=labels)
    as_one = segiou.score(truth > 1, pred > 1, labels=["rest", "vehicles"])
    found = run.intervals(f"{score}:vehicles", protocol=protocol).overall
    assert found == as_one.intervals(f"{score}:vehicles").overall
    assert run.report(protocol).score(f"{score}:vehicles") == found.value


def test_groups_are_compared_ranked_and_gated(labels, tmp_path):
    truth, pred = masks()
    a = segiou.score(truth, pred, labels=labels)
    b = segiou.score(truth, np.roll(pred, 1, 1), labels=labels)
    as_one = [
        segiou.score(truth > 1, p > 1, labels=["rest", "vehicles"])
        for p in (pred, np.roll(pred, 1, 1))
    ]
    pair = segiou.compare(a, b, metric="iou:vehicles").pairs[0].overall
    assert pair == segiou.compare(*as_one, metric="iou:vehicles").pairs[0].overall
    first = segiou.rank([a, b], by="iou:vehicles", draws=0).models[0]
    assert first.value == a.report().score("iou:vehicles")
    values = a.intervals("iou:vehicles", aggregate="I").overall.value
    rows = a.worst(6, by="iou:vehicles")
    assert np.mean([row["iou:vehicles"] for row in rows]) == pytest.approx(values)
    a.save(tmp_path / "a.sqlite")
    options = ["--confident", "--format", "json", "-o", str(tmp_path / "a.json")]
    assert (
        main(["report", str(tmp_path / "a.sqlite"), "--require", "iou:vehicles=0.4", *options]) == 0
    )
    gate = json.loads((tmp_path / "a.json").read_text())["thresholds"][0]
    bounds = a.intervals("iou:vehicles", level=0.9).overall
    assert (gate["value"], gate["low"], gate["high"]) == (bounds.value, bounds.low, bounds.high)


def test_pixels_outside_the_groups_are_dropped_where_the_protocol_says_so(labels):
    truth, pred = np.array([[[2, 0, 3, 1]]]), np.array([[[2, 2, 0, 1]]])
    truth, pred = np.repeat(truth, 2, 0), np.repeat(pred, 2, 0)
    run = segiou.score(truth, pred, labels=labels)
    assert run.structure_counts([(2, 3)]).fp.tolist() == [[1], [1]]
    assert run.structure_counts([(2, 3)], grouped_truth_only=True).fp.tolist() == [[0], [0]]
    found = run.intervals("iou:vehicles", protocol="cityscapes").overall.value
    assert found == 1 / 2  # 1 correct, 1 missed, the false positive is dropped
    report = run.report("cityscapes", worst=1, worst_by="iou:vehicles")
    assert report.worst_images.rows[0]["iou:vehicles"] == found
    assert run.worst(1, by="iou:vehicles")[0]["iou:vehicles"] == 1 / 3  # the run's own protocol


def test_a_false_positive_on_another_group_counts_under_every_protocol():
    truth, pred = [[[7, 7, 26, 26]]] * 3, [[[7, 26, 26, 7]]] * 3  # road and car, of two groups
    run = segiou.score(truth, pred, labels="cityscapes", protocol="cityscapes")
    for name in ("iou:flat", "iou:vehicle", "precision:flat", "dice:vehicle"):
        expected = 1 / 3 if name.startswith("iou") else 1 / 2
        assert run.report().score(*name.split(":")) == expected
        assert run.intervals(name).overall.value == expected
        assert segiou.compare(run, run, metric=name).pairs[0].overall.a == expected
        assert run.worst(1, by=name)[0][name] == expected
        assert segiou.rank([run, run], by=name, draws=0).models[0].value == expected


def test_images_without_a_class_are_not_ranked_by_it(labels):
    truth = np.array([[[2, 0]], [[2, 2]], [[0, 1]]])  # the car of the last image is predicted only
    pred = np.array([[[2, 2]], [[2, 2]], [[2, 1]]])
    run = segiou.score(truth, pred, labels=labels)
    for name in ("iou:car", "iou:vehicles"):
        rows = run.worst(3, by=name)
        assert [(row["id"], row[name]) for row in rows] == [("0", 0.5), ("1", 1.0)]
        assert run.intervals(name, aggregate="I").overall.value == 0.75


def test_undeclared_predictions_are_in_no_group():
    run = segiou.score([[[0, 1, 1]]], [[[0, 7, 1]]], labels=2, unassigned="count")
    counts = run.structure_counts([(0, 1)])
    assert [x.tolist() for x in (counts.tp, counts.fp, counts.fn, counts.tn)] == [
        [[2]],
        [[0]],
        [[1]],
        [[0]],
    ]


def test_a_report_has_no_groups_per_image(labels):
    report = segiou.score(*masks(), labels=labels).report()
    with pytest.raises(ValueError, match="pass the run"):
        segiou.confidence_intervals(report, "iou:vehicles")


def test_means_over_cases_are_a_score_of_volumes(tmp_path):
    nib = pytest.importorskip("nibabel")
    truth, pred = np.zeros((3, 4, 4, 2), np.uint8), np.zeros((3, 4, 4, 2), np.uint8)
    truth[:2, :2], pred[0, :2], pred[1, :1] = 1, 1, 1  # Dice 1, 2/3, absent
    for i in range(3):
        for folder, masks in (("truth", truth), ("pred", pred)):
            (tmp_path / folder).mkdir(exist_ok=True)
            nib.save(nib.Nifti1Image(masks[i], np.eye(4)), tmp_path / folder / f"{i}.nii.gz")
    run = segiou.score_folder(tmp_path / "truth", tmp_path / "pred", labels=["rest", "liver"])
    assert run.quick_scores == ["dice_cases", "iou_cases", "dice_pooled"]  # of --intervals
    text = str(segiou.compare(run, run, names=("a", "b"), groups="none"))
    assert "3 cases" in text
    assert "image" not in text
    assert repr(run) == "<Run: 3 cases, 2 classes>"
    assert repr(segiou.compare(run, run, run, names=list("abc"), groups="none")) == (
        "<Comparison of a, b and c by iou: 3 cases>"
    )
    assert " on 3 cases (" in str(run.intervals(groups="none"))
    several = segiou.compare(run, run, run, names=list("abc"), groups="none").to_dict()
    told = [*several["sentences"], *several["stability"]["sentences"]]
    told += run.intervals(groups="none").to_dict()["cautions"]
    assert "3 cases" in str(told)
    assert "image" not in str(told)
    for name, values in (("dice_cases", [1, 2 / 3]), ("iou_cases", [1, 1 / 2])):
        found = run.intervals(name, groups="none")
        assert found.overall.value == pytest.approx(np.mean(values))
        assert found.classes[0].name == "liver"
        assert found.classes[0].units == 2
        assert found.classes[0].standard_error == pytest.approx((values[0] - values[1]) / 2**0.5)
        report = run.report(intervals=found)
        assert report.score(name) == report.score(name, "liver") == found.overall.value
        part = json.loads(report.to_json())["scores"][name]
        assert (part["low"], part["high"]) == (found.overall.low, found.overall.high)
        assert run.worst(1, by=f"{name}:liver")[0][f"{name}:liver"] == pytest.approx(values[1])
        assert segiou.compare(run, run, metric=name, groups="none").pairs[0].overall.delta == 0


def test_pooled_dice_of_volumes_is_dice_over_structures(tmp_path):
    nib = pytest.importorskip("nibabel")
    rng = np.random.default_rng(0)
    for i in range(5):
        truth = rng.integers(0, 3, (5, 4, 3)).astype(np.uint8)
        pred = np.where(rng.random(truth.shape) < 0.3, 0, truth).astype(np.uint8)
        for folder, mask in (("truth", truth), ("pred", pred)):
            (tmp_path / folder).mkdir(exist_ok=True)
            nib.save(nib.Nifti1Image(mask, np.eye(4)), tmp_path / folder / f"{i}.nii.gz")
    run = segiou.score_folder(tmp_path / "truth", tmp_path / "pred", labels=["rest", "a", "b"])
    pooled, dice = (run.intervals(name, groups="none") for name in ("dice_pooled", "dice"))
    # Of the structures a and b; dice has the background too.
    assert [*pooled.classes] == [*dice.classes[1:]]
    assert pooled.overall.value == pytest.approx(np.mean([one.value for one in dice.classes[1:]]))
    report = run.report(intervals=pooled)
    assert report.score("dice_pooled") == pooled.overall.value
    assert report.score("dice_pooled:a") == report.score("dice:a")
    part = json.loads(report.to_json())["scores"]["dice_pooled"]
    assert (part["low"], part["high"]) == (pooled.overall.low, pooled.overall.high)
    of_image = segiou.metrics.dice(run.counts)[0, 1:]
    assert run.worst(5, by="dice_pooled:b")[0]["dice_pooled:b"] <= of_image[1]


def test_pooled_dice_of_a_case_is_undefined_without_the_structure_in_the_truth(tmp_path):
    nib = pytest.importorskip("nibabel")
    liver = np.zeros((4, 4, 2), np.uint8)
    liver[:2] = 1
    half = liver.copy()
    half[1] = 0  # Dice 2 * 8 / (16 + 8)
    for i, (truth, pred) in enumerate([(liver, half), (0 * liver, half), (liver, liver)]):
        for folder, mask in (("truth", truth), ("pred", pred)):
            (tmp_path / folder).mkdir(exist_ok=True)
            nib.save(nib.Nifti1Image(mask, np.eye(4)), tmp_path / folder / f"{i}.nii.gz")
    run = segiou.score_folder(tmp_path / "truth", tmp_path / "pred", labels=["rest", "liver"])
    for name in ("dice_pooled", "dice_pooled:liver"):
        worst = [(row["id"], row[name]) for row in run.worst(3, by=name)]
        assert worst == [("0", pytest.approx(2 / 3)), ("2", 1.0)]
        assert scored_images(run, name).of_images()[[0, 2]] == pytest.approx([2 / 3, 1])


def test_images_have_no_means_over_cases():
    run = segiou.score([[[0, 1]]], [[[0, 1]]], labels=2)
    for look_up in (run.intervals, run.report().score, lambda name: run.worst(by=name)):
        with pytest.raises(
            ValueError, match="dice_cases was not measured; it is a score of volumes"
        ):
            look_up("dice_cases")


@pytest.mark.needs("measures.surfaces")
@pytest.mark.parametrize("convention", ["segiou", "monai"])
def test_scores_of_surfaces_are_those_of_the_table(convention):
    truth, pred = masks()
    pred[0][pred[0] == 3] = 0  # an infinite distance
    surfaces = segiou.measures.surfaces.SurfaceOptions((1, 3), convention=convention)
    run = segiou.score(truth, pred, labels=4, surfaces=surfaces, spacing=(1, 2))
    report = run.report()
    rows = {row["label"]: row for row in report.measures["surfaces"]}
    for score, column, kind in (
        ("boundary_f1", "boundary_f1_1", "mean"),
        ("surface_dice", "surface_dice_1", "mean"),
        ("hausdorff_95", "hausdorff_95", "median"),
    ):
        values = {label: row[column][kind] for label, row in rows.items()}
        assert report.scores_by_name[score].rows == pytest.approx(values, rel=1e-12)
        found = run.intervals(score)
        assert found.overall.value == report.score(score)
        assert f"{score}_low" in run.report(intervals=found).to_csv()
    f1 = run.intervals("boundary_f1").overall
    assert f1.low < f1.value < f1.high
    for alias, score in (("bf", "boundary_f1"), ("nsd", "surface_dice"), ("hd95", "hausdorff_95")):
        assert report.score(alias) == report.score(score)


@pytest.mark.parametrize("path", ["a.run", Path("a.run")])
@pytest.mark.parametrize(
    "use",
    [segiou.confidence_intervals, explain, segiou.slices, lambda p: segiou.compare(p, p)],
)
def test_the_name_of_a_run_file_is_not_a_run(use, path):
    with pytest.raises(TypeError, match=r"open a run file with segiou\.Run\.open"):
        use(path, by="x") if use is segiou.slices else use(path)


@pytest.mark.few(2)
@pytest.mark.needs("measures.surfaces")
@pytest.mark.parametrize("score", ["iou", "recall", "boundary_iou", "surface_dice", "hausdorff_95"])
def test_a_class_that_one_model_predicts_is_left_out_of_all_means_alike(labels, score):
    truth = np.zeros((4, 12, 12), np.uint8)
    truth[:, 2:8, 2:8] = 1
    truth[:, 8:, :4] = 3
    stray = np.roll(truth, 1, 1)
    stray[::2, 9:11, 9:11] = 2  # the truth has no car
    options = {"labels": labels, "measures": ["boundary", "surfaces"]}
    runs = [segiou.score(truth, pred, **options) for pred in (np.roll(truth, 1, 2), stray)]
    found = segiou.compare(*runs, metric=score, names=("a", "b"), groups="none")
    assert not score.startswith(("iou", "surface")) or found.uncommon_classes == ("car",)
    both = found.pairs[0].imbalance
    for run, imbalance in zip(runs, both.models, strict=True):
        rows = run.report().scores_by_name["iou"].rows
        expected = np.mean([rows[name] for name in ("sky", "road", "bus")])
        assert imbalance.mean_iou == pytest.approx(expected)
        assert [row.included for row in imbalance.classes] == [True, True, False, True]
    assert both.uncommon_classes == ("car",)
    counts = [run.counts for run in runs]
    again = explain_difference(*counts, runs[0].class_names, names=("a", "b"))
    assert again == both
    assert again.sentences()[-1] == (
        "The means cover the classes that both models score, without car."
    )


@pytest.mark.needs("measures.surfaces")
@pytest.mark.parametrize("aggregate", [None, "I"])
def test_rankings_of_images_cover_the_common_classes(labels, aggregate):
    truth = np.zeros((4, 12, 12), np.uint8)
    truth[:, 2:8, 2:8] = 1
    stray = np.roll(truth, 1, 1)
    stray[:, 9:11, 9:11] = 2  # the truth has no car
    options = {"labels": labels, "measures": ["surfaces"]}
    runs = {
        name: segiou.score(truth, pred, **options)
        for name, pred in {"a": np.roll(truth, 2, 2), "b": stray}.items()
    }
    ranking = segiou.rank(runs, by="surface_dice", aggregate=aggregate, groups="none")
    compared = segiou.compare(
        *runs.values(), names=("a", "b"), metric="surface_dice", aggregate=aggregate, groups="none"
    )
    assert ranking.uncommon_classes == compared.uncommon_classes == ("car", "vehicles")
    values = {model.name: model.value for model in ranking.models}
    overall = compared.pairs[0].overall
    assert values == pytest.approx({"a": overall.a, "b": overall.b})
    scores = dict(zip(ranking.names, ranking.protocol_scores, strict=True))
    assert scores["a"] == pytest.approx(values["a"])
    assert scores["b"] == pytest.approx(values["b"] * 2 / 4)
    assert "without car and vehicles" in ranking.sentences()[0]
