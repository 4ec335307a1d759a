"""Expected cost: hand-computed values, tables of costs, and equal costs as 1 - accuracy."""

import numpy as np
import pytest
from PIL import Image

import segiou
from segiou.labels import ClassOptions
from segiou.measures import Masks
from segiou.measures.cost import CostOptions

NAMES = ["background", "tumour", "vessel"]
#: 4 background pixels (1 as tumour), 2 of tumour (1 as background), 2 of vessel (1 as tumour).
TRUTH, PRED = [[[0, 0, 0, 0, 1, 1, 2, 2]]], [[[0, 0, 0, 1, 1, 0, 2, 1]]]


def cost(options, **more):
    run = segiou.score(np.array(TRUTH), np.array(PRED), labels=NAMES, measures=[options], **more)
    return run.report()


def test_costs_by_class():
    report = cost(CostOptions({("tumour", "background"): 5, ("background", "tumour"): 0.5}))
    assert report.score("expected_cost") == (0.5 + 5 + 1) / 8
    rows = [report.score("expected_cost", name) for name in NAMES]
    assert rows == [0.5 / 4, 5 / 2, 1 / 2]


def test_balanced_classes_weigh_the_same():
    report = cost(CostOptions({("tumour", "background"): 5}, balanced=True))
    assert report.score("expected_cost") == pytest.approx((1 / 4 + 5 / 2 + 1 / 2) / 3)
    without = cost(CostOptions({("tumour", "background"): 5}, balanced=True), exclude=["vessel"])
    assert without.score("expected_cost") == pytest.approx((1 / 4 + 5 / 2) / 2)


def test_equal_costs_are_the_share_of_wrong_pixels():
    report = cost(CostOptions())
    assert report.score("expected_cost") == pytest.approx(1 - report.score("pixel_accuracy"))


def test_pixels_of_no_class_cost_as_much_as_the_worst_confusion():
    run = segiou.score(
        [[[0, 1]]], [[[0, 9]]], labels=NAMES, unassigned="count",
        measures=[CostOptions({("tumour", "vessel"): 7})],
    )  # fmt: skip
    assert run.report().score("expected_cost", "tumour") == 7


@pytest.fixture
def folders(tmp_path):
    for side, mask in (("truth", TRUTH), ("pred", PRED)):
        (tmp_path / side).mkdir()
        Image.fromarray(np.array(mask[0], np.uint8)).save(tmp_path / side / "a.png")
    return [str(tmp_path / side) for side in ("truth", "pred")]


def test_a_table_of_costs(folders, tmp_path, command):
    table = tmp_path / "costs.csv"
    table.write_text("truth,background,tumour\ntumour,5,\nbackground,,0.5\n")
    score = "score", *folders, "--labels", ",".join(NAMES), f"--cost={table}"
    assert command(*score, "--fail-over", "expected_cost=0.8125")[0] == 0
    assert command(*score, "--fail-over", "expected_cost=0.8124")[0] == 1
    assert command(*score, "--cost-balanced", "--fail-over", "expected_cost:tumour=2.5")[0] == 0
    code, out, _ = command("score", *folders, "--labels", ",".join(NAMES), "--cost")
    assert code == 0
    assert "expected cost" in " ".join(out.split())


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("truth,background\ntumour,five\n", "background must be a number, got 'five'"),
        ("truth,background\ntumour,-1\n", "the cost of tumour predicted as background must be"),
        ("truth,background\nlesion,1\n", "lesion"),
        ("truth,background\ntumour,1\ntumour,2\n", "is given twice"),
        ("truth,background\ntumour,inf\n", "the cost of tumour predicted as background must be"),
    ],
)
def test_wrong_tables(folders, tmp_path, command, text, problem):
    (tmp_path / "costs.csv").write_text(text)
    labels = "--labels", ",".join(NAMES)
    code, _, noted = command("score", *folders, *labels, f"--cost={tmp_path / 'costs.csv'}")
    assert code == 2
    assert problem in " ".join(noted.split())


def test_refused():
    with pytest.raises(TypeError, match="balanced"):
        CostOptions(balanced=1)
    with pytest.raises(ValueError, match="lesion"):
        CostOptions({("lesion", "background"): 1}).plan(ClassOptions.of(NAMES), Masks())


def test_options_survive_json():
    options = CostOptions({("tumour", "background"): 5}, balanced=True)
    assert CostOptions.from_dict(options.to_dict()) == options


def test_costs_of_another_shape_are_named():
    with pytest.raises(ValueError, match="costs must be triples"):
        CostOptions([1])
    with pytest.raises(TypeError, match="costs must be triples"):
        CostOptions(1)
    for key in (5, "ab"):  # no pair, though "ab" has two letters
        with pytest.raises(ValueError, match="costs must be triples"):
            CostOptions({key: 1})


def test_sums_of_costs_stay_finite():
    report = cost(CostOptions({("tumour", "background"): 1e100}))
    assert report.score("expected_cost", "tumour") == 1e100 / 2
    with pytest.raises(ValueError, match=r"tumour predicted as background must be at most 1e\+100"):
        CostOptions({("tumour", "background"): 1e308})
