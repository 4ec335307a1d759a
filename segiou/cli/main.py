"""Commands, options, exit codes."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

from segiou.cli import options
from segiou.cli.parsers import check_given, parse
from segiou.cli.terminal import note

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    try:
        parsed = parse(arguments)
        check_given(parsed)
        command = import_module(f"segiou.cli.{parsed.module}")
        return int(command.run(parsed))
    except KeyboardInterrupt:
        note("interrupted")
        return 130
    except ImportError as error:
        note(str(error))
        return options.EXIT_USAGE
    except (ValueError, OSError) as error:
        return _explain(error)


def _explain(error: ValueError | OSError) -> int:
    from segiou.readers import MaskError
    from segiou.runs import RunFileError
    from segiou.scoring import DataError

    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        note(f"{where}{error.strerror or error}")
        return options.EXIT_DATA
    note(str(error))
    return (
        options.EXIT_DATA
        if isinstance(error, (DataError, MaskError, RunFileError))
        else options.EXIT_USAGE
    )
