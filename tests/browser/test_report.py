"""The page of a report in a headless Chromium: hostile names, definitions, screens and readers."""

import pytest
from hostile_page import BREAKOUT, FILE, HOSTILE, NAMES, class_names, image_names


def test_hostile_names_are_only_text(report, until):
    assert class_names(report)[:4] == NAMES[:4]
    assert report.locator("h1").inner_text() == BREAKOUT
    assert (
        report.locator("main script, main [onerror], main [onload], main img[src=x]").count() == 0
    )
    assert FILE.replace("/", "") in image_names(report)
    # The choice and the close look take names from the data, by script.
    report.locator("#lens").select_option(label=HOSTILE)
    assert HOSTILE in report.locator("#lens-row li a").all_inner_texts()
    report.locator("#image-class").select_option(label=HOSTILE)
    until(report, "document.querySelector('#images-asked b') !== null")
    assert (
        report.locator("#images-asked b").inner_text() == f"{HOSTILE}: missed and false positives"
    )
    report.locator("#image-class").select_option(index=0)
    report.locator("#image-find").fill("onerror")
    report.locator("#image-table tbody a").first.click()
    assert report.locator("#viewer-title").inner_text() == FILE.replace("/", "")
    assert report.evaluate("document.scripts.length") == 2


def test_terms_explain_themselves(report, new_page, report_url):
    """By keyboard and mouse here, by touch on a phone; sorting has a button of its own."""
    term = report.locator("#class-table .term", has_text="Precision")
    definition = report.locator("#term-precision")
    assert definition.is_hidden()
    term.press("Enter")
    definition.wait_for()
    assert "TP / (TP + FP)" in definition.inner_text()
    report.keyboard.press("Escape")
    definition.wait_for(state="hidden")
    term.press("Enter")
    definition.wait_for()
    report.evaluate("scrollBy(0, 20)")
    definition.wait_for(state="hidden")
    term.hover()
    definition.wait_for()
    report.locator("h1").hover()
    definition.wait_for(state="hidden")
    assert report.locator("#class-table [aria-sort]").count() == 0
    phone = new_page(viewport={"width": 390, "height": 800}, has_touch=True, is_mobile=True)
    phone.goto(report_url)
    phone.locator("#class-table .term", has_text="IoU").tap()
    definition = phone.locator("#term-iou")
    definition.wait_for()  # a tap becomes a click later
    box = definition.bounding_box()
    assert box["x"] >= 0 and box["x"] + box["width"] <= 390


def test_keys_show_names_and_definitions_whole(new_page, report_url):
    page = new_page(viewport={"width": 400, "height": 500})
    page.goto(report_url)
    page.locator("#confusion-table thead button").last.focus()
    scroller = page.locator("#confusions .scroller.short").first
    assert scroller.evaluate("(node) => node.scrollLeft") > 0
    page.keyboard.press("Tab")
    name = page.evaluate("document.activeElement.getBoundingClientRect().left")
    assert name >= scroller.bounding_box()["x"]
    term = page.locator("#class-table .term").first
    term.evaluate("(node) => node.scrollIntoView({ block: 'end', behavior: 'instant' })")
    term.press("Enter")
    definition = page.locator("#term-iou").bounding_box()
    assert 0 <= definition["y"] <= term.bounding_box()["y"] - definition["height"]
    page.keyboard.press("Escape")
    assert page.locator("#term-iou").is_hidden()


def test_page_without_script_still_shows_its_numbers(new_page, report_url):
    page = new_page(java_script_enabled=False)
    page.goto(report_url)
    assert page.locator("#class-table tbody tr").count() == 5
    assert page.locator("#confusion-table tbody tr").count() > 3
    # Nothing is shown that needs scripts; definitions of terms do not.
    assert page.locator("#content button:visible:not(.term, .sort)").count() == 0
    assert page.locator(":is(select, input, #viewer):visible").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(new_page, report_url, accessibility_faults, until, scheme):
    page = new_page(color_scheme=scheme)
    page.goto(report_url)
    page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    assert accessibility_faults(page) == []
    page.evaluate("location.hash = '#c=car&image=scene_0'")
    until(page, "document.querySelectorAll('#viewer-panels canvas').length === 4")
    assert accessibility_faults(page) == []
    page.locator("#viewer-enlarge").click()
    assert accessibility_faults(page) == []


def test_nothing_is_wider_than_the_screen(new_page, report_url):
    page = new_page()
    page.goto(report_url)
    for width in (320, 400, 768, 1280):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_nothing_is_wider_than_the_screen_before_a_resize_is_heard(new_page, report_url):
    page = new_page(viewport={"width": 900, "height": 800})
    deaf = "addEventListener('resize', (event) => event.stopImmediatePropagation(), true)"
    page.add_init_script(deaf)
    page.goto(report_url)
    for width in (1280, 700, 1000, 320):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
