"""Problems with files: one line each, or many of a kind together."""

from __future__ import annotations

import pickle

from segiou._support.files import Problem, problem_lines
from segiou.scoring.job import DataError


def alike(count: int) -> list[Problem]:
    return [Problem(f"{i}.png", f"is no class: 7; ignore it [7: {i} px]") for i in range(count)]


def test_what_is_particular_to_a_file_stands_in_the_last_brackets():
    for text, kind, particulars in (
        ("is bad [7: 2 px]", "is bad", " [7: 2 px]"),
        ("is bad [a] or worse", "is bad [a] or worse", ""),
        ("is bad", "is bad", ""),
        ("is [a] bad [b]", "is [a] bad", " [b]"),
    ):
        problem = Problem("f", text)
        assert problem.parts == (kind, particulars)
        assert str(problem) == f"f: {text}"


def test_a_name_stays_on_its_line():
    assert str(Problem("a\nb\x1b[2J\udcff\u202e.png", "is bad")) == (
        r"a\nb\x1b[2J\udcff\u202e.png: is bad"
    )
    assert str(Problem("straße 道.png", "is bad")) == "straße 道.png: is bad"
    assert problem_lines([Problem(f"{i}\r.png", "is\tbad") for i in range(6)])[:2] == [
        r"6 files: is\tbad",
        r"  0\r.png",
    ]


def test_few_have_a_line_each():
    problems = [*alike(5), Problem("x.png", "is damaged")]
    assert problem_lines(problems) == [str(problem) for problem in problems]


def test_many_of_a_kind_are_told_together():
    problems = [*alike(6), Problem("x.png", "is damaged")]
    assert problem_lines(problems) == [
        "6 files: is no class: 7; ignore it",
        "  0.png [7: 0 px]",
        "  1.png [7: 1 px]",
        "  2.png [7: 2 px]",
        "  and 3 more",
        "x.png: is damaged",
    ]


def test_many_kinds_end_in_how_many_more_there_are():
    lines = problem_lines([Problem(f"{i}.png", f"is bad in way {i // 2}") for i in range(90)])
    assert len(lines) == 81
    assert lines[-1] == "and 10 more problems of 5 other kinds"


def test_an_error_keeps_them_all_and_says_where_they_are():
    error = DataError(alike(2000))
    lines = str(error).splitlines()
    assert lines[0] == "2000 problems:"
    assert lines[-2:] == [
        "    and 1997 more",
        "  all of them, one by one: --problems FILE (in Python .problems of this error)",
    ]
    assert pickle.loads(pickle.dumps(error)).problems == tuple(alike(2000))
    assert "all of them" not in str(DataError(alike(5)))
