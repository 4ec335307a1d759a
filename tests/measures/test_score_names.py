"""Names of scores: one rule and one table for every option."""

from __future__ import annotations

import numpy as np
import pytest

import segiou
from segiou.measures.score_names import read_name
from segiou.measures.spellings import ALIASES

TRUTH = np.array([[[0, 0, 1, 1]], [[0, 1, 1, 1]], [[0, 0, 0, 1]], [[0, 1, 0, 1]]])
PRED = np.array([[[0, 0, 0, 1]], [[0, 0, 1, 1]], [[0, 0, 0, 1]], [[1, 1, 0, 1]]])


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("iou", "iou"),
        ("mIoU", "iou"),
        ("mean_iou", "iou"),
        ("jaccard:car", "iou:car"),
        ("F1", "dice"),
        ("mean recall", "recall"),
        ("mean-accuracy", "recall"),
        ("acc", "pixel_accuracy"),
        pytest.param(
            "HD95:liver", "hausdorff_95:liver", marks=pytest.mark.needs("measures.surfaces")
        ),
        ("iou:Car-1 a", "iou:Car-1 a"),  # rows are compared exactly
        ("mean_pq", "pq"),
    ],
)
def test_one_rule(text, name):
    assert str(read_name(text)) == name


NAMES_IN_OTHER_FIELDS = {
    "iou": "jaccard miou",
    "dice": "f1 dsc mdice",
    "precision": "ppv users_accuracy",
    "recall": "sensitivity producers_accuracy accuracy macc mean_accuracy",
    "pixel_accuracy": "pa acc overall_accuracy oa",
    "frequency_weighted_iou": "fwiou",
    "cohen_kappa": "kappa",
    "matthews_correlation": "mcc",
    "boundary_iou": "biou",
    "boundary_f1": "bf",
    "hausdorff_95": "hd95",
    "hausdorff": "hd",
    "average_surface_distance": "assd",
    "surface_dice": "nsd",
}


@pytest.mark.needs("measures.surfaces")
def test_every_alias():
    named = {alias: name for name, some in NAMES_IN_OTHER_FIELDS.items() for alias in some.split()}
    assert {alias: str(read_name(alias)) for alias in ALIASES} == named


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("iuo", "unknown score 'iuo'; choose from iou, dice"),
        ("mean_iou:car", "mean_iou is the mean over all classes; for one class, use iou:car"),
        ("pixel_accuracy:car", "pixel_accuracy has no values of classes"),
        ("iou:", "unknown class ''; expected iou:CLASS"),
    ],
)
def test_what_is_no_name(text, message):
    with pytest.raises(ValueError, match=message):
        read_name(text)


@pytest.fixture
def run():
    return segiou.score(TRUTH, PRED, labels=["road", "car"])


def test_every_consumer_knows_aliases(run):
    report = run.report()
    tp, union = np.array([7, 6]), np.array([10, 9])
    assert report.score("iou:road") == tp[0] / union[0]
    for name in ("iou", "mIoU", "mean_iou", "miou", "jaccard"):
        assert report.score(name) == pytest.approx((tp / union).mean())
        assert run.intervals(name).overall.value == report.mean_iou
    assert report.scores(names="mcc") == {"mcc": report.score("matthews_correlation")}
    assert [row["id"] for row in run.worst(1, by="jaccard:car")] == ["0"]


@pytest.mark.parametrize("name", ["mean_iou", "mean iou", "mean-iou", "Mean IoU", " mean_IoU "])
def test_every_spelling_of_a_mean_is_the_mean(run, name):
    assert run.report().scores(names=[name]) == {name: (7 / 10 + 6 / 9) / 2}
    with pytest.raises(ValueError, match="is the mean over all classes; for one class, use iou:"):
        read_name(f"{name}:car")


def test_a_score_of_a_class_is_a_score(run):
    own = run.intervals("dice:car")
    (car,) = (one for one in run.intervals("dice").classes if one.name == "car")
    assert (own.overall.value, own.overall.low) == (car.value, car.low)
    assert own.overall.name == "Dice of car"
    compared = segiou.compare(run, run, metric="f1:car", names=("a", "b"))
    assert compared.pairs[0].overall.a == car.value


def test_aliases_of_options(run, tmp_path, command):
    run.save(tmp_path / "run.sqlite")
    for name, code in (("miou=0.6", 0), ("jaccard:car=0.7", 1), ("specificity=0.5", 0)):
        for option in ("--fail-under", "--require"):
            assert command("report", tmp_path / "run.sqlite", option, name)[0] == code
    assert command("report", tmp_path / "run.sqlite", "--sort", "f1")[0] == 0
    code, out, _ = command("report", tmp_path / "run.sqlite", "--columns", "jaccard,specificity")
    assert code == 0
    assert "Jaccard index" in out
    assert "specificity" in out


@pytest.mark.needs("measures.surfaces")
def test_require_knows_the_direction(tmp_path, command):
    truth = np.zeros((2, 4, 6, 6), int)
    truth[:, 1:3, 1:4, 1:4] = 1
    run = segiou.score(truth, np.roll(truth, 1, -1), labels=["b", "liver"], surfaces=True)
    run.save(tmp_path / "run.sqlite")
    path = tmp_path / "run.sqlite"
    assert run.report().score("hd95:liver") == 1.0
    assert command("report", path, "--require", "hd95:liver=1")[0] == 0
    assert command("report", path, "--require", "hausdorff_95:liver=0.9")[0] == 1
    code, _, noted = command("report", path, "--fail-under", "hausdorff_95=3")
    assert code == 2
    assert "lower values of hausdorff_95 are better; use --fail-over or --require" in noted
    code, _, noted = command("report", path, "--require", "pq=0.5")
    assert code == 2
    assert "--objects" in noted
