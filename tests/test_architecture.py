"""The order of the packages, what may look upward, what importing loads, and the page on it.

``python tests/test_architecture.py`` prints the code lines of each folder; with ``--write``, it
also writes them to docs/architecture.md.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

import segiou

ROOT = Path(segiou.__file__).parent
PYPROJECT = Path(__file__).parents[1] / "pyproject.toml"
PROJECT = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]

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
    "annotations",
    "checks",
    "demo",
    "explorer",
    "planning",
    "raters",
    "maps",
    "suspects",
)
#: What a few users need: folders that could be deleted, as the kinds of scores could. What is left
#: then obeys the same rules.
FEATURES = (
    "geometry",
    "plots",
    "hooks",
    "annotations",
    "checks",
    "demo",
    "explorer",
    "planning",
    "raters",
    "maps",
    "suspects",
)
DELETED = {name for name in FEATURES if not (ROOT / name).is_dir()}
FEATURES = tuple(name for name in FEATURES if name not in DELETED)
ROOMS = tuple(name for name in ROOMS if name not in DELETED)
RANK = {name: rank for rank, name in enumerate(ROOMS)}
PACKAGES = [name for name in ROOMS if "." not in name]
#: Kinds of scores: no room imports one, and a kind imports only rooms and itself.
KINDS = sorted(path.parent.name for path in (ROOT / "measures").glob("*/__init__.py"))
#: Methods that make something of a higher room, for the comfort of who calls them; and the
#: type that they return, where it is imported for types only (""). Plots are found by name.
UPWARD = {
    ("accumulators/base.py", "PixelAccumulator.report", "report"),
    ("accumulators/base.py", "", "report"),
    ("report/report.py", "Report.to_html", "report.pages"),
    ("runs/run.py", "Run.report", "report"),
    ("runs/run.py", "", "report"),
    ("scoring/evaluator.py", "", "report"),
}
#: Masks are read by their formats, which fill the masks; objects have a hook of their own.
MUTUAL = {("masks", "masks.formats"), ("measures.objects", "hooks")}


def room_of(name: str) -> str:
    """The room, or the kind of score, of a module without ``segiou.``; empty if it is in none."""
    parts = name.split(".")
    if parts[0] == "measures" and len(parts) > 1 and parts[1] in KINDS:
        return f"measures.{parts[1]}"
    several = (".".join(parts[:number]) for number in range(len(parts), 0, -1))
    return next((room for room in several if room in RANK), "")


def imports(tree: ast.AST, where: str = "") -> list[tuple[str, str]]:
    """Every name that is imported, and the function in which that is done."""
    found = []
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.expr):
            continue
        names: list[str] = []
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        found += [(where, name) for name in names]
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
        return there not in ("cli", *FEATURES) or (here, there) in MUTUAL
    if face and there.startswith(f"{here}."):
        return True
    return RANK[there] < RANK[here] or (here, there) in MUTUAL


def violations(path: str, source: str) -> set[tuple[str, str, str]]:
    """Imports of a source that look upward, or at a kind."""
    return forbidden(path, ours(imports(ast.parse(source))))


def ours(names: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """The names of the package, without its own."""
    return [(at, name[7:]) for at, name in names if name.startswith("segiou.")]


def forbidden(path: str, names: list[tuple[str, str]]) -> set[tuple[str, str, str]]:
    """Imports of a file that look upward, or at a kind: the file, the function, the room."""
    here = room_of(".".join(Path(path).parent.parts))
    face = path.endswith("__init__.pyi")
    found = {(path, at, room_of(name)) for at, name in names}
    return {one for one in found if one[2] and not is_allowed(here, one[2], face=face)}


def modules() -> list[str]:
    paths = [path.relative_to(ROOT) for end in ("py", "pyi") for path in ROOT.rglob(f"*.{end}")]
    return sorted(path.as_posix() for path in paths if len(path.parts) > 1)


@cache
def parsed(path: Path) -> tuple[list[tuple[str, str]], set[int]]:
    """The imports of a file and the lines of its docstrings, as parsing takes the time."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return imports(tree), {*docstring_lines(tree)}


def imports_of(path: str) -> list[tuple[str, str]]:
    return ours(parsed(ROOT / path)[0])


