"""The comparison of two runs in a headless Chromium."""

import numpy as np
import pytest
from PIL import Image

import segiou
from segiou import compare
from segiou.report import render_comparison

NAMES = ["road", "car", "<img src=x onerror=alert(1)>"]
TRUTH = np.array([[0, 0, 1, 1, 255, 2]] * 3, np.uint8)
FIRST = np.array([[0, 1, 1, 0, 0, 2]] * 3, np.uint8)
SECOND = np.array([[0, 0, 0, 0, 0, 1]] * 3, np.uint8)
PAPER, IGNORED, BOTH = [238, 236, 230], [176, 176, 176], [22, 158, 132]
ONLY_FIRST, ONLY_SECOND, NEITHER = [243, 138, 34], [31, 105, 214], [64, 58, 66]


@pytest.fixture(scope="module")
def comparison_url(tmp_path_factory):
    folder = tmp_path_factory.mktemp("comparison")
    rng = np.random.default_rng(1)
    for number in range(6):
        masks = {"truth": rng.choice(3, (3, 6)).astype(np.uint8)}
        for name, rate in (("first", 0.4), ("second", 0.2)):
            noise = rng.choice(3, (3, 6)).astype(np.uint8)
            masks[name] = np.where(rng.random((3, 6)) < rate, noise, masks["truth"])
        if number == 0:
            masks = {"truth": TRUTH, "first": FIRST, "second": SECOND}
        for name, mask in masks.items():
            (folder / name).mkdir(exist_ok=True)
            Image.fromarray(mask).save(folder / name / f"scene_{number}.png")
    labels = segiou.LabelSet.from_names(NAMES, ignore=255)
    runs = [
        segiou.score_folder(folder / "truth", folder / name, labels=labels)
        for name in ("first", "second")
    ]
    found = compare(*runs, resamples=200, permutations=200)
    path = folder / "comparison.html"
    path.write_text(render_comparison(found, *runs), encoding="utf-8")
    return path.as_uri()


@pytest.fixture
def comparison(page, comparison_url):
    page.goto(comparison_url)
    return page


def test_classes_are_sorted_and_filtered(comparison):
    assert comparison.locator("h1").inner_text() == "second vs first"
    button = comparison.locator("#class-table thead").get_by_role("button", name="second − first")
    button.click()
    cells = comparison.locator("#class-table tbody tr td:nth-child(4)").all_inner_texts()
    values = [float(text.replace("−", "-")) for text in cells]
    assert values == sorted(values, reverse=True)
    comparison.locator("#classes .find").fill("onerror")
    assert comparison.locator("#class-table tbody tr:visible").count() == 1


def first_row(page):
    return page.evaluate(
        """() => {
            const canvas = [...document.querySelectorAll("#viewer-panels canvas")].at(-1);
            const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, 1);
            return [...Array(canvas.width).keys()].map((x) => [...data.slice(4 * x, 4 * x + 3)]);
        }"""
    )


#: Of car, the second model alone predicts it at the last pixel, wrongly.
BY_QUESTION = {
    "#image=scene_0": [PAPER, ONLY_SECOND, ONLY_FIRST, NEITHER, IGNORED, ONLY_FIRST],
    "#c=car&image=scene_0": [PAPER, ONLY_SECOND, ONLY_FIRST, NEITHER, IGNORED, ONLY_FIRST],
    "#c=road&image=scene_0": [BOTH, ONLY_SECOND, ONLY_FIRST, NEITHER, IGNORED, PAPER],
    # Pixels of both, and of one model alone, in its colour.
    "#t=car&p=road&image=scene_0": [PAPER, PAPER, ONLY_FIRST, NEITHER, IGNORED, PAPER],
    "#t=road&p=road&image=scene_0": [BOTH, ONLY_SECOND, PAPER, PAPER, IGNORED, PAPER],
}


@pytest.mark.parametrize("address", BY_QUESTION)
def test_difference_tells_which_of_the_two_is_right(comparison, until, address):
    comparison.evaluate("(hash) => { location.hash = hash; }", address)
    until(comparison, f"document.getElementById('viewer').dataset.shown === '{address[1:]}'")
    assert first_row(comparison) == BY_QUESTION[address]


def test_images_that_differ_most_come_first(comparison):
    texts = comparison.locator("#image-table tbody td:nth-child(4)").all_inner_texts()
    differences = [abs(float(text.replace("−", "-"))) for text in texts]
    assert differences == sorted(differences, reverse=True)
    heads = comparison.locator("#image-table thead button").all_inner_texts()
    assert heads == ["Image", "first", "second", "Difference", "Wrong pixels, first / second"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(new_page, comparison_url, accessibility_faults, scheme):
    page = new_page(color_scheme=scheme)
    page.goto(comparison_url)
    assert accessibility_faults(page) == []
    page.set_viewport_size({"width": 400, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 400


LONG = "mask2former_swin_large_384_in21k_cityscapes_90k_steps_seed_1" * 2


@pytest.fixture(scope="module")
def ranked_url(tmp_path_factory):
    """Three models by distances: the first misses image 0, the second 1 and 2, both 3."""
    truth = np.zeros((8, 8, 12), np.uint8)
    truth[:, 2:6, 2:6] = 1
    preds = [np.roll(truth, shift, 2) for shift in (0, 1, 3)]
    preds[0][[0, 3]] = preds[1][1:4] = 0
    names = [LONG, "<b>b</b>", "c"]
    runs = [
        segiou.score(truth, pred, labels=2, exclude=["0"], surfaces=True, name=name)
        for name, pred in zip(names, preds, strict=True)
    ]
    found = compare(*runs, metric="hausdorff_95", resamples=100, permutations=100)
    path = tmp_path_factory.mktemp("ranked") / "page.html"
    path.write_text(render_comparison(found, *runs[:2]), encoding="utf-8")
    return path.as_uri()


@pytest.mark.needs("measures.surfaces")
def test_pairs_and_images_are_sorted_with_infinite_distances(page, ranked_url):
    page.goto(ranked_url)
    page.locator("#pair-table").get_by_role("button", name="Difference, px").click()
    differences = page.locator("#pair-table td:nth-child(2)").all_inner_texts()
    # Medians over the images: 0, 1 and 3.
    assert differences == ["+3.00", "+2.00", "+1.00"]
    head = page.locator("#image-table thead").get_by_role("button", name="Difference")
    cells = page.locator("#image-table tbody td.difference")
    finite = ["+1.00"] * 4
    assert cells.all_inner_texts() == ["−∞", "+∞", "+∞", *finite, "–"]
    head.click()
    assert cells.all_inner_texts() == ["−∞", *finite, "+∞", "+∞", "–"]
    head.click()
    assert cells.all_inner_texts() == ["+∞", "+∞", *finite, "−∞", "–"]
    assert page.locator("#image-table tbody td.score1").all_inner_texts()[:3] == [
        "∞ px",
        "∞ px",
        "1.00 px",
    ]


@pytest.mark.needs("measures.surfaces")
@pytest.mark.parametrize("width", [360, 1280])
def test_long_names_of_models_fit(new_page, ranked_url, accessibility_faults, width):
    page = new_page(viewport={"width": width, "height": 800})
    page.goto(ranked_url)
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert accessibility_faults(page) == []
