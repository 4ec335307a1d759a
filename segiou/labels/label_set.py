"""Label sets: class names, their file values and colours, and groups.

A :class:`LabelSet` is data. Presets and custom sets are TOML files of the same
form, and ``LabelSet.to_toml`` writes one, so a preset can be printed and edited.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

from segiou._support.arguments import (
    check_integer,
    check_kind,
    is_several,
    read_several,
    refuse_kind,
)
from segiou._support.text import Json, did_you_mean

#: Longest name of a class; it is repeated in every table and page.
_MOST_CHARACTERS = 1000
#: A dotted key of TOML with many parts; in a label set, one has three at most.
_LONG_KEY = re.compile(r"""(?<![\w.-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){40}""")
#: Range of mask values.
LEAST_VALUE, MOST_VALUE = -(1 << 63), (1 << 64) - 1

#: Names of the class of everything else, in lower case.
BACKGROUNDS = ("background", "_background_", "bg")
#: Candidate values of pixels outside all segments.
VOID_VALUES = (0, 255, 65535, -1, (1 << 31) - 1)

Color = tuple[int, int, int]

#: Start of the source of sets of one class and a background that its file does not declare.
ONE_CLASS = "Ultralytics, one class"
_TEXT_KEYS = ("name", "title", "source", "notes")
_KEYS = {*_TEXT_KEYS, "ignore", "ignore_colors", "classes", "groups"}
_CLASS_KEYS = {"name", "values", "colors"}
_HEX = re.compile(r"#?([0-9a-fA-F]{6})")


@dataclass(frozen=True, slots=True)
class LabelClass:
    """One class: its name, file values and colours.

    Attributes
    ----------
    name : str
        Unique within the label set.
    values : tuple of int
        File values of this class; none if it is never predicted.
    colors : tuple of (int, int, int)
        RGB colours of this class in colour masks; may be empty.
    """

    name: str
    values: tuple[int, ...]
    colors: tuple[Color, ...] = ()

    def __post_init__(self) -> None:
        check_kind("the name of a class", self.name, str, "text")
        if len(self.name) > _MOST_CHARACTERS:
            size = f"{len(self.name)} characters ({self.name[:20]!r}…)"
            msg = f"the name of a class has {size}; at most {_MOST_CHARACTERS} are supported"
            raise ValueError(msg)
        values = _values(f"values of class {self.name!r}", self.values)
        if not self.name.strip():
            of = f" of value {values[0]}" if values else ""
            msg = f"the class{of} has no name; name it, or remove the class"
            raise ValueError(msg)
        colors = _colors(f"colors of class {self.name!r}", self.colors)
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "colors", colors)


@dataclass(frozen=True)
class LabelSet:
    """The classes of a data set, in order, and the ignored values.

    Attributes
    ----------
    name : str
        Short name, such as ``"camvid"``.
    classes : tuple of LabelClass
        The index in this tuple is the row and column of the confusion matrix.
    ignore : tuple of int
        Truth values whose pixels are ignored.
    ignore_colors : tuple of (int, int, int)
        Ignored colours in colour masks.
    groups : mapping of str to tuple of str
        Unions of classes, by class name, for grouped IoU.
    title, source, notes : str
        Description, origin, and remarks on the encoding.

    Raises
    ------
    TypeError
        If a part is of the wrong kind.
    ValueError
        If names, values or colours are not unique, a value is both a class and
        ignored or has more than 64 bits, or a group names an unknown class or
        has the name of a class that is not its only member.

    Examples
    --------
    >>> labels = LabelSet.from_names(["background", "cell"], ignore=255)
    >>> labels.num_classes, labels.class_names, labels.ignore
    (2, ('background', 'cell'), (255,))
    """

    name: str
    classes: tuple[LabelClass, ...]
    ignore: tuple[int, ...] = ()
    ignore_colors: tuple[Color, ...] = ()
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    title: str = ""
    source: str = ""
    notes: str = ""

    def __post_init__(self) -> None:
        for name in _TEXT_KEYS:
            check_kind(name, getattr(self, name), str, "text")
        wanted = "a sequence of LabelClass; LabelSet.from_names creates them from names"
        classes = read_several("classes", self.classes, wanted)
        for entry in classes:
            check_kind("classes", entry, LabelClass, wanted)
        check_kind("groups", self.groups, Mapping, "a mapping from group to class names")
        groups = {
            group: tuple(read_several(f"group {group!r}", members, "a list of class names"))
            for group, members in self.groups.items()
        }
        for name, value in (
            ("classes", tuple(classes)),
            ("ignore", _values("ignore", self.ignore)),
            ("ignore_colors", _colors("ignore_colors", self.ignore_colors)),
            ("groups", MappingProxyType(groups)),
        ):
            object.__setattr__(self, name, value)
        self._check_consistent()

    def _check_consistent(self) -> None:
        if not self.classes:
            msg = f"label set {self.name!r} has no classes; expected at least one"
            raise ValueError(msg)
        if not self.declared_values:
            msg = f"label set {self.name!r} has no values; list the file values of its classes"
            raise ValueError(msg)
        self._check_unique("class name", [[c.name] for c in self.classes])
        self._check_unique("value", [*(c.values for c in self.classes), self.ignore])
        self._check_unique("colour", [*(c.colors for c in self.classes), self.ignore_colors])
        self._check_groups()
        if self.ignore_colors and not self.ignore:
            msg = f"label set {self.name!r}: ignore_colors requires a value in ignore"
            raise ValueError(msg)

    def _check_groups(self) -> None:
        for group, members in self.groups.items():
            if group in self.class_names and {*members} != {group}:
                msg = (
                    f"label set {self.name!r}: group {group!r} has the name of a class, but its "
                    f"members are {list(members)}; rename the group"
                )
                raise ValueError(msg)
            if unknown := [name for name in members if name not in self.class_names]:
                msg = (
                    f"label set {self.name!r}: unknown classes {unknown} in group {group!r}; "
                    f"choose from {list(self.class_names)}"
                )
                raise ValueError(msg)

    def _check_unique(self, what: str, owners: Sequence[Sequence[object]]) -> None:
        seen: dict[object, int] = {}
        for position, items in enumerate(owners):
            for item in items:
                if item in seen:
                    texts = [f"class {i} ({name!r})" for i, name in enumerate(self.class_names)]
                    first, second = ([*texts, "'ignore'"][i] for i in (seen[item], position))
                    msg = (
                        f"label set {self.name!r}: {what} {item!r} maps to both {first} and "
                        f"{second}; each {what} must map to one class"
                    )
                    raise ValueError(msg)
                seen[item] = position

    def __reduce__(self) -> tuple[Any, ...]:
        # A mapping proxy cannot be pickled.
        return (LabelSet.from_dict, (self.to_dict(),))

    def __hash__(self) -> int:
        return hash((self.name, self.classes, self.ignore))

    @property
    def num_classes(self) -> int:
        """Number of classes."""
        return len(self.classes)

    @cached_property
    def class_names(self) -> tuple[str, ...]:
        """Names of the classes, in order."""
        return tuple(c.name for c in self.classes)

    @cached_property
    def class_values(self) -> tuple[tuple[int, ...], ...]:
        """File values of each class, in order."""
        return tuple(c.values for c in self.classes)

    @cached_property
    def declared_values(self) -> frozenset[int]:
        """File values of all classes."""
        return frozenset(value for values in self.class_values for value in values)

    @cached_property
    def unnamed_colors(self) -> frozenset[int]:
        """Values that :func:`unnamed` classes of colours got in the order of their frequency."""
        return frozenset(
            value
            for entry in self.classes
            for value in entry.values
            if [entry.name] == [unnamed(hex_color(color)) for color in entry.colors]
        )

    @property
    def has_colors(self) -> bool:
        """Whether colour masks can be read with this set."""
        return any(c.colors for c in self.classes)

    def index(self, name: str) -> int:
        """Position of a class.

        Parameters
        ----------
        name : str
            Name of the class.

        Raises
        ------
        ValueError
            If no class has that name; the message lists the classes.
        """
        check_kind("the name of a class", name, str, "text")
        try:
            return self.class_names.index(name)
        except ValueError:
            near = did_you_mean(name, self.class_names)
            msg = (
                f"unknown class {name!r} in label set {self.name!r}; choose from "
                f"{', '.join(self.class_names)}{near}"
            )
            raise ValueError(msg) from None

    def to_dict(self) -> dict[str, Json]:
        """Return the description as plain lists, strings and numbers."""
        return {
            "name": self.name,
            "title": self.title,
            "source": self.source,
            "notes": self.notes,
            "ignore": list(self.ignore),
            "ignore_colors": [hex_color(c) for c in self.ignore_colors],
            "classes": [
                {"name": c.name, "values": list(c.values), "colors": [*map(hex_color, c.colors)]}
                for c in self.classes
            ],
            "groups": {name: list(members) for name, members in self.groups.items()},
        }

    def to_toml(self) -> str:
        """Return the set as TOML, one class per line."""
        data: Any = self.to_dict()
        keys = (*_TEXT_KEYS, "ignore", "ignore_colors")
        lines = [f"{key} = {_toml(data[key])}" for key in keys if data[key] or key == "ignore"]
        lines += ["", "classes = ["]
        for entry in data["classes"]:
            parts = [f"{key} = {_toml(value)}" for key, value in entry.items() if value != []]
            lines.append(f"  {{ {', '.join(parts)} }},")
        lines.append("]")
        if data["groups"]:
            lines += ["", "[groups]"]
            lines += [f"{_toml(name)} = {_toml(group)}" for name, group in data["groups"].items()]
        return "\n".join(lines) + "\n"

    @classmethod
    def from_dict(cls, description: Mapping[str, Any], *, where: str = "label set") -> LabelSet:
        """Build a label set from plain data with the keys of the TOML files.

        Parameters
        ----------
        description : mapping
            The data.
        where : str, default "label set"
            Name used in error messages.

        Raises
        ------
        TypeError
            If it is not a mapping.
        ValueError
            If a key is missing, unknown or of the wrong type; the message names it.
        """
        check_kind(where, description, Mapping, "a mapping, as returned by LabelSet.to_dict")
        try:
            return cls(**_arguments(description))
        except (TypeError, ValueError) as error:
            msg = f"{where}: {error}"
            raise ValueError(msg) from error

    @classmethod
    def from_toml(cls, path: str | Path) -> LabelSet:
        """Read a label set file.

        Parameters
        ----------
        path : str or Path
            The file.

        Raises
        ------
        ValueError
            If the file is not TOML or does not describe a label set.
        """
        check_kind("path", path, (str, Path), "the path of a TOML file")
        path = Path(path).expanduser()
        if not path.is_file():
            msg = f"{path} is not a file; expected the path of a TOML file"
            raise ValueError(msg)
        try:
            text = path.read_text(encoding="utf-8-sig")
            if _LONG_KEY.search(text):  # which takes a time that grows with its square
                raise RecursionError
            description = tomllib.loads(text)
        except RecursionError:
            msg = f"{path} is nested too deeply for a label set"
            raise ValueError(msg) from None
        except ValueError as error:  # also invalid UTF-8, and huge numbers
            msg = f"{path} is not a TOML file: {error}"
            raise ValueError(msg) from error
        return cls.from_dict({"name": path.stem, **description}, where=str(path))

    @classmethod
    def from_names(cls, names: Sequence[str], *, ignore: int | Iterable[int] = ()) -> LabelSet:
        """Build a label set with values 0, 1, 2, … in the order of the names.

        Parameters
        ----------
        names : sequence of str
            Names of the classes.
        ignore : int or iterable of int, optional
            Truth values whose pixels are dropped.
        """
        if isinstance(names, (set, frozenset)):
            raise refuse_kind("class names", names, "an ordered sequence of strings")
        several = read_several("class names", names, "a sequence of strings")
        for name in several:
            wanted = "a string; pass values as integers, or as a mapping {name: values}"
            check_kind("a class name", name, str, wanted)
        ignored: Any = tuple(ignore) if is_several(ignore) else (ignore,)
        classes = tuple(LabelClass(str(name), (i,)) for i, name in enumerate(several))
        return cls(name="custom", classes=classes, ignore=ignored)

    def with_values(self, values: Sequence[int | None]) -> LabelSet:
        """The same classes with other values, without colours.

        Parameters
        ----------
        values : sequence of int or None
            One per class; a class with None is excluded.

        Raises
        ------
        ValueError
            If there is not one per class, or a value is not unique.
        """
        values = read_several("values", values, "a value, or None, of each class")
        if len(values) != self.num_classes:
            msg = (
                f"got {len(values)} values for the {self.num_classes} classes of label set "
                f"{self.name!r}; pass one per class, in order ('none' if it is never predicted)"
            )
            raise ValueError(msg)
        several = zip(self.class_names, values, strict=True)
        return LabelSet("custom", tuple(LabelClass(n, (v,)) for n, v in several if v is not None))

    @classmethod
    def numbered(cls, num_classes: int, *, ignore: int | Iterable[int] = ()) -> LabelSet:
        """Build a label set of classes named by their numbers.

        Parameters
        ----------
        num_classes : int
            Number of classes.
        ignore : int or iterable of int, optional
            Truth values whose pixels are dropped.

        Raises
        ------
        TypeError
            If ``num_classes`` is not an integer.
        ValueError
            If it is less than 1 or more than 65 536 (16 bits).
        """
        number = check_integer("num_classes", num_classes, 1, 1 << 16)
        return cls.from_names([str(i) for i in range(number)], ignore=ignore)


def _arguments(description: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a label set, from the shorthand forms of files."""
    _refuse_unknown(description, _KEYS, "")
    classes = description.get("classes")
    if not isinstance(classes, list) or not classes:
        example = '{ name = "sky", values = [0] }'
        msg = f'"classes" must be a list of classes, e.g. {example}'
        raise ValueError(msg)
    return {
        "name": "custom",
        **description,
        "ignore": _listed(description.get("ignore", [])),
        "ignore_colors": _listed_colors(description.get("ignore_colors", [])),
        "classes": [_read_class(entry, i) for i, entry in enumerate(classes)],
    }


def _refuse_unknown(description: Mapping[str, Any], known: set[str], where: str) -> None:
    if unknown := sorted(set(description) - known):
        names = ", ".join(map(repr, unknown))
        msg = f"{where}unknown key {names}; choose from {', '.join(sorted(known))}"
        raise ValueError(msg)


def _read_class(entry: Any, position: int) -> LabelClass:
    if isinstance(entry, str):
        return LabelClass(entry, (position,))
    where = f"class {position}"
    if not isinstance(entry, Mapping) or not isinstance(entry.get("name"), str):
        msg = f'{where} must have a name, e.g. {{ name = "sky", values = [0] }}; got {entry!r}'
        raise ValueError(msg)
    _refuse_unknown(entry, _CLASS_KEYS, f"{where} ({entry['name']!r}): ")
    values, colors = entry.get("values", position), entry.get("colors", [])
    return LabelClass(entry["name"], _listed(values), _listed_colors(colors))


def _listed(value: Any) -> Any:
    return value if isinstance(value, list) else [value]


def _listed_colors(value: Any) -> Any:
    is_one = isinstance(value, list) and len(value) == 3 and isinstance(value[0], int)
    return [value] if is_one else _listed(value)


def _toml(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    # JSON's string escapes are a subset of TOML's, except for DEL.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def background_of(names: Iterable[str]) -> str | None:
    """The name of the class of everything else; None if there is none."""
    return next((name for name in names if name.lower() in BACKGROUNDS), None)


def unnamed(color: str) -> str:
    """Name of the class of a colour until someone gives it one."""
    return f"color {color}"


def hex_color(color: Color) -> str:
    """Write a colour as ``#rrggbb``."""
    return "#{:02x}{:02x}{:02x}".format(*color)


def _values(name: str, values: Iterable[int]) -> tuple[int, ...]:
    several = read_several(name, values, "a sequence of integers")
    return tuple(check_integer(name, value, LEAST_VALUE, MOST_VALUE) for value in several)


def _colors(name: str, colors: Iterable[Any]) -> tuple[Color, ...]:
    """Colours as three numbers, or as hexadecimal text."""
    parsed = []
    for color in read_several(name, colors, "a sequence of colours such as (128, 192, 255)"):
        text = _HEX.fullmatch(color) if isinstance(color, str) else None
        try:
            parts = bytes.fromhex(text[1]) if text else color
            red, green, blue = (check_integer(name, part, 0, 255) for part in parts)
        except (TypeError, ValueError) as error:
            msg = (
                f"{name}: expected a colour of three numbers from 0 to 255, or text such as "
                f'"#80c0ff", got {color!r}'
            )
            raise ValueError(msg) from error
        parsed.append((red, green, blue))
    return tuple(parsed)
