"""Scores as a measure: runs, files, comparisons, thresholds and loops."""

from __future__ import annotations

import json

import numpy as np
import pytest

import segiou
from segiou.cli.main import main
from segiou.measures import Field, Parts
from segiou.measures.scores import ScoreOptions
from segiou.scoring import Evaluator

RNG = np.random.default_rng(2)
TRUTH = RNG.integers(0, 3, (5, 12, 16)).astype(np.uint8)
TRUTH[:, 0, 0] = 255
OWN = np.moveaxis(np.eye(3)[TRUTH % 3], -1, 1)
GOOD, BAD = (RNG.normal(size=OWN.shape) + k * OWN for k in (3, 1))
SOFTMAX = ScoreOptions("softmax", bins=64)


def scored(logits, measures=(SOFTMAX,), **more):
    return segiou.score(TRUTH, logits, labels=3, argmax=1, ignore=255, measures=measures, **more)


def test_a_run_has_the_counts_of_a_histogram():
    whole = segiou.ScoreHistogram(3, bins=64, ignore=255)
    whole.update(TRUTH, GOOD, activation="softmax")
    run = scored(GOOD)
    found = segiou.ScoreHistogram.of_run(run)
    assert (found.counts == whole.counts).all()
    assert (found.ignored, found.pairs) == (whole.ignored, 5)
    report = run.report()
    assert report.score("average_precision", "1") == whole.average_precision()[1]
    assert report.score("roc_auc") == pytest.approx(whole.roc_auc().mean())
    calibration = whole.calibration()
    for name in ("ece", "mce", "ace", "brier"):
        assert report.score(name) == pytest.approx(getattr(calibration, name))
    assert report.score("ece", "2") == pytest.approx(whole.classwise_ece()[2])
    assert report.score("best_iou", "0") == whole.best_threshold().scores[0]
    assert report.score("fpr95", "0") == whole.fpr_at_tpr()[0]
    plain = json.loads(report.to_json())
    assert plain["scores"]["iou"]["value"] == report.mean_iou
    data = plain["score_histograms"]
    assert data["calibration"]["ece"] == pytest.approx(calibration.ece)
    best = whole.best_threshold()
    assert "best_threshold" in data["scores"]
    thresholds = plain["scores"]["best_threshold"]
    assert thresholds["rows"]["1"]["value"] == best.thresholds[1]
    assert (thresholds["value"], thresholds["unit"]) == (None, "number")
    assert data["common_threshold"] == {"threshold": best.overall, "mean_iou": best.mean}
    row = next(line for line in str(report).splitlines() if "mean " in line and "–" in line)
    assert f"{best.overall:.3f}" not in row
    with pytest.raises(ValueError, match="measures="):
        segiou.ScoreHistogram.of_run(scored(GOOD, ()))


@pytest.mark.parametrize("name", ["average_precision", "roc_auc", "best_iou", "fpr95"])
def test_intervals_of_means_have_the_freedom_of_their_classes(name):
    truth = np.where((TRUTH == 2) & (np.arange(5) > 1)[:, None, None], 1, TRUTH)  # in two images
    scores = GOOD + 1.5 * np.moveaxis(np.eye(3)[truth % 3] - np.eye(3)[TRUTH % 3], -1, 1)
    run = segiou.score(
        truth, scores, labels=3, argmax=1, ignore=255, measures=[ScoreOptions("softmax")]
    )
    plan, parts = run._header.plans[0], run.parts("scores")
    whole = plan.scores[name].values(parts)[1:]
    without = [[i for i in range(5) if i != left_out] for left_out in range(5)]
    moved = whole - [plan.scores[name].values(parts.take(rest))[1:] for rest in without]
    variance, units = (moved**2).sum(0), np.array([5, 5, 2])
    freedom = variance.sum() ** 2 / (variance**2 / (units - 1)).sum()  # Satterthwaite
    found = run.intervals(name, groups="none").overall
    assert found.freedom == pytest.approx(min(max(freedom, 2), 4))
    assert found.freedom < 4


