"""Instance-weighted IoU (iIoU): every object counts alike, the small ones too.

A pixel of an object weighs the average size of its class's objects divided by
the object's own size. False positives belong to no object and keep weight 1:
iIoU = iTP / (iTP + FP + iFN).

References
----------
M. Cordts et al., The Cityscapes Dataset for Semantic Urban Scene Understanding,
CVPR 2016, section 4.1.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou.counting.arrays import as_label_array
from segiou.counting.counts import Counts
from segiou.counting.encoding import count_pairs
from segiou.counting.id_pairs import count_id_pairs
from segiou.instances.segments import pack_ids, unpack_ids
from segiou.labels.label_set import load_labels
from segiou.metrics.ratio import Floats

#: Average pixels of an object in the Cityscapes training set, by label id; what its scripts use.
CITYSCAPES_INSTANCE_SIZES: Mapping[int, float] = {
    24: 3462.4756337644,  # person
    25: 3930.4788056518,  # rider
    26: 12794.0202738185,  # car
    27: 27855.1264367816,  # truck
    28: 35732.1511111111,  # bus
    29: 36771.8241758242,  # caravan
    30: 16926.9763313609,  # trailer
    31: 67583.7075812274,  # train
    32: 6298.7200839748,  # motorcycle
    33: 4672.3249222261,  # bicycle
}

#: Label ids of Cityscapes: 0 to 33.
_CITYSCAPES_IDS = 34
#: Predicted ids that stand for a category of objects. The scripts do not evaluate caravans and
#: trailers (29, 30), but where one is predicted they take it for a vehicle.
_TAKEN_FOR: Mapping[str, Sequence[int]] = {"human": range(24, 26), "vehicle": range(26, 34)}


@dataclass(frozen=True, eq=False)
class InstanceCounts:
    """Pixels of single objects, one row an object; ``+`` puts the objects of two together.

    Attributes
    ----------
    label : ndarray of int64, shape (K,)
        Truth value of each object.
    size : ndarray of int64, shape (K,)
        Its pixels.
    tp : ndarray of int64, shape (K,)
        Those of its pixels that are predicted right.
    """

    label: NDArray[np.int64]
    size: NDArray[np.int64]
    tp: NDArray[np.int64]

    def __add__(self, other: object) -> InstanceCounts:
        if isinstance(other, int) and other == 0:
            return self
        if not isinstance(other, InstanceCounts):
            return NotImplemented
        pairs = ((self.label, other.label), (self.size, other.size), (self.tp, other.tp))
        return InstanceCounts(*(np.concatenate(pair) for pair in pairs))

    # sum() starts from 0, which stands for no objects.
    __radd__ = __add__

    def __len__(self) -> int:
        return len(self.label)

    def average_sizes(self) -> dict[int, float]:
        """Average pixels of an object by truth value."""
        values, inverse, objects = np.unique(self.label, return_inverse=True, return_counts=True)
        pixels = np.zeros(len(values), dtype=np.int64)
        np.add.at(pixels, inverse, self.size)
        return dict(zip(values.tolist(), (pixels / objects).tolist(), strict=True))


def cityscapes_instances(instance_ids: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Split Cityscapes' ``instanceIds`` into truth values and objects (0 where there is none).

    A pixel of an object holds 1000 · label + number, any other its label.

    Examples
    --------
    >>> truth, instances = cityscapes_instances([[7, 26000, 26001, 24]])
    >>> truth.tolist(), instances.tolist()
    ([[7, 26, 26, 24]], [[0, 26000, 26001, 0]])
    """
    ids = as_label_array(instance_ids, "instance_ids").astype(np.int64)
    of_object = ids >= 1000
    return np.where(of_object, ids // 1000, ids), np.where(of_object, ids, 0)


def count_instances(
    truth: Any,
    instances: Any,
    pred: Any,
    right: Mapping[int, Collection[int]],
    *,
    no_instance: int = 0,
) -> InstanceCounts:
    """Count how much of each object is predicted right.

    Parameters
    ----------
    truth, instances, pred : array_like of int, equal shapes
        Truth values, object numbers and predicted values. Pixels of one truth
        value and one object number are one object.
    right : mapping of int to collection of int
        Truth value → predicted values that are right on its objects: the class
        itself, or all classes of its category. Objects of other truth values
        are left out.
    no_instance : int
        Object number of pixels that belong to no object (a crowd, for one).

    Raises
    ------
    TypeError
        If an array does not hold integers.
    ValueError
        If the shapes differ, or an object number is negative or 2^32 or more.

    Examples
    --------
    >>> count_instances([26, 26, 26, 7], [1, 1, 2, 0], [26, 7, 26, 7], {26: {26}})
    InstanceCounts(label=array([26, 26]), size=array([2, 1]), tp=array([1, 1]))
    """
    codes = pack_ids(truth, instances, ("truth", "instances"))
    predicted = as_label_array(pred, "pred")
    if predicted.shape != codes.shape:
        msg = f"truth has shape {codes.shape} but pred has {predicted.shape}"
        raise ValueError(msg)
    in_truth, in_pred, pixels = count_id_pairs(codes, predicted)
    values, objects = unpack_ids(in_truth)
    correct = np.zeros(len(values), dtype=bool)
    for value, right_values in right.items():
        correct |= (values == value) & np.isin(in_pred, list(right_values))
    chosen = np.isin(values, list(right)) & (objects != no_instance)
    found, at = np.unique(in_truth[chosen], return_inverse=True)
    size, tp = np.zeros((2, len(found)), dtype=np.int64)
    np.add.at(size, at, pixels[chosen])
    np.add.at(tp, at, np.where(correct, pixels, 0)[chosen])
    return InstanceCounts(unpack_ids(found)[0], size, tp)


def instance_weighted_iou(
    counts: Counts,
    instances: InstanceCounts,
    members: Sequence[Collection[int]],
    average_sizes: Mapping[int, float] | None = None,
) -> Floats:
    """Score classes, or unions of classes, with every object weighted alike.

    Parameters
    ----------
    counts : Counts of shape (C,)
        Of the classes or unions; their false positives are used.
    instances : InstanceCounts
        The objects.
    members : sequence of collection of int
        Truth values whose objects belong to each of the C; empty where there
        are no objects (road, sky), which have no iIoU.
    average_sizes : mapping of int to float, optional
        Average pixels of an object by truth value; those of ``instances`` by
        default. A benchmark fixes them: ``CITYSCAPES_INSTANCE_SIZES``.

    Returns
    -------
    ndarray of float64, shape (C,)

    Raises
    ------
    ValueError
        If there are not as many members as classes, or an average size is missing.

    Examples
    --------
    >>> objects = count_instances([26] * 4, [1, 1, 1, 2], [26, 26, 26, 7], {26: {26}})
    >>> counts = Counts(tp=[3], fp=[0], fn=[1], tn=[0])
    >>> instance_weighted_iou(counts, objects, [{26}])
    array([0.5])
    """
    if counts.tp.shape != (len(members),):
        msg = f"{len(members)} members do not fit counts of shape {counts.tp.shape}"
        raise ValueError(msg)
    sizes = instances.average_sizes() if average_sizes is None else average_sizes
    if missing := sorted(set(instances.label.tolist()) - set(sizes)):
        msg = f"there is no average size for objects of truth value {missing[0]}"
        raise ValueError(msg)
    average = np.array([sizes[v] for v in instances.label.tolist()], dtype=np.float64)
    weight = average / instances.size
    scores = np.full(len(members), np.nan)
    for k, values in enumerate(members):
        own = np.isin(instances.label, list(values))
        # fsum: the score does not depend on the order in which images came.
        tp = math.fsum(instances.tp[own] * weight[own])
        fn = math.fsum((instances.size - instances.tp)[own] * weight[own])
        union = tp + int(counts.fp[k]) + fn
        if values and union:
            scores[k] = tp / union
    return scores


def cityscapes_iiou(images: Iterable[tuple[Any, Any]]) -> tuple[dict[str, float], dict[str, float]]:
    """Score classes and categories by iIoU, as cityscapesScripts does.

    Parameters
    ----------
    images : iterable of (instance_ids, pred)
        The content of each ``*_instanceIds.png`` and the predicted label ids.

    Returns
    -------
    classes, categories : dict of str to float
        iIoU by name; NaN for what has no objects (road, sky) or does not occur.
        ``numpy.nanmean`` of the values is the mean that the scripts print.

    Raises
    ------
    TypeError
        If an array does not hold integers.
    ValueError
        If the shapes of an image differ, or a truth value is no label id.

    Examples
    --------
    >>> classes, categories = cityscapes_iiou([([[26000, 26000, 7, 7]], [[26, 27, 26, 7]])])
    >>> round(classes["car"], 4), round(categories["vehicle"], 4), categories["flat"]
    (0.5, 0.9999, nan)
    """
    labels = load_labels("cityscapes")
    ids = {c.name: c.values[0] for c in labels.classes}
    classes = {name: [value] for name, value in ids.items()}
    categories = {name: [ids[m] for m in members] for name, members in labels.groups.items()}
    objects_of_class, objects_of_category = [], []
    matrix = np.zeros((_CITYSCAPES_IDS, _CITYSCAPES_IDS), dtype=np.int64)
    of_class = {v: [v] for v in ids.values() if v in CITYSCAPES_INSTANCE_SIZES}
    of_category = {v: _TAKEN_FOR[name] for name in _TAKEN_FOR for v in categories[name]}
    for instance_ids, pred in images:
        truth, instances = cityscapes_instances(instance_ids)
        matrix += count_pairs(
            truth, pred, _CITYSCAPES_IDS, ignore=labels.ignore, unassigned="count"
        )[:, :-1]
        objects_of_class.append(count_instances(truth, instances, pred, of_class))
        objects_of_category.append(count_instances(truth, instances, pred, of_category))
    return (
        _cityscapes_scores(matrix, objects_of_class, classes, classes),
        _cityscapes_scores(matrix, objects_of_category, categories, {**categories, **_TAKEN_FOR}),
    )


def _cityscapes_scores(
    matrix: NDArray[np.int64],
    objects: list[InstanceCounts],
    truth_ids: Mapping[str, Sequence[int]],
    pred_ids: Mapping[str, Sequence[int]],
) -> dict[str, float]:
    """Score unions of label ids; ``pred_ids`` are those that are taken for each union."""
    fp = [int(np.delete(matrix, truth_ids[n], axis=0)[:, pred_ids[n]].sum()) for n in truth_ids]
    zeros, nothing = np.zeros_like(fp), np.zeros(0, dtype=np.int64)
    members = [set(values) & set(CITYSCAPES_INSTANCE_SIZES) for values in truth_ids.values()]
    found = sum(objects, InstanceCounts(nothing, nothing, nothing))
    counts = Counts(tp=zeros, fp=fp, fn=zeros, tn=zeros)
    scores = instance_weighted_iou(counts, found, members, CITYSCAPES_INSTANCE_SIZES)
    return dict(zip(truth_ids, scores.tolist(), strict=True))
