"""The example of docs/howto/your-own-metric.md, installed and run as it stands."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "howto" / "your-own-metric.md").read_text("utf-8")
SECTION = PAGE.partition("## A measure in a package")[2]


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", SECTION, re.DOTALL)


def run(site, *arguments):
    path = os.pathsep.join([os.environ["PYTHONPATH"], str(site)])
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": path},
    )


@pytest.mark.gate
def test_the_example_of_the_page(tmp_path, folders):
    source, site = tmp_path / "drift", tmp_path / "site"
    source.mkdir()
    (source / "pyproject.toml").write_text(blocks("toml")[0])
    (source / "drift_measure.py").write_text(blocks("python")[0])
    how = "--quiet", "--no-deps", "--no-index", "--no-build-isolation", "--target", site
    done = run(site, "-m", "pip", "install", *how, source)
    assert done.returncode == 0, done.stderr
    done = run(site, "-c", blocks("python")[1])
    assert done.returncode == 0, done.stderr
    assert re.match("measure 'drift': 14 checks, passed", done.stdout), done.stdout
    places = folders / "truth", folders / "good", "--labels", folders / "set.toml"
    saved = tmp_path / "run.sqlite"
    asked = "--drift", "--objects", "--quiet", "--format", "json", "--run", saved
    done = run(site, "-m", "segiou", "score", *places, *asked)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["drift"]["scores"] == ["drift"]
    assert found["scores"]["drift"]["rows"]["bar"]["value"] == 1  # 1, 2 and 0 pixels
    asked = "--drift", "--drift-axis", "0", "--fail-over", "drift:bar=0.5", "--quiet"
    done = run(site, "-m", "segiou", "score", *places, *asked)
    assert done.returncode == 1, done.stderr
    assert "1.00 px" in done.stderr
    done = run(site, "-m", "segiou", "measures", "drift", "--format", "json")
    (listed,) = json.loads(done.stdout)["measures"]
    assert listed["scores"] == [
        {"name": "drift", "title": "drift", "unit": "px", "better": "lower", "overall": "mean"}
    ]
    assert listed["options"] == {"axis": "-1"}
    assert listed["package"] == "drift-measure 1.0"
    # Without the package, everything else is reported.
    done = run(tmp_path, "-m", "segiou", "report", saved, "--format", "json")
    assert done.returncode == 0, done.stderr
    assert "need drift-measure 1.0, which is not installed" in done.stderr
    assert json.loads(done.stdout)["objects"] == found["objects"]
