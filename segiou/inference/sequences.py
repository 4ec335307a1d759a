"""Sequences of images, such as frames of a video, as the names of the images show them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from os.path import commonprefix
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou.inference.units import group_by_pattern

#: Simple patterns that are preferred to the general one if they find the same sequences.
_PLAIN_PATTERNS = (r"^[^_]+", r"^[^/]+", r"^[^-]+")

#: Fewer steps of a sequence do not show whether it is regular.
_FEW_STEPS = 3

Members = tuple[NDArray[np.intp], ...]


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
    def regular(self) -> tuple[bool, ...]:
        """Whether most neighbours in a sequence are equally far apart, as frames of a video are.

        Sequences with few steps must have the step of a longer sequence, or one that most steps
        of such sequences have; single frames may be missing.
        """
        steps = self.steps or ((),) * len(self)
        usual = [_most_common(gaps) if len(gaps) >= _FEW_STEPS else None for gaps in steps]
        few = [step for gaps in steps if len(gaps) < _FEW_STEPS for step in gaps]
        together = _most_common(few) if len(few) >= _FEW_STEPS else None
        known = [step for step in {*usual, together} if step is not None]
        return tuple(
            step is not None
            or (len(gaps) < _FEW_STEPS and any(_has_step(gaps, step) for step in known))
            for step, gaps in zip(usual, steps, strict=True)
        )

    def only(self, places: Sequence[int]) -> tuple[NDArray[np.intp], Sequences]:
        """The images of some sequences, and these sequences as places among the images."""
        images = [self.members[i] for i in places]
        ends = np.cumsum([len(part) for part in images])
        members = np.split(np.arange(ends[-1]), ends[:-1])
        names = tuple(self.names[i] for i in places)
        return np.concatenate(images), Sequences(names, tuple(members), self.pattern)

    def with_singles(self, places: Sequence[int], ids: Sequence[str]) -> Sequences:
        """The same, but each image of some sequences is single: a sequence with its own name."""
        rest = [i for i in range(len(self)) if i not in places]
        single = [image for i in places for image in self.members[i].tolist()]
        names = (*(self.names[i] for i in rest), *(ids[image] for image in single))
        kept = tuple(self.members[i] for i in rest)
        members = (*kept, *(np.array([image], dtype=np.intp) for image in single))
        return Sequences(names, members, self.pattern)


def _most_common(steps: Sequence[int]) -> int | None:
    """The step that more than half of the steps are equal to, if there is one."""
    values, counts = np.unique(np.array(steps, dtype=object), return_counts=True)
    if not len(values) or 2 * counts.max() <= len(steps):
        return None
    return int(values[counts.argmax()])


def _has_step(steps: Sequence[int], step: int) -> bool:
    """Whether at least half of the steps are equal to this one, and others skip one frame."""
    frames = {step, 2 * step}
    return len(steps) > 0 and frames.issuperset(steps) and 2 * steps.count(step) >= len(steps)


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
    candidates: list[Sequences] = []
    for numbers in (1, 2, 3):
        place = r"\d+" + r"\D+\d+" * (numbers - 1)
        pattern = rf"{start}{place}\D*{re.escape(ending)}$"
        try:
            names = group_by_pattern(ids, pattern)
        except ValueError:
            break
        sizes = np.unique(names, return_counts=True)[1]
        if 2 * (sizes == 1).sum() <= len(sizes) and len(ids) >= 2 * len(sizes):
            candidates.append(_plainest(ids, names) or sequences_of(ids, names, pattern))
    return tuple(candidates)


def sequences_of(ids: Sequence[str], names: Sequence[Any], pattern: str = "") -> Sequences:
    """Sequences of given names, each in the order of the numbers in its ids."""
    members: dict[Any, list[int]] = {}
    for i, name in enumerate(names):
        members.setdefault(name, []).append(i)

    def order(i: int) -> list[tuple[int, str]]:
        """Sort key of an id: texts by character, numbers by value."""
        parts = re.split(r"(\d+)", ids[i])
        return [(int(part), "") if k % 2 else (-1, part) for k, part in enumerate(parts)]

    ordered = [sorted(part, key=order) for part in members.values()]
    # Positions, which arrays without names have, are not evidence of a sequence.
    positions = all(id == str(place) for place, id in enumerate(ids))
    steps = tuple(() if positions else tuple(_steps([ids[i] for i in part])) for part in ordered)
    arrays = tuple(np.array(part, dtype=np.intp) for part in ordered)
    return Sequences(tuple(map(str, members)), arrays, pattern, steps)


def _steps(ids: Sequence[str]) -> Iterator[int]:
    """Differences between the last numbers of neighbours."""
    numbers = [re.findall(r"\d+", id) for id in ids]
    for before, after in pairwise(numbers):
        if before and after and (step := int(after[-1]) - int(before[-1])):
            yield step


def _plainest(ids: Sequence[str], names: Sequence[str]) -> Sequences | None:
    """The same sequences by a simple expression, if there is one."""
    for pattern in _PLAIN_PATTERNS:
        with suppress(ValueError):
            groups = group_by_pattern(ids, pattern)
            if len(set(zip(groups, names, strict=True))) == len(set(groups)) == len(set(names)):
                return sequences_of(ids, groups, pattern)
    return None
