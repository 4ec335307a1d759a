"""The types of the public functions as a user's checker sees them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import FunctionType, ModuleType

import pytest
from deletable import deleted_in

import segiou

PROGRAMS = sorted((Path(__file__).parent / "typed").glob("*.py"))
PROGRAMS = [path for path in PROGRAMS if not deleted_in(path.read_text(encoding="utf-8"))]
WRONG = """
import segiou
segiou.ConfusionMatrix(3, ignored=255)
segiou.Counts([1], [2], [3])
text: int = segiou.ConfusionMatrix(3).report().to_json()
segiou.ConfusionMatrix(3).report().to_dict()["mean_iuo"]
"""
PROJECT = tomllib.loads(Path(__file__).parents[1].joinpath("pyproject.toml").read_text("utf-8"))
#: Frameworks of hooks, which mypy leaves out as it does for the code: they take most of its time.
FRAMEWORKS = PROJECT["tool"]["mypy"]["overrides"][0]["module"]
SETTINGS = f"""[mypy]
strict = True
follow_imports = silent
[mypy-{",".join(FRAMEWORKS)}]
follow_imports = skip
"""
PACKAGE = Path(segiou.__file__).parents[1]
#: Where segiou is installed, the checkers look by themselves.
IS_INSTALLED = PACKAGE.name == "site-packages"


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """What mypy knows of segiou from the first check, beside its settings."""
    folder = tmp_path_factory.mktemp("mypy")
    (folder / "mypy.ini").write_text(SETTINGS)
    return folder


def checked(cache, *paths):
    pytest.importorskip("mypy", reason="mypy is not installed")
    environment = os.environ | ({} if IS_INSTALLED else {"MYPYPATH": str(PACKAGE)})
    return subprocess.run(
        [sys.executable, "-m", "mypy", "--cache-dir", str(cache), *map(str, paths)],
        cwd=cache,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_natural_code_is_well_typed(cache):
    done = checked(cache, *PROGRAMS)
    assert done.returncode == 0, done.stdout + done.stderr


def test_wrong_code_is_not(tmp_path, cache):
    (tmp_path / "wrong.py").write_text(WRONG)
    done = checked(cache, tmp_path / "wrong.py")
    assert done.returncode == 1, done.stderr
    assert "Found 4 errors in 1 file" in done.stdout


def pyright(folder, *arguments):
    pytest.importorskip("pyright", reason="pyright is not installed")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    if not IS_INSTALLED:
        environment["PYTHONPATH"] = str(PACKAGE)
    done = subprocess.run(
        [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if not done.stdout:
        pytest.skip(f"pyright does not start: {done.stderr[-200:]}")
    return done


def test_pyright_has_nothing_to_say_against_natural_code(tmp_path):
    settings = {"typeCheckingMode": "strict", "include": [path.name for path in PROGRAMS]}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    for path in PROGRAMS:
        (tmp_path / path.name).write_text(path.read_text("utf-8"), "utf-8")
    (tmp_path / "wrong.py").write_text(WRONG)
    done = pyright(tmp_path)
    assert "0 errors, 0 warnings" in done.stdout, done.stdout
    assert "4 errors" in pyright(tmp_path, "wrong.py").stdout


def test_pyright_knows_the_type_of_every_public_name(tmp_path):
    arguments = ["--verifytypes", "segiou", "--ignoreexternal", "--outputjson"]
    found = json.loads(pyright(tmp_path, *arguments).stdout)["typeCompleteness"]["symbols"]
    # What hooks extend has the types that each framework gives, and the command is no library.
    public = [
        s for s in found if s["isExported"] and s["name"].split(".")[1] not in ("hooks", "cli")
    ]
    assert len(public) > 1000
    assert [s["name"] for s in public if not s["isTypeKnown"] or s["isTypeAmbiguous"]] == []


#: Types of NumPy that need a number of bits or a kind of pixel to be whole.
OF_NUMPY = re.compile(r"NDArray\[Any\]|(integer|unsignedinteger|dtype)\[Any\]")


def public_functions():
    for package in (getattr(segiou, name) for name in dir(segiou)):
        names = dir(package) if isinstance(package, ModuleType) else []
        members = [getattr(package, name) for name in names if package is not segiou.hooks]
        for member in [package, *members]:
            if isinstance(member, type):
                yield from (f for name, f in vars(member).items() if not name.startswith("_"))
            elif isinstance(member, FunctionType):
                yield member


def test_no_public_function_returns_just_anything():
    functions = [getattr(f, "fget", getattr(f, "func", f)) for f in public_functions()]
    found = {
        f.__qualname__: str(f.__annotations__.get("return"))
        for f in functions
        if isinstance(f, FunctionType)
    }
    assert len(found) > 300
    vague = {name: kind for name, kind in found.items() if "Any" in OF_NUMPY.sub("", kind)}
    # The core does not import features, not even for their types.
    assert vague == {"Run.sample_sizes": "Any", "Run.suspects": "Any"}
