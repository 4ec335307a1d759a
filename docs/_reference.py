"""Writes the reference pages that are made from segiou itself, into `_generated/`."""

from __future__ import annotations

import argparse
import inspect
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from types import GenericAlias, ModuleType
from typing import Any

import segiou
from segiou.cli.options import COMMANDS, build_parser
from segiou.metrics.protocols import PROTOCOLS

BENCHMARKS = Path(__file__).parent / "benchmarks.json"
STREETS = Path(__file__).parent.parent / "fixtures" / "streets"


def write_reference(folder: Path) -> None:
    """Write every generated page; pages of parts that are gone do not stay."""
    folder.mkdir(exist_ok=True)
    pages = dict(api_pages())
    pages["command.md"] = command_page()
    pages["protocols.md"] = protocols_page()
    pages["labelsets.md"] = labelsets_page()
    pages["benchmarks.md"] = benchmarks_page(json.loads(BENCHMARKS.read_text(encoding="utf-8")))
    with tempfile.TemporaryDirectory() as scratch:
        run = _streets_run(Path(scratch) / "model_b.sqlite")
        pages["json.md"] = json_page(run)
        pages["schema.md"] = schema_page(Path(scratch) / "model_b.sqlite")
    pages["inspect.txt"] = _output("inspect", "fixtures/streets/truth")
    pages["score.txt"] = _output(
        "score",
        "fixtures/streets/truth",
        "fixtures/streets/model_b",
        "--labels",
        "fixtures/streets/labels.toml",
    )
    for old in set(folder.iterdir()) - {folder / name for name in pages}:
        old.unlink()
    for name, text in pages.items():
        path = folder / name
        # An unchanged page keeps its time, so that it is not built again.
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def api_pages() -> Iterator[tuple[str, str]]:
    """Make a page for segiou itself and one for each public package."""
    top = {name: getattr(segiou, name) for name in dir(segiou)}
    packages = {name: value for name, value in top.items() if isinstance(value, ModuleType)}
    names = [name for name in top if name not in packages]
    yield "api_segiou.rst", _api_page(segiou, "segiou", names)
    for name, package in packages.items():
        own = [entry for entry in dir(package) if entry not in names]
        shared = [entry for entry in dir(package) if entry in names]
        yield f"api_{name}.rst", _api_page(package, f"segiou.{name}", own, shared)


def _api_page(module: ModuleType, path: str, names: list[str], shared: Iterable[str] = ()) -> str:
    """Make the page of a package: a table of its names, then each with its docstring."""
    modules = (
        [name for name in names if find_spec(f"{path}.{name}")] if module is not segiou else []
    )
    others = [name for name in names if name not in modules]
    described = [name for name in others if not isinstance(getattr(module, name), GenericAlias)]
    lines = [path, "=" * len(path), "", inspect.getdoc(module) or "", ""]
    if shared:
        links = ", ".join(f":py:obj:`segiou.{name}`" for name in shared)
        lines += [f"On the page of :doc:`segiou <api_segiou>`: {links}.", ""]
    lines += [f".. py:currentmodule:: {path}", ""]
    if described:
        table = [name for name in described if callable(getattr(module, name))]
        lines += [".. autosummary::", "   :nosignatures:", ""]
        lines += [f"   {name}" for name in table] + [""]
    for name in described:
        lines += _directive(path, name, getattr(module, name))
    for name in modules:
        lines += [f"{path}.{name}", "-" * len(f"{path}.{name}"), ""]
        lines += [f".. automodule:: {path}.{name}", "   :members:"]
        # Other modules give it again.
        lines += [] if name == "images" else ["   :exclude-members: ImageCounts"]
        lines.append("")
    return "\n".join(lines)


