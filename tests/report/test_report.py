from __future__ import annotations

import csv
import html
import io
import json
import math
import re

import numpy as np
import pytest

import segiou
from segiou import ConfusionMatrix
from segiou._support.csv_text import csv_name

NASTY = '<script>alert(1)</script>|\n"x'


def report(**options):
    cm = ConfusionMatrix(["a", "b", "c", NASTY], ignore=255, **options)
    return cm.update([0, 0, 0, 1, 255], [0, 0, 2, 2, 1]).report(title="T")


def test_numbers_by_hand():
    r = report()
    assert [row.iou for row in r.classes[:3]] == [2 / 3, 0.0, 0.0]
    assert math.isnan(r.classes[3].iou)
    assert r.mean_iou == pytest.approx(2 / 9)
    assert (r.mean_iou_classes, r.pairs, r.pixels, r.ignored) == (3, 1, 5, 1)
    assert r.pixel_accuracy == 0.5
    assert r.mean_accuracy == pytest.approx(1 / 3)
    assert r.gap == pytest.approx(0.5 - 2 / 9)
    assert r.majority == {"class": "a", "pixel_accuracy": 0.75, "mean_iou": 0.375}
    assert [row.status for row in r.classes] == ["", "never predicted", "not in truth", "absent"]
    assert r.frequency_weighted_iou == pytest.approx(0.5)


def test_what_is_skipped_is_named():
    r = report(exclude="a")
    assert r.iou_mean.skipped == {0: "excluded", 3: "absent"}
    assert r.to_dict()["never_predicted"] == ["b"]
    by_truth = ConfusionMatrix(3).update([0], [1]).report("detectron2")
    assert by_truth.iou_mean.skipped == {1: "not in truth", 2: "absent"}
    assert "1 (not in truth); 2 (absent)" in by_truth.to_text()


def test_image_rules_need_images():
    with pytest.raises(ValueError, match="needs per-image counts"):
        _ = ConfusionMatrix(2).update([0], [0]).report("monai").mean_iou


def test_empty_is_undefined_everywhere():
    r = ConfusionMatrix(2).report()
    assert math.isnan(r.mean_iou)
    assert r.mean_iou_classes == 0
    data = json.loads(r.to_json())
    assert data["mean_iou"] is None and data["majority"]["pixel_accuracy"] is None
    assert "–" in r.to_text()


def test_json_keeps_every_digit_and_the_matrix_readable():
    r = report()
    data = json.loads(r.to_json())
    assert data["classes"][0]["iou"] == 2 / 3
    assert data["matrix"] == r.matrix.tolist()
    assert json.loads(r.to_json(indent=None)) == data
    assert "[2, 0, 1, 0]" in r.to_json()


def test_sorting_puts_undefined_last():
    names = [row.name for row in report().sorted_classes("iou", reverse=True)]
    assert names == ["a", "b", "c", NASTY]
    assert [row.name for row in report().sorted_classes("share")][-2:] == ["b", "a"]
    assert report().sorted_classes("order", reverse=True)[0].name == NASTY
    with pytest.raises(ValueError, match="cannot sort by 'size'"):
        report().sorted_classes("size")


def test_hostile_names_stay_text():
    r = report()
    assert "<script>" not in r._repr_html_()
    assert html.escape("<script>") in r._repr_html_()
    line = next(x for x in r.to_markdown().splitlines() if "script" in x)
    assert line.count("|") - line.count("\\|") == 8
    assert "<script" not in line


def test_files_appear_whole_or_not_at_all(tmp_path):
    r = report()
    assert r.save(tmp_path / "r.json").read_text() == r.to_json()
    (tmp_path / "r.csv").write_text("old")
    r.save(tmp_path / "r.csv")
    assert (tmp_path / "r.csv").read_text() == r.to_csv()
    with pytest.raises(FileNotFoundError):
        r.save(tmp_path / "none" / "r.json")
    with pytest.raises(ValueError, match="unknown extension"):
        r.save(tmp_path / "r.docx")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["r.csv", "r.json"]


def test_pandas_frame():
    pd = pytest.importorskip("pandas")
    frame = report().to_pandas()
    assert isinstance(frame, pd.DataFrame)
    assert frame.loc["a", "tp"] == 2


def test_a_class_named_by_a_number_is_called_a_class():
    r = ConfusionMatrix(3).update([0, 0, 2], [0, 0, 0]).report()
    assert "always predicting class 0;" in " ".join(r.to_text().split())
    assert "(always predicting class 0;" in r.to_markdown()
    assert "(always predicting class 0;" in r._repr_html_()
    assert "The model never predicts class 2:" in " ".join(r.imbalance.sentences())


