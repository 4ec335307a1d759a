"""The explorer's brush in a real browser: what is painted is what segiou counts."""

from pathlib import Path

import numpy as np
import pytest

import segiou
from segiou.analysis import at_prevalence

pytestmark = pytest.mark.needs("explorer")

STREETS = Path(__file__).parents[2] / "fixtures" / "streets"
TRUTH = np.repeat([[0, 0, 1, 1, 2, 255], [0, 0, 0, 1, 2, 255]], 3, axis=0)
PRED = np.repeat([[0, 1, 1, 1, 7, 0], [0, 0, 0, 0, 2, 2]], 3, axis=0)


def painted(page):
    found = page.evaluate("segiou.painted()")
    shape = tuple(reversed(found["size"]))
    for side in ("truth", "pred"):
        found[side] = np.array(found[side]).reshape(shape)
    return found


def counted(seen, classes):
    """The same masks counted by segiou; one more than the classes is ignored, or no class."""
    matrix = segiou.ConfusionMatrix(classes, ignore=classes, unassigned="count")
    return matrix.update(seen["truth"], seen["pred"])


def check(seen, classes):
    """Every number that the page shows is segiou's."""
    matrix = counted(seen, classes)
    report, scores = matrix.report(), seen["scores"]
    assert scores["accuracy"] == report.pixel_accuracy
    assert scores["meanIou"]["value"] == pytest.approx(report.mean_iou, rel=1e-14)
    assert scores["meanIou"]["classes"] == report.mean_iou_classes
    assert scores["meanAccuracy"]["value"] == pytest.approx(report.mean_accuracy, rel=1e-14)
    for key, values in (("iou", matrix.iou()), ("recall", matrix.recall())):
        found = np.array([np.nan if v is None else v for v in scores[key]])
        np.testing.assert_array_equal(found, values)


def at(page, which, x, y):
    """Where on the screen the middle of a pixel of a mask is."""
    canvas = page.locator(f"#paint-{which}")
    canvas.scroll_into_view_if_needed()
    box, (width, _) = canvas.bounding_box(), painted(page)["size"]
    cell = box["width"] / width
    return box["x"] + (x + 0.5) * cell, box["y"] + (y + 0.5) * cell


@pytest.fixture
def brush(page, explorer_url):
    page.goto(f"{explorer_url}#brush")
    return page


@pytest.fixture
def mine(page, tmp_path):
    path = segiou.explore(TRUTH, PRED, labels=["road", "car", "pole"], ignore=255).save(
        tmp_path / "mine.html"
    )
    page.goto(path.as_uri())
    return page


def test_a_stroke_may_end_before_the_next_frame(page, explorer_url):
    page.add_init_script("window.requestAnimationFrame = (draw) => setTimeout(draw, 200)")
    page.goto(f"{explorer_url}#brush")
    page.mouse.move(*at(page, "pred", 10, 20))
    page.mouse.down()
    page.mouse.move(*at(page, "pred", 40, 30), steps=5)
    page.mouse.up()
    page.wait_for_timeout(400)  # the page has no errors
    check(painted(page), 6)


def test_a_stroke_moves_the_scores_to_those_of_the_masks(brush):
    before = painted(brush)
    check(before, 6)
    brush.get_by_label("person", exact=False).first.check()
    brush.mouse.move(*at(brush, "pred", 10, 20))
    brush.mouse.down()
    brush.mouse.move(*at(brush, "pred", 40, 30), steps=5)
    brush.mouse.up()
    after = painted(brush)
    check(after, 6)
    changed = after["pred"] != before["pred"]
    assert changed.sum() > 60
    assert (after["pred"][changed] == 5).all()
    assert (after["truth"] == before["truth"]).all()
    shown = brush.locator("#brush-mean-iou").inner_text()
    assert shown == f"{100 * after['scores']['meanIou']['value']:.2f} %"
    assert after["scores"]["meanIou"]["value"] < before["scores"]["meanIou"]["value"]
    brush.get_by_role("button", name="Undo").click()
    assert (painted(brush)["pred"] == before["pred"]).all()


def test_masks_of_ones_own_open_at_once_and_are_counted_as_segiou_does(mine):
    seen = painted(mine)
    assert mine.locator("#view-brush").is_visible()
    check(seen, 3)
    report = segiou.score(
        [TRUTH], [PRED], labels=["road", "car", "pole"], ignore=255, unassigned="count"
    ).report()
    assert seen["scores"]["meanIou"]["value"] == pytest.approx(report.mean_iou, rel=1e-14)
    assert mine.locator("#class-scores th").all_inner_texts() == ["road", "car", "pole"]
    # The correct class, painted over everything, is a perfect prediction; ignored pixels stay.
    mine.get_by_label("correct (prediction)").check()
    mine.locator("#brush-size").fill("3")
    canvas = mine.locator("#paint-pred")
    canvas.focus()
    for y in range(6):
        mine.mouse.move(*at(mine, "pred", 0, y))
        mine.mouse.down()
        mine.mouse.move(*at(mine, "pred", 5, y))
        mine.mouse.up()
    after = painted(mine)
    assert after["scores"]["accuracy"] == 1
    assert (after["truth"] == seen["truth"]).all()
    assert mine.locator("#brush-accuracy").inner_text() == "100.00 %"


