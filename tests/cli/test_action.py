"""The action for GitHub: its steps run here, in the shell that runs them there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

yaml = pytest.importorskip("yaml", reason="the action is a YAML file")

ROOT = Path(__file__).parents[2]
HOME = ROOT / ".github" / "actions" / "score"
STREETS = ROOT / "fixtures" / "streets"
if not HOME.is_dir():
    pytest.skip("the action is part of the repository only", allow_module_level=True)
ACTION = yaml.safe_load((HOME / "action.yml").read_text(encoding="utf-8"))
GIVEN = {
    "truth": str(STREETS / "truth"),
    "pred": str(STREETS / "model_a"),
    "labels": str(STREETS / "labels.toml"),
    "install": "",
}


def filled(text: str, given: dict[str, str]) -> str:
    """A value of the file, with the inputs in it."""
    return re.sub(r"\$\{\{ inputs\.([a-z-]+) \}\}", lambda found: given[found[1]], text)


def run_action(folder: Path, **inputs: str) -> tuple[int, dict[str, str], str]:
    """Run the steps as GitHub does; gives exit code, outputs and summary."""
    folder.mkdir(parents=True, exist_ok=True)
    defaults = {name: entry.get("default", "") for name, entry in ACTION["inputs"].items()}
    given = defaults | GIVEN | {name.replace("_", "-"): value for name, value in inputs.items()}
    (folder / "bin").mkdir(exist_ok=True)
    for name, command in (("segiou", "-m segiou"), ("python", "")):
        script = folder / "bin" / name
        script.write_text(f'#!/bin/sh\nexec "{sys.executable}" {command} "$@"\n')
        script.chmod(0o755)
    files = {name: folder / name for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    for path in files.values():
        path.write_text("")
    environment = os.environ | {name: str(path) for name, path in files.items()}
    environment["PATH"] = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    code = 0
    for step in ACTION["runs"]["steps"]:
        if step.get("if") == "inputs.install != ''" and not given["install"]:
            continue
        own = {name: filled(text, given) for name, text in step["env"].items()}
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
        code = code or subprocess.run(command, env=environment | own, cwd=folder).returncode
    outputs = dict(line.split("=", 1) for line in files["GITHUB_OUTPUT"].read_text().splitlines())
    return code, outputs, files["GITHUB_STEP_SUMMARY"].read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def baseline(tmp_path_factory):
    """A run of the better model, made by the action itself."""
    folder = tmp_path_factory.mktemp("main branch")
    pred = str(STREETS / "model_b")
    code, outputs, summary = run_action(folder, pred=pred, baseline="none/yet.sqlite")
    assert (code, outputs["passed"]) == (0, "true")
    assert float(outputs["mean-iou"]) == pytest.approx(0.6950, abs=5e-5)
    assert summary.startswith("**model_b**\n\n**Mean IoU 69.50 % over 10 of 10 classes.")
    assert not (folder / "segiou-results" / "thresholds.xml").exists()
    return str(folder / "segiou-results" / "run.sqlite")


@pytest.mark.gate
def test_a_pull_request_that_is_worse_fails_and_says_so(tmp_path, baseline):
    code, outputs, summary = run_action(
        tmp_path, baseline=baseline, fail_under="miou=0.5\niou:car=0.5\n"
    )
    assert (code, outputs["passed"]) == (1, "false")
    assert summary.count("| passed |") == 2 and summary.count("| **failed** |") == 1
    assert "this run − baseline: −16.73 points, " in summary
    results = tmp_path / "segiou-results"
    assert {path.name for path in results.iterdir()} == {
        *("run.sqlite", "summary.md", "scores.json", "thresholds.xml"),
    }


@pytest.mark.gate
def test_it_may_be_worse_where_that_is_allowed(tmp_path, baseline):
    code, outputs, summary = run_action(
        tmp_path, baseline=baseline, fail_if_worse="false", options="--group-by none --quiet"
    )
    assert (code, outputs["passed"]) == (0, "true")
    assert "this run − baseline: " in summary


@pytest.mark.gate
def test_folders_with_blanks_and_problems_with_files(tmp_path):
    pred = tmp_path / "my model"
    shutil.copytree(STREETS / "model_a", pred)
    assert run_action(tmp_path / "a", pred=str(pred))[0] == 0
    next(pred.iterdir()).unlink()
    code, outputs, summary = run_action(tmp_path / "b", pred=str(pred))
    assert (code, outputs, summary) == (3, {}, "")


def test_the_example_gives_what_the_action_takes():
    example = yaml.safe_load((HOME / "example-workflow.yml").read_text(encoding="utf-8"))
    (step,) = [s for s in example["jobs"]["score"]["steps"] if "segiou" in s.get("uses", "")]
    assert step["uses"].partition("/segiou/")[2] == ".github/actions/score@main"
    required = {name for name, entry in ACTION["inputs"].items() if entry.get("required")}
    assert required <= set(step["with"]) <= set(ACTION["inputs"])
    # In YAML, "on" is a truth value.
    assert set(example[True]) == {"pull_request", "push"}


@pytest.mark.gate
def test_the_example_passes_where_nothing_changed(tmp_path, baseline):
    example = yaml.safe_load((HOME / "example-workflow.yml").read_text(encoding="utf-8"))
    (step,) = [s for s in example["jobs"]["score"]["steps"] if "segiou" in s.get("uses", "")]
    masks = GIVEN | {"pred": str(STREETS / "model_b")}
    inputs = step["with"] | masks | {"baseline": baseline, "fail-under": "mean_iou=0.5"}
    code, outputs, _ = run_action(tmp_path, **inputs)
    assert (code, outputs["passed"]) == (0, "true")


def test_every_input_reaches_a_step():
    used = re.findall(r"inputs\.([a-z-]+)", (HOME / "action.yml").read_text(encoding="utf-8"))
    assert set(used) == set(ACTION["inputs"])
