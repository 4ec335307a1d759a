"""Scores in the page: curves of a class with a slider of its threshold, and scores of an image."""

import numpy as np
import pytest
from PIL import Image

import segiou
from segiou.measures.scores import ScoreOptions
from segiou.report import write_html


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    # Of "cell", thresholds 0, .25, .5, .75: TP 2 2 2 1, FP 3 2 1 0.
    truth, scores = np.array([[0, 0, 0, 1, 1]]), np.array([[0.1, 0.3, 0.6, 0.6, 0.9]])
    run = segiou.score(
        [truth],
        [np.stack([1 - scores, scores])],
        labels=["other", "cell"],
        argmax=1,
        measures=[ScoreOptions(bins=4)],
    )
    path = tmp_path_factory.mktemp("scores") / "page.html"
    return write_html(path, run.report(), run=run).as_uri()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_slider_moves_the_threshold_of_a_class(new_page, accessibility_faults, url, scheme):
    page = new_page(viewport={"width": 400, "height": 800}, color_scheme=scheme)
    page.goto(url)
    curves = page.get_by_role("group", name="Curves of a class")
    curves.get_by_role("combobox", name="Class").select_option("cell")
    slider = curves.get_by_role("slider", name="Threshold")

    def shown():
        return curves.locator("dd").all_inner_texts()

    assert shown() == ["0.5", "66.67 %", "66.67 %", "100.00 %"]
    slider.press("ArrowRight")
    assert shown() == ["0.75", "50.00 %", "100.00 %", "50.00 %"]
    assert "IoU 50.00 %" in slider.get_attribute("aria-valuetext")
    curves.get_by_role("button", name="Best threshold: 0.5").click()
    assert shown()[0] == "0.5"
    assert curves.get_by_role("img").count() == 3
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    assert not accessibility_faults(page)


YELLOW = [253, 231, 37]


@pytest.fixture(scope="module")
def files_url(tmp_path_factory):
    # Scores of "cell", .1 .3 .6 .6 1 and the other way round.
    folder = tmp_path_factory.mktemp("files")
    for name in ("truth", "scores"):
        (folder / name).mkdir()
    for name, step in (("a", 1), ("b", -1)):
        scores = np.array([[0.1, 0.3, 0.6, 0.6, 1.0]])[:, ::step]
        Image.fromarray(np.array([[0, 0, 0, 1, 1]], np.uint8)[:, ::step]).save(
            folder / "truth" / f"{name}.png"
        )
        np.save(folder / "scores" / f"{name}.npy", scores)
    run = segiou.score_folder(
        folder / "truth",
        folder / "scores",
        labels=["other", "cell"],
        measures=[ScoreOptions(bins=4, threshold=0.5)],
    )
    return write_html(folder / "page.html", run.report(), run=run).as_uri()


def drawn(page):
    return page.evaluate(
        """() => {
            const canvas = [...document.querySelectorAll("#viewer-panels figure")]
                .find((node) => node.textContent.startsWith("score of")).querySelector("canvas");
            const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, 1);
            return [...Array(canvas.width).keys()].map((x) => [...data.slice(4 * x, 4 * x + 3)]);
        }"""
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_an_image_shows_the_scores_of_a_class(
    new_page, accessibility_faults, until, files_url, scheme
):
    page = new_page(viewport={"width": 400, "height": 800}, color_scheme=scheme)
    page.goto(f"{files_url}#c=cell&image=a")
    until(page, "document.querySelector('#viewer-scores').textContent.includes('cell')")
    threshold = page.locator("#viewer").get_by_role("slider", name="Threshold")
    # That of the curves, the best.
    assert threshold.input_value() == "50"
    colors = drawn(page)
    assert [len({*color}) == 1 for color in colors] == [True, True, False, False, False]
    assert colors[4] == YELLOW
    page.locator("#viewer-panels canvas").last.hover(position={"x": 5, "y": 5})
    readout = "truth: other · prediction: other · score of cell: 0.10"
    assert page.locator("#viewer-readout").inner_text() == readout
    threshold.fill("65")
    assert [len({*color}) == 1 for color in drawn(page)] == [True] * 4 + [False]
    assert threshold.get_attribute("aria-valuetext") == "0.65"
    curves = page.get_by_role("group", name="Curves of a class")
    curves.get_by_role("combobox", name="Class").select_option("cell")
    curves.get_by_role("slider", name="Threshold").press("ArrowRight")
    assert threshold.input_value() == "75"
    assert not accessibility_faults(page)
    page.get_by_role("button", name="Next").click()
    until(page, "document.querySelector('#viewer-title').textContent === 'b'")
    until(page, "document.querySelector('#viewer').dataset.shown.endsWith('=b')")
    assert drawn(page)[0] == YELLOW
    choice = page.locator("#scores-class")
    choice.select_option("other")
    until(page, "document.querySelector('#viewer-scores').textContent.includes('other')")
    assert drawn(page)[4] != YELLOW
    choice.select_option("none")
    until(page, "document.querySelector('#viewer-scores').textContent === ''")
    assert page.locator("#viewer-panels figure").count() == 3
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
