"""Volumes: hand-computed errors, published limits of agreement, and laws."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given, strategies as st
from mask_files import write_mask

import segiou
from segiou.cli.main import main
from segiou.measures import Parts
from segiou.measures.volume import VolumeOptions, bland_altman
from segiou.plots.style import NothingToDraw

#: Peak expiratory flow of 17 subjects (l/min), Bland and Altman 1986: large and mini meter.
LARGE = [494, 395, 516, 434, 476, 557, 413, 442, 650, 433, 417, 656, 267, 478, 178, 423, 427]
MINI = [512, 430, 520, 428, 500, 600, 364, 380, 658, 445, 432, 626, 260, 477, 259, 350, 451]


def test_limits_of_agreement_are_those_of_bland_and_altman():
    """The paper: -2.1, SD 38.8, interval of the bias -22.0 to 17.8."""
    found = bland_altman(MINI, LARGE)
    assert found.cases == 17
    assert found.bias == pytest.approx(-36 / 17)
    assert round(found.sd, 1) == 38.8
    assert found.bias_interval == pytest.approx((-22.05, 17.81), abs=0.01)
    assert (found.low, found.high) == pytest.approx((-78.10, 73.86), abs=0.01)
    # t = 2.12 standard errors of s √(1/17 + 1.96²/32) = 16.40
    assert found.low_interval == pytest.approx((-112.85, -43.34), abs=0.01)
    assert found.high_interval == pytest.approx((39.10, 108.62), abs=0.01)


def test_few_and_equal_cases():
    nothing, one = bland_altman([], []), bland_altman([3.0], [5.0])
    assert (nothing.cases, one.cases, one.bias) == (0, 1, 2.0)
    assert all(math.isnan(x) for x in (nothing.bias, one.sd, one.low, *one.bias_interval))
    equal = bland_altman([1.1, 2.2, 3.3], [1.1, 2.2, 3.3])
    assert (equal.bias, equal.sd, equal.low, equal.high_interval) == (0, 0, 0, (0, 0))
    assert bland_altman([0.1] * 3, [0.4] * 3).sd == 0


@pytest.mark.parametrize("wrong", [([1], [1, 2]), ([[1]], [[1]]), ([1, math.nan], [1, 2])])
def test_other_measurements_are_rejected(wrong):
    with pytest.raises(ValueError, match="first and second must"):
        bland_altman(*wrong)
    with pytest.raises(ValueError, match="level"):
        bland_altman([1, 2], [1, 3], level=1)


VALUES = st.lists(st.tuples(*[st.floats(0, 1e9)] * 2), min_size=2, max_size=20)


@given(VALUES, st.sampled_from([0.5, 0.9, 0.99]))
def test_sides_are_exchanged_and_intervals_contain_their_limits(values, level):
    first, second = np.transpose(values)
    found, back = bland_altman(first, second, level=level), bland_altman(second, first, level=level)
    assert back.bias == pytest.approx(-found.bias)
    assert (back.low, back.high) == pytest.approx((-found.high, -found.low))
    for value, (low, high) in (
        (found.bias, found.bias_interval),
        (found.low, found.low_interval),
        (found.high, found.high_interval),
    ):
        assert low <= value <= high
    assert found.sd == pytest.approx(np.std(second - first, ddof=1), abs=1e-6)


#: Two structures in four cases of 1 × 2 × 5 mm voxels: true and predicted voxels.
VOXELS = {"liver": [(100, 110), (50, 40), (0, 7), (0, 0)], "spleen": [(10, 10), (0, 0)] * 2}
VOXEL = 0.01  # ml


def volumes():
    truth, pred = np.zeros((2, 4, 10, 10, 10), np.uint8)
    for label, cases in enumerate(VOXELS.values(), 1):
        for place, numbers in enumerate(cases):
            for side, number in zip((truth, pred), numbers, strict=True):
                side[place].reshape(-1)[500 * label - 500 :][:number] = label
    return truth, pred


@pytest.fixture
def run():
    names = ["air", *VOXELS]
    truth, pred = volumes()
    how = {"labels": names, "ids": [*"abcd"], "spacing": (1, 2, 5), "measures": ["volume"]}
    return segiou.score([*truth], [*pred], **how)


def test_errors_by_hand(run):
    report = run.report()
    # |110 - 100|, |40 - 50|, 7; the fourth case has no liver. In voxels of 10 mm³.
    assert report.score("volume_error", "liver") == pytest.approx(27 / 3 * 10)
    assert report.score("volume_error_relative", "liver") == pytest.approx((0.1 + 0.2) / 2)
    assert report.score("volume_error", "spleen") == 0
    assert report.score("volume_error") == pytest.approx(27 / 3 * 10 / 2)
    assert report.better("volume_error") == "lower"
    data = json.loads(report.to_json())["volume"]
    assert data["unit"] == "units³"
    liver, spleen = (data["agreement"][name] for name in VOXELS)
    assert (liver["cases"], spleen["cases"]) == (3, 2)
    assert liver["bias"] == pytest.approx((10 - 10 + 7) / 3 * 10)
    assert data["cases"][0] == {"case": "a", "label": "liver", "truth": 1000.0, "pred": 1100.0}
    row = run.rows()[1]
    assert (row["volume_difference:liver"], row["volume_truth:liver"]) == (-100, 500)
    assert row["volume_difference_relative:liver"] == pytest.approx(-0.2)
    assert math.isnan(run.rows()[2]["volume_error_relative:liver"])
    table = next(table for table in report.tables if table.key == "volume")
    relative = next(c for c in table.columns if c.name == "volume_difference_relative")
    assert relative.rows["liver"] == pytest.approx((0.1 - 0.2) / 2)
    assert run.intervals("volume_error", groups="none").overall.low >= 0


def test_files_of_volumes_are_in_millilitres(tmp_path, capsys):
    nibabel = pytest.importorskip("nibabel")
    for side, several in zip(("truth", "pred"), volumes(), strict=True):
        (tmp_path / side).mkdir()
        for name, volume in zip("abcd", several, strict=True):
            image = nibabel.Nifti1Image(volume, np.diag([1, 2, 5, 1]))
            image.header.set_xyzt_units("mm")
            nibabel.save(image, tmp_path / side / f"{name}.nii.gz")
    words = ["score", str(tmp_path / "truth"), str(tmp_path / "pred"), "--labels", "3", "--volume"]
    run_file = str(tmp_path / "run.sqlite")
    assert main([*words, "--run", run_file]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "volume error, ml" in out
    run = segiou.Run.open(run_file)
    assert run.report().score("volume_error", "1") == pytest.approx(9 * VOXEL)
    assert main(["compare", run_file, run_file, "--metric", "volume_error"]) == 0
    assert "volume error" in capsys.readouterr().out
    assert main([*words, "--volume-classes", "2", "--fail-over", "volume_error=0.001"]) == 0


def test_areas_of_images():
    labels = ["air", "a", "b"]
    truth, pred = [[[1, 1, 2, 0]]], [[[1, 2, 2, 2]]]
    run = segiou.score(truth, pred, labels=labels, measures=["volume"])
    report = run.report()
    assert report.score_unit("volume_error") == "px"
    assert report.score("volume_error", "b") == 2
    assert "area error, px" in report.to_markdown()
    chosen = segiou.score(truth, pred, labels=labels, measures=[VolumeOptions(("a",))])
    assert [*chosen.score_plans["volume_error"].structures] == ["a"]
    with pytest.raises(ValueError, match="unknown class 'c'"):
        segiou.score(truth, pred, labels=labels, measures=[VolumeOptions(("c",))])


def test_groups_of_volumes_are_their_structures():
    from segiou.labels import LabelSet

    labels = LabelSet.from_dict(
        {
            "name": "parts",
            "classes": [{"name": n, "values": [i]} for i, n in enumerate(("air", "a", "b"))],
            "groups": {"both": ["a", "b"]},
        }
    )
    truth, pred = volumes()
    run = segiou.score([*truth], [*pred], labels=labels, measures=["volume"])
    assert run.report().score("volume_error", "both") == pytest.approx((10 + 10 + 7) / 3)


def test_ignored_pixels_have_no_volume():
    masks = [[[1, 1, 255, 0]]], [[[1, 0, 1, 1]]]
    run = segiou.score(*masks, labels=2, ignore=255, measures=["volume"])
    assert run.rows()[0]["volume_pred:1"] == 2
    assert run.rows()[0]["volume_error:1"] == 0


def test_the_command_line_takes_a_spacing_for_areas(tmp_path, capsys):
    """It said that --spacing had no effect."""
    for side, mask in (("truth", np.eye(4)), ("pred", np.ones((4, 4)))):
        write_mask(tmp_path / side / "a.png", mask)
    places = str(tmp_path / "truth"), str(tmp_path / "pred")
    words = "--labels", "2", "--volume", "--spacing", "0.5,2", "--format", "json", "-q"
    assert main(["score", *places, *words]) == 0
    score = json.loads(capsys.readouterr().out)["scores"]["volume_error"]
    assert (score["value"], score["unit"]) == (12, "units²")
    # 16 pixels in place of 4: an error of 300 %.
    for limit, code in (("3", 0), ("2.9", 1), ("-0.1", 2)):
        threshold = "--fail-over", f"volume_error_relative={limit}"
        assert main(["score", *places, *words, *threshold]) == code


def test_spacing_out_of_range_is_an_error():
    for size in (1e-9, 1e-7, 1e-3, 1e4):
        run = segiou.score(
            [np.ones((2, 2), int)],
            [np.eye(2, dtype=int)],
            labels=2,
            measures=["volume"],
            spacing=(size, size),
        )
        assert run.report().score("volume_error") == pytest.approx(2 * size**2, rel=1e-9, abs=0)
    with pytest.raises(ValueError, match="is too large"):
        segiou.score(
            [np.ones((40, 40), int)],
            [np.eye(40, dtype=int)],
            labels=2,
            measures=["volume"],
            spacing=(1e6, 1e6),
        )


def test_damaged_rows_are_rejected():
    plan = segiou.score([[[1]]], [[[0]]], labels=2, measures=["volume"]).plans[0]
    for wrong in (-1.0, math.nan, math.inf, 1e300):
        with pytest.raises(ValueError, match="invalid rows of volumes"):
            plan.check(Parts.of(plan.layout, cases=[[[1.0, wrong]]]))


def test_plot_of_agreement(run):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    axes = run.plot("bland_altman")
    (points,) = [line for line in axes.lines if line.get_marker() == "o"]
    assert np.transpose(points.get_data()).tolist() == [[1050, 100], [450, -100], [35, 70]]
    assert "liver" in axes.get_xlabel()
    assert "spleen" in run.plot("bland_altman", structure="spleen").get_xlabel()
    with pytest.raises(ValueError, match="did you mean liver"):
        run.plot("bland_altman", structure="livr")
    few = segiou.score([[[1]]], [[[0]]], labels=2, measures=["volume"])
    with pytest.raises(NothingToDraw, match="at least two cases"):
        few.plot("bland_altman")
    with pytest.raises(NothingToDraw, match="--volume"):
        segiou.score([[[1]]], [[[0]]], labels=2).plot("bland_altman")
    pyplot.close("all")


@pytest.mark.parametrize("labels", [{"labels": 1}, {"labels": 2, "exclude": [0, 1]}])
@pytest.mark.parametrize(
    "key",
    [
        "volume",
        *(
            pytest.param(one, marks=pytest.mark.needs(f"measures.{one}"))
            for one in ("lesions", "surfaces")
        ),
    ],
)
def test_no_structure_is_left(key, labels):
    from segiou.measures import measure_of

    measure = measure_of(key)("components-skip") if key == "lesions" else measure_of(key)()
    masks = [np.zeros((4, 4), int)] * 2
    run = segiou.score(masks, masks, **labels, measures=[measure])
    for name in run.score_plans:
        assert math.isnan(run.report().score(name)) or len(run.score_plans[name].structures) == 1
    assert run.report().to_html(run=run)


def test_one_case_has_a_bias_alone():
    run = segiou.score([[[1, 0]]], [[[1, 1]]], labels=2, measures=["volume"])
    (one,) = json.loads(run.report().to_json())["volume"]["agreement"].values()
    assert (one["bias"], one["sd"], one["low_interval"]) == (1, None, [None, None])
    assert "bias" in str(run.report())


def test_relative_differences_are_those_of_medpy():
    binary = pytest.importorskip("medpy.metric.binary")
    rng = np.random.default_rng(1)
    truth, pred = rng.random((2, 5, 6, 7, 8)) < rng.random((2, 5, 1, 1, 1))
    names = {"labels": ["air", "organ"], "measures": ["volume"], "spacing": (1, 2, 3)}
    run = segiou.score([*truth.astype(int)], [*pred.astype(int)], **names)
    for row, *pair in zip(run.rows(), pred, truth, strict=True):
        wanted = binary.ravd(*pair)
        assert row["volume_difference_relative:organ"] == pytest.approx(wanted)
        assert row["volume_error_relative:organ"] == pytest.approx(abs(wanted))


@pytest.mark.parametrize("values", [["1", "2"], [True, False], [None, 1.0]])
def test_measurements_are_numbers(values):
    with pytest.raises(TypeError, match="first must be numbers"):
        bland_altman(values, [1.0, 2.0])


@pytest.mark.parametrize("value", [1e308, math.inf, math.nan])
def test_measurements_have_finite_sums(value):
    with pytest.raises(ValueError, match="must be numbers from -1e"):
        bland_altman([value] * 3, [1.0] * 3)


def test_levels_of_any_type_have_the_same_interval():
    first, second = [1.0, 2.0, 4.0], [2.0, 2.0, 3.0]
    assert bland_altman(first, second, level=np.float32(0.5)) == bland_altman(
        first, second, level=0.5
    )
