"""The order of the rooms, and what importing the package may load."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import segiou

PACKAGE = Path(segiou.__file__).parent

#: From the foundation up: a module imports only from its own row and the rows before it.
ROOMS = (
    ("_arguments", "_compiled", "_files", "_fragments"),
    ("labels",),
    ("counts",),
    ("counting",),
    ("metrics",),
    ("protocols",),
    ("imbalance", "fine_grained", "instance_weighted"),
    ("uncertainty",),
    ("classes",),
    ("readers",),
    ("report", "html", "plots"),
    ("accumulator",),
    ("confusion", "channels", "boundary"),
    ("run", "runs", "runfile"),
    ("comparison",),
    ("pairing",),
    ("sources",),
    ("windows", "scoring"),
    ("inspection",),
    ("geometry", "demo"),
    ("hooks",),
    ("cli",),
)
RANK = {name: rank for rank, names in enumerate(ROOMS) for name in names}
#: Nobody imports these but themselves (and ``python -m segiou`` the command).
ROOFS = {"cli", "hooks"}


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def imported_rooms(source: str) -> set[str]:
    """Rooms that a module imports, inside functions too, for types excepted."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = []
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    rooms = {name.split(".")[1] for name in names if name.startswith("segiou.")}
    return {room for room in rooms if room in RANK}


def violations(room: str, source: str) -> list[str]:
    found = []
    for other in sorted(imported_rooms(source)):
        if other != room and other in ROOFS:
            found.append(f"{room} imports {other}, which nobody may")
        elif RANK[other] > RANK[room]:
            found.append(f"{room} imports {other}, which is built on it")
    return found


def modules() -> list[Path]:
    return sorted(p for p in PACKAGE.rglob("*.py") if room_of(p) not in ("__init__", "__main__"))


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_go_one_way(path):
    assert violations(room_of(path), path.read_text(encoding="utf-8")) == []


def test_every_room_has_a_place():
    assert {room_of(path) for path in modules()} <= set(RANK)


@pytest.mark.parametrize(
    "source",
    [
        "from segiou.run import Run",
        "import segiou.scoring",
        "from segiou import report",
        "def f():\n    from segiou.confusion import ConfusionMatrix",
        "from segiou.cli import main",
    ],
)
def test_the_check_of_the_order_can_fail(source):
    assert violations("metrics", source)


def test_imports_for_types_only_are_free():
    source = "if TYPE_CHECKING:\n    from segiou.run import Run\n"
    assert violations("metrics", source) == []


HEAVY = {"torch", "matplotlib", "skimage", "scipy", "rich", "pandas", "PIL", "jinja2", "dask"} | {
    "tifffile",
    "fsspec",
    "shapely",
    "sqlite3",
}


def loaded_by(statement: str) -> set[str]:
    code = f"import sys\n{statement}\nprint('\\n'.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=PACKAGE.parent,
    )
    return {name.split(".")[0] for name in done.stdout.split()}


def test_importing_loads_nothing_heavy():
    assert not loaded_by("import segiou") & ({"numpy"} | HEAVY)
    assert not loaded_by("from segiou import ConfusionMatrix") & HEAVY


def test_the_check_of_heavy_modules_can_fail():
    assert "PIL" in loaded_by("import PIL.Image")


def test_help_does_not_load_numpy():
    statement = "from segiou.cli.parsers import build_parser\nbuild_parser().format_help()"
    assert not loaded_by(statement) & ({"numpy"} | HEAVY)


def test_public_names_are_there():
    for name in segiou.__all__:
        assert getattr(segiou, name) is not None
    assert set(segiou.__all__) <= set(dir(segiou))
    with pytest.raises(AttributeError, match="no attribute 'Confusion'"):
        _ = segiou.Confusion
