"""The report as it is printed."""

import json

import numpy as np
import pytest

import segiou
from segiou.report import write_comparison_html, write_html


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


@pytest.mark.needs("measures.surfaces")
def test_on_paper_wide_tables_fit_and_repeat_their_heads(new_page, tmp_path):
    masks = np.random.default_rng(0).integers(0, 3, (6, 12, 12))
    names = ["background", "pedestrian", "rider"]
    own = {"labels": names, "surfaces": True}
    run = segiou.score(masks, np.roll(masks, 1, 1), name="first_of_many_models", **own)
    page = new_page(viewport={"width": 718, "height": 1000})
    scores = ("iou", "hausdorff_95", "surface_dice", "boundary_f1")
    report = run.report(intervals=[run.intervals(score, resamples=20) for score in scores])
    page.goto(write_html(tmp_path / "report.html", report, run=run, examples=0).as_uri())
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate("document.documentElement.scrollWidth") == 718
    # Chromium repeats the text of heads, but no boxes within them.
    heads = page.locator(".data thead button").all()
    assert {head.evaluate("(head) => getComputedStyle(head).display") for head in heads} <= {
        "contents",
        "none",
    }


def test_on_paper_the_first_of_many_models_are_listed(new_page, tmp_path):
    masks = np.random.default_rng(0).integers(0, 3, (4, 6, 6))
    runs = [
        segiou.score(masks, np.roll(masks, shift, 1), labels=3, name=f"model_of_shift_{shift}")
        for shift in range(1, 13)
    ]
    found = segiou.compare(*runs, resamples=20, permutations=20)
    page = new_page(viewport={"width": 718, "height": 1000})
    path = write_comparison_html(tmp_path / "page.html", found, *runs[:2], examples=0)
    page.goto(path.as_uri())
    note = page.get_by_text("Only the first 8 models are printed.")
    assert note.is_hidden()
    page.emulate_media(media="print")
    assert note.is_visible()
    assert page.locator(".models thead th:visible").count() == 9
    assert page.evaluate("document.documentElement.scrollWidth") == 718
