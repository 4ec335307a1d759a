"""The masks that several folders use; and the same segiou for the processes that tests start."""

from __future__ import annotations

import gc
import os
import sqlite3
import sys
from collections import defaultdict
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from xdist.scheduler import LoadFileScheduling

import segiou
from segiou import read_mask
from segiou.counting import count_pairs

# Without this a child would take the checkout in its working directory, where
# the compiled modules are missing when the package under test is an installed one.
os.environ["PYTHONSAFEPATH"] = "1"
# What tests send to worker processes must be found by them, too.
IMPORTABLE = str(Path(__file__).parent / "importable")
os.environ["PYTHONPATH"] = os.pathsep.join([str(Path(segiou.__file__).parents[1]), IMPORTABLE])
sys.path.append(IMPORTABLE)

# Rewriting the assertions of all files takes a third of a short run: once, not in each process.
sys.dont_write_bytecode = False
IS_SECOND = os.environ.get("PYTEST_XDIST_WORKER", "gw0")[-1] in "13579"

# No test asserts a time; Hypothesis would, and a busy machine stalls for seconds.
settings.register_profile("plain", deadline=None, max_examples=6)
settings.register_profile("gate", deadline=None, max_examples=50)


def pytest_configure(config):
    """Draw fewer random examples in plain pytest than in the gate."""
    settings.load_profile("plain" if config.getoption("markexpr") == "not gate" else "gate")


class ByFile(LoadFileScheduling):
    """Run the files of the hooks in two processes, because each imports frameworks for a minute."""

    def _split_scope(self, nodeid):
        file = super()._split_scope(nodeid)
        if not file.startswith("tests/hooks/"):
            return file
        return "hooks with Keras" if has_keras(file) else "hooks"


@cache
def has_keras(file):
    text = (Path(__file__).parents[1] / file).read_text(encoding="utf-8")
    return "run_keras" in text or "with_keras" in text


def pytest_xdist_make_scheduler(config, log):
    return ByFile(config, log) if config.getvalue("dist") == "loadfile" else None


def leave_cases_to_the_gate(items):
    """Of tests with the mark ``few``, leave all but so many cases, spread evenly, to the gate."""
    tests = defaultdict(list)
    for item in items:
        if item.get_closest_marker("few"):
            tests[item.nodeid.partition("[")[0]].append(item)
    for cases in tests.values():
        (few,) = cases[0].get_closest_marker("few").args
        for k, item in enumerate(cases):
            if k * few // len(cases) == (k - 1) * few // len(cases):
                item.add_marker("gate")


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    """Read every second worker's files from the end, so that two compile half of them each."""
    report = yield
    if IS_SECOND and isinstance(collector, pytest.Directory):
        report.result.reverse()
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Put long tests first; skip what needs a deleted folder, or builds C code unasked."""
    items.sort(key=lambda item: str(item.path))
    leave_cases_to_the_gate(items)
    for item in items:
        needed = {name for marker in item.iter_markers("needs") for name in marker.args}
        for name in sorted(name for name in needed if find_spec(f"segiou.{name}") is None):
            item.add_marker(pytest.mark.skip(reason=f"segiou.{name} was deleted"))
    items.sort(key=lambda item: item.get_closest_marker("sanitize") is None)
    items.sort(key=lambda item: item.path.stem != "test_deletion")  # which takes minutes
    if os.environ.get("SEGIOU_SANITIZE") != "1":
        skip = pytest.mark.skip(reason="the C code is built anew only with SEGIOU_SANITIZE=1")
        for item in items:
            if item.get_closest_marker("sanitize"):
                item.add_marker(skip)


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Leave modules and tests out of garbage collections, which took a tenth of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


class Unsynced(sqlite3.Connection):
    """A connection that does not wait for the disk, since no test cuts the power."""

    def execute(self, sql, *parameters):
        if sql.startswith("PRAGMA synchronous = "):
            sql = "PRAGMA synchronous = OFF"
        return super().execute(sql, *parameters)


@pytest.fixture(scope="session", autouse=True)
def run_files_are_not_synced():
    """Write run files without waiting for the disk, which takes long while it is busy."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=Unsynced))
        yield


@pytest.fixture
def one_scene(monkeypatch):
    """``segiou demo`` draws one scene instead of six, which takes seconds."""
    if find_spec("segiou.demo"):  # its folder can be deleted
        from segiou.demo import command

        monkeypatch.setattr(command, "write_demo", partial(command.write_demo, scenes=1))


CAMVID = Path(__file__).resolve().parents[2] / "shared" / "data" / "camvid"
CAMVID_CLASSES = (
    *("sky", "building", "pole", "road", "pavement", "tree"),
    *("sign", "fence", "car", "pedestrian", "bicyclist"),
)


@pytest.fixture(scope="session")
def camvid_tables():
    """Counts (N, C, C + 1) of two models, with ``ids`` and ``class_names``."""
    if not CAMVID.is_dir():
        pytest.skip("the CamVid masks are not beside this checkout")
    ids = sorted(path.stem for path in (CAMVID / "truth").glob("*.png"))
    truths = [read_mask(CAMVID / "truth" / f"{name}.png") for name in ids]
    tables = {"ids": ids, "class_names": CAMVID_CLASSES}
    for model in ("small", "base"):
        preds = (read_mask(CAMVID / model / f"{name}.png") for name in ids)
        tables[model] = np.stack(
            [count_pairs(t, p, 11, ignore=11) for t, p in zip(truths, preds, strict=True)]
        )
    return tables
