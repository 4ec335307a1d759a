"""Problems with files: one line each, or many of a kind together."""

from __future__ import annotations

import pickle

from segiou import DataError
from segiou._support.files import Problem, problem_lines


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
    assert problem_lines([Problem(f"{i}\r.png", "is\tbad") for i in range(6)]) == [
        r"6 files: each is\tbad",
        r"  0\r.png, 1\r.png, 2\r.png and 3 more",
    ]


def test_one_file_is_one_line():
    problems = [*alike(1), Problem("x.png", "is corrupt")]
    assert problem_lines(problems) == [str(problem) for problem in problems]


def test_few_files_with_the_same_problem_keep_their_details():
    problems = [*alike(2), Problem("x.png", "is corrupt")]
    assert problem_lines(problems) == [
        "2 files are no class: 7; ignore it",
        "  0.png [7: 0 px]",
        "  1.png [7: 1 px]",
        "x.png: is corrupt",
    ]


def test_many_of_a_kind_are_told_together():
    lines = problem_lines([Problem(f"/data/{i}.png", "cannot be read [x]") for i in range(6)])
    assert lines == ["6 files in /data cannot be read", "  0.png, 1.png, 2.png and 3 more"]


def test_values_of_all_files_are_told_together_and_sorted():
    pattern = "has undeclared values: {values}; ignore them: --ignore {option}"
    problems = [Problem.of_values(f"{i}.png", pattern, [12, i], f"{i}: 2 px") for i in (9, 5)]
    assert str(problems[0]) == (
        "9.png: has undeclared values: 9, 12; ignore them: --ignore 9,12 [9: 2 px]"
    )
    assert problem_lines(problems)[0] == (
        "2 files have undeclared values: 5, 9, 12; ignore them: --ignore 5,9,12"
    )
    assert problem_lines(problems, advice=False)[0] == "2 files have undeclared values: 5, 9, 12"


def test_many_kinds_end_in_how_many_more_there_are():
    lines = problem_lines([Problem(f"{i}.png", f"is bad in way {i // 2}") for i in range(90)])
    assert len(lines) == 81
    assert lines[-1] == "and 10 more files with 5 other problems"


def test_an_error_keeps_them_all_and_says_where_they_are():
    error = DataError(alike(2000))
    lines = str(error).splitlines()
    assert lines[0].startswith("2000 files ")
    assert lines[1].endswith(" and 1997 more")
    assert lines[2].startswith("Full list: --problems FILE")
    assert pickle.loads(pickle.dumps(error)).problems == tuple(alike(2000))
    assert "Full list" not in str(DataError(alike(5)))


def test_problems_are_counted_by_cause():
    lines = str(DataError([*alike(9), Problem("x.png", "is corrupt")])).splitlines()
    assert lines[0] == "2 problems:"
    assert lines[3] == "  x.png: is corrupt"


def test_fixes_that_are_not_shown_do_not_divide_a_cause():
    pattern = "has undeclared values: {values}; %s"
    problems = [Problem.of_values(f"{fix}.png", pattern % fix, [7]) for fix in ("add", "ignore")]
    assert str(DataError(problems)).startswith("2 problems:\n")
    assert str(DataError(problems, "Pass --labels camvid")).splitlines() == [
        "2 files have undeclared values: 7",
        "  add.png, ignore.png",
        "Pass --labels camvid",
    ]
