"""Pairing predictions with truth by key, never by order."""

from __future__ import annotations

import math
import os
import re
import shlex
from bisect import bisect
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product

from segiou._support.names import composed
from segiou._support.numbers import percent
from segiou._support.text import plural
from segiou.masks.finding import MASK_SUFFIXES, is_mask, split_ending
from segiou.masks.sources.mask_places import NOT_MASKS, OF_MASKS, PHOTOS


@dataclass(frozen=True, slots=True)
class Pair:
    """A truth file and its prediction.

    Attributes
    ----------
    id : str
        The shared key.
    truth, pred : str
        Paths.
    """

    id: str
    truth: str
    pred: str

    @property
    def sides(self) -> tuple[str, str]:
        """The paths."""
        return self.truth, self.pred


@dataclass(frozen=True, slots=True)
class Pairing:
    """The result of matching the files of two folders.

    Attributes
    ----------
    pairs : tuple of Pair
        Matched files, sorted by key.
    missing : tuple of str
        Truth files without a prediction.
    extra : tuple of str
        Predictions without a truth file.
    duplicates : tuple of (str, tuple of str)
        Keys shared by several files of one folder, with these files.
    rule : str
        How the keys were derived, as text.
    unmet : tuple of str
        Why the options given match few files, as text.
    proposals : tuple of Proposal
        Options that match more files.
    unknown : tuple of str
        Requested ids that no truth file has.
    skipped : (int, int)
        Truth files and predictions to which the options given assign no key.
    masks_suffix : str
        Suffix that half of the truth files have, such as ``"_mask.png"``, if the other
        half has their names without it and may be images or masks; else empty.
    """

    pairs: tuple[Pair, ...]
    missing: tuple[str, ...]
    extra: tuple[str, ...]
    duplicates: tuple[tuple[str, tuple[str, ...]], ...]
    rule: str
    unmet: tuple[str, ...] = ()
    proposals: tuple[Proposal, ...] = ()
    unknown: tuple[str, ...] = ()
    skipped: tuple[int, int] = (0, 0)
    masks_suffix: str = ""

    @property
    def hint(self) -> str:
        """Options that would match more files, as text; empty if there are none."""
        proposed = "; or ".join(one.text for one in self.proposals)
        return "; ".join(filter(None, (*self.unmet, proposed)))


