"""Two folders → pairs of files, by key and never by order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from segiou.pairing.keys import Keys, candidates, keys_by, matched, pattern_of, rule_text
from segiou.pairing.proposals import proposals

__all__ = ["Pair", "Pairing", "pair_folders"]


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
    hint : str
        Where files are left over: options that would pair more of them, in
        words. Empty where none are found.
    """

    pairs: tuple[Pair, ...]
    missing: tuple[str, ...]
    extra: tuple[str, ...]
    duplicates: tuple[tuple[str, tuple[str, ...]], ...]
    rule: str
    hint: str = ""


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
        End of the names that is no part of the key, such as
        ``"_gtFine_labelIds"``, or with the file's ending
        ``"_gtFine_labelIds.png"``; files without it are passed over.
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
    truth_keys, pred_keys, rule = _keyed(truth, pred, truth_suffix, pred_suffix, key)
    found = _pairing(truth_keys, pred_keys, rule)
    if not (found.missing or found.extra) and found.pairs:
        return found
    unmet = [
        f"no {side} file ends in {suffix!r}"
        for side, suffix, keys in (
            ("truth", truth_suffix, truth_keys),
            ("predicted", pred_suffix, pred_keys),
        )
        if suffix and not keys
    ]
    return replace(found, hint="; ".join([*unmet, *_proposed(truth, pred, len(found.pairs))]))


def _proposed(truth: Mapping[str, str], pred: Mapping[str, str], pairs: int) -> list[str]:
    """What would pair more files: nothing that is given, or something else."""
    truth_keys, pred_keys, rule = _keyed(truth, pred, None, None, None)
    alone = len(truth_keys.keys() & pred_keys.keys())
    if alone > pairs:
        return [f"{alone} go together without these options, by {rule}"]
    return ["; or ".join(found)] if (found := proposals(truth, pred, pairs)) else []


def _keyed(
    truth: Mapping[str, str],
    pred: Mapping[str, str],
    truth_suffix: str | None,
    pred_suffix: str | None,
    key: str | None,
) -> tuple[Keys, Keys, str]:
    """The files by key, and the rule that made the keys."""
    if key is not None:
        pattern = pattern_of(key)
        return matched(truth, pattern), matched(pred, pattern), f"key {key!r} searched in the path"
    best: tuple[int, int] | None = None
    chosen = None
    rules = candidates(truth, pred, truth_suffix, pred_suffix)
    for attempt, (t, p) in enumerate(rules):
        truth_keys, pred_keys = keys_by(t, truth), keys_by(p, pred)
        score = (len(truth_keys.keys() & pred_keys.keys()), -attempt)
        if best is None or score > best:
            best, chosen = score, (truth_keys, pred_keys, rule_text(t, p))
    assert chosen is not None
    return chosen


def _pairing(truth: Keys, pred: Keys, rule: str) -> Pairing:
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
