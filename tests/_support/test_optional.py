"""Each compiled module may be missing; all results stay the same, and whoever wants it is told."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest

import segiou
from segiou._support.optional import PARTS, load_part

EVERYTHING = """
import os
import sys
from pathlib import Path
for name in sys.argv[2:]:
    sys.modules[name] = None
import numpy as np
from PIL import Image
import segiou
from segiou.measures.surfaces import surface_scores
from segiou.cli.main import main
from segiou.counting.id_pairs import count_id_pairs
from segiou.counting.scores import scores_to_labels
from segiou.regions import label_components

noise = np.random.default_rng(5)
for i in range(4):
    for side in ("truth", "pred"):
        path = Path(sys.argv[1], side, f"{i}.png")
        path.parent.mkdir(exist_ok=True)
        mask = np.kron(noise.integers(0, 3, (6, 7)), np.ones((4, 4))).astype(np.uint8)
        Image.fromarray(mask).save(path)
        os.utime(path, (1e9, 1e9))  # a file that just changed is read with more care
run = segiou.score_folder(
    Path(sys.argv[1], "truth"), Path(sys.argv[1], "pred"), labels=3, boundary=True
)
print(segiou.read_mask(path).tolist())  # one file alone
print(run.total().matrix.tolist(), run.report().to_dict()["boundary"])
channels = segiou.ChannelCounts(2)
channels.update(noise.random((2, 9)) > 0.5, noise.random((2, 9)) > 0.5, axis=0)
print(channels.counts)
print(count_id_pairs(noise.integers(0, 3, (5, 7)), noise.integers(0, 3, (5, 7))))
print(label_components(noise.integers(0, 3, (5, 7))))
surfaces = surface_scores(*noise.integers(0, 3, (2, 5, 6, 7)))
print([(found["hausdorff"], found["hausdorff_95"]) for found in surfaces.values()])
print(scores_to_labels(noise.random((3, 5)), argmax=0))
print(scores_to_labels(noise.random(5), threshold=0.5))
histogram = segiou.ScoreHistogram(3).update(noise.integers(0, 3, 50), noise.random((3, 50)), 0)
print(histogram.counts.nonzero(), histogram.top_sums.sum())
print("COMPILED")
print(segiou.ConfusionMatrix(2).report().to_json())
main(["--version"])
"""


def everything(folder, *missing, required=""):
    """Start what all compiled modules have a part in, without some of them."""
    return subprocess.run(
        [sys.executable, "-c", EVERYTHING, str(folder), *missing],
        env=os.environ | {"SEGIOU_REQUIRE_KERNEL": required},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def printed_by_all(tmp_path_factory):
    done = everything(tmp_path_factory.mktemp("all"))
    assert done.returncode == 0, done.stderr
    return done.stdout


ONE = [pytest.param((name,), marks=pytest.mark.gate, id=name) for name in PARTS]


@pytest.mark.needs("measures.surfaces")
@pytest.mark.parametrize("missing", [pytest.param(tuple(PARTS), id="all"), *ONE])
@pytest.mark.gate
def test_the_same_comes_out_without(missing, printed_by_all, tmp_path):
    done = everything(tmp_path, *missing)
    found, _, compiled = done.stdout.partition("COMPILED\n")
    assert found == printed_by_all.partition("COMPILED\n")[0]
    report, end = json.JSONDecoder().raw_decode(compiled)
    there = {PARTS[name].key: bool(find_spec(name)) and name not in missing for name in PARTS}
    assert report["compiled"] == there
    lines = compiled[end:].split("\n")
    assert f"segiou {segiou.__version__}" in lines
    for name in missing:
        part = PARTS[name]
        assert f"{part.key:<12}not compiled: {part.what} is {part.cost}" in lines
    told = f"{list(there.values()).count(False)} of {len(PARTS)} compiled modules are missing, "
    assert done.stderr.count(told) == 1, done.stderr


@pytest.mark.parametrize("name", PARTS)
def test_what_is_required_must_be_there(monkeypatch, name):
    monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setenv("SEGIOU_REQUIRE_KERNEL", "1")
    text = f"the compiled module for {PARTS[name].what} is missing, but SEGIOU_REQUIRE_KERNEL=1"
    with pytest.raises(ImportError, match=re.escape(text)):
        load_part(name)


@pytest.mark.needs("measures.surfaces")
def test_the_package_needs_what_is_required(tmp_path):
    done = everything(tmp_path, *PARTS, required="1")
    assert done.returncode != 0
    assert "is missing, but SEGIOU_REQUIRE_KERNEL=1" in done.stderr


def test_all_compiled_modules_are_parts():
    project = tomllib.loads(Path(__file__).parents[2].joinpath("pyproject.toml").read_text())
    modules = project["tool"]["setuptools"]["ext-modules"]
    assert {module["name"] for module in modules} == set(PARTS)
    assert all(module["optional"] for module in modules)


def test_a_module_of_older_sources_is_refused(monkeypatch):
    old = SimpleNamespace(__file__="/here/_kernel.abi3.so")
    monkeypatch.setitem(sys.modules, "segiou.counting._kernel", old)
    with pytest.raises(ImportError, match=r"_kernel.abi3.so is out of date; .* pip install -e"):
        load_part("segiou.counting._kernel")
