"""Runs on the same images: check that they can be compared, and bring them into one order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from segiou._support.arguments import read_several
from segiou._support.text import nouns, plural
from segiou.counting.counts import Counts
from segiou.inference.count_scores import Aggregate, class_score
from segiou.inference.scored_runs import (
    hint_for,
    images_of_name,
    read_metric,
    run_under,
    unit_of_pixels,
)
from segiou.inference.statistics import ScoredImages, Statistic, scored_counts
from segiou.inference.units import HasRunCounts, ImageParts, Metric, Units, some_of
from segiou.measures.score import Score
from segiou.metrics.per_class import iou
from segiou.metrics.protocols import Protocol, load_protocol


class DifferentImagesError(ValueError):
    """Runs that were not scored on the same images.

    Parameters
    ----------
    only : mapping of str to sequence of str
        Run name → ids that are missing in another run.
    fix : str, optional
        What to do, for the message.
    image : str, optional
        What an image is called, such as ``"case"``.

    Attributes
    ----------
    only : mapping of str to tuple of str
        As passed.
    """

    def __init__(
        self, only: Mapping[str, Sequence[str]], fix: str = "", image: str = "image"
    ) -> None:
        self.only: dict[str, tuple[str, ...]] = {name: tuple(ids) for name, ids in only.items()}
        self._fix, self._image = fix or f"score all models on the same {image}s", image
        different = f"cannot compare runs scored on different {image}s"
        super().__init__(f"{different}: {_only_in(self.only)}; {self._fix}")

    def __reduce__(self) -> tuple[Any, ...]:
        return (DifferentImagesError, (self.only, self._fix, self._image))


def check_runs(what: str, runs: Sequence[Any]) -> tuple[HasRunCounts, ...]:
    """Raise an error for anything that is not a run."""
    for run in runs:
        if not (hasattr(run, "counts") and hasattr(run, "ids")):
            msg = f"{what} expects runs, got {type(run).__name__}{hint_for(run)}"
            raise TypeError(msg)
    return tuple(runs)


class SameImages(NamedTuple):
    """Runs that can be compared, and their counts with the images in one order."""

    runs: Sequence[HasRunCounts]
    names: Sequence[str]
    counts: Sequence[Counts]
    ids: Sequence[tuple[str, ...]]
    class_names: tuple[str, ...]
    include: NDArray[np.bool_]
    protocol: Protocol

    def scored(self, metric: Metric) -> list[ScoredImages]:
        """Images of each run with the counts of the metric: pixels, or parts of a measure."""
        (named, key), scored = read_metric(self.runs[0], metric), []
        rule = metric, self.protocol, self.class_names, self.include
        every = zip(self.runs, self.names, self.counts, self.ids, strict=True)
        for run, name, counts, ids in every:
            images = images_of_name(run, named, self.protocol, name, key)
            if images is None:
                images = scored_counts(counts, *rule, ids, pixel_unit=unit_of_pixels(run))
            else:
                images = images.reordered(ids)
            scored.append(images)
        if key is not None:
            _check_plans(self.runs, self.names, key)
        return scored


def same_images(
    runs: Sequence[HasRunCounts],
    names: Sequence[str],
    protocol: Protocol | str | None,
    *,
    partial: bool = False,
) -> SameImages:
    """Runs with their images in the same order; reject runs that cannot be compared.

    With ``partial``, runs may lack images; then each keeps its own.
    """
    first = runs[0]
    chosen = load_protocol(first.protocol if protocol is None else protocol)
    runs = [run_under(run, chosen) for run in runs]
    first = runs[0]
    for name, run in zip(names, runs, strict=True):
        if len(set(run.ids)) < len(run.ids):
            twice = [i for i, number in Counter(run.ids).items() if number > 1]
            msg = f"{name} has duplicate image ids: {some_of(twice)}; ids must be unique"
            raise ValueError(msg)
    for name, run in zip(names[1:], runs[1:], strict=True):
        _check_classes(first, run, names[0], name)
        if protocol is None and run.protocol != first.protocol:
            msg = (
                f"{names[0]} was scored under protocol {first.protocol.name!r} and {name} under "
                f"{run.protocol.name!r}; choose one with protocol=..."
            )
            raise ValueError(msg)
    common = set(first.ids).intersection(*(run.ids for run in runs[1:]))
    only = {n: [i for i in run.ids if i not in common] for n, run in zip(names, runs, strict=True)}
    if any(only.values()):
        if not partial:
            raise DifferentImagesError(only, image=nouns(unit_of_pixels(first)).image)
        counts, ids = [run.counts for run in runs], [tuple(run.ids) for run in runs]
    else:
        counts, ids = _same_order(runs, names), [tuple(first.ids)] * len(runs)
    of_first = tuple(first.class_names), chosen.include_of(first), chosen
    return SameImages(runs, names, counts, ids, *of_first)


def common_classes(score: Score, scored: Sequence[Any]) -> NDArray[np.bool_] | None:
    """Classes of the mean with a score for all models or for none, and the others; None if all.

    For each model, (C,) bool: whether it has a score of each class.

    A class that is absent from the truth counts as 0 for a model that predicts it and is skipped
    for the others, so a difference of means covers only the classes in common.
    """
    if not score.is_mean or score.include is None:
        return None
    defined = np.asarray(scored)
    common = defined.all(0) | ~defined.any(0) | ~score.include
    if common.all() or not (common & score.include & defined[0]).any():
        return None
    return np.asarray(common)


def classes_in_common(
    models: Sequence[Counts], names: Sequence[str], include: NDArray[np.bool_], protocol: Protocol
) -> NDArray[np.bool_]:
    """Classes whose IoU all models have or none has, from counts (N, C) of each."""
    score = class_score("iou", iou, tuple(names), include, protocol)
    sums = (counts.summed()[None] for counts in models)
    keep = common_classes(score, [~np.isnan(score.values(whole)[1:]) for whole in sums])
    return np.ones(len(names), bool) if keep is None else keep


def common_scores(
    images: list[ScoredImages], score: Score, scored: Sequence[Any]
) -> tuple[list[ScoredImages], tuple[str, ...]]:
    """Images of models with means over the classes in common, and the names of the others."""
    if (keep := common_classes(score, scored)) is None:
        return images, ()
    names = tuple(name for name, kept in zip(score.names, keep, strict=True) if not kept)
    return [scored.over_classes(keep) for scored in images], names


class Common(NamedTuple):
    """Scores of several models over the classes that all of them score."""

    images: list[ScoredImages]
    scores: list[Statistic]
    uncommon: tuple[str, ...] = ()
    """Names of the classes of the mean that are left out."""
    protocol_scores: tuple[float, ...] = ()
    """Scores over every class of the protocol, if others are left out."""

    @classmethod
    def of(cls, images: list[ScoredImages], units: Units, aggregate: Aggregate | None) -> Common:
        """The scores over some units."""
        every = [scored.over(units, aggregate) for scored in images]
        images, uncommon = common_scores(
            images, every[0].score, [scored.has_scores for scored in every]
        )
        if not uncommon:
            return cls(images, every)
        scores = [scored.over(units, aggregate) for scored in images]
        return cls(images, scores, uncommon, tuple(float(score.values[0]) for score in every))


def _check_plans(runs: Sequence[Any], names: Sequence[str], key: str) -> None:
    """Reject runs whose measures were counted with different options."""
    ways = [run._header.plan(key).way() for run in runs]
    for way, name in zip(ways, names, strict=True):
        first, second = (
            ", ".join(f"{part} {v}".strip() for part, v in a.items() if v != b.get(part))
            for a, b in ((ways[0], way), (way, ways[0]))
        )
        if first or second:
            noun = runs[0]._header.plan(key).measure.noun
            msg = (
                f"{noun} were measured with {first} in {names[0]} but {second} in {name}; score "
                "both with the same options"
            )
            raise ValueError(msg)


def names_of(runs: Sequence[HasRunCounts], names: Sequence[str] | None) -> tuple[str, ...]:
    """Names of runs: given, their own, or letters."""
    letters = [chr(ord("A") + i) if i < 26 else f"run {i + 1}" for i in range(len(runs))]
    if names is not None:
        chosen = read_several("names", names, "a sequence of names, one per run")
        are_texts = all(isinstance(name, str) and name.strip() for name in chosen)
        if not are_texts or len(chosen) != len(runs) or len(set(chosen)) != len(runs):
            msg = f"names must be {len(runs)} distinct names, one per run, none empty, got {chosen}"
            raise ValueError(msg)
        return tuple(chosen)
    run_names = [run.name or letter for run, letter in zip(runs, letters, strict=True)]
    lettered = [f"{name} ({letter})" for name, letter in zip(run_names, letters, strict=True)]
    is_alone = [run_names.count(name) == 1 and name not in lettered for name in run_names]
    return tuple(
        name if alone else other
        for name, other, alone in zip(run_names, lettered, is_alone, strict=True)
    )


def _check_classes(a: HasRunCounts, b: HasRunCounts, name_a: str, name_b: str) -> None:
    if tuple(a.class_names) != tuple(b.class_names):
        only_a = [c for c in a.class_names if c not in b.class_names]
        only_b = [c for c in b.class_names if c not in a.class_names]
        what = _only_in({name_a: only_a, name_b: only_b}) or "the classes are in a different order"
        msg = f"{name_a} and {name_b} have different classes: {what}"
        raise ValueError(msg)
    differ = np.flatnonzero(np.asarray(a.include) != np.asarray(b.include)).tolist()
    if differ:
        msg = (
            f"{name_a} and {name_b} exclude different classes from their means: "
            f"{some_of([a.class_names[c] for c in differ])}; exclude the same classes in both"
        )
        raise ValueError(msg)


def _only_in(names: Mapping[str, Sequence[str]]) -> str:
    return "; ".join(f"only in {run}: {some_of(only)}" for run, only in names.items() if only)


def _ordered_counts(run: HasRunCounts, ids: Sequence[str]) -> Counts:
    """Counts of a run in the order of these ids, without a copy if it is the run's."""
    if tuple(ids) == tuple(run.ids):
        return run.counts
    place = {id: i for i, id in enumerate(run.ids)}
    return run.counts[np.array([place[id] for id in ids], dtype=np.intp)]


def _same_order(runs: Sequence[HasRunCounts], names: Sequence[str]) -> list[Counts]:
    """Counts of each run in the order of the first; all must have the same truth."""
    first, counts = runs[0], [runs[0].counts]
    for name, run in zip(names[1:], runs[1:], strict=True):
        counts.append(_ordered_counts(run, first.ids))
        pair = [ImageParts.of(side).parts() for side in (counts[0], counts[-1])]
        if all(np.array_equal(a.truth, b.truth) for a, b in zip(*pair, strict=True)):
            continue
        a, b = counts[0].truth, counts[-1].truth
        rows, classes = np.nonzero(a != b)
        i, c, others = rows[0], classes[0], len({*rows.tolist()}) - 1
        unit = unit_of_pixels(first)
        image = nouns(unit).image
        more = f", and {plural(others, f'more {image}')}" if others else ""
        msg = (
            f"{names[0]} and {name} were scored against different ground truth: {image} "
            f"{first.ids[i]} has {a[i, c]} {unit} of {first.class_names[c]} in one and {b[i, c]} "
            f"in the other{more}; score both against the same masks with the same ignored values"
        )
        raise ValueError(msg)
    return counts
