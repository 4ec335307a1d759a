"""The command in processes that get signals at chosen calls, whatever the speed of the machine.

``interrupted.py at NAME:NTH,NTH SIGNAL ARGUMENTS`` sends a signal to the process group at the n-th
calls of a function; with ``ignored`` in place of ``at``, in a process that ignores SIGINT.
``interrupted.py sweep SITES ARGUMENTS`` forks a process for each of some of the call sites in the
command's main thread and sends it SIGINT there; it prints JSON with the number of call sites, and
for each the site, the exit code and what stderr got.
"""

from __future__ import annotations

import json
import os
import runpy
import signal
import sys
import tempfile


def run_command(arguments: list[str]) -> None:
    sys.argv = ["segiou", *arguments]
    runpy.run_module("segiou", run_name="__main__", alter_sys=True)


def interrupt_at(where: str, number: int) -> None:
    name, _, wanted = where.partition(":")
    left = [int(nth) for nth in wanted.split(",")]
    calls = 0

    def on_call(frame, event, arg):
        nonlocal calls
        if event == "call" and frame.f_code.co_qualname == name:
            calls += 1
            if left and calls == left[0]:
                left.pop(0)
                # A terminal sends Ctrl-C to the whole group, workers included.
                os.killpg(0, number)

    sys.setprofile(on_call)


def interrupt_at_site(wanted: int) -> list[int]:
    """Send SIGINT at a call site of the command; the list has the number of sites so far."""
    sites = [0]
    begun = False

    def on_call(frame, event, arg):
        nonlocal begun
        begun = begun or frame.f_code.co_filename.endswith("segiou/__main__.py")
        if begun and event in ("call", "c_call"):
            sites[0] += 1
            if sites[0] == wanted:
                os.kill(os.getpid(), signal.SIGINT)

    sys.setprofile(on_call)
    return sites


def forked(wanted: int, arguments: list[str]) -> tuple[int, int, str]:
    """Sites passed, exit code and stderr of the command, interrupted at a site."""
    with tempfile.TemporaryFile() as errors, tempfile.TemporaryFile() as passed:
        if (child := os.fork()) == 0:
            os.dup2(errors.fileno(), 2)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            sites = interrupt_at_site(wanted)
            try:
                run_command(arguments)
            except SystemExit as end:
                sys.setprofile(None)
                os.write(passed.fileno(), str(sites[0]).encode())
                os._exit(end.code or 0)
            finally:
                # Anything else is an error that Python would show.
                sys.setprofile(None)
                sys.excepthook(*sys.exc_info())
                os._exit(1)
        _, status = os.waitpid(child, 0)
        errors.seek(0)
        passed.seek(0)
        return int(passed.read() or 0), os.waitstatus_to_exitcode(status), errors.read().decode()


def sweep(number: int, arguments: list[str]) -> None:
    sites, code, error = forked(0, arguments)
    assert code == 0, error
    # Denser at the start, where modules are imported; the first calls install the handler.
    wanted = sorted({max(5, int(sites * (i / number) ** 2)) for i in range(1, number)})
    found = [(site, *forked(site, arguments)[1:]) for site in wanted]
    json.dump({"sites": sites, "found": found}, sys.stdout)


if __name__ == "__main__":
    # A parent in the background of a shell has children that ignore Ctrl-C.
    ignored = sys.argv[1] == "ignored"
    signal.signal(signal.SIGINT, signal.SIG_IGN if ignored else signal.default_int_handler)
    if sys.argv[1] == "sweep":
        sweep(int(sys.argv[2]), sys.argv[3:])
    else:
        interrupt_at(sys.argv[2], signal.Signals[sys.argv[3]])
        run_command(sys.argv[4:])
