"""One parser of numbers from text: for metadata, options and tables."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

import segiou
from segiou._support.numbers import integer_in, number_in
from segiou.cli.main import main

NO_NUMBERS = [
    "10_1",
    "1_0.5",
    "\N{FULLWIDTH DIGIT FOUR}2",
    "\N{ARABIC-INDIC DIGIT THREE}",
    "",
    "1,5",
    "0x1",
]


@pytest.mark.parametrize("text", NO_NUMBERS)
def test_names_are_not_numbers(text):
    for read in (number_in, integer_in):
        with pytest.raises(ValueError, match="is not"):
            read(text)


@given(st.floats(allow_nan=False) | st.integers(-(10**9), 10**9))
def test_numbers_are_read_back(number):
    assert number_in(f" {number!r} ") == number


@pytest.mark.parametrize("text", NO_NUMBERS[:3])
def test_options_and_tables_read_numbers_alike(text, tmp_path, capsys):
    options = (
        ["--labels", text],
        ["--labels", "2", "--workers", text],
        ["--labels", "2", "--level", text],
        ["--labels", "2", "--volume", "--spacing", f"{text},1"],
        ["--labels", "2", "--fail-under", f"mean_iou={text}"],
        ["--labels", "2", f"--boundary={text}"],
        ["--labels", "2", "--ignore", text],
    )
    for words in options:
        with_error = _exit_code(["score", str(tmp_path), str(tmp_path), *words])
        assert with_error == 2, words
        assert text in capsys.readouterr().err
    path = tmp_path / "classes.csv"
    path.write_text(f"name,value\nroad,{text}\n", encoding="utf-8")
    with pytest.raises(ValueError, match="expected integers"):
        segiou.load_labels(path)


def _exit_code(words):
    try:
        return main(words)
    except SystemExit as error:
        return error.code
