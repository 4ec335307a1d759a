"""Label sets as files: presets, TOML, and the files of other tools."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from numbers import Integral
from pathlib import Path
from typing import Any

from segiou._support.arguments import refuse_kind
from segiou.labels.label_set import LabelSet

__all__ = ["labelset_names", "load_labels"]

_TEXT_KEYS = ("name", "title", "source", "notes")
_KEYS = {*_TEXT_KEYS, "ignore", "ignore_colors", "classes", "groups"}
_CLASS_KEYS = {"name", "values", "colors"}
_HEX = re.compile(r"#?([0-9a-fA-F]{6})")


def parse_label_set(description: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Check a description and return the arguments of ``LabelSet``.

    Raises
    ------
    ValueError
        Naming ``where`` and the key that is missing, unknown or of the wrong kind.
    """
    _refuse_unknown(description, _KEYS, where)
    classes = description.get("classes")
    if not isinstance(classes, list) or not classes:
        example = '{ name = "sky", values = [0] }'
        msg = f'{where}: "classes" must be a list of classes, such as {example}'
        raise ValueError(msg)
    groups = description.get("groups", {})
    if not isinstance(groups, Mapping):
        msg = f'{where}: "groups" must be a table of lists of class names'
        raise ValueError(msg)
    return {
        **{key: _text(description, key, where) for key in _TEXT_KEYS},
        "ignore": _integers(description.get("ignore", []), f"{where}: ignore"),
        "ignore_colors": _colors(description.get("ignore_colors", []), f"{where}: ignore_colors"),
        "classes": [_parse_class(entry, i, where) for i, entry in enumerate(classes)],
        "groups": {str(k): _names(v, f"{where}: group {k!r}") for k, v in groups.items()},
    }


def _refuse_unknown(description: Mapping[str, Any], known: set[str], where: str) -> None:
    unknown = sorted(set(description) - known)
    if unknown:
        msg = f"{where}: unknown key {', '.join(unknown)}; known are {', '.join(sorted(known))}"
        raise ValueError(msg)


def _text(description: Mapping[str, Any], key: str, where: str) -> str:
    value = description.get(key, "custom" if key == "name" else "")
    if not isinstance(value, str):
        msg = f"{where}: {key!r} must be a string, got {value!r}"
        raise ValueError(msg)
    return value


def _parse_class(entry: Any, position: int, where: str) -> tuple[str, Any, Any]:
    where = f"{where}: class {position}"
    if isinstance(entry, str):
        return entry, (position,), ()
    if not isinstance(entry, Mapping) or not isinstance(entry.get("name"), str):
        msg = f'{where} must have a name, such as {{ name = "sky", values = [0] }}; got {entry!r}'
        raise ValueError(msg)
    where = f"{where} ({entry['name']!r})"
    _refuse_unknown(entry, _CLASS_KEYS, where)
    values = _integers(entry.get("values", position), f"{where}: values")
    if not values:
        msg = f"{where} has no values; say which file values mean it"
        raise ValueError(msg)
    return entry["name"], values, _colors(entry.get("colors", []), f"{where}: colors")


def _integers(value: Any, where: str) -> tuple[int, ...]:
    items = value if isinstance(value, list) else [value]
    for item in items:
        if isinstance(item, bool) or not isinstance(item, int):
            msg = f"{where} must be integers, got {item!r}"
            raise ValueError(msg)
    return tuple(items)


