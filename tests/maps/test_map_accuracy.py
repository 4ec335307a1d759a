"""Accuracy and area of maps, held against the worked examples of the papers."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from examples import examples
from hypothesis import given, strategies as st

from segiou import ConfusionMatrix
from segiou.maps import map_accuracy, sample_size

ROOT = Path(__file__).parents[2]
DATA = ROOT.parent / "shared" / "data" / "map_accuracy.json"

#: Map classes in rows, as printed; mapped area.
OLOFSSON_2013 = ([[97, 0, 3], [3, 279, 18], [2, 1, 97]], [22353, 1122543, 610228])
OLOFSSON_2014 = (
    [[66, 0, 5, 4], [0, 55, 8, 12], [1, 0, 153, 11], [2, 1, 9, 313]],
    # Landsat pixels of 0.09 ha.
    {"deforestation": 18000, "gain": 13500, "forest": 288000, "non-forest": 580500},
)
#: Strata, map and reference classes of the numerical example of Stehman (2014).
STEHMAN = {
    "stratum": [*"A" * 10, *"B" * 10, *"C" * 10, *"D" * 10],
    "map": [*"AAAAAAABBB", *"ABBBBBBBBB", *"BBCCCCCCBB", *"DDDDDDDDDD"],
    "reference": [*"AAAAACBABC", *"ABBBBBAABB", *"CCCCCDDBBA", *"DDDDDDDCCB"],
}
STEHMAN_AREAS = {"A": 40000, "B": 30000, "C": 20000, "D": 10000}


def accuracy_of(paper, **options):
    matrix, areas = paper
    return map_accuracy(np.transpose(matrix), areas, **options)


def printed(estimate, digits=0):
    return round(estimate.value, digits), round(estimate.margin, digits)


def test_the_area_of_olofsson_2013():
    assert printed(accuracy_of(OLOFSSON_2013).areas[0]) == (45112, 21072)


def test_table_8_of_olofsson_2014():
    found = accuracy_of(OLOFSSON_2014)
    assert found.class_names[0] == "deforestation"
    assert printed(found.overall, 3) == (0.947, 0.018)
    assert printed(found.areas[0]) == (21158, 6158)
    users = zip(*(printed(one, 2) for one in found.users), strict=True)
    assert list(users) == [(0.88, 0.73, 0.93, 0.96), (0.07, 0.10, 0.04, 0.02)]
    assert [printed(one, 2) for one in found.producers[:2]] == [(0.75, 0.21), (0.85, 0.25)]
    assert found.mapped == (18000, 13500, 288000, 580500)
    assert found.proportions.sum() == pytest.approx(1)


def test_strata_that_are_not_the_classes():
    found = map_accuracy(STEHMAN, STEHMAN_AREAS, strata="stratum", unit_area=1)
    assert printed(found.overall, 2)[0] == 0.63
    assert round(found.overall.standard_error, 3) == 0.085
    assert found.class_names == ("A", "B", "C", "D")
    share = found.areas[0].value / found.total, found.areas[0].standard_error / found.total
    assert [round(x, 3) for x in share] == [0.35, 0.082]
    assert found.users[1].value == pytest.approx(0.574, abs=5e-4)
    assert found.producers[1].value == pytest.approx(0.794, abs=5e-4)
    # Reference class C, map class B; p. 4935.
    assert found.proportions[2, 1] == pytest.approx(0.08)
    # Without the correction for finite strata the errors are a little larger.
    free = map_accuracy(STEHMAN, STEHMAN_AREAS, strata=STEHMAN["stratum"])
    assert free.overall.standard_error == pytest.approx(0.0846562, abs=1e-7)


@pytest.mark.skipif(not DATA.is_file(), reason="needs the shared data")
def test_figures_of_the_papers_in_full_precision():
    known = json.loads(DATA.read_text(encoding="utf-8"))
    for name in ("olofsson2013_ex1", "olofsson2014_table8"):
        paper = known[name]
        found = accuracy_of((paper["matrix_rows_map"], paper["Nh"]))
        rows = {
            "OA": [found.overall],
            "UA": found.users,
            "PA": found.producers,
            "area": found.areas,
        }
        for key, estimates in rows.items():
            scale = found.total if key == "area" else 1
            assert [one.value / scale for one in estimates] == pytest.approx(
                np.atleast_1d(paper[key]), abs=1e-14
            )
            # Printed with ten digits.
            assert [one.standard_error / scale for one in estimates] == pytest.approx(
                np.atleast_1d(paper[f"SE_{key}"]), abs=6e-11
            )
    found = map_accuracy(STEHMAN, STEHMAN_AREAS, strata="stratum", unit_area=1)
    paper = known["stehman2014"]
    assert (found.overall.value, found.overall.standard_error) == pytest.approx(paper["OA"])
    for c, name in enumerate("ABCD"):
        rows = {"UA": (found.users[c], 1), "PA": (found.producers[c], 1)}
        rows["area"] = (found.areas[c], found.total)
        for key, (one, scale) in rows.items():
            pair = one.value / scale, one.standard_error / scale
            assert pair == pytest.approx(paper[name][key], rel=1e-12)


def test_the_forms_of_a_sample_agree():
    matrix = [[2, 1], [1, 3]]
    pairs = [("a", "a")] * 2 + [("a", "b"), ("b", "a")] + [("b", "b")] * 3
    table = {"reference": [t for t, _ in pairs], "map": [m for _, m in pairs]}
    areas = {"a": 1.0, "b": 3.0}
    counted = ConfusionMatrix(labels=["a", "b"])
    for truth, pred in pairs:
        counted.update([["ab".index(truth)]], [["ab".index(pred)]])
    expected = map_accuracy(matrix, areas).to_dict()
    rows = [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
    for sample in (np.array(matrix), table, rows, counted):
        assert map_accuracy(sample, areas).to_dict() == expected
    pd = pytest.importorskip("pandas")
    assert map_accuracy(pd.DataFrame(table), pd.Series(areas)).to_dict() == expected
    # Values of classes as integers, floats and text.
    values = {"reference": [1.0, 2.0, 2.0], "map": [1, 2, 1]}
    assert map_accuracy(values, {"1": 5, "2": 5}).counts.tolist() == [[1, 0], [1, 1]]


def test_an_order_of_the_classes_changes_nothing():
    matrix, areas = OLOFSSON_2014
    order = [2, 0, 3, 1]
    names = [list(areas)[c] for c in order]
    turned = np.array(matrix)[np.ix_(order, order)].T
    found = map_accuracy(turned, {name: areas[name] for name in names})
    expected = accuracy_of(OLOFSSON_2014)
    assert found.overall.standard_error == pytest.approx(expected.overall.standard_error)
    assert found.kappa.standard_error == pytest.approx(expected.kappa.standard_error)
    assert found.areas[1].low == pytest.approx(expected.areas[0].low)


def test_kappa_and_f1():
    # Agreement .75 by area, .5 by chance: strata of equal area, half of each reference class.
    found = map_accuracy([[6, 2], [2, 6]], [1, 1])
    assert found.kappa.value == pytest.approx(0.5)
    assert found.f1[0].value == pytest.approx(0.75)
    # With both strata fixed, kappa is 2 × overall - 1 up to the share of the reference.
    assert found.kappa.standard_error == pytest.approx(2 * found.overall.standard_error)


def test_kappa_of_one_stratum():
    rows = [("a", "a")] * 3 + [("a", "b"), ("b", "a")] + [("b", "b")] * 3
    sample = [{"reference": t, "map": p, "stratum": "all"} for t, p in rows]
    kappa = map_accuracy(sample, {"all": 100.0}, strata="stratum").kappa
    # Equal shares: kappa is 2 p - 1, with p = 3/4 of n = 8, and its variance 4 p (1 - p) / (n - 1).
    assert kappa.value == pytest.approx(0.5)
    assert kappa.standard_error == pytest.approx((4 * (3 / 4) * (1 / 4) / 7) ** 0.5)


def test_classes_that_are_rare():
    areas = {"a": 5, "b": 5, "c": 0, "d": 0}
    table = {"reference": [*"aabc", "c"], "map": [*"aaba", "b"]}
    found = map_accuracy(table, areas)
    users, producers, found_areas = found.users, found.producers, found.areas
    assert math.isnan(users[2].value)
    assert "the map lacks c" in users[2].reason
    assert math.isnan(producers[2].value)
    assert "the map lacks c" in producers[2].reason
    # Class c is in a third of stratum a and in half of stratum b.
    assert found_areas[2].value == pytest.approx(5 / 3 + 5 / 2)
    assert math.isnan(found_areas[3].value)
    assert "reference class d" in found_areas[3].reason
    assert found.to_dict()["classes"][3]["area"]["value"] is None


def test_a_stratum_with_one_sample_unit():
    found = map_accuracy([[4, 0], [1, 1]], {"a": 5, "b": 5})
    assert math.isnan(found.overall.standard_error)
    assert "stratum b" in found.overall.reason
    assert math.isnan(found.overall.low)
    assert found.overall.value == pytest.approx(0.9)
    # User's accuracy of a does not involve the other stratum.
    assert found.users[0].standard_error == pytest.approx(0.2)
    assert math.isnan(found.users[1].standard_error)


def test_a_class_of_a_tiny_share_of_the_map_has_its_standard_error():
    # One of two units is right: √(0.5 · 0.5 / (2 − 1)), whatever the size of the other class.
    rare = map_accuracy([[1, 0], [1, 4]], {"rare": 1, "rest": 1e13}).users[0]
    assert (rare.value, rare.standard_error, rare.reason) == (0.5, pytest.approx(0.5), "")


def test_units_that_all_agree():
    found = map_accuracy([[4, 0], [0, 5]], {"a": 5, "b": 5})
    assert (found.overall.value, found.overall.standard_error) == (1.0, 0.0)
    assert "do not differ" in found.overall.reason


TABLE = {"reference": ["a", "b", "a"], "map": ["a", "b", "b"]}


@pytest.mark.parametrize(
    ("sample", "areas", "strata", "named"),
    [
        (TABLE, {"a": 1, "b": -2}, None, ["'b'", "-2"]),
        (TABLE, {"a": 1, "b": math.inf}, None, ["'b'", "inf"]),
        (TABLE, {"a": 0, "b": 0}, None, ["all 0"]),
        (TABLE | {"reference": ["a", "b", "x"]}, {"a": 1, "b": 1}, None, ["row 3", "'x'"]),
        (TABLE | {"map": ["a", "y", "b"]}, {"a": 1, "b": 1}, None, ["row 2", "'y'"]),
        (TABLE | {"map": ["a", None, "b"]}, {"a": 1, "b": 1}, None, ["row 2", "'map'"]),
        (TABLE, {"a": 1, "b": 1, "c": 1}, None, ["'c'", "no sample unit"]),
        (TABLE, {"a": 1, "b": 0}, None, ["row 2", "outside the map", "'b'"]),
        ([[1, 0], [0, 1]], {"a": 1, "b": 0}, None, ["'b'", "outside the map"]),
        ([[1, -1], [0, 1]], {"a": 1, "b": 1}, None, ["[0, 1]", "-1"]),
        ([[1, 1]], {"a": 1}, None, ["(1, 2)"]),
        ([[1, 1], [1, 1]], {"a": 1}, None, ["1", "2"]),
        (TABLE, {"h": 1, "k": 1}, ["h", "z", "h"], ["row 2", "stratum 'z'"]),
        (TABLE, {"h": 1}, ["h", "h"], ["2", "3"]),
        (TABLE, {"h": 1}, "zone", ["'zone'"]),
        ({"reference": ["a"], "class": ["a"]}, {"a": 1}, None, ["'map'", "class"]),
    ],
)
def test_bad_input_is_named(sample, areas, strata, named):
    with pytest.raises(ValueError) as caught:
        map_accuracy(sample, areas, strata=strata)
    assert all(text in str(caught.value) for text in named), caught.value


def test_kinds_are_checked():
    with pytest.raises(TypeError):
        map_accuracy([[0.5, 0.5], [0.5, 0.5]], [1, 1])
    with pytest.raises(ValueError, match="level"):
        map_accuracy([[1, 0], [0, 1]], [1, 1], level=2)
    with pytest.raises(ValueError, match="unit_area"):
        map_accuracy([[1, 0], [0, 1]], [1, 1], unit_area=0)


AREAS = {"loss": 0.02, "gain": 0.015, "forest": 0.32, "other": 0.645}
USERS = [0.7, 0.6, 0.9, 0.95]


@pytest.mark.parametrize(
    ("options", "units"),
    [
        ({}, [13, 10, 205, 413]),
        ({"allocation": "equal"}, [160, 160, 160, 160]),
        # Area times standard deviation: .00917, .00735, .096 and .14057 of .25309.
        ({"allocation": "neyman"}, [23, 19, 243, 356]),
        # 491 units for areas of .32 and .645.
        ({"minimum": 75}, [75, 75, 163, 328]),
    ],
)
def test_sample_size_of_olofsson_2014(options, units):
    found = sample_size(AREAS, USERS, **options)
    assert found.total == 641
    assert list(found.strata.values()) == units


def test_sample_size_of_a_finite_map():
    assert sample_size([500, 500], [0.5, 0.5], standard_error=0.05).total == 100
    # (.5)² / (.0025 + .25 / 1000) = 90.9
    assert sample_size([500, 500], [0.5, 0.5], standard_error=0.05, unit_area=1).total == 91
    with pytest.raises(ValueError, match=r"1\.2"):
        sample_size([1, 1], [0.5, 1.2])
    with pytest.raises(ValueError, match="optimal"):
        sample_size([1, 1], [0.5, 0.5], allocation="optimal")


def test_names_of_classes_are_read_as_cells_of_a_table():
    areas = {1: 60.0, 2: 40.0}
    whole = {"reference": [1, 1, 2, 2], "map": [1, 1, 2, 1]}
    floats = {key: np.array(cells, np.float32) for key, cells in whole.items()}
    texts = {key: [f" {cell} " for cell in cells] for key, cells in whole.items()}
    first, *others = (map_accuracy(one, areas).to_dict() for one in (whole, floats, texts))
    assert others == [first, first]
    with pytest.raises(ValueError, match="row 2 has no value in column 'map'"):
        map_accuracy(whole | {"map": [1, float("nan"), 2, 1]}, areas)


def wilson(share, units):
    """Wilson's 95 % interval."""
    z2 = 1.959963984540054**2
    centre = (share + z2 / (2 * units)) / (1 + z2 / units)
    reach = (z2 / units * (share * (1 - share) + z2 / (4 * units))) ** 0.5 / (1 + z2 / units)
    return centre - reach, centre + reach


