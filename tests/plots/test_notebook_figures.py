"""Figures as notebooks and scripts have them: shown by the cell, saved by pyplot."""

import subprocess
import sys

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")
pytest.importorskip("matplotlib")

MAKE = """
import segiou
run = segiou.score([[[0, 0, 1, 1]], [[0, 1, 1, 1]]], [[[0, 1, 1, 1]], [[0, 0, 1, 1]]], labels=2)
"""
AFTER = """
from matplotlib import pyplot
run.plot("class_boxes")
pyplot.savefig("boxes.svg")
"""
#: Cells, and the pictures that they show.
CELLS = {
    "run.plot();": 1,
    "run.plot()": 1,
    "axes = run.plot('confusion_matrix')": 1,
    "run.plot(); run.plot('class_boxes');": 2,
    AFTER: 1,
    "_, both = pyplot.subplots(1, 2)\nrun.plot(ax=both[0])\nrun.plot(ax=both[1]);": 1,
    "segiou.plots.save_plots(run, 'plots');": 0,
}


@pytest.mark.gate
@pytest.mark.filterwarnings("ignore")  # the kernel's own machinery warns
def test_a_cell_shows_each_figure_once(tmp_path, monkeypatch):
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    cells = [nbformat.v4.new_code_cell(source) for source in (MAKE, *CELLS)]
    notebook = nbformat.v4.new_notebook(cells=cells)
    resources = {"metadata": {"path": str(tmp_path)}}
    client = nbclient.NotebookClient(notebook, timeout=600, resources=resources)
    client.km = client.create_kernel_manager()
    client.km.kernel_spec.argv[0] = sys.executable
    client.execute()
    shown = [
        sum("image/png" in output.get("data", {}) for output in cell.outputs)
        for cell in notebook.cells[1:]
    ]
    assert dict(zip(CELLS, shown, strict=True)) == CELLS
    assert ">IoU per image</text>" in (tmp_path / "boxes.svg").read_text()


def test_a_script_shows_nothing_and_saves_its_figure(tmp_path):
    script = f"{MAKE}{AFTER}assert pyplot.gcf().axes == [pyplot.gca()]"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert ">IoU per image</text>" in (tmp_path / "boxes.svg").read_text()
