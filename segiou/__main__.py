"""Entry point of the command, for the console script and ``python -m segiou``."""

# The module signal imports enum, during which Ctrl-C would end in a traceback.
import _signal  # type: ignore[import-not-found]
import os
import sys

_INTERRUPTED = 130


def _end_at_once(number: int, frame: object) -> None:
    """End the process without raising, because imports turn KeyboardInterrupt into other errors."""
    try:
        # Drafts may not be imported yet.
        remove = getattr(sys.modules.get("segiou._support.files"), "remove_drafts", None)
        if remove is not None:
            remove()
        # A progress bar may have hidden the cursor.
        clear = b"\r\x1b[K\x1b[?25h" if os.isatty(2) else b""
        os.write(2, clear + b"segiou: interrupted\n")
    finally:
        os._exit(_INTERRUPTED)


# A shell starts background commands with SIGINT ignored; that is left as it is.
if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
    _signal.signal(_signal.SIGINT, _end_at_once)


def command() -> int:
    """Run the command line and return its exit code."""
    try:
        from segiou.cli.main import main

        return main()
    finally:
        # The exit code is known; only the interpreter is left to shut down.
        if _signal.getsignal(_signal.SIGINT) is _end_at_once:
            _signal.signal(_signal.SIGINT, _signal.SIG_IGN)


if __name__ == "__main__":
    sys.exit(command())
