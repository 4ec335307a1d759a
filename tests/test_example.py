"""The example notebook runs from top to bottom, and its outputs are kept."""

import importlib.util
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"

nbformat = pytest.importorskip("nbformat")
pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")
pytest.importorskip("matplotlib")


def outputs(notebook):
    return [(cell["id"], output) for cell in notebook.cells for output in cell.get("outputs", [])]


# The kernel's own machinery warns of what is no concern of ours.
@pytest.mark.gate
@pytest.mark.needs("demo", "explorer")
@pytest.mark.filterwarnings("ignore")
def test_example_runs_and_its_outputs_are_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    spec = importlib.util.spec_from_file_location("_example", DOCS / "_example.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found = outputs(module.executed(tmp_path))
    kept = outputs(nbformat.read(DOCS / "example.ipynb", as_version=4))
    again = "run: python docs/_example.py"
    for (cell, new), (kept_cell, old) in zip(found, kept, strict=True):
        assert (cell, new["output_type"]) == (kept_cell, old["output_type"]), again
        assert new.get("text") == old.get("text"), again
        data, kept_data = new.get("data", {}), old.get("data", {})
        assert set(data) == set(kept_data), again
    html = "".join(output.get("data", {}).get("text/html", "") for _, output in found)
    for part in ("segiou-report", "segiou-comparison", "segiou-intervals", "segiou-imbalance"):
        assert part in html
    assert "<iframe srcdoc=" in html
    assert sum("image/png" in output.get("data", {}) for _, output in found) == 6
    for page in ("report.html", "comparison.html"):
        assert (tmp_path / page).read_text(encoding="utf-8").startswith("<!doctype html>")


def test_example_is_small():
    assert (DOCS / "example.ipynb").stat().st_size < 700_000
