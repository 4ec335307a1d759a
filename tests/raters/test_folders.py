"""Raters read from folders and arrays, and the command."""

from __future__ import annotations

import json
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, strategies as st
from mask_files import required
from PIL import Image

import segiou
from segiou.cli.main import main
from segiou.raters.folders import ConsensusWriter, RaterCase
from segiou.raters.votes import Votes

ANNA = {"case1": [[0, 1, 1]], "case2": [[1, 0, 0]], "case3": [[1, 1, 0]]}
BEN = {"case1": [[0, 0, 1]], "case2": [[1, 0, 0]], "case3": [[0, 1, 0]]}


@pytest.fixture
def folders(tmp_path):
    for name, cases in (("anna", ANNA), ("ben", BEN), ("model", ANNA)):
        (tmp_path / name).mkdir()
        for case, rows in cases.items():
            Image.fromarray(np.array(rows, np.uint8)).save(tmp_path / name / f"{case}.png")
    return tmp_path


def test_folders_and_arrays_agree(folders):
    arrays = {"anna": ANNA, "ben": BEN}
    found = segiou.compare_raters(arrays, labels=2)
    assert found == segiou.compare_raters({name: folders / name for name in arrays}, labels=2)
    # Pooled: 2 · 3 / (5 + 3).
    assert found.matrix("dice", "1").tolist() == [[1, 0.75], [0.75, 1]]
    assert found.agreement.value == 7 / 9


def test_cases_that_a_rater_lacks_are_found_on_either_side(folders):
    (folders / "anna" / "case1.png").unlink()
    (folders / "ben" / "case3.png").unlink()
    both = {name: folders / name for name in ("anna", "ben")}
    found = segiou.compare_raters(both, labels=2)
    assert found.ids == ("case1", "case2", "case3")
    assert found.missing == {"anna": ("case1",), "ben": ("case3",)}
    assert found.pairs[0].dice.cases == 1


def test_one_case_has_scores_without_intervals():
    # They differ in the last of three pixels, so Dice of class 1 is 2 · 1 / (1 + 2).
    one = {"anna": {"case1": [[0, 1, 1]]}, "ben": {"case1": [[0, 1, 0]]}}
    found = segiou.compare_raters(one, labels=2, model={"case1": [[0, 1, 1]]})
    assert (found.ids, found.missing) == (("case1",), {})
    assert (found.agreement.value, found.agreement.cases) == (2 / 3, 1)
    # Distances of the model are 0 and 1 − 2/3, that of the experts is 1 − 2/3.
    difference = found.against_model[1].difference
    assert difference.value == pytest.approx(1 / 6 - 1 / 3)
    dice = found.pairs[1].dice
    assert dice.value == pytest.approx(2 / 3)
    assert np.isnan([found.agreement.low, dice.low, difference.low]).all()


def test_errors_in_arrays_name_their_rater():
    masks = {"anna": {"case1": [[0, 1]]}, "ben": {"case1": [[0, 1, 1]]}}
    with pytest.raises(segiou.DataError, match="ben: case1: has shape"):
        segiou.compare_raters(masks, labels=2)
    with pytest.raises(ValueError, match="empty name"):
        segiou.compare_raters(dict.fromkeys("ab", ANNA), labels=2, model=ANNA, model_name="")


RATERS = "ABC"


def named(lacking, style):
    """Masks of ten cases of three raters, whose names have the rater; some lack some cases."""
    rng = np.random.default_rng(3)
    masks = {r: {} for r in RATERS}
    for case in range(10):
        truth = rng.integers(0, 2, (4, 5))
        for r in RATERS:
            mask = np.where(rng.random(truth.shape) < 0.2, 1 - truth, truth)
            if case not in lacking[r]:
                masks[r][style.format(case=case, rater=r)] = mask
    return masks


LACKING = st.fixed_dictionaries({r: st.sets(st.integers(0, 9), max_size=5) for r in RATERS})


