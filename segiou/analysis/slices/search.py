"""Scores of slices of a data set, by metadata of its images, against the rest of the data set."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

from segiou._support import text
from segiou._support.arguments import (
    check_flag,
    check_kind,
    check_level,
    check_number,
    names_options,
)
from segiou._support.table_files import check_columns
from segiou.analysis.slices.result import Slice, Slices, Trend, pairs_of
from segiou.analysis.slices.scored import Scored
from segiou.inference.dependence import design_of
from segiou.inference.metadata import Metadata, MetadataColumn, metadata_of
from segiou.inference.paired_runs import Common, check_runs, names_of, same_images
from segiou.inference.scored_runs import unit_of_pixels
from segiou.inference.significance import holm_adjust
from segiou.inference.units import Groups, HasRunCounts, Metric
from segiou.metrics.protocols import Protocol

#: Slices that share this part of their images are the same for a test.
_ALIKE = 0.8


@names_options
def slices(
    *runs: HasRunCounts,
    by: Any,
    columns: Sequence[str] | None = None,
    metric: Metric = "iou",
    key: str | None = None,
    bins: Mapping[str, Any] | None = None,
    against: str | None = None,
    search: bool = False,
    by_class: bool = False,
    mix: Mapping[str, Mapping[str, float]] | None = None,
    groups: Groups | None = None,
    protocol: Protocol | str | None = None,
    level: float = 0.95,
) -> Slices:
    """Compare each slice of one run, or of the difference of two, with the rest of the images.

    The rest are the images with another value of the column. The difference is over the classes
    that at least two units of both contain. Its limits combine the distances of the limits of
    both sides from their values (MOVER):

        low = s − r − √((s − l_s)² + (u_r − r)² − 2ρ (s − l_s)(u_r − r)), and high likewise,

    for slice s in (l_s, u_s) and rest r in (l_r, u_r), each with its own degrees of freedom, and
    with the jackknife correlation ρ of units that lie in both. p is the level at which the
    interval ends at 0. Slices with at least five units on both sides are tested. More than 20 000
    single images are summed over 20 000 random groups of them, which changes limits by about 1 %.

    Parameters
    ----------
    *runs : Run
        One run, or two on the same images.
    by : str, Path, mapping, sequence of mappings or DataFrame
        See :func:`segiou.inference.metadata.metadata_of`.
    columns : sequence of str, optional
        By default, all columns with 2 to 50 values.
    metric : str or callable
        See :func:`segiou.confidence_intervals`.
    key : str, optional
        Regular expression whose match in an id is the key of its row, such as the patient.
    bins : mapping of str to int or sequence of float, optional
        Number of quantiles, or edges, of numeric columns. Quantiles (4 by default) are shown,
        and a trend is tested; between edges are slices like others.
    against : str, optional
        A value, such as ``"day"``: slices are compared with its images instead of the rest.
    search : bool
        Also compare combinations of values of two columns, of at least 20 units.
    by_class : bool
        Also compare each class on each slice.
    mix : mapping of str to mapping of str to float, optional
        Shares of the values of columns, which sum to 1, such as those of a deployment:
        ``{"time": {"day": 0.7, "night": 0.3}}``. The score in this mix is the weighted mean of
        the scores of the slices, each over its own classes (post-stratification).
    groups, protocol
        See :func:`segiou.confidence_intervals`.
    level : float
        Between 0 and 1.

    Returns
    -------
    Slices

    References
    ----------
    G. Y. Zou, Psychological Methods 12 (2007), 399-413; G. Y. Zou and A. Donner, Statist. Med. 27
    (2008), 1693-1702 (MOVER); S. Holm, Scand. J. Statist. 6 (1979), 65-70; J. G. MacKinnon and
    H. White, J. Econometrics 29 (1985), 305-325 (errors of the trend).

    Examples
    --------
    >>> from segiou import score
    >>> truth = {f"{time}_{i}": [[0, 0, 1, 1]] for time in ("day", "night") for i in range(6)}
    >>> pred = {id: [[0, 0, 1, int("day" in id)]] for id in truth}
    >>> run = score(truth, pred, labels=2)
    >>> found = slices(run, by="(?P<time>[a-z]+)_")
    >>> [(one.name, round(one.score, 3)) for one in found]
    [('time=day', 1.0), ('time=night', 0.583)]
    """
    level = check_level("level", level)
    check_flag("search", search)
    check_flag("by_class", by_class)
    check_kind("mix", mix, (Mapping, type(None)), "a mapping from columns to shares of values")
    check_kind("against", against, (str, type(None)), "a value of a column")
    if not 1 <= len(check_runs("slices", runs)) <= 2:
        msg = f"slices expects one run, or two on the same images, got {len(runs)}"
        raise TypeError(msg)
    names = names_of(runs, None)
    images = same_images(runs, names, protocol).scored(metric)
    cases = [model.of_images(finite=True) for model in images]
    design = design_of(images[0].ids, len(cases[0]), lambda: cases, groups)
    table = metadata_of(by, images[0].ids or (), columns, key=key, bins=bins)
    alone = Common.of(images, design.images, None).scores
    scored = Scored(alone, images[0].present(), design.units, level, against, by_class)
    first = alone[0]
    _check_against(against, table)
    mix = check_mix(mix or {}, table)
    pairs = pairs_of(table.columns) if search else ()
    tested_slices, trends, tests = _tested(scored, [*table.columns, *pairs])
    return Slices(
        metric=first.score.name,
        title=first.names[0],
        names=names,
        score=scored.whole,
        images=len(cases[0]),
        unit=design.units.kind,
        units=len(design.units),
        level=level,
        better=first.score.better,
        score_unit=first.score.unit,
        tests=tests,
        slices=tested_slices,
        trends=trends,
        mixes=tuple(scored.mix(c, mix[c.name]) for c in table.columns if c.name in mix),
        missing=table.missing,
        skipped=table.skipped,
        alike=_alike(table),
        key=table.key,
        against=against or "",
        _table=table,
        _is_median=first.median_of is not None,
        _pixel_unit=unit_of_pixels(runs[0]),
    )


def _check_against(against: str | None, table: Metadata) -> None:
    known = [value for column in table.columns for value in column.values]
    if against is not None and against not in known:
        msg = f"no column has the value {against!r}; values: {text.listed(known)}"
        raise ValueError(msg + text.did_you_mean(against, known))


def check_mix(
    mix: Mapping[str, Mapping[str, float]], table: Metadata
) -> dict[str, dict[str, float]]:
    """The shares, with a sum of 1; ValueError if this is not due to rounding to per cent.

    ValueError also for unknown columns and values.
    """
    known = {column.name: column for column in table.columns}
    check_columns("the metadata", mix, [*known])
    for name, shares in mix.items():
        check_kind(f"mix[{name!r}]", shares, Mapping, "a mapping from values to shares")
        column = known[name]
        for value, share in shares.items():
            check_number(f"mix[{name!r}][{value!r}]", share)
        for value in shares:
            if value not in column.values or not column.inside(column.values.index(value)).any():
                hint = text.did_you_mean(value, column.values)
                msg = f"{name}={value} does not occur; values: {text.listed(column.values)}{hint}"
                raise ValueError(msg)
        total, rounding = sum(shares.values()), 0.005 * len(shares) + 1e-9
        if min(shares.values(), default=-1) < 0 or not abs(total - 1) <= rounding:
            msg = f"shares of {name} must be at least 0 and sum to 1, got {dict(shares)}"
            raise ValueError(msg)
    return {
        name: {value: share / sum(shares.values()) for value, share in shares.items()}
        for name, shares in mix.items()
    }


def _tested(
    scored: Scored, columns: Sequence[MetadataColumn]
) -> tuple[tuple[Slice, ...], tuple[Trend, ...], int]:
    """Slices and trends, p adjusted for all tests; two complements are one test."""
    every: list[tuple[tuple[Any, ...], Slice]] = []
    trends: list[tuple[tuple[Any, ...], Trend]] = []
    for at, column in enumerate(columns):
        is_halved = len(column.values) == 2 and not column.more
        for place, part in enumerate(scored.column(column)):
            every.append(((at, part.row if is_halved else place), part))
        trends += [((at,), trend) for trend in scored.trend(column)]
    p = {test: part.gap.p for test, part in every if not math.isnan(part.gap.p)}
    p |= {test: trend.p for test, trend in trends if not math.isnan(trend.p)}
    adjusted = dict(zip(p, holm_adjust(np.array([*p.values()])).tolist(), strict=True))
    return (
        tuple(
            replace(part, gap=replace(part.gap, p_holm=adjusted.get(test, math.nan)))
            for test, part in every
        ),
        tuple(replace(trend, p_holm=adjusted.get(test, math.nan)) for test, trend in trends),
        len(p),
    )


def _alike(table: Metadata) -> tuple[tuple[str, str], ...]:
    """Slices of different columns that share at least 80 % of their images."""
    every = [
        (column.name, f"{column.name}={value}", column.inside(code))
        for column in table.columns
        for code, value in enumerate(column.values)
    ]
    return tuple(
        (name, other)
        for (first, name, a), (second, other, b) in combinations(every, 2)
        if first != second and (a & b).sum() >= _ALIKE * max(int((a | b).sum()), 1)
    )
