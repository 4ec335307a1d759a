"""The entry point of the command: it runs a command and gives the exit code."""

from __future__ import annotations

import os
import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    # Called by other programs, it leaves their signals alone.
    is_process = arguments is None
    is_process = is_process and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_process:
        # Nothing is written yet; and an exception in the middle of an import can turn into others.
        signal.signal(signal.SIGINT, _end_at_once)
    from segiou.cli import console
    from segiou.cli.options import parse

    try:
        parsed = parse(arguments)
        if parsed.name_of_command == "demo":
            from segiou.cli.demo import demo as command
        else:
            from segiou.cli import commands
            from segiou.cli.inputs import check_paths

            check_paths(parsed)
            command = getattr(commands, parsed.name_of_command)
        if is_process:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        with console.noted_warnings(quiet=getattr(parsed, "quiet", False)):
            return command(parsed)
    except KeyboardInterrupt:
        console.note("interrupted")
        return console.EXIT_INTERRUPTED
    except ImportError as error:
        console.note(str(error))
        return console.EXIT_USAGE
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        console.note(f"{where}{error.strerror or error}")
        return console.EXIT_DATA
    except ValueError as error:
        from segiou.masks.read import MaskError
        from segiou.runs.database import RunFileError
        from segiou.scoring.job import DataError

        console.note(str(error))
        is_about_files = isinstance(error, DataError | MaskError | RunFileError)
        return console.EXIT_DATA if is_about_files else console.EXIT_USAGE
    finally:
        if is_process:
            # The exit code is known, and only Python itself is left to end.
            signal.signal(signal.SIGINT, signal.SIG_IGN)


def _end_at_once(number: int, frame: Any) -> None:
    os.write(2, b"segiou: interrupted\n")
    os._exit(130)
