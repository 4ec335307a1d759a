"""Looking at every mask of a folder."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou.inspection.findings import FileLook, Fit, Inspection
from segiou.inspection.suspicions import suspicions, tallied
from segiou.labels import LabelSet, labelset_names, load_labels
from segiou.readers import MaskError, open_mask
from segiou.readers.colors import count_colors
from segiou.readers.masks import from_bytes
from segiou.runs import Problem
from segiou.sources import LocalFolder, Source, open_source

__all__ = ["inspect_folder"]


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
    from segiou.scoring import DataError

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
