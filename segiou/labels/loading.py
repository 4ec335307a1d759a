"""Label sets from what users write: names of presets, files, names and values of classes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib import resources
from numbers import Integral
from pathlib import Path
from typing import Any

from segiou._support.arguments import check_kind, is_several, names_options
from segiou._support.files import is_file
from segiou._support.text import did_you_mean
from segiou.labels.label_set import Color, LabelClass, LabelSet

_PRESETS = resources.files("segiou.labels") / "presets"
#: Extensions of label files.
_LABEL_SUFFIXES = {".toml", ".json", ".yaml", ".yml", ".txt", ".csv", ".tsv"}


@cache
def labelset_names() -> tuple[str, ...]:
    """Names of the presets, sorted."""
    return tuple(sorted(f.name[:-5] for f in _PRESETS.iterdir() if f.name.endswith(".toml")))


@cache
def _preset(name: str) -> LabelSet | None:
    """The preset of this name, read once; None if there is none."""
    if name not in labelset_names():
        return None
    with resources.as_file(_PRESETS / f"{name}.toml") as path:
        return LabelSet.from_toml(path)


@names_options
def load_labels(
    labels: LabelSet | str | Path | Sequence[str] | Sequence[int | None] | Mapping[str, Any] | int,
) -> LabelSet:
    """Convert a description of classes to a :class:`LabelSet`.

    Parameters
    ----------
    labels : LabelSet, str, path, sequence of str, mapping or int
        A label set; the name of a preset or of a set added by an installed package
        (entry point ``segiou.labelsets``); the path of a TOML file or of another
        tool's label file (nnU-Net's ``dataset.json``, COCO's ``categories``, Hugging
        Face's ``id2label``, MMSegmentation's ``METAINFO`` as JSON, CVAT's
        ``labelmap.txt``, Ultralytics' ``data.yaml``, SemanticKITTI's YAML, a CSV
        file or text file of names, a raster with GDAL's ``.aux.xml``); class names
        for the values 0, 1, 2, …, also as one text, ``"road,car"``; values, which also
        name the classes, ``range(1, 4)`` or ``"1-3"``; a mapping
        from class name to its value or values, ``"road=7,car=26"``, or from values to names
        (``model.config.id2label``, where 255 is ignored); or the number of classes.

    Raises
    ------
    TypeError
        If it is of another type.
    ValueError
        If a string is neither a preset nor a file; the message names a similar preset.

    Examples
    --------
    >>> load_labels("camvid").class_names[:3], load_labels(["road", "other"]).num_classes
    (('sky', 'building', 'pole'), 2)
    >>> load_labels({"road": 7, "car": [26, 27]}).class_values
    ((7,), (26, 27))
    >>> load_labels("road=7,car=26").class_values, load_labels("1-3").class_names
    (((7,), (26,)), ('1', '2', '3'))
    """
    if isinstance(labels, LabelSet):
        return labels
    if isinstance(labels, Mapping):
        return _mapped_labels(labels)
    if isinstance(labels, Integral) and not isinstance(labels, bool):
        return LabelSet.numbered(int(labels))
    if is_several(labels):
        several: Any = labels if isinstance(labels, (Sequence, set, frozenset)) else [*labels]
        if all(isinstance(name, str) for name in several):
            return LabelSet.from_names(several)
        from segiou.labels.listed_classes import value_labels

        return value_labels(several) or LabelSet.from_names(several)
    wanted = "a label set, its name or file, class names or their number"
    check_kind("labels", labels, (str, Path), wanted)
    return _labels_by_name(str(labels))


def presets_with(colors: Collection[Color]) -> Iterator[LabelSet]:
    """Presets that have all of several colours."""
    for preset in map(load_labels, labelset_names() if len(colors) > 2 else ()):
        of_classes = {rgb for entry in preset.classes for rgb in entry.colors}
        if of_classes.union(preset.ignore_colors).issuperset(colors):
            yield preset


def _mapped_labels(labels: Mapping[Any, Any]) -> LabelSet:
    """The label set of a mapping from names to values, or from values to names."""
    if labels and all(isinstance(name, str) for name in labels.values()):
        from segiou.labels.label_files import id2label_labels

        return id2label_labels(labels, "custom")
    lists = [(n, [*v] if isinstance(v, Iterable) else [v]) for n, v in labels.items()]
    return LabelSet("custom", tuple(LabelClass(n, tuple(values)) for n, values in lists))


def _labels_by_name(name: str) -> LabelSet:
    """The preset of a name, the label set in a file, or that of a plug-in."""
    path = Path(name).expanduser()
    if "/" not in name and "\\" not in name and (preset := _preset(name)) is not None:
        return preset
    if is_file(path):
        from segiou.labels.label_files import read_label_file

        return read_label_file(path)
    from segiou._support.optional import find_plugin, plugin_names
    from segiou.labels.listed_classes import names_in, value_labels

    if (listed := value_labels(name) or names_in(name)) is not None:
        return listed
    added: LabelSet | None = find_plugin("labelsets", name, LabelSet)
    if added is not None:  # which is found by this name, whatever its own is
        return replace(added, name=name)
    presets = (*labelset_names(), *plugin_names("labelsets"))
    if path.suffix.lower() in _LABEL_SUFFIXES:
        msg = f"label file {name!r} does not exist"
        raise ValueError(msg)
    ways = (
        "pass the name of a preset (segiou labelsets lists them), the path of a label file, names "
        "as in road,car, values as in 1-7, or a number"
    )
    near = did_you_mean(name, presets) or f"; {ways}"
    msg = f"unknown label set {name!r}: neither a preset nor a file{near}"
    raise ValueError(msg)
