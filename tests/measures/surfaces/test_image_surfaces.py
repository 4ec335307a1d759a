"""Surfaces of images: surface Dice, boundary precision, recall and F1, and distances."""

import math

import numpy as np
import pytest

from segiou.measures.surfaces import SurfaceOptions, SurfaceRows, measure_surfaces, surface_scores
from segiou.regions.conventions import SHARES

pytestmark = pytest.mark.usefixtures("backend")
TOLERANCES = (0.0, 1.0, 2.5)
LENGTHS = ("hausdorff", "hausdorff_95", "average_surface_distance")
CONVENTIONS = ("monai", "medpy", "segiou", "surface-distance")
#: Half the diagonal of a pixel: the element that cuts off a corner.
CUT = math.sqrt(0.5)


def measured(truth, pred, convention="monai", structures=(1,), **settings):
    """Rows of two images; settings other than the arguments of the function are options."""
    case = {name: settings.pop(name) for name in ("ignore", "spacing") if name in settings}
    options = SurfaceOptions(convention=convention, **{"tolerances": TOLERANCES, **settings})
    return measure_surfaces(truth, pred, structures, options=options, **case)


def row_of(*arguments, **settings):
    (row,) = measured(*arguments, **settings)
    return row


def sizes_of(*arguments, **settings):
    """Sizes of both surfaces."""
    return measured(*arguments, **settings).numbers["sizes"][0].tolist()


def line():
    """A line of 6 pixels predicted as its first 3 pixels and 1 far off."""
    truth, pred = np.zeros((2, 9, 20), dtype=np.uint8)
    truth[4, 2:8] = pred[4, 2:5] = pred[4, 18] = 1
    return truth, pred


def moved_square(masks):
    """A square of 8 x 8 pixels predicted one column further right."""
    return masks.square(), np.roll(masks.square(), 1, axis=1)


@pytest.mark.parametrize("convention", ["monai", "medpy"])
def test_pixels_of_a_square_counted_by_hand(masks, convention):
    rows = measured(*moved_square(masks), convention)
    assert rows.numbers["sizes"].tolist() == [[28, 28]]
    assert rows.numbers["within"].tolist() == [[[14, 14], [28, 28], [28, 28]]]
    shares = {0.0: 0.5, 1.0: 1.0, 2.5: 1.0}
    assert rows[0] == {
        "case": "",
        "label": 1,
        "state": "found",
        "hausdorff": 1.0,
        "hausdorff_95": 1.0,
        "average_surface_distance": 0.5,
        "surface_dice": shares,
        "boundary_precision": shares,
        "boundary_recall": shares,
        "boundary_f1": shares,
    }


@pytest.mark.parametrize("convention", ["segiou", "surface-distance"])
def test_elements_of_a_square_counted_by_hand(masks, convention):
    # 7 elements along each side, and 4 that cut off the corners. The elements of two sides and two
    # corners of each square are also on the other one.
    rows = measured(*moved_square(masks), convention)
    whole, part = 28 + 4 * CUT, 14 + 2 * CUT
    assert rows.numbers["sizes"][0] == pytest.approx([whole, whole])
    assert rows.numbers["within"][0] == pytest.approx(np.array([[part] * 2, *[[whole] * 2] * 2]))
    for name in SHARES:
        assert rows[0][name] == pytest.approx({0.0: 0.5, 1.0: 1.0, 2.5: 1.0})
    assert (rows[0]["hausdorff"], rows[0]["hausdorff_95"]) == (1.0, 1.0)
    assert rows[0]["average_surface_distance"] == pytest.approx(0.5)


def test_elements_are_as_long_as_the_spacing_makes_them(masks):
    # 14 of length 4 along the rows, 14 of length 3 along the columns, 4 of half a diagonal of 5.
    sizes = sizes_of(masks.square(), masks.square(), "segiou", spacing=(3, 4))
    assert sizes == pytest.approx([14 * 4 + 14 * 3 + 4 * 2.5] * 2)
    one = np.zeros((3, 3), dtype=np.uint8)
    one[1, 1] = 1
    assert sizes_of(one, one, "segiou") == pytest.approx([4 * CUT] * 2)
    touching = np.array([[1, 0], [0, 1]], dtype=np.uint8)
    assert sizes_of(touching, touching, "segiou") == pytest.approx([8 * CUT] * 2)
    for convention in ("monai", "medpy"):
        assert sizes_of(touching, touching, convention, spacing=(3, 4)) == [2, 2]


