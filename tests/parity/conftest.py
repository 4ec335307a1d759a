"""The masks that every program scores, and how a program is found."""

import importlib
import importlib.util
import json
import os
import subprocess
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import NoReturn

import numpy as np
import pytest

from segiou import Counts, metrics
from segiou.counting import ConfusionCounts, count_pairs
from segiou.metrics import load_protocol

CAMVID = Path(__file__).parents[2].parent / "shared" / "data" / "camvid"
IGNORED = 255

# deeplab2, segmentation_and_tracking_quality_test.py, test_complex_example; one row a frame.
TRUTH = """
0000000000000000000201110222211122222211222222212222222122222211
0000000000000000020011002221111022221111222221112222211122221111
0000000000000000000000002011100022111100222111102221111122211111
"""
PRED = """
0000000000000000000001000002211102222211222222212222222122222221
0000000000000000000011000222111122221111222221112222221122222111
0000000000000000000010000011110022211100222111112222111122221111
"""


@dataclass(frozen=True)
class Case:
    """Images with their predictions; ignored truth pixels hold 255."""

    name: str
    truth: list
    pred: list
    num_classes: int

    @property
    def per_image(self):
        tables = [
            count_pairs(t, p, self.num_classes, ignore=IGNORED)
            for t, p in zip(self.truth, self.pred, strict=True)
        ]
        return ConfusionCounts(np.array(tables), np.zeros(len(tables), np.int64)).counts

    @property
    def counts(self) -> Counts:
        return self.per_image.summed()

    def flat(self):
        """All valid pixels in a row."""
        truth = np.concatenate([t.ravel() for t in self.truth])
        pred = np.concatenate([p.ravel() for p in self.pred])
        return truth[truth != IGNORED].astype(int), pred[truth != IGNORED].astype(int)

    def one_hot(self):
        """(N, C, H, W) of truth and prediction, an image at a time; ignored pixels are nothing."""
        for t, p in zip(self.truth, self.pred, strict=True):
            classes = np.arange(self.num_classes)[:, None, None]
            yield (classes == t)[None], ((classes == p) & (t != IGNORED))[None]

    def mean_iou(self, protocol):
        """Ours."""
        return (
            load_protocol(protocol).mean(metrics.iou, self.counts, per_image=self.per_image).value
        )


def frames():
    truth, pred = (
        [np.array(list(row), np.uint8).astype(np.int64).reshape(8, 8) for row in text.split()]
        for text in (TRUTH, PRED)
    )
    return Case("frames", truth, pred, 3)


def frames_with_void():
    case = frames()
    case.truth[0][0, :4] = IGNORED
    case.pred[1][0, :3] = 3
    return Case("frames_with_void", case.truth, case.pred, 5)


def random_masks():
    """Blocks of random classes; class 4 is only predicted, class 5 nowhere."""
    rng = np.random.default_rng(2026)
    truth, pred = [], []
    for _ in range(5):
        t = np.kron(rng.integers(0, 4, (6, 8)), np.ones((5, 5), int))
        p = np.where(rng.random(t.shape) < 0.25, rng.integers(0, 5, t.shape), t)
        t[rng.random(t.shape) < 0.05] = IGNORED
        truth.append(t)
        pred.append(p)
    truth[0][truth[0] == 3] = 2
    return Case("random", truth, pred, 6)


def camvid():
    from PIL import Image

    names = sorted(path.name for path in (CAMVID / "truth").glob("*.png"))[::12]
    truth, pred = (
        [np.asarray(Image.open(CAMVID / folder / name)).astype(np.int64) for name in names]
        for folder in ("truth", "small")
    )
    # Every fifth row and column: real shapes, and programs that take a loop a pixel.
    truth = [np.where(t == 11, IGNORED, t)[::5, ::5] for t in truth]
    return Case("camvid", truth, [p[::5, ::5] for p in pred], 11)


@pytest.fixture(params=["frames", "frames_with_void", "random", "camvid"])
def case(request):
    """The masks to score."""
    if request.param == "camvid" and not CAMVID.is_dir():
        pytest.skip("the CamVid masks are not there")
    makers = {"frames": frames, "frames_with_void": frames_with_void, "random": random_masks}
    return makers.get(request.param, camvid)()


@pytest.fixture
def void_case():
    """frames_with_void: the masks by which all protocols differ."""
    return frames_with_void()


@pytest.fixture
def peer():
    """Import a program, or skip; with SEGIOU_REQUIRE_PEERS=1 its absence fails."""
    return _peer


def _peer(name: str) -> ModuleType:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return importlib.import_module(name)
    except ImportError as error:
        _absent(f"{name} cannot be imported: {error}")


def _absent(reason: str) -> NoReturn:
    if os.environ.get("SEGIOU_REQUIRE_PEERS") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


KERAS = """
import json, sys
try:
    import keras
except ImportError as error:
    sys.exit(f"keras cannot be imported: {error}")
import numpy as np

print("{}")
for line in sys.stdin:
    job = json.loads(line)
    metric = keras.metrics.MeanIoU(num_classes=job["num_classes"], ignore_class=255)
    if job["matrix"]:
        metric.total_cm.assign(np.array(job["matrix"], dtype="int32"))
    for truth, pred in zip(job["truth"], job["pred"]):
        metric.update_state(np.array(truth), np.array(pred))
    matrix = np.asarray(metric.total_cm).tolist()
    print(json.dumps({"mean_iou": float(metric.result()), "matrix": matrix}), flush=True)
"""


@pytest.fixture(scope="session")
def keras_process():
    """A process of its own for Keras: its NumPy backend imports jax, which minds forks."""
    command = [sys.executable, "-W", "ignore", "-u", "-c", KERAS]
    environment = os.environ | {"KERAS_BACKEND": "numpy"}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, env=environment, text=True, **pipes) as process:
        ready = process.stdout.readline()
        yield process, "" if ready else process.stderr.read().strip()
        process.stdin.close()
        process.wait()


@pytest.fixture
def keras_mean_iou(keras_process):
    """Keras' MeanIoU: its result and its confusion matrix."""
    process, error = keras_process
    if error:
        _absent(error.splitlines()[-1])

    def score(truth, pred, num_classes, matrix=None):
        arrays = {"truth": [t.tolist() for t in truth], "pred": [p.tolist() for p in pred]}
        job = arrays | {"num_classes": num_classes, "matrix": matrix}
        process.stdin.write(json.dumps(job) + "\n")
        process.stdin.flush()
        return json.loads(process.stdout.readline())

    return score


@pytest.fixture
def smp_metrics():
    """segmentation_models.pytorch's metrics; the file alone where torchvision is not installed."""
    _peer("torch")
    try:
        return importlib.import_module("segmentation_models_pytorch.metrics.functional")
    except ImportError:
        spec = importlib.util.find_spec("segmentation_models_pytorch")
    if spec is None or spec.origin is None:
        return _peer("segmentation_models_pytorch")
    path = Path(spec.origin).parent / "metrics" / "functional.py"
    alone = importlib.util.spec_from_file_location("_smp_metrics_functional", path)
    module = importlib.util.module_from_spec(alone)
    sys.modules[alone.name] = module
    alone.loader.exec_module(module)
    return module
