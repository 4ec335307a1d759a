"""Two folders, archives, addresses or files → pairs, or everything that is wrong with them."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

from segiou._arguments import check_choice, check_integer, check_kind, refuse_kind
from segiou.pairing import IS_A_FILE, Pair, Pairing, pair_folders
from segiou.runs import Problem
from segiou.scoring.problems import DataError
from segiou.sources import LocalFolder, Source, open_source

__all__ = ["PairingRule", "open_sources", "pair_paths", "pair_sources", "pairing_problems"]

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