def test_groups_are_unions():
    r = segiou.score(
        [[[7, 8, 11]]], [[[8, 7, 7]]], labels="cityscapes", unassigned="count"
    ).report()
    flat = next(row for row in r.group_rows if row.name == "flat")
    # Road and sidewalk swapped is right within "flat"; the building taken for road is not.
    assert (flat.tp, flat.fp, flat.fn) == (2, 1, 0)
    assert "| flat |" in r.to_markdown()


def test_a_group_is_charged_for_what_it_takes_from_classes_outside_all_groups():
    truth, pred = [0] * 90 + [3] * 10, [3] * 100
    report = ConfusionMatrix("voc2012").update(truth, pred).report()
    animal = next(row for row in report.group_rows if row.name == "animal")
    assert (animal.tp, animal.fp, animal.fn, animal.iou, animal.share) == (10, 90, 0, 0.1, 0.1)
    # cityscapesScripts, for which what is in no category is void, does not look at it.
    report = ConfusionMatrix("voc2012").update(truth, pred).report("cityscapes")
    animal = next(row for row in report.group_rows if row.name == "animal")
    assert (animal.tp, animal.fp, animal.iou, animal.share) == (10, 0, 1.0, 1.0)


@pytest.mark.parametrize("protocol", ["segiou", "cityscapes", "monai"])
def test_a_class_that_is_a_group_of_its_own_has_one_score(protocol):
    truth, pred = [[0] * 80 + [15] * 20, [15] * 100], [[15] * 100, [0] * 50 + [15] * 50]
    masks = ([[row] for row in side] for side in (truth, pred))
    report = segiou.score(*masks, labels="voc2012").report(protocol)
    person = next(row for row in report.group_rows if row.name == "person")
    assert person == report.classes[15]
    assert person.iou == report.scores_by_name["iou"].rows["person"]


BRATS = {"whole tumor": (1, 2, 4), "tumor core": (1, 4), "enhancing tumor": (4,)}


def overlapping_labels(tmp_path):
    """The regions of BraTS as a file of somebody's own."""
    path = tmp_path / "mine.toml"
    text = segiou.load_labels("brats").to_toml().replace('name = "brats"', 'name = "mine"')
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("own", [False, True])
def test_groups_may_overlap(tmp_path, own):
    rng = np.random.default_rng(3)
    truth, pred = rng.choice([0, 1, 2, 4], (2, 4, 50))
    run = segiou.score(truth, pred, labels=overlapping_labels(tmp_path) if own else "brats")
    run.save(tmp_path / "run.segiou")
    for made in (run.report(), segiou.Run.open(tmp_path / "run.segiou").report()):
        rows = {row.name: row for row in made.group_rows}
        for name, values in BRATS.items():
            t, p = np.isin(truth, values), np.isin(pred, values)
            row = rows[name]
            assert (row.tp, row.fp, row.fn) == ((t & p).sum(), (~t & p).sum(), (t & ~p).sum())
            assert row.iou == (t & p).sum() / (t | p).sum()
            assert row.share == t.mean()
        assert [group["name"] for group in made.to_dict()["groups"]] == list(BRATS)
        for text in (made.to_text(width=120), made.to_markdown(), made.to_html()):
            assert "whole tumor" in text


def test_text_is_plain_unless_asked():
    r = report()
    assert "\x1b" not in str(r)
    assert "\x1b" in r.to_text(color=True)
    assert repr(r).startswith("<Report: mean IoU 22.22 % over 3 of 4 classes")
    assert np.array_equal(r.unassigned, [0, 0, 0, 0])


def test_one_of_each_is_singular():
    run = segiou.score([[[0]]], [[[0]]], labels=1)
    report = run.report()
    for text in (str(report), report.to_markdown(), report._repr_html_(), repr(report), repr(run)):
        assert "1 classes" not in text
        assert "1 pairs" not in text
        assert "1 images" not in text
    assert repr(run.total()) == "<ConfusionMatrix: 1 class, 1 pair, 1 pixel, 0 ignored>"
    assert "over 1 of 1 class." in str(report)


def test_a_share_that_is_not_all_does_not_look_so():
    matrix = segiou.ConfusionMatrix(2).update(
        np.eye(1, 100_000, dtype=int), np.zeros((1, 100_000), int)
    )
    for text in (str(matrix.report()), matrix.report().to_markdown()):
        assert ">99.99 %" in text
        assert "<0.01 %" in text.replace("&lt;", "<")
    page = matrix.report().to_html()
    for text in (page, matrix._repr_html_()):
        assert "&gt;99.99 %" in text
        assert "&lt;0.01 %" in text


