"""What options of surfaces refuse."""

import numpy as np
import pytest

import segiou
from segiou.cli.main import main
from segiou.measures.surfaces import measure_surfaces, surface_scores
from segiou.measures.surfaces.options import SurfaceOptions


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda: SurfaceOptions(tolerances=3),
            "tolerances must be a sequence of dist.*, not int",
        ),
        (lambda: SurfaceOptions([object()]), "tolerances must be a number, not object"),
        (lambda: SurfaceOptions(border="no"), "border must be True or False, not str"),
        (lambda: SurfaceOptions(spacing="12"), "spacing must be .*positive numbers.*not str"),
        (lambda: SurfaceOptions(spacing=("1", 2)), "spacing must be a number, not str"),
        (lambda: SurfaceOptions(border=1), "border must be"),
        (lambda: SurfaceOptions(tolerances_of=[(1, 2)]), "tolerances_of must be a mapping of lab"),
        (lambda: SurfaceOptions(empty=None), "empty must be a mapping of measures to three val"),
        (
            lambda: SurfaceOptions(empty={"dice": 1}),
            r"empty\['dice'\] must be three numbers.* not int",
        ),
        (lambda: measure_surfaces([[1]], [[1]], options="medpy"), "options must be SurfaceOptions"),
    ],
)
def test_wrong_kinds(call, text):
    with pytest.raises(TypeError, match=text):
        call()


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: SurfaceOptions(spacing=(0, 1.0)), "spacing must be .*positive numbers"),
        (lambda: SurfaceOptions([np.nan]), "tolerances must be a number, got NaN"),
        (lambda: SurfaceOptions(("-1%",)), "at least 0, got -1%"),
        (lambda: SurfaceOptions((1, 1.0000001)), "tolerances contains duplicates"),
        (lambda: SurfaceOptions(percentiles=(95, 95)), "percentiles contains dup"),
        (lambda: SurfaceOptions(("1mm",)), "has a unit; pass numbers and"),
        (lambda: SurfaceOptions(("1 px",)), "invalid tolerance"),
        (lambda: SurfaceOptions((-1,)), "must not be negative"),
        (lambda: SurfaceOptions(widths=("1%",)), "widths must be distances"),
        (lambda: SurfaceOptions(widths=(1,), border=False), "omit widths"),
        (lambda: SurfaceOptions.of("medpi"), "convention must be"),
        (lambda: SurfaceOptions(empty={"dice": (10**400, 0, 0)}), "must be from 0 to 1"),
        (lambda: SurfaceOptions(empty={"hausdorff": (10**400, 0, 0)}), "is too large"),
    ],
)
def test_wrong_values(call, text):
    with pytest.raises(ValueError, match=text):
        call()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        *((text, text) for text in ("10_1", "1_0.5", "\uff142")),
        (",", "--boundary-tolerance ,: expected lengths"),
    ],
)
def test_wrong_tolerances_of_the_command(text, said, tmp_path, capsys):
    places = ["score", str(tmp_path), str(tmp_path), "--labels", "2"]
    assert main([*places, f"--boundary-tolerance={text}"]) == 2
    assert said in capsys.readouterr().err


TRUTH = np.zeros((5, 6, 7), int)
TRUTH[1:3, 1:4, 2:5] = 3


@pytest.mark.parametrize("size", [1e-12, 1e12])
def test_the_least_and_the_greatest_spacing_scale_distances(size):
    pred = np.roll(TRUTH, 1, axis=2)
    (row,) = measure_surfaces(TRUTH, pred, spacing=size)
    assert row["hausdorff"] / size == pytest.approx(1)
    assert row["average_surface_distance"] == pytest.approx(
        size * measure_surfaces(TRUTH, pred).numbers["average"][0]
    )


@pytest.mark.parametrize("size", [1e-320, 1e-100, 1e100, 1e308, 0.0, -1.0, np.nan, np.inf])
def test_a_spacing_whose_squares_are_no_floats_is_an_error(size):
    for spacing in (size, (1.0, size, 1.0)):
        with pytest.raises(ValueError, match="spacing must be one number"):
            measure_surfaces(TRUTH, TRUTH, spacing=spacing)


@pytest.mark.parametrize("spacing", ["1", b"1", True, ("1", "2", "3"), 10**400])
def test_a_spacing_is_a_number(spacing):
    with pytest.raises(TypeError, match="spacing must be one number"):
        measure_surfaces(TRUTH, TRUTH, spacing=spacing)


@pytest.mark.parametrize("labels", [[3.5], ["3"], [True], {"a": 3.5}, {"a": ["3"]}, {"a": "3"}])
def test_labels_are_integers(labels):
    with pytest.raises(TypeError, match="labels must be an integer"):
        surface_scores(TRUTH, TRUTH, labels=labels)
    with pytest.raises(TypeError, match="ignore must be an integer"):
        measure_surfaces(TRUTH, TRUTH, ignore=[3.5])


@pytest.mark.parametrize("threads", [0, -1])
def test_surfaces_need_a_thread(threads):
    with pytest.raises(ValueError, match="threads must be at least 1"):
        surface_scores(TRUTH, TRUTH, threads=threads)


@pytest.mark.parametrize("threads", [float("nan"), 2.0, None, True])
def test_threads_are_an_integer(threads):
    with pytest.raises(TypeError, match="threads must be an integer"):
        surface_scores(TRUTH, TRUTH, threads=threads)


def test_lengths_and_percentiles_are_numbers_with_one_name():
    assert SurfaceOptions((-0.0,), percentiles=(-0.0,)).to_dict()["percentiles"] == [0.0]
    assert str(SurfaceOptions((-0.0,)).tolerances) == "(0.0,)"
    with pytest.raises(TypeError, match="a percentile must be a number"):
        SurfaceOptions(percentiles=("95",))
    with pytest.raises(ValueError, match="widths must be positive and finite"):
        SurfaceOptions(widths=(float("inf"),))


def test_numbers_of_numpy_are_saved(tmp_path):
    options = SurfaceOptions(
        (np.float32(1), np.int8(2)), tolerances_of={np.str_("b"): (1, 2)}, border=np.True_
    )
    labels = ["a", "b"]
    run = segiou.score([TRUTH // 3], [TRUTH // 3], labels=labels, measures=[options])
    run.save(tmp_path / "run.json")
    assert segiou.Run.open(tmp_path / "run.json").plans == run.plans
