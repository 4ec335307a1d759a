"""The ranking of regions and images, their review, and the laws that it obeys."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

import segiou
from segiou import find_suspects
from segiou.runs import run_from_counts

GOLDEN = Path(__file__).resolve().parents[3] / "shared" / "suspects" / "golden"
NAMES = ["ground", "tree", "car"]


def scored(pairs, labels=None, measures=("suspects",), argmax=None):
    truths, preds = zip(*pairs, strict=True)
    labels = labels or NAMES
    return segiou.score([*truths], [*preds], labels=labels, measures=measures, argmax=argmax)


def with_box(rows, columns, value, shape=(20, 30)):
    mask = np.zeros(shape, np.uint8)
    mask[slice(*rows), slice(*columns)] = value
    return mask


@pytest.fixture
def pairs():
    """Two images with the same small tree that is predicted as ground, and one with a car."""
    nothing = np.zeros((20, 30), np.uint8)
    tree, larger = with_box((2, 6), (3, 7), 1), with_box((2, 7), (3, 8), 1)
    car = with_box((10, 16), (10, 20), 2)
    return [(tree, nothing), (larger, nothing), (nothing, car), (tree, tree)]


def test_scores_by_hand(pairs):
    found = find_suspects(scored(pairs))
    first, second, third = found.regions
    # The car: 60 of 60 such pixels, 60 of 600 pixels, all of the predicted object.
    assert (first.image, first.label, first.suggestion) == ("2", "ground", "car")
    assert first.score == pytest.approx(1 * (60 / 600 * 1) ** 0.5)
    assert (first.pixels, first.box, first.seen_elsewhere) == (60, ((10, 16), (10, 20)), 0)
    assert second.score == pytest.approx(25 / 41 * (25 / 600) ** 0.5)
    assert third.score == pytest.approx(16 / 41 * (16 / 600) ** 0.5)
    assert (second.seen_elsewhere, third.seen_elsewhere) == (0, 1)
    assert [image.score for image in found.images] == [third.score, second.score, first.score, 0]
    assert [region.rank for region in found.regions] == [1, 2, 3]
    assert found.pairs[0][:4] == ("tree", "ground", 2, 2)


def test_a_copy_halves_its_share_unless_both_are_one_group(pairs):
    run = scored([pairs[2], pairs[2], pairs[3]])
    assert find_suspects(run).regions[0].share == 0.5
    together = find_suspects(run, groups=["a", "a", "b"]).regions[0]
    assert (together.share, together.seen_elsewhere) == (1.0, 0)


def test_runs_have_their_suspects(pairs):
    run = scored(pairs)
    expected = find_suspects(run, first=2, omit="car").to_dict()
    assert run.suspects(first=2, omit="car").to_dict() == expected
    assert scored(pairs, measures=()).suspects().regions[0].image == "2"
    with pytest.raises(TypeError, match="find_suspects has no option 'fist'; did you mean first"):
        run.suspects(fist=2)


def test_without_regions_images_are_ranked_by_their_confusion(pairs):
    found = find_suspects(scored(pairs, measures=()))
    assert found.kept is None
    first = found.regions[0]
    assert (first.image, first.pixels, first.box, first.whole) == ("2", 60, (), 1.0)
    assert first.score == pytest.approx((60 / 600) ** 0.5)
    assert "score with --suspects" in str(found)
    worst = scored(pairs, measures=()).worst(4, by="suspects")
    assert [row["id"] for row in worst] == ["2", "1", "0", "3"]
    assert [row["suspects"] for row in worst][:3] == pytest.approx(
        [region.score for region in found.regions]
    )


def test_exchanged_classes_are_noted(pairs):
    truth = with_box((0, 10), (0, 30), 1)
    run = scored([(truth, 1 - truth), pairs[3]])
    notes = find_suspects(run).images[0].notes
    assert notes == ("labels ground and tree look exchanged",)
    assert "look exchanged in 0" in str(find_suspects(run))


def test_a_truth_of_one_class_is_noted(pairs):
    assert find_suspects(scored(pairs)).images[2].notes == ("truth is ground alone",)


def test_what_is_listed(pairs):
    run = scored(pairs)
    assert [r.label for r in find_suspects(run, label="tree").regions] == ["tree", "tree"]
    assert [r.image for r in find_suspects(run, omit="car").regions] == ["1", "0"]
    assert [r.image for r in find_suspects(run, omit=["tree:ground"]).regions] == ["2"]
    assert [r.image for r in find_suspects(run, omit=["ground:tree"]).regions] == ["2", "1", "0"]
    assert [r.pixels for r in find_suspects(run, max_extent=0.05).regions] == [25, 16]
    assert [r.pixels for r in find_suspects(run, min_size=20).regions] == [60, 25]
    assert [r.rank for r in find_suspects(run, first=1).regions] == [1]
    nothing = find_suspects(run, min_size=1000)
    assert nothing.regions == () and "No region is left" in str(nothing)
    assert "No region of 9 pixels" in str(find_suspects(scored([pairs[3]])))


def test_an_image_has_one_entry_and_two_further_regions():
    truth = np.zeros((40, 40), np.uint8)
    pred = truth.copy()
    for i in range(4):
        pred[10 * i : 10 * i + 4 + i, 2:8] = 1 + i % 2
    run = scored([(truth, pred)])
    found = find_suspects(run)
    assert [r.rank for r in found.regions] == [1, 1, 1]
    assert [r.rank for r in find_suspects(run, all_regions=True).regions] == [1, 2, 3, 4]
    assert "ordered by size" in str(found)


def test_regions_that_no_other_model_has_sink(pairs):
    run = scored(pairs)
    other = scored([*pairs[:2], (pairs[2][0], pairs[2][0]), pairs[3]])
    found = find_suspects(run, other)
    assert [r.image for r in found.regions] == ["1", "0", "2"]
    assert [bool(r.confirmed_by) for r in found.regions] == [True, True, False]
    assert found.regions[2].score == pytest.approx(0.1 * (60 / 600) ** 0.5)
    assert "weak evidence" in str(found)


def test_reviewed_regions_come_last_and_are_counted(pairs, tmp_path):
    run = scored(pairs)
    rows = [*csv.DictReader(io.StringIO(find_suspects(run).to_csv()))]
    rows[0]["verdict"], rows[1]["verdict"] = "wrong", "Right"
    path = tmp_path / "reviewed.csv"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    found = find_suspects(run, reviewed=path)
    assert [r.image for r in found.regions] == ["0", "2", "1"]
    assert (found.reviewed.wrong, found.reviewed.right, found.reviewed.share) == (1, 1, 0.5)
    assert np.isnan(found.reviewed.low)
    assert "1 of 2 reviewed regions were wrong" in str(found)


def test_verdicts_below_the_first_entries_are_counted(pairs, tmp_path):
    run = scored(pairs)
    ranked = find_suspects(run, all_regions=True).regions
    path = tmp_path / "reviewed.csv"
    lines = ["image,label,suggestion,box,verdict", ",".join((*ranked[0].key, "wrong"))]
    lines += [",".join((*ranked[1].key, "unclear")), "9,ground,car,0:1 0:1,right"]
    path.write_text("\n".join(lines))
    found = find_suspects(run, reviewed=path, first=1)
    assert found.entries[0].verdict == ""
    assert found.reviewed[:3] == (1, 0, 1)
    assert found.reviewed.unmatched == 1
    text = " ".join(str(found).split())
    assert "1 of 1 reviewed region was wrong, 1 unclear" in text
    assert "Not counted: 1 verdict on regions that this run does not have" in text
    none = find_suspects(run, reviewed=path, min_size=10**6).reviewed
    assert (none.wrong, none.unclear, none.unmatched) == (0, 0, 1)


def test_only_a_random_sample_has_an_interval(pairs, tmp_path):
    run = scored(pairs)
    path = tmp_path / "reviewed.csv"
    lines = ["image,label,suggestion,box,verdict"]
    for region, verdict in zip(
        find_suspects(run).regions, ("wrong", "right", "right"), strict=True
    ):
        lines.append(",".join((*region.key, verdict)))
    path.write_text("\n".join(lines))
    found = find_suspects(run, reviewed=path, first=3, random_sample=3)
    # Clopper and Pearson (1934) for 1 of 3.
    assert found.reviewed.low == pytest.approx(1 - 0.975 ** (1 / 3))
    high = found.reviewed.high
    assert 3 * high * (1 - high) ** 2 + (1 - high) ** 3 == pytest.approx(0.025)
    assert [r.rank for r in find_suspects(run, random_sample=2, seed=1).entries] == sorted(
        r.rank for r in find_suspects(run, random_sample=2, seed=1).entries
    )
    none = find_suspects(run, reviewed=path, random_sample=99)
    assert len(none.entries) == 3


def test_a_random_sample_stays_the_same_when_it_is_reviewed(pairs, tmp_path):
    run = scored(pairs * 3)
    sample = find_suspects(run, first=5, random_sample=3)
    path = tmp_path / "reviewed.csv"
    lines = [",".join((*region.key, "wrong")) for region in sample.entries]
    path.write_text("\n".join(["image,label,suggestion,box,verdict", *lines]))
    again = find_suspects(run, first=5, random_sample=3, reviewed=path)
    assert [r.key for r in again.entries] == [r.key for r in sample.entries]
    assert [r.rank for r in again.entries] == [r.rank for r in sample.entries]
    assert again.reviewed.low == pytest.approx(0.025 ** (1 / 3))


def test_wrong_arguments_are_named(pairs, tmp_path):
    run = scored(pairs)
    for wrong, error, text in (
        ({"first": 0}, ValueError, "first"),
        ({"first": 1.5}, TypeError, "first"),
        ({"max_extent": 2}, ValueError, "max_extent"),
        ({"min_size": -1}, ValueError, "min_size"),
        ({"label": "cat"}, ValueError, "unknown class 'cat'; choose from ground"),
        ({"omit": ["tree:cat"]}, ValueError, "unknown class 'tree:cat'"),
        ({"omit": 3}, TypeError, "omit"),
        ({"omit": [3]}, TypeError, r"omit must be .*, not int \(3\)"),
        ({"label": 3}, TypeError, r"label must be .*, not int \(3\)"),
        ({"label": ["tree"]}, TypeError, "label must be .*, not list"),
        ({"all_regions": "no"}, TypeError, "all_regions must be True or False"),
        ({"groups": ["a"]}, ValueError, "groups? "),
        ({"groups": {"0": "a"}}, ValueError, "group"),
        ({"reviewed": 3}, TypeError, r"reviewed must be a path, not int \(3\)"),
        ({"random_sample": 0}, ValueError, "random_sample"),
        ({"random_sample": 3, "first": 2}, ValueError, "at most first, 2, got 3; increase"),
        ({"reviewed": tmp_path / "none.csv"}, ValueError, "none.csv"),
    ):
        with pytest.raises(error, match=text):
            find_suspects(run, **wrong)
    assert len(find_suspects(run, first=2**70).entries) == 3
    with pytest.raises(TypeError, match="expects a run, got no argument"):
        find_suspects()
    with pytest.raises(TypeError, match="expects runs, got str"):
        find_suspects("run.sqlite")
    with pytest.raises(ValueError, match="has no regions, so they cannot be confirmed"):
        find_suspects(run, scored(pairs, measures=()))
    (tmp_path / "a.csv").write_text("image,label,suggestion,box,verdict\n0,a,b,,maybe\n")
    with pytest.raises(ValueError, match=r"row 1: unknown verdict 'maybe'; use wrong, right"):
        find_suspects(run, reviewed=tmp_path / "a.csv")


@given(st.integers(0, 2**32 - 1), st.permutations(range(4)))
def test_the_order_of_images_changes_nothing_else(seed, order):
    rng = np.random.default_rng(seed)
    pairs = [
        tuple(np.kron(rng.integers(0, 3, (3, 4)), np.ones((4, 4), np.uint8)) for _ in range(2))
        for _ in range(4)
    ]

    def rows(run, names):
        found = find_suspects(run, all_regions=True)
        return sorted((names[int(r.image)], *r[2:12]) for r in found.regions)

    assert rows(scored(pairs), range(4)) == rows(scored([pairs[i] for i in order]), order)


def test_merged_shards_are_one_run(pairs, tmp_path):
    whole = scored(pairs)
    parts = [whole.select(["0", "1"]), whole.select(["2", "3"])]
    merged = parts[0].merge(parts[1])
    path = merged.save(tmp_path / "merged.sqlite")
    for run in (merged, segiou.Run.open(path)):
        assert find_suspects(run).regions == find_suspects(whole).regions


def test_outputs_have_the_same_regions(pairs):
    found = find_suspects(scored(pairs))
    data = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    rows = [*csv.DictReader(io.StringIO(found.to_csv()))]
    assert [row["image"] for row in rows] == [row["image"] for row in data["regions"]]
    assert [float(row["score"]) for row in rows] == [row["score"] for row in data["regions"]]
    assert data["reviewed"] == {
        "wrong": 0,
        "right": 0,
        "unclear": 0,
        "low": None,
        "high": None,
        "unmatched": 0,
    }
    for text in (str(found), found.to_markdown(), found.to_latex(), found._repr_html_()):
        assert "10.00" in text
    assert repr(found) == "<Suspects: 3 of 4 images>"


def test_class_scores_weigh_regions_by_hand():
    """The larger region is predicted with a smaller margin, so it is second."""
    truth = np.zeros((20, 30), np.uint8)
    scores = np.zeros((3, 20, 30))
    scores[0] = 1
    scores[:, 2:6, 3:8] = np.reshape([0.05, 0.95, 0], (3, 1, 1))  # 20 pixels
    scores[:, 10:16, 10:20] = np.reshape([0.4, 0, 0.6], (3, 1, 1))  # 60 pixels
    first, second = find_suspects(scored([(truth, scores)], argmax=1)).regions
    assert [(r.suggestion, r.pixels) for r in (first, second)] == [("tree", 20), ("car", 60)]
    assert (first.margin, second.margin) == pytest.approx((0.9, 0.2))
    assert first.score == pytest.approx((20 / 600) ** 0.5 * 0.81)
    assert second.score == pytest.approx((60 / 600) ** 0.5 * 0.04)


@pytest.mark.parametrize(
    "case", ["missing_object", "class_scores", "edges", "volume", "units_and_models"]
)
def test_golden_cases(case):
    if not GOLDEN.is_dir():
        pytest.skip("the golden cases are not beside this checkout")
    expected = json.loads((GOLDEN / "expected.json").read_text())[case]
    with np.load(GOLDEN / "cases.npz") as file:
        truth, pred = (file[f"{case}_{side}"] for side in ("truth", "pred"))
        scores = file[f"{case}_scores"] if case == "class_scores" else None
    run = segiou.score(
        np.where(truth < 0, 255, truth).astype(np.uint8),
        np.where(pred < 0, 200, pred).astype(np.uint8) if scores is None else scores,
        argmax=None if scores is None else 1,
        labels=expected["num_classes"],
        ignore=255,
        unassigned="count",
        measures=["suspects"],
    )
    found = find_suspects(run, first=10**6, all_regions=True, groups=expected["units"])
    key = ("image", "label", "suggestion", "pixels", "box", "elsewhere")
    assert [
        (
            int(r.image),
            int(r.label),
            int(r.suggestion),
            r.pixels,
            [*np.ravel(r.box)],
            r.seen_elsewhere,
        )
        for r in found.regions
    ] == [tuple(row[name] for name in key) for row in expected["ranked"]]
    for name in ("share", "extent", "whole", "margin", "score"):
        values = [row[name] for row in expected["ranked"]]
        assert [getattr(r, name) for r in found.regions] == pytest.approx(values, abs=1e-9)
    without = run_from_counts(run.options, run.images)
    images = find_suspects(without, groups=expected["units"]).images
    assert [one.score for one in images] == pytest.approx(expected["image_scores_of_pairs"])


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (["a", "b"], "group"),
        (["a", "b", "c", "d", "e"], "group"),
        ({"0": "a", "1": "b"}, "no group for 2"),
    ],
)
def test_every_image_has_a_group(groups, message):
    truth = np.zeros((4, 8, 8), int)
    pred = truth.copy()
    pred[:, 1:5, 1:5] = 1
    run = segiou.score(truth, pred, labels=2, measures=["suspects"])
    with pytest.raises(ValueError, match=message):
        segiou.find_suspects(run, groups=groups)
    assert len(segiou.find_suspects(run, groups=["a", "a", "b", "b"]).regions) == 4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"all_regions": "no"}, "all_regions must be True or False"),
        ({"label": 1}, "label must be the name of a class"),
        ({"omit": [1]}, "a class of omit must be a name"),
        ({"reviewed": 1}, "reviewed must be a path"),
    ],
)
def test_arguments_of_another_kind_are_named(options, message):
    run = segiou.score([[[0, 1]]], [[[1, 1]]], labels=2)
    with pytest.raises(TypeError, match=message):
        segiou.find_suspects(run, **options)


def test_a_run_without_regions_and_errors_says_so():
    truth = np.zeros((2, 4, 4), int)
    found = segiou.find_suspects(segiou.score(truth, truth, labels=2))
    assert found.regions == () and "Predictions agree with the truth" in str(found)
