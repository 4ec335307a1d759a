"""The order of the packages, what may look upward, what importing loads, and the page on it."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

import segiou

ROOT = Path(segiou.__file__).parent

#: From the foundation up: a module imports only from its own package and those before it.
PACKAGES = (
    "_support",
    "document",
    "labels",
    "masks",
    "counting",
    "regions",
    "metrics",
    "accumulators",
    "measures",
    "geometry",
    "inference",
    "analysis",
    "runs",
    "scoring",
    "report",
    "plots",
    "hooks",
    "cli",
    "agreement",
    "maps",
)
RANK = {name: rank for rank, name in enumerate(PACKAGES)}
#: Methods that make something of a higher package, for the comfort of who calls them; and
#: the type that they return, where it is imported for types only ("").
UPWARD = {
    ("accumulators/base.py", "", "report"),
    ("accumulators/confusion.py", "ChannelCounts._report_kind", "report"),
    ("accumulators/confusion.py", "ConfusionMatrix._report_kind", "report"),
    ("accumulators/confusion.py", "", "report"),
    ("runs/run.py", "Run.report", "report"),
    ("runs/run.py", "", "report"),
    ("scoring/evaluator.py", "", "report"),
}


def imports(tree: ast.AST, where: str = "") -> list[tuple[str, str]]:
    """Every import of the package: the function it stands in, and the package imported."""
    found = []
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.expr):
            continue
        names: list[str] = []
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        packages = {name.split(".")[1] for name in names if name.startswith("segiou.")}
        found += [(where, package) for package in sorted(packages) if package in RANK]
        named = isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
        inside = f"{where}.{node.name}".lstrip(".") if named else where
        found += imports(node, inside)
    return found


def violations(path: str, source: str) -> set[tuple[str, str, str]]:
    """Imports of a file that look upward: the file, the function, the package."""
    rank = RANK[path.split("/")[0]]
    # Most files name no higher package, which is seen sooner than they are parsed.
    named = re.findall(r"\bsegiou\.(\w+)", source)
    if "segiou import" not in source and all(RANK.get(name, 0) <= rank for name in named):
        return set()
    found = imports(ast.parse(source))
    return {(path, where, package) for where, package in found if RANK[package] > rank}


def modules() -> list[str]:
    paths = [path.relative_to(ROOT) for path in ROOT.rglob("*.py")]
    return sorted(path.as_posix() for path in paths if len(path.parts) > 1)


def test_imports_go_one_way():
    found = set()
    for path in modules():
        found |= violations(path, (ROOT / path).read_text(encoding="utf-8"))
    assert found == UPWARD


def test_every_package_has_a_place_and_nothing_is_loose():
    here = {path.name for path in ROOT.iterdir() if path.name != "__pycache__"}
    assert here == {*PACKAGES, "__init__.py", "__init__.pyi", "__main__.py", "py.typed"}


@pytest.mark.parametrize(
    "source",
    [
        "from segiou.runs.run import Run",
        "import segiou.scoring",
        "from segiou import report",
        "def f():\n    from segiou.accumulators.confusion import ConfusionMatrix",
        "if TYPE_CHECKING:\n    from segiou.runs.run import Run",
        "from segiou.cli import main",
    ],
)
def test_the_check_of_the_order_can_fail(source):
    assert violations("metrics/overall.py", source)


def test_the_check_names_the_method():
    source = "class A:\n    def b(self):\n        import segiou.report"
    assert violations("runs/run.py", source) == {("runs/run.py", "A.b", "report")}


def test_no_file_has_the_name_of_what_its_package_exports():
    for package in set(PACKAGES) - {"hooks"}:  # which exports its files
        exported = set(getattr(import_module(f"segiou.{package}"), "__all__", ()))
        assert not exported & {path.stem for path in (ROOT / package).glob("*.py")}, package


def test_packages_and_files_stay_few():
    assert len(PACKAGES) <= 22
    nested = {Path(path).parts[0] for path in modules() if len(Path(path).parts) > 2}
    assert nested == {"accumulators", "analysis", "masks", "measures", "report"}


PAGE = (Path(__file__).parents[1] / "docs" / "architecture.md").read_text(encoding="utf-8")


def test_every_file_of_the_page_exists():
    paths = set(re.findall(r"`([\w./-]+(?:/|\.(?:pyi?|c|toml|md)))`", PAGE)) - {"__init__.pyi"}
    assert len(paths) > 40
    # Wheels hold no C sources: the files are those of the repository.
    here = Path(__file__).parents[1]
    roots = (here / "segiou", here)
    assert [p for p in sorted(paths) if not any((root / p).exists() for root in roots)] == []


def test_the_page_has_the_packages_in_their_order():
    assert re.findall(r"^\| `(\w+)/` \|", PAGE, re.MULTILINE) == list(PACKAGES)


@pytest.mark.parametrize(
    ("name", "home"),
    [
        ("ClassMetric", "metrics.pixel_scores"),
        ("RawMask", "masks.read"),
        ("from_bytes", "masks.read"),
        ("Job", "scoring.job"),
        ("Report", "report.report"),
    ],
)
def test_names_of_the_page_are_where_it_says(name, home):
    assert f"`{name}`" in PAGE
    assert hasattr(import_module(f"segiou.{home}"), name)


HEAVY = {
    "PIL",
    "dask",
    "fsspec",
    "jinja2",
    "matplotlib",
    "pandas",
    "rich",
    "scipy",
    "shapely",
    "skimage",
    "sqlite3",
    "tifffile",
    "torch",
}


@cache
def loaded_by(statement: str, *flags: str) -> frozenset[str]:
    """Modules that are loaded after a statement."""
    code = f"import sys\n{statement}\nprint('\\n'.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, *flags, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT.parent,
    )
    return frozenset(done.stdout.split())


#: Importing and using the class that most users start with.
MATRIX = "from segiou import ConfusionMatrix; ConfusionMatrix(2)"


def test_importing_loads_nothing_heavy():
    assert not loaded_by("import segiou") & {"numpy", *HEAVY}
    assert not loaded_by(MATRIX) & HEAVY


def test_what_starts_at_once_loads_little_of_the_standard_library():
    slow = {"ast", "dataclasses", "inspect", "pathlib", "shutil", "tempfile", "typing"}
    # Without the packages that are installed, some of which load these at every start.
    help_ = "from segiou.cli.options import build_parser\nbuild_parser('score').format_help()"
    assert not loaded_by("import segiou; segiou.__all__", "-S") & slow
    # From Python 3.14 on, argparse itself loads some of them, for its colours.
    if sys.version_info < (3, 14):
        assert not loaded_by(help_, "-S") & slow


def test_the_check_of_heavy_modules_can_fail():
    assert "PIL" in loaded_by("import PIL.Image")


def test_a_matrix_loads_few_modules():
    ours = {name for name in loaded_by(MATRIX) if name.split(".")[0] == "segiou"}
    assert len(ours) <= 30, sorted(ours)


def test_help_does_not_load_numpy():
    statement = "from segiou.cli.options import build_parser\nbuild_parser('score').format_help()"
    assert not loaded_by(statement) & {"numpy", *HEAVY}


def test_public_names_are_there():
    for name in segiou.__all__:
        assert getattr(segiou, name) is not None
    assert dir(segiou) == sorted(segiou.__all__)
    with pytest.raises(AttributeError, match="no attribute 'Confusion'"):
        _ = segiou.Confusion


#: Prints the packages that are loaded when they are asked for, each by a new import of segiou.
ATTRIBUTES = """
import sys
for package in sys.argv[1:]:
    for name in [name for name in sys.modules if name.partition(".")[0] == "segiou"]:
        del sys.modules[name]
    import segiou
    assert f"segiou.{package}" not in sys.modules, package
    getattr(segiou, package)
    if f"segiou.{package}" in sys.modules:
        print(package)
"""


def test_public_packages_are_attributes():
    public = [package for package in PACKAGES if package not in ("_support", "document", "cli")]
    command = [sys.executable, "-c", ATTRIBUTES, *public]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT.parent)
    assert done.stdout.split() == public


def test_faces_say_what_is_public():
    for package in set(PACKAGES) - {"_support", "document", "cli", "hooks"}:
        module = import_module(f"segiou.{package}")
        assert dir(module) == sorted(module.__all__)
        for name in module.__all__:
            assert getattr(module, name) is not None
