"""Panoptic and lesion-wise scores on random scenes, against the programs that define them."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from deletable import kind_of_scores
from scipy import ndimage

from segiou.measures.objects import PanopticCounts
from segiou.regions import label_components

SCENES = 1000
VOID = 4
THINGS = (0, 1)
SPINE = Path(__file__).parents[2].parent / "shared" / "data" / "volumes" / "spine"


def scenes(number=SCENES, seed=18):
    """Maps of class and id on either side, and a crowd; void, and sides that are empty."""
    rng = np.random.default_rng(seed)
    for k in range(number):
        shape = rng.integers(4, 15, 2)
        blocks = np.kron(rng.integers(0, 8, -(-shape // 3)), np.ones((3, 3), int))
        blocks = blocks[: shape[0], : shape[1]]
        truth = [rng.integers(0, n, 8)[blocks] for n in (5, 4)]
        changed = rng.random(blocks.shape) < rng.choice([0.1, 0.3, 0.6])
        pred = [
            np.where(changed, rng.integers(0, n, shape), side)
            for n, side in zip((5, 4), truth, strict=True)
        ]
        for side, every in ((truth, 50), (pred, 77)):
            if k % every == 0:
                side[0][:] = VOID
        crowd = []
        at = tuple(rng.integers(0, n) for n in shape)
        if rng.random() < 0.5 and truth[0][at] in THINGS:
            here = (truth[0] == truth[0][at]) & (truth[1] == truth[1][at])
            truth[1] = np.where(here, 9, truth[1])
            crowd = [9]
        yield truth, pred, crowd


def coco_image(side, crowd=()):
    """The image of ids as a COCO file has it, and its annotation."""
    classes, ids = side
    numbers = np.where(np.isin(classes, THINGS), ids, 0) + classes * 1000 + 1
    numbers = np.where(classes == VOID, 0, numbers)
    pixels = np.stack([numbers % 256, numbers // 256, numbers * 0], axis=-1).astype(np.uint8)
    found, areas = np.unique(numbers[numbers > 0], return_counts=True)
    segments = [
        {"id": i, "category_id": i // 1000, "area": n, "iscrowd": int(i % 1000 - 1 in crowd)}
        for i, n in zip(found.tolist(), areas.tolist(), strict=True)
    ]
    return pixels, segments


@pytest.mark.parametrize(
    "evaluation",
    ["panopticapi.evaluation", "cityscapesscripts.evaluation.evalPanopticSemanticLabeling"],
)
def test_panopticapi_counts_the_same(peer, monkeypatch, capsys, evaluation):
    script = peer(evaluation)
    images = {}
    monkeypatch.setattr(script, "Image", SimpleNamespace(open=lambda path: images[Path(path).name]))
    categories = {c: {"isthing": int(c in THINGS)} for c in range(4)}
    total, theirs = PanopticCounts(4, ignore=VOID, things=THINGS), script.PQStat()
    for truth, pred, crowd in scenes():
        counts = total.empty().update(*truth, *pred, crowd=crowd)
        annotations = []
        for name, side in (("truth", (truth, crowd)), ("pred", (pred,))):
            images[name], segments = coco_image(*side)
            annotations.append({"file_name": name, "image_id": 0, "segments_info": segments})
        found = script.pq_compute_single_core(0, [annotations], "", "", categories)
        expected = [(found[c].tp, found[c].fp, found[c].fn) for c in range(4)]
        assert counts.state_dict()["counts"] == [list(row) for row in expected]
        total.merge(counts)
        theirs += found
    for part, is_thing in (("all", None), ("things", True), ("stuff", False)):
        expected = theirs.pq_average(categories, is_thing)[0]
        found = total.panoptic_quality(part)
        assert [found[k] for k in ("pq", "sq", "rq")] == pytest.approx(
            [expected[k] for k in ("pq", "sq", "rq")], rel=1e-12
        )


@pytest.mark.parametrize(
    ("protocol", "kind"),
    [("torchmetrics", "PanopticQuality"), ("torchmetrics-modified", "ModifiedPanopticQuality")],
)
def test_torchmetrics_counts_the_same(peer, protocol, kind):
    torch, module = peer("torch"), peer("torchmetrics.detection")
    metric = getattr(module, kind)(
        things={*THINGS}, stuffs={2, 3}, allow_unknown_preds_category=True
    )
    counts = PanopticCounts(4, ignore=VOID, things=THINGS, protocol=protocol)
    for truth, pred, _ in scenes():
        metric.update(*(torch.from_numpy(np.stack(side, -1))[None] for side in (pred, truth)))
        counts.update(*truth, *pred)
    columns = (metric.true_positives, metric.false_positives, metric.false_negatives)
    expected = np.stack([column.numpy() for column in columns], 1)
    np.testing.assert_array_equal(counts.state_dict()["counts"], expected)
    assert counts.panoptic_quality()["pq"] == pytest.approx(float(metric.compute()), rel=1e-6)


@pytest.fixture
def agree(peer):
    """Hold our scores of two arrays against panoptica's."""
    panoptica, metric = peer("panoptica"), peer("panoptica.metrics").Metric
    naive = {"instance_matcher": panoptica.NaiveThresholdMatching()}
    components = {"instance_approximator": panoptica.ConnectedComponentsInstanceApproximator()}
    examples = {"matched": {}, "unmatched": naive, "semantic": naive | components}
    kinds, ours = panoptica.InputType, kind_of_scores("lesions")
    how = {"matching": "id", "convention": "medpy"}
    matched = ours.LesionProtocol("matched", "objects of one id", **how)

    def compare(truth, pred, example, spacing=None):
        ids = [label_components(side) if example == "semantic" else side for side in (truth, pred)]
        protocol = matched if example == "matched" else "panoptica"
        found = ours.object_scores(*ids, spacing=spacing, protocol=protocol)
        # It has no distance where nothing is found, and ends with an error.
        means = [metric.IOU, metric.DSC] + [metric.HD95] * bool(found["tp"])
        kind = {"semantic": kinds.SEMANTIC, "unmatched": kinds.UNMATCHED_INSTANCE}
        evaluator = panoptica.Panoptica_Evaluator(
            expected_input=kind.get(example, kinds.MATCHED_INSTANCE),
            instance_metrics=means,
            **examples[example],
        )
        args = {} if spacing is None else {"voxelspacing": spacing}
        result = evaluator.evaluate(pred, truth, verbose=False, **args)["ungrouped"]
        names = {"tp": "tp", "fp": "fp", "fn": "fn"}
        if found["tp"]:
            names |= {"f1": "rq", "iou": "sq", "dice": "sq_dsc", "hausdorff_95": "sq_hd95"}
        expected = {ours: float(getattr(result, theirs)) for ours, theirs in names.items()}
        assert {name: found[name] for name in names} == pytest.approx(expected)
        return found

    return compare


