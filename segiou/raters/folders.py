"""Masks of several raters, in folders or arrays, read case by case as votes."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from io import BytesIO
from itertools import combinations
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from segiou._support.arguments import (
    check_callable,
    check_choice,
    check_kind,
    level_of_caller,
    names_options,
)
from segiou._support.files import Problem
from segiou._support.output_folder import OutputFolder
from segiou._support.text import listed
from segiou.counting.arrays import as_label_array
from segiou.counting.encoding import Encoding, UndeclaredValuesError
from segiou.counting.id_pairs import count_ids
from segiou.inference.units import Groups, groups_of
from segiou.labels.class_options import ClassOptions, Labels
from segiou.masks.colors import ReadPalette
from segiou.masks.finding import split_ending
from segiou.masks.formats.slicer import assign_values, joined, values_of
from segiou.masks.formats.volumes import geometry_difference, nifti_bytes, reorient
from segiou.masks.raw_mask import RawMask, image_shape
from segiou.masks.read import from_bytes, to_labels
from segiou.masks.reading import Reading
from segiou.masks.sources.folders import Source
from segiou.masks.sources.one_file import check_different
from segiou.masks.sources.opening import open_source, read_by
from segiou.masks.sources.pairing import pair_folders
from segiou.raters.result import RaterAgreement
from segiou.raters.scores import rater_agreement
from segiou.raters.votes import UNMARKED, Votes, consensus
from segiou.scoring.advice import unused_texts, unused_values
from segiou.scoring.array_axes import check_is_volume
from segiou.scoring.file_pairs import check_palettes, files_of
from segiou.scoring.problems import DataError, UndeclaredError, or_problem, undeclared_problem
from segiou.scoring.segment_classes import labels_of, segments_in

#: One rater's masks: a folder, or arrays by case.
Masks = str | Path | Mapping[str, Any]


class RaterCase(NamedTuple):
    """One case of all raters.

    Attributes
    ----------
    id : str
        Name of the case.
    masks : tuple of (ndarray of int64 or None)
        Class indices, -1 if unmarked; None if the rater lacks the case.
    votes : Votes
        Pixels by vote pattern.
    pattern : ndarray of int64
        Pattern of each pixel.
    volume : object
        Geometry of the first rater's mask, or None.
    classes : int
        Number of classes.
    """

    id: str
    masks: tuple[NDArray[np.int64] | None, ...]
    votes: Votes
    pattern: NDArray[np.int64]
    volume: Any
    classes: int


@names_options
def compare_raters(
    raters: Mapping[str, Masks],
    *,
    labels: Labels | None = None,
    model: Masks | None = None,
    model_name: str = "model",
    ignore: int | str | Iterable[int | str] = (),
    groups: Groups | None = None,
    level: float = 0.95,
    array_axes: Literal["xyz", "zyx", "nyx"] | None = None,
    read_palette: ReadPalette | None = None,
    on_case: Callable[[RaterCase], object] | None = None,
) -> RaterAgreement:
    """Score the agreement of several raters, and of a model with them.

    Parameters
    ----------
    raters : mapping of str to path or mapping
        The masks of each expert by name: a folder, or arrays by case. Cases that a rater
        lacks are excluded from this rater's pairs and listed in the result.
    labels
        See :class:`segiou.ConfusionMatrix`. The segments of 3D Slicer's files name their
        classes, so they need no ``labels``.
    model : path or mapping, optional
        The masks of a model for the same cases.
    model_name : str
        Name of the model.
    ignore : int, str or sequence
        Values of pixels that a rater did not mark. Such a pixel is excluded from
        this rater's pairs only.
    groups : sequence, mapping, str or callable, optional
        Group of each case, such as its patient; see :meth:`segiou.Run.intervals`.
    level : float
        Level of the intervals.
    array_axes : {"xyz", "zyx", "nyx"}, optional
        Whether arrays of three axes in ``.npy`` and ``.npz`` files are volumes (``"zyx"``
        or ``"xyz"``) or N images (``"nyx"``); required if there are any.
    read_palette : {"indices", "colors"}, optional
        Reading of palette images, as in :func:`segiou.score_folder`.
    on_case : callable, optional
        Called with each case once it is read, in the order of the names.

    Returns
    -------
    RaterAgreement

    Raises
    ------
    segiou.DataError
        If masks cannot be read, or differ in size or geometry; it lists all of them.
    ValueError
        If there are fewer than two raters, or no case of two raters.

    Examples
    --------
    >>> anna = {"case1": np.array([[0, 1, 1]]), "case2": np.array([[1, 0, 0]])}
    >>> ben = {"case1": np.array([[0, 0, 1]]), "case2": np.array([[1, 0, 0]])}
    >>> found = compare_raters({"anna": anna, "ben": ben}, labels=["no", "yes"])
    >>> found.matrix("dice", "yes")[0].tolist(), round(found.agreement.value, 4)
    ([1.0, 0.8], 0.8333)
    """
    check_kind("raters", raters, Mapping, "a mapping of names to folders or arrays by case")
    check_kind("model_name", model_name, str, "text")
    if on_case is not None:
        check_callable("on_case", on_case, "a function of a case")
    everyone = {**raters, **({} if model is None else {model_name: model})}
    for name, masks in everyone.items():
        if name == "":
            msg = "a rater or the model has an empty name; name it, as in NAME=FOLDER"
            raise ValueError(msg)
        wanted = "a folder, or a mapping of cases to arrays such as {'case 1': mask}"
        check_kind(f"the masks of {name!r}", masks, (str, Path, Mapping), wanted)
    options = ClassOptions.of(labels_of(labels, raters.values()), ignore=ignore)
    reading = Reading(array_axes=array_axes, read_palette=read_palette)
    if model is not None and model_name in raters:
        fix = "pass another model_name (--model NAME=DIR)"
        msg = f"the model and a rater are both named {model_name!r}; {fix}"
        raise ValueError(msg)
    votes, ids, unit = [], [], "pixels"
    for case in rater_cases(everyone, options, reading):
        if on_case is not None:
            on_case(case)
        votes.append(case.votes)
        ids.append(case.id)
        unit = unit if case.volume is None else "voxels"
    ignored = {*options.ignore} - {*options.labels.ignore}
    if ignored and all((case.patterns[:, case.has_case] != UNMARKED).all() for case in votes):
        text = unused_values(ignored, "mask")
        warnings.warn(text, UserWarning, stacklevel=level_of_caller())
    agreement = rater_agreement(
        votes,
        ids,
        [*raters],
        options.labels.class_names,
        model="" if model is None else model_name,
        groups=groups_of(ids, groups),
        level=level,
    )
    return replace(agreement, _pixel_unit=unit)


def rater_cases(
    everyone: Mapping[str, Masks], options: ClassOptions, reading: Reading
) -> Iterator[RaterCase]:
    """Read the cases of all raters in the order of their names; DataError with every problem."""
    # One value per name of a segment, that of the class or of the first rater.
    segments = joined(segments_in(masks).items() for masks in everyone.values())
    wanted = segments | values_of(options.labels)
    sides = [_Side.of(name, masks, options, reading, wanted) for name, masks in everyone.items()]
    problems: list[Problem] = []
    matched = _matched(sides)
    _check_files(sides, [*matched.values()])
    in_files = [
        (side.source, [path for row in matched.values() if (path := row[i]) is not None])
        for i, side in enumerate(sides)
        if side.source is not None
    ]
    if reading.read_palette is None:
        check_palettes(in_files, options.labels)
    for text in unused_texts(reading.chosen, in_files):
        warnings.warn(text, UserWarning, stacklevel=level_of_caller())
    for number, name in enumerate(everyone):
        rows = [row for row in matched.values() if row[number] is not None]
        if len(sides) > 1 and not any(sum(p is not None for p in row) > 1 for row in rows):
            known = listed([id for id, row in matched.items() if row[number] is None], 3)
            fix = f"; rename its files, as in {known}" if known else ""
            msg = f"{name} has no case of another rater{fix}"
            raise ValueError(msg)
    for id, paths in matched.items():
        read = [_read(side, path, problems) for side, path in zip(sides, paths, strict=True)]
        case = None if problems else _case(id, read, [str(p) for p in paths], options, problems)
        if case is not None:
            yield case
    if problems:
        raise DataError(problems)


class _Side(NamedTuple):
    """The masks of one rater: names to paths, and how a path is read."""

    files: Mapping[str, str]
    open: Callable[[str], tuple[NDArray[Any], Any]]
    options: ClassOptions
    source: Source | None = None

    @classmethod
    def of(
        cls,
        rater: str,
        masks: Masks,
        options: ClassOptions,
        reading: Reading,
        segments: Mapping[str, int],
    ) -> _Side:
        if isinstance(masks, Mapping):
            files = {str(name): f"{rater}: {name}" for name in masks}
            named = zip(files.values(), masks.values(), strict=True)
            arrays = {path: np.atleast_1d(as_label_array(mask, path)) for path, mask in named}
            return cls(files, lambda path: (arrays[path], None), options)
        source = read_by(reading, open_source(masks))
        read = partial(_decoded, source, options, reading, segments)
        return cls(files_of(source), read, options, source)


def _check_files(sides: Sequence[_Side], rows: Sequence[Sequence[str | None]]) -> None:
    """DataError if two raters have one file; arrays have none."""
    in_files = [i for i, side in enumerate(sides) if side.source is not None]
    sources = [source for side in sides if (source := side.source) is not None]
    try:
        check_different(sources, [[row[i] for i in in_files] for row in rows])
    except ValueError as error:
        raise DataError([Problem("raters", str(error))]) from error


def _decoded(
    source: Source,
    options: ClassOptions,
    reading: Reading,
    segments: Mapping[str, int],
    path: str,
) -> tuple[NDArray[Any], Any]:
    data, _ = source.read(path)
    raw: RawMask = from_bytes(data, path)
    if not (reading.array_axes or raw.volume or raw.spacing) and not raw.is_color:
        raw = raw._replace(values=raw.values.reshape(image_shape(raw.values.shape)))
        check_is_volume(tuple(raw.values.shape), path)
    raw = assign_values(raw, segments, path)
    return np.asarray(to_labels(raw, path, options.labels, pages=True)), raw.volume


def _matched(sides: Sequence[_Side]) -> dict[str, list[str | None]]:
    """The path of each case for each rater, by id, in any order of the raters.

    The names of every two raters are matched as those of folders, so a case that one rater lacks
    is found in the others.
    """
    # Suffixes are found in a canonical order of the folders, and the best matches come first.
    order = sorted(range(len(sides)), key=lambda number: sorted(sides[number].files))
    pairings = [
        (a, b, pair_folders(sides[a].files, sides[b].files)) for a, b in combinations(order, 2)
    ]
    cases = _Cases(sides)
    for a, b, pairing in sorted(pairings, key=lambda item: -len(item[2].pairs)):
        for pair in pairing.pairs:
            cases.join((a, pair.truth), (b, pair.pred), pair.id)
    return cases.paths_by_id()


class _Cases:
    """The paths of all raters, joined into cases of at most one path per rater."""

    def __init__(self, sides: Sequence[_Side]) -> None:
        self.number = len(sides)
        self.rows: dict[tuple[int, str], dict[int, str]] = {}
        self.ids: dict[tuple[int, str], list[str]] = {}
        for number, side in enumerate(sides):
            for name, path in side.files.items():
                self.rows[number, path] = {number: path}
                self.ids[number, path] = [split_ending(name)[0]]

    def join(self, a: tuple[int, str], b: tuple[int, str], id: str) -> None:
        """Join the cases of two paths, unless a rater would have two paths in one."""
        first, second = self.rows[a], self.rows[b]
        if first is not second and not first.keys() & second.keys():
            first |= second
            self.rows.update(dict.fromkeys(second.items(), first))
        if self.rows[a] is self.rows[b]:
            self.ids[a].append(id)
            self.ids[b].append(id)

    def paths_by_id(self) -> dict[str, list[str | None]]:
        """The paths by id, which is the shortest name, or a path if that name is taken."""
        rows: list[tuple[str, str, dict[int, str]]] = []
        for row in {id(row): row for row in self.rows.values()}.values():
            names = [name for key in row.items() for name in self.ids[key]]
            rows.append((min(names, key=lambda name: (len(name), name)), min(row.values()), row))
        cases: dict[str, list[str | None]] = {}
        for name, path, row in sorted(rows, key=lambda item: (-len(item[2]), *item[:2])):
            paths = [row.get(number) for number in range(self.number)]
            cases[path if name in cases else name] = paths
        return dict(sorted(cases.items()))


def _read(side: _Side, path: str | None, problems: list[Problem]) -> Any:
    """Class indices of a mask with its geometry; None for a missing or unreadable one."""
    if path is None:
        return None
    result = or_problem(path, _class_indices, side, path)
    if isinstance(result, Problem):
        problems.append(result)
        return None
    return result


def _class_indices(side: _Side, path: str) -> tuple[NDArray[np.int64], Any]:
    """Class indices of a mask, and its geometry."""
    values, volume = side.open(path)
    indices = Encoding.of_classes(side.options).truth.codes_of(values).astype(np.int64)
    number = side.options.num_classes
    if (indices > number).any():
        undeclared = UndeclaredValuesError("truth", count_ids(values[indices > number]))
        unit = "pixels" if volume is None else "voxels"
        raise UndeclaredError(undeclared_problem(path, undeclared, side.options, unit))
    return np.where(indices == number, UNMARKED, indices), volume


def _case(
    id: str,
    read: Sequence[Any],
    paths: Sequence[str],
    options: ClassOptions,
    problems: list[Problem],
) -> RaterCase | None:
    """The case, unless its masks differ in size or geometry."""
    marked = [(mask, path) for mask, path in zip(read, paths, strict=True) if mask is not None]
    (first, volume), origin = marked[0]
    turned: dict[str, NDArray[Any]] = {}
    for (mask, other), path in marked[1:]:
        difference = None
        if volume is not None and other is not None:
            other = reorient(replace(other, values=mask), volume)
            mask = turned[path] = np.asarray(other.values, np.int64)
            difference = geometry_difference(replace(volume, values=first), other)
        if mask.shape != first.shape:
            difference = f"shape {mask.shape}, expected {first.shape}"
        if difference:
            fix = "all raters must mark the same grid"
            problems.append(Problem(path, f"has {difference}; {fix} [compared with: {origin}]"))
            return None
    masks = tuple(
        None if pair is None else turned.get(path, pair[0])
        for pair, path in zip(read, paths, strict=True)
    )
    votes, pattern = Votes.of(masks)
    return RaterCase(id, masks, votes, pattern, volume, classes=options.num_classes)


class ConsensusWriter:
    """Writes the consensus of the experts of each case as a mask of class indices.

    Undecided pixels are 255, or 65535 in all masks of more than 255 classes.

    Parameters
    ----------
    folder : path
        Where masks are written, as PNG; volumes as NIfTI with the geometry of the first rater, or
        as ``.npy`` without one.
    experts : int
        Number of experts; later raters are models.
    rule : {"majority", "staple"}
        The class with most votes; or the most probable class by STAPLE, one class at a time.
    overwrite : bool
        Whether to replace files that segiou did not write there.
    """

    def __init__(
        self,
        folder: str | Path,
        experts: int,
        rule: str = "majority",
        *,
        overwrite: bool = False,
    ) -> None:
        check_choice("rule", rule, ("majority", "staple"))
        self._out = OutputFolder(folder, overwrite=overwrite)
        self.experts: int = experts
        self.rule: str = rule

    def write(self, case: RaterCase) -> None:
        """Write the mask of a case; FileExistsError if a file is in its place."""
        from PIL import Image

        votes = case.votes.expert_votes(self.experts)
        chosen = consensus(votes, self.rule)[case.pattern]
        void = 255 if case.classes <= 255 else 65535
        mask = np.where(chosen < 0, void, chosen).astype(np.uint8 if void == 255 else np.uint16)
        data, ending = BytesIO(), ".png" if mask.ndim == 2 else ".npy"
        if case.volume is not None:
            ending = ".nii.gz"
            data.write(nifti_bytes(mask, case.volume))
        elif mask.ndim == 2:
            Image.fromarray(mask).save(data, "PNG")
        else:
            np.save(data, mask)
        self._out.write(f"{case.id}{ending}", data.getvalue())
