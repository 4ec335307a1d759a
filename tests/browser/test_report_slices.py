"""The section of slices in a page: its images, its scores, and small screens."""

import numpy as np
import pytest

import segiou
from segiou.report import write_html

BY = "(?P<time>[a-z]+)_(?P<city>[a-z]+)"

pytestmark = pytest.mark.gate


@pytest.fixture(scope="module")
def sliced_url(tmp_path_factory):
    ids = [f"{t}_{c}{i}" for t in ("day", "night") for c in ("bonn", "ulm") for i in range(4)]
    truth = {id: np.repeat([[0, 1]], 50, 1) for id in ids}
    pred = {id: mask.copy() for id, mask in truth.items()}
    for i, (id, mask) in enumerate(pred.items()):
        mask[0, : (20 if "night" in id else 2) + i % 3] ^= 1
    run = segiou.score(truth, pred, labels=2)
    found = [run.slices(BY, metric=name, groups="none") for name in ("iou", "pixel_accuracy")]
    path = tmp_path_factory.mktemp("slices") / "report.html"
    return write_html(path, run.report(), run=run, slices=found).as_uri()


def lists(text):
    """An expression for the line above the images, which follows the address a little later."""
    return f"document.querySelector('#images-asked').innerText.startsWith('{text}')"


def test_a_slice_filters_the_images_and_shift_adds_another(page, sliced_url, until):
    page.goto(sliced_url)
    link = ".sliced:not([hidden]) a[data-slice='{}']"
    page.locator(link.format("time=night")).click()
    until(page, "location.hash === '#slice=time%3Dnight'")
    until(page, lists("time=night · 8 of 16 images"))
    page.locator(link.format("city=ulm")).click(modifiers=["Shift"])
    until(page, "location.hash.endsWith('beside=city%3Dulm')")
    until(page, lists("time=night and city=ulm · 12 of 16 images"))
    until(page, "document.querySelectorAll('#galleries section').length === 2")
    parts = page.locator("#galleries section")
    score = page.locator(link.format("time=night") + " >> xpath=../..").locator(".bars b")
    head = f"time=night\n\n{score.inner_text()}, 8 images; the first 8 in the order of the table"
    assert parts.nth(0).inner_text().startswith(head)
    shown = [parts.nth(k).locator("a").all_inner_texts() for k in range(2)]
    assert all("night" in text for text in shown[0]) and len(shown[0]) == 8
    assert all("ulm" in text for text in shown[1]) and len(shown[1]) == 8
    assert page.locator("#image-beside").input_value() == "city=ulm"
    page.locator("#image-beside").select_option("city=bonn")
    until(page, "location.hash.endsWith('beside=city%3Dbonn')")
    page.locator("#image-slice").select_option("city=bonn")  # which is beside nothing, then
    until(page, "location.hash === '#slice=city%3Dbonn'")
    until(page, "document.querySelector('#galleries').offsetParent === null")
    page.locator("#image-slice").select_option("time=night")
    until(page, lists("time=night · 8 of 16 images"))
    page.locator("#image-class").select_option("1")
    until(page, "location.hash.includes('c=1') && location.hash.includes('slice=time')")


def test_the_score_is_chosen_and_narrow_screens_show_the_gap(page, sliced_url):
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto(sliced_url)
    shown = page.locator(".sliced:not([hidden])")
    assert "Mean IoU" in shown.inner_text()
    page.locator("#slices-score").select_option(label="pixel accuracy")
    # 168 and 23 of 800 pixels are wrong.
    assert "Pixel accuracy of A is 18.12 points lower on time=night" in shown.inner_text()
    box = shown.locator("tbody tr").nth(1).locator("td").nth(2).bounding_box()
    assert box["x"] + box["width"] <= 390
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