@pytest.mark.gate
@given(
    LACKING, st.sampled_from(["case{case}_{rater}.png", "{case:02d}-{rater}.png", "c{case}.png"])
)
def test_the_order_of_raters_changes_nothing(lacking, style):
    """Law: any order of the raters gives the same pairs, cases and values."""
    masks, results = named(lacking, style), []
    for order in permutations(RATERS):
        found = segiou.compare_raters({r: masks[r] for r in order}, labels=2)
        pairs = {
            (frozenset((one.first, one.second)), one.class_name): (one.dice, one.iou)
            for one in found.pairs
        }
        numbers = found.agreement.value, found.krippendorff_alpha.value, found.fleiss_kappa.value
        results.append((found.ids, dict(sorted(found.missing.items())), pairs, numbers))
    for other in results[1:]:
        assert other[:3] == results[0][:3]
        assert other[3] == pytest.approx(results[0][3], nan_ok=True)
    ids, _, pairs, _ = results[0]
    assert len(ids) == len({*range(10)} - set.intersection(*lacking.values()))
    for pair, _ in pairs:
        both = [case for case in range(10) if not any(case in lacking[r] for r in pair)]
        assert pairs[pair, "1"][0].cases == len(both)


def test_every_problem_is_listed(folders):
    Image.fromarray(np.zeros((2, 3), np.uint8)).save(folders / "ben" / "case1.png")
    Image.fromarray(np.full((1, 3), 7, np.uint8)).save(folders / "ben" / "case2.png")
    (folders / "ben" / "case3.png").write_bytes(b"no image")
    with pytest.raises(segiou.DataError) as raised:
        segiou.compare_raters({name: folders / name for name in ("anna", "ben")}, labels=2)
    texts = {problem.where.rpartition("/")[2]: problem.text for problem in raised.value.problems}
    assert "shape (2, 3), expected (1, 3)" in texts["case1.png"]
    assert "undeclared values: 7" in texts["case2.png"]
    assert set(texts) == {"case1.png", "case2.png", "case3.png"}


def test_an_unexpected_error_is_a_problem_of_the_file(folders, monkeypatch):
    def fails(*_):
        raise ZeroDivisionError("odd file")

    monkeypatch.setattr("segiou.raters.folders.from_bytes", fails)
    with pytest.raises(segiou.DataError) as raised:
        segiou.compare_raters({name: folders / name for name in ("anna", "ben")}, labels=2)
    assert len(raised.value.problems) == 6
    texts = {problem.text for problem in raised.value.problems}
    assert texts == {"cannot be read: ZeroDivisionError: odd file"}


def test_undeclared_values_of_volumes_have_the_advice_of_scores(tmp_path):
    nib = pytest.importorskip("nibabel")
    voxels = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    for name in ("anna", "ben"):
        (tmp_path / name).mkdir()
        nib.save(nib.Nifti1Image(voxels, np.eye(4)), tmp_path / name / "case1.nii.gz")
    folders = [tmp_path / "anna", tmp_path / "ben"]
    with pytest.raises(segiou.DataError) as of_scores:
        segiou.score_folder(*folders, labels=2)
    with pytest.raises(segiou.DataError) as of_raters:
        segiou.compare_raters({"anna": folders[0], "ben": folders[1]}, labels=2)
    assert of_raters.value.problems[0].text == of_scores.value.problems[0].text
    assert "resampled with interpolation" in of_raters.value.problems[0].text


def test_unmarked_pixels_are_left_out_of_pairs():
    unmarked = {**BEN, "case1": [[0, 255, 1]]}
    found = segiou.compare_raters({"anna": ANNA, "ben": unmarked}, labels=2, ignore=255)
    # Anna's unmatched pixel of case 1 has no counterpart: 2 · 3 / (4 + 3).
    assert found.matrix("dice", "1")[0, 1] == 6 / 7


