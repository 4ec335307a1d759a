"""The folders of segiou that could be deleted, the text that needs them, and copies without them.

``python tests/importable/deletable.py maps measures.surfaces -- -n 2`` runs all tests, with these
options of pytest, in a copy without these folders; without names, in a copy without all of them.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import segiou

HOME = Path(__file__).parents[2]
NOT_COPIED = (".git", ".venv", "__pycache__", ".*_cache", ".hypothesis", "*.egg-info", "build")
#: The finder of an editable installation finds the deleted folders in the checkout.
ONLY_THE_COPY = """import sys
sys.meta_path = [one for one in sys.meta_path if "editable" not in str(one).lower()]
"""
#: Folders, and words of the options, scores and names that each defines.
WORDS = {
    "checks": r"check_measure|segiou\.checks",
    "demo": r"segiou demo\b|segiou\.demo",
    "explorer": r"segiou explore\b|segiou\.explore",
    "maps": r"map-accuracy|segiou\.maps",
    "measures.lesions": r"--lesions|lesion_|Lesion\w*Options|measures.lesions",
    "measures.surfaces": (
        r"--surface|--boundary-tolerance|--boundary=\d+mm|surfaces=|hausdorff|HD95|surface_dice|"
        r"\bNSD|\bASSD|Surface\w*Options|measures.surfaces"
    ),
    "measures.topology": r"--topology|cldice|betti|measures.topology",
    "planning": r"--half-width|sample_sizes|segiou\.planning",
}


def needed_by(text: str) -> list[str]:
    """The folders that define words of a text."""
    return [name for name, words in WORDS.items() if re.search(words, text, re.IGNORECASE)]


def needs_of(text: str) -> pytest.MarkDecorator:
    """Marks a test of a command or page with the folders that its text needs."""
    return pytest.mark.needs(*needed_by(text))


def deleted_in(text: str) -> list[str]:
    """The deleted folders that a text needs."""
    return [name for name in needed_by(text) if find_spec(f"segiou.{name}") is None]


def kind_of_scores(key: str) -> Any:
    """The package of a kind of scores; skips the test if its folder was deleted."""
    name = f"segiou.measures.{key}"
    return pytest.importorskip(name, reason=f"{name} was deleted")


def copy_without(folders: Iterable[str], target: Path) -> Path:
    """Copy the repository and delete folders of segiou, their tests, entry points and rows."""
    copy = target / "repository"
    shutil.copytree(HOME, copy, ignore=shutil.ignore_patterns(*NOT_COPIED))
    package = Path(segiou.__file__).parent
    for path in (path for end in ("so", "pyd") for path in package.rglob(f"*.{end}")):
        shutil.copyfile(path, copy / "segiou" / path.relative_to(package))
    (copy / "tests" / "test_deletion.py").unlink()
    (copy / "sitecustomize.py").write_text(ONLY_THE_COPY, encoding="utf-8")
    project, page = copy / "pyproject.toml", copy / "docs" / "architecture.md"
    face = copy / "segiou" / "__init__.pyi"
    for name in folders:
        folder = name.replace(".", "/")
        shutil.rmtree(copy / "segiou" / folder)
        shutil.rmtree(copy / "tests" / folder)
        delete_lines(project, rf'\w+ = "segiou\.{name}[.:]|"segiou\.{name}" = ', most=2)
        delete_lines(face, rf"from segiou\.{name}\.|    {name} as {name},", most=9)
        delete_lines(page, rf"\| `{folder}/` \|")
    if (HOME.parent / "shared").is_dir():
        (target / "shared").symlink_to((HOME.parent / "shared").resolve())
    return copy


def delete_lines(path: Path, start: str, *, most: int = 0) -> None:
    """Delete the line of a file that starts so, or at most so many."""
    text = path.read_text(encoding="utf-8")
    fewer, number = re.subn(rf"^(?:{start}).*\n", "", text, flags=re.MULTILINE)
    assert number <= most or number == 1, (path, start)
    path.write_text(fewer, encoding="utf-8")


def python_in(copy: Path, *arguments: str, **how: Any) -> subprocess.CompletedProcess[str]:
    """Run Python on the segiou of a copy."""
    # What the gate requires is tested by the gate itself.
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SEGIOU_")}
    environment = kept | {"PYTHONPATH": str(copy)}
    command = [sys.executable, "-P", *arguments]
    return subprocess.run(command, text=True, env=environment, cwd=copy, **how)


def main(words: list[str]) -> int:
    """Run the tests in a copy without some folders."""
    at = words.index("--") if "--" in words else len(words)
    with tempfile.TemporaryDirectory() as target:
        Path(target).chmod(0o755)  # some tests drop the rights of root
        copy = copy_without(words[:at] or WORDS, Path(target))
        return python_in(
            copy, "-m", "pytest", "-p", "no:cacheprovider", *words[at + 1 :]
        ).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
