"""Generate the reference pages from segiou itself, into `_generated/`."""

from __future__ import annotations

import argparse
import inspect
import json
import os
import re
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
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
    """Write every generated page and remove outdated ones."""
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
    found = {path for path in folder.rglob("*") if path.is_file()}
    for old in found - {folder / name for name in pages}:
        old.unlink()
    for name, text in pages.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        # An unchanged page keeps its time, so that it is not built again.
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


#: The names of `import segiou` by task.
TASKS = {
    "Start here": ["score_folder", "Run", "Report", "hooks"],
    "Score masks": ["score", "read_mask", "load_labels", "LabelSet"],
    "Count batches": ["ConfusionMatrix", "ChannelCounts", "ScoreHistogram", "Counts"],
    "Interpret scores": [
        "Protocol",
        "explain",
        "confidence_intervals",
        "compare",
        "rank",
        "explore",
    ],
    "Errors": ["DataError", "MaskError"],
}
#: The page that explains each package.
GUIDES = {
    "segiou": "start/first-folder",
    "accumulators": "tutorials/validation-loop",
    "analysis": "comparison",
    "checks": "howto/your-own-metric",
    "counting": "architecture",
    "explorer": "howto/notebook",
    "geometry": "geometry",
    "accumulators.histograms": "scores",
    "hooks": "hooks",
    "labels": "formats",
    "masks": "formats",
    "metrics": "why-another-number",
    "planning": "intervals",
    "plots": "plots",
    "report": "reports",
    "runs": "runs",
    "scoring": "scale",
    "maps": "maps",
    "measures.boundary": "boundary",
    "measures.cells": "objects",
    "measures.change": "change",
    "measures.class_sets": "which-score",
    "measures.clicks": "which-score",
    "measures.cost": "imbalance",
    "measures.few_shot": "which-score",
    "measures.lesions": "volumes",
    "measures.objects": "objects",
    "measures.saliency": "saliency",
    "measures.scores": "scores",
    "measures.surfaces": "boundary",
    "measures.topology": "topology",
    "measures.volume": "volumes",
    "measures.suspects": "howto/label-errors",
    "raters": "raters",
    "suspects": "howto/label-errors",
}


def api_pages() -> Iterator[tuple[str, str]]:
    """Make an index page for segiou and for each public package, and one page per object."""
    top = {name: getattr(segiou, name) for name in dir(segiou)}
    packages = {name: value for name, value in top.items() if isinstance(value, ModuleType)}
    names = [name for name in top if name not in packages]
    grouped = [name for group in TASKS.values() for name in group]
    others = _by_file(segiou, [name for name in names if name not in grouped])
    yield from _package_pages(segiou, "segiou", TASKS | others)
    for name, package in packages.items():
        yield from _pages_below(package, f"segiou.{name}", names)


def _pages_below(package: ModuleType, path: str, top: list[str]) -> Iterator[tuple[str, str]]:
    """Make the pages of a public package and of the packages in it."""
    faces = Path(inspect.getfile(package)).parent.glob("*/__init__.pyi")
    inner = sorted(face.parent.name for face in faces)
    own = [entry for entry in dir(package) if entry not in (*top, *inner)]
    shared = [entry for entry in dir(package) if entry in top]
    yield from _package_pages(package, path, _by_file(package, own), shared, inner)
    for name in inner:
        yield from _pages_below(import_module(f"{path}.{name}"), f"{path}.{name}", top)


def _by_file(package: ModuleType, names: list[str]) -> dict[str, list[str]]:
    """Group names by the file that defines them; constants come last, modules first."""
    groups: dict[str, list[str]] = {"Modules": []}
    constants = []
    for name in names:
        if package is not segiou and find_spec(f"{package.__name__}.{name}"):
            groups["Modules"].append(name)
            continue
        value = getattr(package, name)
        file = getattr(value, "__module__", None) or ""
        if not callable(value):
            constants.append(name)
        else:
            title = file.rpartition(".")[2].strip("_").replace("_", " ").capitalize()
            groups.setdefault(title, []).append(name)
    return groups | {"Constants": constants}


