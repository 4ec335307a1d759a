"""The comparison's page as text."""

import dataclasses
import json
import re
import warnings
from html import unescape

import numpy as np
import pytest
from mask_files import write_masks

import segiou
from segiou import compare
from segiou.inference.statistics import ScoredImages
from segiou.measures import measure_of
from segiou.report import render_comparison, write_comparison_html

TRUTH = np.random.default_rng(0).integers(0, 3, (8, 6, 6))


def scored(rate, names=("road", "car", "<b>pole</b>"), **options):
    rng = np.random.default_rng(1)
    pred = np.where(rng.random(TRUTH.shape) < rate, 0, TRUTH)
    return segiou.score(TRUTH, pred, labels=list(names), **options)


@pytest.fixture(scope="module")
def runs():
    return scored(0.5, name="out/small"), scored(0.2, name="out/<i>base</i>")


@pytest.fixture(scope="module")
def found(runs):
    return compare(*runs, resamples=100, permutations=100)


def test_page_says_what_the_comparison_holds(runs, found):
    page = render_comparison(found, *runs)
    pair = found.pairs[0]
    assert (
        f"out/&lt;i&gt;base&lt;/i&gt; − out/small: +{100 * pair.overall.delta:.2f} points, " in page
    )
    assert "&lt;b&gt;pole&lt;/b&gt;" in page
    assert "<b>pole" not in page
    assert "out/&lt;i&gt;base&lt;/i&gt; vs out/small" in page
    for difference in pair.classes:
        assert f"{100 * difference.b:.2f} %" in page
    assert "<i>base" not in page


def test_the_page_names_classes_that_the_means_exclude():
    truths = [[[0, 0, 0, 0, 1, 1]]] * 6
    first = segiou.score(truths, [[[0, 0, 0, 1, 1, 1]]] * 6, labels=3, name="x")
    second = segiou.score(truths, [[[0, 0, 0, 1, 1, 2]]] * 6, labels=3, name="y")
    page = render_comparison(compare(first, second), first, second)
    words = " ".join(unescape(re.sub(r"<[^>]+>", "", page)).replace("\u2060", "").split())
    covered = "The means cover the classes that both models score: class 2 has a score for y only."
    assert covered in words.replace("\xa0", " ")


def test_three_models_are_ranked(runs, found):
    third = scored(0.0, name="perfect")
    three = compare(*runs, third, resamples=100, permutations=100)
    page = render_comparison(three, runs[0], third, pair=1)
    assert "Ranking" in page
    assert "2 of 3 models" in page
    opening = page[page.index('id="content"') : page.index('id="ranking"')]
    assert three.outcome(three.best_pair).first == "perfect"
    assert "perfect" in opening
    assert "base" not in opening
    differences = {
        "perfect − out/<i>base</i>": three.pairs[2].overall,  # the best two come first
        "out/<i>base</i> − out/small": three.pairs[0].overall,
        "perfect − out/small": three.pairs[1].overall,
    }
    rows = [row[:2] for row in table_of(page, "pairs-title")[1:]]
    assert rows == [[name, f"+{100 * row.delta:.2f}"] for name, row in differences.items()]
    # Every class and every model, under its own name.
    names = ["out/small", "out/<i>base</i>", "perfect"]
    classes = [
        [row.name, f"{100 * row.a:.2f} %", f"{100 * other.a:.2f} %", f"{100 * other.b:.2f} %"]
        for row, other in zip(three.pairs[0].classes, three.pairs[2].classes, strict=True)
    ]
    assert table_of(page, "models-1")[:-1] == [["Class", *names], *classes]
    accuracy = compare(*runs, third, metric="pixel_accuracy", resamples=100, permutations=100)
    assert 'id="models-1"' not in render_comparison(accuracy, *runs)
    # A box of the images and a row of dots for each model.
    ranking = page[page.index('id="ranking"') : page.index('id="classes"')]
    assert ranking.count('class="box"') == 3
    assert ranking.count("rank 1: ") == 3
    for sentence in three.stability.sentences():
        assert sentence[:20].split("(")[0] in unescape(ranking)
    assert "Ranking" not in render_comparison(found, *runs)


def table_of(page, label):
    """The texts of a table."""
    table = page[page.index(f'aria-labelledby="{label}"') :].partition("</table>")[0]
    cells = (re.findall(r"<t[hd]\b.*?</t[hd]>", row, re.DOTALL) for row in table.split("<tr")[1:])
    return [[unescape(re.sub("<.*?>", "", cell)).strip() for cell in row] for row in cells]


def test_runs_of_other_images_are_refused(runs, found):
    other = runs[1].select(runs[1].ids[:4])
    with pytest.raises(ValueError, match="have different images"):
        render_comparison(found, runs[0], other)
    with pytest.raises(ValueError, match="at least 0, got -2"):
        render_comparison(found, *runs, examples=-2)