def test_imports_go_one_way():
    found = set().union(*(forbidden(path, imports_of(path)) for path in modules()))
    assert found == UPWARD


#: Distributions whose module has another name.
MODULES = {
    "pillow": "PIL",
    "zlib-ng": "zlib_ng",
    "pytorch-ignite": "ignite",
    "mmengine-lite": "mmengine",
}
#: Who has a zarr store has this installed.
UNDECLARED = {"zarr"}


def foreign(names: list[tuple[str, str]]) -> set[str]:
    """The packages among imported names, without the standard library's and this one."""
    found = {name.partition(".")[0] for _, name in names}
    return found - sys.stdlib_module_names - {"segiou"}


def test_every_package_that_is_imported_is_declared():
    extras = PROJECT["optional-dependencies"]
    needs = [*PROJECT["dependencies"]]
    needs += [one for extra, several in extras.items() if extra != "test" for one in several]
    declared = {re.match(r"[\w-]+", one)[0].lower() for one in needs}
    modules_of = {MODULES.get(name, name) for name in declared}
    assert {"PIL", "tifffile", "torch"} <= modules_of
    found = (foreign(parsed(path)[0]) for path in ROOT.rglob("*.py"))
    assert set().union(*found) - modules_of == UNDECLARED


def test_the_check_of_imports_can_fail():
    tree = ast.parse("def f():\n    from undeclared.part import name")
    assert foreign(imports(tree)) == {"undeclared"}


def test_every_room_has_a_place_and_nothing_is_loose():
    here = {path.name for path in ROOT.iterdir() if path.name != "__pycache__"}
    assert here == {*PACKAGES, "__init__.py", "__init__.pyi", "__main__.py", "py.typed"}
    folders = {path.parent.relative_to(ROOT).as_posix() for path in ROOT.rglob("__init__.py")}
    rooms = {*ROOMS, *(f"measures.{kind}" for kind in KINDS)}
    assert {folder.replace("/", ".") for folder in folders} - {"."} == rooms


def file_of(name: str) -> str:
    """The file that an import names, or the face of a package."""
    parts = name.split(".")
    several = ["/".join(parts[:number]) for number in range(len(parts), 0, -1)]
    paths = [f"{path}{end}" for path in several for end in (".py", "/__init__.pyi", "/__init__.py")]
    return next((path for path in paths if (ROOT / path).is_file()), "__init__.pyi")


def graph() -> dict[str, set[str]]:
    """Files and the files that they import: at once, lazily or for types, but not upward."""
    found = {}
    for path in ["__init__.pyi", *modules()]:
        names = imports_of(path)
        found[path] = {
            file_of(name) for at, name in names if (path, at, room_of(name)) not in UPWARD
        }
    return found


def circles(graph: dict[str, set[str]]) -> list[set[str]]:
    """Files that import each other, directly or by others; the most first."""
    reached = {path: reach(graph, path) for path in graph}
    found = {frozenset(b for b in reached[a] if a in reached.get(b, ())) for a in graph}
    return sorted(map(set, found - {frozenset()}), key=len, reverse=True)


def reach(graph: dict[str, set[str]], start: str) -> set[str]:
    seen: set[str] = set()
    ahead = set(graph.get(start, ()))
    while ahead:
        seen |= ahead
        ahead = set().union(*(graph.get(path, set()) for path in ahead)) - seen
    return seen


def test_circles_of_files_stay_small():
    found = circles(graph())
    print(f"largest circle: {len(found[0])} files")
    assert len(found[0]) <= 6, sorted(found[0])


def test_the_check_of_circles_can_fail():
    links = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": {"e"}, "e": {"d"}, "f": {"a"}}
    assert circles(links) == [{"a", "b", "c"}, {"d", "e"}]


PAGE_PATH = Path(__file__).parents[1] / "docs" / "architecture.md"


def code_lines(path: Path) -> int:
    """Lines of code: without docstrings, comments and blank lines."""
    text = path.read_text(encoding="utf-8")
    if path.suffix in (".c", ".h"):
        text = re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.DOTALL)
        return sum(bool(line.strip()) for line in text.splitlines())
    lines = enumerate(map(str.strip, text.splitlines()), 1)
    found = {number for number, line in lines if line and not line.startswith("#")}
    return len(found - parsed(path)[1])


