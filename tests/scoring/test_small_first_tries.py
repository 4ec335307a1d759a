"""Small things that stop new users: names of other tools, rounded shares, odd tables."""

from __future__ import annotations

import numpy as np
import pytest
from mask_files import score_pairs, write_pairs

import segiou
from segiou import slices
from segiou.cli.main import main
from segiou.scoring import Evaluator

MASKS = {f"a{i}": np.array([[0, 1, i % 2]]) for i in range(9)}
RUN = segiou.score(MASKS, {id: np.zeros_like(one) for id, one in MASKS.items()}, labels=2)
ROWS = {id: {"n": i, "part": "xyz"[i % 3]} for i, id in enumerate(MASKS)}


def test_images_of_objects_need_no_labels(tmp_path):
    write_pairs(tmp_path, [[[0, 1, 2, 2]]], [[[0, 2, 1, 1]]])
    found = score_pairs(tmp_path, objects="labels").report().scores_by_name["pq"]
    assert (
        found
        == score_pairs(tmp_path, objects="labels", labels=["background", "object"])
        .report()
        .scores_by_name["pq"]
    )
    with pytest.raises(TypeError, match="labels is required"):
        score_pairs(tmp_path, objects="components")


@pytest.mark.parametrize(
    ("call", "meant"),
    [
        (lambda: segiou.score([[[0]]], [[[0]]], labels=2, ignore_index=255), "ignore"),
        (lambda: segiou.score([[[0]]], [[[0]]], labels=2, ignor=255), "ignore"),
        (lambda: segiou.score([[[0]]], [[[0]]], labels=2, label=2), "labels"),
        (lambda: Evaluator(2, ignore_index=255), "ignore"),
        (lambda: Evaluator(2, ignor=255), "ignore"),
    ],
)
def test_names_of_other_tools_get_the_one_here(call, meant):
    with pytest.raises(TypeError, match=rf"has no option '\w+'; did you mean {meant}\?"):
        call()


def test_a_number_of_classes_is_passed_as_labels():
    fix = "pass the number of classes, or their names, as labels"
    with pytest.raises(TypeError, match=f"has no option 'num_classes'; {fix}"):
        segiou.score([[[0]]], [[[0]]], labels=2, num_classes=2)


def test_thirds_in_per_cent_are_a_mix():
    shares = dict.fromkeys("xyz", 0.333)
    (mix,) = slices(RUN, by=ROWS, mix={"part": shares}).mixes
    assert mix.shares == pytest.approx(dict.fromkeys("xyz", 1 / 3))
    (exact,) = slices(RUN, by=ROWS, mix={"part": dict.fromkeys("xyz", 1 / 3)}).mixes
    assert mix.score == pytest.approx(exact.score)
    with pytest.raises(ValueError, match="sum to 1"):
        slices(RUN, by=ROWS, mix={"part": dict.fromkeys("xyz", 0.3)})


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"by": 3}, TypeError, "metadata must be a file, a pattern"),
        ({"bins": 4}, TypeError, "bins must be a mapping from columns"),
        ({"bins": {"n": True}}, TypeError, "bins of n must be an integer, not bool"),
        ({"bins": {"n": 2.5}}, TypeError, "bins of n must be a number of quantiles, or edges"),
        ({"bins": {"n": 51}}, ValueError, "bins of n must be at most 50"),
        ({"mix": ["part"]}, TypeError, "mix must be a mapping from columns"),
        ({"mix": {"part": 0.5}}, TypeError, r"mix\['part'\] must be a mapping from values"),
        ({"mix": {"part": {"x": "1"}}}, TypeError, r"mix\['part'\]\['x'\] must be a number"),
        ({"against": 3}, TypeError, "against must be a value of a column, not int"),
    ],
)
def test_wrong_arguments_of_slices_are_named(options, error, message):
    with pytest.raises(error, match=message):
        slices(RUN, **{"by": ROWS} | options)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.json", '{"a0": {"w": "x"}, "a0": {"w": "y"}}', "key 'a0' occurs 2 times"),
        ("t.jsonl", '{"image": "a0", "w": "x", "w": "y"}', "line 1 is not JSON: key 'w' occurs 2"),
        ("t.parquet", None, "t.parquet: does not exist"),
    ],
)
def test_tables_with_errors_are_refused(tmp_path, name, content, message):
    if content is None:
        pytest.importorskip("pyarrow")
    else:
        (tmp_path / name).write_text(content)
    with pytest.raises(ValueError, match=message):
        slices(RUN, by=tmp_path / name)


def test_other_separators_of_lines_stand_in_strings(tmp_path):
    values = ["c", *["a\u2028b"] * 8]
    rows = [f'{{"image": "{id}", "w": "{w}"}}' for id, w in zip(MASKS, values, strict=True)]
    (tmp_path / "t.jsonl").write_text("\n".join(rows), encoding="utf-8")
    assert {one.value for one in slices(RUN, by=tmp_path / "t.jsonl")} == {"a\u2028b", "c"}


def test_lists_in_cells_are_several_values(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    cells = [["x", "y"] if i % 2 else ["x"] for i in range(9)]
    parquet.write_table(pyarrow.table({"image": [*MASKS], "w": cells}), tmp_path / "t.parquet")
    found = {one.value: one.images for one in slices(RUN, by=tmp_path / "t.parquet")}
    assert found == {"x": 9, "y": 4}


def test_pages_of_comparisons_have_their_option(tmp_path, capsys):
    write_pairs(tmp_path, [[[0, 1]]] * 2, [[[0, 0]]] * 2)
    runs = [str(tmp_path / name) for name in ("a.sqlite", "b.sqlite")]
    for run in runs:
        places = [str(tmp_path / "truth"), str(tmp_path / "pred")]
        assert main(["score", *places, "--labels", "2", "--run", run, "-q"]) == 0
    assert main(["compare", *runs, "-o", str(tmp_path / "x.html")]) == 2
    text = capsys.readouterr().err
    assert f"pass --html {tmp_path / 'x.html'}" in text
    assert main(["compare", *runs, "--html", str(tmp_path / "x.html")]) == 0
