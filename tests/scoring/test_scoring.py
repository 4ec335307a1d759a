from __future__ import annotations

import json
import pickle
from concurrent.futures import ProcessPoolExecutor
from fractions import Fraction
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
from mask_files import write_mask

import segiou
from segiou import DataError

FIXTURES = Path(__file__).parents[2] / "fixtures"
DATA = Path(__file__).parents[3] / "shared" / "data"


def expected_of(name: str):
    return json.loads((FIXTURES / name / "expected.json").read_text())["preds"].items()


def cases():
    for name in ("tiny", "imbalance", "pooled_vs_mean", "unassigned", "streets"):
        for pred, expected in expected_of(name):
            yield pytest.param(name, pred, expected, id=f"{name}-{pred}")


def exact(value: str | None) -> float:
    return float("nan") if value is None else float(Fraction(value))


@pytest.mark.parametrize(("name", "pred", "expected"), list(cases()))
def test_fixtures_count_to_the_expected_integers(name, pred, expected):
    run = segiou.score_folder(
        FIXTURES / name / "truth",
        FIXTURES / name / pred,
        labels=FIXTURES / name / "labels.toml",
        unassigned="count",
    )
    for index, image in enumerate(run.images):
        if want := expected.get("images", {}).get(image.id):
            assert_counts(run.tally(index), want)
    total = expected["total"]
    report = run.report()
    assert_counts(report.tally, total)
    if "iou" in total:
        np.testing.assert_allclose([r.iou for r in report.classes], list(map(exact, total["iou"])))
        assert report.mean_iou == pytest.approx(exact(total["mean_iou"]), abs=1e-15, nan_ok=True)
        assert report.pixel_accuracy == pytest.approx(exact(total["pixel_accuracy"]))
        assert report.mean_iou_classes == total["mean_iou_classes"]


def assert_counts(tally, want):
    np.testing.assert_array_equal(tally.matrix, want["matrix"])
    assert int(tally.ignored) == want["ignored"]
    for name in ("tp", "fp", "fn"):
        if name in want:
            np.testing.assert_array_equal(getattr(tally.counts, name), want[name])
    if "unassigned" in want:
        np.testing.assert_array_equal(tally.unassigned, want["unassigned"])


def test_better_accuracy_can_be_the_worse_model():
    street = FIXTURES / "streets"
    a, b = (
        segiou.score_folder(street / "truth", street / m, labels=street / "labels.toml").report()
        for m in ("model_a", "model_b")
    )
    assert a.pixel_accuracy > b.pixel_accuracy
    assert a.mean_iou < b.mean_iou


@pytest.mark.skipif(not DATA.exists(), reason="the real masks are not here")
@pytest.mark.parametrize("model", ["small", "base"])
def test_camvid_to_the_last_integer(model):
    camvid = DATA / "camvid"
    expected = json.loads((camvid / "expected.json").read_text())[model]
    run = segiou.score_folder(camvid / "truth", camvid / model, labels="camvid")
    report = run.report()
    assert report.matrix.tolist() == expected["matrix"]
    assert report.mean_iou == pytest.approx(expected["mean_iou"], abs=1e-15)
    assert report.pixel_accuracy == pytest.approx(expected["pixel_accuracy"], abs=1e-15)
    assert (report.mean_iou_classes, report.pairs) == (11, 59)


@pytest.mark.skipif(not DATA.exists(), reason="the real masks are not here")
def test_ade20k_sample_by_two_rules():
    sample = DATA / "ade20k_sample"
    run = segiou.score_folder(sample / "annotations", sample / "predictions", labels="ade20k")
    ours, theirs = run.report(), run.report("ade20k")
    assert (ours.mean_iou, ours.mean_iou_classes) == (1.0, 15)
    assert theirs.mean_iou == pytest.approx(0.1)
    assert theirs.mean_iou_classes == 150


