"""Runs brought to the same images in the same order, or refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from segiou._arguments import read_several
from segiou.counts import Counts
from segiou.protocols import Protocol as Rule

__all__ = ["DifferentImagesError", "Paired", "PairedRun", "paired"]


class PairedRun(Protocol):
    """What a comparison needs of a run; :class:`segiou.Run` has it."""

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def ids(self) -> tuple[str, ...]: ...  # noqa: D102
    @property
    def counts(self) -> Counts: ...  # noqa: D102
    @property
    def class_names(self) -> tuple[str, ...]: ...  # noqa: D102
    @property
    def include(self) -> NDArray[np.bool_]: ...  # noqa: D102
    @property
    def protocol(self) -> Rule: ...  # noqa: D102


class DifferentImagesError(ValueError):
    """Runs that were not scored on the same images.

    Attributes
    ----------
    only : mapping of str to tuple of str
        Run name → ids that it has and another one has not.
    """

    def __init__(self, only: Mapping[str, Sequence[str]]) -> None:
        self.only = {name: tuple(ids) for name, ids in only.items()}
        shown = "; ".join(f"only in {name}: {_some(ids)}" for name, ids in self.only.items() if ids)
        super().__init__(
            f"the runs were scored on different images, and a paired comparison needs the same: "
            f"{shown}; score all models on the same images"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return (DifferentImagesError, (self.only,))


@dataclass(frozen=True, eq=False)
class Paired:
    """Runs on the same images, in the order of the first.

    Attributes
    ----------
    names, ids, class_names : tuple of str
    counts : tuple of Counts of shape (N, C)
        One per run.
    include : ndarray of bool, shape (C,)
    protocol : Protocol
    """

    names: tuple[str, ...]
    ids: tuple[str, ...]
    class_names: tuple[str, ...]
    counts: tuple[Counts, ...]
    include: NDArray[np.bool_]
    protocol: Rule


def paired(
    runs: Sequence[PairedRun],
    *,
    names: Sequence[str] | None = None,
    protocol: Rule | None = None,
) -> Paired:
    """Bring runs to the same images, and refuse what cannot be compared.

    Raises
    ------
    DifferentImagesError
        If the runs have different images; they are named.
    ValueError
        If ids are not unique, classes, excluded classes or protocols differ,
        or an image has other truth pixels in one run than in another.
    """
    called = _names(runs, names)
    for name, run in zip(called, runs, strict=True):
        _check_unique(name, run.ids)
    first = runs[0]
    for name, run in zip(called[1:], runs[1:], strict=True):
        _check_classes(first, run, called[0], name)
        if protocol is None and run.protocol != first.protocol:
            msg = (
                f"{called[0]} was scored by protocol {first.protocol.name!r} and {name} by "
                f"{run.protocol.name!r}; say which to compare by: protocol=..."
            )
            raise ValueError(msg)
    counts = _same_order(runs, called)
    for name, other in zip(called[1:], counts[1:], strict=True):
        _check_truth(first, counts[0], other, called[0], name)
    return Paired(
        called,
        tuple(first.ids),
        tuple(first.class_names),
        counts,
        np.asarray(first.include, dtype=bool),
        protocol or first.protocol,
    )


def _some(ids: Sequence[str]) -> str:
    more = f" and {len(ids) - 3} more" if len(ids) > 3 else ""
    return f"{', '.join(ids[:3])}{more}"


def _names(runs: Sequence[PairedRun], names: Sequence[str] | None) -> tuple[str, ...]:
    letters = [chr(ord("A") + i) if i < 26 else f"run {i + 1}" for i in range(len(runs))]
    if names is not None:
        given = read_several("names", names, "a sequence of names, one a run")
        if len(given) != len(runs) or len(set(given)) != len(runs):
            msg = f"names must be {len(runs)} different ones, one per run, got {given}"
            raise ValueError(msg)
        return tuple(given)
    own = [run.name or letter for run, letter in zip(runs, letters, strict=True)]
    return tuple(
        f"{name} ({letter})" if own.count(name) > 1 else name
        for name, letter in zip(own, letters, strict=True)
    )


def _check_unique(name: str, ids: Sequence[str]) -> None:
    if len(set(ids)) < len(ids):
        twice = [i for i in dict.fromkeys(ids) if list(ids).count(i) > 1]
        msg = f"{name} has several images of one id: {_some(twice)}; ids tell images apart"
        raise ValueError(msg)


def _check_classes(a: PairedRun, b: PairedRun, name_a: str, name_b: str) -> None:
    if tuple(a.class_names) != tuple(b.class_names):
        only_a = [c for c in a.class_names if c not in b.class_names]
        only_b = [c for c in b.class_names if c not in a.class_names]
        what = "; ".join(
            f"only in {name}: {_some(only)}"
            for name, only in ((name_a, only_a), (name_b, only_b))
            if only
        )
        msg = f"{name_a} and {name_b} have different classes: {what or 'the order differs'}"
        raise ValueError(msg)
    differ = np.flatnonzero(np.asarray(a.include) != np.asarray(b.include)).tolist()
    if differ:
        msg = (
            f"{name_a} and {name_b} leave different classes out of their means: "
            f"{_some([a.class_names[c] for c in differ])}; exclude the same from both"
        )
        raise ValueError(msg)


def _same_order(runs: Sequence[PairedRun], names: Sequence[str]) -> tuple[Counts, ...]:
    common = set(runs[0].ids).intersection(*(run.ids for run in runs[1:]))
    only = {
        name: [i for i in run.ids if i not in common] for name, run in zip(names, runs, strict=True)
    }
    if any(only.values()):
        raise DifferentImagesError(only)
    found = [runs[0].counts]
    for run in runs[1:]:
        place = {name: i for i, name in enumerate(run.ids)}
        found.append(run.counts[np.array([place[name] for name in runs[0].ids], dtype=np.intp)])
    return tuple(found)


def _check_truth(first: PairedRun, a: Counts, b: Counts, name_a: str, name_b: str) -> None:
    rows = np.flatnonzero((a.truth != b.truth).any(-1))
    if not len(rows):
        return
    i = int(rows[0])
    c = int(np.flatnonzero(a.truth[i] != b.truth[i])[0])
    more = f", and {len(rows) - 1} more images" if len(rows) > 1 else ""
    msg = (
        f"{name_a} and {name_b} were scored against different truths: image {first.ids[i]} has "
        f"{a.truth[i, c]} pixels of {first.class_names[c]} in one and {b.truth[i, c]} in the "
        f"other{more}; score both against the same masks with the same ignored values"
    )
    raise ValueError(msg)
