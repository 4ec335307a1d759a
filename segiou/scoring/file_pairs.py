"""The files of two places as pairs, and the problems of pairing them."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from segiou._support.files import Problem
from segiou._support.text import composed, listed, plural
from segiou.labels.label_set import LabelSet
from segiou.labels.loading import presets_with
from segiou.masks.colors import (
    PaletteUse,
    clash,
    clash_of_sides,
    colors_of,
    contradiction,
    fix_for,
    used_indices,
)
from segiou.masks.finding import IS_A_FILE, split_ending
from segiou.masks.sources.adjusted import AdjustedSource, is_one_file, place_of
from segiou.masks.sources.class_files import class_layout, folders_of_masks, object_layout
from segiou.masks.sources.folders import LocalFolder, Source
from segiou.masks.sources.mask_places import OF_MASKS, duplicate_advice
from segiou.masks.sources.one_file import check_different
from segiou.masks.sources.pairing import Pair, Pairing, listed_files, pair_folders
from segiou.scoring.job import Job
from segiou.scoring.pair_options import PairOptions
from segiou.scoring.problems import DataError
from segiou.scoring.trials import palette_files


def _check_layout(files: Mapping[str, str], labels: LabelSet, where: str) -> None:
    """Raise a DataError if the names of files are those of classes."""
    layout = class_layout(files, labels.class_names)
    # A mask of the only class besides the background has its value.
    if layout is None or (len(layout[1]) == 1 and labels.num_classes == 2):
        return
    # Files in one folder per image may be anything; those of all classes would count as one.
    is_certain = labels.num_classes == 2 and layout[0] != "{id}/{class}"
    if not is_certain and not {*layout[1]} & {*labels.class_names}:
        return
    text = (
        f"has one file per class ({listed(list(layout[1]), 8)}); pass class_files={layout[0]!r} "
        f"(--class-files '{layout[0]}'), or, if every file is a mask by itself, key='(.+)' "
        "(--key '(.+)')"
    )
    raise DataError([Problem(where, text)])


def _check_folders(
    files: Sequence[Mapping[str, str]], roots: Sequence[str], labels: LabelSet
) -> None:
    """Raise a DataError if folders with the same files may be classes that have no names."""
    if not all(name.isdecimal() for name in labels.class_names):
        return
    for side, other_side, where in zip(files, files[::-1], roots, strict=True):
        if (layout := folders_of_masks(side, other_side)) is not None:
            text = (
                f"has several folders with the same files ({listed(list(layout[1]), 8)}); if they "
                "are classes, pass all class names in the order of their values in the other "
                f"folder, labels=[NAME, …], class_files={layout[0]!r} (--labels NAME,… "
                f"--class-files '{layout[0]}'); otherwise pass one of them in place of the folder"
            )
            raise DataError([Problem(where, text)])


def _check_objects(files: Sequence[Mapping[str, str]], roots: Sequence[str]) -> None:
    """Raise a DataError if the files of a side are objects of images with the names of others."""
    for side, other_side, where in zip(files, files[::-1], roots, strict=True):
        if (pattern := object_layout(side, other_side)) is not None:
            text = (
                f"has one file per object; pass class_files={pattern!r}, objects='labels' "
                f"(--class-files '{pattern}' --objects labels); to count pixels of two classes "
                "instead of objects, pass truth_threshold=1, pred_threshold=1 (--truth-threshold 1 "
                "--pred-threshold 1) in place of objects"
            )
            raise DataError([Problem(where, text)])


def pair_sources(truth: Source, pred: Source, job: Job | None = None) -> Pairing:
    """Pair the masks of two places; DataError if one is missing, unreadable or empty.

    Two local files are one pair. If there are ids, only the truth files that they name are paired.
    """
    if is_one_file(truth) and is_one_file(pred):
        pair = Pair(split_ending(Path(truth.root).name)[0], truth.root, pred.root)
        return _check_different_files(Pairing((pair,), (), (), (), "two files"), truth, pred)
    files = _files_of_both(truth, pred)
    is_free = job is not None and not (job.pair_by.has_rule or job.reading.class_files)
    if job is not None and is_free:
        sides = job.options.labels, job.options.pred_labels
        for source, paths, labels in zip((truth, pred), files, sides, strict=True):
            _check_layout(paths, labels, source.root)
    places = place_of(truth), place_of(pred)
    if not all(isinstance(source, LocalFolder) for source in places):
        from segiou.masks.sources.segment_files import named_as_other

        files = (
            named_as_other(files[0], *places, files[1]),
            named_as_other(files[1], *places[::-1], files[0]),
        )
    pairing = pair_folders(*files) if job is None else _paired(*files, job.pair_by)
    if job is not None and is_free and pairing.duplicates:
        _check_folders(files, (truth.root, pred.root), job.options.labels)
    is_partial = not pairing.pairs or pairing.missing or pairing.extra
    if job is not None and is_partial and not job.reading.class_files:
        _check_objects(files, (truth.root, pred.root))
    return _check_different_files(pairing, truth, pred)


def _check_different_files(pairing: Pairing, truth: Source, pred: Source) -> Pairing:
    """The pairing; DataError if the truth of a pair is its prediction."""
    try:
        check_different((truth, pred), [(pair.truth, pair.pred) for pair in pairing.pairs])
    except ValueError as error:
        raise DataError([Problem("pairing", str(error))]) from error
    return pairing


def check_palettes(
    sides: Iterable[tuple[Source, Sequence[str]]], labels: LabelSet, *, alike: bool = True
) -> None:
    """DataError if palettes of a sample of files contradict each other.

    Within a side, an index has one colour; and between sides that are read ``alike``, indices
    and colours are those of the first side with palettes.
    """
    first: list[PaletteUse] = []
    for source, paths in sides:
        used = [*_palettes_in(source, paths)]
        problem = clash(used)
        if problem is None and alike:
            problem = clash_of_sides(first, used, labels, partial(_fix_of_sides, first, labels))
            # Palettes that contradict the labels are reported when their pair is scored.
            if problem and any(contradiction(p, values, labels) for _, p, values in first + used):
                problem = None
        if problem:
            raise DataError([Problem(*problem)])
        first = first or used


def _fix_of_sides(files: Iterable[PaletteUse], labels: LabelSet) -> str:
    """The fix if palettes of two sides contradict each other."""
    each = (colors_of(palette, values).values() for _, palette, values in files)
    presets = presets_with({*chain.from_iterable(each)})
    return fix_for(labels, (preset.name for preset in presets))


def _palettes_in(source: Source, paths: Sequence[str]) -> Iterator[PaletteUse]:
    """Palettes of a sample of the files of a place, unless an option determines the reading."""
    if isinstance(source, AdjustedSource) and source.reading.read_palette is not None:
        return
    for path, mask in palette_files(source, paths):
        if not mask.palette:
            return
        yield path, mask.palette, used_indices(mask)


def _files_of_both(truth: Source, pred: Source) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """The masks of two places by name; DataError with the problems of both."""
    files: list[Mapping[str, str]] = []
    problems: list[Problem] = []
    for source in (truth, pred):
        try:
            files.append(files_of(source))
        except DataError as error:
            problems += error.problems
    if problems:
        # A file is a problem only if the other path is a valid folder.
        advice = f"{IS_A_FILE}; pass two folders or two files"
        if any(str(place_of(source).root).lower().endswith(".npz") for source in (truth, pred)):
            advice += (
                "; if a .npz file has several arrays, append the name of the mask: FILE.npz/NAME"
            )
        others = [problem for problem in problems if problem.text != IS_A_FILE]
        raise DataError(others or [Problem(p.where, advice) for p in problems])
    return files[0], files[1]


def files_of(source: Source) -> dict[str, str]:
    """The masks of a place by name; DataError if it is missing, unreadable or empty."""
    try:
        return source.find()
    except ValueError as error:
        where, text = source.root, str(error).removeprefix(f"{source.root}: ")
        if text.startswith(f"{where}/"):  # a file in it
            where, _, text = text.partition(": ")
        raise DataError([Problem(where, text)]) from error


def _paired(truths: Mapping[str, str], preds: Mapping[str, str], pair_by: PairOptions) -> Pairing:
    """Pairs by the names of files; only those of listed ids, if any."""
    if pair_by.pairs is not None:
        return _table_pairs(pair_by.pairs, truths, preds)
    by: Any = {name: getattr(pair_by, name) for name in ("truth_suffix", "pred_suffix", "key")}
    if (ids := pair_by.listed) is None:
        return pair_folders(truths, preds, **by)
    chosen, unknown = listed_files(truths, ids, pair_by.truth_suffix, pair_by.key)
    rule = f"{plural(len(ids), 'listed id')}; "
    if not chosen:
        return Pairing((), (), (), (), f"{rule}none has a truth file", unknown=unknown)
    pairing = pair_folders(chosen, preds, **by)
    return replace(pairing, extra=(), rule=rule + pairing.rule, unknown=unknown)


def _table_pairs(table: str | Path, truths: Mapping[str, str], preds: Mapping[str, str]) -> Pairing:
    """The pairs of a table; DataError with every row that is not a pair."""
    from segiou.masks.sources.pair_table import pairs_of_table

    pairing, problems = pairs_of_table(table, truths, preds)
    if problems:
        raise DataError(problems)
    return pairing


def pairing_problems(
    pairing: Pairing, pair_by: PairOptions, for_empty: tuple[str, str] = ("", "")
) -> tuple[list[Problem], list[Problem]]:
    """Problems of a pairing, and the files that are skipped on request.

    ``for_empty`` is what stores an empty image in the truth and predictions, if it may be missing.
    """
    of_truth, of_pred = (f"add one{f' (for an empty image, {by})' * bool(by)}" for by in for_empty)
    shared = "has the same key as another file in the folder; "
    every = [path for _, paths in pairing.duplicates for path in paths]
    problems = [
        Problem(
            paths[0], f"{shared}{duplicate_advice(paths, every)} [{key!r}: {', '.join(paths[1:])}]"
        )
        for key, paths in pairing.duplicates
    ]
    left_out: list[Problem] = []
    twins = _twins(pairing)
    for names, option, text, what_to_do in (
        (pairing.unknown, "missing", "is listed in --ids but has no truth file", "fix the list"),
        (pairing.missing, "missing", "has no prediction", of_pred),
        (pairing.extra, "extra", "has no truth", of_truth),
    ):
        if getattr(pair_by, option) == "skip":
            left_out += [Problem(name, text) for name in names]
        else:
            advice = f"{text}; {what_to_do}, or skip: {option}='skip' (--{option} skip)"
            problems += [Problem(name, advice + twins.get(name, "")) for name in names]
    if suffix := pairing.masks_suffix:
        fix = f"pass truth_suffix={suffix!r} (--truth-suffix {shlex.quote(suffix)})"
        text = f"the truth has files with and without {suffix!r}; if these are the masks, {fix}"
        problems.insert(0, Problem("pairing", text))
    if not pairing.pairs or (problems and pairing.hint):
        problems.insert(0, Problem("pairing", _unpaired_text(pairing)))
    return problems, left_out


def _twins(pairing: Pairing) -> dict[str, str]:
    """A detail for each unpaired file whose path looks like another one's."""
    left = {path for path in (*pairing.missing, *pairing.extra) if not path.isascii()}
    paths = {*left, *(path for pair in pairing.pairs for path in pair.sides)} if left else left
    forms = Counter(map(composed, paths))
    detail = " [another file has the same name in another Unicode form, NFC or NFD]"
    return {path: detail for path in left if forms[composed(path)] > 1}


