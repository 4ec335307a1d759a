"""The example of docs/architecture.md, installed and run as it stands."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "architecture.md").read_text(encoding="utf-8")
SECTION = PAGE.partition("**A kind of score**")[2]


def block(language):
    return re.search(rf"```{language}\n(.*?)```", SECTION, re.DOTALL)[1]


def segiou(site, *arguments):
    path = os.pathsep.join([os.environ["PYTHONPATH"], str(site)])
    return subprocess.run(
        [sys.executable, "-m", "segiou", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": path},
    )


@pytest.mark.gate
def test_the_example_of_the_page(tmp_path, folders):
    info = tmp_path / "site" / "drift_measure-1.0.dist-info"
    info.mkdir(parents=True)
    (tmp_path / "site" / "drift_measure.py").write_text(block("python"))
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: drift-measure\nVersion: 1.0\n")
    entries = block("toml").replace("[project.entry-points.", "[").replace('"', "")
    (info / "entry_points.txt").write_text(entries)
    places = folders / "truth", folders / "good", "--labels", folders / "set.toml"
    done = segiou(tmp_path / "site", "score", *places, "--drift", "--quiet", "--format", "json")
    assert done.returncode == 0, done.stderr
    rows = {row["class"]: row["drift"] for row in json.loads(done.stdout)["drift"]["rows"]}
    assert rows["bar"] == 1  # 1, 2 and 0 pixels
    asked = "--drift", "--drift-axis", "0", "--fail-over", "drift:bar=0.5", "--quiet"
    done = segiou(tmp_path / "site", "score", *places, *asked)
    assert done.returncode == 1, done.stderr
    assert "1.00 px" in done.stderr
    listed = segiou(tmp_path / "site", "measures", "--format", "json").stdout
    found = {one["key"]: one for one in json.loads(listed)["measures"]}
    assert found["drift"]["scores"] == [
        {"name": "drift", "title": "drift", "unit": "px", "better": "lower"}
    ]
    assert found["drift"]["options"] == {"axis": "-1"}
