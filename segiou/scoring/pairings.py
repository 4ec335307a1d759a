"""Pairs of two places, and what can be wrong with a data set, in words that say what to do."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from segiou._support.arguments import check_kind, read_several
from segiou._support.files import Problem, problem_lines, read_rows, read_text
from segiou._support.text import plural
from segiou.counting.encoding import UndeclaredValuesError
from segiou.masks.pairing import IS_A_FILE, Pair, Pairing, listed_files, pair_folders
from segiou.masks.sources import LocalFolder, Source


class DataError(ValueError):
    """Problems of a data set. The message groups files with the same problem.

    Attributes
    ----------
    problems : tuple of Problem
        All of them.
    reason : str
        What explains most of them, where that is known; the message then gives
        it instead of them.
    """

    def __init__(self, problems: Sequence[Problem], reason: str = "") -> None:
        self.problems: tuple[Problem, ...] = tuple(problems)
        self.reason = reason
        lines = [reason] if reason else problem_lines(self.problems)
        if len(lines) < len(self.problems):
            lines.append(
                "all of them, one by one: --problems FILE (in Python .problems of this error)"
            )
        head = plural(len(self.problems), "problem")
        super().__init__(f"{head}:\n" + "\n".join(f"  {line}" for line in lines))

    def __reduce__(self) -> tuple[Any, ...]:
        return (DataError, (self.problems, self.reason))


class ScoringStopped(Exception):
    """Scoring was asked to stop before all pairs were done.

    Attributes
    ----------
    done, total : int
        Pairs that are scored, and all.
    """

    def __init__(self, done: int, total: int) -> None:
        self.done = done
        self.total = total
        super().__init__(f"stopped after {done} of {total} pairs")

    def __reduce__(self) -> tuple[Any, ...]:
        return (ScoringStopped, (self.done, self.total))


#: What is wrong with an id that was asked for.
UNKNOWN_ID = (
    "is in the list of ids, but no truth file has it; correct the list, or leave out what is not "
    "there: missing='skip' (--missing skip)"
)


def is_undeclared(problem: Problem) -> bool:
    """Whether a problem is one of :func:`undeclared_text`."""
    return problem.text.startswith(_UNDECLARED)


#: A line of two words, the second of which is a flag or a file.
_TWO_WORDS = re.compile(r"(\S+)\s+(?:[+-]?\d+|\S+\.\w+)")
#: What texts about undeclared values begin with.
_UNDECLARED = ("has very many values that are no class", "has values that are no class")


def size_text(truth: str, shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> str:
    """What to do about a prediction of another size than its truth."""

    def size(shape: tuple[int, ...]) -> str:
        return f"{shape[1]} × {shape[0]}" if len(shape) == 2 else f"shape {shape}"

    unit = "voxels" if len(shapes[0]) == 3 else "pixels"
    return (
        f"is {size(shapes[1])} {unit}, but its truth is {size(shapes[0])}; predict at the truth's "
        "size, or resize predictions: resize_pred='nearest' (--resize-pred nearest) "
        f"[truth: {truth}]"
    )


def geometry_text(truth: str, difference: str) -> str:
    """What to do about a volume that does not lie in space as its truth does."""
    if difference.startswith("orientation"):
        fix = "exchange its axes: geometry='reorient' (--geometry reorient)"
    else:
        fix = "resample it to the grid of its truth"
    ignore = "geometry='ignore' (--geometry ignore)"
    return f"has {difference}; {fix}, or compare voxel by voxel: {ignore} [truth: {truth}]"


def raster_text(truth: str, difference: str) -> str:
    """What to do about a raster that does not lie where its truth does."""
    ignore = "geometry='ignore' (--geometry ignore)"
    return (
        f"has {difference}; warp it to the grid of its truth, or compare pixel by pixel: {ignore} "
        f"[truth: {truth}]"
    )


def undeclared_text(
    error: UndeclaredValuesError,
    num_classes: int,
    ignore: Sequence[int] = (),
    unit: str = "pixels",
) -> str:
    """What undeclared values in a file most likely mean, and the options that take them."""
    values = error.values
    ranked = sorted(values.items(), key=lambda item: -item[1])
    more = f" and {len(ranked) - 6} more" if len(ranked) > 6 else ""
    short = "px" if unit == "pixels" else unit
    pixels = ", ".join(f"{value}: {count} {short}" for value, count in ranked[:6])
    if len(values) > max(8, num_classes):
        return (
            "has very many values that are no class; so many look like a mask that was resized "
            "with interpolation or saved with loss: make it again with nearest neighbour, as PNG "
            f"[{pixels}{more}]"
        )
    shown = ", ".join(str(value) for value, _ in ranked[:6])
    text = f"has values that are no class: {shown}{more}"
    if set(values) == {255} and num_classes <= 2:
        text += "; a 0/255 mask? labels='binary' (--labels binary) reads both"
    if error.side == "truth":
        options = " ".join(f"--ignore {value}" for value, _ in ranked[:6])
        return f"{text}; add them to the label set, or drop their {unit}: {options} [{pixels}]"
    ignored = set(values) <= set(ignore)
    swapped = "the truth ignores them: are truth and prediction swapped? If not, "
    return (
        f"{text}, on {unit} that are not ignored; {swapped if ignored else ''}add them to the "
        "label set, or count them as missed: unassigned='count' (--unassigned count) "
        f"[{pixels}]"
    )


def pair_sources(
    truth: Source,
    pred: Source,
    *,
    truth_suffix: str | None = None,
    pred_suffix: str | None = None,
    key: str | None = None,
    ids: Sequence[str] | None = None,
) -> Pairing:
    """Pair the masks of two places; two local files are one pair.

    With ``ids``, only the truth files that they name, and their predictions.

    Raises
    ------
    DataError
        If a place is missing, unreadable or empty, or a file stands against a
        folder.
    """
    if all(isinstance(s, LocalFolder) and Path(s.root).is_file() for s in (truth, pred)):
        pair = Pair(Path(truth.root).stem, truth.root, pred.root)
        return Pairing((pair,), (), (), (), "two files")
    files: list[Mapping[str, str]] = []
    problems = []
    for source in (truth, pred):
        try:
            files.append(source.find())
        except ValueError as error:
            text = str(error).removeprefix(f"{source.root}: ")
            problems.append(Problem(source.root, text))
    if problems:
        # A file is wrong only beside a folder: another problem of a place comes alone.
        advice = f"{IS_A_FILE}; give two folders, or two files"
        others = [problem for problem in problems if problem.text != IS_A_FILE]
        raise DataError(others or [Problem(p.where, advice) for p in problems])
    if not all(isinstance(source, LocalFolder) for source in (truth, pred)):
        from segiou.masks.segment_files import named_as_other

        files = [
            named_as_other(files[0], truth, pred, files[1]),
            named_as_other(files[1], pred, truth, files[0]),
        ]
    how: dict[str, Any] = {"truth_suffix": truth_suffix, "pred_suffix": pred_suffix, "key": key}
    if ids is None:
        return pair_folders(files[0], files[1], **how)
    truths, unknown = listed_files(files[0], ids, truth_suffix, key)
    rule = f"{plural(len(ids), 'listed id')}; "
    if not truths:
        return Pairing((), (), (), (), f"{rule}none has a truth file", unknown=unknown)
    found = pair_folders(truths, files[1], **how)
    return replace(found, extra=(), rule=rule + found.rule, unknown=unknown)


def pairing_problems(
    pairing: Pairing, missing: Literal["error", "skip"], extra: Literal["error", "skip"]
) -> list[Problem]:
    """What is wrong with a pairing."""
    problems = [
        Problem(
            paths[0],
            "shares its key with others of its folder; keep one of them "
            f"[{key!r}: {', '.join(paths[1:])}]",
        )
        for key, paths in pairing.duplicates
    ]
    if missing == "error":
        problems += [Problem(id, UNKNOWN_ID) for id in pairing.unknown]
        text = "has no prediction; make it, or leave it out: missing='skip' (--missing skip)"
        problems += [Problem(path, text) for path in pairing.missing]
    if extra == "error":
        text = "has no truth; remove it, or leave it out: extra='skip' (--extra skip)"
        problems += [Problem(path, text) for path in pairing.extra]
    if not pairing.pairs or (problems and pairing.hint):
        problems.insert(0, Problem("pairing", _unpaired_text(pairing)))
    return problems


def _unpaired_text(pairing: Pairing) -> str:
    """How few files go together, and what would pair more."""
    count = len(pairing.pairs)
    found = f"only {count} go together" if count else "no file goes with any other"
    what_to_do = pairing.hint or (
        "say what the names differ in: truth_suffix, pred_suffix or key (--truth-suffix, "
        "--pred-suffix, --key)"
    )
    return f"{found} (by {pairing.rule}); {what_to_do}"


def ids_of(choice: str | Path | Iterable[str]) -> tuple[str, ...]:
    """Ids as they are given, or from a list: one a line, or a column of a CSV.

    Of a line with two words, as Pascal VOC's ``ImageSets`` have them, the first
    is taken: the second is a flag, or the file of the truth. The column of a
    CSV stands after its name: ``split.csv:image``.

    Raises
    ------
    TypeError
        If it is neither a path nor ids.
    ValueError
        If there is no such file or column, or it names nothing, or an id twice.
    """
    wanted = "the path of a list, or texts"
    if isinstance(choice, (str, Path)):
        where, ids = str(choice), _read_ids(str(choice))
    else:
        where, ids = "ids", read_several("ids", choice, wanted)
    for id in ids:
        check_kind("ids", id, str, wanted)
    counted = Counter(ids)
    if twice := [id for id, count in counted.items() if count > 1]:
        msg = f"{where}: names {twice[0]} more than once; a list has each id once"
        raise ValueError(msg)
    if not counted:
        msg = f"{where}: names no ids; it should have one a line"
        raise ValueError(msg)
    return tuple(counted)


def _read_ids(text: str) -> list[str]:
    name, _, column = text.rpartition(":")
    is_csv = name.lower().endswith(".csv")
    path = Path(name if is_csv else text).expanduser()
    if is_csv:
        return [row[column] for row in read_rows(path, [column]) if row[column]]
    lines = read_text(path).splitlines()
    if path.suffix.lower() == ".csv" and lines and "," in lines[0]:
        msg = (
            f"{path}: is a table, whose first line is {lines[0]:.80}; name the column of the "
            f"ids: {text}:COLUMN"
        )
        raise ValueError(msg)
    lines = [line.strip() for line in lines if not line.startswith("#")]
    words = [_TWO_WORDS.fullmatch(line) for line in lines]
    ids = [match[1] if match else line for match, line in zip(words, lines, strict=True)]
    return [id for id in ids if id]
