"""Options that may pair files whose names differ, from the names alone."""

from __future__ import annotations

import os
import re
from bisect import bisect
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import product

from segiou.masks.finding import split_ending
from segiou.masks.sources.mask_places import NOT_MASKS, OF_MASKS

#: Between the words of a name.
SEPARATED = re.compile(r"[_\-. ]")
#: Names sampled for comparison, and the neighbours in the other folder that each is compared with.
_SAMPLE = 2000
_NEIGHBOURS = 3
#: Differences between names that are tried on all files.
_TRIED = 8
#: The first number of a name, and the last; with the same digits, and without leading zeros.
_NUMBERS = (
    *(r"(\d+)[^/]*$", r"(\d+)[^\d/]*\.[^.]+$"),
    *(r"(?<!\d)0*(\d+)[^/]*$", r"(?<!\d)0*(\d+)[^\d/]*\.[^.]+$"),
)
#: Word boundaries: at a separator, or after a number.
_WORDS = re.compile(rf"{SEPARATED.pattern}|(?<=\d)(?=\D)")

Options = dict[str, str]
Difference = tuple[str, str]


def stem_of(relative: str) -> str:
    """A file's name without folders and extension."""
    return split_ending(relative.rpartition("/")[2])[0]


def candidates(truth: Sequence[str], pred: Sequence[str]) -> Iterator[list[Options]]:
    """Options that may match the files of two folders, the plainest first."""
    names = [[stem_of(path) for path in side] for side in (truth, pred)]
    yield [_suffixed(ends) for ends in _best_differences(*names)]
    yield [*_sample_keys(truth, pred)]
    yield [*_samples_and_names(truth, pred)]
    backwards = [[name[::-1] for name in side] for side in names]
    yield [_prefixed(ends) for ends in _best_differences(*backwards)]
    for keys in (_NUMBERS[:2], _NUMBERS[2:]):
        yield [{"key": key} for key in keys if min(len(truth), len(pred)) > 1]


def plain_candidates(truth: Sequence[str], pred: Sequence[str]) -> list[Options]:
    """Suffixes that may match them, and folders with one mask each on one side."""
    names = ([stem_of(path) for path in side] for side in (truth, pred))
    return [*map(_suffixed, _best_differences(*names)), *_samples_and_names(truth, pred)]


def _likely_masks(paths: Sequence[str]) -> list[str]:
    """Names of files in folders, those of masks first; of others only if there are no masks."""
    counted = Counter(path.rpartition("/")[2] for path in paths if "/" in path)
    masks = [name for name in counted if not NOT_MASKS.search(name)] or [*counted]
    likely = sorted(masks, key=lambda name: (not OF_MASKS.search(name), -counted[name], name))
    return likely[:_TRIED]


def _sample_keys(truth: Sequence[str], pred: Sequence[str]) -> Iterator[Options]:
    """Keys that are folders with one mask each on both sides, whose files have other names."""
    folders = [{path.rpartition("/")[0] for path in side} for side in (truth, pred)]
    part = ".+" if folders[0] & folders[1] - {""} else "[^/]+"
    for name, other in product(_likely_masks(truth), _likely_masks(pred)):
        stems = {split_ending(file)[0] for file in (name, other)}
        if len(stems) > 1:
            either = "|".join(map(re.escape, sorted(stems)))
            yield {"key": rf"({part})/(?:{either})\.[^/]+$"}


def _samples_and_names(truth: Sequence[str], pred: Sequence[str]) -> Iterator[Options]:
    """Keys that are folders with one mask each on one side, and the names of files on the other."""
    for folders, others in ((truth, pred), (pred, truth)):
        stems = {stem_of(path) for path in others}
        if not (likely := _likely_masks(folders)):
            continue
        above = os.path.commonpath([path.rpartition("/")[0].rpartition("/")[0] for path in folders])
        prefix = rf"(?:{re.escape(above)}/)?" if above else ""
        for name in likely:
            ids = [path.split("/")[-2] for path in folders if path.endswith(f"/{name}")]
            rest = Counter(stem[len(id) :] for id in ids for stem in stems if stem.startswith(id))
            end = rest.most_common(1)[0][0] if rest else ""
            stem = re.escape(split_ending(name)[0])
            start, either = (
                ("", f"(?:/{stem}|{re.escape(end)})") if end else (f"^{prefix}", f"(?:/{stem})?")
            )
            yield {"key": rf"{start}([^/]+?){either}\.[^/]+$"}
            yield {"key": rf"(?<!\d)0*(\d+)[^\d/]*(?:/{stem})?\.[^/]+$"}


