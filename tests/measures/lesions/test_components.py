"""Components of any structure: HD95 and surface Dice of each, and what unmatched ones count as."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest

import segiou
from segiou.cli.main import main
from segiou.measures.lesions import LESION_PROTOCOLS, LesionOptions, lesion_scores
from segiou.regions import label_components


def cubes():
    """A cube that is shifted by one voxel, one that is equal, a missed and a false positive one."""
    truth, pred = np.zeros((2, 8, 30, 8), np.uint8)
    truth[2:6, 2:6, 2:6] = pred[3:7, 2:6, 2:6] = 1
    truth[2:4, 10:12, 2:4] = pred[2:4, 10:12, 2:4] = 1
    truth[2:5, 16:19, 2:5] = 1
    pred[2:5, 24:27, 2:5] = 1
    return truth, pred


def test_matched_components_by_hand():
    found = lesion_scores(*cubes(), spacing=1, protocol="components-skip")["1"]
    assert (found["tp"], found["fn"], found["fp"]) == (2, 1, 1)
    shifted, equal, missed = found["lesions"]
    assert (shifted["dice"], shifted["hausdorff_95"]) == (0.75, 1.0)
    assert (equal["dice"], equal["hausdorff_95"], equal["surface_dice"]) == (1.0, 0.0, 1.0)
    assert (missed["dice"], missed["hausdorff_95"]) == (0.0, math.inf)
    assert found["dice"] == (0.75 + 1) / 2
    assert found["hausdorff_95"] == 0.5


def test_name_says_what_unmatched_components_have():
    """Three true components and a false positive: two of four are unmatched."""
    for name, far in (("components-374", 374), ("components-100", 100), ("components-0.5", 0.5)):
        found = lesion_scores(*cubes(), spacing=1, protocol=name)["1"]
        assert found["hausdorff_95"] == (1 + 0 + far + far) / 4
        assert found["dice"] == (0.75 + 1) / 4
        near = lesion_scores(*cubes(), spacing=1, protocol="components-skip")["1"]
        assert found["surface_dice"] == pytest.approx(near["surface_dice"] / 2)


@pytest.mark.parametrize("spacing", [None, (1, 2, 0.5)])
@pytest.mark.parametrize("tolerance", [0, 0.5, 1.5])
@pytest.mark.needs("measures.surfaces")
def test_a_component_has_the_scores_of_its_surfaces(spacing, tolerance):
    """Oracle: the measure of surfaces on each matched pair alone."""
    from segiou.measures.surfaces import surface_scores

    rng = np.random.default_rng(3)
    truth = np.kron(rng.random((4, 6, 5)) < 0.1, np.ones((3, 3, 3))).astype(np.uint8)
    pred = np.roll(truth, 1, axis=1)
    protocol = replace(LESION_PROTOCOLS["components-skip"], tolerance=tolerance)
    found = lesion_scores(truth, pred, spacing=spacing, protocol=protocol)["1"]
    ids = [label_components(side) for side in (truth, pred)]
    assert found["tp"] > 1
    for row in found["lesions"]:
        if not row["pred"]:
            continue
        pair = ids[0] == row["id"], np.isin(ids[1], row["pred"])
        alone = surface_scores(*pair, spacing=spacing, tolerances=(tolerance,))[1]
        assert row["hausdorff_95"] == alone["hausdorff_95"]
        assert row["surface_dice"] == pytest.approx(alone["surface_dice"][tolerance])
        both = [side.sum() for side in pair]
        assert row["dice"] == 2 * (pair[0] & pair[1]).sum() / sum(both)


def test_runs_say_protocol_and_tolerance(tmp_path, capsys):
    truth, pred = cubes()
    runs = []
    for name, tolerance in (("components-374.0", 1), ("components-374", 2), ("components-skip", 1)):
        options = LesionOptions(name, tolerance)
        masks = [truth, truth], [pred, pred]
        run = segiou.score(*masks, labels=["air", "part"], measures=[options], ids=["a", "b"])
        runs.append(str(tmp_path / f"{len(runs)}.sqlite"))
        run.save(runs[-1])
        report = segiou.Run.open(runs[-1]).report()
        wanted = (1 + 2 * 374) / 4 if "374" in name else 0.5
        assert report.score("lesion_hd95", "part") == pytest.approx(wanted)
        assert report.score("lesion_hd95") == pytest.approx(wanted)
        assert f"protocol {options.protocol} (components" in " ".join(str(report).split())
        assert f"surface Dice {tolerance} " in report.to_markdown()
        assert json.loads(report.to_json())["scores"]["lesion_surface_dice"]["value"] > 0
        assert {"lesion_hd95:part", "lesions_missed"} <= run.rows()[0].keys()
    assert LesionOptions("components-374.0") == LesionOptions("components-374")
    for a, b in ((0, 1), (0, 2)):
        assert main(["compare", runs[a], runs[b], "--metric", "lesion_hd95"]) != 0
        assert ("tolerance 1", "components-374")[a != b and b == 2] in capsys.readouterr().err
    assert main(["compare", runs[0], runs[0], "--metric", "lesion_hd95"]) == 0


def test_images_without_components():
    nothing, something = np.zeros((2, 6, 6), int)
    something[2:4, 2:4] = 1
    for name, far in (("components-skip", math.nan), ("components-9", 9)):
        absent = lesion_scores(nothing, nothing, spacing=1, protocol=name, labels=[1])["1"]
        assert math.isnan(absent["hausdorff_95"])
        for pair in ((nothing, something), (something, nothing)):
            found = lesion_scores(*pair, spacing=1, protocol=name)["1"]
            assert found["hausdorff_95"] == pytest.approx(far, nan_ok=True)
            run = segiou.score(
                [pair[0]], [pair[1]], labels=["air", "part"], measures=[LesionOptions(name)]
            )
            assert run.report().score("region_hd95") == pytest.approx(far, nan_ok=True)
            assert run.report().score("lesion_f1") == 0


@pytest.mark.parametrize("value", ["0", "-1", "nan", "inf", "1e-320", "1e300", "", "x", "9" * 400])
def test_distances_out_of_range(value):
    with pytest.raises(ValueError, match="expected components-skip, or a distance"):
        LesionOptions(f"components-{value}")


@pytest.mark.parametrize("value", [-1, math.nan, math.inf, 1e300])
def test_tolerances_out_of_range(value):
    with pytest.raises(ValueError, match="tolerance"):
        LesionOptions("components-skip", value)


def test_other_protocols_have_their_tolerance(capsys):
    with pytest.raises(ValueError, match="'autopet' has its own tolerance"):
        LesionOptions("autopet", 1.0)
    with pytest.raises(TypeError, match="protocol must be text"):
        LesionOptions(3)
    streets = ["score", "a", "b", "--labels", "2", "--lesions-tolerance"]
    assert main([*streets, "1"]) == 2
    assert "--lesions-tolerance needs --lesions" in capsys.readouterr().err
    assert main([*streets, "x", "--lesions", "components-skip"]) == 2


@pytest.mark.parametrize("spacing", [1e-320, 1e-13, 1e13, 1e308])
def test_spacings_whose_volumes_are_not_numbers_are_refused(spacing):
    """At 1e-320 surfaces were NaN."""
    with pytest.raises(ValueError, match="spacing must be one number from 1e-12 to 1e12"):
        lesion_scores(*cubes(), spacing=spacing)
    run = {"labels": 2, "measures": [LesionOptions("components-skip")]}
    with pytest.raises(ValueError, match=r"spacing must be .* \(1e-12 to 1e12\)"):
        segiou.score(*([side] for side in cubes()), spacing=(spacing,) * 3, **run)
    # A mean HD95 of 4e9 was -2147483648.
    with pytest.raises(ValueError, match="is too large; correct the spacing"):
        segiou.score(*([side] for side in cubes()), spacing=(1e9,) * 3, **run).report().score(
            "lesion_hd95"
        )