def test_run_files_merge_and_compare(tmp_path, capsys):
    ids = [f"image{i}" for i in range(5)]
    paths = [tmp_path / "good.sqlite", tmp_path / "bad.sqlite"]
    for path, logits in zip(paths, (GOOD, BAD), strict=True):
        scored(logits, ids=ids, name=path.stem).save(path)
    run = segiou.Run.open(paths[0])
    assert run.parts("scores") == scored(GOOD, ids=ids).parts("scores")
    halves = run.select(ids[:2]).merge(run.select(ids[2:]))
    assert segiou.ScoreHistogram.of_run(halves) == segiou.ScoreHistogram.of_run(run)
    assert main(["compare", *map(str, paths), "--metric", "average_precision"]) == 0
    assert "AP" in capsys.readouterr().out
    found = segiou.compare(run, segiou.Run.open(paths[1]), metric="ece", groups="none")
    assert found.to_dict()
    value = run.report().score("average_precision", "1")
    limits = {value - 0.01: 0, value + 0.001: 1}
    for limit, code in limits.items():
        wanted = f"average_precision:1={limit}"
        assert main(["report", str(paths[0]), "--fail-under", wanted, "--quiet"]) == code
    assert main(["report", str(paths[0]), "--fail-over", "ece=0.0001", "--quiet"]) == 1
    assert run.worst(1, by="average_precision")[0]["id"] in ids
    other = scored(GOOD, [ScoreOptions("softmax", bins=32)], ids=ids)
    with pytest.raises(ValueError, match="bins"):
        run.merge(other)


def test_groups_resample_sparse_tables():
    run = scored(GOOD)
    for how in ({}, {"method": "percentile", "resamples": 50}):
        interval = run.intervals("average_precision", groups=["a", "a", "b", "c", "c"], **how)
        assert interval.overall.low < interval.overall.value < interval.overall.high
    assert run.intervals("roc_auc", groups="none", aggregate="I").overall.value < 1


def test_loops():
    loop = Evaluator(3, measures=[SOFTMAX], ignore=255)
    loop.update(TRUTH[:3], GOOD[:3], argmax=1).update(TRUTH[3:], GOOD[3:], argmax=1)
    assert loop.scores()["average_precision"] == scored(GOOD).report().score("average_precision")
    kept = json.loads(json.dumps(loop.state_dict()))
    again = Evaluator(3, measures=[SOFTMAX], ignore=255).load_state_dict(kept)
    assert again.scores() == loop.scores()
    with pytest.raises(ValueError, match="contains labels"):
        loop.update(TRUTH[0], TRUTH[0])


def test_the_score_of_the_second_class():
    truth = TRUTH[:, 1:] % 2
    scores = RNG.random(truth.shape)
    run = segiou.score(truth, scores, labels=2, threshold=0.5, measures=["scores"])
    whole = segiou.ScoreHistogram(2).update(truth, scores, axis=None)
    assert run.report().score("average_precision", "1") == whole.average_precision()[1]


@pytest.mark.gate
def test_processes_add_up():
    pytest.importorskip("torch")
    from segiou.hooks.distributed import _described, add_up

    parts = [segiou.ScoreHistogram(3, bins=64, ignore=255) for _ in range(2)]
    for part, of in zip(parts, (slice(2), slice(2, 5)), strict=True):
        part.update(TRUTH[of], GOOD[of], activation="softmax")
    everyone = [_described(part) for part in parts]
    assert (add_up(parts[0], lambda item: everyone).counts == sum(parts).counts).all()


