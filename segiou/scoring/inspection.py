"""Inspection of a folder of masks: values, matching label sets, suspicious files."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from segiou._support.document import Part, Shown
from segiou._support.files import Problem, problem_lines
from segiou._support.text import Json, listed, plural
from segiou.labels.label_set import (
    Color,
    LabelClass,
    LabelSet,
    hex_color,
    labelset_names,
    load_labels,
)
from segiou.masks.class_files import IN_FOLDERS, class_layout, folder_names
from segiou.masks.image_files import palette_colors
from segiou.masks.pairing import Pairing
from segiou.masks.read import RawMask
from segiou.masks.sources import LocalFolder, Source, open_source
from segiou.scoring.file_values import IN_NO_SHAPE, FileContent, read_values
from segiou.scoring.job import DataError, pair_sources, pairing_problems
from segiou.scoring.problems import geometry_text, size_text

if TYPE_CHECKING:
    from segiou.masks.volumes import Volume

_MANY_VALUES = 64
#: A file with more distinct values is suspicious.
_MANY = {"values": _MANY_VALUES, "colors": 4 * _MANY_VALUES, "names": math.inf}
#: Values that conventionally mark unlabelled pixels.
_NO_DATA = {255, 65535, 2**31 - 1, 2**32 - 1}
#: A label set of at least this quality fits well.
_GOOD = 0.4
#: Maximum number of label sets listed.
LISTED = 6
#: Number of classes from which it is not a coincidence that all occur.
_CERTAIN = 5
#: Fewer consecutive values are probably classes.
_LEAST_IDS = 8
#: Ids of objects end at one of at least this many values, by file; few classes also end at two.
_LEAST_ENDS = 3
_OF_IDS = "--objects labels"
_MAY_BE_IDS = (
    "each file has values from 0 without gaps, up to a different one; if they are ids of objects, "
    f"pass {_OF_IDS}"
)
#: Maximum number of classes in a proposed label set.
_MOST_PROPOSED = 1024
#: Presets for point clouds and volumes, never suggested for images; and presets for volumes.
_NO_IMAGES = {"flare22", "kits23", "nuscenes", "nuscenes-challenge", "semantickitti"}
_OF_VOLUMES = {
    *("binary", "brats", "brats2023", "flare22", "kits23"),
    *("totalsegmentator", "totalsegmentator-mr"),
}
#: Number of files sampled to suggest a label set.
_SAMPLE = 40


@dataclass(frozen=True, slots=True)
class LabelSetMatch:
    """Match of a label set with the masks.

    Attributes
    ----------
    name : str
    undeclared : int
        Pixels whose value or colour the set does not declare.
    classes_seen, num_classes : int
    quality : float
        The share of pixels that belong to its classes, times the share of
        its classes that occur.
    meanings : mapping of int or str to str
        Class names of values and colours (``"#rrggbb"``) in the set.
    """

    name: str
    undeclared: int
    classes_seen: int
    num_classes: int
    quality: float = 0.0
    meanings: Mapping[int | str, str] = field(default_factory=dict, repr=False)

    @property
    def is_named(self) -> bool:
        """Whether the set has a name, unlike a number of classes."""
        return self.name != "custom"

    @property
    def option(self) -> str:
        """The set as a command-line option."""
        return f"--labels {self.name}"

    @property
    def occurring(self) -> str:
        """Number of its classes that occur, as text."""
        return f"{self.classes_seen} of {self.num_classes} classes occur"

    def __str__(self) -> str:
        return f"{self.option} ({self.occurring})"

    def to_dict(self) -> dict[str, Json]:
        """Everything except the meanings, as plain data."""
        names = ("undeclared", "classes_seen", "num_classes", "quality")
        return {"labels": self.name, **{name: getattr(self, name) for name in names}}


@dataclass(frozen=True)
class Inspection(Shown):
    """The contents of a folder of masks.

    Attributes
    ----------
    folder : str
    files : int
        Number of files read.
    modes, kinds, dtypes, sizes : mapping of str to int
        Number of files with each.
    values : mapping of int to int
        Number of pixels with each value.
    value_files : mapping of int to int
        Number of files in which each value occurs.
    colors : mapping of str to int
        Number of pixels with each colour, ``"#rrggbb"``.
    names : mapping of str to int
        Number of pixels with each name, for files of annotation tools.
    fits : tuple of LabelSetMatch
        Label sets, best match first.
    suspicions : tuple of str
        Possible mistakes.
    problems : tuple of Problem
        Files that cannot be read as masks.
    spacings, orientations : mapping of str to int
        Number of volumes with each; empty for images.
    disagreements : tuple of Problem
        Pairs that differ in size, spacing, affine or orientation, and unpaired
        files, if predictions were given.
    pairs : int
        Number of pairs of a mask and a prediction.
    pred : Inspection, optional
        The contents of the predictions, if they were given.
    palette : mapping of int to (int, int, int)
        Colours of the values, if all palette images agree on them.
    has_ids : bool
        Whether the values are probably one id per object.
    """

    folder: str
    files: int
    modes: dict[str, int]
    kinds: dict[str, int]
    dtypes: dict[str, int]
    sizes: dict[str, int]
    values: dict[int, int]
    value_files: dict[int, int]
    colors: dict[str, int]
    fits: tuple[LabelSetMatch, ...] = ()
    suspicions: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = field(default=())
    spacings: dict[str, int] = field(default_factory=dict)
    orientations: dict[str, int] = field(default_factory=dict)
    disagreements: tuple[Problem, ...] = ()
    pairs: int = 0
    names: dict[str, int] = field(default_factory=dict)
    pred: Inspection | None = None
    palette: dict[int, Color] = field(default_factory=dict, repr=False)
    has_ids: bool = False

    @property
    def fitting(self) -> tuple[LabelSetMatch, ...]:
        """Label sets that declare every value, best match first."""
        return tuple(fit for fit in self.fits if not fit.undeclared)

    @property
    def proposal(self) -> str:
        """Options that declare every value if no preset fits well; else empty."""
        if self.has_ids:
            return "--objects labels"
        if self.colors or not self.values or (self.fitting and self.fitting[0].quality >= _GOOD):
            return ""
        classes, ignored = self._parted_values()
        # Values with large gaps are object ids, or belong to a set with names.
        if not classes or max(classes) >= 2 * len(classes) + 1:
            return ""
        ignore = f" --ignore {','.join(map(str, ignored))}" if ignored else ""
        return f"--labels {max(classes) + 1}{ignore}"

    def proposed_labels(self) -> LabelSet:
        """Return a label set of every value, colour and name found, to be edited.

        Raises
        ------
        ValueError
            If there are none, or too many for classes.
        """
        if self.pred is not None:
            both: dict[str, Any] = {
                name: {**getattr(self, name), **getattr(self.pred, name)}
                for name in ("values", "colors", "names")
            }
            both["palette"] = {**self.pred.palette, **self.palette}
            both["values"] = dict(sorted(both["values"].items()))
            return replace(self, pred=None, **both).proposed_labels()
        values, ignore = self._parted_values()
        free = (v for v in count() if v not in self.values)
        hues = Counter(self.palette[v] for v in self.values if v in self.palette)
        own = {v: (rgb,) for v, rgb in self.palette.items() if hues[rgb] == 1}
        colors = [color for color in self.colors if _rgb(color) not in hues]
        others = len(colors) + len(self.names)
        if not 0 < len(values) + others <= _MOST_PROPOSED:
            found = f"{len(values)} values and {others} colours or names"
            msg = f"{self.folder}: has {found}; --propose supports 1 to {_MOST_PROPOSED}"
            raise ValueError(msg)
        classes = [LabelClass(f"value {v}", (v,), own.get(v, ())) for v in values]
        for color in colors:
            classes.append(LabelClass(f"color {color}", (next(free),), (_rgb(color),)))
        named = sorted(self.names, key=lambda name: name != IN_NO_SHAPE)
        classes += [LabelClass(name, (next(free),)) for name in named]
        ignored: dict[str, Any] = {
            "ignore": tuple(ignore),
            "ignore_colors": tuple(rgb for v in ignore for rgb in own.get(v, ())),
        }
        return LabelSet("proposed", tuple(classes), **ignored, source=self.folder)

    def _parted_values(self) -> tuple[list[int], list[int]]:
        """Values that may be classes, and values that mark unlabelled pixels."""
        ignored = [value for value in self.values if value < 0 or value in _NO_DATA]
        return [value for value in self.values if value not in ignored], ignored

    @property
    def problem_lines(self) -> list[str]:
        """The problems as text, grouped by cause."""
        return problem_lines(self.problems)

    def to_dict(self) -> dict[str, Json]:
        """Everything as plain data."""
        pixels = sum(self.values.values()) or 1
        found = {
            **vars(self),
            "values": [
                {"value": v, "pixels": n, "share": n / pixels, "files": self.value_files[v]}
                for v, n in self.values.items()
            ],
            "colors": [{"color": color, "pixels": n} for color, n in self.colors.items()],
            "names": [{"name": name, "pixels": n} for name, n in self.names.items()],
            "fits": [fit.to_dict() for fit in self.fits],
            "suspicions": list(self.suspicions),
            "problems": [{"file": p.where, "problem": p.text} for p in self.problems],
            "disagreements": [{"file": p.where, "problem": p.text} for p in self.disagreements],
            "pred": None if self.pred is None else self.pred.to_dict(),
        }
        del found["value_files"], found["palette"]
        return found

    def _parts(self) -> Iterable[Part]:
        from segiou.report.findings_document import inspection_parts

        return inspection_parts(self)


def inspect_folder(
    folder: str | Path,
    *,
    pred: str | Path | None = None,
    labels: LabelSet | None = None,
    workers: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    most: int | None = None,
) -> Inspection:
    """List the values in a folder of masks, and the label sets that match them.

    Parameters
    ----------
    folder : str or path
        A folder, file, archive or URL, as in :func:`segiou.score_folder`.
    pred : str or path, optional
        Predictions for these masks; their values and the differences between
        masks and predictions are also listed.
    labels : LabelSet, optional
        The label set to check; all presets by default.
    workers : int, optional
        Number of threads; one per core by default.
    progress : callable, optional
        Called with the number of files done and of all files; first with 0.
    most : int, optional
        Maximum number of files to read, evenly spread over the folder.

    Raises
    ------
    DataError
        If the folder does not exist or contains no masks.
    """
    source = open_source(folder)
    single = isinstance(source, LocalFolder) and Path(source.root).is_file()
    try:
        paths = [source.root] if single else list(source.find().values())
    except ValueError as error:
        text = str(error).removeprefix(f"{source.root}: ")
        raise DataError([Problem(source.root, text)]) from error
    if most is not None:
        paths = paths[:: max(1, -(-len(paths) // most))]
    pairing = None if pred is None else pair_sources(source, pred_source := open_source(pred))
    tasks = [(source, path) for path in paths]
    if pairing is not None:
        tasks += [(pred_source, pair.pred) for pair in pairing.pairs]
    read: list[FileContent | Problem] = []
    if progress is not None:
        progress(0, len(tasks))
    with ThreadPoolExecutor(workers or os.cpu_count() or 1) as pool:
        for result in pool.map(read_values, *zip(*tasks, strict=True)):
            read.append(result)
            if progress is not None:
                progress(len(read), len(tasks))
    found = _summary(str(folder), read[: len(paths)], labels)
    found = _with_palette(found, source, read[: len(paths)])
    if not single and (layout := class_layout(source.find())):
        text = f"one file per class ({listed(list(layout[1]), 8)}): --class-files '{layout[0]}'"
        found = replace(found, suspicions=(text, *found.suspicions))
    if pairing is None:
        return found
    of_pred = _summary(str(pred), read[len(paths) :], labels)
    of_pred = _with_palette(of_pred, pred_source, read[len(paths) :])
    return replace(
        found,
        problems=found.problems + of_pred.problems,
        disagreements=_disagreements(pairing, read),
        pairs=len(pairing.pairs),
        pred=replace(of_pred, problems=()),
    )


def _disagreements(pairing: Pairing, read: Sequence[FileContent | Problem]) -> tuple[Problem, ...]:
    """Pairs that cannot be compared pixel by pixel, and unpaired files."""
    files = {file.path: file for file in read if isinstance(file, FileContent)}
    found = pairing_problems(pairing)[0]
    for pair in pairing.pairs:
        if pair.truth in files and pair.pred in files:
            truth, pred = files[pair.truth], files[pair.pred]
            if truth.mask.volume is not None and pred.mask.volume is not None:
                from segiou.masks.volumes import geometry_difference

                if difference := geometry_difference(truth.mask.volume, pred.mask.volume):
                    found.append(Problem(pair.pred, geometry_text(pair.truth, difference)))
            elif truth.shape != pred.shape:
                found.append(Problem(pair.pred, size_text(pair.truth, (truth.shape, pred.shape))))
    return tuple(found)


def layout_of(truth: str | Path) -> tuple[str, tuple[str, ...]] | None:
    """Pattern and classes of a folder with one file per class; None for others."""
    try:
        return class_layout(open_source(truth).find())
    except ValueError:  # no masks
        return None


def label_set_question(truth: str | Path, command: str) -> str:
    """Suggest label sets for the masks of a folder, the best match as a full command."""
    needed = "--labels is required to score masks"
    if layout := layout_of(truth):
        pattern, names = layout
        return (
            f"{truth} has one file per class ({listed(list(names), 8)}). Score them with:\n"
            f"  {command} --class-files '{pattern}'"
        )
    try:
        found = inspect_folder(truth, most=_SAMPLE)
    except ValueError:  # no masks
        found = None
    fitting = [] if found is None else list(found.fitting)
    best = "" if found is None else found.proposal
    why = "no preset fits well"
    if found is not None and found.has_ids:
        why = f"or --labels {max(found.values) + 1}: {found.suspicions[0]}"
    if fitting and not best:
        best, why = fitting[0].option, fitting.pop(0).occurring
    if not best:
        return (
            f"{needed}: a preset, a TOML file or a number of classes; segiou inspect {truth} "
            "lists the values in the masks"
        )
    text = f"{needed}. Best match for the masks in {truth}:\n  {command} {best}  # {why}"
    if found and len(found.values) < 3 and (names := folder_names(open_source(truth).find())):
        text += (
            f"\nIf the folders are classes ({listed(list(names), 8)}):\n"
            f"  {command} --class-files '{IN_FOLDERS}'"
        )
    if found and _MAY_BE_IDS in found.suspicions:
        text += f"\nIf the values are ids of objects:\n  {command} {_OF_IDS}"
    if others := [fit.name for fit in fitting[: LISTED - 1]]:
        text += f"\nOther label sets with these values: {', '.join(others)}"
    if found and (number := _consecutive(found.values)):
        ignored = " --ignore 255" if 255 in found.values and number < 255 else ""
        text += f"\nClasses without names: --labels {number}{ignored}"
    return text


def _consecutive(values: Iterable[int]) -> int:
    """Number of classes if the values are 0, 1, 2, … and perhaps 255; else 0."""
    known = sorted(value for value in values if value != 255)
    return len(known) if known == list(range(len(known))) else 0


def better_label_set(
    labels: LabelSet, truth: Source, paths: Sequence[str], *, certain: bool
) -> str:
    """Suggest a label set that fits the masks better; empty if this one may be right.

    If ``certain``, every class of the other set must occur.
    """
    some = paths[:: max(1, -(-len(paths) // _SAMPLE))]
    found = _summary("", [read_values(truth, path) for path in some], None)
    mine = _fit(labels, found.values, found.colors)
    best = next(iter(found.fitting), None)
    if best is None:
        better = found.proposal if mine.quality < _GOOD and not certain else ""
    else:
        full = not certain or best.classes_seen == best.num_classes >= _CERTAIN
        fits = best.quality >= _GOOD and mine.quality < 0.75 * best.quality
        better = str(best) if full and fits else ""
    if not better:
        return ""
    return f"{_described(labels, mine)}; better match: {better}"


def _described(labels: LabelSet, match: LabelSetMatch) -> str:
    values = sorted(labels.declared_values)
    is_known = labels.name in labelset_names() or bool(labels.source)
    if not is_known and values == [*range(len(values))]:
        return f"the labels are 0 to {len(values) - 1}"
    name = f" {labels.name!r}" if is_known else ""
    return f"label set{name} looks wrong ({match.occurring})"


def _rgb(color: str) -> Color:
    """The channels of ``"#rrggbb"``."""
    return int(color[1:3], 16), int(color[3:5], 16), int(color[5:7], 16)


def _with_palette(
    found: Inspection, source: Source, read: Sequence[FileContent | Problem]
) -> Inspection:
    """The inspection with the colours on which the palettes of a sample agree."""
    files = [file for file in read if isinstance(file, FileContent) and file.mask.mode == "P"]
    contents = [source.read(f.path)[0] for f in files[:: max(1, -(-len(files) // _SAMPLE))]]
    palettes = [palette_colors(data) for data in contents if not isinstance(data, RawMask)]
    agreed = set.intersection(*(set(p.items()) for p in palettes)) if palettes else set()
    return replace(found, palette={v: rgb for v, rgb in sorted(agreed) if v in found.values})


def _summary(
    folder: str, read: Sequence[FileContent | Problem], labels: LabelSet | None
) -> Inspection:
    files = [file for file in read if isinstance(file, FileContent)]
    pixels: dict[str, Counter[Any]] = {what: Counter() for what in ("values", "colors", "names")}
    for file in files:
        pixels[file.what].update(file.pixels)
    masks = [file.mask for file in files]
    volumes = [mask.volume for mask in masks if mask.volume]
    possible = {*labelset_names()}
    if volumes:
        possible &= _OF_VOLUMES
    elif not any(len(file.shape) == 1 for file in files):
        possible -= _NO_IMAGES
    candidates = [labels] if labels else [load_labels(name) for name in sorted(possible)]
    fits = [_fit(candidate, pixels["values"], pixels["colors"]) for candidate in candidates]
    # Sets that declare everything come first; among those, the best match.
    fits = sorted(
        (fit for fit in fits if fit.classes_seen),
        key=lambda fit: (fit.undeclared, -fit.quality, fit.num_classes),
    )
    of_values = [file.pixels for file in files if file.what == "values"]
    suspicions = _suspicions(files, pixels["values"], fits)
    has_ids = labels is None and _are_ids(files)
    if has_ids:
        fits = []
        last = max(pixels["values"])
        suspicions.insert(0, f"the values are 0 to {last} without gaps, probably ids of objects")
    return Inspection(
        folder=folder,
        files=len(files),
        modes=_frequencies(mask.mode for mask in masks),
        kinds=_frequencies(mask.kind for mask in masks),
        dtypes=_frequencies(mask.values.dtype.name for mask in masks),
        sizes=_frequencies(_size(file.shape) for file in files),
        values=dict(sorted(pixels["values"].items())),
        value_files=dict(sorted(Counter(chain.from_iterable(of_values)).items())),
        colors=dict(pixels["colors"].most_common()),
        names=dict(pixels["names"].most_common()),
        fits=tuple(fits),
        suspicions=tuple(suspicions),
        has_ids=has_ids,
        problems=tuple(problem for problem in read if isinstance(problem, Problem)),
        spacings=_frequencies(map(_spacing, volumes)),
        orientations=_frequencies(volume.orientation for volume in volumes),
    )


def _spacing(volume: Volume) -> str:
    from segiou.masks.volumes import spacing_text

    unit = "mm" if volume.unit == "mm" else "(no unit given)"
    return f"{spacing_text(volume.spacing)} {unit}"


def _size(shape: tuple[int, ...]) -> str:
    return f"{shape[1]}x{shape[0]}" if len(shape) == 2 else "x".join(map(str, shape))


def _fit(labels: LabelSet, values: Mapping[int, int], colors: Mapping[str, int]) -> LabelSetMatch:
    owner: dict[int | str, str] = {v: c.name for c in labels.classes for v in c.values}
    owner |= {hex_color(x): c.name for c in labels.classes for x in c.colors}
    ignored: set[int | str] = {*labels.ignore, *map(hex_color, labels.ignore_colors)}
    pixels = [*values.items(), *colors.items()]
    undeclared = sum(n for v, n in pixels if v not in owner and v not in ignored)
    seen = {owner[v] for v, _ in pixels if v in owner}
    of_classes = sum(n for v, n in pixels if v in owner and v not in ignored)
    total = sum(n for _, n in pixels)
    quality = of_classes * len(seen) / (total * labels.num_classes) if total else 0.0
    meanings: dict[int | str, str] = {**owner, **dict.fromkeys(ignored, "ignored")}
    return LabelSetMatch(labels.name, undeclared, len(seen), labels.num_classes, quality, meanings)


def _suspicions(
    files: Sequence[FileContent], values: Counter[int], fits: Sequence[LabelSetMatch]
) -> list[str]:
    """Possible mistakes in the files, one sentence each."""
    found = []
    if set(values) == {0, 255}:
        found.append("only 0 and 255 occur (binary mask?); --labels binary reads 255 as 1")
    lossy = [file for file in files if file.mask.lossy]
    if lossy:
        found.append(
            f"{len(lossy)} of {len(files)} files are {lossy[0].mask.kind}, a lossy format (e.g. "
            f"{lossy[0].path})"
        )
    if len(_ends(files)) >= _LEAST_ENDS and not _are_ids(files):
        found.append(_MAY_BE_IDS)
    many = [f for f in files if len(f.pixels) > _MANY[f.what]]
    if many:
        worst = max(many, key=lambda f: len(f.pixels))
        found.append(
            f"{len(many)} of {len(files)} files have too many distinct values for class labels "
            f"({worst.path}: {len(worst.pixels)}); likely interpolated when resized, saved "
            "with lossy compression, or instance ids"
        )
    if between := _in_between(values, fits):
        found.append(f"{between}; edges may have been interpolated")
    modes, sizes = _frequencies(f.mask.mode for f in files), {f.shape for f in files}
    if len(modes) > 1:
        found.append("files have different modes: " + ", ".join(modes))
    # Scans of different patients differ in size.
    if len(sizes) > 1 and not any(f.mask.volume for f in files):
        found.append(f"files have {len(sizes)} different sizes")
    if grey := sum(
        f.what == "colors" and all(c[1:] == 3 * c[1:3] for c in f.pixels) for f in files
    ):
        hold = "file holds" if grey == 1 else "files hold"
        found.append(f"{grey} {hold} greyscale as RGB; save a single channel")
    flat = [f.path for f in files if f.what != "names" and len(f.pixels) == 1]
    if flat and len(files) > 1:
        have = plural(len(flat), "file has", "files have")
        found.append(f"{have} a single value: {listed(flat, 3)}")
    return found


def _ends(files: Sequence[FileContent]) -> set[int]:
    """The highest value of each image if all have values without gaps, as ids of objects."""
    for file in files:
        if file.what != "values" or file.mask.volume:
            return set()
        if sorted(file.pixels) != [*range(len(file.pixels))]:
            return set()
    return {len(file.pixels) - 1 for file in files}


def _are_ids(files: Sequence[FileContent]) -> bool:
    """Whether all files have consecutive values of more than 8 bits, as ids of objects."""
    is_wide = all(file.mask.values.dtype.itemsize > 1 for file in files)
    return is_wide and max(_ends(files), default=0) >= _LEAST_IDS


def _in_between(values: Counter[int], fits: Sequence[LabelSetMatch]) -> str:
    """Rare values scattered between frequent ones, as interpolation produces at edges."""
    known = any(not fit.undeclared for fit in fits)
    if known or not 5 <= len(values) <= _MANY_VALUES or max(values) <= 2 * len(values):
        return ""
    total = sum(values.values())
    rare = sorted(v for v, n in values.items() if n < 0.02 * total)
    if 2 * len(rare) < len(values):
        return ""
    shown = ", ".join(map(str, rare[:6]))
    return f"{len(rare)} of {len(values)} values are rare and scattered ({shown}, …)"


def _frequencies(items: Any) -> dict[str, int]:
    """Counts of the items, the most frequent first."""
    return dict(Counter(items).most_common())