def test_intervals_are_wilsons_with_the_effective_sample_size():
    # Of 75 units of a stratum, 66 are right; one more is half right: 66.5 of 76.
    (users, *_) = accuracy_of(OLOFSSON_2014).users
    variance = (66.5 / 76) * (9.5 / 76) / 75
    assert (users.low, users.high) == pytest.approx(wilson(0.88, 0.88 * 0.12 / variance))
    assert users.standard_error == pytest.approx((0.88 * 0.12 / 74) ** 0.5)  # of the papers


@given(
    st.lists(st.lists(st.integers(0, 40), min_size=3, max_size=3), min_size=3, max_size=3),
    st.lists(st.integers(1, 10**6), min_size=3, max_size=3),
)
@examples(200)
def test_limits_are_within_bounds_around_the_estimate(rows, areas):
    counts = np.array(rows) + 2 * np.eye(3, dtype=int)
    found = map_accuracy(counts, areas)
    shares = [found.overall, *found.users, *found.producers, *found.f1]
    for one, most in [*((x, 1) for x in shares), *((x, found.total) for x in found.areas)]:
        if not math.isnan(one.value):
            assert 0 <= one.low <= one.value * (1 + 1e-12)
            assert one.value <= one.high * (1 + 1e-12) and one.high <= most * (1 + 1e-12)
            assert one.low < one.high