@dataclass(frozen=True, slots=True)
class Proposal:
    """Options that match more files.

    Attributes
    ----------
    found : Pairing
        The pairs that they make.
    options : mapping of str to str
        Arguments of :func:`pair_folders`.
    mean_iou : float
        Mean IoU of some of the pairs; NaN if it is unknown.
    places : mapping of str to str
        Places to pass as truth or predictions instead of those given, by argument.
    """

    found: Pairing
    options: Mapping[str, str]
    mean_iou: float = math.nan
    places: Mapping[str, str] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The options, with those that skip what they leave without a partner."""
        count = plural(len(self.found.pairs), "pair")
        verb = "matches" if len(self.found.pairs) == 1 else "match"
        how = [f"{name}={_literal(text)}" for name, text in self._arguments.items()]
        text = f"{count} {verb}"
        text += f" with {', '.join(how)} ({self.command})" if how else ""
        text += "" if math.isnan(self.mean_iou) else f", mean IoU {percent(self.mean_iou)}"
        if not self.places:
            return text
        several = ", ".join(map(repr, self.places.values()))
        return f"pass the place of the masks: {several} ({text})"

    @property
    def command(self) -> str:
        """The options as a shell takes them."""
        several = []
        for name, text in self._arguments.items():
            # A value that begins with a hyphen would be parsed as an option.
            joint = "=" if text.startswith("-") else " "
            several.append(f"--{name.replace('_', '-')}{joint}{shlex.quote(text)}")
        return " ".join(several)

    @property
    def _arguments(self) -> dict[str, str]:
        left = {"missing": self.found.missing, "extra": self.found.extra}
        return {**self.options, **{side: "skip" for side, files in left.items() if files}}


def _literal(text: str) -> str:
    """A text in Python, without doubled backslashes."""
    return f"r'{text}'" if "\\" in text and "'" not in text else repr(text)


def pair_folders(
    truth: Mapping[str, str],
    pred: Mapping[str, str],
    *,
    truth_suffix: str | None = None,
    pred_suffix: str | None = None,
    key: str | None = None,
) -> Pairing:
    """Pair the files of two folders by key.

    The key is the relative path without the file extension and without a name
    suffix. Suffixes shared by all files of a folder are detected. If the folders
    are nested differently, file names alone are tried. The rule that matches
    most files is used and reported in the result. The published layouts of
    Cityscapes, ADE20K, Pascal VOC, LoveDA, ETCI, nuScenes and SemanticKITTI, which
    mix masks with other files, are recognised.

    Parameters
    ----------
    truth, pred : mapping of str to str
        As returned by :func:`find_masks`.
    truth_suffix, pred_suffix : str, optional
        Name suffix to remove from the key, such as ``"_gtFine_labelIds"``,
        optionally with the extension: ``"_gtFine_labelIds.png"``. Files
        without it are skipped.
    key : str, optional
        A regular expression searched in the relative path. The key is its group
        ``key``, else its first group, else the whole match.

    Raises
    ------
    ValueError
        If ``key`` is not a valid regular expression.

    Examples
    --------
    >>> found = pair_folders({"a_gt.png": "t/a_gt.png"}, {"a_pred.png": "p/a_pred.png"},
    ...                      truth_suffix="_gt", pred_suffix="_pred")
    >>> found.pairs
    (Pair(id='a', truth='t/a_gt.png', pred='p/a_pred.png'),)
    """
    truth, pred = _in_one_form(truth, pred)
    if not any((suffix or "").lower().endswith(PHOTOS) for suffix in (truth_suffix, pred_suffix)):
        truth, pred = _without_photos(truth), _without_photos(pred)
    pairing = _paired(truth, pred, truth_suffix, pred_suffix, key)
    if pairing.pairs and (not _left(pairing) or not (pairing.missing or pairing.extra)):
        return pairing
    asked = {"truth": truth_suffix, "predicted": pred_suffix}
    unmet = [
        f"no {side} file ends with {suffix!r}"
        for (side, suffix), files in zip(asked.items(), (truth, pred), strict=True)
        if suffix and not any(_ends_with(name, suffix) for name in files)
    ]
    alone = _pairing(*_keyed(truth, pred))
    if len(alone.pairs) > len(pairing.pairs) and not alone.duplicates:
        number = len(alone.pairs)
        unmet.append(f"{number} pairs match without these options, by {alone.rule}")
    else:
        pairing = replace(pairing, proposals=_proposals(truth, pred, len(pairing.pairs)))
    return replace(pairing, unmet=tuple(unmet))


def _in_one_form(*sides: Mapping[str, str]) -> list[Mapping[str, str]]:
    """The files by names in one Unicode form, unless two files of a side differ only in it."""
    named = [{composed(name): path for name, path in files.items()} for files in sides]
    is_clear = all(len(new) == len(old) for new, old in zip(named, sides, strict=True))
    return [*named] if is_clear else [*sides]


def _without_photos(files: Mapping[str, str]) -> Mapping[str, str]:
    """The files without JPEG photos of the same names as masks, such as ``a.jpg`` of ``a.png``."""
    photos = {name for name in files if name.lower().endswith(PHOTOS)}
    if len(photos) in (0, len(files)):
        return files
    masks = {split_ending(name)[0] for name in files.keys() - photos}
    return {
        name: path
        for name, path in files.items()
        if name not in photos or split_ending(name)[0] not in masks
    }


def _ends_with(name: str, suffix: str) -> bool:
    return bool(_by_key({name: name}, _Rule(True, *_suffixes({}, suffix)[0]).key_of))


def _paired(
    truth: Mapping[str, str],
    pred: Mapping[str, str],
    truth_suffix: str | None = None,
    pred_suffix: str | None = None,
    key: str | None = None,
) -> Pairing:
    """The pairs under these options, without advice."""
    if truth_suffix is key is None and (suffix := _suffix_of_masks(truth)):
        pairing = _paired(truth, pred, suffix, pred_suffix)
        others = [name for name in truth if not name.endswith(suffix)]
        is_clear = all(split_ending(name)[1].lower() in PHOTOS for name in others)
        return pairing if is_clear else replace(pairing, masks_suffix=suffix)
    of_truth, of_pred, rule = _keyed(truth, pred, truth_suffix, pred_suffix, key)
    pairing = _pairing(of_truth, of_pred, rule)
    if (truth_suffix, pred_suffix, key) != (None, None, None):
        # Suffixes may distinguish the sides of one folder.
        several = (*of_truth.values(), *of_pred.values())
        taken = {path for paths in several for path in paths}
        skipped = [sum(path not in taken for path in side.values()) for side in (truth, pred)]
        return replace(pairing, skipped=(skipped[0], skipped[1]))
    if pairing.pairs and not _left(pairing):
        return pairing
    return _published(truth, pred, pairing)


def _suffix_of_masks(files: Mapping[str, str]) -> str:
    """The suffix of half of the files if the other half has their names without it."""
    parts = [split_ending(name) for name in files]
    stems = {stem for stem, _ in parts}
    suffixes = Counter(
        f"{stem[cut.start() :]}{ending}"
        for stem, ending in parts
        for cut in _SEPARATED.finditer(stem)
        if stem[: cut.start()] in stems
    )
    suffix, number = suffixes.most_common(1)[0] if suffixes else ("", 0)
    return suffix if OF_MASKS.search(suffix) and 5 * number >= 2 * len(files) else ""


def listed_files(
    truth: Mapping[str, str], ids: Sequence[str], truth_suffix: str | None, key: str | None
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Truth files selected by ids or file names, and the ids without a file."""
    if key is not None:
        (truth,) = _in_one_form(truth)
        keyed = _by_key(truth, _searched(key))
        wanted = {path for id in ids for path in keyed.get(composed(id), ())}
        unknown = tuple(id for id in ids if composed(id) not in keyed)
    else:
        named = {id if is_mask(id) else f"{id}.png": id for id in ids}
        pairing = pair_folders(truth, named, truth_suffix=truth_suffix)
        matched = {pair.id for pair in pairing.pairs}
        wanted = {pair.truth for pair in pairing.pairs}
        wanted |= {path for key, paths in pairing.duplicates if key in matched for path in paths}
        unknown = tuple(id for id in ids if id in set(pairing.extra))
    return {name: path for name, path in truth.items() if path in wanted}, unknown


