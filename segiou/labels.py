"""What a class is: its name, the file values and colours that mean it, its group.

A :class:`LabelSet` is data. The presets are TOML files beside this module, a
user's own set is a TOML file of the same form, and ``LabelSet.to_toml`` writes
one back, so that a preset can be printed, edited and used.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import Any

from segiou._labels_toml import dump_label_set, parse_label_set

__all__ = ["LabelClass", "LabelSet", "labelset_names", "load_labels"]

Color = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class LabelClass:
    """One class: its name and what stands for it in mask files.

    Attributes
    ----------
    name : str
        Unique within the label set.
    values : tuple of int
        File values that mean this class, at least one.
    colors : tuple of (int, int, int)
        RGB colours that mean this class in colour masks; may be empty.
    """

    name: str
    values: tuple[int, ...]
    colors: tuple[Color, ...] = ()


@dataclass(frozen=True)
class LabelSet:
    """The classes of a data set, in order, and what is ignored.

    Attributes
    ----------
    name : str
        Short name, such as ``"camvid"``.
    classes : tuple of LabelClass
        Index in this tuple = row and column of the confusion matrix.
    ignore : tuple of int
        File values whose truth pixels are dropped.
    ignore_colors : tuple of (int, int, int)
        The same for colour masks.
    groups : mapping of str to tuple of str
        Unions of classes, by class name, for grouped IoU.
    title, source, notes : str
        What it is, where it comes from, what to know about its encoding.

    Raises
    ------
    ValueError
        If names, values or colours are not unique, a value is both a class and
        ignored, or a group names an unknown class.

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
        object.__setattr__(self, "groups", MappingProxyType(dict(self.groups)))
        if not self.classes:
            msg = f"label set {self.name!r} has no classes; give it at least one"
            raise ValueError(msg)
        self._check_unique("class name", [[c.name] for c in self.classes])
        self._check_unique("value", [*(c.values for c in self.classes), self.ignore])
        self._check_unique("colour", [*(c.colors for c in self.classes), self.ignore_colors])
        self._check_groups()
        if self.ignore_colors and not self.ignore:
            msg = f"label set {self.name!r}: ignore_colors need a value in ignore to stand for"
            raise ValueError(msg)

    def _check_unique(self, what: str, owners: Sequence[Sequence[object]]) -> None:
        seen: dict[object, int] = {}
        for position, items in enumerate(owners):
            for item in items:
                if item in seen:
                    first, second = self._owner(seen[item]), self._owner(position)
                    msg = (
                        f"label set {self.name!r}: {what} {item!r} stands for both {first} and "
                        f"{second}; let each {what} have one meaning"
                    )
                    raise ValueError(msg)
                seen[item] = position

    def _owner(self, position: int) -> str:
        if position == len(self.classes):
            return "'ignore'"
        return f"class {position} ({self.classes[position].name!r})"

    def _check_groups(self) -> None:
        for group, members in self.groups.items():
            unknown = [name for name in members if name not in self.class_names]
            if unknown:
                msg = (
                    f"label set {self.name!r}: group {group!r} names unknown classes {unknown}; "
                    f"the classes are {list(self.class_names)}"
                )
                raise ValueError(msg)

    def __reduce__(self) -> tuple[Any, ...]:
        # A mapping proxy cannot be pickled; the plain description can.
        return (LabelSet.from_dict, (self.to_dict(),))

    def __hash__(self) -> int:
        return hash((self.name, self.classes, self.ignore))

    @property
    def num_classes(self) -> int:
        """Number of classes."""
        return len(self.classes)

    @property
    def class_names(self) -> tuple[str, ...]:
        """Names of the classes, in order."""
        return tuple(c.name for c in self.classes)

    @property
    def class_values(self) -> tuple[tuple[int, ...], ...]:
        """File values of each class, in order."""
        return tuple(c.values for c in self.classes)

    @property
    def has_colors(self) -> bool:
        """Whether colour masks can be read with this set."""
        return any(c.colors for c in self.classes)

    def index(self, name: str) -> int:
        """Position of a class.

        Raises
        ------
        ValueError
            If there is no class of that name; the message lists them.
        """
        try:
            return self.class_names.index(name)
        except ValueError:
            msg = f"no class {name!r} in label set {self.name!r}: {', '.join(self.class_names)}"
            raise ValueError(msg) from None

    def to_dict(self) -> dict[str, Any]:
        """Return the description as plain lists, strings and numbers."""
        return {
            "name": self.name,
            "title": self.title,
            "source": self.source,
            "notes": self.notes,
            "ignore": list(self.ignore),
            "ignore_colors": [_hex(c) for c in self.ignore_colors],
            "classes": [
                {"name": c.name, "values": list(c.values), "colors": [_hex(x) for x in c.colors]}
                for c in self.classes
            ],
            "groups": {name: list(members) for name, members in self.groups.items()},
        }

    def to_toml(self) -> str:
        """Return the set as TOML, one class a line, ready to be edited."""
        return dump_label_set(self.to_dict())

    @classmethod
    def from_dict(cls, description: Mapping[str, Any], *, where: str = "label set") -> LabelSet:
        """Build a set from plain data of the TOML files' form.

        Raises
        ------
        ValueError
            Naming the key that is missing, unknown or of the wrong kind.
        """
        parsed = parse_label_set(description, where)
        classes = tuple(LabelClass(*entry) for entry in parsed.pop("classes"))
        return cls(classes=classes, **parsed)

    @classmethod
    def from_toml(cls, path: str | Path) -> LabelSet:
        """Read a label set file.

        Raises
        ------
        ValueError
            If the file is not TOML or does not describe a label set.
        """
        path = Path(path).expanduser()
        try:
            description = tomllib.loads(path.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            msg = f"{path} is not a TOML file: {error}"
            raise ValueError(msg) from error
        description.setdefault("name", path.stem)
        return cls.from_dict(description, where=str(path))

    @classmethod
    def from_names(cls, names: Sequence[str], *, ignore: int | Iterable[int] = ()) -> LabelSet:
        """Build a set whose values are 0, 1, 2, … in the order of the names."""
        if isinstance(names, str):
            msg = f"class names must be a sequence of strings, not the one string {names!r}"
            raise TypeError(msg)
        ignored = (ignore,) if isinstance(ignore, int) else tuple(ignore)
        classes = tuple(LabelClass(str(name), (i,)) for i, name in enumerate(names))
        return cls(name="custom", classes=classes, ignore=ignored)

    @classmethod
    def numbered(cls, num_classes: int, *, ignore: int | Iterable[int] = ()) -> LabelSet:
        """Build a set of classes named by their numbers.

        Raises
        ------
        ValueError
            If ``num_classes`` is less than 1 or more than 65 536, as many as
            16 bits tell apart.
        """
        if num_classes < 1:
            msg = f"num_classes must be at least 1, got {num_classes}"
            raise ValueError(msg)
        if num_classes > 1 << 16:
            msg = f"num_classes must be at most {1 << 16}, got {num_classes}"
            raise ValueError(msg)
        return cls.from_names([str(i) for i in range(num_classes)], ignore=ignore)


def _hex(color: Color) -> str:
    return "#{:02x}{:02x}{:02x}".format(*color)


def labelset_names() -> tuple[str, ...]:
    """Names of the presets, sorted."""
    folder = resources.files("segiou") / "labelsets"
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
    ValueError
        If a string is neither a preset nor a file; the message lists the presets.

    Examples
    --------
    >>> load_labels("camvid").class_names[:3], load_labels(["road", "other"]).num_classes
    (('sky', 'building', 'pole'), 2)
    """
    if isinstance(labels, LabelSet):
        return labels
    if isinstance(labels, bool) or not isinstance(labels, (int, str, Path, Iterable)):
        kind = type(labels).__name__
        msg = (
            f"labels must be a label set, its name or file, class names or their number, not {kind}"
        )
        raise TypeError(msg)
    if isinstance(labels, int):
        return LabelSet.numbered(labels)
    if not isinstance(labels, (str, Path)):
        return LabelSet.from_names(labels)
    return _load_named(str(labels))


def _load_named(name: str) -> LabelSet:
    preset = resources.files("segiou") / "labelsets" / f"{name}.toml"
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
