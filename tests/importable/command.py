"""The command as a user runs it, in a process of its own, and what it is run on."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

FIXTURES = Path(__file__).parents[2] / "fixtures"
STREETS = FIXTURES / "streets"
LABELS = ["--labels", str(STREETS / "labels.toml")]
SCORE = ["score", str(STREETS / "truth"), str(STREETS / "model_b"), *LABELS]
MODELS = [str(STREETS / "model_a"), str(STREETS / "model_b")]


def segiou(*arguments: str, columns: int | None = None, **options) -> subprocess.CompletedProcess:
    environment = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "NO_COLOR")}
    environment["PYTHONIOENCODING"] = "utf-8"
    if columns:
        environment["COLUMNS"] = str(columns)
    return subprocess.run(
        [sys.executable, "-m", "segiou", *map(str, arguments)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env=environment | options.pop("env", {}),
        **options,
    )


def notes(stderr: str) -> str:
    """What the command wrote to stderr, except that this checkout is not built."""
    lines = stderr.splitlines(keepends=True)
    return "".join(line for line in lines if "compiled modules are missing" not in line)
