"""Run the example notebook and save its outputs: `python docs/_example.py`."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).parent / "example.ipynb"


def executed(folder: Path) -> Any:
    """Run the notebook in a folder with a new kernel."""
    os.environ.setdefault("JUPYTER_PLATFORM_DIRS", "1")
    os.environ["IPYTHONDIR"] = str(folder / "ipython")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    resources = {"metadata": {"path": str(folder)}}
    client = NotebookClient(notebook, timeout=120, resources=resources, record_timing=False)
    client.km = client.create_kernel_manager()
    client.km.kernel_spec.argv[0] = sys.executable
    client.execute()
    # Without the version of the interpreter.
    notebook.metadata["language_info"] = {"name": "python"}
    return notebook


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        nbformat.write(executed(Path(scratch)), NOTEBOOK)
