"""The preset label sets as they are written, for the tests that read them."""

import tomllib
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[2] / "segiou" / "labels" / "presets"


class Named(dict[str, Any]):
    """A mapping with a name; a test that needs a missing key fails with a sentence."""

    def __init__(self, name: str, entries: dict[str, Any]) -> None:
        super().__init__(entries)
        self.name = name

    def __missing__(self, key: str) -> Any:
        msg = f"{self.name} has no {key!r}"
        raise AssertionError(msg)


def read(path: Path) -> Named:
    try:
        found = tomllib.loads(path.read_text("utf-8"))
    except tomllib.TOMLDecodeError as error:
        msg = f"{path.name} is not TOML: {error}"
        raise AssertionError(msg) from None
    for i, entry in enumerate(found.get("classes", [])):
        found["classes"][i] = Named(f"class {entry.get('name', i)} of {path.name}", entry)
    return Named(path.name, found)


PRESETS = {path.stem: read(path) for path in FOLDER.glob("*.toml")}


def names_of(name: str) -> list[str]:
    return [entry["name"] for entry in PRESETS[name]["classes"]]


def values_of(name: str) -> list[int]:
    return [value for entry in PRESETS[name]["classes"] for value in entry["values"]]


def colors_of(name: str) -> list[str]:
    return [color for entry in PRESETS[name]["classes"] for color in entry.get("colors", [])]


def entry_of(name: str, class_name: str) -> dict[str, Any]:
    classes = {entry["name"]: entry for entry in PRESETS[name]["classes"]}
    return Named(f"{name}.toml", classes)[class_name]


def decimal(color: str) -> tuple[int, ...]:
    return tuple(bytes.fromhex(color.removeprefix("#")))


def groups_of(name: str) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = PRESETS[name].get("groups", {})
    return groups
