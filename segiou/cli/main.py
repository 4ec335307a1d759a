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
            elif parsed.name_of_command == "raters":
                from segiou.cli.raters_command import command
            elif parsed.name_of_command == "help":
                from segiou.cli.help_command import command
            elif parsed.name_of_command == "slices":
                from segiou.cli.slices_command import command
            else:
                command = getattr(commands, parsed.name_of_command)
        _drop_logs()
        with console.noted_warnings(quiet=getattr(parsed, "quiet", False)):
            code = command(parsed)
        if parsed.name_of_command in (
            *(
                "score",
                "compare",
                "explain",
                "report",
                "inspect",
                "map-accuracy",
                "raters",
                "slices",
            ),
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
    except MemoryError:
        console.note("out of memory; score fewer or smaller images at a time (--workers 1)")
        return console.EXIT_DATA
    except Exception as error:  # noqa: BLE001 - code 1 would mean that a threshold failed
        return _unexpected(error)


def _drop_logs() -> None:
    """Keep log lines of other libraries from stderr; our errors quote what matters of them."""
    import logging

    if not logging.getLogger().handlers:
        logging.getLogger().addHandler(logging.NullHandler())


def _unexpected(error: Exception) -> int:
    """Report an error that segiou does not expect, and where to send it."""
    import traceback

    from segiou._support.optional import PluginError
    from segiou.cli import console

    if isinstance(error, PluginError):
        console.note(str(error))
        return console.EXIT_USAGE
    console.say(console.harmless("".join(traceback.format_exception(error))))
    what = f"unexpected {type(error).__name__}, a defect of segiou or of an installed plug-in"
    where = "see segiou help contributing"
    console.note(f"{what}. Report it with the lines above and segiou --version; {where}")
    return console.EXIT_DEFECT