def test_literal_cases_of_other_projects():
    """Figures that other projects publish for tiny cases (their docstrings and tests)."""
    keras = segiou.score([[0, 1, 2, 255]], [[0, 1, 1, 1]], labels=3, ignore=255).report()
    assert keras.mean_iou == pytest.approx(0.5)
    ignite = segiou.score([[0, 1, 0, 1, 2]], [[1, 1, 0, 1, 1]], labels=3).report()
    assert ignite.matrix.tolist() == [[1, 1, 0], [0, 2, 0], [0, 1, 0]]
    assert [r.iou for r in ignite.classes] == [0.5, 0.5, 0.0]
    sklearn = segiou.score([[0, 1, 2, 2]], [[0, 2, 1, 2]], labels=3).report()
    assert [r.iou for r in sklearn.classes] == [1.0, 0.0, pytest.approx(1 / 3)]
    mmeval = segiou.score([[[0, 1, 1], [2, 3, 2]]], [[[0, 2, 1], [1, 3, 2]]], labels=4).report()
    assert mmeval.pixel_accuracy == pytest.approx(2 / 3)
    assert mmeval.mean_iou == pytest.approx(2 / 3)
    assert mmeval.mean_accuracy == pytest.approx(0.75)
    assert mmeval.mean_dice == pytest.approx(0.75)
    assert mmeval.cohen_kappa == pytest.approx(0.5384615384615384)


HF_TRUTH = [
    [[0, 3], [5, 4], [6, 255]],
    [[1, 7], [9, 2], [3, 6]],
    [[1, 2, 2], [8, 2, 1], [3, 255, 1]],
]
HF_PRED = [
    [[1, 2], [3, 4], [5, 255]],
    [[2, 7], [9, 2], [3, 6]],
    [[2, 2, 3], [8, 2, 4], [3, 255, 2]],
]


def test_hugging_face_docstring():
    report = segiou.score(HF_TRUTH, HF_PRED, labels=10, ignore=255).report()
    assert report.mean_iou == pytest.approx(0.47750000000000004)
    assert report.mean_accuracy == pytest.approx(0.5916666666666666)
    assert report.pixel_accuracy == pytest.approx(0.5263157894736842)
    assert [r.iou for r in report.classes] == [0, 0, 0.375, 0.4, 0.5, 0, 0.5, 1, 1, 1]


@pytest.mark.skipif(not DATA.exists(), reason="the published cases are not here")
def test_frames_by_every_rule():
    case = json.loads((DATA / "oracles.json").read_text())
    truth, pred = (np.array(case["frames"][side]) for side in ("truth", "pred"))
    plain = segiou.score(truth, pred, labels=3).report()
    assert plain.matrix.tolist() == case["frames"]["matrix"]
    assert plain.mean_iou == pytest.approx(case["frames"]["mean_iou"])
    truth[0, 0, :4], pred[1, 0, :3] = 255, 3
    run = segiou.score(truth, pred, labels=5, ignore=255)
    assert run.report().matrix.tolist() == case["frames_with_void"]["matrix"]
    by_protocol = {
        "segiou": 0.5937384336,
        "detectron2": 0.7916512448,
        "ade20k": 0.4749907469,
        "paddleseg": 0.6749907469,
        "torchvision": float("nan"),
        "monai": 0.7834,
        "smp-imagewise": 0.8033825159,
    }
    for protocol, value in by_protocol.items():
        assert run.report(protocol).mean_iou == pytest.approx(value, abs=5e-5, nan_ok=True), (
            protocol
        )
    assert run.report("ade20k").mean_iou == pytest.approx(by_protocol["ade20k"], abs=1e-10)


def test_all_problems_of_a_folder_are_listed():
    hostile = FIXTURES / "hostile"
    with pytest.raises(DataError) as caught:
        segiou.score_folder(hostile / "partners" / "truth", hostile / "partners" / "pred", labels=3)
    text = str(caught.value)
    for part in (
        "has the same key as another",
        "pred_suffix='.npy' (--truth-suffix, --pred-suffix)",
        "['one': ",
        "have no prediction; add one",
        "three.png, two.png",
        "four.png: has no truth",
    ):
        assert part in text
    assert pickle.loads(pickle.dumps(caught.value)).problems == caught.value.problems