def test_precision_and_recall_of_a_line_by_hand():
    row = row_of(*line())
    assert row["boundary_precision"] == {0.0: 0.75, 1.0: 0.75, 2.5: 0.75}
    assert row["boundary_recall"] == {0.0: 3 / 6, 1.0: 4 / 6, 2.5: 5 / 6}
    assert row["surface_dice"] == {0.0: 6 / 10, 1.0: 7 / 10, 2.5: 8 / 10}
    # 2 * 3/4 * 1/2 / (3/4 + 1/2) and so on
    assert row["boundary_f1"] == pytest.approx({0.0: 3 / 5, 1.0: 12 / 17, 2.5: 15 / 19})


@pytest.mark.parametrize("convention", ["monai", "segiou"])
def test_f1_is_the_harmonic_mean(masks, convention):
    for row in measured(*masks.pair_of_blobs(3), convention, [0, 1, 2]):
        for tolerance in TOLERANCES:
            p, r = (row[name][tolerance] for name in ("boundary_precision", "boundary_recall"))
            assert 0 < p != r
            assert row["boundary_f1"][tolerance] == pytest.approx(2 * p * r / (p + r), rel=1e-14)


def test_f1_of_surfaces_out_of_reach_is_zero():
    truth, pred = np.zeros((2, 9, 20), dtype=np.uint8)
    truth[4, 2] = pred[4, 12] = 1
    for convention in ("monai", "segiou"):
        row = row_of(truth, pred, convention)
        for name in SHARES:
            assert row[name] == {0.0: 0.0, 1.0: 0.0, 2.5: 0.0}


def test_distances_by_hand():
    truth, pred = np.zeros((2, 9, 20), dtype=np.uint8)
    truth[4, 3] = pred[2, 3] = pred[4, 7] = 1
    common = {"spacing": (1.5, 1.0), "percentiles": (50, 95, 100)}
    found = {name: row_of(truth, pred, name, **common) for name in CONVENTIONS}
    assert {name: row["hausdorff"] for name, row in found.items()} == dict.fromkeys(found, 4.0)
    assert {name: row["hausdorff_100"] for name, row in found.items()} == dict.fromkeys(found, 4.0)
    # Pixels: 3 from the truth, 3 and 4 from the prediction. Corners: 1.5, 1.5, 3 and 3 from the
    # truth; 1.5, 1.5, 3, 3, 3, 3, 4 and 4 from the prediction.
    medians = {"monai": 3.5, "medpy": 3.0, "segiou": 3.0, "surface-distance": 3.0}
    assert {name: row["hausdorff_50"] for name, row in found.items()} == medians
    almost = {"monai": 3.95, "medpy": 3.9, "segiou": 4.0, "surface-distance": 4.0}
    assert {name: row["hausdorff_95"] for name, row in found.items()} == pytest.approx(almost)
    averages = {
        "monai": 10 / 3,
        "medpy": 10 / 3,
        "segiou": (9 + 23) / 12,
        "surface-distance": (9 / 4 + 23 / 8) / 2,
    }
    got = {name: row["average_surface_distance"] for name, row in found.items()}
    assert got == pytest.approx(averages)


def test_pixels_of_squares_side_by_side_are_apart_and_elements_are_not():
    truth, pred = np.zeros((2, 8, 12), dtype=np.uint8)
    truth[2:6, 2:6] = pred[2:6, 6:10] = 1
    for convention, expected in (
        ("monai", 0.0),
        ("medpy", 0.0),
        # A side of 3 elements and its two corners are common, out of 12 and 4.
        ("segiou", (3 + 2 * CUT) / (12 + 4 * CUT)),
        ("surface-distance", (3 + 2 * CUT) / (12 + 4 * CUT)),
    ):
        shares = row_of(truth, pred, convention, tolerances=[0])["surface_dice"]
        assert shares == pytest.approx({0.0: expected})


