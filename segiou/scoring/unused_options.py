"""Options of reading and classes that no file or pixel uses, so that none is silently ignored."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from segiou.masks.colors import PALETTE_SUFFIXES
from segiou.masks.finding import ARRAY_SUFFIXES, MASK_SUFFIXES, RASTER_SUFFIXES, split_ending
from segiou.masks.raw_mask import VOLUME_SUFFIXES
from segiou.masks.sources.adjusted import place_of
from segiou.masks.sources.folders import Source
from segiou.masks.sources.pairing import Pair
from segiou.runs.run import Run
from segiou.scoring.job import Job
from segiou.scoring.trials import palette_files

#: The extensions of files that use an option, and these files in words.
_USED_BY = {
    "array_key": ((".npz", *ARRAY_SUFFIXES), "an .npz, .mat or .h5 file"),
    "array_axes": (
        (".npy", ".npz", ".tif", ".tiff", *ARRAY_SUFFIXES),
        "an array (.npy, .npz, TIFF, .mat or .h5)",
    ),
    "read_palette": (PALETTE_SUFFIXES, "a palette image"),
    "geometry": (
        (*VOLUME_SUFFIXES, ".tif", ".tiff", *RASTER_SUFFIXES),
        "a volume or a raster with a geometry",
    ),
}
_KNOWN = MASK_SUFFIXES | ARRAY_SUFFIXES | RASTER_SUFFIXES | {*VOLUME_SUFFIXES}
#: Files of a place that are read.
_Side = tuple[Source, Sequence[str]]


def unused_options(job: Job, pairs: Sequence[Pair]) -> Iterator[str]:
    """A sentence for each option of a job that none of its pairs uses."""
    implied = {name: value for measure in job.measures for name, value in measure.reading.items()}
    chosen = job.reading.chosen
    given = {name: value for name, value in chosen.items() if implied.get(name) != value}
    paths = [pair.truth for pair in pairs], [pair.pred for pair in pairs]
    yield from unused_texts(given, [*zip(job.sources, paths, strict=True)])
    if job.spacing is not None and len(job.spacing) == 2 and not job.measures:
        text = f"spacing={job.spacing!r} (--spacing {','.join(f'{x:g}' for x in job.spacing)})"
        yield f"{text} has no effect, because none of the chosen scores uses the pixel size"


def unused_classes(
    run: Run, exclude: Iterable[int], ignored: Collection[int] = ()
) -> Iterator[str]:
    """A sentence for ignored values and for each excluded class that no pixel of a run has."""
    if not len(run):
        return
    if ignored and not run._tally.cells.ignored:
        yield unused_values(ignored, "truth mask")
    seen = run._tally.counts.truth + run._tally.counts.pred > 0
    for name in (run.class_names[c] for c in exclude if not seen[c]):
        where = "no pixel of truth or prediction belongs to it"
        yield f"exclude={name!r} (--exclude {shlex.quote(name)}) has no effect, because {where}"


def unused_values(ignored: Collection[int], masks: str) -> str:
    """The sentence for ignored values that none of some masks has."""
    shown = ",".join(map(str, sorted(ignored)))
    values = f"[{shown.replace(',', ', ')}]" if len(ignored) > 1 else shown
    them = "one of these values" if len(ignored) > 1 else "this value"
    return f"ignore={values} (--ignore {shown}) has no effect, because no {masks} has {them}"


def unused_texts(chosen: Mapping[str, Any], sides: Sequence[_Side]) -> Iterator[str]:
    """A sentence for each chosen option of reading that none of the files uses."""
    endings = {split_ending(path)[1].lower() for _, paths in sides for path in paths}
    if not endings or not endings <= _KNOWN:  # those of plug-ins may be volumes
        return
    for name, (used_by, what) in _USED_BY.items():
        if chosen.get(name, "indices") == "indices":  # as palettes are read anyway
            continue
        if endings.isdisjoint(used_by) or (name == "read_palette" and not _have_palettes(sides)):
            text = f"{name}={chosen[name]!r} (--{name.replace('_', '-')} {chosen[name]})"
            yield f"{text} has no effect, because none of the files is {what}"


def _have_palettes(sides: Sequence[_Side]) -> bool:
    """Whether one of some files has a palette; also if none could be read."""
    files = chain(*(palette_files(place_of(source), paths) for source, paths in sides))
    known = [bool(mask.palette) for _, mask in files]
    return not known or any(known)