def test_equal_runs_give_a_page(runs):
    same = compare(runs[0], runs[0], names=("a", "b"), resamples=50, permutations=50)
    page = render_comparison(same, runs[0], runs[0])
    assert "a and b are identical: mean IoU" in page
    assert "Why pixel accuracy disagrees" not in page


def test_page_is_written(tmp_path, runs, found):
    path = write_comparison_html(tmp_path / "compare.html", found, *runs)
    assert path.read_text(encoding="utf-8") == render_comparison(found, *runs)


def test_differences_of_the_images_are_not_called_losses(runs, found):
    page = render_comparison(found, *runs)
    assert "<dt>Lowest difference, points</dt>" in page
    assert "loss" not in page[page.index('id="images"') : page.index("</dl>")]


@pytest.mark.needs("measures.surfaces")
def test_structures_of_surfaces_keep_their_shares():
    labels = segiou.LabelSet.from_dict(
        {
            "name": "own",
            "classes": [{"name": name, "values": [v]} for v, name in enumerate(("air", "a", "b"))],
            "groups": {"both": ["a", "b"]},
        }
    )
    models = {"one": np.roll(TRUTH, 1, 0), "two": TRUTH}
    own = {"labels": labels, "exclude": ["air"], "surfaces": "medpy"}
    pair = [segiou.score(TRUTH, pred, name=name, **own) for name, pred in models.items()]
    found = compare(*pair, metric="surface_dice", resamples=100, permutations=100)
    page = render_comparison(found, *pair)
    rows = re.findall(r'<th scope="row" data-value="(a|b|both)">.*?</tr>', page, re.DOTALL)
    assert rows == ["a", "b", "both"]
    cells = re.findall(r'data-value="(?:a|b|both)">.*?([\d.]+) %</td>\s*</tr>', page, re.DOTALL)
    shares = [100 * (value == TRUTH).mean() for value in (1, 2)]
    assert cells == [f"{share:.2f}" for share in (*shares, sum(shares))]


def test_training_runs_are_points_behind_their_mean(runs):
    recipes = {"old": [runs[0], scored(0.4), scored(0.6)], "new": [runs[1]]}
    found = compare(recipes, groups="none")
    page = render_comparison(found, runs[0], runs[1])
    track = page[page.index("of 3 training runs") : page.index("of 1 training run<")]
    assert track.count('class="far"') == 3
    assert f"{100 * np.mean(found.run_scores[0]):.2f} %" in track
    assert "training run" not in render_comparison(compare(*runs), *runs).partition("<footer")[0]


