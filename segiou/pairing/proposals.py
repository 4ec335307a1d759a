"""Options that would pair files whose names differ in a way that is not found by itself."""

from __future__ import annotations

import re
import shlex
from bisect import bisect
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from posixpath import splitext

from segiou.pairing.keys import SEPARATED, stem_of

__all__ = ["proposals"]

#: Names whose neighbours in the other folder are looked at, and how many of these.
_SAMPLE = 2000
_NEIGHBOURS = 3
#: Differences between names that are tried on all files.
_TRIED = 8
#: Choices that are told of at most.
_CHOICES = 5
#: The first number of a name, and the last.
_NUMBERS = (r"(\d+)[^/]*$", r"(\d+)[^\d/]*\.[^.]+$")
#: Where words begin: at a separator, or after a number.
_WORDS = re.compile(rf"{SEPARATED.pattern}|(?<=\d)(?=\D)")

Options = dict[str, str]
Difference = tuple[str, str]


def proposals(truth: Mapping[str, str], pred: Mapping[str, str], pairs: int) -> list[str]:
    """Say with which options more files would go together.

    Parameters
    ----------
    truth, pred : mapping of str to str
        Files by their path within the folder.
    pairs : int
        How many go together without.

    Returns
    -------
    list of str
        One for each choice that pairs as many; none where nothing pairs more
        files than now, and at least half of them.

    Examples
    --------
    >>> proposals({"1gt.png": "", "2gt.png": ""}, {"1.png": "", "2.png": ""}, 0)
    ["2 would go together with truth_suffix='gt' (--truth-suffix gt)"]
    """
    least = max(pairs + 1, -(-min(len(truth), len(pred)) // 2))
    paths = _stems(truth), _stems(pred)
    names = [stem_of(path) for path in truth], [stem_of(path) for path in pred]
    for count, choices in (_by_suffix(*paths), _by_suffix(*names), _by_prefix(*names)):
        if count >= least:
            return [_words(count, options) for options in choices[:_CHOICES]]
    count, number = max((_same_number(truth, pred, key), key) for key in _NUMBERS)
    return [_words(count, {"key": number})] if count >= max(least, 2) else []


def _stems(files: Iterable[str]) -> list[str]:
    return [splitext(path)[0] for path in files]


def _words(count: int, options: Mapping[str, str]) -> str:
    python = ", ".join(f"{name}={_literal(text)}" for name, text in options.items())
    command = " ".join(_option(name, text) for name, text in options.items())
    return f"{count} would go together with {python} ({command})"


def _literal(text: str) -> str:
    return f"r'{text}'" if "\\" in text and "'" not in text else repr(text)


def _option(name: str, text: str) -> str:
    # A value that begins with a hyphen would be taken for an option itself.
    joint = "=" if text.startswith("-") else " "
    return f"--{name.replace('_', '-')}{joint}{shlex.quote(text)}"


def _by_suffix(truth: Sequence[str], pred: Sequence[str]) -> tuple[int, list[Options]]:
    count, best = _best_differences(truth, pred)
    sides = ("truth_suffix", "pred_suffix")
    return count, [
        {side: end for side, end in zip(sides, ends, strict=True) if end} for ends in best
    ]


def _by_prefix(truth: Sequence[str], pred: Sequence[str]) -> tuple[int, list[Options]]:
    backwards = [name[::-1] for name in truth], [name[::-1] for name in pred]
    count, best = _best_differences(*backwards)
    return count, [{"key": _key_without([end[::-1] for end in ends if end])} for ends in best]


def _key_without(prefixes: Sequence[str]) -> str:
    optional = "?" if len(prefixes) < 2 else ""
    return rf"(?:^|/)(?:{'|'.join(map(re.escape, prefixes))}){optional}([^/]+)\.[^.]+$"


def _best_differences(truth: Sequence[str], pred: Sequence[str]) -> tuple[int, list[Difference]]:
    """Ends of names without which most are equal, and how many that are.

    Several, where one folder holds several files for each of the other.
    """
    tried = [ends for ends, _ in _differences(truth, pred).most_common(_TRIED)]
    counted = {ends: _equal_without(truth, pred, ends) for ends in tried}
    most = max(counted.values(), default=0)
    found: list[Difference] = []
    for ends in sorted((e for e in tried if counted[e] == most), key=_plainness):
        if not any(_same_cut(ends, other) for other in found):
            found.append(ends)
    return most, found


def _plainness(ends: Difference) -> tuple[int, int, Difference]:
    """Whole words first, which are the longer ones."""
    broken = sum(bool(end) and SEPARATED.match(end) is None for end in ends)
    return broken, -len("".join(ends)), ends


def _same_cut(ends: Difference, other: Difference) -> bool:
    return all(a.endswith(b) or b.endswith(a) for a, b in zip(ends, other, strict=True))


def _differences(truth: Sequence[str], pred: Sequence[str]) -> Counter[Difference]:
    """What is left of names after what they share with names of the other folder."""
    others = sorted(pred)
    found: Counter[Difference] = Counter()
    for name in truth[:: max(1, len(truth) // _SAMPLE)]:
        place = bisect(others, name)
        for other in others[max(0, place - _NEIGHBOURS) : place + _NEIGHBOURS]:
            length = _shared(name, other)
            # Where a word begins too, lest "_gt" and "_good" be told apart as "t" and "ood".
            cuts = {length, *(m.start() for m in _WORDS.finditer(name[:length]))}
            for cut in sorted(cuts)[-2:]:
                ends = name[cut:], other[cut:]
                if ends[0] != ends[1] and name[:cut] and not _cuts_number(name[:cut], ends):
                    found[ends] += 1
    return found


def _shared(a: str, b: str) -> int:
    """How many characters two names begin with alike."""
    pairs = enumerate(zip(a, b, strict=False))
    return next((i for i, (x, y) in pairs if x != y), min(len(a), len(b)))


def _cuts_number(shared: str, ends: Difference) -> bool:
    """Whether the files are rather different ones: their numbers differ."""
    within = shared[-1].isdigit() and any(end[:1].isdigit() for end in ends)
    return within or any(re.fullmatch(r"[\W_]*\d[\d\W_]*", end) for end in ends)


def _equal_without(truth: Sequence[str], pred: Sequence[str], ends: Difference) -> int:
    return _unique_in_both(
        *(
            [name[: len(name) - len(end)] for name in names if name.endswith(end) and name != end]
            for names, end in zip((truth, pred), ends, strict=True)
        )
    )


def _unique_in_both(truth: Iterable[str], pred: Iterable[str]) -> int:
    once = [{key for key, n in Counter(keys).items() if n == 1} for keys in (truth, pred)]
    return len(once[0] & once[1])


def _same_number(truth: Iterable[str], pred: Iterable[str], key: str) -> int:
    pattern = re.compile(key)
    return _unique_in_both(
        *([m[1] for m in map(pattern.search, files) if m] for files in (truth, pred))
    )