def few_images(images):
    truth = np.array([[[0, 1, 1, 2]]] * images)
    truth[5:, 0, 3] = 1
    pred = truth.copy()
    pred[::2, 0, 1] = 0
    run = segiou.score(truth, np.where(pred == 2, 1, pred), labels=["road", "car", "pole"])
    return run.report(intervals=run.intervals(resamples=50))


@pytest.mark.parametrize("width", [74, 80, 100, 140])
def test_an_interval_keeps_to_its_line(width):
    text = few_images(6).to_text(width=width)
    # Five images in which the class is always missed: 1 - 0.025 ** (1 / 5).
    assert text.count("0.00 to 52.18 %") == 1
    assert all(line.split()[-1] != "to" for line in text.splitlines() if line)
    # Beside the class, or below if there is no room; and in the verdict.
    assert " ".join(text.split()).count("never predicted") == 2
    beside = [line for line in text.splitlines() if line.startswith("pole ")]
    assert ("never predicted: pole" in text) == ("never predicted" not in beside[0])


def test_the_interval_of_the_mean_is_shown_unasked():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, (12, 8, 8))
    pred = np.where(rng.random(truth.shape) < 0.2, 0, truth)
    run = segiou.score(truth, pred, labels=3)
    report, usual = run.report(), run.intervals().overall
    limits = f"95 % interval {100 * usual.low:.2f} to {100 * usual.high:.2f} %, 12 images"
    assert re.search(f"^mean IoU +{100 * usual.value:.2f} %  {limits}$", report.to_text(), re.M)
    assert f" ({limits}) · pixel accuracy " in report.to_markdown()
    assert report.to_dict()["intervals"] is None
    # One image has no interval, and neither have counts without images.
    first = run.select(run.ids[:1]).report()
    for alone in (first, segiou.ConfusionMatrix(3).update(truth, pred).report()):
        assert "interval" not in alone.to_text() + alone.to_markdown()


def test_an_interval_that_is_missing_has_a_reason():
    truth = [[[0, 0, 1, 1]]] * 4
    text = segiou.score(truth, [[[0, 0, 0, 1]]] * 4, labels=2).report().to_text()
    assert "no interval, 4 images with equal scores" in text


def test_a_class_of_one_pixel_gives_no_warning_of_numpy():
    truth = [[[2, 0, 1, 1]], [[0, 0, 1, 1]], [[0, 1, 1, 1]]]
    pred = [[[0, 0, 0, 1]], [[0, 0, 1, 1]], [[0, 0, 0, 1]]]
    assert "95 % interval" in segiou.score(truth, pred, labels=3).report().to_text()


def test_intervals_of_very_many_counts_are_made_if_asked_for(monkeypatch):
    image = np.arange(500).reshape(1, 20, 25)
    many = segiou.score(image.repeat(3, 0), image.repeat(3, 0), labels=1000)
    assert many.report().intervals_or_default.resamples is None
    monkeypatch.setattr("segiou.report.report_numbers._MOST_COUNTS", 2999)
    assert many.report().intervals_or_default is None


def test_intervals_over_frames_have_one_caution_in_every_form():
    truth = np.random.default_rng(0).integers(0, 2, (24, 6, 6))
    ids = [f"{drive}_{5 * i:02d}" for drive in ("one", "two") for i in range(12)]
    run = segiou.score(truth, truth[:, ::-1], labels=2, ids=ids)
    report = run.report(intervals=run.intervals())
    for text in (report.to_text(), report.to_markdown(), report._repr_html_(), report.to_html()):
        plain = " ".join(text.replace("\N{NO-BREAK SPACE}", " ").split()).lower()
        advice = "reproduce this page" in plain  # where a page names the option
        said = plain.count("dependence cannot be judged from 24 images of 2 sequences")
        assert said == 1 + advice
    assert "Interval method\n\n" in report.to_text()
    assert "2 sequences (one 12, two 12)" in report.to_text()
    assert "Interval method" not in run.report().to_text()
    assert report.to_dict()["intervals"]["dependence"]["sequences"] == {"one": 12, "two": 12}
    blocks = run.report(intervals=run.intervals(blocks=4)).to_markdown()
    assert "%, 6 batches of neighbouring images" in blocks
    drives = run.report(intervals=run.intervals(groups="^...")).to_markdown()
    assert "no interval, 2 groups" in drives
    assert "Caution: an interval needs at least 3 groups" in drives