def only_pair_text(pairing: Pairing, pair_by: PairOptions) -> str:
    """The caution if the only pair has different names that do not end in words for masks."""
    if len(pairing.pairs) != 1 or pair_by.has_rule:
        return ""
    (pair,) = pairing.pairs
    key = pair.id.rpartition("/")[2]
    stems = [split_ending(Path(path).name)[0] for path in pair.sides]
    ends = [stem.removeprefix(key) for stem in stems]
    are_ends = all(ends) and all(stem.startswith(key) for stem in stems) and ends[0] != ends[1]
    if not are_ends or OF_MASKS.search(ends[0]):
        return ""
    return (
        f"{pair.truth} and {pair.pred} are paired as {pair.id!r}, because no other files match; "
        f"check that they show the same image, because {ends[0]!r} and {ends[1]!r} were ignored"
    )


def _unpaired_text(pairing: Pairing) -> str:
    """Number of pairs found, and advice to find more."""
    count = len(pairing.pairs)
    result = f"only {plural(count, 'pair')} found" if count else "no files could be paired"
    what_to_do = pairing.hint or (
        "match the names with truth_suffix, pred_suffix or key (--truth-suffix, --pred-suffix, "
        "--key)"
    )
    return f"{result} (by {pairing.rule}); {what_to_do}"
