"""What is in a folder of masks, and what looks wrong with it."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou._support.files import Problem, problem_lines
from segiou.labels.label_files import labelset_names, load_labels
from segiou.labels.label_set import LabelSet
from segiou.masks.read import MaskError, count_colors, from_bytes, open_mask
from segiou.masks.sources import LocalFolder, Source, open_source

__all__ = ["FileLook", "Fit", "Inspection", "inspect_folder", "suspicions", "tallied"]

_MANY_VALUES = 64


def suspicions(files: Sequence[FileLook], values: Counter[int], fits: Sequence[Fit]) -> list[str]:
    """Say what looks wrong about the files, one sentence each."""
    found = []
    if set(values) == {0, 255}:
        found.append("values are 0 and 255 only: a binary mask; --labels binary reads 255 as 1")
    lossy = [file for file in files if file.lossy]
    if lossy:
        found.append(
            f"{len(lossy)} of {len(files)} files are {lossy[0].kind}, which does not keep values "
            f"exactly, {lossy[0].path} for one"
        )
    many = [f for f in files if len(f.values) > _MANY_VALUES or len(f.colors) > 4 * _MANY_VALUES]
    if many:
        worst = max(many, key=lambda f: len(f.values) + len(f.colors))
        kinds = len(worst.values) + len(worst.colors)
        found.append(
            f"{len(many)} of {len(files)} files have very many values ({worst.path}: {kinds}): "
            "resized with interpolation, saved with loss, or instance ids instead of classes"
        )
    if between := _in_between(values, fits):
        found.append(f"{between}: perhaps edges were interpolated")
    if len({f.mode for f in files}) > 1:
        found.append("files have different modes: " + ", ".join(tallied(f.mode for f in files)))
    if len({f.shape for f in files}) > 1:
        found.append(f"files have {len({f.shape for f in files})} different sizes")
    if any(f.grey_as_color for f in files):
        count = sum(f.grey_as_color for f in files)
        hold = "file holds" if count == 1 else "files hold"
        found.append(f"{count} {hold} grey in three equal channels; save one of them")
    flat = sum(len(f.values) + len(f.colors) == 1 for f in files)
    if flat and len(files) > 1:
        found.append(f"{flat} of {len(files)} files have one value throughout")
    return found


def _in_between(values: Counter[int], fits: Sequence[Fit]) -> str:
    """Rare values scattered between frequent ones, as interpolated edges leave them."""
    known = any(not fit.undeclared for fit in fits)
    if known or not 5 <= len(values) <= _MANY_VALUES or max(values) <= 2 * len(values):
        return ""
    total = sum(values.values())
    rare = sorted(v for v, n in values.items() if n < 0.02 * total)
    if 2 * len(rare) < len(values):
        return ""
    shown = ", ".join(map(str, rare[:6]))
    return f"{len(rare)} of {len(values)} values are rare and scattered ({shown}, …)"


def tallied(items: Any) -> dict[str, int]:
    """How often each occurs, the most frequent first."""
    return dict(Counter(items).most_common())


@dataclass(frozen=True, slots=True)
class Fit:
    """How well a label set describes the masks.

    Attributes
    ----------
    name : str
    undeclared : int
        Pixels whose value or colour the set does not declare.
    classes_seen, num_classes : int
    meanings : mapping of int or str to str
        Values and colours (``"#rrggbb"``), and what they mean in the set.
    """

    name: str
    undeclared: int
    classes_seen: int
    num_classes: int
    meanings: Mapping[int | str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class FileLook:
    """What one file holds."""

    path: str
    mode: str
    kind: str
    dtype: str
    shape: tuple[int, ...]
    values: dict[int, int]
    colors: dict[str, int]
    lossy: bool
    grey_as_color: bool


@dataclass(frozen=True)
class Inspection:
    """What was found in a folder of masks.

    Attributes
    ----------
    folder : str
    files : int
        Files read.
    modes, kinds, dtypes, sizes : mapping of str to int
        How many files have each.
    values : mapping of int to int
        Pixels of each value.
    value_files : mapping of int to int
        Files in which each value occurs.
    colors : mapping of str to int
        Pixels of each colour, ``"#rrggbb"``.
    fits : tuple of Fit
        Label sets, the best first.
    suspicions : tuple of str
        What looks wrong.
    problems : tuple of Problem
        Files that cannot be read as masks.
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
    fits: tuple[Fit, ...] = ()
    suspicions: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = field(default=())

    @property
    def fitting(self) -> tuple[Fit, ...]:
        """Label sets that declare every value; which of them is meant, no mask can tell."""
        return tuple(fit for fit in self.fits if not fit.undeclared)

    @property
    def problem_lines(self) -> list[str]:
        """The problems in words, equal ones together."""
        return problem_lines(self.problems)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data."""
        pixels = sum(self.values.values()) or 1
        return {
            "folder": self.folder,
            "files": self.files,
            "modes": self.modes,
            "kinds": self.kinds,
            "dtypes": self.dtypes,
            "sizes": self.sizes,
            "values": [
                {"value": v, "pixels": n, "share": n / pixels, "files": self.value_files[v]}
                for v, n in self.values.items()
            ],
            "colors": [{"color": color, "pixels": n} for color, n in self.colors.items()],
            "fits": [
                {
                    "labels": fit.name,
                    "undeclared": fit.undeclared,
                    "classes_seen": fit.classes_seen,
                    "num_classes": fit.num_classes,
                }
                for fit in self.fits
            ],
            "suspicions": list(self.suspicions),
            "problems": [{"file": p.where, "problem": p.text} for p in self.problems],
        }

    def to_text(self, *, width: int = 100, color: bool = False) -> str:
        """The findings for a terminal."""
        from segiou.report.findings_text import render_inspection

        return render_inspection(self, width, color=color)

    def __str__(self) -> str:
        return self.to_text()


def inspect_folder(
    folder: str | Path,
    *,
    labels: LabelSet | None = None,
    workers: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Inspection:
    """Look at every mask of a folder.

    Parameters
    ----------
    folder : str or path
        A folder, or one file; an archive, or an address, as for
        :func:`segiou.score_folder`.
    labels : LabelSet, optional
        The only set to compare with; all presets by default.
    workers : int, optional
        Threads.
    progress : callable, optional
        Called with files done and total.

    Raises
    ------
    DataError
        If there is no such folder or it holds no masks.
    """
    from segiou.scoring.pairings import DataError

    source = open_source(folder)
    single = isinstance(source, LocalFolder) and Path(source.root).is_file()
    try:
        paths = [source.root] if single else list(source.find().values())
    except ValueError as error:
        text = str(error).removeprefix(f"{source.root}: ")
        raise DataError([Problem(source.root, text)]) from error
    files: list[FileLook] = []
    problems: list[Problem] = []
    with ThreadPoolExecutor(workers or os.cpu_count() or 1) as pool:
        for done, result in enumerate(pool.map(partial(_look, source), paths), 1):
            (problems if isinstance(result, Problem) else files).append(result)  # type: ignore[arg-type]
            if progress is not None:
                progress(done, len(paths))
    return _summary(str(folder), files, problems, labels)


def _look(source: Source, path: str) -> FileLook | Problem:
    try:
        # A file of this machine need not fit into memory.
        local = isinstance(source, LocalFolder)
        raw = open_mask(path) if local else from_bytes(source.read(path)[0], path)
    except MaskError as error:
        return Problem(error.path, error.problem)
    values, colors, grey = {}, {}, False
    if raw.is_color:
        colors = count_colors(raw.values)
        grey = all(c[1:3] == c[3:5] == c[5:7] for c in colors)
    else:
        values = _count_values(raw.values)
    shape = raw.values.shape[:2] if raw.is_color else raw.values.shape
    dtype = str(raw.values.dtype)
    return FileLook(path, raw.mode, raw.kind, dtype, shape, values, colors, raw.lossy, grey)


def _count_values(values: NDArray[Any]) -> dict[int, int]:
    if values.dtype == np.uint8:
        counts = np.bincount(values.ravel(), minlength=256)
        return {int(v): int(counts[v]) for v in np.flatnonzero(counts)}
    found, counts = np.unique(values, return_counts=True)
    return dict(zip((int(v) for v in found), counts.tolist(), strict=True))


def _summary(
    folder: str, files: Sequence[FileLook], problems: Sequence[Problem], labels: LabelSet | None
) -> Inspection:
    values: Counter[int] = Counter()
    value_files: Counter[int] = Counter()
    colors: Counter[str] = Counter()
    for file in files:
        values.update(file.values)
        value_files.update(file.values.keys())
        colors.update(file.colors)
    candidates = [labels] if labels else [load_labels(name) for name in labelset_names()]
    fits = _fits(values, colors, candidates)
    return Inspection(
        folder=folder,
        files=len(files),
        modes=tallied(file.mode for file in files),
        kinds=tallied(file.kind for file in files),
        dtypes=tallied(file.dtype for file in files),
        sizes=tallied(_size(file.shape) for file in files),
        values=dict(sorted(values.items())),
        value_files=dict(sorted(value_files.items())),
        colors=dict(colors.most_common()),
        fits=fits,
        suspicions=tuple(suspicions(files, values, fits)),
        problems=tuple(problems),
    )


def _size(shape: tuple[int, ...]) -> str:
    return f"{shape[1]}x{shape[0]}" if len(shape) == 2 else "x".join(map(str, shape))


def _fits(
    values: Counter[int], colors: Counter[str], candidates: Sequence[LabelSet]
) -> tuple[Fit, ...]:
    fits = [_fit(labels, values, colors) for labels in candidates]
    fits = [fit for fit in fits if fit.classes_seen]
    # A set that declares everything comes first; among those, the one whose
    # classes are used most, then the smallest.
    fits.sort(key=lambda f: (f.undeclared, -f.classes_seen / f.num_classes, f.num_classes))
    return tuple(fits)


def _fit(labels: LabelSet, values: Counter[int], colors: Counter[str]) -> Fit:
    owner: dict[int | str, str] = {v: c.name for c in labels.classes for v in c.values}
    owner |= {_hex(x): c.name for c in labels.classes for x in c.colors}
    ignored: set[int | str] = {*labels.ignore, *map(_hex, labels.ignore_colors)}
    pixels = [*values.items(), *colors.items()]
    undeclared = sum(n for v, n in pixels if v not in owner and v not in ignored)
    seen = {owner[v] for v, _ in pixels if v in owner}
    meanings: dict[int | str, str] = {**owner, **dict.fromkeys(ignored, "ignored")}
    return Fit(labels.name, undeclared, len(seen), labels.num_classes, meanings)


def _hex(color: tuple[int, int, int]) -> str:
    return "#{:02x}{:02x}{:02x}".format(*color)
