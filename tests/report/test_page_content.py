"""Order, words and commands of the pages of volumes, scores and comparisons."""

import re
from html import unescape

import numpy as np
import pytest
from command import FIXTURES
from deletable import kind_of_scores

import segiou
from segiou.labels import LabelSet
from segiou.report import render_comparison
from segiou.report.pages.page import BACKGROUND_COLOR, class_colors

VOLUMES = FIXTURES / "volumes"


def text_of(page):
    """The text of a page without markup, in the order of the page."""
    main = page[page.index("<main") : page.index("</main>")]
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", main)).split())


def headings(page):
    return [unescape(text) for text in re.findall(r"<h2[^>]*>(.*?)</h2>", page)]


@pytest.fixture(scope="module")
def volumes():
    pytest.importorskip("nibabel", reason="volumes are NIfTI files")
    kind_of_scores("surfaces")
    return [
        segiou.score_folder(
            VOLUMES / "truth",
            VOLUMES / name,
            labels=VOLUMES / "dataset.json",
            measures=["surfaces"],
        )
        for name in ("model_a", "model_b")
    ]


def test_volumes_show_dice_distances_and_cases_before_confusions(volumes):
    found = headings(volumes[0].to_html())
    assert found == [
        *("Costliest errors", "Dice over cases", "Surface distances", "Cases"),
        *("Classes", "Accuracy vs IoU", "Confusions", "Method"),
    ]


def test_pooled_dice_is_not_called_the_mean_of_the_cases(volumes):
    # Its name is also unlike that of the pooled Dice of the structures, without background.
    report = volumes[0].report()
    shown = f"{100 * report.mean_dice:.2f} %"
    name, text = "pooled Dice with background", " ".join(report.to_text().split())
    assert f"{name} {shown} mean over the same classes" in text
    assert (
        f"{name[0].upper()}{name[1:]} mean of 2TP / (2TP + FP + FN) over classes {shown}"
        in text_of(volumes[0].to_html())
    )
    text = " ".join(volumes[0].excluding("background").report().to_text().split())
    assert "pooled Dice with" not in text and "pooled Dice" in text


@pytest.mark.parametrize(
    ("empty", "name"), [({}, "Dice, mean over cases"), ({"dice": (1, 0, 0)}, "Dice mean")]
)
def test_dice_over_cases_has_one_name_unless_empty_masks_count_differently(volumes, empty, name):
    surfaces = kind_of_scores("surfaces").SurfaceOptions(empty=empty)
    folders = VOLUMES / "truth", VOLUMES / "model_a"
    run = segiou.score_folder(*folders, labels=VOLUMES / "dataset.json", measures=[surfaces])
    lines = run.report().to_text(width=2000).splitlines()
    own, of_surfaces = (
        [re.split(" {2,}", line) for line in lines[at : at + 5]]
        for at, line in enumerate(lines)
        if line.startswith("structure")
    )
    (place,) = (i for i, head in enumerate(of_surfaces[0]) if head.startswith("Dice"))
    assert of_surfaces[0][place] == name
    same = [row[1] for row in own[2:]] == [row[place] for row in of_surfaces[2:]]
    assert same == (own[0][1] == name)


def test_volumes_are_cases_in_pages_and_text(volumes):
    compared = segiou.compare(*volumes, groups="none")
    report = volumes[0].report(intervals=volumes[0].intervals(groups="none"), worst=2)
    for text in (
        text_of(volumes[0].to_html()),
        text_of(render_comparison(compared, *volumes)),
        report.to_text(detail=True),
        report.to_markdown(),
    ):
        text = text.replace(str(FIXTURES), "")  # whose folders may have any name
        assert "10 cases" in text
        assert not re.search(r"\bimages?\b|\bpixels?\b", text, re.IGNORECASE)


def test_rankings_and_slices_of_volumes_are_over_cases(volumes):
    halves = {id: "ab"[i % 2] for i, id in enumerate(volumes[0].ids)}
    ranking = segiou.analysis.rank(volumes, groups="none")
    for found in (ranking, volumes[0].slices(halves, groups="none")):
        assert "cases" in str(found)
        assert not re.search(r"image|pixel", str(found))
    assert repr(ranking).endswith(": 10 cases>")


def test_background_has_a_muted_color():
    colors = class_colors(LabelSet.from_names(["Background", "cell"]))
    assert colors[0] == BACKGROUND_COLOR
    assert colors[1] != BACKGROUND_COLOR


