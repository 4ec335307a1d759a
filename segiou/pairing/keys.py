"""Keys of files: what of a name tells which files go together."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from posixpath import splitext

from segiou.pairing.finding import MASK_SUFFIXES

__all__ = [
    "SEPARATED",
    "Key",
    "Keys",
    "candidates",
    "keys_by",
    "matched",
    "pattern_of",
    "rule_text",
    "stem_of",
]

#: Files by key.
Keys = dict[str, list[str]]
SEPARATED = re.compile(r"[_\-. ]")


@dataclass(frozen=True, slots=True)
class Key:
    """A way to make a key from a file's path within its folder.

    Attributes
    ----------
    flat : bool
        Whether folders are no part of the key.
    suffix : str
        What is taken off the end of the name.
    ending : str
        The only ending of files that are taken, such as ``".png"``; empty for any.
    only_suffixed : bool
        Whether files without the suffix have no key.
    """

    flat: bool
    suffix: str
    ending: str = ""
    only_suffixed: bool = False

    def of(self, relative: str) -> str | None:
        """The key of a file; None if it has none."""
        folder, _, name = relative.rpartition("/")
        stem, ending = splitext(name)
        if self.ending and ending.lower() != self.ending:
            return None
        if self.suffix and stem.endswith(self.suffix):
            stem = stem[: -len(self.suffix)]
        elif self.only_suffixed and self.suffix:
            return None
        if self.flat:
            return stem
        return (f"{folder}/{stem}" if folder else stem) if stem else None


def stem_of(relative: str) -> str:
    """A file's name without folders and ending."""
    return splitext(relative.rpartition("/")[2])[0]


def keys_by(rule: Key, files: Mapping[str, str]) -> Keys:
    """Files by key; those that have none are left out."""
    keys: Keys = {}
    for relative, path in files.items():
        found = rule.of(relative)
        if found is not None:
            keys.setdefault(found, []).append(path)
    return keys


def candidates(
    truth: Mapping[str, str],
    pred: Mapping[str, str],
    truth_suffix: str | None,
    pred_suffix: str | None,
) -> Iterable[tuple[Key, Key]]:
    """Rules for both folders, the plainest first."""
    sides = _suffixes(truth, truth_suffix), _suffixes(pred, pred_suffix)
    for flat, (t, t_ending), (p, p_ending) in product((False, True), *sides):
        yield (
            Key(flat, t, t_ending, truth_suffix is not None),
            Key(flat, p, p_ending, pred_suffix is not None),
        )


def _suffixes(files: Mapping[str, str], given: str | None) -> list[tuple[str, str]]:
    """Suffixes to try, and the ending that files must have."""
    if given is not None:
        ending = next((e for e in MASK_SUFFIXES if given.lower().endswith(e)), "")
        return [(given[: len(given) - len(ending)], ending)]
    common = _common_suffix([stem_of(name) for name in files])
    # Every cut at a separator is a candidate: "_gtFine_labelIds", then "_labelIds".
    cuts = [common[m.start() :] for m in SEPARATED.finditer(common)]
    return [(suffix, "") for suffix in ("", *cuts)]


def _common_suffix(stems: list[str]) -> str:
    if len(stems) == 1:
        return stems[0]
    shortest = min(stems, key=len)
    for length in range(len(shortest), 0, -1):
        if all(stem.endswith(shortest[-length:]) for stem in stems):
            return shortest[-length:]
    return ""


def pattern_of(key: str) -> re.Pattern[str]:
    """A regular expression that finds keys.

    Raises
    ------
    ValueError
        If it is none.
    """
    try:
        return re.compile(key)
    except re.error as error:
        msg = f"key {key!r} is no regular expression: {error}"
        raise ValueError(msg) from error


def matched(files: Mapping[str, str], pattern: re.Pattern[str]) -> Keys:
    """Files by what a regular expression finds in their paths."""
    keys: Keys = {}
    for relative, path in files.items():
        if match := pattern.search(relative):
            named = match.groupdict().get("key")
            found = named or (match.group(1) if pattern.groups else match.group(0))
            keys.setdefault(found or relative, []).append(path)
    return keys


def rule_text(truth: Key, pred: Key) -> str:
    """The rules in words."""
    what = "file name" if truth.flat else "path within the folder"
    ends = [
        f"{rule.suffix + rule.ending!r} of the {side}"
        for rule, side in ((truth, "truth"), (pred, "predictions"))
        if rule.suffix + rule.ending
    ]
    return what + (f" without {' and '.join(ends)}" if ends else "")
