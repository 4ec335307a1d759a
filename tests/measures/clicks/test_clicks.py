"""Number of clicks: by hand, by the rule of RITM, and from folders to comparisons."""

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
from segiou.measures.clicks import ClickOptions, number_of_clicks

#: Correct pixels of ten after each click; there are no false positives, so IoU is a tenth of them.
CORRECT = {"a": [5, 9, 8, 10], "b": [8, 8, 8, 8], "c": [9], "d": [1, 2, 3, 9]}
LIMIT = 4


def write_clicks(folder, correct, name="click_{:02}", ending="png"):
    """The truth (a row of ten pixels in a larger image) and a folder of masks per click."""
    truth = np.zeros((2, 12), np.uint8)
    truth[0, :10] = 1
    for image, numbers in correct.items():
        write_mask(folder / "truth" / f"{image}.png", truth)
        for click, number in enumerate(numbers, 1):
            mask = np.zeros_like(truth)
            mask[0, :number] = 1
            write_mask(folder / "pred" / name.format(click) / f"{image}.{ending}", mask)
    return str(folder / "truth"), str(folder / "pred")


def ritm(all_ious, threshold, max_clicks):
    """NoC of RITM's compute_noc_metric, written out: the first click that reaches the IoU."""
    numbers = []
    for ious in all_ious:
        reached = [click for click, iou in enumerate(ious, 1) if iou >= threshold]
        numbers.append(reached[0] if reached else max_clicks)
    return sum(numbers) / len(numbers)


@pytest.fixture
def run(tmp_path):
    options = ClickOptions(limit=LIMIT)
    return segiou.score_folder(*write_clicks(tmp_path, CORRECT), labels=2, measures=[options])


def test_scores_by_hand(run):
    report = run.report()
    # 90 %: after clicks 2, never (4), 1 and 4. 85 %: the same.
    assert report.score("noc_90") == report.score("noc_85") == (2 + 4 + 1 + 4) / 4
    assert report.score("click_failures_90") == 1 / 4
    assert report.score("click_iou_1") == pytest.approx((0.5 + 0.8 + 0.9 + 0.1) / 4)
    # c ends after its first click, whose mask remains.
    assert report.score("click_iou_3", "1") == pytest.approx((0.8 + 0.8 + 0.9 + 0.3) / 4)
    assert (report.better("noc_90"), report.score_unit("noc_90")) == ("lower", "clicks")
    assert [row["noc_90"] for row in run.rows()] == [2, 4, 1, 4]
    assert report.score("iou", "1") == pytest.approx((10 + 8 + 9 + 9) / 40)  # of the last masks
    text = " ".join(str(report).split())
    assert "NoC@90" in text
    assert "IoU, 2 clicks" not in text
    assert run.intervals("noc_90", groups="none").overall.value == 11 / 4
    assert json.loads(report.to_json())["scores"]["noc_85"]["value"] == 11 / 4
    table = next(table for table in report.tables if table.key == "clicks")
    assert next(c for c in table.columns if c.name == "nof_90").value == 1
    assert "NoF@90" in report.to_html(run=run)


IOUS = st.lists(st.lists(st.integers(0, 100), min_size=1, max_size=25), min_size=1, max_size=8)


@given(IOUS, st.sampled_from([80, 85, 90, 95, 100]), st.integers(1, 25))
def test_numbers_are_those_of_ritm(percents, percent, limit):
    ious = [[p / 100 for p in several[:limit]] for several in percents]
    found = [number_of_clicks(one, percent / 100, limit=limit) for one in ious]
    assert sum(found) / len(found) == pytest.approx(ritm(ious, percent / 100, limit))
    assert all(1 <= number <= limit for number in found)
    fewer = [number_of_clicks(one, (percent - 5) / 100, limit=limit) for one in ious]
    assert all(a <= b for a, b in zip(fewer, found, strict=True))


