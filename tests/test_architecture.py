"""The order of the packages, what may look upward, what importing loads, and the page on it."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

import segiou

ROOT = Path(segiou.__file__).parent

#: From the foundation up: a module imports only from its own room and those before it. A room in a
#: room has a dotted name.
ROOMS = (
    "_support",
    "document",
    "labels",
    "masks",
    "masks.formats",
    "masks.sources",
    "counting",
    "regions",
    "metrics",
    "geometry",
    "accumulators",
    "accumulators.histograms",
    "measures",
    "inference",
    "analysis",
    "analysis.gap",
    "analysis.comparison",
    "analysis.slices",
    "runs",
    "scoring",
    "report",
    "report.pages",
    "plots",
    "hooks",
    "cli",
    "raters",
    "maps",
)
RANK = {name: rank for rank, name in enumerate(ROOMS)}
PACKAGES = [name for name in ROOMS if "." not in name]
#: Kinds of scores: no room imports one, and a kind imports only rooms and itself.
KINDS = sorted(path.parent.name for path in (ROOT / "measures").glob("*/__init__.py"))
#: Methods that make something of a higher room, for the comfort of who calls them; and
#: the type that they return, where it is imported for types only ("").
UPWARD = {
    ("accumulators/base.py", "", "report"),
    ("accumulators/confusion.py", "ChannelCounts._report_kind", "report"),
    ("accumulators/confusion.py", "ConfusionMatrix._report_kind", "report"),
    ("accumulators/confusion.py", "", "report"),
    ("report/report.py", "Report.to_html", "report.pages"),
    ("runs/run.py", "Run.report", "report"),
    ("runs/run.py", "", "report"),
    ("scoring/evaluator.py", "", "report"),
}
#: Rooms that need each other: masks are read by their formats, which fill the masks.
MUTUAL = {("masks", "masks.formats")}


def room_of(name: str) -> str:
    """The room, or the kind of score, of a module without ``segiou.``; empty if it is in none."""
    parts = name.split(".")
    if parts[0] == "measures" and len(parts) > 1 and parts[1] in KINDS:
        return f"measures.{parts[1]}"
    several = (".".join(parts[:number]) for number in range(len(parts), 0, -1))
    return next((room for room in several if room in RANK), "")


def imports(tree: ast.AST, where: str = "") -> list[tuple[str, str]]:
    """Every import of the package: the function it stands in, and the room imported."""
    found = []
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.expr):
            continue
        names: list[str] = []
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        rooms = {room_of(name[7:]) for name in names if name.startswith("segiou.")}
        found += [(where, room) for room in sorted(rooms) if room]
        named = isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
        inside = f"{where}.{node.name}".lstrip(".") if named else where
        found += imports(node, inside)
    return found


def is_allowed(here: str, there: str, *, face: bool) -> bool:
    """Whether a module of one room may import from another."""
    if here == there:
        return True
    if there not in RANK:  # a kind of score
        return False
    if here not in RANK:
        return there not in ("cli", "raters", "maps")
    if face and there.startswith(f"{here}."):
        return True
    return RANK[there] < RANK[here] or (here, there) in MUTUAL


def violations(path: str, source: str) -> set[tuple[str, str, str]]:
    """Imports of a file that look upward, or at a kind: the file, the function, the room."""
    here = room_of(".".join(Path(path).parent.parts))
    face = path.endswith("__init__.pyi")
    found = imports(ast.parse(source))
    return {(path, at, room) for at, room in found if not is_allowed(here, room, face=face)}


def modules() -> list[str]:
    paths = [path.relative_to(ROOT) for end in ("py", "pyi") for path in ROOT.rglob(f"*.{end}")]
    return sorted(path.as_posix() for path in paths if len(path.parts) > 1)


def test_imports_go_one_way():
    found = set()
    for path in modules():
        found |= violations(path, (ROOT / path).read_text(encoding="utf-8"))
    assert found == UPWARD


def test_every_room_has_a_place_and_nothing_is_loose():
    here = {path.name for path in ROOT.iterdir() if path.name != "__pycache__"}
    assert here == {*PACKAGES, "__init__.py", "__init__.pyi", "__main__.py", "py.typed"}
    folders = {path.parent.relative_to(ROOT).as_posix() for path in ROOT.rglob("__init__.py")}
    rooms = {*ROOMS, *(f"measures.{kind}" for kind in KINDS)}
    assert {folder.replace("/", ".") for folder in folders} - {"."} == rooms


def test_every_kind_is_found_by_its_entry_point_alone():
    project = tomllib.loads((ROOT.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    homes = {key: f"segiou.measures.{key}" for key in KINDS}
    entries = project["entry-points"]["segiou.measures"]
    assert {key: value.partition(":")[0] for key, value in entries.items()} == homes


@pytest.mark.parametrize(
    "source",
    [
        "from segiou.runs.run import Run",
        "import segiou.scoring",
        "from segiou import report",
        "def f():\n    from segiou.accumulators.confusion import ConfusionMatrix",
        "if TYPE_CHECKING:\n    from segiou.runs.run import Run",
        "from segiou.cli import main",
        "from segiou.measures import boundary",
        "from segiou.measures.boundary.plan import BoundaryPlan",
    ],
)
def test_the_check_of_the_order_can_fail(source):
    assert violations("metrics/overall.py", source)
    assert violations("measures/lesions/plan.py", source) or "boundary" not in source


def test_the_check_names_the_method():
    source = "class A:\n    def b(self):\n        import segiou.report"
    assert violations("runs/run.py", source) == {("runs/run.py", "A.b", "report")}


def test_no_file_has_the_name_of_what_its_package_exports():
    for room in [*ROOMS, *(f"measures.{kind}" for kind in KINDS)]:
        if room == "hooks":  # which exports its files
            continue
        exported = set(getattr(import_module(f"segiou.{room}"), "__all__", ()))
        assert not exported & {path.stem for path in (ROOT / room.replace(".", "/")).glob("*.py")}


def test_rooms_stay_few():
    assert len(PACKAGES) <= 20


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