def test_a_sample_without_errors_has_an_interval():
    found = map_accuracy([[20, 0], [0, 30]], [2, 8])
    assert found.overall.value == 1
    assert 0.8 < found.overall.low < 1 == found.overall.high


@pytest.mark.parametrize("value", [0, -1, math.inf, 1e101])
def test_units_of_a_planned_sample_have_an_area(value):
    with pytest.raises(ValueError, match="unit_area must be positive"):
        sample_size([100, 50], [0.8, 0.9], unit_area=value)


@pytest.mark.parametrize("value", [math.nan, "1", [1]])
def test_the_area_of_a_unit_is_a_number(value):
    with pytest.raises((TypeError, ValueError), match="unit_area must be a number"):
        sample_size([100, 50], [0.8, 0.9], unit_area=value)


@pytest.mark.parametrize("value", [0, 1e-320, 1e-170, 1.5, 1e308, math.inf])
def test_standard_errors_that_no_sample_has_are_errors(value):
    with pytest.raises(ValueError, match="standard_error must be from 1e-06 to 1"):
        sample_size([100, 50], [0.8, 0.9], standard_error=value)


def test_sizes_of_samples_are_those_of_any_type_of_numbers():
    areas, users = [100, 50], [0.8, 0.9]
    wanted = sample_size(areas, users, minimum=100, standard_error=0.0625, unit_area=0.5)
    assert wanted == sample_size(
        areas,
        users,
        minimum=np.int8(100),
        standard_error=np.float16(0.0625),
        unit_area=np.float16(0.5),
    )


@pytest.mark.parametrize("count", [2**62, np.uint64(2**64 - 1)])
def test_samples_beyond_exact_numbers_are_named(count):
    with pytest.raises(ValueError, match=r"sample has .* sample units; expected at most 2\^53"):
        map_accuracy(np.full((2, 2), count), [1, 1])


def test_a_large_unit_and_a_class_without_area_need_no_warning():
    with np.errstate(all="raise"):
        found = map_accuracy([[1, 0], [0, 1]], {"a": 1, "b": 1}, unit_area=1e100)
        sample = {"reference": ["a", "b"], "map": ["b", "b"]}
        assert map_accuracy(sample, {"a": 0, "b": 1}, unit_area=1e100).overall.value == 0.5
    assert found.overall.value == 1
