"""Processes that tests start import the same segiou as the tests: installed or not."""

from __future__ import annotations

import os
from pathlib import Path

import segiou

# Without this a child would take the checkout in its working directory, where
# the compiled modules are missing when the package under test is an installed one.
os.environ["PYTHONSAFEPATH"] = "1"
os.environ["PYTHONPATH"] = str(Path(segiou.__file__).parents[1])