@pytest.mark.needs("measures.surfaces")
def test_images_are_compared_by_the_score_of_the_comparison():
    # Bands of columns: 3 of class 1 in the truth, 5 and 4 in the predictions.
    truth, far, near = (np.tile(np.arange(8) < width, (4, 5, 1)).astype(int) for width in (3, 5, 4))
    runs = [
        segiou.score(truth, pred, labels=2, surfaces=True, name=name)
        for pred, name in ((far, "far"), (near, "near"))
    ]
    page = render_comparison(compare(*runs, metric="hausdorff"), *runs)
    images = page[page.index('id="images"') : page.index('id="method"')]
    facts = dict(re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", images))
    assert facts["Images improved"] == "4" and facts["Images worse"] == "0"
    assert facts["Median difference, px"] == "−1.00"
    alike = render_comparison(compare(runs[0], runs[0], names=("a", "b")), runs[0], runs[0])
    assert "<dt>Images improved</dt><dd>0</dd>" in alike
    assert "← near better · far better →" in images
    data = json.loads(
        re.search(r'<script type="application/json" id="data">(.*?)</script>', page)[1]
    )
    assert data["images"]["score"]["unit"] == "px"
    assert data["images"]["scores"] == [[2.0] * 4, [1.0] * 4]


def test_infinite_scores_of_images_are_not_drawn(runs, found, monkeypatch):
    values = np.array([np.inf, 0.5, 1.0, np.inf, 0.25, 0.5, 1.0, 0.5])
    monkeypatch.setattr(ScoredImages, "of_images", lambda images: values)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        page = render_comparison(found, *runs)
    assert "<dt>Images unchanged</dt><dd>6</dd>" in page


@pytest.mark.needs("measures.surfaces")
def test_models_without_finite_scores_of_images_have_no_box():
    truths = [[[0, 0, 1, 1], [0, 0, 1, 1]]] * 3
    empty, found = [[[0, 0, 0, 0], [0, 0, 0, 0]]] * 3, truths
    runs = [
        segiou.score(truths, preds, labels=2, surfaces=True, name=name)
        for name, preds in (("empty", empty), ("also empty", empty), ("found", found))
    ]
    page = render_comparison(compare(*runs, metric="hausdorff_95"), *runs[:2])
    ranking = page[page.index('id="ranking"') : page.index("Boxes: median")]
    assert ranking.count("∞ px") == 2
    assert ranking.count("median 0.00 px") == 1
    assert [row[1] for row in table_of(page, "ranking-title")[1:]] == [
        "found",
        "empty 3 infinite",
        "also empty 3 infinite",
    ]
    # Medians of resamples are not ranked, so nothing is drawn of them.
    assert "Ranks in resamples" not in page and "Dots:" not in page


@pytest.mark.needs("measures.surfaces")
def test_an_image_in_which_one_model_finds_nothing_is_better_by_the_other():
    truth = np.array([[[0, 1, 1, 0]]] * 6)
    near, far = truth.copy(), np.roll(truth, 1, 2)
    near[0] = far[1] = far[2] = 0  # infinite distances
    near[3] = far[3] = 0  # of both models
    runs = [
        segiou.score(truth, pred, labels=2, exclude=["0"], surfaces=True, name=name)
        for pred, name in ((near, "near"), (far, "far"))
    ]
    page = render_comparison(compare(*runs, metric="hausdorff_95"), *runs)
    images = page[page.index('id="images"') : page.index('id="method"')]
    assert dict(re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", images)) == {
        "Images improved": "1",
        "Images worse": "4",
        "Images unchanged": "0",
        "Images without a difference": "1",
        "Median difference, px": "+1.00",  # of −∞, 1, 1, ∞ and ∞
        "Highest difference, px": "+∞",
        "Lowest difference, px": "−∞",
    }
    assert "better →; without 3 infinite</figcaption>" in images
    data = json.loads(
        re.search(r'<script type="application/json" id="data">(.*?)</script>', page)[1]
    )
    expected = [["inf", 0.0, 0.0, "inf", 0.0, 0.0], [1.0, "inf", "inf", "inf", 1.0, 1.0]]
    assert data["images"]["scores"] == expected


def test_boxes_of_negative_scores_are_left_of_zero(runs, found):
    three = compare(*runs, scored(0.0, name="perfect"), resamples=100, permutations=100)
    cases = ((-0.5,) * 8, (-1.5,) * 8, (1.0,) * 8)
    stability = dataclasses.replace(three.stability, cases=cases)
    page = render_comparison(dataclasses.replace(three, stability=stability), *runs)
    ranking = page[page.index('id="ranking"') : page.index('id="classes"')]
    # The axis is from -2 to 2, and the best model comes first.
    assert re.findall(r'<line class="median" x1="([^"]*)"', ranking) == [
        "75.00%",
        "12.50%",
        "37.50%",
    ]
    assert [text for text in table_of(page, "ranking-title")[0] if "−" in text]


@pytest.mark.needs("measures.lesions")
def test_structures_that_are_not_classes_have_no_share():
    truths, empty = [[[[0, 1], [1, 0]]]] * 3, [[[[0, 0], [0, 0]]]] * 3
    runs = [
        segiou.score(
            truths, preds, labels=2, measures=[measure_of("lesions")("autopet")], name=name
        )
        for name, preds in (("old", empty), ("new", truths))
    ]
    found = compare(*runs, metric="lesion_f1")
    assert [row.name for row in found.pairs[0].classes] == ["lesion"]
    page = render_comparison(found, *runs)
    row = page[page.index(">lesion</span>") :]
    cells = re.findall(r"<td[^>]*>(.*?)</td>", row[: row.index("</tr>")], re.DOTALL)
    assert [cells[0], cells[1], cells[5]] == ["0.00 %", "100.00 %", "–"]


def test_each_model_is_drawn_as_its_run_read_it(tmp_path):
    # Foreground is 200 in model a, above its threshold, and 1 in model b.
    masks = np.array([[[0, 1, 1, 0]]] * 8)
    write_masks(tmp_path / "truth", masks)
    write_masks(tmp_path / "a", masks * 200)
    write_masks(tmp_path / "b", masks)
    first = segiou.score_folder(tmp_path / "truth", tmp_path / "a", labels=2, pred_threshold=100)
    second = segiou.score_folder(tmp_path / "truth", tmp_path / "b", labels=2)
    page = render_comparison(compare(first, second), first, second)
    data = json.loads(
        re.search(r'<script type="application/json" id="data">(.*?)</script>', page)[1]
    )
    truth, *drawn = data["images"]["pictures"]["0"]["masks"]
    assert drawn == [truth, truth]


def test_classes_that_are_not_in_the_means_are_marked():
    truth, preds = [[[0, 1, 2, 2]]] * 8, ([[[0, 1, 2, 0]]] * 8, [[[0, 1, 1, 2]]] * 8)
    own = {"labels": ["air", "car", "dog"], "exclude": ["air"]}
    pair = [
        segiou.score(truth, pred, name=name, **own) for name, pred in zip("ab", preds, strict=True)
    ]
    page = render_comparison(compare(*pair), *pair)
    table = page[page.index('id="class-table"') :].partition("</table>")[0]
    rows = re.findall(r'<th scope="row" data-value="(.*?)">(.*?)</th>', table)
    assert [name for name, head in rows if "not in the means" in head] == ["air"]