def _directive(path: str, name: str, value: Any) -> list[str]:
    """Choose the directive by what a name is."""
    if inspect.isclass(value):
        return [
            f".. autoclass:: {path}.{name}",
            "   :members:",
            "   :inherited-members: " + _BASES,
            "",
        ]
    if callable(value):
        return [f".. autofunction:: {path}.{name}", ""]
    return [f".. autodata:: {path}.{name}", "   :no-value:", ""]


#: Classes of Python whose members are not repeated on our pages.
_BASES = "Exception, ValueError, TypeError, dict, tuple, list, Mapping, Sequence"


def command_page() -> str:
    """Make the page of the command line from its parsers."""
    overview = build_parser().format_help().rstrip()
    lines = ["# The command line", "", "```text", overview, "```", ""]
    for name in COMMANDS:
        command = build_parser(name)
        lines += [f"## segiou {name}", "", (command.description or "").strip(), ""]
        for group in command._action_groups:
            rows = [action for action in group._group_actions if action.help != argparse.SUPPRESS]
            if not rows:
                continue
            title = (group.title or "").capitalize()
            lines += [f"**{title}**", "", "| | what it does |", "| --- | --- |"]
            lines += [f"| {_invocation(action)} | {_help_of(command, action)} |" for action in rows]
            lines.append("")
    return "\n".join(lines)


def _invocation(action: argparse.Action) -> str:
    """Show how an option is written: `-o FILE`, `--output FILE`."""
    if action.nargs == 0:
        value = ""
    elif action.metavar:
        value = action.metavar if isinstance(action.metavar, str) else " ".join(action.metavar)
    elif action.choices:
        value = "{" + ",".join(map(str, action.choices)) + "}"
    else:
        value = action.dest.upper()
    if not action.option_strings:
        return f"`{value}`"
    return "<br>".join(f"`{f'{word} {value}'.strip()}`" for word in action.option_strings)


def _help_of(command: argparse.ArgumentParser, action: argparse.Action) -> str:
    text = command._get_formatter()._expand_help(action) if action.help else ""
    return text.replace("|", r"\|").replace("<", r"\<").replace("*", r"\*").replace("_", r"\_")


def protocols_page() -> str:
    """Make the table of protocols."""
    lines = [
        "# Protocols",
        "",
        "A protocol says over what a mean is taken and what an absent class counts. Give one to",
        "`report(…)` in Python and to `--protocol` on the command line. [Why do I get another number",
        "than …?](../why-another-number.md) compares them on the same masks.",
        "",
        "| name | how the mean is made |",
        "| --- | --- |",
    ]
    lines += [f"| `{name}` | {protocol.description} |" for name, protocol in PROTOCOLS.items()]
    return "\n".join([*lines, ""])


def labelsets_page() -> str:
    """Make the table of label sets."""
    lines = [
        "# Label sets",
        "",
        "`--labels NAME` and `segiou.load_labels(NAME)` take one of these names, or a TOML file.",
        "`segiou labelsets NAME` prints one as TOML, to edit.",
        "",
        "| name | classes | ignored values | groups | the first classes |",
        "| --- | --: | --- | --- | --- |",
    ]
    for name in segiou.labels.labelset_names():
        labels = segiou.load_labels(name)
        ignored = ", ".join(map(str, labels.ignore)) or "–"
        groups = ", ".join(labels.groups) or "–"
        first = ", ".join(labels.class_names[:4]) + (", …" if labels.num_classes > 4 else "")
        lines.append(f"| `{name}` | {labels.num_classes} | {ignored} | {groups} | {first} |")
    return "\n".join([*lines, ""])


