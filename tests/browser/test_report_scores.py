"""Curves of scores in the page: a class is chosen, and a slider moves its threshold."""

import numpy as np
import pytest

import segiou
from segiou.histograms import ScoreOptions
from segiou.report import write_html


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    # Of "cell", thresholds 0, .25, .5, .75: TP 2 2 2 1, FP 3 2 1 0.
    truth, scores = np.array([[0, 0, 0, 1, 1]]), np.array([[0.1, 0.3, 0.6, 0.6, 0.9]])
    run = segiou.score(
        [truth],
        [np.stack([1 - scores, scores])],
        labels=["other", "cell"],
        argmax=0,
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
