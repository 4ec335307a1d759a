"""Runs brought to the same images, and what cannot be compared refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou._support.arguments import read_several
from segiou.analysis.scored_images import ScoredRun, band_counts
from segiou.analysis.units import some_of
from segiou.counting.counts import Counts
from segiou.metrics.protocols import Protocol


class DifferentImagesError(ValueError):
    """Runs that were not scored on the same images.

    Attributes
    ----------
    only : mapping of str to tuple of str
        Run name → ids that it has and another one has not.
    """

    def __init__(self, only: Mapping[str, Sequence[str]]) -> None:
        self.only = {name: tuple(ids) for name, ids in only.items()}
        shown = "; ".join(
            f"only in {name}: {some_of(ids)}" for name, ids in self.only.items() if ids
        )
        super().__init__(
            f"the runs were scored on different images, and a paired comparison needs the same: "
            f"{shown}; score all models on the same images"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return (DifferentImagesError, (self.only,))


@dataclass(frozen=True, eq=False)
class PairedRuns:
    """Counts (N, C) of each run on the same images, in the order of the first."""

    names: tuple[str, ...]
    ids: tuple[str, ...]
    class_names: tuple[str, ...]
    counts: tuple[Counts, ...]
    include: NDArray[np.bool_]
    protocol: Protocol


def paired_runs(
    runs: Sequence[ScoredRun], names: Sequence[str] | None, protocol: Protocol | None
) -> PairedRuns:
    """Bring runs to the same images, and refuse what cannot be compared."""
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
    _check_images(runs, called)
    return PairedRuns(
        called,
        tuple(first.ids),
        tuple(first.class_names),
        _same_order(runs, called, [run.counts for run in runs]),
        (protocol or first.protocol).include_of(first),
        protocol or first.protocol,
    )


def with_band_counts(same: PairedRuns, runs: Sequence[ScoredRun]) -> PairedRuns:
    """The same runs by their counts at boundaries, at their first width."""
    counts = [band_counts(run, name) for run, name in zip(runs, same.names, strict=True)]
    bands = [_band(run) for run in runs]
    for band, name in zip(bands, same.names, strict=True):
        if band != bands[0]:
            msg = (
                f"Boundary IoU is measured at {bands[0]} in {same.names[0]} and at {band} in "
                f"{name}; score both with the same options"
            )
            raise ValueError(msg)
    return replace(same, counts=_same_order(runs, same.names, counts))


def _band(run: Any) -> str:
    options = run.boundary_options
    border = "" if options.band_border else ", the image border no boundary"
    return f"{options.widths[0]}{border}"


def _names(runs: Sequence[ScoredRun], names: Sequence[str] | None) -> tuple[str, ...]:
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
        msg = f"{name} has several images of one id: {some_of(twice)}; ids tell images apart"
        raise ValueError(msg)


def _check_classes(a: ScoredRun, b: ScoredRun, name_a: str, name_b: str) -> None:
    if tuple(a.class_names) != tuple(b.class_names):
        only_a = [c for c in a.class_names if c not in b.class_names]
        only_b = [c for c in b.class_names if c not in a.class_names]
        what = _only_in({name_a: only_a, name_b: only_b}) or "the order differs"
        msg = f"{name_a} and {name_b} have different classes: {what}"
        raise ValueError(msg)
    differ = np.flatnonzero(np.asarray(a.include) != np.asarray(b.include)).tolist()
    if differ:
        msg = (
            f"{name_a} and {name_b} leave different classes out of their means: "
            f"{some_of([a.class_names[c] for c in differ])}; exclude the same from both"
        )
        raise ValueError(msg)


def _only_in(names: Mapping[str, Sequence[str]]) -> str:
    return "; ".join(f"only in {run}: {some_of(only)}" for run, only in names.items() if only)


def _check_images(runs: Sequence[ScoredRun], names: Sequence[str]) -> None:
    common = set(runs[0].ids).intersection(*(run.ids for run in runs[1:]))
    only = {
        name: [i for i in run.ids if i not in common] for name, run in zip(names, runs, strict=True)
    }
    if any(only.values()):
        raise DifferentImagesError(only)


def _same_order(
    runs: Sequence[ScoredRun], names: Sequence[str], counts: Sequence[Counts]
) -> tuple[Counts, ...]:
    """Counts of each run in the order of the first; they must be of the same truth."""
    first, found = runs[0], [counts[0]]
    for name, run, own in zip(names[1:], runs[1:], counts[1:], strict=True):
        place = {id: i for i, id in enumerate(run.ids)}
        found.append(own[np.array([place[id] for id in first.ids], dtype=np.intp)])
        _check_truth(first, found[0], found[-1], names[0], name)
    return tuple(found)


def _check_truth(first: ScoredRun, a: Counts, b: Counts, name_a: str, name_b: str) -> None:
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
