"""Sequences of images, such as frames of a video, as the names of the images show them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache, partial
from itertools import pairwise
from os.path import commonprefix
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Marks whose simple patterns, such as ``^[^_]+``, are preferred to the general one if they find
#: the same sequences.
_MARKS = "_/-"
_NUMBER = re.compile(r"(\d+)")
#: A position in a sequence has at most this many numbers.
_MOST_NUMBERS = 3

#: Fewer steps of a sequence do not show whether it is regular.
_FEW_STEPS = 3

Members = tuple[NDArray[np.intp], ...]
#: The place of each id by its texts and numbers, and its last number.
_Order = tuple[NDArray[np.intp], list[int | None]]


@dataclass(frozen=True, eq=False)
class Sequences:
    """Images in order, by the numbers in their names."""

    names: tuple[str, ...]
    members: Members
    """Indices of the images of each sequence, in order."""
    pattern: str = ""
    """The regular expression that finds the name of the sequence in an id."""
    steps: tuple[tuple[int, ...], ...] = ()
    """Differences between the numbers of neighbours in each sequence."""

    def __len__(self) -> int:
        return len(self.names)

    @property
    def images(self) -> int:
        """Number of images."""
        return sum(len(members) for members in self.members)

    @property
    def several(self) -> int:
        """Number of sequences with more than one image."""
        return sum(len(members) > 1 for members in self.members)

    @cached_property
    def common_steps(self) -> tuple[int | None, ...]:
        """The step between most neighbours of each sequence, as of frames; None if irregular.

        Sequences with few steps must have the step of a longer sequence, or one that most steps
        of such sequences have; single frames may be missing.
        """
        steps = self.steps or ((),) * len(self)
        usual = [_most_common(gaps) if len(gaps) >= _FEW_STEPS else None for gaps in steps]
        few = [step for gaps in steps if len(gaps) < _FEW_STEPS for step in gaps]
        together = _most_common(few) if len(few) >= _FEW_STEPS else None
        known = sorted(step for step in {*usual, together} if step is not None)
        return tuple(
            next((k for k in known if _has_step(gaps, k)), None)
            if step is None and len(gaps) < _FEW_STEPS
            else step
            for step, gaps in zip(usual, steps, strict=True)
        )

    def only(self, places: Sequence[int]) -> tuple[NDArray[np.intp], Sequences]:
        """The images of some sequences, and these sequences as places among the images."""
        images = [self.members[i] for i in places]
        ends = np.cumsum([len(part) for part in images])
        members = np.split(np.arange(ends[-1]), ends[:-1])
        names = tuple(self.names[i] for i in places)
        return np.concatenate(images), Sequences(names, tuple(members), self.pattern)

    def split_singles(self, places: Sequence[int], ids: Sequence[str]) -> Sequences:
        """The same, but each image of some sequences is single: a sequence with its own name."""
        rest = [i for i in range(len(self)) if i not in places]
        single = [image for i in places for image in self.members[i].tolist()]
        names = (*(self.names[i] for i in rest), *(ids[image] for image in single))
        kept = tuple(self.members[i] for i in rest)
        members = (*kept, *(np.array([image], dtype=np.intp) for image in single))
        return Sequences(names, members, self.pattern)


def _most_common(steps: Sequence[int]) -> int | None:
    """The step that more than half of the steps are equal to, if there is one."""
    step, number = next(iter(Counter(steps).most_common(1)), (None, 0))
    return step if 2 * number > len(steps) else None


def _has_step(steps: Sequence[int], step: int) -> bool:
    """Whether at least half of the steps are equal to this one, and others skip one frame."""
    frames = {step, 2 * step}
    return len(steps) > 0 and frames.issuperset(steps) and 2 * steps.count(step) >= len(steps)


def _order(parts: Sequence[Sequence[str]]) -> _Order:
    """The order of ids that are divided at their numbers, which are at odd places."""
    keys = [*map(_key_of, parts)]
    ranks = np.empty(len(keys), np.intp)
    ranks[sorted(range(len(keys)), key=keys.__getitem__)] = np.arange(len(keys))
    return ranks, [key[-2] if len(key) > 1 else None for key in keys]


def _key_of(texts: Sequence[str]) -> tuple[Any, ...]:
    """The texts and the values of the numbers of an id."""
    key: list[Any] = [*texts]
    key[1::2] = map(int, key[1::2])
    return tuple(key)


@lru_cache(maxsize=1)  # each metric asks for the same images again
def sequences_in_names(ids: tuple[str, ...]) -> tuple[Sequences, ...]:
    """Possible sequences of images, finest first: names with a common prefix, then numbers.

    The position in a sequence is the last number of a name, or the last two, and so on.
    Groupings in which most sequences are a single image are left out.
    """
    # The text that all names end with, from its first character that is not a digit.
    same = commonprefix([id[::-1] for id in ids])  # noqa: RUF071  (texts, no paths)
    ending = same[::-1].lstrip("0123456789")
    start = "(?s)^(.*?)" if any("\n" in id for id in ids) else "^(.*?)"
    parts = _parts_of(ids)
    after, fewest = len(_NUMBER.findall(ending)), min(map(len, parts)) // 2
    order = cache(partial(_order, parts))
    plain = cache(partial(_prefixes, ids))
    candidates: list[Sequences] = []
    for numbers in range(1, min(_MOST_NUMBERS, fewest - after) + 1):
        names = _alike("".join(texts[: -2 * (numbers + after)]) for texts in parts)
        sizes = np.array([*Counter(names).values()])
        if 2 * (sizes == 1).sum() <= len(sizes) and len(ids) >= 2 * len(sizes):
            place = r"\d+" + r"\D+\d+" * (numbers - 1)
            pattern = rf"{start}{place}\D*{re.escape(ending)}$"
            for mark in _MARKS:
                if (groups := plain(mark)) and _is_same(groups, names):
                    names, pattern = groups, f"^[^{mark}]+"
                    break
            candidates.append(_sequences(ids, names, pattern, order()))
    return tuple(candidates)


def sequences_of(ids: Sequence[str], names: Sequence[Any]) -> Sequences:
    """Sequences of given names, each in the order of the numbers in its ids."""
    return _sequences(ids, names, "", _order(_parts_of(ids)))


def _parts_of(ids: Sequence[str]) -> list[tuple[str, ...]]:
    """Ids divided at their numbers, which are at odd places."""
    # The garbage collector passes over tuples of texts, but not over millions of lists.
    return [tuple(_NUMBER.split(id)) for id in ids]


def _sequences(ids: Sequence[str], names: Sequence[Any], pattern: str, order: _Order) -> Sequences:
    ranks, last = order
    places = {name: place for place, name in enumerate(dict.fromkeys(names))}
    index = np.fromiter((places[name] for name in names), np.intp, len(names))
    ordered = np.lexsort((ranks, index))
    members = tuple(np.split(ordered, np.bincount(index).cumsum()[:-1]))
    # Positions, which arrays without names have, are not evidence of a sequence.
    if all(id == str(place) for place, id in enumerate(ids)):
        steps: tuple[tuple[int, ...], ...] = ((),) * len(members)
    else:
        steps = tuple(tuple(_steps([last[i] for i in part.tolist()])) for part in members)
    return Sequences(tuple(map(str, places)), members, pattern, steps)


def _steps(numbers: Sequence[int | None]) -> Iterator[int]:
    """Differences between the last numbers of neighbours."""
    for before, after in pairwise(numbers):
        if before is not None and after is not None and (step := after - before):
            yield step


def _prefixes(ids: Sequence[str], mark: str) -> list[str] | None:
    """The text of each id before a mark; None if one starts with it."""
    found = _alike(id.partition(mark)[0] for id in ids)
    return found if all(found) else None


def _alike(texts: Iterable[str]) -> list[str]:
    """Texts in which equal ones share one object, because many ids would fill the memory."""
    known: dict[str, str] = {}
    return [known.setdefault(text, text) for text in texts]


def _is_same(groups: Sequence[str], names: Sequence[str]) -> bool:
    """Whether two names of each image form the same sequences."""
    both = set(zip(groups, names, strict=True))
    return len(both) == len(set(groups)) == len(set(names))