def _package_pages(
    module: ModuleType,
    path: str,
    groups: dict[str, list[str]],
    shared: Iterable[str] = (),
    inner: Sequence[str] = (),
) -> Iterator[tuple[str, str]]:
    """Make the index of a package, with a table per group, and the pages of its objects."""
    lines = [path, "=" * len(path), "", inspect.getdoc(module) or "", ""]
    lines += [f".. py:currentmodule:: {path}", ""]
    pages = []
    packages = [n for n in TASKS["Start here"] if isinstance(getattr(module, n, 0), ModuleType)]
    for title, names in groups.items():
        # A module may need a framework to be imported, so it is not looked at here.
        shown = [
            name
            for name in names
            if title == "Modules" or not isinstance(getattr(module, name), GenericAlias)
        ]
        if not shown:
            continue
        lines += [title, "-" * len(title), ""]
        if title == "Constants":
            for name in shown:
                lines += [f".. autodata:: {path}.{name}", "   :no-value:", ""]
            continue
        lines += [".. list-table::", ""]
        for name in shown:
            summary = "" if title == "Modules" else _first_line(getattr(module, name))
            page = f"api/{path}.{name}" if name not in packages else f"api_{name}"
            lines += [f"   * - :doc:`{name} <{page}>`", f"     - {summary}"]
        lines.append("")
        shown = [name for name in shown if name not in packages]
        pages += [f"{path}.{name}" for name in shown]
        for name in shown:
            related = [other for other in shown if other != name]
            yield f"api/{path}.{name}.rst", _object_page(module, path, name, title, related)
    if shared:
        links = ", ".join(f":py:obj:`segiou.{name}`" for name in shared)
        lines += [f"Also available as names of ``segiou``: {links}.", ""]
    below = [f"api_{path.removeprefix('segiou.')}.{name}" for name in inner]
    if inner:
        links = ", ".join(f":doc:`{n} <{page}>`" for n, page in zip(inner, below, strict=True))
        lines += [f"Packages in it: {links}.", ""]
    entries = [*(f"   api/{page}" for page in pages), *(f"   {page}" for page in below)]
    lines += [".. toctree::", "   :hidden:", "", *entries, ""]
    yield f"api_{path.removeprefix('segiou.')}.rst", "\n".join(lines)


def _first_line(value: Any) -> str:
    """Give the first line of a docstring, with names instead of references."""
    line = (inspect.getdoc(value) or "").partition("\n")[0]
    return re.sub(r":[a-z:]+:`~?(?:[^`]*\.)?([^`]+)`", r"``\1``", line)


def _object_page(module: ModuleType, path: str, name: str, title: str, related: list[str]) -> str:
    """Make the page of one function, class or module, with its neighbours and its guide."""
    lines = [name, "=" * len(name), "", f".. py:currentmodule:: {path}", ""]
    if title == "Modules":
        lines += _module(path, name)
    else:
        lines += _directive(path, name, getattr(module, name))
    guide = GUIDES.get(path.removeprefix("segiou."))
    links = [f":doc:`/{guide}`"] if guide else []
    links += [f":doc:`{other} <{path}.{other}>`" for other in related[:8]]
    if links:
        lines += [".. seealso::", "", f"   {', '.join(links)}", ""]
    return "\n".join(lines)


def _module(path: str, name: str) -> list[str]:
    """Describe a module; a class that a framework decorates cannot be described without it."""
    if name in ("keras", "mmengine") and find_spec(name) is None:
        return [f"Install {name} to build this page.", ""]
    lines = [f".. automodule:: {path}.{name}", "   :members:"]
    return [*lines, f"   :inherited-members: {_BASES}, {_FRAMEWORKS}", ""]


def _directive(path: str, name: str, value: Any) -> list[str]:
    """Choose the directive by the kind of object."""
    if inspect.isclass(value):
        return [
            f".. autoclass:: {path}.{name}",
            "   :members:",
            "   :inherited-members: " + _BASES,
            "",
        ]
    return [f".. autofunction:: {path}.{name}", ""]


#: Classes of Python whose members are not repeated on our pages.
_BASES = "Exception, ValueError, TypeError, dict, tuple, list, Mapping, Sequence"
#: Base classes of the frameworks.
_FRAMEWORKS = (
    "Metric, Module, Serializable, Pytree, Representable, KerasSaveable, BaseMetric, Callback"
)


def command_page() -> str:
    """Make the page of the command line from its parsers."""
    overview = build_parser()
    lines = ["# The command line", "", f"`{overview.usage}`", "", "| command | what it does |"]
    lines += [
        "| --- | --- |",
        *(f"| `{name}` | {about} |" for name, (about, _) in COMMANDS.items()),
    ]
    lines += ["", overview.epilog or "", ""]
    for name in COMMANDS:
        command = build_parser(name)
        lines += [f"## segiou {name}", "", (command.description or "").strip(), ""]
        for group in command._action_groups:
            rows = [action for action in group._group_actions if action.help != argparse.SUPPRESS]
            if not rows:
                continue
            title = (group.title or "").capitalize()
            lines += [f"**{title}**", "", "| option | meaning |", "| --- | --- |"]
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
    return re.sub(r"[|<*_\[]", r"\\\g<0>", text)


