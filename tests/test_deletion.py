"""Without the folders of some kinds of scores and features, the rest names the missing."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from deletable import WORDS, copy_without, needed_by, python_in

STREETS = Path(__file__).parents[1] / "fixtures" / "streets"


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A copy of the repository without these folders."""
    return copy_without(WORDS, tmp_path_factory.mktemp("rest"))


SCORE = ["score", f"{STREETS}/truth", f"{STREETS}/model_a", "--labels", f"{STREETS}/labels.toml"]
COMPARE = ["compare", *SCORE[1:3], *SCORE[2:]]
NO_OPTION = "no installed measure has this option"
NOT_THERE = "needs the measure 'surfaces', which is not installed"
#: Commands whose folders are missing, and the message of each.
MISSING = [
    ([*SCORE, "--topology"], f"--topology; {NO_OPTION}"),
    ([*SCORE, "--lesions=brats2023-gli"], f"--lesions=brats2023-gli; {NO_OPTION}"),
    ([*SCORE, "--surface", "segiou"], f"segiou; {NO_OPTION}"),
    ([*SCORE, "--boundary-tolerance=1"], "unrecognized arguments: --boundary-tolerance=1"),
    ([*SCORE, "--boundary=2mm,3"], f"--boundary=2mm,3 {NOT_THERE}"),
    ([*SCORE, "--fail-over", "HD95:road=3"], f"HD95:road {NOT_THERE}"),
    ([*SCORE, "--worst=1", "--worst-by=hausdorff_95"], f"hausdorff_95 {NOT_THERE}"),
    ([*SCORE, "--sort=nsd"], f"nsd {NOT_THERE}"),
    ([*SCORE, "--columns=dice,hd95"], f"hd95 {NOT_THERE}"),
    ([*COMPARE, "--metric=surface_dice"], f"surface_dice {NOT_THERE}"),
    ([*COMPARE, "--metric=cldice"], "segiou measures lists the scores of the installed measures"),
    (["map-accuracy", "a.csv", "--areas", "b.csv"], "map-accuracy needs segiou.maps, which is"),
    (["demo", "streets"], "demo needs segiou.demo, which is not installed"),
    (["explore", "--no-open"], "explore needs segiou.explorer, which is not installed"),
    (["plan", "a.sqlite", "--half-width=2%"], "plan needs segiou.planning, which is not installed"),
]
CODE = """
import contextlib, io, json, sys
import segiou
from segiou.cli.main import main

def run(arguments):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main(arguments)
        except SystemExit as ended:
            code = ended.code
    return code, out.getvalue(), err.getvalue()

def raised(**options):
    try:
        segiou.score([[[0]]], [[[0]]], labels=2, **options)
    except ValueError as error:
        return str(error)

print(json.dumps({
    "commands": [run(one) for one in json.loads(sys.argv[1])],
    "keywords": [raised(surfaces=True), raised(measures=["topology"], boundary=True)],
    "matrix": segiou.ConfusionMatrix(2).report().verdict,
}))
"""


@pytest.mark.gate
def test_what_is_missing_is_named_and_everything_else_works(copy):
    """All in one process, because each start takes as long as the commands."""
    commands = [command for command, _ in MISSING]
    commands += [["--help"], ["score", "--help-all"], [*SCORE, "--boundary", "--objects"]]
    done = python_in(copy, "-c", CODE, json.dumps(commands), capture_output=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    *refused, listed, help_, scored = found["commands"]
    assert "  raters " in listed[1]
    assert not any(
        f"  {name} " in listed[1] for name in ("demo", "explore", "map-accuracy", "plan")
    )
    shown = re.findall(r"(?m)^  (--[a-z-]+)", help_[1])
    assert {"--boundary", "--objects"} <= {*shown}
    assert not {"--surface", "--boundary-tolerance", "--lesions", "--topology"} & {*shown}
    for (code, out, err), (command, message) in zip(refused, MISSING, strict=True):
        assert (code, out) == (2, ""), command
        assert message in err
    assert scored[0] == 0
    for text, key in zip(found["keywords"], ("surfaces", "topology"), strict=True):
        assert f"unknown measure {key!r}" in text
    assert "undefined" in found["matrix"]


#: Rules of the house, which must hold without each folder.
RULES = ("tests/test_architecture.py", "tests/_support/test_faces.py")
#: Tests that build the C code, and skip that of a deleted kind.
BUILDS = ("tests/test_sanitizers.py", "tests/test_compilers.py")


def passes(copy: Path, *arguments: str) -> None:
    """Run tests in a copy."""
    done = python_in(copy, "-m", "pytest", "-q", "-n", "0", *arguments, capture_output=True)
    assert done.returncode == 0, done.stdout + done.stderr


def files_on(folders, copy: Path) -> list[str]:
    """Files with tests that are skipped without a folder, and name one of these."""
    texts = {path: path.read_text("utf-8") for path in (copy / "tests").rglob("test_*.py")}
    marked = {
        path: text for path, text in texts.items() if "mark.needs" in text or "deletable" in text
    }
    for rule in (*RULES, *BUILDS):
        marked.pop(copy / rule, None)
    return [str(path) for path, text in marked.items() if {*needed_by(text)} & {*folders}]


#: Each kind of scores, and all features together, because each takes a copy and many tests.
APART = [*([name] for name in WORDS if "." in name), [name for name in WORDS if "." not in name]]


@pytest.mark.gate
@pytest.mark.parametrize("folders", APART, ids=" ".join)
def test_rules_and_tests_of_several_folders_pass_without_some(folders, tmp_path):
    copy = copy_without(folders, tmp_path)
    passes(copy, *RULES, "-k", "not load")
    passes(copy, "-m", "needs and not gate", *files_on(folders, copy))


@pytest.mark.gate
def test_rules_and_files_on_the_folders_pass_without_all(copy):
    # Frameworks and browsers run for long whatever is deleted; of theirs, the tests with marks do.
    passes(copy, *RULES, *files_on(WORDS, copy), "-m", "not (gate or frameworks or browser)")