def docstring_lines(node: ast.AST) -> Iterator[int]:
    documented = isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef))
    if documented and node.body and ast.get_docstring(node, clean=False):
        yield from range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1)
    for inner in ast.iter_child_nodes(node):
        if not isinstance(inner, ast.expr):
            yield from docstring_lines(inner)


def sizes() -> dict[str, tuple[int, int]]:
    """Lines of Python and of C: of each package, of each kind, of the core and of all."""
    found: dict[str, list[int]] = {}
    for path in ROOT.rglob("*.*"):
        if path.suffix not in (".py", ".pyi", ".c", ".h"):
            continue
        parts = path.relative_to(ROOT).parts
        kind = parts[0] == "measures" and parts[1] in KINDS
        home = "/".join(parts[: 2 if kind else 1]) if len(parts) > 1 else ""
        core = not kind and home not in FEATURES
        lines = code_lines(path)
        for name in (home, "all", *(["core"] if core else [])):
            found.setdefault(name, [0, 0])[path.suffix in (".c", ".h")] += lines
    return {name: (python, c) for name, (python, c) in found.items()}


def with_sizes(page: str, found: dict[str, tuple[int, int]]) -> str:
    """The page with the lines of each folder in the last cells of its row."""
    for name, (python, c) in found.items():
        head = f"`{name}/`" if name not in ("core", "all") else f"**{name}**"
        row = rf"^(\| {re.escape(head)} \|[^|]*\|)[ ·\d]*\|[ ·\d]*\|$"
        page = re.sub(row, rf"\1 {python} | {c or '·'} |", page, flags=re.MULTILINE)
    return page


def written_sizes(page: str) -> dict[str, int]:
    row = r"^\| [`*]+([\w/]+?)/?[`*]+ \|[^|]*\| (\d+) \|[ ·\d]*\|$"
    return {name: int(number) for name, number in re.findall(row, page, re.MULTILINE)}


def test_the_page_has_the_size_of_each_folder():
    found, written = sizes(), written_sizes(PAGE)
    print("\n".join(f"{name:22}{python:7}{c:6}" for name, (python, c) in found.items() if name))
    assert set(written) == set(found) - {""}
    core, whole = written.pop("core"), written.pop("all")
    # python tests/test_architecture.py --write
    assert core == pytest.approx(found["core"][0], rel=0.05)
    assert sum(written.values()) == pytest.approx(found["all"][0], rel=0.05)
    # Of the folders that were not deleted.
    assert whole >= 0.95 * sum(written.values())


def test_code_lines_by_hand(tmp_path):
    path = tmp_path / "a.py"
    path.write_text(
        '"""Doc.\n\nMore."""\n# why\n\ndef f():\n    """Doc."""\n    x = """\n\n"""\n    return x\n'
    )
    assert code_lines(path) == 4
    path = tmp_path / "a.c"
    path.write_text("/* Why\n   so. */\nint x; // y\n\nint y;\n")
    assert code_lines(path) == 2


def test_the_page_is_written_row_by_row():
    page = "| `a/` | of a | 1 | |\n| `a/b/` | of b | | |\n| **core** | | 1 | 2 |\n"
    found = {"a": (10, 0), "a/b": (20, 3), "core": (30, 0)}
    assert with_sizes(page, found) == (
        "| `a/` | of a | 10 | · |\n| `a/b/` | of b | 20 | 3 |\n| **core** | | 30 | · |\n"
    )


def test_the_core_imports_no_feature():
    """The face of segiou names them, and pages of plots look up their names."""
    found = set()
    for path in modules():
        here = room_of(".".join(Path(path).parent.parts)).split(".")[0]
        names = imports_of(path)
        there = {room_of(name).split(".")[0] for _, name in names} & set(FEATURES)
        found |= {(path, one) for one in there if here not in FEATURES and here != "measures"}
    assert found <= {("cli/output.py", "plots")}


def test_upward_methods_are_few():
    """A page of a report is one of its formats, so ``to_html`` stands beside ``report``."""
    names = {at.rpartition(".")[2] for _, at, _ in UPWARD if at}
    assert names <= {"report", "plot", "to_html"}
    assert {path for path, at, _ in UPWARD if not at} <= {
        path for path in modules() if "def report(" in (ROOT / path).read_text(encoding="utf-8")
    }