def _names(value: Any, where: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        msg = f"{where} must be a list of class names, got {value!r}"
        raise ValueError(msg)
    return tuple(value)


def _colors(value: Any, where: str) -> tuple[tuple[int, int, int], ...]:
    single = isinstance(value, str) or (
        isinstance(value, list) and len(value) == 3 and all(isinstance(v, int) for v in value)
    )
    items = [value] if single else value
    if not isinstance(items, list):
        msg = f'{where} must be colours such as "#80c0ff" or [128, 192, 255], got {value!r}'
        raise ValueError(msg)
    return tuple(_color(item, where) for item in items)


def _color(item: Any, where: str) -> tuple[int, int, int]:
    if isinstance(item, str) and (match := _HEX.fullmatch(item)):
        red, green, blue = bytes.fromhex(match[1])
        return red, green, blue
    if (
        isinstance(item, list)
        and len(item) == 3
        and all(isinstance(v, int) and 0 <= v <= 255 for v in item)
    ):
        return item[0], item[1], item[2]
    msg = f'{where}: a colour is written "#80c0ff" or [128, 192, 255], got {item!r}'
    raise ValueError(msg)


def dump_label_set(description: Mapping[str, Any]) -> str:
    """Lay a label set out as TOML, one class a line."""
    lines = [f"{key} = {_quote(description[key])}" for key in _TEXT_KEYS if description[key]]
    lines.append(f"ignore = {description['ignore']}")
    if description["ignore_colors"]:
        lines.append(f"ignore_colors = {_list(description['ignore_colors'])}")
    lines += ["", "classes = ["]
    lines += [f"  {{ {_class_line(entry)} }}," for entry in description["classes"]]
    lines.append("]")
    if description["groups"]:
        lines += ["", "[groups]"]
        lines += [f"{_quote(k)} = {_list(v)}" for k, v in description["groups"].items()]
    return "\n".join(lines) + "\n"


def _class_line(entry: Mapping[str, Any]) -> str:
    parts = [f"name = {_quote(entry['name'])}", f"values = {entry['values']}"]
    if entry["colors"]:
        parts.append(f"colors = {_list(entry['colors'])}")
    return ", ".join(parts)


def _list(items: list[str]) -> str:
    return "[" + ", ".join(_quote(item) for item in items) + "]"


def _quote(text: str) -> str:
    # JSON's string escapes are a subset of TOML's basic strings, but for DEL.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def labelset_names() -> tuple[str, ...]:
    """Names of the presets, sorted."""
    folder = resources.files("segiou.labels") / "presets"
    return tuple(sorted(f.name[:-5] for f in folder.iterdir() if f.name.endswith(".toml")))


def load_labels(labels: LabelSet | str | Path | Sequence[str] | int) -> LabelSet:
    """Turn whatever describes the classes into a :class:`LabelSet`.

    Parameters
    ----------
    labels : LabelSet, str, path, sequence of str or int
        A set, the name of a preset, the path of a TOML file, class names for
        the values 0, 1, 2, …, or the number of classes.

    Raises
    ------
    TypeError
        If it is of another kind.
    ValueError
        If a string is neither a preset nor a file; the message lists the presets.

    Examples
    --------
    >>> load_labels("camvid").class_names[:3], load_labels(["road", "other"]).num_classes
    (('sky', 'building', 'pole'), 2)
    """
    if isinstance(labels, LabelSet):
        return labels
    wanted = "a label set, its name or file, class names or their number"
    kinds = (Integral, str, Path, Iterable)
    if isinstance(labels, (bool, bytes)) or not isinstance(labels, kinds):
        raise refuse_kind("labels", labels, wanted)
    if isinstance(labels, (int, Integral)):
        return LabelSet.numbered(int(labels))
    if not isinstance(labels, (str, Path)):
        return LabelSet.from_names(labels)
    return _load_named(str(labels))


def _load_named(name: str) -> LabelSet:
    preset = resources.files("segiou.labels") / "presets" / f"{name}.toml"
    if "/" not in name and "\\" not in name and preset.is_file():
        return LabelSet.from_dict(tomllib.loads(preset.read_text(encoding="utf-8")), where=name)
    path = Path(name).expanduser()
    if path.is_file():
        return LabelSet.from_toml(path)
    msg = (
        f"no label set {name!r}: it is neither a preset nor a file. "
        f"Presets: {', '.join(labelset_names())}; or give the path of a TOML file"
    )
    raise ValueError(msg)
