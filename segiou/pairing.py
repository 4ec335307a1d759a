"""Two folders → pairs of files, by key and never by order."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from posixpath import splitext

__all__ = ["MASK_SUFFIXES", "Pair", "Pairing", "find_masks", "pair_folders"]

#: Endings of files that are taken for masks.
MASK_SUFFIXES = frozenset(
    {".png", ".tif", ".tiff", ".npy", ".npz", ".bmp", ".gif", ".pgm", ".ppm", ".pbm", ".pnm"}
    | {".jpg", ".jpeg", ".jp2", ".webp", ".avif"}
)
_SEPARATED = re.compile(r"[_\-. ]")


@dataclass(frozen=True, slots=True)
class Pair:
    """A truth file and the prediction for it.

    Attributes
    ----------
    id : str
        The key that both share.
    truth, pred : str
        Paths.
    """

    id: str
    truth: str
    pred: str


@dataclass(frozen=True, slots=True)
class Pairing:
    """How two folders' files go together.

    Attributes
    ----------
    pairs : tuple of Pair
        In the order of their keys.
    missing : tuple of str
        Truth files without a prediction.
    extra : tuple of str
        Predictions without a truth file.
    duplicates : tuple of (str, tuple of str)
        Keys that several files of one folder share, with these files.
    rule : str
        What made the keys, in words.
    """

    pairs: tuple[Pair, ...]
    missing: tuple[str, ...]
    extra: tuple[str, ...]
    duplicates: tuple[tuple[str, tuple[str, ...]], ...]
    rule: str


@dataclass(frozen=True, slots=True)
class _Key:
    """A way to make a key from a file's path within its folder."""

    flat: bool
    suffix: str
    only_suffixed: bool

    def of(self, relative: str) -> str | None:
        folder, _, name = relative.rpartition("/")
        stem = splitext(name)[0]
        if self.suffix and stem.endswith(self.suffix):
            stem = stem[: -len(self.suffix)]
        elif self.only_suffixed:
            return None
        if self.flat:
            return stem
        return (f"{folder}/{stem}" if folder else stem) if stem else None


def find_masks(folder: str | os.PathLike[str]) -> dict[str, str]:
    """Mask files below a folder: path within it (with ``/``) → path.

    Hidden files and folders are passed over; links to folders are not followed,
    so a loop of links cannot trap the search.

    Raises
    ------
    ValueError
        If there is no such folder, it is a file, may not be read, or holds no masks.
    """
    root = Path(folder).expanduser()
    if not root.is_dir():
        what = "is a file, not a folder" if root.exists() else "does not exist"
        msg = f"{root}: {what}"
        raise ValueError(msg)
    found = {}
    for base, folders, files in os.walk(root, onerror=_raise_unreadable):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        # As text, because a path object for each of a million files takes a minute.
        inside = (Path(base).relative_to(root) / "x").as_posix()[:-1]
        outside = str(Path(base) / "x")[:-1]
        for name in sorted(files):
            if splitext(name)[1].lower() in MASK_SUFFIXES and not name.startswith("."):
                found[f"{inside}{name}"] = f"{outside}{name}"
    if not found:
        msg = f"{root}: holds no mask files ({', '.join(sorted(MASK_SUFFIXES))})"
        raise ValueError(msg)
    return found


def _raise_unreadable(error: OSError) -> None:
    msg = f"{error.filename}: may not be read: {error.strerror}"
    raise ValueError(msg) from error


