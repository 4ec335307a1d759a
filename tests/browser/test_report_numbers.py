"""Numbers that a page computes by script, which are those of the report to the last digit."""

import numpy as np
import pytest

import segiou
from segiou.report import write_comparison_html, write_html


@pytest.fixture(scope="module")
def page_of(tmp_path_factory):
    """Write the page of truth and predictions by image, and return its address."""

    def url(truth, pred, **options):
        run = segiou.score(truth, pred, **options)
        path = tmp_path_factory.mktemp("numbers") / "report.html"
        return write_html(path, run.report(), run=run).as_uri()

    return url


def cells(page, column):
    return page.locator(f"#image-table tbody td:nth-child({column})").all_inner_texts()


@pytest.fixture(scope="module")
def in_eighths():
    """Truths of 32 of 64 pixels, and predictions of k of them: the IoU is k/32, often a tie."""
    truth = {f"t{k}": np.arange(64).reshape(8, 8) < 32 for k in (1, 3, 5, 7)}
    pred = {id: np.arange(64).reshape(8, 8) < int(id[1:]) for id in truth}
    return truth, pred


def test_ties_are_rounded_as_in_tables(page, page_of, in_eighths, until):
    """1/32 is 3.125 %, which Python writes as 3.12 and toFixed as 3.13."""
    page.goto(page_of(*in_eighths, labels=["other", "field"]) + "#c=field")
    until(page, "document.querySelectorAll('#image-table tbody td').length === 12")
    assert sorted(cells(page, 3)) == ["15.62 %", "21.88 %", "3.12 %", "9.38 %"]
    page.locator("#lens").select_option("field")
    assert page.locator("#lens-row .of").all_inner_texts() == ["87.50 %", "12.50 %"]


def test_the_range_of_a_bar_is_that_of_its_label(page, page_of, in_eighths, until):
    page.goto(page_of(*in_eighths, labels=["other", "field"]))
    bar = page.locator(".histogram a").first
    label = bar.get_attribute("aria-label")
    bar.press("Enter")
    until(page, "document.querySelector('#images-asked b') !== null")
    asked = page.locator("#images-asked b").inner_text()
    assert asked == f"mean IoU {label.partition(':')[0]}" == "mean IoU 25.00 to 30.00 %"


@pytest.fixture(scope="module")
def compared_url(tmp_path_factory, in_eighths):
    """Two models: one image has no score, one the same, one is worse by 1/3, two hardly differ."""
    truth = {f"i{k}": np.repeat([[0, 1]], 1000, 0) for k in range(5)}
    truth["i0"] = np.full((1000, 2), 255)
    runs = []
    for model in (0, 1):
        pred = {id: np.repeat([[0, 1]], 1000, 0) for id in truth}
        pred["i2"][:500, 0] = model
        pred["i3"][: 20 + model, 0] = 1
        runs.append(segiou.score(truth, pred, labels=2, ignore=255, name=f"m{model}"))
    path = tmp_path_factory.mktemp("compared") / "comparison.html"
    comparison = segiou.compare(runs[0], runs[1])
    return write_comparison_html(path, comparison, *runs).as_uri()


def test_differences_are_signed_as_in_tables_and_undefined_ones_come_last(
    page, compared_url, until
):
    page.goto(compared_url)
    assert page.locator("#image-table .name").all_inner_texts() == ["i2", "i3", "i1", "i4", "i0"]
    assert cells(page, 4) == ["−41.67", "−0.10", "0.00", "0.00", "–"]
    bar = page.locator(".histogram a").first
    label = bar.get_attribute("aria-label")
    bar.press("Enter")
    until(page, "document.querySelector('#images-asked b') !== null")
    asked = page.locator("#images-asked b").inner_text()
    assert asked == f"difference {label.partition(':')[0]}"
    assert asked.startswith("difference −") and asked.endswith(" points")


@pytest.mark.needs("measures.surfaces")
def test_infinite_distances_are_sorted_before_undefined_ones(page, page_of):
    """Missed structures are infinitely far, absent ones undefined, which comes last either way."""
    organ, gland = np.zeros((2, 16, 16), int)
    organ[2:6, 2:6], gland[9:13, 2:6] = 1, 2
    truth = {"a": organ, "b": organ + gland, "c": organ + gland, "d": organ + gland}
    pred = {"a": 0 * organ, "b": organ, "c": organ + np.roll(gland, 3, 1), "d": organ + gland}
    page.goto(page_of(truth, pred, labels=["other", "organ", "gland"], surfaces=True))
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    table = page.locator("table[id*=hausdorff_95]")
    assert table.locator("tbody th").all_inner_texts() == ["a", "b", "c", "d"]
    seen = {}
    for _ in range(2):
        table.locator("th button", has_text="gland").click()
        order = table.locator("th[aria-sort]").get_attribute("aria-sort")
        seen[order] = table.locator("tbody th").all_inner_texts()
    assert seen == {"ascending": ["d", "c", "b", "a"], "descending": ["b", "c", "d", "a"]}


def test_a_shortened_name_keeps_what_differs(page, page_of):
    """Both ends that the names share may be the same characters."""
    names = ["patient_000000001_run_scan_label", "patient_000000001_run_run_scan_label"]
    page.goto(
        page_of({name: [[0, 1]] for name in names}, {name: [[0, 1]] for name in names}, labels=2)
    )
    shown = page.locator("#image-table .name").all_inner_texts()
    assert [name.replace("\N{WORD JOINER}", "") for name in shown] == [
        "…run_scan…",
        "…scan…",
    ]


RIGHT_TO_LEFT = ("שלום", "עולם")


def test_names_from_right_to_left_leave_numbers_and_names_in_their_order(page, page_of, until):
    """Without isolation, "X 75 %" of a Hebrew X reads "75 X %", and "X, Y" reads "Y, X"."""
    rng = np.random.default_rng(0)
    truth = {name: rng.integers(0, 3, (20, 20)) for name in RIGHT_TO_LEFT}
    pred = {name: np.where(rng.random((20, 20)) < 0.2, 0, mask) for name, mask in truth.items()}
    page.goto(page_of(truth, pred, labels=["road", *RIGHT_TO_LEFT]) + f"#c={RIGHT_TO_LEFT[0]}")
    until(page, "document.getElementById('viewer-facts').textContent.includes('IoU of')")
    left_of = """([selector, texts]) => texts.map((text) => {
        const walker = document.createTreeWalker(document.querySelector(selector), 4);
        let start = 0;
        for (let node = walker.nextNode(); node; node = walker.nextNode()) {
            const at = node.data.indexOf(text);
            if (at < 0) continue;
            const range = document.createRange();
            range.setStart(node, at);
            range.setEnd(node, at + text.length);
            return range.getBoundingClientRect().left;
        }
    })"""
    facts = page.locator("#viewer-facts").inner_text()
    number = facts.rpartition("IoU of")[2].split()[1]
    hebrew, then = page.evaluate(left_of, ["#viewer-facts", [RIGHT_TO_LEFT[0], number]])
    assert hebrew < then
    links = page.locator(".next-steps li").first.locator("a").all()[:2]
    assert [link.inner_text() for link in links] != []
    boxes = [link.bounding_box() for link in links]
    assert boxes[0]["x"] < boxes[1]["x"] or boxes[0]["y"] < boxes[1]["y"]
    page.locator("details summary", has_text="Confusion matrix as a table").click()
    row = ".matrix-table tbody tr:nth-child(2) td.text"
    named, counted = page.locator(row).inner_text().split(";")[0].strip().split(" ")
    name, number = page.evaluate(left_of, [row, [named, counted]])
    assert name < number
