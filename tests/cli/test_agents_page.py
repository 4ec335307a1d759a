"""The page for programs: its commands run, have its JSON keys, and its exit codes are those."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from deletable import needs_of

from segiou.cli.main import main

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "agents.md").read_text("utf-8")
STREETS = ROOT / "fixtures" / "streets"
ROWS = re.findall(r"^\| [^|]+ \| `(segiou [^`]+)` \| (.+) \|$", PAGE, re.MULTILINE)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Runs of both models, and metadata."""
    folder = tmp_path_factory.mktemp("agents")
    for name, model in (("a", "model_a"), ("b", "model_b")):
        words = ["score", STREETS / "truth", STREETS / model, "--labels", STREETS / "labels.toml"]
        run = ["--run", folder / f"{name}.sqlite", "-o", folder / "x.txt", "--quiet"]
        assert main([*map(str, [*words, *run])]) == 0
    names = sorted(path.stem for path in (STREETS / "truth").iterdir())
    rows = ["id,site", *(f"{name},{name[:5]}" for name in names)]
    (folder / "META.csv").write_text("\n".join(rows), encoding="utf-8")
    return folder


def keys_of(data):
    """All keys of the objects of JSON, at any depth."""
    if isinstance(data, dict):
        return {*data}.union(*map(keys_of, data.values()))
    return set().union(*map(keys_of, data)) if isinstance(data, list) else set()


def test_there_are_ten_commands():
    assert len(ROWS) == 10


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("command", "keys"),
    [pytest.param(*row, marks=needs_of(row[0]), id=row[0][:30]) for row in ROWS],
)
def test_commands_run_and_have_the_keys(command, keys, folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    words = shlex.split(command)[1:]
    places = {"TRUTH": STREETS / "truth", "PRED": STREETS / "model_a", "DIR": STREETS / "truth"}
    words = [str(places.get(word, word)) for word in words]
    words = [str(STREETS / "labels.toml") if word == "SET" else word for word in words]
    if "-o" in words:
        assert main(words) == 0
        words = [*words[: words.index("-o")], "--format", "json"]
    if words[0] == "score":
        words[words.index("--run") + 1] = "new.sqlite"
    capsys.readouterr()
    assert main(words) == 0
    data = json.loads(capsys.readouterr().out)
    named = {*re.findall(r"`(\w+)`", keys)} - {"score"}
    assert named - keys_of(data) == set()


def test_exit_codes_are_those_of_the_readme():
    codes = re.findall(r"^\| (\d+) \|", PAGE, re.MULTILINE)
    readme = (ROOT / "README.md").read_text("utf-8").partition("Exit codes: ")[2]
    assert codes == re.findall(r"(\d+) [a-z]", readme.partition(".")[0])


def test_help_prints_the_page(capsys):
    assert main(["help", "agents"]) == 0
    assert capsys.readouterr().out == PAGE


def test_llms_txt_links_to_pages():
    text = (ROOT / "docs" / "llms.txt").read_text("utf-8")
    links = re.findall(r"\]\(([^)]+)\)", text)
    assert len(links) > 12
    written = [link for link in links if not link.startswith("_generated/")]
    assert [link for link in written if not (ROOT / "docs" / link).is_file()] == []


def test_hooks_of_pre_commit_call_a_command():
    hooks = (ROOT / ".pre-commit-hooks.yaml").read_text("utf-8")
    assert "- id: segiou-inspect" in hooks and "entry: segiou inspect" in hooks