def test_sparse_fields():
    layout = {"cells": Field((2, 3), sparse=True), "n": Field((2,))}
    parts = [
        Parts.of(layout, cells=[[0, 0, 5], [1, 0, 0]], n=[1, 2]),
        Parts.of(layout, n=[3, 4]),
        Parts.of(layout, cells=[[7, 0, 0], [1, 0, 0]]),
    ]
    joined = Parts.joined(layout, parts)
    assert joined.total.dense("cells").tolist() == [[[7, 0, 5], [2, 0, 0]]]
    assert joined.take([2, 1]).dense("cells")[0].tolist() == [[7, 0, 0], [1, 0, 0]]
    assert Parts.unpack(layout, joined.pack()) == joined
    assert Parts.from_dict(layout, joined.to_dict()) == joined.total
    assert joined["cells"].nnz == 4
    many = Parts.joined(layout, [*parts, parts[0]] * 20)
    assert Parts.unpack(layout, many.pack()) == many
    with pytest.raises(ValueError, match="outside its rows"):
        Parts.unpack({"cells": Field((2, 2), sparse=True)}, [b"\x02\x07\x01"])


def test_regions_are_counted_for_each_image(tmp_path, capsys):
    with_regions = ScoreOptions("softmax", bins=64, regions=True)
    whole = segiou.ScoreHistogram(3, bins=64, ignore=255, regions=True)
    whole.update(TRUTH, GOOD, activation="softmax")
    ids = [f"image{i}" for i in range(5)]
    run = scored(GOOD, [with_regions], ids=ids)
    run.save(tmp_path / "good.sqlite")
    scored(BAD, [with_regions], ids=ids).save(tmp_path / "bad.sqlite")
    again = segiou.Run.open(tmp_path / "good.sqlite")
    halves = again.select(ids[3:]).merge(again.select(ids[:3]))
    for one in (run, again, halves):
        found = segiou.ScoreHistogram.of_run(one)
        assert (found.counts == whole.counts).all()
        assert (found.aupro(0.1) == whole.aupro(0.1)).all()
        assert one.report().score("aupro", "1") == whole.aupro()[1]
        assert one.report().score("aupro") == pytest.approx(whole.aupro().mean())
    shown = run.intervals("aupro", groups="none").overall
    assert shown.low < shown.value < shown.high
    alone = segiou.ScoreHistogram(3, bins=64, ignore=255, regions=True)
    alone.update(TRUTH[0], GOOD[0], axis=0, activation="softmax")
    of_images = run.score_plans["aupro"].scores["aupro"].of_images(run.parts("scores"))
    np.testing.assert_allclose(of_images[0, 1:], alone.aupro(), rtol=1e-12)
    paths = [str(tmp_path / name) for name in ("good.sqlite", "bad.sqlite")]
    assert main(["compare", *paths, "--metric", "aupro"]) == 0
    assert "AUPRO" in capsys.readouterr().out
    assert main(["report", paths[0], "--fail-under", "aupro:1=0.99", "--quiet"]) == 1
    assert "aupro" not in scored(GOOD).report().scores()
    with pytest.raises(ValueError, match="--scores --scores-regions"):
        scored(GOOD).intervals("aupro")
    with pytest.raises(ValueError, match="regions"):
        run.merge(scored(GOOD, ids=["other", *ids[1:]]))
    cells = run.parts("scores").total.dense("cells")[0].copy()
    plan = run.plans[0]
    plan.check(Parts.of(plan.layout, cells=cells))
    for row, at, hit in ((5, 0, 1), (6, 63, 0), (7, 2, 1)):
        forged = cells.copy()
        forged[row, at, hit] += 1
        with pytest.raises(ValueError, match="invalid"):
            plan.check(Parts.of(plan.layout, cells=forged))


