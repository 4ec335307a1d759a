"""The street fixtures, a tiny real network, and frameworks that may be missing."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
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
            timeout=240,
            env=os.environ | {"OMP_NUM_THREADS": "1"} | environment,
        )
        assert done.returncode == 0, done.stderr[-4000:]
        return json.loads(done.stdout.strip().splitlines()[-1])

    return run


# Where an interpreter winds itself up while gloo's threads still run, these may abort it, after
# all has been said. What goes wrong before, an exception for one, is still seen.
END = """
import os, sys
sys.stdout.flush()
os._exit(0)
"""


# Imports frameworks once, and runs a script in two forks; one that fails ends the other.
FORKS = """
import importlib, os, sys
code, path, store, *modules = sys.argv[1:]
for name in modules:
    importlib.import_module(name)
children = set()
for rank in ("0", "1"):
    child = os.fork()
    if not child:
        for number, end in ((1, "out"), (2, "err")):
            flags = os.O_CREAT | os.O_WRONLY | os.O_TRUNC
            os.dup2(os.open(f"{store}-{rank}.{end}", flags), number)
        os.environ.update(RANK=rank, LOCAL_RANK=rank)
        sys.argv[1:] = path, store, rank, "2"
        exec(code)
    children.add(child)
while children:
    child, status = os.wait()
    children.remove(child)
    if status:
        for other in children:
            os.kill(other, 9)
        os._exit(1)
"""


class TwoProcesses:
    """Run a script in two processes that know of each other; gives what the first printed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.last: list[dict] = []

    def __call__(self, code: str, path: Path, *modules: str) -> list[dict]:
        """Modules are imported before the processes part, once for both."""
        with socket.socket() as free:
            free.bind(("localhost", 0))
            port = str(free.getsockname()[1])
        store = self.folder / "store"
        command = ["-W", "ignore", "-c", FORKS, code + END, path, store, "torch", *modules]
        variables = {"WORLD_SIZE": "2", "MASTER_ADDR": "localhost", "MASTER_PORT": port}
        done = subprocess.Popen(
            [sys.executable, *map(str, command)],
            env=os.environ | variables | {"OMP_NUM_THREADS": "1"},
            start_new_session=True,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            _, errors = done.communicate(timeout=240)
        finally:
            # One that waits for the other must not outlive the test.
            with suppress(ProcessLookupError):
                os.killpg(done.pid, signal.SIGKILL)
        errors += "".join(
            one.read_text()[-4000:] for one in sorted(self.folder.glob("store-*.err"))
        )
        assert done.returncode == 0, errors
        lines = Path(f"{store}-0.out").read_text(encoding="utf-8").strip().splitlines()
        printed = json.loads(lines[-1])
        self.last = printed if isinstance(printed, list) else [printed]
        return self.last


@pytest.fixture
def run_two(tmp_path):
    return TwoProcesses(tmp_path)


@pytest.fixture(scope="session")
def run_two_once(tmp_path_factory):
    """As `run_two`, for results that several tests share."""
    return TwoProcesses(tmp_path_factory.mktemp("two"))