def protocols_page() -> str:
    """Make the table of protocols."""
    lines = [
        "# Protocols",
        "",
        "A protocol defines which classes and images are averaged and how absent classes count. Pass one to",
        "`report(…)` in Python or `--protocol` on the command line. [Why is my number different from",
        "…?](../why-another-number.md) compares them on the same masks.",
        "",
        "| name | averaging |",
        "| --- | --- |",
    ]
    lines += [f"| `{name}` | {protocol.description} |" for name, protocol in PROTOCOLS.items()]
    return "\n".join([*lines, ""])


def labelsets_page() -> str:
    """Make the table of label sets."""
    lines = [
        "# Label sets",
        "",
        "Pass one of these names, or a TOML file, to `--labels` or `segiou.load_labels`. To edit a label set,",
        "print it as TOML with `segiou labelsets NAME`.",
        "",
        "| name | classes | ignored values | groups | first classes | source |",
        "| --- | --: | --- | --- | --- | --- |",
    ]
    for name in segiou.labels.labelset_names():
        labels = segiou.load_labels(name)
        ignored = ", ".join(map(str, labels.ignore)) or "–"
        groups = ", ".join(labels.groups) or "–"
        first = ", ".join(labels.class_names[:4]) + (", …" if labels.num_classes > 4 else "")
        cells = (f"`{name}`", str(labels.num_classes), ignored, groups, first, labels.source)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def benchmarks_page(history: list[dict[str, Any]]) -> str:
    """Make the page of benchmarks from the file written by `python -m benchmarks.history`."""
    last = history[-1]
    versions = ", ".join(f"{name} {version}" for name, version in last["versions"].items())
    lines = [
        "# Benchmarks",
        "",
        "`python -m benchmarks.history` repeats these measurements on your machine and adds a row to",
        "[the file](../benchmarks.json) of this page. Each tool counts the same pairs in one thread, the results",
        "are checked, and the shortest processor time of alternating rounds is shown. See also [Speed](../speed.md).",
        "",
        f"Last measured on **{last['day']}** at commit `{last['commit']}`: {last['processor']}; {versions}.",
        f"Machine load: {last['load']}"
        + (" (busy: caches were shared)." if last["load"] > 2 else "."),
        "",
        "## Tools compared",
        "",
    ]
    for task in last["counting"]:
        lines += _contest(task["input"], "ns per pixel", task["rows"])
    task = last["folder"]
    title = f"Reading and counting a folder of {task['pairs']} pairs ({task['input']})"
    lines += _contest(title, "ms per pair", task["rows"])
    inputs = [task["input"] for task in last["counting"]]
    lines += [
        "## History",
        "",
        "Nanoseconds per pixel with segiou; in brackets, the factor by which `np.bincount` is slower.",
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
    lines = [f"### {title}", "", f"| tool | {unit} | × segiou |", "| --- | --: | --: |"]
    for name, row in sorted(rows.items(), key=lambda item: item[1]["time"]):
        shown = "NumPy's bincount" if name == "bincount" else name
        lines.append(f"| {shown} | {row['time']:.3g} | {row['ratio']:.3g} |")
    return [*lines, ""]


def _streets_run(path: Path) -> segiou.Run:
    return segiou.score_folder(
        STREETS / "truth", STREETS / "model_b", labels=STREETS / "labels.toml", run=path
    )


def json_page(run: segiou.Run) -> str:
    """Show the JSON of a report, every key once, with shortened lists."""
    shown = json.dumps(_cut(run.report().to_dict()), indent=2, ensure_ascii=False)
    return "\n".join(
        [
            "# JSON of a report",
            "",
            "Written by `--format json`, `report.to_json()` and `report.to_dict()`. Scores are fractions in full",
            "precision; undefined ones are null, and so are measures that were not counted. This example is the",
            "report of the second model of the example masks, with only the first element of each list.",
            "",
            "```json",
            shown,
            "```",
            "",
        ]
    )


def _output(*arguments: str) -> str:
    """Run a command and return its output in as many columns as a page shows."""
    environment = os.environ | {"COLUMNS": "73", "PYTHONIOENCODING": "utf-8"}
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
