"""The command plan: every format has the numbers of the library; options at their extremes."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

import segiou
from segiou.cli.main import main


@pytest.fixture(scope="module")
def run_file(tmp_path_factory):
    """Twelve images of three drives; a class is only in the first, and one is absent."""
    rng, truth = np.random.default_rng(0), {}
    for i in range(12):
        truth[f"{'abc'[i // 4]}_{i}"] = np.repeat([[0, 1]], 40, 1)
    truth["a_0"][0, 0] = 2
    wrong = rng.integers(1, 12, 12)
    pred = {id: mask.copy() for id, mask in truth.items()}
    for mask, number in zip(pred.values(), wrong, strict=True):
        mask[0, 1 : 1 + number] = 1
    path = tmp_path_factory.mktemp("plan") / "run.sqlite"
    segiou.score(truth, pred, labels=["road", "car", "bus", "tram"]).save(path)
    return str(path)


@pytest.fixture
def plan(run_file, capsys):
    """Exit code, stdout and stderr of the command."""

    def of(*options):
        code = main(["plan", run_file, *options])
        return (code, *capsys.readouterr())

    return of


NONE = ("--group-by", "none")


@pytest.mark.few(2)
@pytest.mark.parametrize("given", ["0.02", "2%", "2.0%", "2e-2"])
def test_every_form_of_a_half_width(plan, given, run_file):
    code, out, _ = plan("--half-width", given, "--format", "json", *NONE)
    found = segiou.Run.open(run_file).sample_sizes(0.02, groups="none")
    assert (code, json.loads(out)["overall"]["needed"]) == (0, found.overall.needed)


@pytest.mark.parametrize("given", ["0", "0%", "-1%", "1", "100%", "2", "nan", "inf"])
def test_half_widths_that_are_none(plan, given):
    code, out, error = plan(f"--half-width={given}")
    assert (code, out) == (2, "")
    assert "half_width must be" in error
    assert given != "2" or "pass 0.02 (--half-width 2%)" in error
    assert given != "100%" or "got 1 (100 percentage points)" in error


@pytest.mark.parametrize(
    ("option", "said"),
    [
        *(
            (f"--half-width={given}", "expected a number such as 0.05 or 5%")
            for given in ("two", "%", "2%%")
        ),
        ("--blocks=0", "expected 'auto' or a number"),
    ],
)
def test_options_that_are_no_numbers(run_file, capsys, option, said):
    with pytest.raises(SystemExit):
        main(["plan", run_file, option])
    assert said in " ".join(capsys.readouterr().err.split())


def test_every_format_has_the_numbers(plan, run_file, tmp_path):
    found = segiou.Run.open(run_file).sample_sizes(0.01, groups="^.")
    options = ("--half-width", "1%", "--group-by", "^.")
    data = json.loads(plan(*options, "--format", "json")[1])
    assert data["overall"] == found.to_dict()["overall"]
    assert data["classes"][3]["half_width"] is data["classes"][3]["needed"] is None
    assert data["sentences"] == found.sentences()
    target = tmp_path / "plan.csv"
    plan(*options, "-o", str(target))
    rows = [*csv.DictReader(target.read_text().splitlines())]
    assert [row["name"] for row in rows] == ["mean IoU", "road", "car", "bus", "tram"]
    assert [row["needed"] for row in rows] == [str(row.needed or "") for row in found]
    for kind in ("table", "markdown", "latex"):
        text = " ".join(plan(*options, "--format", kind)[1].split())
        assert f"about {found.overall.needed} groups (95" in text
        assert "groups contain: bus and tram" in text


def test_options_reach_the_plan(plan, run_file):
    run = segiou.Run.open(run_file)
    for options, arguments in (
        (("--metric", "iou:car"), {"metric": "iou:car"}),
        (("--level", "0.8"), {"level": 0.8}),
        (("--protocol", "ade20k"), {"protocol": "ade20k"}),
    ):
        out = plan("--half-width", "1%", *NONE, *options, "--format", "json")[1]
        expected = run.sample_sizes(0.01, groups="none", **arguments)
        assert json.loads(out)["overall"]["needed"] == expected.overall.needed
    out = plan("--half-width", "1%", *NONE, "--exclude", "bus", "--format", "json")[1]
    expected = run.excluding("bus").sample_sizes(0.01, groups="none")
    assert json.loads(out)["overall"]["needed"] == expected.overall.needed


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--metric", "speed"), "unknown score 'speed'"),
        (("--metric", "iou:plane"), "plane"),
        (("--metric", "pq"), "rescore with"),
        (("--level", "1"), "level must be between 0 and 1"),
        (("--level", "0"), "level must be between 0 and 1"),
        (("--level", "1e-320"), "level must be between 0 and 1"),
        (("--group-by", "none", "--blocks", "4"), "contradicts blocks"),
        (("-o", "plan.xlsx"), "unknown extension"),
    ],
)
def test_problems_are_named(plan, options, said):
    code, out, error = plan("--half-width", "0.02", *options)
    assert (code, out) == (2, "") and said in " ".join(error.split())


def test_a_folder_and_a_missing_half_width(run_file, tmp_path, capsys):
    assert main(["plan", str(tmp_path), "--half-width", "0.02"]) == 2
    assert "is a folder, not a run file" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["plan", run_file])
    assert "required: --half-width" in capsys.readouterr().err
