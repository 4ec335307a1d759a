"""The class, category and instance scores of cityscapesScripts, run on label-id PNG files."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from segiou import ConfusionMatrix
from segiou.measures.objects import CITYSCAPES_INSTANCE_SIZES, cityscapes_iiou

SCRIPT = "cityscapesscripts.evaluation.evalPixelLevelSemanticLabeling"
CAMVID = Path(__file__).parents[2].parent / "shared" / "data" / "camvid"
OBJECTS = sorted(CITYSCAPES_INSTANCE_SIZES)

#: CamVid's classes as Cityscapes ids: sky building pole road pavement tree sign fence car
#: pedestrian bicyclist void.
CAMVID_IDS = np.array([23, 11, 17, 7, 8, 21, 20, 13, 26, 24, 25, 0], np.uint8)


def random_images(seed=11):
    """Blocks of ids; every id from 0 to 33 occurs on both sides, objects cut anywhere."""
    rng = np.random.default_rng(seed)
    for _ in range(4):
        truth = np.kron(rng.integers(0, 34, (6, 8)), np.ones((8, 8), int)).astype(np.uint8)
        pred = np.where(rng.random(truth.shape) < 0.3, rng.integers(0, 34, truth.shape), truth)
        yield truth, pred.astype(np.uint8)


def camvid_images():
    if not CAMVID.is_dir():
        pytest.skip("the CamVid masks are not there")
    for path in sorted((CAMVID / "truth").glob("*.png"))[::10]:
        pair = (np.asarray(Image.open(CAMVID / d / path.name)) for d in ("truth", "base"))
        yield tuple(CAMVID_IDS[image] for image in pair)


def instance_ids(truth):
    """Cut the objects into pieces, as if they were several; one in five is a crowd without."""
    rows, cols = np.indices(truth.shape)
    number = (rows // 24) * 7 + cols // 40
    ids = truth.astype(np.int32)
    of_object = np.isin(truth, OBJECTS) & (number % 5 > 0)
    return np.where(of_object, ids * 1000 + number, ids).astype(np.uint16)


@pytest.fixture(
    params=[random_images, lambda: random_images(12), camvid_images],
    ids=["random", "other random", "camvid"],
)
def images(request):
    return [(truth, pred, instance_ids(truth)) for truth, pred in request.param()]


@pytest.fixture
def theirs(images, tmp_path, peer, monkeypatch):
    """What the script computes from the files."""
    script = peer(SCRIPT)
    # NumPy has removed in1d, without which the script's default run ends with an error.
    monkeypatch.setattr(
        np, "in1d", lambda a, b, invert=False: np.isin(a, b, invert=invert).ravel(), raising=False
    )
    for name, value in (("JSONOutput", False), ("quiet", True), ("evalInstLevelScore", True)):
        monkeypatch.setattr(script.args, name, value)
    predictions, truths = [], []
    for k, (truth, pred, instances) in enumerate(images):
        truths.append(str(tmp_path / f"{k}_gtFine_labelIds.png"))
        predictions.append(str(tmp_path / f"{k}_pred.png"))
        Image.fromarray(truth).save(truths[-1])
        Image.fromarray(pred).save(predictions[-1])
        Image.fromarray(instances).save(truths[-1].replace("labelIds", "instanceIds"))
    return script.evaluateImgLists(predictions, truths, script.args)


@pytest.fixture
def ours(images):
    matrix = ConfusionMatrix("cityscapes", unassigned="count")
    for truth, pred, _ in images:
        matrix.update(truth, pred)
    return matrix


def same(mine, scores):
    names = list(mine)
    np.testing.assert_allclose(
        [mine[n] for n in names], [scores[n] for n in names], rtol=0, atol=1e-12
    )


def test_class_scores(theirs, ours):
    same(dict(zip(ours.class_names, ours.iou(), strict=True)), theirs["classScores"])
    assert ours.mean_iou("cityscapes") == pytest.approx(theirs["averageScoreClasses"], abs=1e-12)
    evaluated = {n for n, v in theirs["classScores"].items() if not np.isnan(v)}
    occurring = {n for n, v in zip(ours.class_names, ours.iou(), strict=True) if not np.isnan(v)}
    assert evaluated == occurring


def test_category_scores(theirs, ours):
    rows = ours.report("cityscapes").group_rows
    same({row.name: row.iou for row in rows}, theirs["categoryScores"])
    mean = np.nanmean([row.iou for row in rows])
    assert mean == pytest.approx(theirs["averageScoreCategories"], abs=1e-12)


def test_instance_scores(images, theirs):
    classes, categories = cityscapes_iiou((ids, pred) for _, pred, ids in images)
    same(classes, theirs["classInstScores"])
    same(categories, theirs["categoryInstScores"])
    for ours, name in ((classes, "Classes"), (categories, "Categories")):
        mean = np.nanmean(list(ours.values()))
        assert mean == pytest.approx(theirs[f"averageScoreInst{name}"], abs=1e-12)


def test_the_instance_sizes_are_theirs(peer):
    script = peer(SCRIPT)
    names = {label.id: label.name for label in script.labels}
    mine = {names[v]: size for v, size in CITYSCAPES_INSTANCE_SIZES.items()}
    assert mine == script.args.avgClassSize
