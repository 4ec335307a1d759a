"""Lesion-wise scores: found, missed and false-positive lesions, and the overlap of each."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, pairwise
from typing import Any, TypedDict, cast

import numpy as np
from numpy.typing import NDArray

from segiou._support.arguments import check_integer, check_number, read_several
from segiou._support.text import listed
from segiou.counting.arrays import label_arrays
from segiou.counting.id_pairs import count_id_pairs, count_ids, mapped
from segiou.measures.lesions.protocols import LesionProtocol, read_protocol
from segiou.metrics.ratio import ratio
from segiou.regions.components import dilate, label_components
from segiou.regions.conventions import CONVENTIONS, LONE
from segiou.regions.surface_points import Both, SurfacePair, bounding_box, check_spacing, reached_by

Ids = NDArray[Any]


class ObjectScores(TypedDict):
    """Result of `object_scores`."""

    tp: int
    fn: int
    fp: int
    sensitivity: float
    precision: float
    f1: float
    dice: float
    iou: float
    hausdorff_95: float
    surface_dice: float
    overall_dice: float
    overall_surface_dice: float
    overall_hausdorff_95: float
    fp_volume: float
    fn_volume: float
    lesions: list[dict[str, Any]]
    bands: list[dict[str, float]]


def lesion_scores(
    truth: Any,
    pred: Any,
    *,
    spacing: float | Sequence[float] | None,
    protocol: str | LesionProtocol = "brats2023-gli",
    bands: Iterable[float] = (),
    labels: Iterable[int] | None = None,
) -> dict[str, ObjectScores]:
    """Score the lesions of each region of two class maps.

    Parameters
    ----------
    truth, pred : array_like of int, equal shapes (H, W) or (D, H, W)
        Class of each voxel.
    spacing : float or sequence of float, or None
        Size of a voxel along each axis in mm; None for 1.
    protocol : str or LesionProtocol
        A name in ``segiou.measures.lesions.LESION_PROTOCOLS``, or a custom protocol.
    bands : iterable of float
        Limits (mm³) of size bands; each band is counted separately.
    labels : iterable of int, optional
        For protocols without regions: labels to score, each under its number as
        text; every label present except 0 by default. A label given here that
        neither mask contains has NaN scores.

    Returns
    -------
    dict
        Region → result of :func:`object_scores`.

    Raises
    ------
    TypeError
        If an array does not contain integers.
    ValueError
        If shapes differ, or an option has a wrong value.

    Examples
    --------
    >>> truth = np.zeros((6, 9, 9), int)
    >>> truth[1:5, 1:5, 1:5] = 3
    >>> found = lesion_scores(truth, np.roll(truth, 1, axis=0), spacing=1)["ET"]
    >>> found["tp"], found["fp"], found["fn"], found["dice"], found["hausdorff_95"]
    (1, 0, 0, 0.75, 1.0)
    """
    chosen = read_protocol(protocol)
    sides = label_arrays(truth, pred, ("truth", "pred"))
    present = {int(v) for side in sides for v in count_ids(side) if v}
    regions = _regions(chosen, present, labels)
    several = read_several("bands", bands, "a sequence of volumes")
    if isinstance(protocol, str) and labels is None:
        _check_known(protocol, regions, present)
    # Only this part of the arrays can affect the result.
    sides = _cropped(*sides, margin=chosen.merge + chosen.reach + 1)
    near = chosen.connectivity
    return {
        name: object_scores(
            label_components(sides[0], [region], connectivity=near, merge=chosen.merge),
            label_components(sides[1], [region], connectivity=near),
            spacing=spacing,
            protocol=chosen,
            bands=several,
        )
        for name, region in regions.items()
    }


def object_scores(
    truth_ids: Any,
    pred_ids: Any,
    *,
    spacing: float | Sequence[float] | None,
    protocol: str | LesionProtocol = "panoptica",
    bands: Iterable[float] = (),
) -> ObjectScores:
    """Score objects given by ids; id 0 is background.

    Parameters
    ----------
    truth_ids, pred_ids : array_like of int, equal shapes (H, W) or (D, H, W)
        Id of each voxel's object.
    spacing, protocol, bands
        As for :func:`lesion_scores`; the component options of the protocol are unused.

    Returns
    -------
    dict
        ``tp``, ``fn`` (true lesions found and missed), ``fp`` (predicted
        lesions without a match); ``sensitivity`` tp/(tp + fn), ``precision``
        tp/(tp + fp), ``f1``; means ``dice``, ``iou``, ``hausdorff_95``,
        ``surface_dice``; ``overall_dice``, ``overall_hausdorff_95`` and
        ``overall_surface_dice`` over all voxels (NaN if the protocol has no
        surface Dice); ``fp_volume``, ``fn_volume`` in mm³; ``lesions``, one dict
        per counted true lesion; ``bands``, counts by volume.

    Raises
    ------
    TypeError
        If an array does not contain integers.
    ValueError
        If shapes differ, an id is negative, or an option has a wrong value.

    Examples
    --------
    >>> truth, pred = [[1, 1, 1, 0, 2]], [[7, 7, 0, 8, 0]]
    >>> found = object_scores(truth, pred, spacing=None)
    >>> found["tp"], found["fp"], found["fn"], found["iou"], found["fn_volume"]
    (1, 1, 1, 0.6666666666666666, 1.0)
    """
    chosen = read_protocol(protocol)
    objects = _Objects(*label_arrays(truth_ids, pred_ids, ("truth_ids", "pred_ids")))
    steps = check_spacing(objects.ids[0], spacing, "objects")
    partners, voxel = _partners(objects, chosen), math.prod(steps)
    lesions = [
        _lesion(objects, i, partners.get(i, []), steps, chosen)
        for i, pixels in objects.pixels[0].items()
        if pixels * voxel > chosen.min_volume
    ]
    matched = {*chain(*partners.values())}
    alone = [pixels * voxel for j, pixels in objects.pixels[1].items() if j not in matched]
    large = [row for row in lesions if row["volume"] >= (chosen.large or 0.0)]
    scores = {
        **_detection(lesions, alone),
        **_means(large, len(alone), chosen),
        **_overall(objects, steps, chosen),
        "fp_volume": math.fsum(alone),
        "fn_volume": math.fsum(row["volume"] for row in lesions if not row["pred"]),
        "lesions": lesions,
        "bands": [
            {"from": low, "to": high} | _band(low, high, lesions, alone, chosen)
            for low, high in _edges(bands, chosen)
        ],
    }
    return cast(ObjectScores, scores)


def _regions(
    protocol: LesionProtocol, present: Iterable[int], labels: Iterable[int] | None
) -> Mapping[str, tuple[int, ...]]:
    """Values of each region; those of protocols without regions are the labels."""
    if protocol.regions is None:
        wanted = present if labels is None else read_several("labels", labels, "a sequence of ints")
        return {str(v): (v,) for v in sorted({check_integer("labels", value) for value in wanted})}
    if labels is not None:
        msg = f"protocol {protocol.name!r} defines regions; omit labels"
        raise ValueError(msg)
    return protocol.regions


def _check_known(name: str, regions: Mapping[str, tuple[int, ...]], present: set[int]) -> None:
    """Raise an error if a label is not in any region of a challenge."""
    if unknown := present.difference(*regions.values()):
        noun, verb = ("label", "is") if len(unknown) == 1 else ("labels", "are")
        msg = (
            f"{noun} {listed([*map(str, sorted(unknown))], 8)} {verb} not in any region of "
            f"{name!r}: {dict(regions)}; relabel the masks, or pass a LesionProtocol with "
            "different regions"
        )
        raise ValueError(msg)


def _cropped(truth: Ids, pred: Ids, margin: int) -> tuple[Ids, Ids]:
    """Both sides, cropped to the labels and a margin around them."""
    is_labelled = (truth != 0) | (pred != 0)
    if not is_labelled.any():
        return truth, pred
    box = _wider(bounding_box(is_labelled), margin)
    return truth[box], pred[box]


def _wider(box: Iterable[slice], margin: int) -> tuple[slice, ...]:
    return tuple(slice(max(0, side.start - margin), side.stop + margin) for side in box)


class _Objects:
    """The objects of both sides: their ids, pixels and boxes, and the pixels each pair shares."""

    def __init__(self, truth_ids: Ids, pred_ids: Ids) -> None:
        self.ids = truth_ids, pred_ids
        table = (column.tolist() for column in count_id_pairs(truth_ids, pred_ids))
        self.both = {(i, j): n for i, j, n in zip(*table, strict=True) if i and j}
        self.pixels = [count_ids(side) for side in self.ids]
        for side in self.pixels:
            side.pop(0, None)
            if (least := min(side, default=0)) < 0:
                msg = f"ids must not be negative, got {least}"
                raise ValueError(msg)
        self.boxes = [_boxes(*side) for side in zip(self.ids, self.pixels, strict=True)]


def _boxes(ids: Ids, names: Iterable[int]) -> dict[int, tuple[slice, ...]]:
    """Bounding box of each object."""
    from scipy.ndimage import find_objects  # type: ignore[import-untyped, unused-ignore]

    places = {name: number for number, name in enumerate(names, 1)}
    if ids.dtype == np.bool_ or [*places] != [*places.values()]:
        ids = mapped(ids, places)
    return dict(zip(places, find_objects(ids, len(places)) if places else (), strict=True))


def _partners(objects: _Objects, protocol: LesionProtocol) -> dict[int, list[int]]:
    """Predicted objects matched with each true object; unmatched ones have no entry."""
    pairs: Iterable[tuple[int, int]] = objects.both
    if protocol.matching == "id":
        pairs = ((i, i) for i in objects.pixels[0] if i in objects.pixels[1])
    elif protocol.matching == "greatest":
        greatest = sorted(objects.both, key=lambda pair: (objects.both[pair], -pair[1]))
        pairs = dict(greatest).items()
    elif protocol.matching in ("iou", "dice"):
        pairs = _one_to_one(objects, protocol.threshold, protocol.matching == "dice")
    elif protocol.reach:
        pairs = ((i, j) for i in objects.pixels[0] for j in _met(objects, i, protocol.reach))
    partners: dict[int, list[int]] = {}
    for i, j in pairs:
        partners.setdefault(i, []).append(j)
    return partners


def _met(objects: _Objects, i: int, reach: int) -> list[int]:
    """Predicted objects that a dilated true object touches."""
    box = _wider(objects.boxes[0][i], reach)
    near = dilate(objects.ids[0][box] == i, reach)
    return [int(j) for j in np.unique(objects.ids[1][box][near]) if j]


def _one_to_one(objects: _Objects, threshold: float, by_dice: bool) -> Iterable[tuple[int, int]]:
    """The assignment with the largest sum of IoU or Dice among pairs that reach the threshold."""
    from scipy.optimize import linear_sum_assignment  # type: ignore[import-untyped, unused-ignore]

    areas = objects.pixels
    every = {(i, j): n / (areas[0][i] + areas[1][j] - n) for (i, j), n in objects.both.items()}
    if by_dice:
        every = {pair: 2 * iou / (1 + iou) for pair, iou in every.items()}
    ious = {pair: iou for pair, iou in every.items() if iou >= threshold}
    of_truth, of_pred = (Counter(pair[side] for pair in ious) for side in (0, 1))
    clear = {(i, j) for i, j in ious if of_truth[i] == of_pred[j] == 1}
    rows, columns = (sorted({pair[side] for pair in ious.keys() - clear}) for side in (0, 1))
    table = [[ious.get((i, j), 0.0) for j in columns] for i in rows]
    size = len(rows), len(columns)
    chosen = zip(*linear_sum_assignment(np.reshape(table, size), maximize=True), strict=True)
    return clear | ({(rows[a], columns[b]) for a, b in chosen} & ious.keys())


def _lesion(
    objects: _Objects, i: int, paired: list[int], steps: tuple[float, ...], protocol: LesionProtocol
) -> dict[str, Any]:
    """Scores of one true lesion and its matched predicted objects."""
    pixels = objects.pixels[0][i]
    common = sum(objects.both.get((i, j), 0) for j in paired)
    total = pixels + sum(objects.pixels[1][j] for j in paired)
    distance, near = math.inf, 0.0
    if paired:
        boxes = objects.boxes[0][i], *(objects.boxes[1][j] for j in paired)
        box = tuple(
            slice(min(s.start for s in axis), max(s.stop for s in axis))
            for axis in zip(*boxes, strict=True)
        )
        masks = objects.ids[0][box] == i, np.isin(objects.ids[1][box], paired)
        steps = steps[::-1] if protocol.published else steps
        distance, near = _surfaces(*masks, steps, protocol, _tolerance(steps, protocol))
    return {
        "id": i,
        "pred": paired,
        "volume": pixels * math.prod(steps),
        "dice": 2 * common / total,
        "iou": common / (total - common),
        "surface_dice": near if protocol.surface_dice else math.nan,
        "hausdorff_95": distance,
    }


def _overall(
    objects: _Objects, steps: tuple[float, ...], protocol: LesionProtocol
) -> dict[str, float]:
    """Dice of all objects together; HD95 and surface Dice, NaN without surface Dice."""
    total = sum(sum(side.values()) for side in objects.pixels)
    distance = near = math.nan
    if protocol.surface_dice:
        tolerance = _tolerance(steps, protocol)
        if protocol.published:
            steps, tolerance = (1.0,) * len(steps), 0.5
        truth, pred = (side != 0 for side in objects.ids)
        distance, near = _surfaces(truth, pred, steps, protocol, tolerance)
    return {
        "overall_dice": 2 * sum(objects.both.values()) / total if total else protocol.nothing[0],
        "overall_hausdorff_95": distance,
        "overall_surface_dice": near,
    }


def _tolerance(steps: tuple[float, ...], protocol: LesionProtocol) -> float:
    return min(steps) if protocol.tolerance is None else protocol.tolerance


def _surfaces(
    truth: Any, pred: Any, steps: tuple[float, ...], protocol: LesionProtocol, tolerance: float
) -> tuple[float, float]:
    """HD95 and surface Dice: medpy's convention has the mean of both shares, as panoptica."""
    convention = CONVENTIONS[protocol.convention]
    pair = SurfacePair(*label_arrays(truth, pred), steps, convention.surface)
    surfaces = convention.distances(pair, {1: (1,)}, (95.0,)).get(1, Both())
    sizes = [side.size for side in surfaces]
    if not all(sizes):
        state = LONE[2 * (sizes[0] > 0) + (sizes[1] > 0)]
        lone = convention.filling("hausdorff_percentile", state, {})
        return float(lone), 0.0 if any(sizes) else math.nan
    hausdorff_95 = surfaces.percentile(convention.percentile, 0.95)
    if not protocol.surface_dice:
        return hausdorff_95, 0.0
    # The tools of the other conventions compare rounded numbers.
    reached = reached_by(tolerance) if protocol.convention == "segiou" else tolerance
    within = [side.within(reached) for side in surfaces]
    if protocol.convention == "medpy":
        return hausdorff_95, sum(n / size for n, size in zip(within, sizes, strict=True)) / 2
    return hausdorff_95, sum(within) / sum(sizes)


