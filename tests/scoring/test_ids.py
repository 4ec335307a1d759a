"""Which images are scored: lists of ids, every one of which is found or named."""

from __future__ import annotations

import json
import re

import pytest
from mask_files import score_pairs, write_masks, write_pairs

from segiou import DataError
from segiou.cli.main import main
from segiou.report import write_html
from segiou.scoring.pair_options import ids_of

MASK = [[0, 1]]


@pytest.fixture
def pairs(tmp_path):
    names = ("a", "b", "c")
    return write_pairs(tmp_path, dict.fromkeys(names, MASK), dict.fromkeys(names, MASK))


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("a\nb\n", ("a", "b")),
        ("\ufeff# images\n\n  a  \nb\n", ("a", "b")),
        ("2007_000032  1\n2007_000039 -1\n", ("2007_000032", "2007_000039")),
        ("img/a.jpg ann/a.png\nimg/b.jpg\tann/b.png", ("img/a.jpg", "img/b.jpg")),
        ("my first image\n", ("my first image",)),
        ("val\\a.png\n", ("val/a.png",)),
    ],
)
def test_lists(tmp_path, text, ids):
    path = tmp_path / "val.txt"
    path.write_text(text, encoding="utf-8")
    assert ids_of(path) == ids


def test_a_column_of_a_table(tmp_path):
    path = tmp_path / "split.csv"
    path.write_text("image,fold\na,1\nb,2\n")
    assert ids_of(f"{path}:image") == ("a", "b")
    with pytest.raises(ValueError, match="has no column 'x'; columns: image, fold"):
        ids_of(f"{path}:x")
    with pytest.raises(ValueError, match="name the id column: "):
        ids_of(path)
    path.write_text("a\nb\n")
    assert ids_of(path) == ("a", "b")


def test_tables_of_spreadsheets(tmp_path):
    wide, tabs, book = (tmp_path / name for name in ("val.csv", "val.tsv", "val.xlsx"))
    wide.write_text("Bild\tTag\nzürich\\1.png\tMo\n", encoding="utf-16")  # Excel's "Unicode text"
    assert ids_of(f"{wide}:Bild") == ("zürich/1.png",)
    tabs.write_text("Bild, Ort; Tag\tfold\na\t1\n")
    assert ids_of(f"{tabs}:fold") == ("1",)
    book.write_bytes(b"PK")
    with pytest.raises(ValueError, match="is a workbook, which is not read; save the sheet as CSV"):
        ids_of(f"{book}:Bild")
    lines = tmp_path / "val.jsonl"
    lines.write_text('{"id": "a\u2028b"}\n{"id": "c"}\n', encoding="utf-8")
    assert ids_of(f"{lines}:id") == ("a\u2028b", "c")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no ids found"),
        (b"a\na\n", "duplicate id a"),
        (b"\xff\xfe\x00", "is neither UTF-8 nor UTF-16 text"),
        (None, "does not exist"),
    ],
)
def test_lists_with_faults_are_named(tmp_path, content, message):
    path = tmp_path / "val.txt"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ValueError, match=message) as caught:
        ids_of(path)
    assert str(path) in str(caught.value)


def test_ids_are_texts():
    with pytest.raises(TypeError, match="ids"):
        ids_of(3)
    with pytest.raises(TypeError, match="ids"):
        ids_of([3])


def test_only_listed_images_are_scored(pairs, capsys):
    (pairs / "val.txt").write_text("c\na\n")
    folders = str(pairs / "truth"), str(pairs / "pred")
    options = "--labels", "2", "--ids", str(pairs / "val.txt"), "--format", "json", "--quiet"
    assert main(["score", *folders, *options]) == 0
    assert json.loads(capsys.readouterr().out)["pairs"] == 2
    run = score_pairs(pairs, labels=2, ids=["images/a.jpg", "c"])
    assert run.ids == ("a", "c")
    assert run.provenance["pairing"].startswith("2 listed ids; ")


def test_the_page_repeats_how_pairs_were_chosen(pairs):
    (pairs / "val.txt").write_text("c\na\n")
    ids = pairs / "val.txt"
    run = score_pairs(pairs, labels=2, ids=ids, pred_suffix=".png", missing="skip")
    page = write_html(pairs / "page.html", run.report(), run=run).read_text()
    page = re.sub(r"</?span[^>]*>", "", page)


def test_every_id_that_is_not_found_is_said(pairs):
    with pytest.raises(DataError) as caught:
        score_pairs(pairs, labels=2, ids=["a", "x", "y"])
    assert [problem.where for problem in caught.value.problems] == ["x", "y"]
    with pytest.raises(DataError, match="none has a truth file"):
        score_pairs(pairs, labels=2, ids=["x"])
    run = score_pairs(pairs, labels=2, ids=["a", "x"], missing="skip")
    assert (run.ids, [problem.where for problem in run.skipped]) == (("a",), ["x"])


def test_a_listed_image_without_a_prediction_is_missing(pairs):
    (pairs / "pred" / "a.png").unlink()
    with pytest.raises(DataError, match="has no prediction"):
        score_pairs(pairs, labels=2, ids=["a", "b"])
    assert score_pairs(pairs, labels=2, ids=["b"]).ids == ("b",)


def test_ids_with_options_for_names(tmp_path):
    write_masks(tmp_path / "truth", {"a_gt": MASK, "b_gt": MASK, "a_image": MASK})
    write_masks(tmp_path / "pred", {"a_p": MASK, "b_p": MASK})
    sides = {"truth_suffix": "_gt", "pred_suffix": "_p"}
    assert score_pairs(tmp_path, labels=2, ids=["a"], **sides).ids == ("a",)
    write_masks(tmp_path / "other/truth", {"a_gt": MASK, "b_gt": MASK})
    write_masks(tmp_path / "other/pred", {"x_a": MASK, "x_b": MASK})
    key = r"\b(?:x_)?([ab])"
    assert score_pairs(tmp_path / "other", labels=2, ids=["b"], key=key).ids == ("b",)


def test_a_run_file_follows_its_list(pairs):
    file = pairs / "run.sqlite"
    assert score_pairs(pairs, labels=2, ids=["a", "b"], run=file).ids == ("a", "b")
    assert score_pairs(pairs, labels=2, ids=["b", "c"], run=file).ids == ("b", "c")
