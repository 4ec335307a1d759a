"""Images that a reader should look at before the scores, in every output."""

import json

import numpy as np
import pytest

import segiou

SPLEEN = {"background": 0, "spleen": 1, "tumor": 2}


def cases(*preds, **options):
    """Cases of one row; the truth has two pixels of each structure."""
    truth = np.array([[[0, 0, 1, 1, 2, 2]]] * len(preds))
    ids = [f"case_{i:03}" for i in range(1, len(preds) + 1)]
    pred = np.array([[list(map(int, pred))] for pred in preds])
    return segiou.score(truth, pred, ids=ids, **{"labels": SPLEEN, **options})


@pytest.mark.parametrize(
    ("preds", "text"),
    [
        (["001122", "000000"], "case_002: the prediction is empty."),
        (["001122", "000000", "220011"], "case_002: the prediction is empty. case_003: every str"),
        (["000000"] * 5, "5 predictions are empty: case_001, case_002, case_003 and 2 more."),
        (["112200", "001122", "112200"], "Every structure is missed in 2 images: case_001 and"),
    ],
)
def test_cautions_come_before_the_costliest_error(preds, text):
    report = cases(*preds).report()
    rest = report.verdict.partition(" classes. ")[2]
    assert rest.startswith(text)
    after = rest.removeprefix(" ".join(map(str, report.image_cautions)))
    assert str(report.next_steps[0].truth) in after


def test_images_without_valid_pixels():
    truth = np.array([[[0, 1]], [[255, 255]]])
    report = segiou.score(truth, truth % 2, labels=2, ignore=255, ids=["a", "b"]).report()
    assert [str(one) for one in report.image_cautions] == ["b: every pixel is ignored."]


@pytest.mark.needs("measures.surfaces")
def test_classes_without_a_background():
    # Class 0 is not a background by its name, so "empty" has no meaning.
    street = {"road": 0, "car": 1, "sign": 2}
    (caution,) = cases("001122", "110011", labels=street).report().image_cautions
    assert str(caution) == "case_002: every class is missed."
    assert not cases("001122", "000000", labels=street).report().image_cautions
    # The class of value 0 of volumes is background by any name; excluded classes do not count.
    truth = np.array([[[[0, 0, 1, 1]]]])
    other = {"labels": {"other": 0, "spleen": 1}, "surfaces": True, "spacing": (1, 1, 1)}
    (caution,) = segiou.score(truth, truth * 0, ids=["a"], **other).report().image_cautions
    assert str(caution) == "a: the prediction is empty."
    (caution,) = cases("000011", exclude="spleen").report().image_cautions
    assert str(caution) == "case_001: every structure is missed."


def test_every_output_has_the_cautions():
    run = cases("001122", "000000", "001122")
    report, text = run.report(), "case_002: the prediction is empty."
    pages = (report.to_text(), report.to_markdown(), report.to_html(run=run))
    for page in (*pages, report._repr_html_(), report.to_latex()):
        assert text in " ".join(page.replace("\\_", "_").replace("%\n", "").split())
    assert json.loads(report.to_json())["image_cautions"] == [
        {"kind": "empty", "count": 1, "images": ["case_002"], "text": text}
    ]


def slides():
    """Two images with a lesion, then five without, all of which have false positives."""
    truths, preds = np.zeros((2, 7, 10, 10), int)
    truths[0, :5] = preds[0, :4] = 1  # of the lesion 80 %
    truths[1, :5] = preds[1, :5] = 1
    for i in range(2, 7):
        preds[i, 0, : i - 1] = 1  # 1 to 5 pixels of 100
    ids = [f"slide_{i}" for i in range(7)]
    labels = {"background": 0, "lesion": 1}
    return segiou.score(truths, preds, labels=labels, ids=ids)


def test_false_positives_without_foreground_are_a_caution():
    report = slides().report()
    (caution,) = report.image_cautions
    assert (caution.kind, len(caution.images), caution.of) == ("false_alarms", 5, 5)
    text = (
        "5 of 5 images without foreground have false positives: slide_2, slide_3, slide_4 and 2 "
        "more."
    )
    assert str(caution) == text and text in report.verdict
    assert json.loads(report.to_json())["image_cautions"][0]["of"] == 5
    # Without the false positives, there is nothing to say.
    truth = np.zeros((3, 1, 4), int)
    labels = {"background": 0, "lesion": 1}
    assert not segiou.score(truth, truth, labels=labels).report().image_cautions


def test_false_positives_without_foreground_are_among_the_worst():
    rows = slides().worst(6)
    assert [row["id"] for row in rows[:5]] == ["slide_6", *(f"slide_{i}" for i in (5, 4, 3, 2))]
    assert rows[0]["mean_iou"] == 0.95  # of the background, the only class of the truth
    assert rows[0]["note"] == "false positives without foreground"
    assert "note" not in rows[5]
    text = slides().report(worst=6).to_text()
    assert text.count("false positives without foreground") == 5


def test_the_page_lists_the_images_of_a_caution():
    run = slides()
    page = run.report().to_html(run=run)
    assert 'href="#slice=false+positives+without+foreground"' in page
    assert '"false positives without foreground":[2,3,4,5,6]' in page
