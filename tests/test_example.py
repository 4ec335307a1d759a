"""The example notebook, executed from top to bottom by a real kernel."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")
pytest.importorskip("matplotlib")


# The kernel's own machinery warns of what is no concern of ours.
@pytest.mark.filterwarnings("ignore")
def test_example_runs_from_top_to_bottom(tmp_path, monkeypatch):
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    notebook = nbformat.read(ROOT / "docs" / "example.ipynb", as_version=4)
    client = nbclient.NotebookClient(
        notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}}
    )
    client.km = client.create_kernel_manager()
    client.km.kernel_spec.argv[0] = sys.executable
    client.execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert not [o for o in outputs if o.get("name") == "stderr"]
    tables = [o["data"]["text/html"] for o in outputs if "text/html" in o.get("data", {})]
    assert len(tables) == 2
    assert "segiou-report" in tables[0]
    assert "segiou-comparison" in tables[1]
    assert sum("image/png" in o.get("data", {}) for o in outputs) == 4
    for page in ("report.html", "comparison.html"):
        assert (tmp_path / page).read_text(encoding="utf-8").startswith("<!doctype html>")


def test_example_is_kept_without_outputs():
    notebook = nbformat.read(ROOT / "docs" / "example.ipynb", as_version=4)
    for cell in notebook.cells:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None
