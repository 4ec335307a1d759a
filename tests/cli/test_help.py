"""`segiou help` prints the pages to which texts refer."""

import re

import pytest
from command import FIXTURES

from segiou._support.text import see

DOCS = FIXTURES.parent / "docs"


def test_pages_are_listed_with_their_titles(inside):
    listed = inside("help").stdout
    assert re.search(r"^intervals +Confidence intervals$", listed, re.MULTILINE)
    assert "toctree" not in listed


def test_a_page_is_printed_as_it_is(inside):
    assert inside("help", "intervals").stdout == (DOCS / "intervals.md").read_text("utf-8")
    assert inside("help", "slices").stdout == (DOCS / "howto" / "slices.md").read_text("utf-8")


def test_a_command_shows_its_help(inside):
    assert inside("help", "merge").stdout == inside("merge", "--help").stdout


@pytest.mark.parametrize(
    ("name", "hint"), [("intervls", "did you mean intervals?"), ("zzz", "segiou help lists all")]
)
def test_unknown_pages_are_refused(inside, name, hint):
    done = inside("help", name)
    assert done.returncode == 2
    assert f"unknown page '{name}'; {hint}" in done.stderr


def test_texts_refer_to_pages_that_exist(inside):
    sources = (FIXTURES.parent / "segiou").rglob("*.py")
    text = "".join(path.read_text("utf-8") for path in sources)
    named = set(re.findall(r"\bsee\([\"'](\w+)[\"']\)|segiou help ([a-z]+)\b", text))
    pages = {first or second for first, second in named} - {"lists"}
    assert {"intervals", "imbalance", "contributing"} <= pages
    for page in pages:
        assert inside(*see(page).rstrip(".").split()[2:]).returncode == 0
