"""The report in a headless Chromium: sorting, filtering, heat map, gallery, hostile names."""

import json

import numpy as np
import pytest
from PIL import Image

import segiou
from segiou.report.report_page import render_report

HOSTILE = "<script>alert(1)</script>"
NAMES = ["road", "car", HOSTILE, 'pole" onload="alert(2)', "bus"]
FILE = '"><img src=x onerror=alert(3)>'
BREAKOUT = "</script><script>alert(4)</script>"

# Columns: both correct (0), missed (1), false positive (1), ignored, other correct.
TRUTH = np.array([[0, 1, 0, 255, 1, 2, 3, 0]] * 4, np.uint8)
PRED = np.array([[0, 0, 1, 1, 1, 2, 2, 0]] * 4, np.uint8)
TP, FN, FP = [22, 158, 132], [31, 105, 214], [243, 138, 34]
WRONG, IGNORED, PAPER = [210, 54, 84], [176, 176, 176], [238, 236, 230]


@pytest.fixture(scope="module")
def report_url(tmp_path_factory):
    """A report on ten small images, two of them known pixel by pixel."""
    folder = tmp_path_factory.mktemp("report")
    for name in ("truth", "pred", "images"):
        (folder / name).mkdir()
    rng = np.random.default_rng(0)
    for number in range(10):
        # A name with slashes is no file name; the title takes it instead.
        stem = FILE.replace("/", "") if number == 3 else f"scene_{number}"
        truth = rng.choice(5, (4, 8), p=[0.5, 0.2, 0.15, 0.15, 0]).astype(np.uint8)
        pred = np.where(rng.random((4, 8)) < 0.08 * number, 1, truth).astype(np.uint8)
        if number == 9:
            truth, pred = TRUTH, PRED
        Image.fromarray(truth).save(folder / "truth" / f"{stem}.png")
        Image.fromarray(pred).save(folder / "pred" / f"{stem}.png")
    image = np.full((4, 8, 3), 100, np.uint8)
    Image.fromarray(image).save(folder / "images" / "scene_0.png")
    labels = segiou.LabelSet.from_names(NAMES, ignore=255)
    run = segiou.score_folder(folder / "truth", folder / "pred", labels=labels, name=BREAKOUT)
    page = render_report(run.report(), run=run, images=folder / "images")
    path = folder / "report.html"
    path.write_text(page, encoding="utf-8")
    return path.as_uri()


@pytest.fixture
def report(page, report_url):
    page.on("dialog", lambda dialog: pytest.fail(f"a dialog opened: {dialog.message}"))
    page.goto(report_url)
    return page


def column(page, number):
    rows = page.locator("#class-table tbody tr:visible")
    return [
        cell.inner_text().split("\n")[0] for cell in rows.locator(f":nth-child({number})").all()
    ]


def names(page):
    return page.locator("#class-table tbody tr:visible .name").all_inner_texts()


def test_hostile_names_are_only_text(report, until):
    assert names(report)[:4] == NAMES[:4]
    assert report.locator("h1").inner_text() == "script>"
    assert (
        report.locator("main script, main [onerror], main [onload], main img[src=x]").count() == 0
    )
    assert FILE.replace("/", "") in report.locator(".example h3").all_inner_texts()
    # The choice and the close look take names from the data, by script.
    report.locator("#lens").select_option(label=HOSTILE)
    assert HOSTILE in report.locator("#lens-row li span:first-child").all_inner_texts()
    report.locator("[name=gallery-kind][value='']").check(force=True)
    report.locator("#gallery-class").select_option(label=HOSTILE)
    until(report, "document.querySelectorAll('[data-painted=\"2\"]').length === 10")
    assert "alert" not in report.evaluate(
        "document.querySelector('.class-iou').innerHTML.replaceAll('&lt;script&gt;alert(1)', '')"
    )
    assert report.evaluate("document.scripts.length") == 2


def percentage(text):
    return float(text.removesuffix(" %"))


def test_classes_are_sorted_by_a_click(report):
    head = report.locator("#class-table thead th").nth(1)
    button = head.get_by_role("button", name="IoU")
    in_order = names(report)
    button.click()
    assert head.get_attribute("aria-sort") == "descending"
    values = [
        percentage(text)
        for text in report.locator("#class-table tbody tr:visible b").all_inner_texts()
    ]
    assert values == sorted(values, reverse=True)
    button.press("Enter")
    assert head.get_attribute("aria-sort") == "ascending"
    assert [
        percentage(t) for t in report.locator("#class-table tbody tr:visible b").all_inner_texts()
    ] == sorted(values)
    assert "ascending" in report.locator("#live").inner_text()
    button.click()
    assert names(report) == in_order
    report.locator("#class-table thead").get_by_role("button", name="Class").click()
    assert names(report) == [HOSTILE, "car", NAMES[3], "road"]


def test_what_is_undefined_comes_last_either_way(report):
    report.locator(".hide-absent").uncheck()
    button = report.locator("#class-table thead").get_by_role("button", name="IoU")
    for _ in range(2):
        button.click()
        assert names(report)[-1] == "bus"


def test_classes_are_filtered(report):
    assert "bus" not in names(report)
    find = report.locator("#classes .find")
    find.fill("CAR")
    assert names(report) == ["car"]
    assert report.locator("#classes .found").inner_text() == "1 of 5"
    # Who asks for an absent class finds it.
    find.fill("bus")
    assert names(report) == ["bus"]
    find.fill("")
    report.locator(".hide-absent").uncheck()
    assert len(names(report)) == 5