def test_every_kind_is_found_by_its_entry_point_alone():
    homes = {key: f"segiou.measures.{key}" for key in KINDS}
    entries = PROJECT["entry-points"]["segiou.measures"]
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
        "from segiou.measures.boundary.measure import BoundaryPlan",
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
    assert len(PACKAGES) - len(FEATURES) <= 15


PAGE = PAGE_PATH.read_text(encoding="utf-8")


@pytest.mark.needs(
    *("checks", "demo", "explorer", "maps", "planning", "raters"),
    *("measures.lesions", "measures.surfaces", "measures.topology"),
)
def test_every_file_of_the_page_exists():
    paths = set(re.findall(r"`([\w./-]+(?:/|\.(?:pyi?|c|toml|md)))`", PAGE)) - {"__init__.pyi"}
    assert len(paths) > 40
    # Wheels hold no C sources: the files are those of the repository.
    here = Path(__file__).parents[1]
    roots = (here / "segiou", here)
    assert [p for p in sorted(paths) if not any((root / p).exists() for root in roots)] == []


def test_the_page_has_the_packages_in_their_order():
    found = re.findall(r"^\| `(\w+)/` \|", PAGE, re.MULTILINE)
    core = [name for name in PACKAGES if name not in FEATURES]
    assert found == [*core, *FEATURES]
    kinds = re.findall(r"^\| `measures/(\w+)/` \|", PAGE, re.MULTILINE)
    assert kinds == KINDS


@pytest.mark.parametrize(
    ("name", "home"),
    [
        ("ClassMetric", "metrics.pixel_scores"),
        ("RawMask", "masks.raw_mask"),
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
    assert len(ours) <= 31, sorted(ours)


def test_help_does_not_load_numpy():
    statement = "from segiou.cli.options import build_parser\nbuild_parser('score').format_help()"
    assert not loaded_by(statement) & {"numpy", *HEAVY}


#: Modules that few runs need, and what most users start with.
RARELY = ("numpy.ma", "hashlib", "sqlite3", "matplotlib", "jinja2", "scipy.optimize")
OF_RARE_RUNS = (
    *(f"segiou.{name}" for name in (*FEATURES, *(f"measures.{kind}" for kind in KINDS))),
    *("segiou.report.pages", "segiou.analysis.comparison", "segiou.analysis.slices"),
    *("segiou._support.output_folder", "segiou.scoring.inspection", "segiou.scoring.label_fits"),
)
STREETS = Path(__file__).parents[1] / "fixtures" / "streets"


def test_a_plain_run_loads_nothing_that_it_does_not_need():
    paths = [str(STREETS / name) for name in ("truth", "model_a", "labels.toml")]
    options = [*paths[:2], "--labels", paths[2], "-q", "-o", os.devnull]
    score = f"from segiou.cli.main import main; assert main({['score', *options]}) == 0"
    loaded = loaded_by(score) - loaded_by("import numpy, PIL.Image, rich.console, rich.table")
    rare = (*RARELY, *OF_RARE_RUNS)
    assert [m for m in loaded if any(f"{m}.".startswith(f"{one}.") for one in rare)] == []


def test_public_names_are_there():
    for name in segiou.__all__:
        assert getattr(segiou, name) is not None
    assert dir(segiou) == sorted(segiou.__all__)
    with pytest.raises(AttributeError, match="no attribute 'Confusion'"):
        _ = segiou.Confusion


#: Packages without public names.
WITHOUT_FACE = ("_support", "document", "cli", "annotations")
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
    public = [package for package in PACKAGES if package not in WITHOUT_FACE]
    command = [sys.executable, "-c", ATTRIBUTES, *public]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT.parent)
    assert done.stdout.split() == public


def test_faces_say_what_is_public():
    for package in set(PACKAGES) - {*WITHOUT_FACE, "hooks"}:
        module = import_module(f"segiou.{package}")
        assert dir(module) == sorted(module.__all__)
        for name in module.__all__:
            assert getattr(module, name) is not None


if __name__ == "__main__":
    print("\n".join(f"{name or '.':22}{python:7}{c:6}" for name, (python, c) in sizes().items()))
    print(f"largest circle of imports: {len(circles(graph())[0])} files")
    if "--write" in sys.argv:
        PAGE_PATH.write_text(with_sizes(PAGE, sizes()), encoding="utf-8")