def test_limit_of_aupro_is_in_its_name(tmp_path, capsys):
    """Three regions of 1, 2 and 3 pixels; half of the second passes with all other pixels."""
    truth = np.array([[[1, 0, 1, 0, 0, 1], [0, 0, 0, 1, 0, 1], [0, 0, 0, 0, 0, 1]]])
    scores = np.where(truth == 1, 0.75, 0.25)
    scores[0, 0, 2] = 0.25
    start, paths = 2.5 / 3, []  # the overlap at a rate of 0; it rises to 1 at a rate of 1
    for limit, name, title in (
        (0.3, "aupro", "AUPRO 0.3"),
        (0.05, "aupro_0.05", "AUPRO 0.05"),
        (1, "aupro_1", "AUPRO 1"),
    ):
        options = ScoreOptions(regions=True, aupro_limit=limit)
        run = segiou.score(truth, list(scores), labels=2, threshold=0.5, measures=[options])
        report = run.report()
        wanted = start + limit / 2 * (1 - start)
        assert report.score(name, "1") == pytest.approx(wanted, abs=1e-9)
        assert title in report.to_markdown(columns=[name])
        assert [one for one in run.score_plans if one.startswith("aupro")] == [name]
        assert title in report.to_html(run=run)
        paths.append(str(tmp_path / f"{name}.sqlite"))
        run.save(paths[-1])
        assert segiou.Run.open(paths[-1]).report().score(name) == report.score(name)
    assert main(["compare", *paths[:2], "--metric", "aupro"]) != 0
    wanted = "without aupro; rescore with --scores --scores-regions; did you mean aupro_0.05?"
    assert wanted in " ".join(capsys.readouterr().err.split())
    assert main(["compare", *paths[:2], "--metric", "best_iou"]) != 0
    assert "aupro_limit 0.3" in capsys.readouterr().err


@pytest.mark.parametrize("limit", [0, -0.1, float("nan"), float("inf"), 1e-320, 1.01, 10**400])
def test_limits_outside_the_rates(limit):
    with pytest.raises(ValueError, match="aupro_limit"):
        ScoreOptions(regions=True, aupro_limit=limit)


def test_limit_needs_regions():
    with pytest.raises(ValueError, match=r"aupro_limit=0\.05 needs regions=True"):
        ScoreOptions(aupro_limit=0.05)
    for wrong in (True, "0.1", None):
        with pytest.raises(TypeError, match="aupro_limit"):
            ScoreOptions(regions=True, aupro_limit=wrong)


def test_refused():
    for wrong in ({"activation": "tanh"}, {"bins": 1}, {"rows": 0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            ScoreOptions(**wrong)
    forged = scored(GOOD).parts("scores").total
    cells = forged.dense("cells")[0].copy()
    cells[0, 3, 1] += 1
    plan = scored(GOOD).plans[0]
    plan.check(forged)
    with pytest.raises(ValueError, match="invalid"):
        plan.check(Parts.of(plan.layout, cells=cells))


def test_options_of_files_are_not_for_arrays():
    truth, logits = [[[0, 1, 1]]], [[[-2.0, 3.0, 0.1]]]
    for given, said in (
        ({"threshold": 0.6}, "threshold=0.6 of ScoreOptions is for files; pass threshold=T beside"),
        ({"axis": "first"}, "axis='first' of ScoreOptions is for files"),
        ({"files": "{id}_{class}"}, "files='{id}_{class}' of ScoreOptions is for files"),
    ):
        with pytest.raises(ValueError, match=said):
            segiou.score(
                truth, logits, labels=2, threshold=0, measures=[ScoreOptions("sigmoid", **given)]
            )
    # The threshold of arrays is that of the logits as they are.
    run = segiou.score(truth, logits, labels=2, threshold=0, measures=[ScoreOptions("sigmoid")])
    assert run.total().matrix.tolist() == [[1, 0], [0, 2]]
    with pytest.raises(ValueError, match="threshold must be at most 1, got 50"):
        ScoreOptions(threshold=50)


def test_numbers_of_numpy_are_options():
    options = ScoreOptions(threshold=np.float32(0.25), rows=np.int8(5), regions=np.True_)
    assert ScoreOptions.from_dict(json.loads(json.dumps(options.to_dict()))) == options
    with pytest.raises(TypeError, match="files must be"):
        ScoreOptions(files=0)
    with pytest.raises(TypeError, match="files must be a pattern"):
        ScoreOptions(files=np.zeros(0))
