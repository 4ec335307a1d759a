"""The classes of a page: their table, the heat map of their confusions, and one class closely."""

import pytest
from hostile_page import HOSTILE, NAMES, class_names, percentage


def test_classes_are_sorted_by_a_click(report):
    head = report.locator("#class-table thead th").nth(1)
    button = head.get_by_role("button", name="Sort by IoU")
    in_order = class_names(report)
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
    assert class_names(report) == in_order
    report.locator("#class-table thead").get_by_role("button", name="Class").click()
    assert class_names(report) == [HOSTILE, "car", NAMES[3], "road"]


def test_what_is_undefined_comes_last_either_way(report):
    report.locator(".hide-absent").uncheck()
    button = report.locator("#class-table thead").get_by_role("button", name="Sort by IoU")
    for _ in range(2):
        button.click()
        assert class_names(report)[-1] == "bus"


def test_classes_are_filtered(report):
    assert "bus" not in class_names(report)
    find = report.locator("#classes .find")
    find.fill("CAR")
    assert class_names(report) == ["car"]
    assert report.locator("#classes .found").inner_text() == "1 of 5"
    # Who asks for an absent class finds it.
    find.fill("bus")
    assert class_names(report) == ["bus"]
    find.fill("")
    report.locator(".hide-absent").uncheck()
    assert len(class_names(report)) == 5


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
    assert first.locator("a").inner_text() == "car"
    shares = report.locator("#lens-column .of").all_inner_texts()
    total = sum(float(text.split()[0].lstrip("<")) for text in shares)
    assert total == pytest.approx(100, abs=0.5)


def test_a_click_on_the_matrix_leads_to_the_images(report, until):
    cell = report.evaluate(
        """() => {
            const map = document.getElementById("heat-map");
            map.scrollIntoView();
            const place = new DOMPoint(1.5 * (600 / 5), 0.5 * (600 / 5));
            const { x, y } = place.matrixTransform(map.getScreenCTM());
            return [x, y];
        }"""
    )
    report.mouse.click(*cell)
    until(report, "location.hash === '#t=road&p=car'")