def test_a_larger_tolerance_never_lowers_a_share(masks):
    tolerances = [0, 0.5, 1, 1.4, 1.5, 3, "5%", 100]
    for convention in CONVENTIONS:
        pair = masks.pair_of_blobs(1)
        for row in measured(*pair, convention, [0, 1, 2], tolerances=tolerances):
            for name in SHARES:
                values = list(row[name].values())
                assert len(values) == 8
                assert values == sorted(values)
                assert values[0] < values[-1]
                assert values[-1] == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize(
    ("shape", "spacing", "column"), [((30, 40), 1, 12), ((30, 40), 5, 12), ((30, 20), (1, 2), 11)]
)
def test_a_tolerance_of_the_diagonal_scales_with_the_spacing(shape, spacing, column):
    # The diagonal is 50 or 250, and 4 % of it are 2 or 10.
    truth, pred = np.zeros((2, *shape), dtype=np.uint8)
    truth[10, 10] = pred[10, column] = 1
    for convention, nearer in (("monai", 0.0), ("medpy", 0.0), ("segiou", 0.5)):
        row = row_of(truth, pred, convention, tolerances=["3.9%", "4%"], spacing=spacing)
        for name in SHARES:
            assert row[name] == {"3.9%": nearer, "4%": 1.0}


@pytest.mark.few(4)
@pytest.mark.parametrize("turn", [np.flipud, np.fliplr, np.rot90, np.transpose])
@pytest.mark.parametrize("border", [True, False])
def test_orientation_does_not_matter(masks, turn, border):
    truth, pred = masks.pair_of_blobs(7)
    for convention in CONVENTIONS:
        one, other = (
            measured(*pair, convention, [0, 1, 2], border=border).numbers
            for pair in ((truth, pred), (turn(truth), turn(pred)))
        )
        for name in ("hausdorff", "percentiles", "average", "sizes", "within"):
            np.testing.assert_allclose(one[name], other[name], rtol=1e-12)
        for name in ("hausdorff", "percentiles"):
            np.testing.assert_array_equal(one[name], other[name])


def test_spacing_turns_with_the_image(masks):
    truth, pred = masks.pair_of_blobs(7)
    for convention in ("monai", "segiou"):
        one = measured(truth, pred, convention, [0, 1, 2], spacing=(1.5, 0.7)).numbers
        other = measured(truth.T, pred.T, convention, [0, 1, 2], spacing=(0.7, 1.5)).numbers
        for name in ("hausdorff", "percentiles", "average", "sizes", "within", "diagonal"):
            np.testing.assert_allclose(one[name], other[name], rtol=1e-12)


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_swapping_the_sides_exchanges_precision_and_recall(masks, convention):
    truth, pred = masks.pair_of_blobs(8)
    there = measured(truth, pred, convention, [0, 1, 2])
    back = measured(pred, truth, convention, [0, 1, 2])
    for one, other in zip(there, back, strict=True):
        assert one["boundary_precision"] == other["boundary_recall"]
        assert one["boundary_recall"] == other["boundary_precision"]
        assert one["boundary_recall"] != one["boundary_precision"]
        for name in (*LENGTHS, "surface_dice", "boundary_f1"):
            assert one[name] == pytest.approx(other[name], rel=1e-14)


@pytest.mark.parametrize("convention", ["medpy", "segiou"])
def test_an_empty_side_is_infinitely_far_and_two_are_undefined(masks, convention):
    some = masks.square()
    none = np.zeros_like(some)
    for truth, pred, state in ((some, none, "missed"), (none, some, "false_positive")):
        row = row_of(truth, pred, convention)
        assert row["state"] == state
        for name in SHARES:
            assert row[name] == {0.0: 0.0, 1.0: 0.0, 2.5: 0.0}
        for name in LENGTHS:
            assert row[name] == math.inf
    row = row_of(none, none, convention)
    assert row["state"] == "absent"
    for name in SHARES:
        assert list(map(math.isnan, row[name].values())) == [True, True, True]
    for name in LENGTHS:
        assert math.isnan(row[name])


