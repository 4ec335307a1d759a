"""The images of a run with the score of a name: of classes, groups, cases or a measure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from segiou._support.arguments import check_kind, read_several, refuse_kind
from segiou._support.text import did_you_mean
from segiou.counting.counts import Counts
from segiou.inference.count_scores import aggregated, class_score
from segiou.inference.statistics import ScoredImages, scored_counts
from segiou.inference.units import HasCounts, ImageParts, Metric
from segiou.measures.registry import flag_of, measure_of_score
from segiou.measures.score import Score
from segiou.measures.score_names import ScoreName, members_of, not_measured, read_name
from segiou.metrics.pixel_scores import CASE_SCORES, PIXEL_SCORES
from segiou.metrics.protocols import Protocol, load_protocol

#: Numbers of the counts of all images that are kept in memory, 800 MB.
_MOST_COUNTS = 10**8


def scored_images(
    source: Counts | HasCounts,
    metric: Metric,
    protocol: Protocol | str | None = None,
    ids: Sequence[str] | None = None,
    class_names: Sequence[str] | None = None,
    include: Any = None,
) -> ScoredImages:
    """Per-image counts of a source, with the metric."""
    if isinstance(source, Counts):
        wanted = "a sequence, one id per image"
        checked = None if ids is None else tuple(read_several("ids", ids, wanted))
        for name in checked or ():
            check_kind("an id", name, str, "text")
        return scored_counts(
            source,
            metric,
            "segiou" if protocol is None else protocol,
            class_names,
            include,
            checked,
        )
    run: Any = source
    if not hasattr(run, "ids"):
        raise _no_images(run)
    if ids is not None:
        msg = "ids are those of the run or report; omit ids, which apply to bare counts"
        raise ValueError(msg)
    protocol = load_protocol(run.protocol if protocol is None else protocol)
    run = run_under(run, protocol)
    named, key = read_metric(run, metric)
    source_name = "the report" if hasattr(run, "per_image") else "the run"
    if (images := images_of_name(run, named, protocol, source_name, key)) is not None:
        return images
    names = run.class_names if class_names is None else class_names
    include = protocol.include_of(run) if include is None else include
    counts = _class_counts(run)
    rule = metric, protocol, names, include, tuple(run.ids) or None
    return scored_counts(counts, *rule, pixel_unit=unit_of_pixels(run))


def _class_counts(run: Any) -> Counts | ImageParts:
    """Counts of classes in each image of a run or report."""
    number, classes = len(run.ids), len(run.class_names)
    if hasattr(run, "count_parts") and 4 * number * classes > _MOST_COUNTS:
        # In parts, which are read again each time, because all would not fit into memory.
        return ImageParts(number, classes, run.count_parts)
    counts: Counts | None = run.per_image if hasattr(run, "per_image") else run.counts
    if counts is None:
        msg = "the report has no per-image counts; pass the run it was made from"
        raise ValueError(msg)
    return counts


def read_metric(run: Any, metric: Metric) -> tuple[ScoreName, str | None]:
    """The name of a score, and the key of the measure of a run that has it, if any."""
    plans = getattr(run, "score_plans", {})
    named = read_name(metric, plans) if isinstance(metric, str) else ScoreName("")
    return named, measure_of_score(named.score, plans.values())


def images_of_name(
    run: Any, name: ScoreName, protocol: Protocol, source: str, key: str | None
) -> ScoredImages | None:
    """Images with a score of a measure, a group of classes or cases; None for single classes."""
    is_report = hasattr(run, "per_image")
    groups = run.groups if is_report else run.options.groups if hasattr(run, "options") else ()
    members = members_of(name, run.class_names, groups, getattr(run, "options", None))
    if members is None:
        return None if key is None else _scored_parts(run, name, source, key)
    if not hasattr(run, "structure_counts"):
        msg = f"{name}: the report has no counts of groups per image; pass the run"
        raise ValueError(msg)
    if name.score in CASE_SCORES and not has_volumes(run.provenance):
        raise not_measured(name)
    counted, rule = structure_arguments(name, members, groups, protocol)
    names = tuple(members)
    counts = run.structure_counts(counted, **rule)[:, : len(names)]
    images = ImageParts(len(run.ids), len(names), lambda: iter([counts]))
    score_by = partial(aggregated, structure_score(name.score, names))
    return ScoredImages(images, score_by, tuple(run.ids) or None).of_row(name.row)


def structure_arguments(
    name: ScoreName,
    members: Mapping[str, Sequence[int]],
    groups: Iterable[tuple[str, Sequence[int]]],
    protocol: Protocol,
) -> tuple[list[Sequence[int]], dict[str, bool]]:
    """Arguments of `structure_counts`, whose first columns are the structures of a score.

    All groups follow if the pixels whose truth is in none of them are skipped.
    """
    is_grouped = protocol.groups == "grouped" and name.score in PIXEL_SCORES
    others = [classes for _, classes in groups] if is_grouped else []
    return [*members.values(), *others], {"grouped_truth_only": is_grouped}


def structure_score(name: str, structures: Sequence[str]) -> Score:
    """A score of Counts (N, K) of structures: over the cases, or pooled under every protocol."""
    metric = (PIXEL_SCORES | CASE_SCORES)[name]
    if name in CASE_SCORES and name != "dice_pooled":
        return Score.of_cases(name, metric.title, structures, metric.function)
    every = np.ones(len(structures), bool)
    return class_score(name, metric.function, tuple(structures), every, load_protocol("segiou"))


def clusters_of(provenance: Mapping[str, Any]) -> str:
    """The match of the clusters in the predictions of a run; empty if they are classes."""
    first = next(iter(provenance.get("merged", ())), provenance)
    return str(first.get("clusters", ""))


def has_volumes(provenance: Mapping[str, Any]) -> bool:
    """Whether masks are volumes, those of a merged run included."""
    parts = (provenance, *provenance.get("merged", ()))
    return any(part.get("masks") == "volumes" for part in parts)


def unit_of_pixels(source: Any) -> str:
    """Unit of the counts of a run or report, in words."""
    return "voxels" if has_volumes(getattr(source, "provenance", {})) else "pixels"


def run_under(run: Any, protocol: Protocol) -> Any:
    """A run without the pixels that a protocol ignores; reports and others have none of them."""
    return run.under(protocol) if hasattr(run, "under") else run


def hint_for(source: Any) -> str:
    """How to open a run, if its file was passed."""
    is_file = isinstance(source, (str, Path))
    return "; open a run file with segiou.Run.open" if is_file else ""


def _no_images(source: Any) -> TypeError:
    wanted = "a run, a report or per-image counts (segiou.Counts of shape (N, C))"
    if not hasattr(source, "counts"):
        return TypeError(f"{refuse_kind('counts', source, wanted)}{hint_for(source)}")
    return TypeError(
        f"a {type(source).__name__} has no per-image counts, which resampling needs; pass {wanted}"
    )


def _scored_parts(run: Any, score_name: ScoreName, name: str, key: str) -> ScoredImages:
    """Per-image parts of the measure that has a score."""
    metric = score_name.score
    plans = getattr(run, "score_plans", {})
    if (plan := plans.get(metric)) is None:
        noun = key.removesuffix("s")
        flag = flag_of(key, str(metric))
        msg = f"{name} has no {noun} counts; rescore with measures=[{key!r}] ({flag})"
        if others := [n for n, own in plans.items() if own.key == key]:
            hint = did_you_mean(metric, others)
            msg = f"{name} has {noun} counts without {metric}; rescore with {flag}{hint}"
        raise ValueError(msg)
    images = ImageParts.of(run.parts(plan.key))
    score_by = partial(aggregated, plan.scores[metric])
    return ScoredImages(images, score_by, tuple(run.ids) or None).of_row(score_name.row)