#: Published data set layouts: name, and patterns that capture the key in the path of a truth file
#: and of a prediction.
_LAYOUTS = (
    (
        "Cityscapes",
        r"([a-z-]+_\d{6}_\d{6})_gt(?:Fine|Coarse)_labelIds\.png$",
        r"([a-z-]+_\d{6}_\d{6})[^/]*$",
    ),
    ("ADE20K", r"(ADE_(?:train|val)_\d{8})(?:_seg)?\.png$", r"(ADE_(?:train|val)_\d{8})[^/]*$"),
    ("Pascal VOC", r"(?:^|/)SegmentationClass/(.+)\.png$", r"([^/]+)\.[^./]+$"),
    ("nuScenes", r"([0-9a-f]{32})_lidarseg\.bin$", r"([0-9a-f]{32})[^/]*$"),
    ("LoveDA", r"(?:^|/)masks_png/(\d+)\.png$", r"(\d+)[^/\d]*$"),
    ("ETCI", r"(?:^|/)flood_label/([^/]+)\.png$", r"([^/]+_x-\d+_y-\d+)[^/]*$"),
    (
        "SemanticKITTI",
        r"(\d\d)/labels/(\d{6})\.label$",
        r"(\d\d)/(?:[^/\d]+/)?(\d{6})\.label$",
    ),
)


