"""The ``segiou`` command: the one place that prints and exits."""

from segiou.cli.main import main

__all__ = ["main"]
