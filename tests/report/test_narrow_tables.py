"""Tables that do not fit: which columns stay together, which are hidden, and what is said."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, strategies as st

import segiou
from segiou.document.parts import Column, Table
from segiou.document.short_ids import least_width, shortened
from segiou.document.terminal import text_of

SCORES = ("IoU", "Dice", "recall")


def table(scores, *, split):
    columns = [Column("class", ["road", "car"], 9, is_text=True)]
    for rank, score in enumerate(scores):
        columns.append(Column(score, ["10.00 %", "20.00 %"], 8 - rank, score=score))
        limits = ["8.00 to 12.00 %", "18.00 to 22.00 %"]
        columns.append(Column("interval", limits, 3 - rank, score=score))
    return Table(columns, split=split)


@given(st.integers(40, 160), st.integers(1, 3))
def test_a_value_and_its_interval_are_in_one_table(width, number):
    text = text_of([table(SCORES[:number], split=True)], width)
    heads = [re.split(" {2,}", line) for line in text.splitlines() if line.startswith("class")]
    assert [head for line in heads for head in line if head not in ("class", "interval")] == [
        *SCORES[:number]
    ]
    for line in heads:
        assert line[1::2] == [one for one in line if one in SCORES]
        assert line[2::2] == ["interval"] * (len(line) // 2)
    assert all(len(line) <= width for line in text.splitlines())


def test_a_group_that_is_wider_than_the_terminal_is_divided():
    text = text_of([table(SCORES[:1], split=True)], 24)
    assert text.count("class") == 2 and "interval" in text and "10.00 %" in text


def test_hidden_columns_with_equal_headings_are_told_apart():
    text = " ".join(text_of([table(SCORES, split=False)], 75).split())
    assert "interval" in text.partition("Hidden")[0]
    assert text.endswith("Hidden columns (widen the terminal): interval of recall")
    text = " ".join(text_of([table(SCORES, split=False)], 50).split())
    assert text.endswith("interval of recall and interval of Dice")


def test_long_ids_are_cut_where_all_are_equal():
    ids = [f"data/site_with_a_long_name/drive_{i:04}_left_rgb" for i in (17, 18, 29)]
    columns = [
        Column("image", [*ids, ""], 1, is_text=True, is_id=True),
        Column("mean IoU", ["10.00 %", "20.00 %", "30.00 %", "40.00 %"], 0),
    ]
    # Of 40 columns, two and "10.00 %" take nine; the rest is for ids of 46.
    cut = [f"data/sit…me/drive_{number}_left_rgb" for number in ("0017", "0018", "0029")]
    lines = text_of([Table(columns)], 40).splitlines()
    assert lines[-4:-1] == [f"{id}  {i}0.00 %" for i, id in enumerate(cut, 1)]
    assert max(map(len, lines)) == 40 and lines[-1] == " " * 33 + "40.00 %"
    whole = text_of([Table(columns)], 60).splitlines()
    assert whole[-4].split() == [ids[0], "10.00", "%"]


def test_a_long_name_of_a_model_hides_no_numbers():
    names = [f"a_model_with_a_name_of_{n}_letters" for n in ("three", "four")]
    columns = [Column("class", ["road"], 9, is_text=True)]
    columns += [Column(name, [score], 5) for name, score in zip(names, ("1 %", "2 %"), strict=True)]
    lines = text_of([Table(columns)], 50).splitlines()
    assert lines[-1].split() == ["road", "1", "%", "2", "%"]
    assert "Hidden" not in " ".join(lines)


@pytest.mark.parametrize(
    ("ids", "width", "cut"),
    [
        (["a_1_x", "a_2_x"], 5, ["a_1_x", "a_2_x"]),
        (["a_1_x", "a_2_x"], 3, ["…1…", "…2…"]),
        (["0" * 30], 5, ["00…00"]),
        (["0" * 30 + "1" + "0" * 30, "0" * 61], 6, []),  # would be equal
        (["日本_1", "日本_2"], 5, ["…_1", "…_2"]),
        (["", ""], 5, []),
    ],
)
def test_shortened_ids(ids, width, cut):
    assert [*shortened(ids, width).values()] == cut


def test_the_least_width_of_ids_is_that_of_what_differs():
    assert least_width(["drive_0001_left", "drive_0002_left", ""]) == len("…0001…")
    assert least_width([""]) == 0
    # Parts that differ are cut to 24 columns, or to 32 if 24 would show only what is equal.
    ends = [12 * letter + 40 * "-" + 12 * letter for letter in "ab"]
    assert least_width(ends) == 24
    inside = [14 * "0" + 40 * letter + 13 * "0" for letter in "ab"]
    assert least_width([*inside, 30 * "c"]) == 32


@pytest.mark.parametrize(
    ("by", "title"), [(None, "mean IoU"), ("dice:car", "Dice, car"), ("iou:car", "IoU, car")]
)
def test_worst_images_are_listed_by_the_title_of_their_score(by, title):
    truth = np.arange(24).reshape(4, 1, 6) % 2
    run = segiou.score(truth, np.where(truth < 9, 0, truth), labels=["road", "car"])
    chosen = {} if by is None else {"worst_by": by}
    text = run.report(worst=2, **chosen).to_text()
    assert re.search(rf"^worst images +{title}", text, re.MULTILINE)


def test_slices_of_numbers_have_names_as_they_are_read():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, (40, 1, 20))
    run = segiou.score(truth, np.where(rng.random(truth.shape) < 0.2, 0, truth), labels=2)
    ages = {name: {"age": i} for i, name in enumerate(run.ids)}
    found = segiou.slices(run, by=ages)
    first, *_, last = found
    assert (first.value[0], last.value[0]) == ("<", "≥")
    assert (first.name, last.name) == (f"age {first.value}", f"age {last.value}")
    assert found[first.name] == found[f"age={first.value}"] == first
    assert "age=<" not in found.to_text() and "age <" in found.to_text()