@pytest.mark.parametrize("example", ["matched", "unmatched", "semantic"])
def test_panoptica_scores_random_objects_alike(agree, example):
    rng = np.random.default_rng(len(example))
    found = 0
    for k in range(340):
        fields = (ndimage.gaussian_filter(rng.normal(size=(9, 8, 7)), 1.0) for _ in range(2))
        truth, extra = (label_components(field > 0.12) for field in fields)
        pred = np.roll(truth, k % 3, axis=k % 2) * (rng.random(truth.shape) < 0.98)
        pred = np.where(extra == 1, truth.max() + 1, pred)
        sides = (truth * (k % 20 > 0), pred * (k % 30 > 0))
        if example == "semantic":
            sides = (side % 3 for side in sides)
        found += agree(*(side.astype(np.uint16) for side in sides), example)["tp"]
    assert found > 50


@pytest.mark.skipif(not SPINE.is_dir(), reason="the spine volumes are not beside this checkout")
@pytest.mark.parametrize("example", ["matched", "unmatched", "semantic"])
def test_panopticas_own_example(agree, example):
    nibabel = pytest.importorskip("nibabel", reason="needs nibabel")
    images = [nibabel.load(SPINE / f"{side}.nii.gz") for side in ("ref", "pred")]
    truth, pred = (np.asarray(image.dataobj).astype(np.uint8) for image in images)
    where = np.argwhere(truth | pred)
    box = tuple(map(slice, where.min(0), where.max(0) + 1))
    spacing = tuple(map(float, images[0].header.get_zooms()))
    assert agree(truth[box], pred[box], example, spacing)["tp"] > 10
