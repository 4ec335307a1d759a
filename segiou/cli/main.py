"""Runs a command of the command line and returns the exit code."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
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
            if parsed.name_of_command == "map-accuracy":
                from segiou.cli.map_command import command
            else:
                command = getattr(commands, parsed.name_of_command)
        with console.noted_warnings(quiet=getattr(parsed, "quiet", False)):
            code = command(parsed)
        if parsed.name_of_command in (
            *("score", "compare", "explain", "report", "inspect", "map-accuracy"),
        ):
            from segiou.cli.inputs import note_written

            note_written(parsed)
        return code
    except KeyboardInterrupt:  # if another program runs the command and handles SIGINT
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
