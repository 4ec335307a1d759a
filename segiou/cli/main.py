"""Runs a command of the command line and returns the exit code."""

from __future__ import annotations

import errno

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence


#: Commands that report the files that they write.
_WRITING = (
    *("score", "compare", "explain", "report", "inspect", "map-accuracy", "plan", "raters"),
    *("slices", "suspects"),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    from segiou.cli import console
    from segiou.cli.options import parse

    parsed = None
    try:
        parsed = parse(arguments)
        return _run(parsed)
    except KeyboardInterrupt:  # if another program runs the command and handles SIGINT
        console.note("interrupted")
        return console.EXIT_INTERRUPTED
    except BaseException as error:  # code 1 would mean that a threshold failed
        if isinstance(error, SystemExit) and parsed is None:  # of the parser
            raise
        return _report_error(error)


def _run(parsed: Namespace) -> int:
    from importlib import import_module

    from segiou.cli import console
    from segiou.cli.needs import check_needs
    from segiou.cli.options import HOMES
    from segiou.cli.paths import check_paths, note_written

    name = parsed.name_of_command
    check_paths(parsed)
    check_needs(parsed)
    module, function = HOMES.get(name, ("segiou.cli.commands", name))
    command = getattr(import_module(module), function)
    _drop_logs()
    with console.noted_warnings(quiet=getattr(parsed, "quiet", False)):
        code: int = command(parsed)
    if name in _WRITING:
        note_written(parsed)
    return code


#: What to do about errors of the system.
_FIXES = {
    errno.ENOSPC: "; free some space, or write elsewhere",
    errno.EROFS: "; choose another folder",
    errno.ENAMETOOLONG: "; choose a shorter name",
}


def _report_error(error: BaseException) -> int:
    """Report an error, and return its exit code."""
    from segiou.cli import console

    if isinstance(error, MemoryError):
        console.note("out of memory; score fewer or smaller images at a time (--workers 1)")
        return console.EXIT_DATA
    if isinstance(error, OSError):
        where = f"{error.filename!s:.200}: " if error.filename else ""
        fix = _FIXES.get(error.errno or 0, "")
        console.note(f"{where}{error.strerror or error}{fix}")
        return console.EXIT_DATA
    if not isinstance(error, ImportError | ValueError):
        return _report_defect(error)
    console.note(str(error))
    return console.EXIT_DATA if _is_about_files(error) else console.EXIT_USAGE


def _is_about_files(error: Exception) -> bool:
    if isinstance(error, ImportError):  # before modules are imported that could fail again
        return False
    from segiou._support.files import FileError
    from segiou.scoring.problems import DataError

    return isinstance(error, DataError | FileError)


def _drop_logs() -> None:
    """Keep log lines of other libraries from stderr; our errors quote what matters of them."""
    import logging

    if not logging.getLogger().handlers:
        logging.getLogger().addHandler(logging.NullHandler())


def _report_defect(error: BaseException) -> int:
    """Report an unexpected error and the place to send it."""
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