def benchmarks_page(history: list[dict[str, Any]]) -> str:
    """Make the page of benchmarks from what `python -m benchmarks.history` wrote."""
    last = history[-1]
    versions = ", ".join(f"{name} {version}" for name, version in last["versions"].items())
    lines = [
        "# Benchmarks",
        "",
        "`python -m benchmarks.history` measures this on your machine and adds a line; this page is made",
        "from [its file](../benchmarks.json). Each program counts the same pairs in one thread, the",
        "answers are checked, and the shortest processor time of some rounds in turn is shown. [Speed](../speed.md) explains",
        "what makes the difference.",
        "",
        f"Last measured on **{last['day']}** at commit `{last['commit']}`: {last['processor']}; {versions}.",
        f"Load of the machine: {last['load']}"
        + (" (busy: caches were shared)." if last["load"] > 2 else "."),
        "",
        "## Programs side by side",
        "",
    ]
    for task in last["counting"]:
        lines += _contest(task["input"], "ns per pixel", task["rows"])
    task = last["folder"]
    title = f"A folder of {task['pairs']} pairs ({task['input']}), read and counted"
    lines += _contest(title, "ms per pair", task["rows"])
    inputs = [task["input"] for task in last["counting"]]
    lines += [
        "## History",
        "",
        "Nanoseconds per pixel of segiou, and how many times that the usual idiom with `bincount` takes.",
        "",
        "| day | commit | processor | load | " + " | ".join(inputs) + " | folder, ms per pair |",
        "| --- | --- | --- | --: |" + " --: |" * (len(inputs) + 1),
    ]
    for entry in reversed(history):
        tasks = [*entry["counting"], entry["folder"]]
        cells = [
            f"{t['rows']['segiou']['time']:.3g} ({t['rows']['bincount']['ratio']:.3g} ×)"
            for t in tasks
        ]
        first = [entry["day"], f"`{entry['commit']}`", entry["processor"], str(entry["load"])]
        lines.append("| " + " | ".join([*first, *cells]) + " |")
    return "\n".join([*lines, ""])


def _contest(title: str, unit: str, rows: dict[str, dict[str, float]]) -> list[str]:
    """Make the table of one input, the fastest first."""
    lines = [f"### {title}", "", f"| | {unit} | × the time of segiou |", "| --- | --: | --: |"]
    for name, row in sorted(rows.items(), key=lambda item: item[1]["time"]):
        shown = "NumPy's bincount" if name == "bincount" else name
        lines.append(f"| {shown} | {row['time']:.3g} | {row['ratio']:.3g} |")
    return [*lines, ""]


def _streets_run(path: Path) -> segiou.Run:
    return segiou.score_folder(
        STREETS / "truth", STREETS / "model_b", labels=STREETS / "labels.toml", run=path
    )


def json_page(run: segiou.Run) -> str:
    """Show the JSON of a report, every key once, with long lists cut."""
    shown = json.dumps(_cut(run.report().to_dict()), indent=2, ensure_ascii=False)
    return "\n".join(
        [
            "# JSON of a report",
            "",
            "`--format json`, `report.to_json()` and `report.to_dict()`: fractions in full precision, null",
            "where a number is undefined. This is the report of the second model of the example masks; of",
            "each list only the first element is shown.",
            "",
            "```json",
            shown,
            "```",
            "",
        ]
    )


def _output(*arguments: str) -> str:
    """Run a command and give what it prints at 96 columns."""
    environment = os.environ | {"COLUMNS": "96", "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        [sys.executable, "-P", "-m", "segiou", *arguments],
        capture_output=True,
        check=True,
        cwd=STREETS.parent.parent,
        encoding="utf-8",
        env=environment,
    )
    return done.stdout


def _cut(value: Any) -> Any:
    """Keep the first element of each list."""
    if isinstance(value, dict):
        return {key: _cut(entry) for key, entry in value.items()}
    return [_cut(entry) for entry in value[:1]] if isinstance(value, list | tuple) else value


def schema_page(path: Path) -> str:
    """Show the tables and views of a run file."""
    database = sqlite3.connect(path)
    rows = database.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
    database.close()
    return "\n".join(
        [
            "# Schema of a run file",
            "",
            "A run file is an SQLite database. [Run files](../runs.md) explains how to use it.",
            "",
            "```sql",
            "\n\n".join(f"{statement};" for (statement,) in rows),
            "```",
            "",
        ]
    )