def test_a_class_gets_rarer_as_segiou_says(brush):
    names = brush.locator("#rarer-class option").all_inner_texts()
    index = names.index("car")
    brush.locator("#rarer-class").select_option("car")
    brush.locator("#rarer-share").fill("50")
    seen = painted(brush)
    tally = counted(seen, 6).tally
    share = seen["rarer"]["share"]
    now = tally.counts.truth / tally.counts.truth.sum()
    assert share == pytest.approx(now[index] / 100)
    shares = now * (1 - share) / (1 - now[index])
    shares[index] = share
    expected = at_prevalence(tally, shares)
    assert seen["rarer"]["accuracy"] == pytest.approx(expected.pixel_accuracy, rel=1e-12)
    assert seen["rarer"]["iou"] == pytest.approx(expected.iou[index], rel=1e-12)
    assert seen["rarer"]["mean"] == pytest.approx(expected.mean_iou, rel=1e-12)
    assert "car" in brush.locator("#rarer-remark").inner_text()


def test_the_keyboard_alone_paints(brush, until):
    before = painted(brush)
    brush.locator("#paint-truth").focus()
    for key in ("4", "[", "ArrowRight", "Shift+ArrowDown", "Space"):
        brush.keyboard.press(key)
    after = painted(brush)
    (where,) = np.argwhere(after["truth"] != before["truth"])
    assert after["truth"][tuple(where)] == 3
    check(after, 6)
    until(brush, "document.getElementById('live').textContent.startsWith('Pixel accuracy')")
    brush.keyboard.press("Control+z")
    assert (painted(brush)["truth"] == before["truth"]).all()


def test_the_view_is_in_the_address_and_what_is_wrong_can_be_seen(brush):
    assert brush.locator("#view-rectangles").is_hidden()
    brush.get_by_label("Show errors only").check()
    colors = brush.evaluate(
        """() => {
            const { width, height } = document.getElementById("paint-pred");
            const { data } = document.getElementById("paint-pred").getContext("2d")
                .getImageData(0, 0, width, height);
            const light = (i) => data[4 * i] + data[4 * i + 1] + data[4 * i + 2];
            return Array.from({ length: width * height }, (_, i) => light(i));
        }"""
    )
    seen = painted(brush)
    right = (seen["truth"] == seen["pred"]).ravel()
    light = np.array(colors)
    assert light[right].min() > light[~right].max()
    brush.get_by_role("button", name="Rectangles").click()
    assert brush.locator("#view-rectangles").is_visible()
    assert "t=12,8,30,20" in brush.url
    brush.evaluate("location.hash = '#brush'")
    brush.wait_for_selector("#view-brush", state="visible")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1440])
def test_it_is_accessible_and_fits(new_page, explorer_url, accessibility_faults, width, scheme):
    page = new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page.goto(f"{explorer_url}#brush")
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert accessibility_faults(page) == []


def test_a_notebook_shows_it_inline(page, tmp_path):
    inline = tmp_path / "notebook.html"
    explorer = segiou.explore(TRUTH, PRED, labels=["road", "car", "</script>"], ignore=255)
    inline.write_text(f"<!doctype html><title>n</title>{explorer._repr_html_()}", encoding="utf-8")
    page.goto(inline.as_uri())
    frame = page.frame_locator("iframe")
    expected = segiou.score(
        [TRUTH], [PRED], labels=["a", "b", "c"], ignore=255, unassigned="count"
    ).report()
    shown = frame.locator("#brush-mean-iou")
    assert shown.inner_text() == f"{100 * expected.mean_iou:.2f} %"
    assert frame.locator("#class-scores th").nth(2).inner_text() == "</script>"
    frame.get_by_role("button", name="Rectangles").click()
    frame.locator("#shape-pred").press("ArrowRight")
    assert frame.locator("#value-iou").inner_text() != "≈ 50.79 %"


def test_paths_are_read(page, tmp_path):
    truth = sorted((STREETS / "truth").iterdir())[0]
    pred = STREETS / "model_b" / truth.name
    labels = STREETS / "labels.toml"
    page.goto(segiou.explore(truth, pred, labels=labels).save(tmp_path / "s.html").as_uri())
    matrix = segiou.ConfusionMatrix(labels)
    matrix.update(segiou.read_mask(truth), segiou.read_mask(pred))
    scores = painted(page)["scores"]
    assert scores["meanIou"]["value"] == pytest.approx(matrix.report().mean_iou, rel=1e-13)


def test_of_many_classes_those_that_occur_come_first(page, tmp_path):
    explorer = segiou.explore([[30, 30, 7]], [[30, 12, 7]], labels=[f"c{i}" for i in range(40)])
    page.goto(explorer.save(tmp_path / "many.html").as_uri())
    names = page.locator("#palette .swatch span").all_inner_texts()
    assert names[:4] == ["c7", "c12", "c30", "c0"]
    shown = [row.inner_text() for row in page.locator("#class-scores th").all() if row.is_visible()]
    assert shown == ["c7", "c12", "c30"]
    page.locator("#paint-pred").focus()
    page.keyboard.press("3")
    assert page.get_by_label("c30", exact=False).first.is_checked()
