"""segiou's own measures by the contract: distances and lesions in every command, and loops."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest
from deletable import kind_of_scores

import segiou
from segiou.measures import measure_of
from segiou.measures.boundary import BoundaryOptions
from segiou.report.formats import nnunet_summary
from segiou.scoring import Evaluator

VOLUMES = Path(__file__).parents[2] / "fixtures" / "volumes"


def volumes(number=3):
    truth = np.zeros((number, 9, 12, 12), np.uint8)
    truth[:, 2:6, 2:7, 2:7] = 2
    truth[:, 3:5, 3:6, 3:6] = 3
    pred = np.roll(truth, 1, axis=2)
    pred[1:2] = 0
    return truth, pred


@pytest.fixture
def runs(tmp_path):
    """Two models in run files: the second is shifted twice as far."""
    pytest.importorskip("nibabel")
    kind_of_scores("surfaces"), kind_of_scores("lesions")
    paths = []
    for model in ("model_a", "model_b"):
        path = tmp_path / f"{model}.sqlite"
        segiou.score_folder(
            VOLUMES / "truth", VOLUMES / model, labels=VOLUMES / "regions.json",
            surfaces=True, measures=["lesions"], run=path,
        )  # fmt: skip
        paths.append(path)
    return paths


def test_distances_in_every_command(runs, command):
    report = segiou.Run.open(runs[0]).report()
    value = report.score("hausdorff_95", "core")
    rows = {row["label"]: row for row in report.measures["surfaces"]}
    assert value == rows["core"]["hausdorff_95"]["median"]
    code, _, noted = command("report", runs[0], "--fail-over", f"hausdorff_95:core={value - 0.5}")
    assert code == 1
    assert f"{value:.2f} mm" in noted
    assert command("report", runs[0], "--fail-over", f"hausdorff_95:core={value + 0.5}")[0] == 0
    code, out, _ = command("report", runs[0], "--worst", 1, "--worst-by", "hausdorff_95:core")
    worst = segiou.Run.open(runs[0]).worst(1, by="hausdorff_95:core")[0]
    assert code == 0
    assert worst["id"] in out
    code, out, _ = command("compare", *runs, "--metric", "hausdorff_95", "--group-by", "none")
    assert code == 0
    assert " mm" in out
    assert "00.00 %" not in out


@pytest.mark.needs("measures.lesions")
def test_lesions_of_the_command_by_every_protocol(command, tmp_path):
    from segiou.measures.lesions import LESION_PROTOCOLS

    pytest.importorskip("nibabel")
    places = VOLUMES / "truth", VOLUMES / "model_a", "--labels", VOLUMES / "regions.json"
    for protocol in ("brats2023-gli", "brats2023-met", "panoptica"):
        code, text, _ = command(
            "score", *places, "--quiet", f"--lesions={protocol}", "--format", "json"
        )
        assert code == 0
        report = json.loads(text)
        found = {name: report["scores"][name] for name in report["lesions"]["scores"]}
        regions = LESION_PROTOCOLS[protocol].regions or {"whole": (), "core": (), "vessel": ()}
        assert [*found["lesion_f1"]["rows"]] == [*regions]
        assert found["lesion_hd95"]["unit"] == "mm"
        numbers = ("lesions_found", "lesions_missed", "lesions_false_positive")
        assert {found[name]["unit"] for name in numbers} == {"count"}
    _, text, _ = command("score", *places, "--quiet", "--lesions", "--format", "csv")
    rows = {row["name"]: row for row in csv.DictReader(io.StringIO(text))}
    assert float(rows["WT"]["lesion_f1"]) > 0
    assert rows["WT"]["tp"] == ""
    code, _, noted = command("score", *places, "--lesions", "brats2031", "--run", tmp_path / "r")
    assert code == 2
    assert "brats2023-gli" in noted
    assert not (tmp_path / "r").exists()


@pytest.mark.needs("measures.lesions")
def test_lesions_are_those_of_the_function():
    from segiou.measures.lesions import LesionOptions, lesion_scores

    truth, pred = volumes()
    run = segiou.score(truth, pred, labels=4, measures=[LesionOptions("brats2023-met")])
    parts = run.parts("lesions")
    for i, (t, p) in enumerate(zip(truth, pred, strict=True)):
        for k, (_, found) in enumerate(
            lesion_scores(t, p, spacing=None, protocol="brats2023-met").items()
        ):
            assert parts["lesions"][i, k].tolist() == [found[n] for n in ("tp", "fn", "fp")]
            assert parts["cases"][i, k].tolist() == [found["dice"], found["hausdorff_95"]]
    means = parts["cases"].mean(0)
    report = run.report()
    rows = report.table("lesions").rows
    np.testing.assert_allclose([report.score("lesion_dice", r) for r in rows], means[:, 0])
    np.testing.assert_allclose([report.score("lesion_hd95", r) for r in rows], means[:, 1])


def test_volumes_have_the_number_of_nnunet():
    pytest.importorskip("nibabel")
    run = segiou.score_folder(
        VOLUMES / "truth", VOLUMES / "model_a", labels=VOLUMES / "regions.json"
    )
    report = run.report()
    summary = json.loads(nnunet_summary(run))
    wanted = [mean["Dice"] for mean in summary["mean"].values()]
    rows = report.table("case_means").rows
    assert [report.score("dice_cases", row) for row in rows] == pytest.approx(wanted)
    assert report.score("dice_cases") == pytest.approx(summary["foreground_mean"]["Dice"])
    assert segiou.score([[0, 1]], [[0, 1]], labels=2).report().table("case_means") is None


def test_objects_have_no_background_in_volumes():
    truth, pred = volumes()
    table = segiou.score(truth, pred, labels=4, objects=True).report().table("objects")
    assert table.rows == ("1", "2", "3")
    flat = segiou.score(truth[0], pred[0], labels=4, objects=True).report().table("objects")
    assert flat.rows == ("0", "1", "2", "3")


def test_absent_classes_of_semantickitti_count_as_zero():
    truth = np.array([[[0, 1, 1]], [[0, 0, 0]]])
    objects = segiou.measures.objects.ObjectOptions(protocol="semantickitti")
    run = segiou.score(truth, truth, labels=4, objects=objects)
    assert run.report().score("pq") == 2 / 4
    assert [row["pq"] for row in run.rows()] == [2 / 4, 1 / 4]


@pytest.mark.needs("measures.surfaces")
def test_boundaries_of_volumes_are_surfaces():
    SurfaceOptions = measure_of("surfaces")
    truth, pred = volumes()
    run = segiou.score(truth, pred, labels=4, measures=["boundary"])
    assert [plan.key for plan in run.plans] == ["surfaces"]
    assert run.plans[0].measure.tolerances == (1, 2, 4)
    both = segiou.score(truth, pred, labels=4, boundary=True, surfaces=SurfaceOptions((3,)))
    assert [plan.measure.tolerances for plan in both.plans] == [(3.0,)]
    own = segiou.score(truth, pred, labels=4, measures=[SurfaceOptions((2,))])
    assert own.plans[0].measure == SurfaceOptions((2,))
    with pytest.raises(ValueError, match="'boundary' twice"):
        segiou.score(truth, pred, labels=4, boundary=True, measures=[BoundaryOptions(3)])


@pytest.mark.needs("measures.surfaces", "measures.lesions")
def test_measures_are_listed(command):
    code, text, _ = command("measures", "--format", "json")
    assert code == 0
    found = {one["key"]: one for one in json.loads(text)["measures"]}
    assert {"boundary", "objects", "surfaces", "lesions"} <= found.keys()
    (score,) = (one for one in found["surfaces"]["scores"] if one["name"] == "hausdorff_95")
    about = {"title": "median HD95", "unit": "px", "better": "lower", "overall": "mean"}
    assert score == {"name": "hausdorff_95", **about}
    code, text, _ = command("measures")
    assert code == 0
    assert "lesion_hd95" in text


class TestEvaluator:
    @pytest.mark.needs("measures.surfaces")
    def test_counts_what_score_counts(self):
        truth, pred = volumes(4)
        run = segiou.score(truth, pred, labels=4, measures=["surfaces", "objects"])
        loop = Evaluator(4, measures=["surfaces", "objects"])
        loop.update(truth[:1], pred[:1]).update(truth[1:], pred[1:])
        assert len(loop) == 4
        for key in ("surfaces", "objects"):
            assert loop.run().parts(key) == run.parts(key)
        assert loop.report().mean_iou == run.report().mean_iou
        assert loop.scores()["pq"] == run.report().score("pq")
        assert "hausdorff_95/3" in loop.scores(per_class=True)

    def test_scores_become_classes(self):
        truth = np.array([[0, 1, 1]])
        scores = np.array([[[0.9, 0.2, 0.6]], [[0.1, 0.8, 0.4]]])
        loop = Evaluator(2, measures=["objects"]).update(truth, scores, argmax=0)
        plain = Evaluator(2, measures=["objects"]).update(truth, np.array([[0, 1, 0]]))
        assert loop.scores() == plain.scores()

    @pytest.mark.needs("measures.surfaces")
    def test_merges_and_keeps_its_state(self):
        truth, pred = volumes(4)
        whole = Evaluator(4, measures=["surfaces"]).update(truth, pred)
        first, second, third = (Evaluator(4, measures=["surfaces"]) for _ in range(3))
        first.update(truth[:2], pred[:2])
        second.update(truth[2:], pred[2:])
        assert third.merge(first, second).scores() == whole.scores()
        kept = json.loads(json.dumps(whole.state_dict()))
        again = Evaluator(4, measures=["surfaces"]).load_state_dict(kept)
        assert again.scores() == whole.scores()
        assert len(again.update(truth[0][None], pred[0][None])) == 5
        assert len(again.reset()) == 0
        assert np.isnan(again.report().mean_iou)

    @pytest.mark.needs("measures.surfaces")
    def test_adds_up_over_processes(self):
        pytest.importorskip("torch")
        from segiou.hooks.distributed import add_up

        truth, pred = volumes(4)
        whole = Evaluator(4, measures=["surfaces"]).update(truth, pred)
        parts = [Evaluator(4, measures=["surfaces"]) for _ in range(2)]
        for part, of in zip(parts, (slice(2), slice(2, 4)), strict=True):
            part.update(truth[of], pred[of])
        from segiou.hooks.distributed import _described

        everyone = [_described(part) for part in parts]
        assert add_up(parts[0], lambda item: everyone).scores() == whole.scores()
        everyone[1] = _described(Evaluator(3, measures=["surfaces"]))
        with pytest.raises(ValueError, match="process 1"):
            add_up(parts[0], lambda item: everyone)

    @pytest.mark.needs("measures.surfaces")
    def test_refuses_what_does_not_belong(self):
        truth, pred = volumes(1)
        loop = Evaluator(4, measures=["surfaces"]).update(truth, pred)
        with pytest.raises(ValueError, match="cannot merge evaluators"):
            loop.merge(Evaluator(4))
        with pytest.raises(ValueError, match="cannot merge evaluators"):
            loop.merge(Evaluator(3, measures=["surfaces"]))
        images = Evaluator(4, measures=["surfaces"]).update(truth[0], pred[0])
        with pytest.raises(ValueError, match="cannot merge evaluators"):
            Evaluator(4, measures=["surfaces"]).merge(loop, images)
        with pytest.raises(TypeError, match="not int"):
            loop.merge(3)
        with pytest.raises(ValueError, match="different options"):
            Evaluator(4).load_state_dict(loop.state_dict())
        with pytest.raises(ValueError, match="version"):
            loop.load_state_dict({"state_version": 9})
        forged = loop.state_dict()
        forged["images"][0]["measured"] = "00"
        with pytest.raises(ValueError, match="truncated"):
            Evaluator(4, measures=["surfaces"]).load_state_dict(forged)
        with pytest.raises(ValueError, match="neither a class nor ignored"):
            loop.update(np.array([[9]]), np.array([[0]]))
        assert len(loop) == 1


@pytest.mark.needs("measures.surfaces")
def test_every_way_to_ask_for_surfaces_has_the_same_tolerances():
    truth, pred = volumes()
    asked = [{"measures": ["surfaces", "boundary"]}, {"surfaces": True}, {"surfaces": "medpy"}]
    for options in [*asked, {"boundary": True, "surfaces": "medpy"}]:
        run = segiou.score(truth[0], pred[0], labels=4, **options)
        assert run.plan("surfaces").measure.tolerances == (1, 2, 4)
    run = segiou.score(truth[0], pred[0], labels=4, surfaces="totalsegmentator")
    assert run.plan("surfaces").measure.tolerances == (3,)


@pytest.mark.needs("measures.surfaces")
def test_one_measure_is_described(command):
    code, text, _ = command("measures", "objects", "--format", "json")
    assert code == 0
    (found,) = json.loads(text)["measures"]
    assert found["source"] == "segiou.measures.objects.options.ObjectOptions"
    assert found["package"] == "segiou"
    assert "Attributes" in found["details"]
    code, text, _ = command("measures", "surfaces")
    assert "hausdorff_95" in text
    assert "\ntolerances : tuple of float or str\n    Tolerances of surface Dice" in text
    assert "Options:" in text and "---" not in text and "Raises" not in text and "``" not in text
    code, text, _ = command("measures", "change")  # no options and no details
    assert code == 0
    assert "\n\n\n" not in text
    code, _, noted = command("measures", "surface")
    assert code == 2
    assert "did you mean surfaces" in noted