def test_command(folders, tmp_path, capsys):
    places = [str(folders / "anna"), str(folders / "ben")]
    wanted = ["--labels", "2", "--quiet"]
    assert main(["raters", *places, *wanted]) == 0
    text = capsys.readouterr().out
    assert "Krippendorff's alpha" in text and "75.00 %" in text
    model = ["--model", f"net={folders / 'model'}"]
    outputs = ["--html", str(tmp_path / "r.html"), "--consensus", str(tmp_path / "agreed")]
    assert main(["raters", *places, *model, *wanted, *outputs, "--format", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["model"] == "net" and len(data["pairs"]) == 2 * 3
    assert data["against_model"][1]["difference"]["cases"] == 3
    assert "net" in (tmp_path / "r.html").read_text(encoding="utf-8")
    agreed = np.array(Image.open(tmp_path / "agreed" / "case1.png"))
    assert agreed.tolist() == [[0, 255, 1]]
    assert main(["raters", *places, *wanted, "--format", "csv"]) == 0
    assert capsys.readouterr().out.startswith("score,class,first,second,value,low,high,cases")


@pytest.mark.parametrize(("classes", "void"), [(255, 255), (256, 65535)])
def test_undecided_pixels_are_no_class_in_any_mask(tmp_path, classes, void):
    last = classes - 1
    for number, masks in enumerate(([[[last, 0, 1]], [[last, 0, 0]]], [[[0, 1, 1]], [[0, 1, 0]]])):
        case = RaterCase(str(number), tuple(masks), *Votes.of(np.array(masks)), None, classes)
        ConsensusWriter(tmp_path, 2).write(case)
    assert np.array(Image.open(tmp_path / "0.png")).tolist() == [[last, 0, void]]
    assert np.array(Image.open(tmp_path / "1.png")).tolist() == [[0, 1, void]]


def test_command_refuses_what_cannot_be_scored(folders, capsys):
    place = str(folders / "anna")
    assert main(["raters", place, "--labels", "2"]) == 2
    assert "at least two raters" in capsys.readouterr().err
    assert main(["raters", place, place, "--labels", "2"]) == 2
    assert "two raters are named 'anna'" in capsys.readouterr().err
    for nothing in (f"={place}", "x="):
        assert main(["raters", place, nothing, "--labels", "2"]) == 2
        assert "expected NAME=FOLDER" in capsys.readouterr().err
    assert main(["raters", place, str(folders / "none"), "--labels", "2"]) == 3
    assert "none" in capsys.readouterr().err
    ben = [str(folders / "ben"), "--labels", "2"]
    for wrong, words in (
        (["--level", "1"], "--level must be between 0 and 1"),
        (["--labels", "0"], "at least 1, got 0"),
        (["--level", "1e-320"], "--level must be between 0 and 1"),
        (["--overwrite"], "--overwrite has no effect without --consensus"),
        (["--consensus-by", "staple"], "--consensus-by has no effect without --consensus"),
    ):
        assert main(["raters", place, *ben, *wrong]) == 2
        assert words in capsys.readouterr().err


def test_a_rater_without_a_common_case_is_named():
    other = {f"x{case}": mask for case, mask in BEN.items()}
    words = "chen has no case of another rater; rename its files, as in case1, case2 and case3"
    with pytest.raises(ValueError, match=words):
        segiou.compare_raters({"anna": ANNA, "ben": BEN, "chen": other}, labels=2)
    with pytest.raises(ValueError, match="model has no case of another rater"):
        segiou.compare_raters({"anna": ANNA, "ben": BEN}, model=other, labels=2)


def test_volumes_of_other_orientations(tmp_path):
    """They are reoriented, and the consensus has the geometry of the first rater."""
    nibabel = required("nibabel", "SEGIOU_REQUIRE_EXTRAS")
    values = np.random.default_rng(0).integers(0, 2, (3, 3, 3)).astype(np.uint8)
    affine = np.array([[0.5, 0, 0, 3], [0, 0.7, 0, 5], [0, 0, 2, 7], [0, 0, 0, 1]])
    image = nibabel.Nifti1Image(values, affine)
    for rater, axes in (("anna", [[0, 1], [1, 1], [2, 1]]), ("ben", [[1, -1], [0, 1], [2, -1]])):
        (tmp_path / rater).mkdir()
        for case in "ab":
            image.as_reoriented(np.array(axes)).to_filename(tmp_path / rater / f"{case}.nii.gz")
    places = {name: tmp_path / name for name in ("anna", "ben")}
    writer = ConsensusWriter(tmp_path / "agreed", 2)
    found = segiou.compare_raters(places, labels=2, on_case=writer.write)
    assert found.agreement.value == 1
    agreed = nibabel.load(tmp_path / "agreed" / "a.nii.gz")
    np.testing.assert_array_equal(np.asarray(agreed.dataobj), values)
    np.testing.assert_allclose(agreed.affine, affine)
    nibabel.Nifti1Image(values, affine @ np.diag([2, 1, 1, 1])).to_filename(
        tmp_path / "ben" / "a.nii.gz"
    )
    with pytest.raises(segiou.DataError, match="all raters must mark the same grid"):
        segiou.compare_raters(places, labels=2)