def test_shares_of_two_images_are_pooled_by_hand(masks):
    rows = SurfaceRows.joined([measured(*line()), measured(*moved_square(masks))])
    (summary,) = rows.summary()

    def pooled(name):
        return [summary[f"{name}_{tolerance}"]["data_set"] for tolerance in ("0", "1")]

    # 3 + 14 and 3 + 28 of 4 + 28 predicted pixels are within the tolerances, and 3 + 14 and
    # 4 + 28 of 6 + 28 true ones.
    assert pooled("boundary_precision") == [17 / 32, 31 / 32]
    assert pooled("boundary_recall") == [17 / 34, 32 / 34]
    assert pooled("surface_dice") == [34 / 66, 63 / 66]
    assert pooled("boundary_f1") == pytest.approx([17 / 33, 2 * 31 * 32 / (31 * 34 + 32 * 32)])


def test_a_missed_image_counts_in_pooled_recall_only(masks):
    missed = measured(masks.square(), np.zeros_like(masks.square()))
    (summary,) = SurfaceRows.joined([measured(*moved_square(masks)), missed]).summary()
    assert summary["boundary_precision_1"]["data_set"] == 28 / 28
    assert summary["boundary_recall_1"]["data_set"] == 28 / 56
    assert summary["boundary_f1_1"]["data_set"] == pytest.approx(2 / 3)
    assert summary["surface_dice_1"]["data_set"] == 56 / 84
    assert summary["hausdorff"]["mean_of_found"] == 1.0
    assert summary["hausdorff"]["mean"] == math.inf


def halves():
    """Five rows whose right half is class 1."""
    return np.repeat(np.array([[0, 0, 0, 1, 1, 1]], dtype=np.uint8), 5, axis=0)


@pytest.mark.parametrize(
    ("border", "pixels", "elements"), [(True, 12, 12 + 4 * CUT), (False, 5, 4)]
)
def test_the_border_is_a_choice(border, pixels, elements):
    for convention, size in (
        ("monai", pixels),
        ("medpy", pixels),
        ("segiou", elements),
        ("surface-distance", elements),
    ):
        for side in (halves(), halves().astype(np.uint16), halves().astype(bool)):
            sizes = sizes_of(side, side, convention, border=border)
            assert sizes == pytest.approx([size, size])


@pytest.mark.parametrize(("border", "pixels", "elements"), [(True, 7, 6 + 2 * CUT), (False, 3, 2)])
def test_beside_the_border_and_ignored_pixels_there_is_no_surface(border, pixels, elements):
    # The lower two rows are ignored, so class 1 has 3 x 3 pixels, and no surface below them.
    truth, pred = halves(), halves()
    truth[3:] = 255
    settings = {"ignore": 255, "border": border}
    for convention, size in (("monai", pixels), ("segiou", elements)):
        rows = measured(truth, pred, convention, **settings)
        assert rows.numbers["sizes"][0] == pytest.approx([size, size])
        for value in (0, 1, 9, 255):
            pred[3:] = value
            assert measured(truth, pred, convention, **settings) == rows


def test_several_ignored_values_form_no_surface_with_each_other():
    truth = np.array([[0, 0, 1, 1, 7, 9, 1, 1, 0]] * 4, dtype=np.uint8)
    settings = {"ignore": (7, 9), "border": False}
    # On each side of the ignored columns, one column of class 1 has a neighbour of class 0.
    assert sizes_of(truth, truth, "monai", **settings) == [8, 8]
    assert sizes_of(truth, truth, "segiou", **settings) == [6, 6]