def _suffixed(ends: Difference) -> Options:
    sides = ("truth_suffix", "pred_suffix")
    return {side: end for side, end in zip(sides, ends, strict=True) if end}


def _prefixed(ends: Difference) -> Options:
    # The first alternative that matches is taken, so the longer prefix comes first.
    prefixes = sorted((re.escape(end[::-1]) for end in ends if end), key=len, reverse=True)
    optional = "?" if len(prefixes) < 2 else ""
    return {"key": rf"(?:^|/)(?:{'|'.join(prefixes)}){optional}([^/]+)\.[^.]+$"}


def _best_differences(truth: Sequence[str], pred: Sequence[str]) -> list[Difference]:
    """Name endings whose removal makes most names equal."""
    tried = [ends for ends, _ in _differences(truth, pred).most_common(_TRIED)]
    counted = {ends: _equal_without(truth, pred, ends) for ends in tried}
    most = max(counted.values(), default=0)
    best: list[Difference] = []
    for ends in sorted((e for e in tried if counted[e] == most), key=_plainness):
        # Skips equivalent cuts: "_gt" and "t" give the same keys beside "_good" and "ood".
        if not any(_are_equivalent(ends, other) for other in best):
            best.append(ends)
    return best


def _are_equivalent(ends: Difference, other: Difference) -> bool:
    """Whether two pairs of endings differ in the same text before both."""
    longer, shorter = sorted((ends, other), key=lambda pair: -len("".join(pair)))
    if not all(a.endswith(b) for a, b in zip(longer, shorter, strict=True)):
        return False
    return len({a[: len(a) - len(b)] for a, b in zip(longer, shorter, strict=True)}) == 1


def _plainness(ends: Difference) -> tuple[bool, int, int, Difference]:
    """Sort key: masks of classes first, then whole words and longer ones."""
    broken = sum(bool(end) and SEPARATED.match(end) is None for end in ends)
    return bool(NOT_MASKS.search(ends[0])), broken, -len("".join(ends)), ends


def _differences(truth: Sequence[str], pred: Sequence[str]) -> Counter[Difference]:
    """Endings that differ between neighbouring names of the two folders, counted."""
    others = sorted(pred)
    differences: Counter[Difference] = Counter()
    for name in truth[:: max(1, len(truth) // _SAMPLE)]:
        index = bisect(others, name)
        for other in others[max(0, index - _NEIGHBOURS) : index + _NEIGHBOURS]:
            common = common_start(name, other)
            # Also cut at word boundaries: else "_gt" and "_good" would differ in "t" and "ood".
            cuts = {len(common), *(m.start() for m in _WORDS.finditer(common))} - {0}
            for cut in sorted(cuts)[-2:]:
                ends = name[cut:], other[cut:]
                within = name[cut - 1].isdigit() and any(end[:1].isdigit() for end in ends)
                # If numbers differ, these are probably different images.
                are_others = within or any(re.fullmatch(r"[\W_]*\d[\d\W_]*", end) for end in ends)
                if ends[0] != ends[1] and not are_others:
                    differences[ends] += 1
    return differences


def common_start(a: str, b: str) -> str:
    """The common prefix of two names."""
    pairs = enumerate(zip(a, b, strict=False))
    return a[: next((i for i, (x, y) in pairs if x != y), min(len(a), len(b)))]


def _equal_without(truth: Sequence[str], pred: Sequence[str], ends: Difference) -> int:
    """Number of keys without the endings that one name of each side has."""
    keys = (
        Counter(
            name[: len(name) - len(end)] for name in names if name.endswith(end) and name != end
        )
        for names, end in zip((truth, pred), ends, strict=True)
    )
    first, second = ({key for key, number in counted.items() if number == 1} for counted in keys)
    return len(first & second)
