"""The review of suspects in a browser: answers are kept, counted and saved."""

from __future__ import annotations

import numpy as np
import pytest
from mask_files import write_mask

import segiou
from segiou.suspects.page import suspects_html

pytestmark = pytest.mark.gate


@pytest.fixture
def places(tmp_path):
    """The run of two images with a wrong region each, and its page."""
    for i, name in enumerate(("a,b", "=c")):
        truth, pred = np.zeros((2, 30, 40), np.uint8)
        pred[4 : 10 + i, 5:9] = 1
        write_mask(tmp_path / "truth" / f"{name}.png", truth)
        write_mask(tmp_path / "pred" / f"{name}.png", pred)
    folders = tmp_path / "truth", tmp_path / "pred"
    run = segiou.score_folder(*folders, labels=2, measures=["suspects"])
    path = tmp_path / "page.html"
    path.write_text(suspects_html(segiou.find_suspects(run), run), encoding="utf-8")
    return run, path.as_uri()


def test_answers_are_kept_counted_and_saved(page, places, tmp_path, until):
    run, url = places
    page.goto(url)
    until(page, "document.querySelectorAll('.suspect img').length === 4")
    page.locator("[data-row='0'] input[value=wrong]").check()
    page.locator("[data-row='1'] input[value=right]").check()
    until(page, "document.querySelector('#review-state').innerText === '2 of 2 reviewed, 1 wrong.'")
    with page.expect_download() as download:
        page.locator("#review-export").click()
    path = tmp_path / "reviewed.csv"
    download.value.save_as(path)
    found = segiou.find_suspects(run, reviewed=path)
    assert "\n'=c," in path.read_text()  # no formula
    assert [(r.image, r.verdict) for r in found.regions] == [("=c", "wrong"), ("a,b", "right")]
    # A busy Chromium sometimes loses what a page has stored, and read back, when it loads the page
    # again. The page that is loaded again gets exactly what it had stored.
    stored = page.evaluate("JSON.stringify(localStorage)")
    page.add_init_script(f"Object.assign(localStorage, {stored})")
    page.reload()
    until(page, "document.querySelector('#review-state').innerText === '2 of 2 reviewed, 1 wrong.'")


def test_verdicts_are_cleared_for_good_if_that_is_meant(page, places, tmp_path, until):
    run, url = places
    reviewed = tmp_path / "reviewed.csv"
    reviewed.write_text('image,label,suggestion,box,verdict\n"a,b",0,1,4:10 5:9,unclear\n')
    result = segiou.find_suspects(run, reviewed=reviewed)
    (tmp_path / "page.html").write_text(suspects_html(result, run), encoding="utf-8")
    page.goto(url)
    checked = "document.querySelectorAll('.suspect input:checked').length"
    until(page, f"{checked} === 1")
    page.once("dialog", lambda dialog: dialog.dismiss())
    page.locator("#review-clear").click()
    assert page.evaluate(checked) == 1
    page.once("dialog", lambda dialog: dialog.accept())
    page.locator("#review-clear").click()
    assert page.evaluate(checked) == 0
    page.reload()
    until(page, "document.querySelector('#review-state').innerText !== ''")
    assert page.evaluate(checked) == 0


def test_the_page_fits_a_narrow_screen(page, places):
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(places[1])
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_without_scripts_regions_are_shown_without_questions(new_page, places):
    page = new_page(java_script_enabled=False)
    page.goto(places[1])
    assert page.locator(".suspect img:visible").count() == 4
    assert page.locator(":is(button, select, input):visible").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(new_page, tmp_path, accessibility_faults, scheme):
    truth, pred = np.zeros((2, 2, 30, 40), np.uint8)
    pred[0, 4:10, 5:9] = truth[0, 20:26, 20:30] = 1  # two regions of an image
    run = segiou.score(truth, pred, labels=2, measures=["suspects"])
    path = tmp_path / "page.html"
    path.write_text(suspects_html(segiou.find_suspects(run), run), encoding="utf-8")
    page = new_page(color_scheme=scheme)
    page.goto(path.as_uri())
    assert page.locator("#list tbody tr").count() == 2
    assert accessibility_faults(page) == []
