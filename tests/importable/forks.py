"""A process that imports modules once, and runs each script that it is sent in forks of itself."""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from types import ModuleType

#: Only a script that never ends takes as long, however busy the machine is.
LIMIT_SECONDS = 600


class Forks:
    """Run scripts as new processes in which these modules are imported already.

    Nothing that a script changes reaches another one. A module that is not installed is left to
    the scripts that need it.
    """

    def __init__(self, folder: Path, *modules: str, **environment: str) -> None:
        self.folder, self.modules = folder, modules
        self.environment = os.environ | {"OMP_NUM_THREADS": "1"} | environment
        self.process: subprocess.Popen | None = None
        self.jobs = 0

    def run(self, code: str, *arguments, ranks: int = 1, cwd=".", **variables: str) -> list[str]:
        """What each fork printed; if one fails, the others end and the test fails."""
        if self.process is None or self.process.poll() is not None:
            self.start()
        self.jobs += 1
        files = [str(self.folder / f"{self.jobs}-{rank}") for rank in range(ranks)]
        job = {"code": code, "arguments": [*map(str, arguments)], "files": files, "cwd": str(cwd)}
        limit = threading.Timer(LIMIT_SECONDS, self.kill)
        limit.start()
        self.process.stdin.write(json.dumps(job | {"variables": variables}) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        limit.cancel()
        logs = [self.folder / "server.err", *(Path(f"{one}.err") for one in files)]
        errors = "".join(log.read_text()[-4000:] for log in logs if log.exists())
        assert answer == "done\n", f"{answer or 'the process ended'}: {errors}"
        return [Path(f"{one}.out").read_text(encoding="utf-8") for one in files]

    def start(self) -> None:
        self.close()
        with (self.folder / "server.err").open("w") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-W", "ignore", __file__, *self.modules],
                env=self.environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )

    def close(self) -> None:
        if self.process is not None:
            with self.process:
                self.kill()

    def kill(self) -> None:
        """End the process, and forks that wait for each other."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)


def serve(modules: list[str]) -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what modules print while they are imported is no answer
    for name in modules:
        with suppress(ImportError):
            importlib.import_module(name)
    for line in sys.stdin:
        job = json.loads(line)
        children = set()
        for rank, file in enumerate(job.pop("files")):
            if not (child := os.fork()):
                return become(rank, file, **job)
            children.add(child)
        answers.write("done\n" if all_succeed(children) else "failed\n")
        answers.flush()
    return None


def all_succeed(children: set[int]) -> bool:
    is_well = True
    while children:
        child, status = os.wait()
        children.discard(child)
        if status and is_well:
            is_well = False
            for other in children:
                os.kill(other, signal.SIGKILL)
    return is_well


def become(rank, file, code, arguments, variables, cwd) -> None:
    """Run the script in this fork, which ends after it as any process does."""
    for number, name in ((0, os.devnull), (1, f"{file}.out"), (2, f"{file}.err")):
        os.dup2(os.open(name, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600), number)
    if "WORLD_SIZE" in variables:
        variables |= {"RANK": str(rank), "LOCAL_RANK": str(rank)}
    os.environ.update(variables)
    os.chdir(cwd)
    sys.argv[1:] = [argument.replace("{rank}", str(rank)) for argument in arguments]
    main = sys.modules["__main__"] = ModuleType("__main__")
    exec(code, vars(main))


if __name__ == "__main__":
    serve(sys.argv[1:])
