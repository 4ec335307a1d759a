"""The preset label sets, and what a user may give in their place."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib import resources
from numbers import Integral
from pathlib import Path

from segiou._support.arguments import refuse_kind
from segiou.labels.label_set import LabelSet

__all__ = ["labelset_names", "load_labels"]

_PRESETS = resources.files("segiou.labels") / "presets"


def labelset_names() -> tuple[str, ...]:
    """Names of the presets, sorted."""
    return tuple(sorted(f.name[:-5] for f in _PRESETS.iterdir() if f.name.endswith(".toml")))


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
    name = str(labels)
    path = Path(name).expanduser()
    if "/" not in name and "\\" not in name and (preset := _PRESETS / f"{name}.toml").is_file():
        with resources.as_file(preset) as path:
            return LabelSet.from_toml(path)
    if path.is_file():
        return LabelSet.from_toml(path)
    msg = (
        f"no label set {name!r}: it is neither a preset nor a file. "
        f"Presets: {', '.join(labelset_names())}; or give the path of a TOML file"
    )
    raise ValueError(msg)
