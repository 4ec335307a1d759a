"""The preset label sets as they are written, for the tests that read them."""

import tomllib
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[2] / "segiou" / "labels" / "presets"
PRESETS = {path.stem: tomllib.loads(path.read_text("utf-8")) for path in FOLDER.glob("*.toml")}


def names_of(name: str) -> list[str]:
    return [entry["name"] for entry in PRESETS[name]["classes"]]


def values_of(name: str) -> list[int]:
    return [value for entry in PRESETS[name]["classes"] for value in entry["values"]]


def colors_of(name: str) -> list[str]:
    return [color for entry in PRESETS[name]["classes"] for color in entry.get("colors", [])]


def entry_of(name: str, class_name: str) -> dict[str, Any]:
    return next(entry for entry in PRESETS[name]["classes"] if entry["name"] == class_name)


def decimal(color: str) -> tuple[int, ...]:
    return tuple(bytes.fromhex(color.removeprefix("#")))


def groups_of(name: str) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = PRESETS[name].get("groups", {})
    return groups
