"""Pairing predictions with truth by key, never by order."""

from __future__ import annotations

import math
import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product

from segiou._support.arguments import check_kind, compiled
from segiou._support.numbers import percent
from segiou._support.text import composed, plural
from segiou.masks.finding import MASK_SUFFIXES, is_mask, split_ending
from segiou.masks.sources.mask_places import OF_MASKS, PHOTOS
from segiou.masks.sources.name_differences import (
    SEPARATED,
    candidates,
    common_start,
    plain_candidates,
    stem_of,
)

#: Images in a file of annotations or a table, which are never photos beside masks.
_IN_A_FILE = re.compile(r"\.(?:json|xml|csv|tsv|parquet)/", re.IGNORECASE)


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
        proposed = "; or ".join(proposal.text for proposal in self.proposals)
        return "; ".join(filter(None, (*self.unmet, proposed)))


@dataclass(frozen=True, slots=True)
class Proposal:
    """Options that match more files.

    Attributes
    ----------
    pairing : Pairing
        The pairs that they make.
    options : mapping of str to str
        Arguments of :func:`pair_folders`.
    mean_iou : float
        Mean IoU of some of the pairs; NaN if it is unknown.
    places : mapping of str to str
        Places to pass as truth or predictions instead of those given, by argument.
    """

    pairing: Pairing
    options: Mapping[str, str]
    mean_iou: float = math.nan
    places: Mapping[str, str] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The options, with those that skip what they leave without a partner."""
        count = plural(len(self.pairing.pairs), "pair")
        verb = "matches" if len(self.pairing.pairs) == 1 else "match"
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
        left = {"missing": self.pairing.missing, "extra": self.pairing.extra}
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
    Cityscapes, ADE20K, Pascal VOC, LoveDA, ETCI, nuScenes, SemanticKITTI and ScanNet, which
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
    for name, files in (("truth", truth), ("pred", pred)):
        check_kind(name, files, Mapping, "a mapping of names to paths, as of find_masks")
    texts = {"truth_suffix": truth_suffix, "pred_suffix": pred_suffix, "key": key}
    for name, text in texts.items():
        if text is not None:
            check_kind(name, text, str, "text")
    truth, pred = _normalized_sides(truth, pred)
    if not any((suffix or "").lower().endswith(PHOTOS) for suffix in (truth_suffix, pred_suffix)):
        truth, pred = _masks_only(truth), _masks_only(pred)
    pairing = _paired(truth, pred, truth_suffix, pred_suffix, key)
    if pairing.pairs and (not _left(pairing) or not (pairing.missing or pairing.extra)):
        return pairing
    suffixes = {"truth": truth_suffix, "predicted": pred_suffix}
    unmet = [
        f"no {side} file ends with {suffix!r}"
        for (side, suffix), files in zip(suffixes.items(), (truth, pred), strict=True)
        if suffix and not any(_ends_with(name, suffix) for name in files)
    ]
    alone = _pairing(*_keyed(truth, pred))
    if len(alone.pairs) > len(pairing.pairs) and not alone.duplicates:
        number = len(alone.pairs)
        unmet.append(f"{number} pairs match without these options, by {alone.rule}")
    else:
        pairing = replace(pairing, proposals=_proposals(truth, pred, len(pairing.pairs)))
    return replace(pairing, unmet=tuple(unmet))


def _normalized_sides(*sides: Mapping[str, str]) -> list[Mapping[str, str]]:
    """The files by names in one Unicode form, unless two files of a side differ only in it."""
    renamed = [{composed(name): path for name, path in files.items()} for files in sides]
    is_clear = all(len(new) == len(old) for new, old in zip(renamed, sides, strict=True))
    return [*renamed] if is_clear else [*sides]


def _masks_only(files: Mapping[str, str]) -> Mapping[str, str]:
    """The files without JPEG photos of the same names as masks, such as ``a.jpg`` of ``a.png``."""
    photos = {
        name
        for name, path in files.items()
        if name.lower().endswith(PHOTOS) and not _IN_A_FILE.search(path)
    }
    if len(photos) in (0, len(files)):
        return files
    masks = {split_ending(name)[0] for name in files.keys() - photos}
    return {
        name: path
        for name, path in files.items()
        if name not in photos or split_ending(name)[0] not in masks
    }


def _ends_with(name: str, suffix: str) -> bool:
    return bool(_files_by_key({name: name}, _Rule(True, *_suffixes({}, suffix)[0]).key_of))


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
        for cut in SEPARATED.finditer(stem)
        if stem[: cut.start()] in stems
    )
    suffix, number = suffixes.most_common(1)[0] if suffixes else ("", 0)
    return suffix if OF_MASKS.search(suffix) and 5 * number >= 2 * len(files) else ""


def listed_files(
    truth: Mapping[str, str], ids: Sequence[str], truth_suffix: str | None, key: str | None
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Truth files selected by ids or file names, and the ids without a file."""
    if key is not None:
        (truth,) = _normalized_sides(truth)
        keyed = _files_by_key(truth, _searched(key))
        wanted = {path for id in ids for path in keyed.get(composed(id), ())}
        unknown = tuple(id for id in ids if composed(id) not in keyed)
    else:
        names = {id if is_mask(id) else f"{id}.png": id for id in ids}
        pairing = pair_folders(truth, names, truth_suffix=truth_suffix)
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
    (
        "ScanNet",
        r"(scene\d{4}_\d\d)/label(?:-filt)?/0*(\d+)\.png$",
        r"(scene\d{4}_\d\d)(?:/|_|/[^/]+/)0*(\d+)\.[^./]+$",
    ),
)