def _detection(
    lesions: list[dict[str, Any]], false_positives: list[float], least_dice: float = 0.0
) -> dict[str, Any]:
    detected = [row for row in lesions if row["pred"] and row["dice"] >= least_dice]
    tp, fp = len(detected), len(false_positives)
    fn = len(lesions) - tp
    ratios = ratio([tp, tp, 2 * tp], [tp + fn, tp + fp, 2 * tp + fp + fn]).tolist()
    shares = dict(zip(("sensitivity", "precision", "f1"), ratios, strict=True))
    return {"tp": tp, "fp": fp, "fn": fn, **shares}


def _edges(bands: Iterable[float], protocol: LesionProtocol) -> Iterable[tuple[float, float]]:
    """Least and greatest volume of each band; those of the protocol replace the given ones."""
    several = read_several("bands", bands, "a sequence of volumes")
    if protocol.large is not None:
        several = [protocol.large]
    limits = sorted({check_number("bands", limit, 0) for limit in several} - {0.0, math.inf})
    return pairwise([0.0, *limits, math.inf]) if limits else ()


def _band(
    low: float,
    high: float,
    lesions: Iterable[dict[str, Any]],
    false_positives: Iterable[float],
    protocol: LesionProtocol,
) -> dict[str, float]:
    """Detection in a band; bands of large and small lesions are undefined without lesions."""
    inside = [row for row in lesions if low <= row["volume"] < high]
    every = protocol.large is not None
    alone = [volume for volume in false_positives if every or low <= volume < high]
    detection = _detection(inside, alone, protocol.least_dice)
    if not every:
        return detection
    return {name: np.nan_to_num(n).item() if inside else math.nan for name, n in detection.items()}


def _means(
    lesions: list[dict[str, Any]], false_positives: int, protocol: LesionProtocol
) -> dict[str, float]:
    """Means over counted and false-positive lesions; without a penalty, over found lesions."""
    matched, far = [row for row in lesions if row["pred"]], protocol.penalty
    is_empty = not lesions and (not false_positives or protocol.large is not None)
    dice, distance = protocol.nothing if is_empty else protocol.none_found
    means = {"dice": dice, "iou": dice, "surface_dice": dice, "hausdorff_95": distance}
    # Lesions that were not found have only the penalty, if there is one.
    number = len(matched) if far is None else len(lesions) + false_positives
    number = 0 if is_empty else number
    for name, penalty in zip(means, (0.0, 0.0, 0.0, far or 0.0), strict=True):
        values = [row[name] if math.isfinite(row[name]) else penalty for row in matched]
        if number:
            means[name] = math.fsum([*values, (number - len(matched)) * penalty]) / number
    return means
