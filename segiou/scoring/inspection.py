"""Inspection of a folder of masks: values, matching label sets, suspicious files."""

from __future__ import annotations

import itertools
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from segiou._support.arguments import check_callable, check_integer, check_kind, names_options
from segiou._support.files import Problem, problem_lines
from segiou._support.numbers import count, percent
from segiou._support.text import Json, listed, plural
from segiou.document.findings import Finding
from segiou.document.parts import GAP, Cell, Column, Line, Part, Table
from segiou.labels.label_set import Color, LabelClass, LabelSet, unnamed
from segiou.labels.loading import presets_with
from segiou.masks.colors import PaletteUse, clash, clash_of_sides, colors_of, contradiction
from segiou.masks.formats.slicer import joined, values_of
from segiou.masks.sources.adjusted import is_one_file
from segiou.masks.sources.class_files import class_layout
from segiou.masks.sources.folders import Source
from segiou.masks.sources.opening import open_source
from segiou.masks.sources.pairing import Pairing
from segiou.scoring.file_pairs import files_of, pair_sources, pairing_problems
from segiou.scoring.file_values import (
    IN_NO_SHAPE,
    FileContent,
    assign_segment_values,
    greys_to_values,
    read_values,
    segments_of,
)
from segiou.scoring.label_set_match import (
    GOOD,
    LISTED,
    LabelSetMatch,
    matches,
    possible_label_sets,
    spaced,
)
from segiou.scoring.pair_options import PairOptions
from segiou.scoring.problems import geometry_text, size_text
from segiou.scoring.segment_classes import classes_by_value
from segiou.scoring.suspicions import OF_IDS, are_ids, frequencies, suspicions
from segiou.scoring.trials import sampled

if TYPE_CHECKING:
    from segiou.masks.raw_mask import Volume

#: Values that conventionally mark unlabelled pixels.
_NO_DATA = {255, 65535, 2**31 - 1, 2**32 - 1}

#: Caution about the values of colours in a proposed label set.
BY_FREQUENCY = (
    "Colours have values in the order of their frequency. If other masks have values instead of "
    "colours, replace these by theirs."
)
#: Maximum number of classes in a proposed label set.
_MOST_PROPOSED = 1024