@pytest.fixture
def two_pairs(tmp_path):
    for name in ("a", "b"):
        write_mask(tmp_path / "truth" / f"{name}.png", [[0, 1], [1, 255]])
        write_mask(tmp_path / "pred" / f"{name}.png", [[0, 1], [0, 1]])
    return tmp_path / "truth", tmp_path / "pred"


def test_sizes_must_agree_and_only_predictions_are_resized(two_pairs):
    truth, pred = two_pairs
    write_mask(pred / "b.png", [[0, 0, 1, 1], [0, 0, 1, 1], [0, 0, 0, 0], [0, 0, 0, 0]])
    with pytest.raises(
        DataError, match=r"b.png: is 4 × 4 pixels, but the truth is 2 × 2 pixels; .*truth/b.png\]"
    ):
        segiou.score_folder(truth, pred, labels=2, ignore=255)
    run = segiou.score_folder(truth, pred, labels=2, ignore=255, resize_pred="nearest")
    assert run.tally(1).matrix.tolist() == [[1, 0], [1, 1]]


def test_undeclared_values_name_file_value_count_and_mend(two_pairs):
    truth, pred = two_pairs
    with pytest.raises(DataError) as caught:
        segiou.score_folder(truth, pred, labels=2)
    first, second = caught.value.problems
    assert first.where == str(truth / "a.png")
    assert "has undeclared values: 255; for a 0/255 mask" in first.text
    assert first.text.endswith(" [255: 1 px]")
    assert "--ignore 255" in second.text


def test_interpolated_masks_are_called_so(two_pairs):
    truth, pred = two_pairs
    write_mask(pred / "a.png", np.arange(100).reshape(10, 10))
    write_mask(truth / "a.png", np.zeros((10, 10)))
    with pytest.raises(DataError, match="resized with interpolation"):
        segiou.score_folder(truth, pred, labels=2, ignore=255)


def test_bad_pairs_can_be_left_out_and_are_listed(two_pairs):
    truth, pred = two_pairs
    (pred / "b.png").write_bytes(b"no image")
    run = segiou.score_folder(truth, pred, labels=2, ignore=255, on_error="skip")
    assert run.ids == ("a",)
    assert [p.where for p in run.skipped] == [str(pred / "b.png")]
    (pred / "a.png").unlink()
    (pred / "c.png").write_bytes(b"")
    with pytest.raises(DataError):
        segiou.score_folder(truth, pred, labels=2, ignore=255, on_error="skip")


def test_missing_and_extra_can_be_left_out(two_pairs):
    truth, pred = two_pairs
    (pred / "a.png").rename(pred / "z.png")
    run = segiou.score_folder(truth, pred, labels=2, ignore=255, missing="skip", extra="skip")
    assert run.ids == ("b",)
    assert [p.text for p in run.skipped] == ["has no prediction", "has no truth"]


def test_nothing_in_common_says_how_to_pair(two_pairs):
    truth, pred = two_pairs
    for name in ("a", "b"):
        (pred / f"{name}.png").rename(pred / f"{name}{name}x.png")
    with pytest.raises(DataError, match=r"no files could be paired .*--pred-suffix"):
        segiou.score_folder(truth, pred, labels=2)


def test_a_folder_against_itself_is_refused(two_pairs):
    with pytest.raises(DataError, match="truth and prediction are the same"):
        segiou.score_folder(two_pairs[0], two_pairs[0], labels=2)
    with pytest.raises(DataError, match=r"gone.*does not exist"):
        segiou.score_folder(two_pairs[0] / "gone", two_pairs[1], labels=2)


def test_two_files_are_a_pair(two_pairs):
    truth, pred = two_pairs
    run = segiou.score_folder(truth / "a.png", pred / "b.png", labels=2, ignore=255)
    assert run.ids == ("a",)


