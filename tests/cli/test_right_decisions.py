"""Decisions that a statistician would make: text, JSON, page and exit code of two examples."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from segiou import Run, compare, rank, score

PATIENTS = 12


def patients() -> dict[str, Run]:
    """Twelve patients; `better` finds a bit more of the tumour in each than `worse` does.

    The tumour has 100 pixels, of which `worse` finds 20 to 97; `better` corrects a tenth of the
    missed ones. Only the tumour is in the mean.
    """
    found = np.array([20, 31, 42, 48, 55, 61, 66, 72, 80, 86, 92, 97])
    truth = np.repeat([[0, 1]], 100, axis=1).reshape(1, 200)
    truth = np.r_[np.zeros(100, int), np.ones(100, int)][None]
    runs = {}
    for name, hits in (
        ("worse", found),
        ("better", found + np.ceil((100 - found) / 10).astype(int)),
    ):
        preds = [np.where(np.arange(200) < 200 - n, 0, 1)[None] for n in hits]
        options = {"labels": ["back", "tumour"], "exclude": "back", "name": name}
        runs[name] = score([truth] * PATIENTS, preds, **options)
    return runs


def strays() -> dict[str, Run]:
    """Three classes; `strong` has a higher IoU of each, but one pixel of a class that never occurs.

    The IoU of the 3 classes is about 71 % of `weak` and 85 % of `strong`.
    """
    rng = np.random.default_rng(4)
    truths = [rng.integers(0, 3, (20, 20)) for _ in range(12)]
    runs = {}
    for name, share in (("weak", 0.17), ("strong", 0.08)):
        preds = []
        for truth in truths:
            wrong = rng.random(truth.shape) < share * rng.uniform(0.8, 1.2)
            preds.append(np.where(wrong, (truth + 1) % 3, truth))
        if name == "strong":
            preds[0][0, 0] = 3
        runs[name] = score(truths, preds, labels=["road", "car", "tree", "unicorn"], name=name)
    return runs


@pytest.fixture(scope="module", params=[patients, strays])
def saved(request, tmp_path_factory):
    """Paths of the worse and the better run, by the example, which are only read."""
    runs, folder = request.param(), tmp_path_factory.mktemp("saved")
    names = [*runs]
    return [runs[name].save(folder / f"{name}.sqlite") for name in names], names


def test_the_interval_keeps_the_pairing():
    runs = patients()
    pair = compare(*runs.values(), groups="none").pairs[0]
    row = pair.classes[1]
    assert pair.overall.p == row.p == 2 / 2**PATIENTS
    assert (pair.overall.low, pair.overall.high) == (row.low, row.high)
    assert row.low > 0
    # 12 patients, each alike weighted: (100 - found) / 10 of 100 pixels, by hand.
    assert row.delta == pytest.approx(np.ceil((100 - np.array(
        [20, 31, 42, 48, 55, 61, 66, 72, 80, 86, 92, 97])) / 10).mean() / 100)  # fmt: skip


def test_the_better_model_is_said_to_be_better(saved, inside, tmp_path):
    (worse, better), names = saved
    page = tmp_path / "page.html"
    done = inside("compare", worse, better, "--group-by", "none", "--html", page)
    found = compare(Run.open(worse), Run.open(better), groups="none")
    assert found.outcome(found.pairs[0]) == ("better", names[1], names[0])
    verdict = found.pair_sentences(found.pairs[0])[0].partition(":")[0]
    assert done.stdout.startswith(verdict)
    assert verdict in page.read_text(encoding="utf-8")
    told = json.loads(
        inside("compare", worse, better, "--group-by", "none", "--format", "json").stdout
    )
    overall = told["pairs"][0]["overall"]
    assert overall["delta"] > overall["low"] > 0 and overall["p"] < 0.001
    if names[1] == "strong":
        assert told["uncommon_classes"] == ["unicorn"]
        # Under the protocol the fourth class counts 0 for one of the models.
        weak, strong = told["protocol_scores"]
        assert weak == pytest.approx(overall["a"])
        assert strong == pytest.approx(overall["b"] * 3 / 4) and strong < weak
        assert "unicorn has a score for strong only" in " ".join(done.stdout.split())
        (named,) = re.findall("Largest contributions.*", done.stdout)
        assert "unicorn" not in named and "+" in named and "−" not in named


@pytest.mark.few(2)
@pytest.mark.parametrize("options", [(), ("--confident",)])
def test_the_gate_fails_the_worse_model_and_passes_the_better_one(saved, inside, options):
    (worse, better), _ = saved
    for run, baseline, code in ((worse, better, 1), (better, worse, 0)):
        how = ["--baseline", baseline, "--fail-if-worse", "--group-by", "none", *options]
        done = inside("report", run, *how)
        assert done.returncode == code, done.stderr


@pytest.mark.gate
def test_the_smallest_margin_is_one_that_the_gate_confirms(saved, inside):
    (worse, better), _ = saved
    change = compare(Run.open(better), Run.open(worse), groups="none")
    near = -change.pairs[0].overall.delta
    gate = ["report", worse, "--baseline", better, "--group-by", "none", "--confident"]
    undecided = inside(*gate, f"--fail-if-worse={near}")
    assert undecided.returncode == 1 and "threshold undecided" in undecided.stderr
    (least,) = re.findall(r"can confirm: ([\d.]+) points", undecided.stderr)
    assert inside(*gate, f"--fail-if-worse={float(least) / 100}").returncode == 0
    assert inside(*gate, f"--fail-if-worse={float(least) / 100 - 1e-4}").returncode == 1
    assert float(least) < -100 * change.pairs[0].overall.low


def test_ranks_are_those_of_the_classes_in_common():
    found = rank(strays(), draws=50, groups="none")
    assert [model.name for model in found.models] == ["strong", "weak"]
    assert found.uncommon_classes == ("unicorn",)
    assert "without unicorn" in found.sentences()[0]


def test_classes_of_saved_runs_are_excluded_everywhere(inside, tmp_path):
    runs = strays()
    paths = [run.save(tmp_path / f"{name}.sqlite") for name, run in runs.items()]
    whole, fewer = runs["strong"], runs["strong"].excluding(["tree", "unicorn"])
    assert fewer.include.tolist() == [True, True, False, False]
    ious = whole.report().counts.tp[:2] / (whole.report().counts.tp + whole.report().counts.fp
                                           + whole.report().counts.fn)[:2]  # fmt: skip
    assert fewer.report().mean_iou == pytest.approx(ious.mean())
    without = ["--exclude", "tree,unicorn"]
    told = json.loads(inside("report", paths[1], *without, "--format", "json").stdout)
    assert told["mean_iou"] == fewer.report().mean_iou
    told = json.loads(inside("compare", *paths, *without, "--format", "json").stdout)
    assert told["pairs"][0]["overall"]["b"] == pytest.approx(fewer.report().mean_iou)
    assert told["uncommon_classes"] == []
    gate = ["--baseline", paths[1], "--fail-if-worse", "--group-by", "none", *without]
    assert inside("report", paths[0], *gate).returncode == 1
    assert (
        rank([run.excluding("tree") for run in runs.values()], draws=0).models[0].name == "strong"
    )


def test_of_three_models_the_best_is_compared_with_the_second(inside, tmp_path):
    weak, strong = strays().values()
    rng = np.random.default_rng(4)
    truths = [rng.integers(0, 3, (20, 20)) for _ in range(12)]
    labels = ["road", "car", "tree", "unicorn"]
    lost = score(truths, [np.zeros((20, 20), int)] * 12, labels=labels, name="lost")
    paths = [
        run.save(tmp_path / f"{name}.sqlite")
        for name, run in (("lost", lost), ("weak", weak), ("strong", strong))
    ]
    page = tmp_path / "page.html"
    done = inside("compare", *paths, "--group-by", "none", "--html", page)
    found = compare(*map(Run.open, paths), groups="none")
    assert found.outcome(found.best_pair) == ("better", "strong", "weak")
    verdicts = [found.pair_sentences(pair)[0].partition(":")[0] for pair in found.pairs]
    verdict = found.pair_sentences(found.best_pair)[0].partition(":")[0]
    assert min(verdicts, key=lambda one: done.stdout.index(one)) == verdict
    assert done.stdout.index("Ranking") < done.stdout.index(verdict)
    assert verdict in page.read_text(encoding="utf-8")