def _published(truth: Mapping[str, str], pred: Mapping[str, str], plain: Pairing) -> Pairing:
    """The pairing by a published layout, if it leaves fewer files unmatched."""
    for whose, of_truth, of_pred in _LAYOUTS:
        truth_keys = _by_key(truth, partial(_groups_of, re.compile(of_truth)))
        pred_keys = _by_key(pred, partial(_groups_of, re.compile(of_pred)))
        pairing = _pairing(truth_keys, pred_keys, f"{whose} file names")
        if len(pairing.pairs) >= max(1, len(plain.pairs)) and _left(pairing) < _left(plain):
            return pairing
    return plain


def _groups_of(pattern: re.Pattern[str], relative: str) -> str | None:
    match = pattern.search(relative)
    return match and "/".join(match.groups())


def _left(pairing: Pairing) -> int:
    doubled = sum(len(paths) for _, paths in pairing.duplicates)
    return len(pairing.missing) + len(pairing.extra) + doubled


def _keyed(
    truth: Mapping[str, str],
    pred: Mapping[str, str],
    truth_suffix: str | None = None,
    pred_suffix: str | None = None,
    key: str | None = None,
) -> tuple[_Keys, _Keys, str]:
    """The files by key, and the rule as text."""
    if key is not None:
        find = _searched(key)
        return (
            _by_key(truth, find),
            _by_key(pred, find),
            f"key {key!r} searched in the relative path",
        )

    def rules() -> Iterator[tuple[_Rule, _Rule]]:
        if truth_suffix is pred_suffix is None:
            # Tried first, because looking for suffixes is rarely needed.
            yield (_Rule(False, "", "", False),) * 2
        sides = _suffixes(truth, truth_suffix), _suffixes(pred, pred_suffix)
        for flat, of_truth, of_pred in product((False, True), *sides):
            yield _Rule(flat, *of_truth), _Rule(flat, *of_pred)

    best = -1
    # Plainest first, so that it wins among rules that match equally many files.
    for pair in rules():
        keys = _by_key(truth, pair[0].key_of), _by_key(pred, pair[1].key_of)
        if (count := len(keys[0].keys() & keys[1].keys())) > best:
            best, chosen = count, (*keys, _rule_text(*pair))
        if best == min(len(truth), len(pred)):  # no rule can match more
            break
    return chosen


def _pairing(truth: _Keys, pred: _Keys, rule: str) -> Pairing:
    duplicates = [
        (key, tuple(paths)) for side in (truth, pred) for key, paths in side.items() if paths[1:]
    ]
    shared = sorted(truth.keys() & pred.keys())
    return Pairing(
        tuple(Pair(key, truth[key][0], pred[key][0]) for key in shared),
        tuple(path for key in sorted(truth.keys() - pred.keys()) for path in truth[key]),
        tuple(path for key in sorted(pred.keys() - truth.keys()) for path in pred[key]),
        tuple(sorted(duplicates)),
        rule,
    )


#: Files by key.
_Keys = dict[str, list[str]]
_SEPARATED = re.compile(r"[_\-. ]")


@dataclass(frozen=True, slots=True)
class _Rule:
    """Rule that derives a key from a file's relative path."""

    #: Whether folders are excluded from the key.
    flat: bool
    #: Removed from the end of the name.
    suffix: str
    #: The only accepted extension, such as ``".png"``; empty for any.
    ending: str
    #: Whether files without the suffix are skipped.
    only_suffixed: bool

    def key_of(self, relative: str) -> str | None:
        """The key of a file; None if it has none."""
        folder, _, name = relative.rpartition("/")
        stem, ending = split_ending(name)
        if self.ending and ending.lower() != self.ending:
            return None
        if self.suffix and stem.endswith(self.suffix):
            stem = stem[: -len(self.suffix)]
        elif self.only_suffixed and self.suffix:
            return None
        if self.flat:
            return stem
        return (f"{folder}/{stem}" if folder else stem) if stem else None


