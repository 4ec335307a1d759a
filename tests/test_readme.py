"""What the README shows is what the commands print; what it links to is there."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
SESSIONS = re.findall(r"```console\n\$ (.*?)\n(.*?)```", README, re.DOTALL)


def unspaced(line):
    """A line whose blanks and rules are of no length: columns are narrower since rich 14.3."""
    return re.sub(" +|─+", lambda found: found[0][0], line)


@pytest.mark.parametrize(("command", "shown"), SESSIONS, ids=[c[:40] for c, _ in SESSIONS])
def test_output_is_as_shown(command, shown):
    words = shlex.split(command)
    assert words[0] == "segiou"
    done = subprocess.run(
        [sys.executable, "-m", *words],
        capture_output=True,
        cwd=ROOT,
        encoding="utf-8",
        env=os.environ | {"COLUMNS": "100", "PYTHONIOENCODING": "utf-8"},
    )
    assert done.returncode == 0, done.stderr
    lines = [unspaced(line) for line in done.stdout.splitlines()]
    position = 0
    for line in shown.splitlines():
        if line != "…":
            position = lines.index(unspaced(line), position)


def test_there_is_a_session_to_check():
    assert SESSIONS


def test_links_lead_somewhere():
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", README) if "://" not in link]
    assert len(links) > 8
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_commands_and_options_exist():
    from segiou.cli.parsers import build_parser

    text = build_parser().format_help()
    for name in set(re.findall(r"`segiou ([a-z]+)", README)):
        assert re.search(rf"^ +{name}\b", text, re.MULTILINE), name
