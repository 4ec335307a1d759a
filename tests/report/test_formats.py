"""nnU-Net's summary, against what its own functions gave and by hand."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

import segiou
from segiou.cli.main import main
from segiou.report.formats import nnunet_summary

VOLUMES = Path(__file__).parents[2].parent / "shared" / "data" / "volumes"


def run_from_counts(labels, *cases):
    return segiou.score([truth for truth, _ in cases], [pred for _, pred in cases], labels=labels)


def test_means_by_hand():
    first = np.array([[0, 1, 1, 2]]), np.array([[0, 1, 2, 2]])
    second = np.array([[0, 0, 1, 1]]), np.array([[0, 0, 1, 1]])
    found = json.loads(nnunet_summary(run_from_counts(3, first, second)))
    assert [sorted(case["metrics"]) for case in found["metric_per_case"]] == [["1", "2"]] * 2
    assert found["metric_per_case"][0]["metrics"]["1"] == {
        "Dice": 2 / 3,
        "FN": 1,
        "FP": 0,
        "IoU": 0.5,
        "TN": 2,
        "TP": 1,
        "n_pred": 1,
        "n_ref": 2,
    }
    assert math.isnan(found["metric_per_case"][1]["metrics"]["2"]["Dice"])
    assert found["mean"]["1"] == {
        **{"Dice": (2 / 3 + 1) / 2, "IoU": 0.75, "TP": 1.5, "FP": 0.0, "FN": 0.5, "TN": 2.0},
        **{"n_pred": 1.5, "n_ref": 2.0},
    }
    # Counts are averaged over all cases, ratios over those that have the label.
    assert found["mean"]["2"]["IoU"] == 0.5
    assert found["mean"]["2"]["TP"] == 0.5
    assert found["foreground_mean"]["IoU"] == (0.75 + 0.5) / 2


def test_a_label_that_never_occurs_makes_the_foreground_mean_nan():
    case = np.array([[0, 1]]), np.array([[0, 1]])
    text = nnunet_summary(run_from_counts(3, case))
    assert '"Dice": NaN' in text
    assert math.isnan(json.loads(text)["foreground_mean"]["Dice"])


def test_a_region_of_one_value_is_named_as_one(tmp_path):
    # nnU-Net, dataset_conversion/Dataset137_BraTS21.py; its keys are str((3,)) and str(3).
    regions = {"whole": [1, 2, 3], "core": [3, 2], "list": [3], "label": 3}
    (tmp_path / "dataset.json").write_text(json.dumps({"labels": {"background": 0, **regions}}))
    case = np.array([[0, 1, 2, 3]]), np.array([[0, 1, 2, 3]])
    found = json.loads(nnunet_summary(run_from_counts(tmp_path / "dataset.json", case)))
    assert [*found["mean"]] == ["(1, 2, 3)", "(3, 2)", "(3,)", "3"]
    assert found["mean"]["(3,)"]["TP"] == found["mean"]["3"]["TP"] == 1


@pytest.mark.skipif(not VOLUMES.is_dir(), reason="the volumes are not there")
@pytest.mark.parametrize("golden", ["no_ignore", "ignore_100"])
def test_what_nnunet_gives_for_the_spine(tmp_path, capsys, golden):
    pytest.importorskip("nibabel")
    expected = json.loads((VOLUMES / "nnunet_spine.json").read_text())[golden]
    values = {"background": 0, **{f"v{v}": v for v in (26, *range(41, 51), 60, 61, 62, 99, 100)}}
    if golden == "ignore_100":
        values["ignore"] = values.pop("v100")
    regions = {"pair": [41, 42], "three": [60, 61, 62]} if golden == "no_ignore" else {}
    for labels in (values, {**values, **regions}) if regions else (values,):
        (tmp_path / "dataset.json").write_text(json.dumps({"labels": labels}))
        spine = VOLUMES / "spine"
        command = ["score", str(spine / "ref.nii.gz"), str(spine / "pred.nii.gz")]
        command += ["--labels", str(tmp_path / "dataset.json"), "--unassigned", "count"]
        assert main([*command, "--format", "nnunet"]) == 0
        (case,) = json.loads(capsys.readouterr().out)["metric_per_case"]
        assert case["reference_file"].endswith("ref.nii.gz")
        for key in expected.keys() & case["metrics"].keys():
            np.testing.assert_equal(case["metrics"][key], expected[key], key)
        missing = expected.keys() - case["metrics"].keys()
        assert missing == ({"(41, 42)", "(60, 61, 62)"} if labels is values and regions else set())
