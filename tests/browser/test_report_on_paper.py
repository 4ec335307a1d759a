"""The report as it is printed."""

import json

import numpy as np

import segiou
from segiou.report import write_html


def test_on_paper_everything_is_unfolded_and_light(new_page, tmp_path):
    masks = np.random.default_rng(0).integers(0, 3, (3, 4, 4))
    run = segiou.score(masks, masks[:, ::-1], labels=3)
    page = new_page(color_scheme="dark")
    page.goto(write_html(tmp_path / "report.html", run.report(), run=run).as_uri())
    assert page.locator(".matrix-table").is_hidden()
    page.emulate_media(media="print", color_scheme="dark")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator(".matrix-table").is_visible()
    assert page.locator(".contents").is_hidden()
    ink = page.evaluate("getComputedStyle(document.body).color")
    assert sum(map(int, json.loads(f"[{ink[4:-1]}]"))) < 200
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    page.emulate_media(media="screen")
    assert page.locator(".matrix-table").is_hidden()


def test_on_paper_the_table_of_classes_fits(new_page, tmp_path):
    masks = np.arange(10).repeat(250_000).reshape(1, 2500, 1000)
    run = segiou.score(masks, np.roll(masks, 50, 1), labels=[f"pedestrian {i}" for i in range(10)])
    # Between the margins of A4 are 718 pixels.
    page = new_page(viewport={"width": 718, "height": 1000})
    page.goto(write_html(tmp_path / "report.html", run.report(), run=run).as_uri())
    page.emulate_media(media="print")
    right = "document.getElementById('class-table').getBoundingClientRect().right"
    assert page.evaluate(right) <= 718


def test_on_paper_the_first_images_are_all_listed(new_page, tmp_path):
    masks = np.random.default_rng(0).integers(0, 2, (250, 2, 2))
    run = segiou.score(masks, masks[:, ::-1], labels=2)
    page = new_page()
    page.goto(write_html(tmp_path / "report.html", run.report(), run=run, examples=0).as_uri())
    rows = "document.querySelectorAll('#image-table tbody tr:not(.space)').length"
    assert page.evaluate(rows) < 100
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate(rows) == 200
    assert "first 200" in page.locator("#images-printed").inner_text()
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.evaluate(rows) < 100
    assert page.locator("#images-printed").is_hidden()