def _by_key(files: Mapping[str, str], key_of: Callable[[str], str | None]) -> _Keys:
    keys: _Keys = {}
    for relative, path in files.items():
        if (key := key_of(relative)) is not None:
            keys.setdefault(key, []).append(path)
    return keys


def _searched(key: str) -> Callable[[str], str | None]:
    """A function that extracts a file's key with a regular expression."""
    try:
        pattern = re.compile(composed(key))
    except re.error as error:
        msg = f"key {key!r} is not a valid regular expression: {error}"
        raise ValueError(msg) from error

    def find(relative: str) -> str | None:
        if (match := pattern.search(relative)) is None:
            return None
        named = match.groupdict().get("key")
        return named or (match[1] if pattern.groups else match[0]) or relative

    return find


def _suffixes(files: Mapping[str, str], suffix: str | None) -> list[tuple[str, str, bool]]:
    """Suffixes to try, the required extension, and whether the suffix is required."""
    if suffix is not None:
        ending = next((e for e in MASK_SUFFIXES if suffix.lower().endswith(e)), "")
        return [(composed(suffix[: len(suffix) - len(ending)]), ending, True)]
    backwards = [_stem(name)[::-1] for name in files]
    common = _common(min(backwards), max(backwards))[::-1]
    # Each cut at a separator is a candidate: "_gtFine_labelIds", then "_labelIds".
    cuts = [common[m.start() :] for m in _SEPARATED.finditer(common)]
    return [(suffix, "", False) for suffix in ("", *cuts)]


def _stem(relative: str) -> str:
    """A file's name without folders and extension."""
    return split_ending(relative.rpartition("/")[2])[0]


def _rule_text(truth: _Rule, pred: _Rule) -> str:
    what = "file name" if truth.flat else "relative path"
    ends = [
        f"{rule.suffix + rule.ending!r} of the {side}"
        for rule, side in ((truth, "truth"), (pred, "predictions"))
        if rule.suffix + rule.ending
    ]
    return what + (f" without {' and '.join(ends)}" if ends else "")


#: Names sampled for comparison, and the neighbours in the other folder that each is compared with.
_SAMPLE = 2000
_NEIGHBOURS = 3
#: Differences between names that are tried on all files.
_TRIED = 8
#: Most choices listed.
_CHOICES = 5
#: The first number of a name, and the last; with the same digits, and without leading zeros.
_NUMBERS = (
    *(r"(\d+)[^/]*$", r"(\d+)[^\d/]*\.[^.]+$"),
    *(r"(?<!\d)0*(\d+)[^/]*$", r"(?<!\d)0*(\d+)[^\d/]*\.[^.]+$"),
)
#: Word boundaries: at a separator, or after a number.
_WORDS = re.compile(rf"{_SEPARATED.pattern}|(?<=\d)(?=\D)")

Options = dict[str, str]
Difference = tuple[str, str]