@pytest.mark.parametrize("convention", ["medpy", "segiou"])
def test_a_structure_that_only_touches_the_border_has_no_surface_without_it(convention):
    full = np.ones((5, 6), dtype=np.uint8)
    assert row_of(full, full, convention, border=True)["state"] == "found"
    row = row_of(full, full, convention, border=False)
    assert row["state"] == "absent"
    assert math.isnan(row["boundary_f1"][1.0])
    # A prediction that ends inside the image has a surface, and the truth has none.
    row = row_of(full, halves(), convention, border=False)
    assert row["state"] == "false_positive"
    assert (row["hausdorff"], row["boundary_precision"][1.0]) == (math.inf, 0.0)


@pytest.mark.parametrize("convention", ["medpy", "segiou"])
def test_distances_without_the_border_by_hand(convention):
    # A half that begins one column later is 1 apart along its whole length.
    truth, pred = halves(), np.roll(halves(), 1, axis=1)
    pred[:, 0] = 0
    row = row_of(truth, pred, convention, border=False)
    assert (row["hausdorff"], row["hausdorff_95"], row["average_surface_distance"]) == (1, 1, 1)
    for name in SHARES:
        assert row[name] == {0.0: 0.0, 1.0: 1.0, 2.5: 1.0}
    # With the border, most of both outlines is common.
    assert row_of(truth, pred, convention, border=True)["surface_dice"][0.0] > 0.5


def many_labels():
    """300 labels in blocks of 5 x 6 pixels, moved in the prediction, and two ignored values."""
    rng = np.random.default_rng(0)
    labels = np.arange(1, 301).reshape(15, 20)
    truth = np.kron(labels, np.ones((5, 6), int)).astype(np.uint16)
    pred = np.roll(truth, (1, -2), (0, 1))
    pred[:2] = 0
    truth[rng.random(truth.shape) < 0.02] = 301
    truth[20:30, 40:70] = 65535
    return truth, pred


@pytest.mark.parametrize("border", [False, True])
@pytest.mark.parametrize("convention", ["medpy", "segiou"])
@pytest.mark.gate
def test_each_of_300_structures_is_measured_as_if_it_were_alone(convention, border):
    truth, pred = many_labels()
    settings = {"ignore": (301, 65535), "border": border}
    labels = [*range(301), 400]
    rows = measured(truth, pred, convention, labels, **settings)
    alone = [measured(truth, pred, convention, [label], **settings) for label in labels]
    assert rows == SurfaceRows.joined(alone)
    assert set(rows.states) == {"found", "missed", "false_positive", "absent"}
    # Without names, labels that have a surface are measured, except 0 and ignored ones.
    found = measured(truth, pred, convention, None, **settings)
    places = [i for i, state in enumerate(rows.states) if state != "absent" and i]
    assert found.labels == tuple(labels[i] for i in places)
    assert found.numbers.tobytes() == rows.numbers[places].tobytes()


@pytest.mark.parametrize(
    ("border", "last", "beside", "inside"), [(False, 10, 14, 18), (True, 18, 18, 18)]
)
def test_the_last_of_300_blocks_have_the_sizes_counted_by_hand(border, last, beside, inside):
    # Blocks of 5 x 6 pixels: 6 and 4 of the one in the corner have neighbours, 6, 4 and 4 of the
    # one beside it, and all but 3 x 4 of one inside.
    truth = np.kron(np.arange(1, 301).reshape(15, 20), np.ones((5, 6), int))
    rows = measured(truth, truth, "medpy", None, border=border)
    sizes = dict(zip(rows.labels, rows.numbers["sizes"].tolist(), strict=True))
    assert [sizes[label] for label in (300, 299, 270)] == [[n, n] for n in (last, beside, inside)]


def test_scores_of_an_image_are_those_of_its_rows(masks):
    truth, pred = masks.pair_of_blobs(2)
    found = surface_scores(truth, pred, spacing=(1.5, 0.7), tolerances=(1, "5%"))
    rows = measured(truth, pred, "segiou", None, spacing=(1.5, 0.7), tolerances=(1, "5%"))
    assert list(found) == [1, 2]
    for row in rows:
        assert {"case": "", "state": "found", "label": row["label"], **found[row["label"]]} == row