def test_a_caution_names_the_option_as_the_reader_passes_it():
    truth = np.random.default_rng(0).integers(0, 2, (24, 6, 6))
    ids = [f"frame_{5 * i:03d}" for i in range(24)]
    report = segiou.score(truth, truth[:, ::-1], labels=2, ids=ids).report()
    assert "Use --group-by none if" in " ".join(report.to_text().split())
    assert "Use groups=&#x27;none&#x27; if" in report._repr_html_()
    assert "--group-by" not in report.to_html().partition('id="making"')[0]


def binary_report(**options):
    """A background with an IoU of 96/98, and a lesion with 2 of 4 pixels found."""
    truth = np.zeros((4, 5, 5), int)
    truth[:, 0, 0] = 1
    pred = truth * (np.arange(4) < 2)[:, None, None]
    run = segiou.score(truth, pred, labels=["Background", "lesion"], **options)
    return run.report()


def test_a_background_that_raises_the_mean_is_named_with_both_numbers():
    report = binary_report()
    assert report.background_share == ("Background", 96 / 98, 0.5)
    text = " ".join(report.to_text().split())
    assert "mean IoU 73.98 %" in text
    assert (
        "without Background 50.00 % Background alone has 97.96 %; to average without it, pass "
        "--exclude Background" in text
    )
    assert "pass exclude=&#x27;Background&#x27;" in report._repr_html_()
    page = " ".join(report.to_html().split())
    found = "<b>Without Background</b>, which alone has 97.96 %, mean IoU is <b>50.00 %</b>."
    assert found in page.replace("\N{NO-BREAK SPACE}", " ")
    excluded = binary_report(exclude=["Background"])
    assert (excluded.mean_iou, excluded.background_share) == (0.5, None)
    assert "--exclude" not in excluded.to_text() + excluded.to_html()


def test_a_background_among_many_classes_is_not_named():
    truth = np.arange(40).reshape(1, 4, 10) % 20
    names = ["background", *(f"c{i}" for i in range(19))]
    report = segiou.score(truth, np.where(truth > 17, 1, truth), labels=names).report()
    assert report.background_share is None
    assert "without background" not in report.to_text()


def test_few_images_need_no_caution():
    text = " ".join(few_images(6).to_text().split())
    assert "%, 6 images" in text
    assert "Caution" not in text


CONTROLS = "a\x1b[31mb\nc\r|d"


def test_names_with_control_characters_are_escaped_in_every_text():
    run = segiou.score(
        [[[0, 1, 1]]] * 2, [[[0, 0, 0]]] * 2, labels=["ok", CONTROLS], name="x\x1b[2J"
    )
    report = run.report(intervals=run.intervals(resamples=20), worst=1, worst_by=f"iou:{CONTROLS}")
    other = segiou.score([[[0, 1, 1]]] * 2, [[[0, 1, 0]]] * 2, labels=["ok", CONTROLS])
    compared = segiou.compare(run, other, names=("p\x1b", "q"), resamples=20, permutations=20)
    texts = [
        report.to_text(),
        report.to_markdown(),
        segiou.explain(report).to_text(),
        compared.to_text(width=100),
    ]
    for text in texts:
        assert not set(text) & {"\x1b", "\r"}
        assert "a\\x1b" in text.replace("\\\\", "\\")


@pytest.mark.gate
def test_a_matrix_of_very_many_classes_is_given_as_its_cells():
    matrix = ConfusionMatrix(2001).update([0, 5, 5], [0, 7, 7])
    data = json.loads(matrix.report().to_json())
    assert data["matrix"] is None
    assert data["matrix_cells"] == [[0, 0, 1], [5, 7, 2]]
    assert json.loads(matrix.report().to_json(indent=None)) == data
    assert "matrix_cells" not in ConfusionMatrix(2).update([0], [1]).report().to_dict()


@pytest.mark.parametrize("name", ["=1+1", "+1", "-1", "@x", "\tx", "\rx", "a\rb", 'a"b', "a,b\nc"])
def test_no_name_breaks_the_csv_or_becomes_a_formula(name):
    run = segiou.score([[[0, 1]]], [[[0, 1]]], labels=["ok", name], ids=[name])
    text = run.to_csv()
    rows = list(csv.reader(io.StringIO(text, newline="")))
    assert len(rows) == 2
    assert csv_name(rows[1][0]) == name
    classes = run.report().to_csv()
    assert [csv_name(row[0]) for row in csv.reader(io.StringIO(classes, newline=""))][2] == name
    for cell in (*rows[1], *classes.split("\n")):
        assert not cell.startswith(("=", "+", "-1", "@", "\t", "\r"))