def test_methods_are_compared(tmp_path, capsys):
    files = []
    for method in (CORRECT, CORRECT | {"a": [9], "d": [9], "b": [9]}):
        folder = tmp_path / str(len(files))
        files.append(f"{folder}.sqlite")
        places = write_clicks(folder, method, ("{}", "click_{:02}")[len(files) - 1])
        words = ["--labels", "2", "--clicks", "--clicks-limit", "4", "--run", files[-1], "-q"]
        assert main(["score", *places, *words]) == 0
    assert main(["compare", *files, "--metric", "noc_90", "--names", "first,second"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "NoC@90" in out
    assert "1.75 clicks" in out or "−1.75" in out
    words = ["--clicks", "--clicks-limit=4", "--clicks-iou=50,87.5", "--labels=2"]
    assert main(["score", *places, *words, "--fail-over", "noc_50=1", "--per-image=-"]) == 0
    assert "noc_87.5" in capsys.readouterr().out
    assert main(["score", *places, *words, "--fail-over", "noc_87.5=0.5"]) == 1


@pytest.mark.needs("planning")
def test_methods_are_compared_by_an_iou_of_their_own(tmp_path, capsys):
    files = [str(tmp_path / f"{name}.sqlite") for name in "ab"]
    for file, method in zip(files, (CORRECT, CORRECT | {"a": [9], "d": [9]}), strict=True):
        places = write_clicks(tmp_path / file[-8], method)
        words = ["--labels=2", "--clicks", "--clicks-limit=4", "--clicks-iou=70", "-q"]
        assert main(["score", *places, *words, "--run", file]) == 0
    capsys.readouterr()
    page = tmp_path / "page.html"
    # By hand: clicks 2, 1, 1, 4 and 1, 1, 1, 1 until 7 of 10 pixels are correct.
    assert main(["compare", *files, "--metric", "noc_70", "--html", str(page)]) == 0
    assert "mean NoC@70 2.00 clicks vs 1.00 clicks" in " ".join(capsys.readouterr().out.split())
    assert '"score":{"title":"mean NoC@70"' in page.read_text(encoding="utf-8")
    assert main(["compare", *files, "--metric", "noc_70,iou", "--format", "json"]) == 0
    assert "noc_70" in capsys.readouterr().out
    assert main(["compare", *files, "--metric", "noc_75"]) == 2
    assert "noc_70" in capsys.readouterr().err
    # 50 % was read as 0.5 clicks.
    for words in (["compare", *files, "--detect"], ["plan", files[0], "--half-width"]):
        assert main([*words, "50%", "--metric", "noc_70"]) == 2
        said = " ".join(capsys.readouterr().err.split())
        assert "noc_70 is not a ratio; pass a number in clicks without %" in said
        assert main([*words, "0.5", "--metric", "noc_70", "-q"]) == 0
        capsys.readouterr()


def test_folders_are_not_compared_by_other_ious(tmp_path, capsys):
    assert ClickOptions.for_score("noc_60").iou == (60,)
    assert ClickOptions.flag_for("noc_60") == "--clicks --clicks-iou 60"
    places = "--truth", str(tmp_path), str(tmp_path), str(tmp_path), "--labels", "2"
    assert main(["compare", *places, "--metric", "noc_60"]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "segiou score --run with its options, then compare the run files" in said


def test_a_page_shows_the_last_masks(tmp_path):
    places = write_clicks(tmp_path, CORRECT)
    page = tmp_path / "page.html"
    words = ["--labels=2", "--clicks", "--clicks-limit=4", "--html", str(page), "-q"]
    assert main(["score", *places, *words]) == 0
    assert "NoC@90" in page.read_text(encoding="utf-8")


def test_masks_with_values_of_255_and_soft_edges(tmp_path):
    places = write_clicks(tmp_path, CORRECT)
    for path in tmp_path.rglob("*.png"):
        mask = segiou.read_mask(path)
        write_mask(path, mask * 200 + 20)
    options = [ClickOptions(limit=LIMIT)]
    how = {"truth_threshold": 128, "pred_threshold": 128}
    run = segiou.score_folder(*places, labels=2, measures=options, **how)
    assert run.report().score("noc_90") == 11 / 4


def test_images_without_an_object_are_skipped(tmp_path):
    places = write_clicks(tmp_path, CORRECT)
    write_mask(tmp_path / "truth" / "c.png", np.zeros((2, 12), np.uint8))
    run = segiou.score_folder(*places, labels=2, measures=[ClickOptions(limit=LIMIT)])
    assert run.report().score("noc_90") == (2 + 4 + 4) / 3
    assert math.isnan(run.rows()[2]["noc_90"])
    only = segiou.score_folder(
        *write_clicks(tmp_path / "only", {"c": [9]}), labels=2, measures=[ClickOptions(limit=1)]
    )
    assert only.report().score("noc_90") == 1
    assert only.report().score("click_failures_90") == 0


def test_ignored_pixels_are_in_no_iou(tmp_path):
    places = write_clicks(tmp_path, {"a": [9]})
    truth = segiou.read_mask(tmp_path / "truth" / "a.png").copy()
    truth[0, 9] = 255
    write_mask(tmp_path / "truth" / "a.png", truth)
    run = segiou.score_folder(*places, labels=2, ignore=255, measures=["clicks"])
    assert run.report().score("click_iou_1") == 1


def test_masks_that_end_too_early(tmp_path):
    places = write_clicks(tmp_path, {"a": [5, 6]})
    with pytest.raises(segiou.DataError, match="after 2 clicks, which do not reach IoU 85 %"):
        segiou.score_folder(*places, labels=2, measures=["clicks"])
    run = segiou.score_folder(*places, labels=2, measures=[ClickOptions(limit=2)])
    assert run.report().score("noc_85") == 2


@pytest.mark.parametrize(
    ("folder", "problem"),
    [
        ("other", "other/a.png is not in the folder of a click"),
        ("click_00", "click_00/a.png is not in the folder of a click"),
        ("click_4", "a has a mask after click 4, but none after click 2"),
        ("click_1", "a has two masks after click 1"),
        ("step_2", "different names: click_01/a.png and step_2/a.png"),
    ],
)
def test_other_folders_are_errors(tmp_path, folder, problem):
    places = write_clicks(tmp_path, {"a": [9]})
    write_mask(tmp_path / "pred" / folder / "a.png", np.zeros((2, 12), np.uint8))
    with pytest.raises((ValueError, segiou.DataError), match=problem):
        segiou.score_folder(*places, labels=2, measures=["clicks"])


def test_files_with_faults_are_named(tmp_path):
    places = write_clicks(tmp_path, {"a": [9, 10]})
    bad = tmp_path / "pred" / "click_01" / "a.png"
    for mask, problem in ((np.zeros((3, 3), np.uint8), "shape"), (np.full((2, 12), 7), "7")):
        write_mask(bad, mask.astype(np.uint8))
        with pytest.raises(segiou.DataError, match=problem):
            segiou.score_folder(*places, labels=2, measures=["clicks"])
    bad.write_bytes(b"nothing")
    with pytest.raises(segiou.DataError, match="click_01"):
        segiou.score_folder(*places, labels=2, measures=["clicks"])


@pytest.mark.parametrize(
    "wrong",
    [
        *({"iou": (value,)} for value in (0, -1, math.nan, 1e-320, 101, math.inf, 10**400)),
        *({"iou": ()}, {"iou": (85, 85.0)}, {"limit": 0}, {"limit": -3}, {"limit": 10**9}),
        *({"iou": 85}, {"iou": ("85",)}, {"limit": 2.5}, {"limit": True}),
    ],
)
def test_options_out_of_range(wrong):
    with pytest.raises((ValueError, TypeError), match=next(iter(wrong))):
        ClickOptions(**wrong)


def test_targets_arrays_and_volumes(tmp_path, capsys):
    with pytest.raises(ValueError, match="needs exactly one class; pass --clicks-target"):
        ClickOptions().plan(segiou.labels.ClassOptions.of(3), segiou.measures.Masks())
    with pytest.raises(ValueError, match="not supported for volumes"):
        ClickOptions().plan(segiou.labels.ClassOptions.of(2), segiou.measures.Masks(volumes=True))
    with pytest.raises(ValueError, match="pass one folder per click to score_folder"):
        segiou.score([[[1]]], [[[1]]], labels=2, measures=["clicks"])
    places = write_clicks(tmp_path, {"a": [9]})
    words = ["score", *places, "--labels", "3", "--clicks", "--clicks-target", "1", "-q"]
    assert main([*words]) == 0
    assert main(["score", *places, "--labels", "2", "--clicks-iou", "80"]) == 2
    assert "--clicks-iou needs --clicks" in capsys.readouterr().err


def test_damaged_rows_are_rejected(run):
    plan = run.plans[0]
    good = {"objects": [10], "clicks": [[[5, 10]] * LIMIT]}
    plan.check(Parts.of(plan.layout, **good))
    for wrong in ({"clicks": [[[11, 10]] * LIMIT]}, {"objects": [11]}):
        with pytest.raises(ValueError, match="invalid rows of clicks"):
            plan.check(Parts.of(plan.layout, **good | wrong))


@pytest.mark.parametrize("ious", [0.9, [[0.9]], [85.0, 91.0], [-0.1]])
def test_ious_of_clicks_are_a_row_of_ratios(ious):
    with pytest.raises(ValueError, match="ious must have shape"):
        number_of_clicks(ious, 0.85)


def test_ious_of_clicks_are_numbers():
    with pytest.raises(TypeError, match="ious must be numbers"):
        number_of_clicks(["0.9"], 0.85)
    assert number_of_clicks([], 0.85) == 20
    assert number_of_clicks([math.nan, 0.9], 0.85) == 2


def test_limits_of_numpy_are_integers():
    assert type(number_of_clicks([0.1], 0.85, limit=np.int8(100))) is int
    assert json.dumps(ClickOptions(limit=np.int8(3)).to_dict()["limit"]) == "3"
