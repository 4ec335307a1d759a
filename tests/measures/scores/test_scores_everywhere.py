"""Every score of histograms in every output, and run files in parts."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
from PIL import Image

import segiou
from segiou.cli.main import main
from segiou.measures.scores import ScoreOptions
from segiou.scoring import Evaluator

NAMES = {
    "average_precision": "higher",
    "roc_auc": "higher",
    "best_iou": "higher",
    "fpr95": "lower",
    "ece": "lower",
    "mce": "lower",
    "ace": "lower",
    "brier": "lower",
}
SOME = ("average_precision", "ece")
ONE_BY_ONE = [pytest.param(name, marks=[pytest.mark.gate] * (name not in SOME)) for name in NAMES]
RNG = np.random.default_rng(8)
TRUTH = RNG.integers(0, 3, (6, 10, 12)).astype(np.uint8)
OWN = np.moveaxis(np.eye(3)[TRUTH], -1, 1)


def softmax(logits):
    e = np.exp(logits - logits.max(1, keepdims=True))
    return (e / e.sum(1, keepdims=True)).astype(np.float32)


BAD, GOOD = (softmax(k * OWN + RNG.normal(size=OWN.shape)) for k in (0.5, 2))
MEASURES = (ScoreOptions(bins=64),)


@pytest.fixture(scope="module")
def runs():
    how = {"labels": 3, "argmax": 1, "measures": MEASURES}
    return [
        segiou.score(TRUTH, scores, name=name, **how)
        for name, scores in (("bad", BAD), ("good", GOOD))
    ]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("scores")
    for side in ("truth", "pred"):
        (path / side).mkdir()
    for i, (truth, scores) in enumerate(zip(TRUTH, BAD, strict=True)):
        Image.fromarray(truth).save(path / "truth" / f"{i}.png")
        np.save(path / "pred" / f"{i}.npy", scores)
    return path


def scored(folder, **more):
    how = {"labels": 3, "measures": MEASURES, **more}
    return segiou.score_folder(folder / "truth", folder / "pred", **how)


@pytest.mark.parametrize("name", ONE_BY_ONE)
def test_intervals_and_comparisons(runs, name):
    for run in runs:
        found = run.intervals(name)
        assert found.overall.low < run.report().score(name) < found.overall.high
        assert [one.name for one in found.classes] == ["0", "1", "2"]
        is_mean = name not in ("ece", "mce", "ace", "brier")
        assert found.overall.name.startswith("mean ") == is_mean
        assert all(0 <= one.low < one.high <= 1 for one in found.classes)
    (pair,) = segiou.compare(*runs, metric=name).pairs
    values = [run.report().score(name) for run in runs]
    assert pair.overall.delta == pytest.approx(values[1] - values[0])
    assert pair.overall.low < pair.overall.delta < pair.overall.high


@pytest.mark.parametrize("name", ONE_BY_ONE)
def test_thresholds_and_worst_images(folder, name, capsys):
    better = NAMES[name]
    report = scored(folder).report(worst=2, worst_by=name)
    rows = report.worst_images.rows
    values = [row[name] for row in rows]
    assert values == sorted(values, reverse=better == "lower")
    places = [str(folder / side) for side in ("truth", "pred")]
    options = ["--labels", "3", "--scores", "--scores-bins", "64", "--quiet", "--confident"]
    option = "--fail-under" if better == "higher" else "--fail-over"
    never, always = (0.0, 1.0) if better == "higher" else (1.0, 0.0)
    for row, limit, status in (("", always, 1), (":1", always, 1), ("", never, 0)):
        assert main(["score", *places, *options, option, f"{name}{row}={limit}"]) == status
        assert (f"{name}{row} is" in capsys.readouterr().err) == (status == 1)


def test_trackers(runs):
    report = runs[0].report()
    found = report.scores("val/", names=[*NAMES])
    assert len(found) == 4 * len(NAMES)
    assert found["val/ece"] == report.score("ece")
    assert found["val/average_precision/1"] == report.score("average_precision", "1")
    evaluator = Evaluator(3, measures=MEASURES).update(TRUTH, BAD, argmax=1)
    assert evaluator.scores() == evaluator.scores() | {
        name: pytest.approx(report.score(name)) for name in NAMES
    }


def test_shards_merge_to_the_whole_run(folder, tmp_path):
    parts = [scored(folder, run=tmp_path / f"{i}.sqlite", shard=(i, 3)) for i in (1, 2, 3)]
    whole = scored(folder)
    merged = parts[2].merge(parts[0], parts[1])
    assert segiou.ScoreHistogram.of_run(merged) == segiou.ScoreHistogram.of_run(whole)
    assert merged.report().to_dict()["scores"] == whole.report().to_dict()["scores"]
    output = tmp_path / "merged.sqlite"
    files = [str(tmp_path / f"{i}.sqlite") for i in (2, 3, 1)]
    assert main(["merge", *files, "--output", str(output), "--quiet"]) == 0
    kept = segiou.ScoreHistogram.of_run(segiou.Run.open(output))
    assert kept == segiou.ScoreHistogram.of_run(whole)


def test_a_run_file_goes_on(folder, tmp_path):
    path, growing = tmp_path / "run.sqlite", tmp_path / "growing"
    shutil.copytree(folder, growing)
    for side, kind in (("truth", "png"), ("pred", "npy")):
        (growing / side / f"3.{kind}").rename(tmp_path / f"3.{kind}")
    assert len(scored(growing, run=path)) == 5
    for side, kind in (("truth", "png"), ("pred", "npy")):
        (tmp_path / f"3.{kind}").rename(growing / side / f"3.{kind}")
    kept = scored(growing, run=path)
    assert segiou.ScoreHistogram.of_run(kept) == segiou.ScoreHistogram.of_run(scored(folder))
    with pytest.raises(ValueError, match="different options"):
        scored(growing, run=path, measures=[ScoreOptions(bins=32)])
