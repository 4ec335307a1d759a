"""The command inside the process of the tests."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from segiou.cli.main import main


@pytest.fixture
def inside(capsys):
    """Run the command in this process, which is faster; for what needs no process of its own."""

    def run(*arguments) -> SimpleNamespace:
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as ended:
            code = ended.code
        found = capsys.readouterr()
        return SimpleNamespace(returncode=code, stdout=found.out, stderr=found.err)

    return run