@pytest.mark.gate
@pytest.mark.parametrize(
    ("truth", "pred", "noted"),
    [
        ("street_dog", "street_cat", "'_dog' and '_cat' were ignored"),
        ("a_gt", "a_pred", ""),
        ("a_manual1", "a_unet", ""),
        ("a", "a_unet", ""),
        ("a_dog", "a_dog", ""),
    ],
)
def test_the_only_pair_of_different_names_is_noted(tmp_path, recwarn, truth, pred, noted):
    for side, name in (("truth", truth), ("pred", pred)):
        (tmp_path / side).mkdir()
        np.save(tmp_path / side / f"{name}.npy", np.uint8([[0, 1]]))
    sides = tmp_path / "truth", tmp_path / "pred"
    assert segiou.score_folder(*sides, labels=2).report().mean_iou == 1
    texts = [str(one.message) for one in recwarn]
    assert bool(texts) == bool(noted) and all(noted in text for text in texts)
    if noted:
        assert str(sides[0] / f"{truth}.npy") in texts[0] and f"{pred}.npy are paired" in texts[0]
        segiou.score_folder(*sides, labels=2, key="(.+)_")  # a rule of the user
        assert len(recwarn) == 1


def test_threads_and_processes_count_the_same(two_pairs):
    truth, pred = two_pairs
    options = {"labels": 2, "ignore": 255}
    one = segiou.score_folder(truth, pred, workers=1, **options)
    # Spawned, because a fork of a process in which JAX has started threads is unsafe.
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        other = segiou.score_folder(truth, pred, executor=pool, **options)
    assert one.images == other.images


def test_progress_is_told(two_pairs):
    seen = []
    segiou.score_folder(
        *two_pairs, labels=2, ignore=255, progress=lambda done, total: seen.append((done, total))
    )
    assert seen == [(1, 2), (2, 2)]


def test_score_takes_batches_lists_and_single_images():
    truth = np.array([[[0, 1], [1, 1]], [[0, 0], [1, 1]]])
    pred = truth.copy()
    pred[0, 0, 0] = 1
    batch = segiou.score(truth, pred, labels=2)
    listed = segiou.score(list(truth), list(pred), labels=2)
    assert batch.images == listed.images
    assert len(segiou.score(truth[0], pred[0], labels=2)) == 1
    named = segiou.score(truth, pred, labels=2, ids=["x", "y"])
    assert named.ids == ("x", "y")
    scores = np.stack([pred == 0, pred == 1], axis=1).astype(float)
    assert segiou.score(truth, scores, labels=2, argmax=1).images == batch.images
    masked = segiou.score(truth, pred, labels=2, mask=[truth[0] >= 0, truth[1] > 5])
    assert masked.ignored.tolist() == [0, 4]


def test_score_names_the_image_that_is_wrong():
    with pytest.raises(ValueError, match="neither a class") as caught:
        segiou.score([[[0]], [[9]]], [[[0]], [[0]]], labels=2, ids=["x", "y"])
    assert caught.value.__notes__ == ["in image 'y'"]
    with pytest.raises(ValueError, match="2 truth images but 1 predictions"):
        segiou.score([[[0]], [[1]]], [[[0]]], labels=2)
    with pytest.raises(ValueError, match="duplicate image id 'x'"):
        segiou.score([[[0]], [[1]]], [[[0]], [[0]]], labels=2, ids=["x", "x"])


def test_run_counts_per_image_sum_to_the_total():
    rng = np.random.default_rng(0)
    truth, pred = rng.integers(0, 7, (2, 9, 12, 13))
    pred[pred == 6] = 99
    run = segiou.score(truth, pred, labels=6, ignore=6, unassigned="count")
    assert run.counts.summed() == run.total().counts
    for i in range(len(run)):
        assert run.tally(i).counts == run.counts[i]
    merged = run.select(run.ids[:4]).merge(run.select(run.ids[3:]))
    assert merged.images == run.images
    with pytest.raises(ValueError, match="1 id is not in the run: nope"):
        run.select(["nope"])
    rows = run.to_csv().splitlines()
    assert rows[0].startswith("id,truth,pred,pixels,ignored,mean_iou,pixel_accuracy,influence")
    assert len(rows) == 10
