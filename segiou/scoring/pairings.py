"""What can be wrong with a data set, in words that say what to do."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

from segiou._support.arguments import check_choice, check_integer, check_kind, refuse_kind
from segiou._support.files import Problem, problem_lines
from segiou.counting.encoding import UndeclaredValuesError
from segiou.masks.pairing import IS_A_FILE, Pair, Pairing, pair_folders
from segiou.masks.sources import LocalFolder, Source, open_source

__all__ = [
    "DataError",
    "PairingRule",
    "Stopped",
    "open_sources",
    "pair_paths",
    "pair_sources",
    "pairing_problems",
    "size_text",
    "undeclared_text",
]


class DataError(ValueError):
    """Problems of a data set. The message tells files with the same problem together.

    Attributes
    ----------
    problems : tuple of Problem
        All of them.
    """

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        count = len(self.problems)
        head = "1 problem" if count == 1 else f"{count} problems"
        lines = problem_lines(self.problems)
        if len(lines) < count:
            lines.append("all of them, one by one: .problems of this error (--problems FILE)")
        super().__init__(f"{head}:\n" + "\n".join(f"  {line}" for line in lines))

    def __reduce__(self) -> tuple[Any, ...]:
        return (DataError, (self.problems,))


class Stopped(Exception):
    """Scoring was asked to stop before all pairs were done.

    Attributes
    ----------
    done, total : int
        Pairs that are scored, and all.
    """

    def __init__(self, done: int, total: int) -> None:
        self.done, self.total = done, total
        super().__init__(f"stopped after {done} of {total} pairs")

    def __reduce__(self) -> tuple[Any, ...]:
        return (Stopped, (self.done, self.total))


def size_text(truth: str, shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> str:
    """What to do about a prediction of another size than its truth."""

    def size(shape: tuple[int, ...]) -> str:
        return f"{shape[1]} × {shape[0]}" if len(shape) == 2 else f"shape {shape}"

    return (
        f"is {size(shapes[1])} pixels, but its truth is {size(shapes[0])}; predict at the truth's "
        "size, or resize predictions: resize_pred='nearest' (--resize-pred nearest) "
        f"[truth: {truth}]"
    )


def undeclared_text(
    error: UndeclaredValuesError, num_classes: int, ignore: Sequence[int] = ()
) -> str:
    """What undeclared values in a file most likely mean, and the options that take them."""
    values = error.values
    ranked = sorted(values.items(), key=lambda item: -item[1])
    more = f" and {len(ranked) - 6} more" if len(ranked) > 6 else ""
    pixels = ", ".join(f"{value}: {count} px" for value, count in ranked[:6])
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
        return f"{text}; add them to the label set, or drop their pixels: {options} [{pixels}]"
    ignored = set(values) <= set(ignore)
    swapped = "the truth ignores them: are truth and prediction swapped? If not, "
    return (
        f"{text}, on pixels that are not ignored; {swapped if ignored else ''}add them to the "
        "label set, or count them as missed: unassigned='count' (--unassigned count) "
        f"[{pixels}]"
    )


OnUnpaired = Literal["error", "skip"]


@dataclass(frozen=True)
class PairingRule:
    """How pairs are found; see :func:`score_folder`."""

    truth_suffix: str | None = None
    pred_suffix: str | None = None
    key: str | None = None
    missing: OnUnpaired = "error"
    extra: OnUnpaired = "error"
    shard: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        for name in ("truth_suffix", "pred_suffix", "key"):
            if (value := getattr(self, name)) is not None:
                check_kind(name, value, str, "text")
        for name in ("missing", "extra"):
            check_choice(name, getattr(self, name), get_args(OnUnpaired))
        if self.shard is not None:
            _check_shard(self.shard)

    def paired(self, truth: Source, pred: Source) -> tuple[Pairing, list[Problem]]:
        """The pairs, and what is wrong with the rest.

        Raises
        ------
        DataError
            If a place is missing, unreadable or empty.
        """
        pairing = pair_sources(
            truth,
            pred,
            truth_suffix=self.truth_suffix,
            pred_suffix=self.pred_suffix,
            key=self.key,
        )
        problems = pairing_problems(pairing, self.missing, self.extra)
        if self.shard is not None:
            pairing = replace(pairing, pairs=_of_shard(pairing.pairs, *self.shard))
        return pairing, problems

    def left_out(self, pairing: Pairing) -> tuple[Problem, ...]:
        """What the options say to pass over."""
        missing = pairing.missing if self.missing == "skip" else ()
        extra = pairing.extra if self.extra == "skip" else ()
        return (
            *(Problem(path, "has no prediction") for path in missing),
            *(Problem(path, "has no truth") for path in extra),
        )


def _check_shard(shard: object) -> None:
    if not isinstance(shard, (tuple, list)) or len(shard) != 2:
        raise refuse_kind("shard", shard, "two integers, (part, parts)")
    part, parts = (check_integer("shard", number) for number in shard)
    if not 1 <= part <= parts:
        msg = f"shard {part}/{parts}: there are parts 1 to {parts}"
        raise ValueError(msg)


def _of_shard(pairs: Sequence[Pair], part: int, parts: int) -> tuple[Pair, ...]:
    # By a hash of the id, so that a pair stays in its part when others come.
    return tuple(
        pair
        for pair in pairs
        if zlib.crc32(pair.id.encode("utf-8", "surrogateescape")) % parts == part - 1
    )


def open_sources(
    truth: str | Path, pred: str | Path, storage_options: Mapping[str, Any] | None = None
) -> tuple[Source, Source]:
    """Find out what both places are.

    Raises
    ------
    DataError
        If both are one.
    """
    sources = open_source(truth, storage_options), open_source(pred, storage_options)
    if sources[0] == sources[1] or _same_file(sources):
        text = "truth and prediction are the same; give two different folders"
        raise DataError([Problem(str(truth), text)])
    return sources


def _same_file(sources: tuple[Source, Source]) -> bool:
    if not all(isinstance(source, LocalFolder) for source in sources):
        return False
    paths = [Path(source.root) for source in sources]
    return all(path.exists() for path in paths) and paths[0].samefile(paths[1])


def pair_sources(
    truth: Source,
    pred: Source,
    *,
    truth_suffix: str | None = None,
    pred_suffix: str | None = None,
    key: str | None = None,
) -> Pairing:
    """Pair the masks of two places; two local files are one pair.

    Raises
    ------
    DataError
        If a place is missing, unreadable or empty, or a file stands against a
        folder.
    """
    if all(isinstance(s, LocalFolder) and Path(s.root).is_file() for s in (truth, pred)):
        pair = Pair(Path(truth.root).stem, truth.root, pred.root)
        return Pairing((pair,), (), (), (), "two files")
    files, problems = [], []
    for source in (truth, pred):
        try:
            files.append(source.find())
        except ValueError as error:
            text = str(error).removeprefix(f"{source.root}: ")
            problems.append(Problem(source.root, text))
    if problems:
        raise DataError(_without_lone_file(problems))
    return pair_folders(*files, truth_suffix=truth_suffix, pred_suffix=pred_suffix, key=key)


def _without_lone_file(problems: Sequence[Problem]) -> list[Problem]:
    """A file would be right if the other were one: what is wrong with that comes alone."""
    others = [p for p in problems if p.text != IS_A_FILE]
    advice = f"{IS_A_FILE}; give two folders, or two files"
    return others or [Problem(p.where, advice) for p in problems]


def pair_paths(
    truth: str | Path,
    pred: str | Path,
    *,
    truth_suffix: str | None = None,
    pred_suffix: str | None = None,
    key: str | None = None,
) -> Pairing:
    """Pair two folders, archives, addresses or files.

    Raises
    ------
    DataError
        As :func:`open_sources` and :func:`pair_sources`.
    """
    sources = open_sources(truth, pred)
    return pair_sources(*sources, truth_suffix=truth_suffix, pred_suffix=pred_suffix, key=key)


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
