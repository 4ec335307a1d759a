"""Options that do not fit, refused before any work is done."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np

from segiou._arguments import check_integer
from segiou.classes import ClassOptions
from segiou.cli.gates import Gates, check_gates
from segiou.cli.inputs import groups_argument
from segiou.cli.options import option_of
from segiou.cli.writing import findings_format, report_format
from segiou.counts import Counts
from segiou.protocols import load_protocol
from segiou.runs.tables import check_score_name
from segiou.uncertainty import group_by_pattern, groups_of, statistic, units_of
from segiou.uncertainty.intervals import check_method

__all__ = ["check_findings", "check_images", "check_report", "wants_intervals"]

_MOST_RESAMPLES = 10_000_000
#: Options that say nothing without another: their defaults, and what they need.
_NEEDS = {
    "images": (None, ("html",)),
    "examples": (24, ("html",)),
    "worst_by": ("mean_iou", ("worst",)),
    "level": (0.95, ("intervals", "group_by")),
    "resamples": (10_000, ("intervals", "group_by")),
    "seed": (0, ("intervals", "group_by")),
    "method": ("percentile", ("intervals", "group_by")),
}


def check_report(
    parsed: argparse.Namespace, gates: Gates, classes: ClassOptions, *, boundary: bool
) -> None:
    """Refuse options of a report that do not fit its classes, or one another.

    Raises
    ------
    ValueError
        Naming the option and what would fit.
    """
    report_format(parsed)
    _check_needs(parsed)
    check_gates(gates, classes.labels.class_names, boundary=boundary)
    if parsed.protocol is not None:
        load_protocol(parsed.protocol)
    if parsed.worst:
        check_score_name(parsed.worst_by, classes)
    if wants_intervals(parsed):
        _check_resampling(parsed)


def wants_intervals(parsed: argparse.Namespace) -> bool:
    """Whether a report is to have intervals: groups say nothing without."""
    return bool(parsed.intervals or parsed.group_by)


def check_findings(parsed: argparse.Namespace) -> None:
    """Refuse options of findings that cannot be: format, rule, metric, names, intervals.

    Raises
    ------
    ValueError
        Naming what is wrong.
    """
    findings_format(parsed)
    if getattr(parsed, "protocol", None) is not None:
        load_protocol(parsed.protocol)
    if not hasattr(parsed, "metric"):
        return
    _check_needs(parsed)
    _check_metric(parsed.metric)
    _check_resampling(parsed)
    names = parsed.names.split(",") if parsed.names else []
    if names and len(names) != len(parsed.models):
        msg = (
            f"--names {parsed.names}: names {len(names)} models, but there are {len(parsed.models)}"
        )
        raise ValueError(msg)
    if len(set(names)) < len(names):
        msg = f"--names {parsed.names}: gives two models one name"
        raise ValueError(msg)


def _check_needs(parsed: argparse.Namespace) -> None:
    for name, (default, needed) in _NEEDS.items():
        given = getattr(parsed, name, default) != default
        # A command without the option that is needed always does what it stands for.
        if given and not any(getattr(parsed, other, True) for other in needed):
            both = f"{option_of(name)} says nothing without {option_of(needed[0])}"
            msg = f"{both}; give both or neither"
            raise ValueError(msg)


def _check_metric(metric: str) -> None:
    if metric != "boundary_iou":
        # Of two empty images, because only the one who computes it knows what there is.
        statistic(Counts(*np.zeros((4, 2, 1), dtype=np.int64)), metric, units=units_of(2))


def _check_resampling(parsed: argparse.Namespace) -> None:
    check_integer("--resamples", parsed.resamples, 2)
    if parsed.resamples > _MOST_RESAMPLES:
        msg = f"--resamples must be at most {_MOST_RESAMPLES}; beyond, no digit shown changes"
        raise ValueError(msg)
    check_integer("--seed", parsed.seed, 0)
    check_method(parsed.method, parsed.level)
    groups = groups_argument(parsed.group_by)
    if isinstance(groups, str):
        group_by_pattern((), groups)


def check_images(ids: Sequence[str], parsed: argparse.Namespace) -> None:
    """Refuse intervals over images that are too few, or have no group.

    Raises
    ------
    ValueError
        Saying how many there are.
    """
    groups = groups_of(ids, groups_argument(parsed.group_by))
    try:
        units_of(len(ids), groups)
    except ValueError as error:
        what = "leave out --intervals and --group-by, or score more images"
        msg = f"{error}: {what}"
        raise ValueError(msg) from error
