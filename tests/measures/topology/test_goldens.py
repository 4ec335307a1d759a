"""Topology of the masks that scikit-image and panoptica scored."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from segiou.measures.topology import betti_numbers, skeleton_counts

FOLDER = Path(__file__).resolve().parents[4] / "shared" / "rules" / "topology"
if not FOLDER.is_dir():
    pytest.skip("the masks are not beside this checkout", allow_module_level=True)
CASES = json.loads((FOLDER / "topology.json").read_text(encoding="utf-8"))["cases"]


def masks_of(name):
    with np.load(FOLDER / "topology.npz") as packed:
        shape = packed[f"{name}_shape"]
        for side in ("truth", "pred"):
            bits = np.unpackbits(packed[f"{name}_{side}"])
            yield bits[: shape.prod()].reshape(shape).astype(bool)


@pytest.mark.parametrize("name", CASES)
def test_skeletons(name):
    expected = CASES[name]
    found = skeleton_counts(*masks_of(name)).tolist()
    assert found[:4] == expected["counts"]
    assert found[4:] == expected["skeleton_recall"]


@pytest.mark.parametrize("connectivity", ["full", "cross"])
@pytest.mark.parametrize("name", CASES)
def test_betti_numbers(name, connectivity):
    expected = CASES[name][f"betti_{connectivity}"]
    for side, mask in zip(("truth", "pred"), masks_of(name), strict=True):
        assert list(betti_numbers(mask, connectivity=connectivity)) == expected[side]
