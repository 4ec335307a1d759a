"""Tables of reports and comparisons as a notebook shows them: sorted by a click or a key."""

import numpy as np
import pytest

import segiou

NAMES = ["road", "car", "pole", "class 10", "class 9"]


def scored(seed):
    rng = np.random.default_rng(seed)
    truth = np.random.default_rng(9).choice(4, (6, 9, 9), p=[0.6, 0.2, 0.1, 0.1])
    pred = np.where(rng.random(truth.shape) < 0.3, rng.integers(0, 4, truth.shape), truth)
    return segiou.score(truth, pred, labels=NAMES)


@pytest.fixture(scope="module")
def run():
    return scored(0)


def show(page, tmp_path, what, scheme="light"):
    ground = "#111;color:#ddd" if scheme == "dark" else "#fff"
    path = tmp_path / "cell.html"
    style = f"font:14px sans-serif;background:{ground}"
    path.write_text(
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>cell</title>'
        f'<body style="{style}"><main><h1>cell</h1>{what._repr_html_()}</main></body></html>',
        encoding="utf-8",
    )
    page.goto(path.as_uri())


def column(page, table, number):
    cells = page.locator(table).locator("tbody").first.locator(f"tr td:nth-child({number})")
    return cells.all_inner_texts()


def test_a_click_on_a_head_sorts_undefined_last(page, tmp_path, run):
    show(page, tmp_path, run)
    names = column(page, "table >> nth=0", 1)
    assert [name.split(" absent")[0] for name in names] == NAMES
    head = page.get_by_role("button", name="IoU", exact=True).first
    for order in ("ascending", "descending"):
        head.click()
        assert page.locator("th[aria-sort]").first.get_attribute("aria-sort") == order
        *defined, last = column(page, "table >> nth=0", 2)
        assert last == "–"
        values = [float(text.removesuffix(" %")) for text in defined]
        assert values == sorted(values, reverse=order == "descending")
    page.get_by_role("button", name="class", exact=True).first.press("Enter")
    assert [name.split(" absent")[0] for name in column(page, "table >> nth=0", 1)] == [
        "car",
        "class 9",
        "class 10",
        "pole",
        "road",
    ]


def test_the_score_of_a_comparison_stays_above_its_classes(page, tmp_path, run):
    found = segiou.compare(run, scored(1), names=("a", "b"), permutations=50)
    show(page, tmp_path, found)
    page.get_by_role("button", name="a", exact=True).first.click()
    assert column(page, "table >> nth=0", 1) == ["mean IoU"]
    classes = page.locator("table >> nth=0").locator("tbody").nth(1).locator("tr td:nth-child(2)")
    *defined, last = classes.all_inner_texts()
    assert last == "–"
    assert defined == sorted(defined, key=lambda text: float(text.removesuffix(" %")))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_fragments_are_accessible_in_both_themes(page, tmp_path, run, accessibility_faults, scheme):
    show(page, tmp_path, run, scheme)
    for summary in page.locator("summary").all():
        summary.click()
    faults = accessibility_faults(page)
    assert faults == []
