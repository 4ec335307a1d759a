"""Runs by their counts at boundaries, for comparisons of Boundary IoU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou.comparison.pairing import Paired, PairedRun, paired
from segiou.counts import Counts
from segiou.protocols import Protocol
from segiou.runs.boundaries import bands_of

__all__ = ["paired_bands"]


@dataclass(frozen=True, eq=False)
class _Bands:
    name: str
    ids: tuple[str, ...]
    counts: Counts
    class_names: tuple[str, ...]
    include: NDArray[np.bool_]
    protocol: Protocol


def paired_bands(runs: Sequence[PairedRun], names: Sequence[str], protocol: Protocol) -> Paired:
    """Bring the band counts of runs, at their first width, to the same images.

    Raises
    ------
    ValueError
        If a run has none, or they are of different bands.
    """
    bands = []
    for run, name in zip(runs, names, strict=True):
        counts = bands_of(run, name)
        if (found := _band(run)) != (first := _band(runs[0])):
            msg = (
                f"Boundary IoU is measured at {first} in {names[0]} and at {found} in {name}; "
                "score both with the same options"
            )
            raise ValueError(msg)
        parts = (run.class_names, run.include, run.protocol)
        bands.append(_Bands(run.name, run.ids, counts, *parts))
    return paired(bands, names=names, protocol=protocol)


def _band(run: Any) -> str:
    options = run.boundary_options
    border = "" if options.band_border else ", the image border no boundary"
    return f"{options.widths[0]}{border}"
