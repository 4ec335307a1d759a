"""The preset label sets, and what a user may give in their place."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from numbers import Integral
from pathlib import Path
from typing import Any

from segiou._support.arguments import refuse_kind
from segiou._support.text import did_you_mean
from segiou.labels.label_set import LabelClass, LabelSet

_PRESETS = resources.files("segiou.labels") / "presets"


def labelset_names() -> tuple[str, ...]:
    """Names of the presets, sorted."""
    return tuple(sorted(f.name[:-5] for f in _PRESETS.iterdir() if f.name.endswith(".toml")))


def load_labels(labels: LabelSet | str | Path | Sequence[str] | int) -> LabelSet:
    """Turn whatever describes the classes into a :class:`LabelSet`.

    Parameters
    ----------
    labels : LabelSet, str, path, sequence of str or int
        A set, the name of a preset, the path of a TOML file or of nnU-Net's
        ``dataset.json``, class names for the values 0, 1, 2, …, or the number
        of classes.

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
    name = str(labels)
    path = Path(name).expanduser()
    if "/" not in name and "\\" not in name and (preset := _PRESETS / f"{name}.toml").is_file():
        with resources.as_file(preset) as path:
            return LabelSet.from_toml(path)
    if path.is_file():
        return _of_json(path) if path.suffix == ".json" else LabelSet.from_toml(path)
    presets = labelset_names()
    near = did_you_mean(name, presets)
    msg = (
        f"no label set {name!r}: it is neither a preset nor a file{near or '.'} "
        f"Presets: {', '.join(presets)}; or give the path of a TOML file"
    )
    raise ValueError(msg)


def _of_json(path: Path) -> LabelSet:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        msg = f"{path}: is no JSON: {error}"
        raise ValueError(msg) from error
    labels = found.get("labels") if isinstance(found, dict) else None
    if not isinstance(labels, dict) or not labels:
        msg = f"{path}: is no dataset.json of nnU-Net: it has no 'labels', names with their values"
        raise ValueError(msg)
    name = str(found.get("name") or path.resolve().parent.name)
    try:
        return _of_nnunet(labels, name, source=f"nnU-Net, {path.name}")
    except ValueError as error:
        msg = f"{path}: {error}"
        raise ValueError(msg) from error


def _of_nnunet(labels: Mapping[str, Any], name: str, source: str) -> LabelSet:
    """Labels of nnU-Net: names with a value, or with several, which are regions.

    Values that occur in regions only become classes named after their number.
    """
    values = {label: _label_values(label, given) for label, given in labels.items()}
    ignored = values.pop("ignore", ())
    single = {found[0]: label for label, found in values.items() if len(found) == 1}
    every = sorted({value for found in values.values() for value in found})
    names = {value: single.get(value, f"label {value}") for value in every}
    has_regions = any(isinstance(given, list) for given in labels.values())
    groups = {
        label: tuple(names[value] for value in found)
        for label, found in values.items()
        if has_regions and found != (0,)
    }
    return LabelSet(
        name,
        tuple(LabelClass(names[value], (value,)) for value in every),
        ignore=ignored,
        groups=groups,
        source=source,
    )


def _label_values(label: str, given: Any) -> tuple[int, ...]:
    several = given if isinstance(given, list) else [given]
    if not several or not all(isinstance(v, int) and not isinstance(v, bool) for v in several):
        msg = f"label {label!r} must have an integer, or a list of them, not {given!r}"
        raise ValueError(msg)
    return tuple(several)
