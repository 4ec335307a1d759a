"""Commands, options, exit codes."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module

from segiou.cli import options
from segiou.cli.parsers import build_parser
from segiou.cli.terminal import note

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    parser = build_parser()
    parsed = parser.parse_args(arguments)
    try:
        command = import_module(f"segiou.cli.{parsed.module}")
        code = int(command.run(parsed))
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader of our output has gone, as `segiou … | head` does.
        sys.stderr.close()
        return 0
    except KeyboardInterrupt:
        note("interrupted")
        return 130
    except ImportError as error:
        note(str(error))
        return options.EXIT_USAGE
    except (ValueError, OSError) as error:
        return _explain(error)
    return code


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