def _published(truth: Mapping[str, str], pred: Mapping[str, str], plain: Pairing) -> Pairing:
    """The pairing by a published layout, if it leaves fewer files unmatched."""
    for whose, of_truth, of_pred in _LAYOUTS:
        truth_keys = _files_by_key(truth, partial(_groups_of, re.compile(of_truth)))
        pred_keys = _files_by_key(pred, partial(_groups_of, re.compile(of_pred)))
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
            _files_by_key(truth, find),
            _files_by_key(pred, find),
            f"key {key!r} searched in the relative path",
        )

    def rules() -> Iterator[tuple[_Rule, _Rule]]:
        if truth_suffix is pred_suffix is None:
            # Tried first, because looking for suffixes is rarely needed.
            yield (_Rule(False, "", "", False),) * 2
        sides = _suffixes(truth, truth_suffix), _suffixes(pred, pred_suffix)
        # All names of one file are common to it, also its number.
        is_single = 1 in (len(truth), len(pred)) and truth_suffix is pred_suffix is None
        for flat, of_truth, of_pred in product((False, True), *sides):
            if not (is_single and _differ_in_numbers(of_truth[0], of_pred[0])):
                yield _Rule(flat, *of_truth), _Rule(flat, *of_pred)

    best = -1
    # Plainest first, so that it wins among rules that match equally many files.
    for pair in rules():
        keys = _files_by_key(truth, pair[0].key_of), _files_by_key(pred, pair[1].key_of)
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


def _files_by_key(files: Mapping[str, str], key_of: Callable[[str], str | None]) -> _Keys:
    keys: _Keys = {}
    for relative, path in files.items():
        if (key := key_of(relative)) is not None:
            keys.setdefault(key, []).append(path)
    return keys


def _searched(key: str) -> Callable[[str], str | None]:
    """A function that extracts a file's key with a regular expression."""
    pattern = compiled(composed(key), f"key {key!r} is not a valid regular expression")

    def find(relative: str) -> str | None:
        if (match := pattern.search(relative)) is None:
            return None
        key = match.groupdict().get("key")
        return key or (match[1] if pattern.groups else match[0]) or relative

    return find


def _suffixes(files: Mapping[str, str], suffix: str | None) -> list[tuple[str, str, bool]]:
    """Suffixes to try, the required extension, and whether the suffix is required."""
    if suffix is not None:
        ending = next((e for e in MASK_SUFFIXES if suffix.lower().endswith(e)), "")
        return [(composed(suffix[: len(suffix) - len(ending)]), ending, True)]
    backwards = [stem_of(name)[::-1] for name in files]
    common = common_start(min(backwards), max(backwards))[::-1]
    # Each cut at a separator is a candidate: "_gtFine_labelIds", then "_labelIds".
    cuts = [common[m.start() :] for m in SEPARATED.finditer(common)]
    return [(suffix, "", False) for suffix in ("", *cuts)]


def _differ_in_numbers(*suffixes: str) -> bool:
    """Whether both suffixes have numbers, and others."""
    numbers = [[*map(int, re.findall(r"[0-9]+", suffix))] for suffix in suffixes]
    return all(numbers) and numbers[0] != numbers[1]


def _rule_text(truth: _Rule, pred: _Rule) -> str:
    what = "file name" if truth.flat else "relative path"
    ends = [
        f"{rule.suffix + rule.ending!r} of the {side}"
        for rule, side in ((truth, "truth"), (pred, "predictions"))
        if rule.suffix + rule.ending
    ]
    return what + (f" without {' and '.join(ends)}" if ends else "")


#: Most choices listed.
_CHOICES = 5


def _proposals(
    truth: Mapping[str, str], pred: Mapping[str, str], pairs: int
) -> tuple[Proposal, ...]:
    """Options that match more files than now, and at least half of them; each was tried."""
    least = max(pairs + 1, -(-min(len(truth), len(pred)) // 2))
    for several in candidates([*truth], [*pred]):
        tried = [Proposal(_paired(truth, pred, **options), options) for options in several]
        tried = [proposal for proposal in tried if not proposal.pairing.duplicates]
        most = max((len(proposal.pairing.pairs) for proposal in tried), default=0)
        if most >= least:
            best = [proposal for proposal in tried if len(proposal.pairing.pairs) == most]
            return tuple(best[:_CHOICES])
    return ()


def instead(pairing: Pairing, truth: Mapping[str, str], pred: Mapping[str, str]) -> Pairing:
    """The pairing with proposals of as many pairs, with other truth files than those it has."""
    truth, pred = _normalized_sides(truth, pred)
    paired = {pair.truth for pair in pairing.pairs}
    others = {name: path for name, path in truth.items() if path not in paired}
    if not others:
        return pairing
    several = plain_candidates([*others], [*pred])
    tried = [Proposal(_paired(truth, pred, **options), options) for options in several if options]
    clear = [
        proposal
        for proposal in tried
        if len(proposal.pairing.pairs) >= len(pairing.pairs) and not proposal.pairing.duplicates
        if proposal.pairing.pairs != pairing.pairs
    ]
    duplicates = () if clear else pairing.duplicates
    return replace(pairing, proposals=tuple(clear[:_CHOICES]), duplicates=duplicates)