def _proposals(
    truth: Mapping[str, str], pred: Mapping[str, str], pairs: int
) -> tuple[Proposal, ...]:
    """Options that match more files than now, and at least half of them; each was tried."""
    least = max(pairs + 1, -(-min(len(truth), len(pred)) // 2))
    for candidates in _candidates([*truth], [*pred]):
        tried = [Proposal(_paired(truth, pred, **options), options) for options in candidates]
        tried = [one for one in tried if not one.found.duplicates]
        most = max((len(one.found.pairs) for one in tried), default=0)
        if most >= least:
            return tuple([one for one in tried if len(one.found.pairs) == most][:_CHOICES])
    return ()


def instead(pairing: Pairing, truth: Mapping[str, str], pred: Mapping[str, str]) -> Pairing:
    """The pairing with proposals of as many pairs, with other truth files than those it has."""
    truth, pred = _in_one_form(truth, pred)
    paired = {pair.truth for pair in pairing.pairs}
    others = {name: path for name, path in truth.items() if path not in paired}
    if not others:
        return pairing
    stems = ([*map(_stem, side)] for side in (others, pred))
    several = [_suffixed(ends) for ends in _best_differences(*stems)]
    several += _of_samples([*others], [*pred])
    tried = [Proposal(_paired(truth, pred, **options), options) for options in several if options]
    fit = [one for one in tried if len(one.found.pairs) >= len(pairing.pairs)]
    clear = [one for one in fit if not one.found.duplicates and one.found.pairs != pairing.pairs]
    duplicates = () if clear else pairing.duplicates
    return replace(pairing, proposals=tuple(clear[:_CHOICES]), duplicates=duplicates)


def _candidates(truth: Sequence[str], pred: Sequence[str]) -> Iterator[list[Options]]:
    """Options that may match the files of two folders, the plainest first."""
    names = [[_stem(path) for path in side] for side in (truth, pred)]
    yield [_suffixed(ends) for ends in _best_differences(*names)]
    yield [*_in_samples(truth, pred)]
    yield [*_of_samples(truth, pred)]
    backwards = [[name[::-1] for name in side] for side in names]
    yield [_prefixed(ends) for ends in _best_differences(*backwards)]
    for keys in (_NUMBERS[:2], _NUMBERS[2:]):
        yield [{"key": key} for key in keys if min(len(truth), len(pred)) > 1]


def _likely_masks(paths: Sequence[str]) -> list[str]:
    """Names of files in folders, those of masks first; of others only if there are no masks."""
    counted = Counter(path.rpartition("/")[2] for path in paths if "/" in path)
    masks = [name for name in counted if not NOT_MASKS.search(name)] or [*counted]
    likely = sorted(masks, key=lambda name: (not OF_MASKS.search(name), -counted[name], name))
    return likely[:_TRIED]


def _in_samples(truth: Sequence[str], pred: Sequence[str]) -> Iterator[Options]:
    """Keys that are folders with one mask each on both sides, whose files have other names."""
    folders = [{path.rpartition("/")[0] for path in side} for side in (truth, pred)]
    part = ".+" if folders[0] & folders[1] - {""} else "[^/]+"
    for name, other in product(_likely_masks(truth), _likely_masks(pred)):
        stems = {split_ending(one)[0] for one in (name, other)}
        if len(stems) > 1:
            either = "|".join(map(re.escape, sorted(stems)))
            yield {"key": rf"({part})/(?:{either})\.[^/]+$"}


def _of_samples(truth: Sequence[str], pred: Sequence[str]) -> Iterator[Options]:
    """Keys that are folders with one mask each on one side, and the names of files on the other."""
    for folders, others in ((truth, pred), (pred, truth)):
        stems = {_stem(path) for path in others}
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
        # Skips equivalent cuts: "_gt" and "t" give the same keys.
        cuts = (zip(ends, other, strict=True) for other in best)
        if not any(all(a.endswith(b) or b.endswith(a) for a, b in pairs) for pairs in cuts):
            best.append(ends)
    return best


def _plainness(ends: Difference) -> tuple[bool, int, int, Difference]:
    """Sort key: masks of classes first, then whole words and longer ones."""
    broken = sum(bool(end) and _SEPARATED.match(end) is None for end in ends)
    return bool(NOT_MASKS.search(ends[0])), broken, -len("".join(ends)), ends


def _differences(truth: Sequence[str], pred: Sequence[str]) -> Counter[Difference]:
    """Endings that differ between neighbouring names of the two folders, counted."""
    others = sorted(pred)
    differences: Counter[Difference] = Counter()
    for name in truth[:: max(1, len(truth) // _SAMPLE)]:
        place = bisect(others, name)
        for other in others[max(0, place - _NEIGHBOURS) : place + _NEIGHBOURS]:
            common = _common(name, other)
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


def _common(a: str, b: str) -> str:
    """The common prefix of two names."""
    pairs = enumerate(zip(a, b, strict=False))
    return a[: next((i for i, (x, y) in pairs if x != y), min(len(a), len(b)))]


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