def pair_folders(
    truth: Mapping[str, str],
    pred: Mapping[str, str],
    *,
    truth_suffix: str | None = None,
    pred_suffix: str | None = None,
    key: str | None = None,
) -> Pairing:
    """Pair the files of two folders by key.

    The key is the path within the folder without the file's ending and without
    a suffix of the name. Suffixes that all files of a folder share are found
    by themselves; where the folders are nested differently, file names alone
    are tried. The rule that pairs most files is used, and named.

    Parameters
    ----------
    truth, pred : mapping of str to str
        As :func:`find_masks` gives them.
    truth_suffix, pred_suffix : str, optional
        End of the names (before the ending) that is no part of the key, such
        as ``"_gtFine_labelIds"``; files without it are passed over.
    key : str, optional
        A regular expression to search in the path within the folder; its group
        ``key``, or its first group, or the whole match is the key.

    Raises
    ------
    ValueError
        If ``key`` is no regular expression.

    Examples
    --------
    >>> found = pair_folders({"a_gt.png": "t/a_gt.png"}, {"a_pred.png": "p/a_pred.png"},
    ...                      truth_suffix="_gt", pred_suffix="_pred")
    >>> found.pairs
    (Pair(id='a', truth='t/a_gt.png', pred='p/a_pred.png'),)
    """
    if key is not None:
        pattern = _pattern(key)
        rule = f"key {key!r} searched in the path"
        return _pairing(_matched(truth, pattern), _matched(pred, pattern), rule)
    best: tuple[int, int] | None = None
    chosen = None
    for attempt, (t, p) in enumerate(_candidates(truth, pred, truth_suffix, pred_suffix)):
        truth_keys, pred_keys = _keys(truth, t), _keys(pred, p)
        score = (len(truth_keys.keys() & pred_keys.keys()), -attempt)
        if best is None or score > best:
            best, chosen = score, (truth_keys, pred_keys, _rule(t, p))
    assert chosen is not None
    return _pairing(*chosen)


def _candidates(
    truth: Mapping[str, str],
    pred: Mapping[str, str],
    truth_suffix: str | None,
    pred_suffix: str | None,
) -> Iterable[tuple[_Key, _Key]]:
    truth_ends = _suffixes(truth, truth_suffix)
    pred_ends = _suffixes(pred, pred_suffix)
    for flat, t, p in product((False, True), truth_ends, pred_ends):
        yield (
            _Key(flat, t, truth_suffix is not None),
            _Key(flat, p, pred_suffix is not None),
        )


def _suffixes(files: Mapping[str, str], given: str | None) -> list[str]:
    if given is not None:
        return [given]
    common = _common_suffix([splitext(name.rpartition("/")[2])[0] for name in files])
    # Every cut at a separator is a candidate: "_gtFine_labelIds", then "_labelIds".
    cuts = [common[m.start() :] for m in _SEPARATED.finditer(common)]
    return ["", *cuts]


def _common_suffix(stems: list[str]) -> str:
    if len(stems) == 1:
        return stems[0]
    shortest = min(stems, key=len)
    for length in range(len(shortest), 0, -1):
        if all(stem.endswith(shortest[-length:]) for stem in stems):
            return shortest[-length:]
    return ""


def _keys(files: Mapping[str, str], rule: _Key) -> dict[str, list[str]]:
    keys: dict[str, list[str]] = {}
    for relative, path in files.items():
        found = rule.of(relative)
        if found is not None:
            keys.setdefault(found, []).append(path)
    return keys


def _pattern(key: str) -> re.Pattern[str]:
    try:
        return re.compile(key)
    except re.error as error:
        msg = f"key {key!r} is no regular expression: {error}"
        raise ValueError(msg) from error


def _matched(files: Mapping[str, str], pattern: re.Pattern[str]) -> dict[str, list[str]]:
    keys: dict[str, list[str]] = {}
    for relative, path in files.items():
        if match := pattern.search(relative):
            named = match.groupdict().get("key")
            found = named or (match.group(1) if pattern.groups else match.group(0))
            keys.setdefault(found or relative, []).append(path)
    return keys


def _rule(truth: _Key, pred: _Key) -> str:
    what = "file name" if truth.flat else "path within the folder"
    ends = [
        f"{suffix!r} of the {side}"
        for suffix, side in ((truth.suffix, "truth"), (pred.suffix, "predictions"))
        if suffix
    ]
    return what + (f" without {' and '.join(ends)}" if ends else "")


def _pairing(truth: dict[str, list[str]], pred: dict[str, list[str]], rule: str) -> Pairing:
    duplicates = [
        (key, tuple(paths)) for side in (truth, pred) for key, paths in side.items() if paths[1:]
    ]
    shared = sorted(key for key in truth.keys() & pred.keys())
    return Pairing(
        tuple(Pair(key, truth[key][0], pred[key][0]) for key in shared),
        tuple(path for key in sorted(truth.keys() - pred.keys()) for path in truth[key]),
        tuple(path for key in sorted(pred.keys() - truth.keys()) for path in pred[key]),
        tuple(sorted(duplicates)),
        rule,
    )
