"""The street fixtures, a tiny real network, and frameworks that may be missing."""

from __future__ import annotations

import importlib.util
import json
import os
import socket
import subprocess
import sys
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from forks import LIMIT_SECONDS, Forks
from PIL import Image

from segiou import ConfusionMatrix

STREETS = Path(__file__).resolve().parents[2] / "fixtures" / "streets"
NAMES = ("sky", "building", "road", "pavement", "tree", "car", "pole", "sign", "person", "bicycle")


def pytest_collection_modifyitems(items):
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.frameworks)
            # What frameworks warn of while they are imported and run is theirs.
            item.add_marker(pytest.mark.filterwarnings("default"))


@pytest.fixture(scope="session")
def need():
    """``need("torch")`` imports a framework, or skips; fails under SEGIOU_REQUIRE_FRAMEWORKS=1."""

    def import_or_skip(name: str):
        try:
            return importlib.import_module(name)
        except ImportError as error:
            if os.environ.get("SEGIOU_REQUIRE_FRAMEWORKS") == "1":
                raise
            pytest.skip(f"{name} is not installed here: {error}")

    return import_or_skip


@pytest.fixture(scope="session")
def need_keras():
    """``need_keras("jax")`` skips, or fails as ``need`` does, without Keras or that backend."""

    def find_or_skip(backend: str):
        # Only whether they are there: importing keras would fix its backend.
        for name in ("keras", backend):
            if importlib.util.find_spec(name) is None:
                # No extra brings TensorFlow.
                if name != "tensorflow" and os.environ.get("SEGIOU_REQUIRE_FRAMEWORKS") == "1":
                    pytest.fail(f"{name} is not installed here")
                pytest.skip(f"{name} is not installed here")

    return find_or_skip


@pytest.fixture(scope="session")
def streets():
    """Six street scenes: images (6, 3, H, W) float32, truth and a model's masks (6, H, W) uint8."""
    ids = sorted(path.stem for path in (STREETS / "truth").glob("*.png"))
    truth = [np.asarray(Image.open(STREETS / "truth" / f"{i}.png")) for i in ids]
    pred = [np.asarray(Image.open(STREETS / "model_b" / f"{i}.png")) for i in ids]
    images = [np.asarray(Image.open(STREETS / "images" / f"{i}.jpg")) for i in ids]
    expected = json.loads((STREETS / "expected.json").read_text(encoding="utf-8"))
    total = expected["preds"]["model_b"]["total"]
    return SimpleNamespace(
        ids=ids,
        names=NAMES,
        truth=np.stack(truth),
        pred=np.stack(pred),
        images=np.stack(images).transpose(0, 3, 1, 2).astype(np.float32) / 255,
        matrix=np.array(total["matrix"]),
        ignored=total["ignored"],
    )


@pytest.fixture(scope="session")
def network(need):
    """Two convolutions with fixed weights; ``network(stride)`` gives logits (N, 10, H/s, W/s)."""
    torch = need("torch")

    def build(stride: int = 1):
        torch.manual_seed(4)
        return torch.nn.Sequential(
            torch.nn.Conv2d(3, 8, 3, padding=1, stride=stride),
            torch.nn.ReLU(),
            torch.nn.Conv2d(8, 10, 1),
        )

    return build


@pytest.fixture(scope="session")
def answer(streets, network, need):
    """What one process counts of the untrained network's predictions, one image after the other."""
    torch = need("torch")
    cm = ConfusionMatrix(NAMES, ignore=255)
    with torch.no_grad():
        logits = network()(torch.from_numpy(streets.images)).numpy()
    for truth, scores in zip(streets.truth, logits, strict=True):
        cm.update(truth, scores, argmax=0)
    return cm


@pytest.fixture(scope="session")
def run_python():
    """Run a script in another process and give what it printed, as JSON."""

    def run(code: str, *arguments: str, **environment: str):
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", code, *arguments],
            capture_output=True,
            text=True,
            timeout=LIMIT_SECONDS,
            env=os.environ | {"OMP_NUM_THREADS": "1"} | environment,
        )
        assert done.returncode == 0, done.stderr[-4000:]
        return last_line(done.stdout)

    return run


def last_line(printed: str):
    return json.loads(printed.strip().splitlines()[-1])


#: What runs on torch, which takes 16 s to import. Hooks are not here: scripts import their own.
FRAMEWORKS = (
    *("torch", "torchmetrics", "lightning.pytorch", "accelerate", "transformers"),
    *("ignite.engine", "ignite.distributed", "mmengine.runner"),
)


@pytest.fixture(scope="session")
def with_torch(tmp_path_factory):
    """A process that has imported these frameworks, and forks for each script."""
    forks = Forks(tmp_path_factory.mktemp("torch"), *FRAMEWORKS)
    yield forks
    forks.close()


@pytest.fixture(scope="session")
def with_keras(tmp_path_factory):
    """``with_keras(backend)`` is such a process with Keras, which has one backend per process."""

    @cache
    def forks(backend: str) -> Forks:
        folder = tmp_path_factory.mktemp(backend)
        made.append(Forks(folder, "keras", KERAS_BACKEND=backend))
        return made[-1]

    made: list[Forks] = []
    yield forks
    for one in made:
        one.close()


@pytest.fixture(scope="session")
def run_torch(with_torch):
    """As `run_python`, with frameworks that are imported already."""
    return lambda code, *arguments: last_line(*with_torch.run(code, *arguments))


@pytest.fixture(scope="session")
def run_keras(with_keras, need_keras):
    """``run_keras(backend, code, *arguments)`` is as `run_python`, and skips as `need_keras`."""

    def run(backend: str, code: str, *arguments: str):
        need_keras(backend)
        return last_line(*with_keras(backend).run(code, *arguments))

    return run


# Where an interpreter winds itself up while gloo's threads still run, these may abort it, after
# all has been said. What goes wrong before, an exception for one, is still seen.
END = """
import os, sys
sys.stdout.flush()
os._exit(0)
"""


class TwoProcesses:
    """Run a script in two processes that know of each other; gives what the first printed."""

    def __init__(self, forks: Forks, folder: Path) -> None:
        self.forks, self.folder = forks, folder
        self.last: list[dict] = []

    def __call__(self, code: str, path: Path) -> list[dict]:
        with socket.socket() as free:
            free.bind(("localhost", 0))
            port = str(free.getsockname()[1])
        printed = self.forks.run(
            code + END,
            *(path, self.folder / "store", "{rank}", "2"),
            ranks=2,
            WORLD_SIZE="2",
            MASTER_ADDR="localhost",
            MASTER_PORT=port,
        )
        found = last_line(printed[0])
        self.last = found if isinstance(found, list) else [found]
        return self.last


@pytest.fixture
def run_two(with_torch, tmp_path):
    return TwoProcesses(with_torch, tmp_path)


@pytest.fixture(scope="session")
def run_two_once(with_torch, tmp_path_factory):
    """As `run_two`, for results that several tests share."""
    return TwoProcesses(with_torch, tmp_path_factory.mktemp("two"))
