"""What experiment trackers keep of a report, read back from what they wrote."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from segiou import ConfusionMatrix

#: Names that trackers refuse or rewrite, and some that become one.
NAMES = [
    "Traffic Sign (Back)",
    "traffic-sign",
    "N/A",
    "../up",
    "Straße: nass",
    "???",
    "a b",
    "a_b",
    "a_b_2",
    "w" * 300,
]
PARTS = [
    "Traffic_Sign_Back",
    "traffic_sign",
    "N_A",
    "up",
    "Straße_nass",
    "class_5",
    "a_b",
    "a_b_2",
    "a_b_2_2",
    "w" * 100,
]


@pytest.fixture
def report():
    # The last class does not occur: its scores are undefined.
    return ConfusionMatrix(NAMES).update([0, 0, 1, *range(2, 9)], [0, 1, 1, *range(2, 9)]).report()


@pytest.fixture
def figure(report, need):
    need("matplotlib").use("Agg")
    from segiou import plots

    return plots.confusion_matrix(report).figure


def is_same(found, expected):
    return found == expected or (math.isnan(found) and math.isnan(expected))


def test_names_and_values(report):
    scores = report.scores(prefix="val/")
    expected = ["mean_iou", "mean_accuracy", "pixel_accuracy", "frequency_weighted_iou"]
    expected += [f"iou/{part}" for part in PARTS]
    assert list(scores) == [f"val/{name}" for name in expected]
    assert all(type(value) is float for value in scores.values())
    assert scores["val/mean_iou"] == report.mean_iou
    assert scores["val/iou/Traffic_Sign_Back"] == 0.5
    assert math.isnan(scores["val/iou/" + "w" * 100])
    recall = report.scores(names="recall", separator="_")
    assert list(recall) == [f"recall_{part}" for part in PARTS]
    assert recall["recall_Traffic_Sign_Back"] == 0.5
    with pytest.raises(ValueError, match="'miuo'; choose from iou"):
        report.scores(names=["miuo"])
    with pytest.raises(TypeError, match="prefix"):
        report.scores(prefix=3)


def test_hooks_use_the_same_names(report):
    from segiou.hooks._scoring import MatrixScoring
    from segiou.report.formats import DEFAULT

    counted = ConfusionMatrix(NAMES).update([0], [0])
    values = MatrixScoring(NAMES, DEFAULT, {}).values(counted)
    assert list(values) == list(report.scores())
    np.testing.assert_equal(values, counted.report().scores())


def test_mlflow_keeps_them(report, figure, need, tmp_path, monkeypatch):
    mlflow = need("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri((tmp_path / "mlruns").as_uri())
    try:
        with mlflow.start_run() as run:
            mlflow.log_metrics(report.scores("val/"), step=1)
            mlflow.log_figure(figure, "confusion_matrix.png")
            mlflow.log_artifact(report.save(tmp_path / "report.html"))
        client = mlflow.MlflowClient()
        found = client.get_run(run.info.run_id).data.metrics
        files = {item.path for item in client.list_artifacts(run.info.run_id)}
    finally:
        mlflow.set_tracking_uri(before)
    scores = report.scores("val/")
    assert found.keys() == scores.keys()
    assert all(is_same(found[name], value) for name, value in scores.items())
    assert files == {"confusion_matrix.png", "report.html"}


def test_tensorboard_keeps_them(report, figure, need, tmp_path):
    need("tensorboard")
    need("torch")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from torch.utils.tensorboard import SummaryWriter

    scores = report.scores("val/")
    with SummaryWriter(tmp_path) as writer:
        for name, value in scores.items():
            writer.add_scalar(name, value, global_step=1)
        writer.add_figure("val/confusion_matrix", figure, 1)
    events = EventAccumulator(str(tmp_path))
    events.Reload()
    assert set(events.Tags()["scalars"]) == set(scores)
    assert events.Scalars("val/mean_iou")[0].value == pytest.approx(report.mean_iou, rel=1e-6)
    assert events.Tags()["images"] == ["val/confusion_matrix"]


def test_wandb_keeps_them(report, figure, need, tmp_path, monkeypatch):
    wandb = need("wandb")
    need("matplotlib.pyplot")
    monkeypatch.setenv("WANDB_SILENT", "true")
    scores = report.scores("val/")
    with wandb.init(project="segiou", mode="offline", dir=tmp_path) as run:
        run.log(scores | {"val/confusion_matrix": wandb.Image(figure)}, step=1)
        run.log_artifact(report.save(tmp_path / "report.html"), name="report", type="report")
    wandb.teardown()  # its service may still write
    (path,) = tmp_path.glob("wandb/offline-*/*.wandb")
    written = path.read_bytes()  # records of names and JSON
    assert all(name.encode() in written for name in scores)
    assert json.dumps(report.mean_iou).encode() in written
    assert len(list(path.parent.rglob("confusion_matrix*.png"))) == 1


# In a process of its own, since ClearML changes the one that it is used in.
CLEARML = """
import json, sys
from pathlib import Path
from clearml import Task

Task.set_offline(True)
task = Task.init("segiou", "test", auto_connect_frameworks=False, auto_resource_monitoring=False)
for name, value in json.loads(sys.argv[1]).items():
    title, _, series = name.rpartition("/")
    task.get_logger().report_scalar(title, series, value, iteration=1)
folder = Path(task.get_offline_mode_folder())
task.close()
lines = (folder / "metrics.jsonl").read_text().splitlines()
events = [event for line in lines for event in json.loads(line)]
print(json.dumps({f"{e['metric']}/{e['variant']}": e["value"] for e in events}))
"""


def test_clearml_keeps_them(report, run_python, tmp_path):
    pytest.importorskip("clearml", reason="ClearML is not installed here")
    scores = report.scores("val/")
    found = run_python(CLEARML, json.dumps(scores), CLEARML_CACHE_DIR=str(tmp_path))
    assert found.keys() == scores.keys()
    assert found["val/mean_iou"] == pytest.approx(report.mean_iou, rel=1e-6)
