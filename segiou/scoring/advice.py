"""Advice after scoring: other label sets, annotation files, regions, and options without effect."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

from segiou._support.files import Problem
from segiou._support.text import capital, plural, see
from segiou.labels.loading import labelset_names
from segiou.masks.colors import NO_COLORS, PALETTE_SUFFIXES
from segiou.masks.finding import ARRAY_SUFFIXES, MASK_SUFFIXES, RASTER_SUFFIXES, split_ending
from segiou.masks.formats.numpy_files import array_names
from segiou.masks.raw_mask import SOFT_EDGES, VOLUME_SUFFIXES, MaskError, RawMask
from segiou.masks.read import from_bytes
from segiou.masks.sources.adjusted import AdjustedSource, place_of
from segiou.masks.sources.class_files import binary_area
from segiou.masks.sources.folders import LocalFolder, Source
from segiou.masks.sources.opening import open_source
from segiou.masks.sources.pairing import Pair, Pairing
from segiou.metrics.protocols import Protocol, load_protocol
from segiou.runs.run import Run
from segiou.scoring.file_pairs import only_pair_text
from segiou.scoring.job import Job
from segiou.scoring.overlaps import least_mean
from segiou.scoring.pair import PairScorer
from segiou.scoring.problems import NOT_IGNORED, UNDECLARED, may_be_ids
from segiou.scoring.trials import SAMPLE, mean_lines, palette_files, sampled, scored

#: Beginning of the problem of a photograph in place of a mask.
_PHOTOGRAPH = "is a photograph"
#: Extensions of annotation files, and the number of files that are tried.
_ENDINGS, _TRIED = (".json", ".xml", ".csv"), 8
#: Names of regions of interest.
_OF_REGIONS = re.compile("mask|valid|roi|fov|region|visible|observed", re.IGNORECASE)
#: Pairs that are read to find polygons.
_DRAWN = 20
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


def advice_of(
    job: Job, pairing: Pairing, pairs: Sequence[Pair], run: Run, scorer: PairScorer
) -> Iterator[str]:
    """Sentences about options that may fit a scored job better, or had no effect."""
    yield better_labels(job, pairs, run, scorer)
    yield only_pair_text(pairing, job.pair_by)
    yield job.unmatched_text()
    yield regions_text(scorer, pairs)
    yield polygons_text(scorer, pairs)
    yield from unused_options(job, pairs)
    if job.shard is None:  # other shards may have these values
        options, nodata = job.options, scorer.nodata
        yield from unused_classes(
            run, options.exclude, {*options.ignore} - {*options.labels.ignore, nodata}
        )


def better_labels(
    job: Job,
    pairs: Sequence[Pair],
    run: Run,
    scorer: PairScorer,
    problems: Sequence[Problem] = (),
    command: str = "",
) -> str:
    """Suggest label sets if values are undeclared, classes renumbered or most of them absent."""
    labels = job.options.labels
    if text := annotations_text(job, problems):
        return text
    if job.reading.match is not None:
        return ""
    if problems and all(problem.text.startswith(NO_COLORS) for problem in problems):
        from segiou.scoring.label_fits import color_fits_text

        return color_fits_text(scorer, pairs, command)
    undeclared = [problem for problem in problems if problem.text.startswith(UNDECLARED)]
    of_truth = {v for p in undeclared if NOT_IGNORED not in p.text for v in p.values}
    are_most = 2 * len(undeclared) >= len(problems)
    are_ids = len(of_truth) > 1 and may_be_ids(of_truth, job.options)
    if are_most and not (job.reading.class_files or are_ids):
        least = None if problems else least_mean(run)
        if problems or least is not None:
            from segiou.scoring.label_fits import fits_text

            if text := fits_text(scorer, pairs, least, command=command):
                return text
    # A custom set lacks only the values that the problems list.
    if labels.name not in labelset_names() and labels.source:
        return ""
    if problems:
        if len({problem.where for problem in undeclared}) < max(len(run), len(problems) / 2):
            return ""
    elif labels.name not in labelset_names() or (
        int((run._tally.counts.truth > 0).sum()) > 0.75 * labels.num_classes
    ):
        return ""
    from segiou.scoring.label_set_advice import better_label_set

    paths = [pair.truth for pair in pairs]
    predicted = [v for p in undeclared if NOT_IGNORED in p.text for v in p.values]
    better = better_label_set(labels, job.sources[0], paths, predicted, certain=not problems)
    if not problems:
        return better
    as_one = ""
    if {p.where for p in undeclared} & {*paths} and may_be_ids(of_truth, job.options):
        from segiou.scoring.label_fits import ids_text

        as_one = capital(ids_text(scorer, pairs))
    if not better:
        is_soft = any(SOFT_EDGES in problem.text for problem in undeclared)
        return as_one if are_ids and not is_soft else ""
    ignored = sorted({v for p in undeclared if "--ignore" in p.text for v in p.values})
    instead = ",".join(map(str, ignored))
    also = f"\nTo ignore these pixels instead: --ignore {instead}" if ignored else ""
    also += f"\n{as_one}" if as_one else ""
    return f"{better[0].upper()}{better[1:]}{also}"


def annotations_text(job: Job, problems: Sequence[Problem]) -> str:
    """The annotation file of a side with photographs; empty if there is none."""
    photographs = [problem.where for problem in problems if problem.text.startswith(_PHOTOGRAPH)]
    if not photographs or len(photographs) < len(problems):
        return ""
    photograph = Path(photographs[0])
    for source in map(place_of, job.sources):
        if not isinstance(source, LocalFolder) or Path(source.root) not in photograph.parents:
            continue
        files = sorted(path for path in Path(source.root).glob("*") if path.suffix in _ENDINGS)
        for path in files[:_TRIED]:
            source = open_source(path)
            try:
                number = 0 if isinstance(source, LocalFolder) else len(source.find())
            except ValueError:  # another kind of file
                continue
            if number:
                images = plural(number, "image")
                return f"{path} has the segments of {images}; pass it in place of {source.root}"
    return ""


def regions_text(scorer: PairScorer, pairs: Sequence[Pair]) -> str:
    """The options for regions of interest in the truth files; empty if there are none."""
    source = scorer.truth_source
    if not isinstance(source, AdjustedSource) or not source.key or source.roi is not None:
        return ""
    sample, means = sampled(pairs, SAMPLE), []
    for name in _regions_in(source, pairs[0].truth) if pairs else ():
        other = replace(scorer, truth_source=replace(source, roi=name))
        if (run := scored(other, scorer.header.options, sample)) is not None:
            means.append((f"--roi {name}", run.report().mean_iou))
    if not means:
        return ""
    lead = "the truth files have regions, none of which was applied; with the mean IoU inside each:"
    return "\n".join((lead, *mean_lines(means)))


def _regions_in(source: AdjustedSource, path: str) -> Iterator[str]:
    """Names of arrays that are 0 outside a region of the mask in an ``.npz`` file."""
    try:
        data = source.place.read(path)[0]
        if isinstance(data, RawMask) or data[:4] != b"PK\x03\x04":
            return
        shape = source.adjusted(data, path).values.shape
        for name in array_names(data, path):
            if name != source.key and re.fullmatch(r"\w+", name) and _OF_REGIONS.search(name):
                try:
                    region = binary_area(from_bytes(data, path, key=name), path, allow_lossy=False)
                except MaskError:
                    continue
                if region.shape == shape and region.any() and not region.all():
                    yield name
    except MaskError:
        return


def polygons_text(scorer: PairScorer, pairs: Sequence[Pair]) -> str:
    """The rules of the polygons of both sides if they differ; empty otherwise."""
    sources = [place_of(source) for source in (scorer.truth_source, scorer.pred_source)]
    if not all(source.draws for source in sources):
        return ""
    for pair in pairs[:_DRAWN]:
        try:
            raws = [source.read(path)[0] for source, path in zip(sources, pair.sides, strict=True)]
        except MaskError:  # reported when the pair is scored
            continue
        truth, pred = (raw.drawn if isinstance(raw, RawMask) else "" for raw in raws)
        if truth and pred:
            if truth == pred:
                return ""
            return (
                f"polygons of the truth are drawn as {truth} draws them and those of predictions "
                f"as {pred} does, so pixels on their sides differ; export both by one tool. "
                f"{see('formats')}"
            )
    return ""


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
    run: Run,
    exclude: Iterable[int],
    ignored: Collection[int] = (),
    protocol: Protocol | str | None = None,
) -> Iterator[str]:
    """A sentence for ignored values and each excluded class without pixels in a run."""
    if not len(run):
        return
    rule = load_protocol(run.protocol if protocol is None else protocol)
    if ignored and rule.ignored != "exclude" and not run._tally.cells.ignored:
        yield unused_values(ignored, "truth mask")
    # Means of other protocols, and of measures that score empty masks, include absent classes.
    if run.plans or {rule.absent, rule.absent_dice} - {"skip", None}:
        return
    seen = run._tally.counts.truth + run._tally.counts.pred > 0
    for name in (run.class_names[c] for c in exclude if not seen[c]):
        where = "no pixel of truth or prediction belongs to it"
        yield f"exclude={name!r} (--exclude {shlex.quote(name)}) has no effect, because {where}"


def unused_values(ignored: Collection[int], masks: str) -> str:
    """The sentence for ignored values that do not occur in the masks."""
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
            yield f"{_as_given(name, chosen)} has no effect, because none of the files is {what}"
        elif name == "array_key":
            yield from _unused_keys(chosen, sides)


def _as_given(name: str, chosen: Mapping[str, Any]) -> str:
    return f"{name}={chosen[name]!r} (--{name.replace('_', '-')} {chosen[name]})"


def _unused_keys(chosen: Mapping[str, Any], sides: Sequence[_Side]) -> Iterator[str]:
    """A sentence for a name of an array of truth or predictions that have no arrays by name."""
    used_by, what = _USED_BY["array_key"]
    keys = chosen["array_key"].split(",")
    for key, side, (_, paths) in zip(keys, ("truth", "predictions"), sides, strict=False):
        if key and keys[1:] and not any(path.lower().endswith(used_by) for path in paths):
            given = _as_given("array_key", chosen)
            yield f"{key!r} in {given} has no effect, because no file of the {side} is {what}"


def _have_palettes(sides: Sequence[_Side]) -> bool:
    """Whether one of some files has a palette; also if none could be read."""
    files = chain(*(palette_files(place_of(source), paths) for source, paths in sides))
    known = [bool(mask.palette) for _, mask in files]
    return not known or any(known)