def test_heat_map_has_three_views(report):
    def shown():
        views = ("rows", "columns", "counts")
        return [
            key for key in views if report.locator(f"#heat-map > g.only-{key} rect").is_visible()
        ]

    assert shown() == ["rows"]
    report.get_by_label("by prediction").check(force=True)
    assert shown() == ["columns"]
    assert report.get_by_text("The diagonal is precision").is_visible()
    report.get_by_label("pixels", exact=True).press("ArrowRight")
    assert shown() == ["rows"]


def test_heat_map_reads_the_cell_under_pointer_and_keys(report):
    heat = report.locator("#heat-map")
    heat.focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowRight", "ArrowLeft", "ArrowLeft"):
        heat.press(key)
    readout = report.locator("#heat-readout")
    assert readout.inner_text().startswith("car predicted as road")
    cell = report.evaluate(
        """() => {
            const map = document.getElementById("heat-map");
            const size = 600 / 5;
            const middle = new DOMPoint(1.5 * size, 0.5 * size);
            const { x, y } = middle.matrixTransform(map.getScreenCTM());
            return [x, y];
        }"""
    )
    report.mouse.move(*cell)
    pixels = report.evaluate(
        "JSON.parse(document.getElementById('data').textContent).confusion.matrix[0][1]"
    )
    lines = readout.inner_text().split("\n")
    assert lines[0] == "road predicted as car"
    assert lines[1].replace("\N{NARROW NO-BREAK SPACE}", "") == f"{pixels} pixels"


def test_one_class_is_looked_at_closely(report):
    report.locator("#lens").select_option(label="car")
    first = report.locator("#lens-row li").first
    assert first.locator("span").first.inner_text() == "car"
    shares = report.locator("#lens-column .of").all_inner_texts()
    total = sum(float(text.split()[0].lstrip("<")) for text in shares)
    assert total == pytest.approx(100, abs=0.5)


def canvas_row(page, number):
    """Colours of the first row of an example's overlay."""
    return page.evaluate(
        """(id) => {
            const card = [...document.querySelectorAll(".example")]
                .find((node) => node.querySelector("h3").textContent === id);
            const canvas = card.querySelector(".overlay");
            const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, 1);
            return [...Array(canvas.width).keys()].map((x) => [...data.slice(4 * x, 4 * x + 3)]);
        }""",
        f"scene_{number}",
    )


def test_overlay_shows_what_is_right_and_wrong(report, until):
    report.locator("[name=gallery-kind][value='']").check(force=True)
    until(report, "document.querySelectorAll('[data-painted=all]').length === 10")
    right = PAPER
    assert canvas_row(report, 9) == [right, WRONG, WRONG, IGNORED, right, right, WRONG, right]
    report.locator("#gallery-class").select_option(label="car")
    until(report, "document.querySelectorAll('[data-painted=\"1\"]').length === 10")
    assert canvas_row(report, 9) == [PAPER, FN, FP, IGNORED, TP, PAPER, PAPER, PAPER]
    assert report.locator("#overlay-key span").count() == 3
    # On an image the ground shows through, in grey.
    ground = canvas_row(report, 0)
    assert [120, 120, 120] in ground


def test_gallery_is_chosen_from_ordered_and_opened(report, until):
    cards = report.locator(".example:visible")
    assert cards.count() == 5
    assert set(report.locator(".example:visible .kind").all_inner_texts()) == {"worst"}
    report.locator("[name=gallery-kind][value=best]").check(force=True)
    assert set(report.locator(".example:visible .kind").all_inner_texts()) == {"best"}
    report.locator("#gallery-class").select_option(label="bus")
    assert "bus is not in this image" in cards.first.inner_text()
    report.locator("#gallery-class").select_option(label="car")
    report.locator("#gallery-sort").check()
    ious = [
        percentage(t) for t in report.locator(".example:visible .class-iou b").all_inner_texts()
    ]
    assert ious == sorted(ious)
    title = cards.first.locator("h3").inner_text()
    cards.first.locator(".open").press("Enter")
    viewer = report.locator("#viewer")
    assert viewer.is_visible()
    assert report.locator("#viewer-title").inner_text() == title
    report.keyboard.press("ArrowRight")
    assert report.locator("#viewer-title").inner_text() == cards.nth(1).locator("h3").inner_text()
    report.locator("#viewer-panels canvas").hover()
    until(report, "document.getElementById('viewer-readout').textContent.startsWith('truth: ')")
    report.keyboard.press("Escape")
    assert viewer.is_hidden()


def test_page_without_script_still_shows_its_numbers(new_page, report_url):
    page = new_page(java_script_enabled=False)
    page.goto(report_url)
    assert page.locator("#class-table tbody tr").count() == 5
    assert page.locator("#confusion-table tbody tr").count() > 3


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(new_page, report_url, accessibility_faults, scheme):
    page = new_page(color_scheme=scheme)
    page.goto(report_url)
    page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    assert accessibility_faults(page) == []
    page.locator(".open").first.click()
    assert accessibility_faults(page) == []


def test_nothing_is_wider_than_the_screen(new_page, report_url):
    page = new_page()
    page.goto(report_url)
    for width in (320, 400, 768, 1280):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_on_paper_everything_is_unfolded_and_light(new_page, report_url):
    page = new_page(color_scheme="dark")
    page.goto(report_url)
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
