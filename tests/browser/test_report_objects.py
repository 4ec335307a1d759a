"""Objects in the page: listed, drawn as found, missed and invented, and filtered by size."""

import numpy as np
import pytest
from PIL import Image

import segiou
from segiou.measures.objects import ObjectOptions
from segiou.report import write_html

# Three rows of this. Cars of 12, 3 and 6 pixels: found, missed, missed where one of 3 is invented;
# another of 3 is invented, and one of 6 on what is ignored is forgiven.
TRUTH = "1111 0 1 0 11 0000 0 99"
PRED = "1111 0 0 0 01 0010 0 11"
TP, FN, FP, WRONG = [22, 158, 132], [31, 105, 214], [243, 138, 34], [210, 54, 84]
IGNORED, PAPER = [176, 176, 176], [238, 236, 230]


def mask(text):
    return np.array([[int(letter) for letter in text if letter != " "]] * 3, np.uint8)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("objects")
    for side, text in (("truth", TRUTH), ("pred", PRED)):
        (folder / side).mkdir()
        for name, values in (("a", mask(text)), ("b", mask(TRUTH))):
            Image.fromarray(values).save(folder / side / f"{name}.png")
    labels = segiou.LabelSet.from_names(["road", "car"], ignore=9)
    objects = ObjectOptions(things=("car",))
    return segiou.score_folder(
        folder / "truth", folder / "pred", labels=labels, objects=objects, unassigned="count"
    )


@pytest.fixture(scope="module", params=["file", "folder"])
def url(request, run, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / ("page.html" if request.param == "file" else "page/")
    target = f"{path}/" if request.param == "folder" else path
    return write_html(target, run.report(), run=run).as_uri()


def colors(page):
    return page.evaluate(
        """() => {
            const canvas = [...document.querySelectorAll("#viewer-panels figure")]
                .find((node) => node.textContent === "objects").querySelector("canvas");
            const { data } = canvas.getContext("2d").getImageData(0, 1, canvas.width, 1);
            return [...Array(canvas.width).keys()].map((x) => [...data.slice(4 * x, 4 * x + 3)]);
        }"""
    )


def edge(color):
    """The colour of an object where another begins."""
    return [round(0.55 * part) for part in color]


def test_objects_are_drawn_and_filtered(page, until, url):
    page.goto(f"{url}#image=a")
    until(page, "document.querySelector('#viewer-objects').textContent.includes('found')")

    def said():
        lines = page.locator("#viewer-objects").inner_text().split("\n")
        return lines[0], [int(line.split()[-1]) for line in lines[1:5]]

    assert said() == ("Objects:", [1, 2, 2, 1])
    drawn = colors(page)
    assert drawn == [
        *[TP, TP, TP, TP, PAPER, edge(FN), PAPER, edge(FN), edge(WRONG)],
        *[PAPER, PAPER, edge(FP), PAPER, PAPER, edge(IGNORED), IGNORED],
    ]
    page.locator("#objects-to").fill("5")
    assert said() == ("Objects, 0 to 5 pixels:", [0, 1, 2, 0])
    page.locator("#objects-to").fill("")
    page.locator("#objects-from").fill("6")
    assert said() == ("Objects, 6 pixels or more:", [1, 1, 0, 1])
    assert [colors(page)[place] for place in (5, 11, 14)] == [PAPER, PAPER, edge(IGNORED)]
    page.locator("#image-class").select_option(label="road")
    key = "document.querySelector('#viewer-objects').textContent"
    until(page, f"{key} === 'road is a stuff class: its pixels form a single segment.'")


def test_images_are_sorted_by_missed_objects(page, until, url):
    page.goto(url)
    until(page, "document.querySelectorAll('#image-table .name').length === 2")
    page.get_by_role("button", name="Missed objects").click()
    rows = page.locator("#image-table tbody tr[data-number]").all()
    cells = [row.locator("td").all_inner_texts()[1:3] for row in rows]
    assert cells == [["2", "2"], ["0", "0"]]


@pytest.mark.parametrize("url", ["file"], indirect=True)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_and_nothing_is_too_wide(
    new_page, url, accessibility_faults, until, scheme
):
    page = new_page(color_scheme=scheme)
    page.goto(f"{url}#image=a")
    until(page, "document.querySelector('#viewer-objects').textContent.includes('found')")
    assert accessibility_faults(page) == []
    page.locator("#viewer-enlarge").click()
    assert accessibility_faults(page) == []
    page.locator("#viewer-enlarge").click()
    for width in (320, 768, 1280):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
