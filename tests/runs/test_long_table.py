"""The table of a run with one row per image, structure and score."""

from __future__ import annotations

import csv
from io import StringIO

import numpy as np
import pytest
from mask_files import write_mask

import segiou
from segiou.cli.main import main
from segiou.measures.registry import measure_of, own_keys

#: 4 pixels of "organ", 2 of them found; no "tumour" in the second case.
TRUTH = {"x": [[1, 1, 1, 1, 2]], "y": [[1, 1, 1, 1, 0]]}
PRED = {"x": [[1, 1, 0, 0, 2]], "y": [[1, 1, 1, 1, 0]]}
#: Measures that need scores, a georeference, ids, folders of clicks, a target or two classes.
NEED_MORE = {"scores", "area", "cells", "clicks", "partitions", "referring", "saliency"}
NAMES = ["air", "organ", "tumour"]


def rows_of(text):
    return [*csv.DictReader(StringIO(text))]


def test_values_are_those_of_each_case_and_undefined_ones_are_noted():
    run = segiou.score([*TRUTH.values()], [*PRED.values()], labels=NAMES, ids=["x", "=y"])
    found = {(r["case"], r["structure"], r["score"]): r for r in rows_of(run.to_csv(long=True))}
    assert len(found) == 2 * 3 * 4
    assert float(found["x", "organ", "dice"]["value"]) == pytest.approx(2 / 3)
    assert float(found["x", "organ", "recall"]["value"]) == 0.5
    undefined = found["'=y", "tumour", "dice"]
    assert (undefined["value"], undefined["note"]) == ("", "undefined")
    assert found["x", "air", "recall"]["note"] == "undefined"


@pytest.mark.needs("measures.surfaces")
def test_the_command_writes_scores_of_measures_with_units(tmp_path):
    for side, masks in (("truth", TRUTH), ("pred", PRED)):
        for name, mask in masks.items():
            write_mask(tmp_path / side / f"{name}.png", mask)
    table = tmp_path / "cases.csv"
    command = ["score", str(tmp_path / "truth"), str(tmp_path / "pred"), "--labels", "3", "-q"]
    assert main([*command, "--surface", "segiou", "--per-case", str(table)]) == 0
    rows = rows_of(table.read_text(encoding="utf-8"))
    far = [row for row in rows if row["score"] == "hausdorff_95" and row["structure"] == "2"]
    assert [(row["case"], row["unit"]) for row in far] == [("x", "px"), ("y", "px")]
    assert {row["note"] for row in rows} <= {"", "undefined", "infinite"}
    assert not {"nan", "inf"} & {row["value"] for row in rows}


@pytest.mark.parametrize("key", sorted({*own_keys()} - NEED_MORE))
def test_a_name_has_one_value(key):
    """Law: keys of the long table are unique, and its values are those of the wide table."""
    rng = np.random.default_rng(1)
    truth, pred = rng.integers(0, 3, (2, 4, 8, 9))
    truth[0][truth[0] == 2], pred[0][pred[0] == 2] = 0, 0
    run = segiou.score(
        truth, pred, labels=NAMES, ids=[*"abcd"], measures=[measure_of(key).of(True)]
    )
    long = rows_of(run.to_csv(long=True))
    found = {(r["case"], r["structure"], r["score"]): r["value"] for r in long}
    assert len(found) == len(long)
    for row in run.rows():
        for name, value in row.items():
            score, _, structure = name.partition(":")
            cell = found.get((row["id"], structure, score), value)
            assert cell in ("", value) or float(cell) == value, (name, value)


@pytest.mark.needs("measures.surfaces")
def test_a_case_has_the_dice_that_the_convention_of_its_measure_gives():
    surfaces = measure_of("surfaces")(empty={"dice": (1, 0, 0)})
    run = segiou.score([[[0, 1]]], [[[0, 1]]], labels=NAMES, ids=["x"], measures=[surfaces])
    rows = [
        (r["structure"], r["value"]) for r in rows_of(run.to_csv(long=True)) if r["score"] == "dice"
    ]
    assert rows == [("air", "1.0"), ("organ", "1.0"), ("tumour", "1.0")]