def test_scores_come_first_and_the_worst_class_first_of_them(tmp_path):
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, (4, 8, 8))
    scores = np.eye(3)[truth] + rng.random((4, 8, 8, 3)) * [3, 0.1, 0.5]
    scores /= scores.sum(-1, keepdims=True)
    for side in ("truth", "scores"):
        (tmp_path / side).mkdir()
    for i in range(4):
        np.save(tmp_path / "truth" / f"{i}.npy", truth[i])
        np.save(tmp_path / "scores" / f"{i}.npy", scores[i])
    names = ["good", "bad", "fair"]
    run = segiou.score_folder(
        tmp_path / "truth", tmp_path / "scores", labels=names, measures=["scores"]
    )
    page = run.to_html()
    assert headings(page)[1:3] == ["Scores", "Classes"]
    section = page[page.index('<section id="scores"') : page.index('<section id="classes"')]
    names = re.findall(r'<th scope="row"><span class="name">(\w+)', section)
    rows = run.report().scores_by_name["average_precision"].rows
    worst_first = sorted(rows, key=rows.get)
    assert worst_first != [*rows]
    assert names == [*worst_first, "mean"]
    assert re.findall(r"<option>(\w+)</option>", section) == worst_first


def test_interval_names_its_units_and_the_caution_has_a_box(volumes):
    def hero_of(run):
        page = run.to_html()
        return page[page.index('<div class="hero">') : page.index("</section>")]

    hero = hero_of(volumes[0])
    assert "over 10 cases" in text_of(f"<main{hero}</main>")
    assert "Caution" not in hero  # case_01 to case_10 are no frames
    truth, ids = np.arange(120).reshape(12, 1, 10) % 2, [f"frame_{5 * i:03d}" for i in range(12)]
    hero = hero_of(segiou.score(truth, 0 * truth, labels=2, ids=ids))
    box = re.search(r'<p class="caution"><b>Caution.</b> (.*?)</p>', hero)
    assert "Dependence cannot be judged from" in box[1]


def test_pages_list_the_worst_images_that_were_asked_for(volumes):
    run = volumes[0]
    page = run.report(worst=2, worst_by="dice:tumour").to_html(run=run)
    assert "Worst cases by Dice, tumour" in text_of(page)
    section = page[page.index('id="worst-title"') :]
    rows = run.worst(2, by="dice:tumour")
    links = re.findall(r'<a href="#image=([^"]*)">', section)[:2]
    assert links == [row["id"] for row in rows]
    shown = re.findall(r'<td class="number">([\d.]+)', section)[:2]
    assert shown == [f"{100 * row['dice:tumour']:.2f}" for row in rows]
    assert "worst-title" not in run.report().to_html(run=run)


def test_columns_of_measures_are_explained_like_those_of_pixels(volumes):
    page = volumes[0].report().to_html(columns="dice,hausdorff_95")
    about = re.search(r'id="term-hausdorff_95">(.*?)</div>', page)[1]
    assert about.strip().startswith("Cases in which each structure was found, missed")
    assert 'popovertarget="term-hausdorff_95"' in page
    assert 'popovertarget="term-dice"' in page


def test_the_interval_of_kappa_is_a_coefficient_as_kappa_is():
    truth, pred = [[[0, 1], [1, 1]], [[0, 1], [0, 1]]] * 4, [[[0, 1], [1, 0]], [[0, 1], [0, 1]]] * 4
    run = segiou.score(truth, pred, labels=["road", "car"])
    kappa = run.intervals("cohen_kappa")
    low, high = kappa.overall.low, kappa.overall.high
    shown = text_of(run.report().to_html(run=run, intervals=[kappa]))
    assert f"agreement beyond chance 0.7500 {low:.4f} to {high:.4f} " in shown


def test_the_confusion_that_is_left_is_one_other():
    """Class 0 is predicted as 13 classes, of which the table has the largest 12."""
    truth, pred = np.zeros((1, 14), int), np.minimum(np.arange(14), 12)[None]
    page = segiou.score([truth], [pred], labels=13).report().to_html()
    assert "; 10 1; 1 other 1 " in text_of(page)


def test_numbers_stay_behind_names_from_right_to_left():
    """Browsers move numbers across such names, unless these are isolated."""
    truth, pred = [[0, 0, 0, 1, 1, 1]], [[0, 0, 1, 1, 1, 0]]
    page = segiou.score([truth], [pred], labels=["road", "\u05e2\u05e5"]).report().to_html()
    verdict = re.search(r'<p class="verdict">(.*?)</p>', page)[1]
    assert "<bdi>\u05e2\u05e5</bdi>" in verdict
    assert "<bdi>\u05e2\u05e5</bdi> 2; <bdi>road</bdi> 1" in page
