"""Options that have no effect without, or beside, others."""

from __future__ import annotations

import argparse
from pathlib import Path

from segiou._support.text import listed
from segiou.cli.console import note
from segiou.cli.options import option_of
from segiou.measures.guard import is_own
from segiou.measures.registry import measure_keys, measure_of

#: Options of thresholds.
THRESHOLDS = ("fail_under", "fail_over", "require")
_GATES = (*THRESHOLDS, "fail_if_worse", "fail_if_worse_slice")
_WITH_INTERVALS = ("intervals", "group_by", "blocks", "baseline")
#: Options with those of which they require one. Commands without the first of these always behave
#: as if it were given.
_NEEDS = (
    ("images", ("html", "errors", "panel")),
    ("examples", ("html",)),
    ("overwrite", ("plots", "html", "errors")),
    ("overwrite", ("consensus",)),
    ("consensus_by", ("consensus",)),
    ("worst_by", ("worst", "errors", "panel")),
    ("errors_of", ("panel", "errors")),
    ("panel_width", ("panel",)),
    ("ids", ("panel", "truth")),
    (
        "spacing",
        (
            *("boundary", "boundary_tolerance", "surface", "empty", "min_size"),
            *("volume", "lesions"),
        ),
    ),
    ("things", ("objects",)),
    ("min_size", ("objects",)),
    ("junit", _GATES),
    ("confident", _GATES),
    ("fail_if_worse", ("baseline",)),
    ("fail_if_worse_slice", ("baseline",)),
    ("fail_if_worse_slice", ("slices",)),
    ("common", ("baseline",)),
    ("slices_key", ("slices",)),
    ("bins", ("slices",)),
    ("mix", ("slices",)),
    ("resamples", _WITH_INTERVALS),
    ("seed", _WITH_INTERVALS),
    ("seed", ("random_sample",)),
    ("method", _WITH_INTERVALS),
    ("level", (*_WITH_INTERVALS, "slices")),
)
#: Options with one that takes their place.
_REPLACED = (("map", "coordinates"), ("workers", "processes"), ("workers", "dask"))


def check_needs(parsed: argparse.Namespace) -> None:
    """ValueError for options that would silently have no effect."""
    for name, needed in _NEEDS:
        others = {option_of(n): _value(parsed, n) for n in needed if hasattr(parsed, n)}
        is_unset = (value is None or value is False or value == [] for value in others.values())
        if not (_is_given(parsed, name) and option_of(needed[0]) in others and all(is_unset)):
            continue
        if not _is_for_measure(parsed, name):
            msg = f"{option_of(name)} has no effect without {listed([*others], last=' or ')}"
            raise ValueError(msg)
    for name, other in _REPLACED:
        if _is_given(parsed, name) and getattr(parsed, other, None) is not None:
            msg = f"{option_of(name)} has no effect with {option_of(other)}; omit one of them"
            raise ValueError(msg)
    if getattr(parsed, "slices", None) and parsed.blocks and not parsed.quiet:
        note(
            "--blocks has no effect on --slices, which divide sequences into batches of each slice"
        )


def _value(parsed: argparse.Namespace, name: str) -> object:
    """The value of an option; the page of suspects may be the main output."""
    value = getattr(parsed, name)
    if name == "html" and value is None and parsed.name_of_command == "suspects":
        from segiou.report.formats import format_of

        return parsed.format == "html" or format_of(Path(parsed.output or "")) == "html"
    return value


def _is_for_measure(parsed: argparse.Namespace, name: str) -> bool:
    """Whether an option is one that a measure which is asked for may use."""
    if name != "spacing":
        return False
    kinds = (measure_of(key) for key in measure_keys() if getattr(parsed, key, None))
    return any(kind.uses_spacing or not is_own(kind) for kind in kinds)


def _is_given(parsed: argparse.Namespace, name: str) -> bool:
    default = parsed.command.get_default(name)
    return bool(getattr(parsed, name, default) != default)
