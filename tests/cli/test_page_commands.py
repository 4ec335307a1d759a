"""Pages show the commands that write them again."""

import re
import shlex
from html import unescape

import pytest
from command import FIXTURES

STREET = FIXTURES / "streets"


def commands_of(page):
    """The commands of a page by their titles."""
    found = re.findall(r'recipe-head"><span>(.*?)</span>.*?<code>(.*?)</code>', page)
    return {title: shlex.split(unescape(re.sub(r"<[^>]*>", "", text))) for title, text in found}


@pytest.mark.gate
def test_page_of_a_comparison_is_made_again_by_its_command(inside, tmp_path):
    labels, page = tmp_path / "own.toml", tmp_path / "page.html"
    labels.write_text((STREET / "labels.toml").read_text())
    made = ["compare", STREET / "model_a", STREET / "model_b", "--truth", STREET / "truth"]
    options = [f"--labels={labels}", "--group-by", "^(.)", "--html", page]
    assert inside(*made, *options).returncode == 0
    first = page.read_text()
    commands = commands_of(first)
    assert [*commands] == ["This page"]
    page.unlink()
    assert inside(*commands["This page"][1:]).returncode == 0
    assert page.read_text() == first


def test_page_of_a_saved_run_shows_both_commands(inside, tmp_path):
    run, page = tmp_path / "a.run", tmp_path / "page.html"
    made = ["score", STREET / "truth", STREET / "model_a", "--labels", STREET / "labels.toml"]
    assert inside(*made, "--run", run).returncode == 0
    assert inside("report", run, "--html", page, "--group-by", "none").returncode == 0
    assert commands_of(page.read_text()) == {
        "This page": ["segiou", "report", str(run), "--html", str(page), "--group-by", "none"],
        "The run": ["segiou", *map(str, made), "--run", str(run)],
    }


def test_page_as_the_output_has_what_other_formats_have(inside, tmp_path):
    run, page = tmp_path / "a.run", tmp_path / "page.html"
    made = ["score", STREET / "truth", STREET / "model_a", "--labels", STREET / "labels.toml"]
    assert inside(*made, "--run", run).returncode == 0
    options = ["--fail-under", "mean_iou=0.99", "--slices", "(?P<side>.)", "--baseline", run]
    options += ["--columns", "dice,recall", "--group-by", "none"]
    assert inside("report", run, *options, "-o", page).returncode == 1
    text = page.read_text()
    for content in ("<b>Threshold failed.</b>", 'id="slices"', "Compared with the baseline."):
        assert content in text