@dataclass(frozen=True, repr=False)
class Inspection(Finding):
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
    segments : mapping of str to int
        Values by the names of the segments of 3D Slicer's files, which are matched by name.
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
    segments: dict[str, int] = field(default_factory=dict)

    @property
    def fitting(self) -> tuple[LabelSetMatch, ...]:
        """Label sets that declare every value, best match first."""
        return tuple(fit for fit in self.fits if not fit.undeclared)

    @property
    def proposal(self) -> str:
        """Options that declare every value if no preset fits well; else empty."""
        if self.has_ids:
            return OF_IDS
        if self.segments:
            return ""
        if self.colors or not self.values or (self.fitting and self.fitting[0].quality >= GOOD):
            return ""
        if several := spaced(self.values):
            return f"--labels {','.join(map(str, several))}"
        classes, ignored = self._parted_values()
        # Other values with large gaps are object ids, or belong to a set with names.
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
            return self._joined(self.pred).proposed_labels()
        values, ignore = self._parted_values()
        free = (v for v in itertools.count() if v not in self.values)
        hues = Counter(self.palette[v] for v in self.values if v in self.palette)
        unique_colors = {v: (rgb,) for v, rgb in self.palette.items() if hues[rgb] == 1}
        colors = [color for color in self.colors if _rgb(color) not in hues]
        others = len(colors) + len(self.names)
        if not 0 < len(values) + others <= _MOST_PROPOSED:
            contents = f"{len(values)} values and {others} colours or names"
            msg = f"{self.folder}: has {contents}; --propose supports 1 to {_MOST_PROPOSED}"
            raise ValueError(msg)
        named_values = classes_by_value(self.segments) if self.segments else {}
        classes = [
            LabelClass(named_values.get(v, f"value {v}"), (v,), unique_colors.get(v, ()))
            for v in values
        ]
        for color in colors:
            classes.append(LabelClass(unnamed(color), (next(free),), (_rgb(color),)))
        names = sorted(self.names, key=lambda name: name != IN_NO_SHAPE)
        classes += [LabelClass(name, (next(free),)) for name in names]
        ignored: dict[str, Any] = {
            "ignore": tuple(ignore),
            "ignore_colors": tuple(rgb for v in ignore for rgb in unique_colors.get(v, ())),
        }
        notes = BY_FREQUENCY if colors else ""
        return LabelSet("proposed", tuple(classes), **ignored, source=self.folder, notes=notes)

    def _joined(self, pred: Inspection) -> Inspection:
        """Values, colours and names of masks and predictions together."""
        merged: dict[str, Any] = {
            name: {**getattr(self, name), **getattr(pred, name)}
            for name in ("values", "colors", "names", "segments")
        }
        merged["palette"] = {**pred.palette, **self.palette}
        merged["values"] = dict(sorted(merged["values"].items()))
        return replace(self, pred=None, **merged)

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
        data = {
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
        del data["value_files"], data["palette"]
        return data

    def rows(self) -> list[dict[str, Json]]:
        """One row per value, colour and name, with its pixels."""
        data: dict[str, Any] = self.to_dict()
        return [*data["values"], *data["colors"], *data["names"]]

    def _parts(self) -> Iterable[Part]:
        return inspection_parts(self)


@names_options
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
    if labels is not None:
        check_kind("labels", labels, LabelSet, "a LabelSet, such as load_labels('camvid')")
    for name, number in (("workers", workers), ("most", most)):
        if number is not None:
            check_integer(name, number, 1)
    if progress is not None:
        check_callable("progress", progress, "a function of the numbers of files read and of all")
    source = open_source(folder)
    single = is_one_file(source)
    paths = [source.root] if single else list(files_of(source).values())
    if most is not None:
        paths = [*sampled(paths, most)]
    pairing = None if pred is None else pair_sources(source, pred_source := open_source(pred))
    tasks = [(source, path) for path in paths]
    if pairing is not None:
        tasks += [(pred_source, pair.pred) for pair in pairing.pairs]
    read = _read(tasks, workers, progress or (lambda done, total: None))
    segments = joined(segments_of(read))
    of_classes = {name: v for name, v in values_of(labels).items() if name in segments}
    values = joined([of_classes.items(), *segments_of(read)])
    matched = [assign_segment_values(content, values) for content in greys_to_values(read, labels)]
    masks, preds = matched[: len(paths)], matched[len(paths) :]
    inspection = _add_palette(summary_of(str(folder), masks, labels), masks, labels)
    if not single and (layout := class_layout(source.find())):
        text = f"one file per class ({listed(list(layout[1]), 8)}): --class-files '{layout[0]}'"
        inspection = replace(inspection, suspicions=(text, *inspection.suspicions))
    if pairing is None:
        return inspection
    of_pred = _add_palette(summary_of(str(pred), preds, labels), preds, labels)
    declared = labels or LabelSet.from_names([f"value {value}" for value in range(256)])
    if texts := clash_of_sides(_palettes_of(masks), _palettes_of(preds), declared):
        of_pred = replace(of_pred, suspicions=(" ".join(texts), *of_pred.suspicions))
    return replace(
        inspection,
        problems=inspection.problems + of_pred.problems,
        disagreements=_disagreements(pairing, read),
        pairs=len(pairing.pairs),
        pred=replace(of_pred, problems=()),
    )


def _read(
    tasks: Sequence[tuple[Source, str]], workers: int | None, progress: Callable[[int, int], None]
) -> list[FileContent | Problem]:
    """The values of the files, read in threads."""
    read: list[FileContent | Problem] = []
    progress(0, len(tasks))
    with ThreadPoolExecutor(workers or os.cpu_count() or 1) as pool:
        for result in pool.map(read_values, *zip(*tasks, strict=True)):
            read.append(result)
            progress(len(read), len(tasks))
    return read


def _disagreements(pairing: Pairing, read: Sequence[FileContent | Problem]) -> tuple[Problem, ...]:
    """Pairs that cannot be compared pixel by pixel, and unpaired files."""
    files = {file.path: file for file in read if isinstance(file, FileContent)}
    problems = pairing_problems(pairing, PairOptions())[0]
    for pair in pairing.pairs:
        if pair.truth in files and pair.pred in files:
            truth, pred = files[pair.truth], files[pair.pred]
            if truth.mask.volume is not None and pred.mask.volume is not None:
                from segiou.masks.formats.slicer import common_extent
                from segiou.masks.formats.volumes import geometry_difference

                volumes = common_extent(truth.mask.volume, pred.mask.volume)
                if difference := geometry_difference(*volumes):
                    problems.append(Problem(pair.pred, geometry_text(pair.truth, difference)))
            elif truth.shape != pred.shape:
                shapes = truth.shape, pred.shape
                problems.append(Problem(pair.pred, size_text(pair.truth, shapes)))
    return tuple(problems)


def _rgb(color: str) -> Color:
    """The channels of ``"#rrggbb"``."""
    return int(color[1:3], 16), int(color[3:5], 16), int(color[5:7], 16)


def _add_palette(
    summary: Inspection, read: Sequence[FileContent | Problem], labels: LabelSet | None
) -> Inspection:
    """The inspection with the colours on which palettes agree, and what they contradict."""
    if not (files := _palettes_of(read)):
        return summary
    clashes = [clash(files)]
    if labels is None:  # greys are compared with the indices as values
        clashes.append(
            _contradicting(files, LabelSet.from_names([f"value {v}" for v in range(256)]))
        )
    of_sets = [_contradicting(files, label_set) for label_set in _candidate_sets(files, labels)]
    # A palette whose indices are the values of one preset may have the colours of others.
    clashes += of_sets[:1] if all(of_sets) else []
    warned = dict.fromkeys(f"{path} {problem}" for path, problem in filter(None, clashes))
    agreed = set.intersection(*({*colors_of(p, summary.values).items()} for _, p, _ in files))
    return replace(summary, palette=dict(sorted(agreed)), suspicions=(*warned, *summary.suspicions))


def _palettes_of(read: Sequence[FileContent | Problem]) -> list[PaletteUse]:
    contents = (file for file in read if isinstance(file, FileContent) and file.mask.palette)
    return [(file.path, file.mask.palette, [*file.pixels]) for file in contents]


def _contradicting(files: Sequence[PaletteUse], labels: LabelSet) -> tuple[str, str] | None:
    """The first file whose palette contradicts a label set, and the problem."""
    each = ((path, contradiction(palette, used, labels)) for path, palette, used in files)
    return next(((path, problem) for path, problem in each if problem), None)


def _candidate_sets(files: Sequence[PaletteUse], labels: LabelSet | None) -> Iterable[LabelSet]:
    """The label set, or the presets that have every used colour."""
    used = {rgb for _, palette, values in files for rgb in colors_of(palette, values).values()}
    return presets_with(used) if labels is None else [labels]


def summary_of(
    folder: str, read: Sequence[FileContent | Problem], labels: LabelSet | None
) -> Inspection:
    """The contents of files that were read, compared with a label set or with all presets."""
    files = [file for file in read if isinstance(file, FileContent)]
    pixels: dict[str, Counter[Any]] = {what: Counter() for what in ("values", "colors", "names")}
    for file in files:
        pixels[file.what].update(file.pixels)
    candidates = [labels] if labels else possible_label_sets(files)
    segments = joined(segments_of(files))
    if segments and labels is None:
        candidates = []
    fits = matches(candidates, pixels["values"], pixels["colors"])
    mistakes = suspicions(files, pixels["values"], fits)
    if has_ids := labels is None and are_ids(files):
        fits = []
        last = max(pixels["values"])
        mistakes.insert(0, f"the values are 0 to {last} without gaps, probably ids of objects")
    in_files = chain.from_iterable(file.pixels for file in files if file.what == "values")
    return Inspection(
        folder=folder,
        files=len(files),
        values=dict(sorted(pixels["values"].items())),
        value_files=dict(sorted(Counter(in_files).items())),
        colors=dict(pixels["colors"].most_common()),
        names=dict(pixels["names"].most_common()),
        fits=tuple(fits),
        suspicions=tuple(mistakes),
        has_ids=has_ids,
        problems=tuple(problem for problem in read if isinstance(problem, Problem)),
        segments=segments,
        **_formats(files),
    )


def _formats(files: Sequence[FileContent]) -> dict[str, Any]:
    """Numbers of files by mode, kind, data type, size and geometry."""
    masks = [file.mask for file in files]
    volumes = [mask.volume for mask in masks if mask.volume]
    return {
        "modes": frequencies(mask.mode for mask in masks),
        "kinds": frequencies(mask.kind for mask in masks),
        "dtypes": frequencies(mask.values.dtype.name for mask in masks),
        "sizes": frequencies(_size(file.shape) for file in files),
        "spacings": frequencies(map(_spacing, volumes)),
        "orientations": frequencies(volume.orientation for volume in volumes),
    }


def _spacing(volume: Volume) -> str:
    from segiou.masks.formats.volumes import spacing_text

    unit = "mm" if volume.unit == "mm" else "(no unit given)"
    return f"{spacing_text(volume.spacing)} {unit}"


def _size(shape: tuple[int, ...]) -> str:
    return f"{shape[1]}x{shape[0]}" if len(shape) == 2 else "x".join(map(str, shape))


_SHOWN = 40
_OF_VOLUMES = "nnU-Net's dataset.json also works: --labels dataset.json"
_OWN_PROPOSAL = "To write a label set with these {}, use --propose FILE."
_OWN_SET = "To start your own, edit a preset: segiou labelsets NAME > mine.toml"


def inspection_parts(inspection: Inspection) -> Iterator[Part]:
    """Values, sizes and problems of the masks of a folder."""
    facts = _file_facts(inspection)
    width = max(8, *(len(name) + 1 for name, _ in facts), 0)
    yield from (Line(text, lead=f"{name:<{width}}") for name, text in facts)
    yield from [GAP] if inspection.files else []
    yield from _pixel_tables(inspection)
    yield from _fits(inspection)
    if inspection.pred is not None and inspection.pred.files:
        yield from (GAP, Line("Values in the predictions:"), GAP)
        yield from _pixel_tables(replace(inspection.pred, fits=inspection.fits))
    for side, lead in ((inspection, ""), (inspection.pred, " in the predictions")):
        for text in () if side is None else side.suspicions:
            yield Line(f"suspicious{lead}: {text}", "yellow")
    yield from (Line(f"unreadable: {line}", "red") for line in inspection.problem_lines)
    yield from (
        Line(f"mismatch: {line}", "red") for line in problem_lines(inspection.disagreements)
    )


def _pixel_tables(inspection: Inspection) -> Iterator[Table]:
    tables: Any = {
        "value": inspection.values,
        "colour": inspection.colors,
        "name": inspection.names,
    }
    yield from (Table(_pixel_columns(inspection, *item)) for item in tables.items() if item[1])


def _file_facts(inspection: Inspection) -> list[tuple[str, str]]:
    counted = {
        "format": inspection.kinds,
        "mode": inspection.modes,
        "dtype": inspection.dtypes,
        "size": {size.replace("x", " × "): n for size, n in inspection.sizes.items()},
        "spacing": inspection.spacings,
        "orientation": inspection.orientations,
    }
    facts = [(name, _listed(numbers)) for name, numbers in counted.items() if numbers]
    if inspection.pairs:
        compared = "size, spacing, affine and orientation" if inspection.spacings else "size"
        same = f", all with the same {compared}"
        if inspection.disagreements or inspection.problems:
            same = ""
        facts.append(("pairs", f"{inspection.pairs}{same}"))
    return [("files", str(inspection.files)), *facts] if inspection.files else []


def _listed(counted: Mapping[str, int]) -> str:
    shown = [f"{name} ({n})" if len(counted) > 1 else name for name, n in list(counted.items())[:6]]
    return ", ".join(shown) + (f" and {len(counted) - 6} more" if len(counted) > 6 else "")


def _pixel_columns(inspection: Inspection, head: str, pixels: Mapping[Any, int]) -> list[Column]:
    """The most frequent values, colours or names, with shares and class names."""
    kept, total = list(pixels)[:_SHOWN], sum(pixels.values())
    more = len(pixels) - len(kept)

    def column(
        head: str, cells: Iterable[str | Cell], rank: int, rest: str = "", **options: Any
    ) -> Column:
        return Column(head, [*cells, *([rest] if more else [])], rank, **options)

    names = [Cell(f"■ {name}", name) if head == "colour" else str(name) for name in kept]
    unit = _unit(inspection) if head == "value" else "pixels"
    columns = [
        column(head, names, 9, "…"),
        column("share", [percent(pixels[name] / total) for name in kept], 7),
        column(unit, [count(pixels[name]) for name in kept], 4, f"{count(more)} more"),
    ]
    if head == "value":
        columns.append(column("files", [str(inspection.value_files[value]) for value in kept], 5))
    if head == "value" and inspection.segments:
        by_value = {value: name for name, value in inspection.segments.items()}
        names_of = [by_value.get(value, "–") for value in kept]
        columns.append(column("segment", names_of, 8, is_text=True))
    # Class names of the best match, or of the only label set that was passed.
    fit = next(
        iter(inspection.fitting or (inspection.fits if len(inspection.fits) == 1 else ())), None
    )
    if fit is not None and head != "name" and not inspection.segments:
        title = f"{'in' if fit.undeclared else 'fits'} {fit.name}" if fit.is_named else "class"
        meanings = [Cell(fit.meanings.get(name, "–"), "dim") for name in kept]
        columns.append(column(title, meanings, 8, is_text=True))
    return columns


def _unit(inspection: Inspection) -> str:
    return "voxels" if inspection.spacings else "pixels"


def _subject(fit: LabelSetMatch) -> str:
    return f"Label set {fit.name}" if fit.is_named else "The label set"


def _fits(inspection: Inspection) -> Iterator[Line]:
    if inspection.segments:
        yield Line("The segments name the classes, so scoring needs no --labels.")
    if inspection.proposal:
        yield from (Line("The values match:"), Line(inspection.proposal, lead="  "))
    if inspection.fitting and len(inspection.fits) == 1:
        yield Line(f"{_subject(inspection.fits[0])} matches: {inspection.fits[0].occurring}.")
    elif inspection.fitting:
        yield Line("Label sets that cover every value, best match first:")
        yield from (Line(str(fit), lead="  ") for fit in inspection.fitting[:LISTED])
        if others := len(inspection.fitting[LISTED:]):
            yield Line(f"and {others} more with few matching classes.")
        if len(inspection.fitting) > 1:
            means = "The same value means a different class in each set"
            yield from (Line(f"{means}: pick the one your masks use."), Line(_OWN_SET))
    elif inspection.fits:
        closest = inspection.fits[0]
        pixels = plural(closest.undeclared, _unit(inspection).removesuffix("s"))
        if len(inspection.fits) == 1:
            have = "has" if closest.undeclared == 1 else "have"
            lacks = f"{pixels} {have} undeclared values"
            yield Line(f"{_subject(closest)} does not match: {lacks}.")
        else:
            leaves = f"which leaves {pixels} undefined"
            yield Line(f"No label set matches. Closest: {closest.name}, {leaves}.")
        yield Line(_OWN_PROPOSAL.format("values"))
    elif inspection.files and not inspection.has_ids and not inspection.segments:
        yield Line("No preset defines any of these values.")
        yield Line(_OWN_PROPOSAL.format("names" if inspection.names else "values"))
    if inspection.spacings and not inspection.segments:
        yield Line(_OF_VOLUMES)
