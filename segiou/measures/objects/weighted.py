"""Instance-weighted IoU (iIoU): every object has the same weight, regardless of its size.

A pixel is weighted by the average object size of its class divided by the size
of its object. False positives belong to no object and keep weight 1:
iIoU = iTP / (iTP + FP + iFN).

References
----------
M. Cordts et al., The Cityscapes Dataset for Semantic Urban Scene Understanding,
CVPR 2016, section 4.1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import starmap
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from segiou._support.arguments import check_several, refuse_kind
from segiou.counting.arrays import as_label_array, label_arrays, with_dimensions_of
from segiou.counting.id_pairs import count_id_pairs, sums
from segiou.labels.label_set import LabelClass, LabelSet
from segiou.labels.loading import load_labels
from segiou.measures.objects.counts import VOID, Ints, ObjectCounts, pack_ids, unpack_ids
from segiou.metrics.ratio import Floats, ratio

#: Average pixels per object in the Cityscapes training set by label id, as in cityscapesScripts.
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

#: Predicted ids of each category of objects. cityscapesScripts does not evaluate caravans and
#: trailers (29, 30) but counts their predictions as vehicles.
_TAKEN_FOR = {"human": (24, 25), "vehicle": tuple(range(26, 34))}


class InstanceCounts(ObjectCounts):
    """Pixels of individual objects and false positives, to compute instance-weighted IoU.

    Only integers are kept: the pixels and correct pixels of each object, and the
    false positives of each class. They add up exactly in any order; see
    :class:`segiou.accumulators.base.Accumulator`. Each update keeps its objects,
    24 bytes per object plus about 230 bytes per update.

    Parameters
    ----------
    labels, pred_labels, ignore, exclude, unassigned
        As for :class:`segiou.ConfusionMatrix`. A class with several values, such as
        a category of Cityscapes, has objects of each value.
    things : iterable of int or str, optional
        Classes that have objects, by name or index; other classes get no score.
        All classes by default.
    **options
        Not used.

    Examples
    --------
    >>> counts = InstanceCounts(["road", "car"], things=["car"])
    >>> _ = counts.update([1, 1, 1, 1, 0], [1, 1, 1, 2, 0], [1, 1, 1, 0, 0])
    >>> counts.size, counts.tp
    (array([1, 3]), array([0, 3]))
    >>> counts.iou()
    array([nan, 0.5])
    """

    _noun = "instance counts"
    _columns = ("fp",)
    _rows_are = "objects"
    _row = ("value", "size", "tp")

    def _are_rows(self, rows: Ints, counts: Ints) -> bool:
        return bool(((rows[:, 2] >= 0) & (rows[:, 2] <= rows[:, 1]) & (rows[:, 1] > 0)).all())

    def update(self, truth: Any, instances: Any, pred: Any, *, no_instance: int = 0) -> Self:
        """Count one image; returns itself.

        Parameters
        ----------
        truth, instances, pred : array_like of int, equal shapes
            Truth values, object numbers and predicted values. Pixels with the
            same truth value and object number form one object.
        no_instance : int
            Object number of pixels that belong to no object, such as crowds.

        Raises
        ------
        TypeError
            If an array does not contain integers.
        ValueError
            If shapes differ, a value is undeclared, or an object number is
            negative or 2^32 or more.
        """
        codes = pack_ids(truth, instances, ("truth", "instances"))
        sides = label_arrays(codes, with_dimensions_of(truth, pred))
        in_truth, in_pred, pixels = count_id_pairs(*sides)
        values, numbers = unpack_ids(in_truth)
        true = self._class_indices(values, "truth")
        predicted = self._class_indices(in_pred, "pred")
        wrong = (true != predicted) & (true != VOID)
        fp = sums(predicted[wrong], pixels[wrong], self.num_classes + 1)

        chosen = np.append(self._things, False)[true] & (numbers != no_instance)
        objects, at = np.unique(in_truth[chosen], return_inverse=True)
        size = sums(at, pixels[chosen], len(objects))
        tp = sums(at, np.where(wrong, 0, pixels)[chosen], len(objects))
        return self.add_counts(fp[:-1, None], np.stack([unpack_ids(objects)[0], size, tp], axis=1))

    def _column(self, number: int) -> Ints:
        """One column of the rows, repeated for each object, (K,)."""
        rows = self._rows
        return np.repeat(rows[:, number], rows[:, -1])

    @property
    def label(self) -> Ints:
        """Truth value of each object, (K,)."""
        return self._column(0)

    @property
    def size(self) -> Ints:
        """Pixels of each object, (K,)."""
        return self._column(1)

    @property
    def tp(self) -> Ints:
        """Correctly predicted pixels of each object, (K,)."""
        return self._column(2)

    @property
    def fp(self) -> Ints:
        """Pixels of other classes predicted as each class, (C,)."""
        return self._cells[:, 0].copy()

    def average_sizes(self) -> dict[int, float]:
        """Average pixels per object, by truth value."""
        label, size = self.label, self.size
        return {v: size[label == v].mean() for v in np.unique(label).tolist()}

    def iou(self, average_sizes: Mapping[int, float] | None = None) -> Floats:
        """Instance-weighted IoU per class, iTP / (iTP + FP + iFN), (C,).

        Parameters
        ----------
        average_sizes : mapping of int to float, optional
            Average pixels per object, by truth value; those counted by default.
            A benchmark fixes them: ``CITYSCAPES_INSTANCE_SIZES``.

        Returns
        -------
        ndarray of float64, shape (C,)
            NaN for an absent class and for a class without objects.

        Raises
        ------
        ValueError
            If an average size is missing.
        """
        value, size, tp, often = self._rows.T
        sizes = self.average_sizes() if average_sizes is None else average_sizes
        if missing := sorted({*value.tolist()} - {*sizes}):
            msg = f"average_sizes has no entry for truth value {missing[0]}"
            raise ValueError(msg)
        weight = often * np.array([sizes[v] for v in value.tolist()]) / size
        at = self._class_indices(value, "truth")
        right, wrong = (np.bincount(at, n * weight, self.num_classes) for n in (tp, size - tp))
        return np.where(self._things, ratio(right, right + self.fp + wrong), np.nan)


def cityscapes_things(labels: LabelSet) -> tuple[str, ...]:
    """Names of the classes for which Cityscapes has instances."""
    sizes = CITYSCAPES_INSTANCE_SIZES.keys()
    return tuple(entry.name for entry in labels.classes if sizes & entry.values)


def cityscapes_instances(instance_ids: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Split Cityscapes' ``instanceIds`` into truth values and objects (0 for no object).

    A pixel of an object has the value 1000 · label + number, any other its label.

    Parameters
    ----------
    instance_ids : array_like
        Pixels of an ``instanceIds`` file, (H, W).

    Examples
    --------
    >>> truth, instances = cityscapes_instances([[7, 26000, 26001, 24]])
    >>> truth.tolist(), instances.tolist()
    ([[7, 26, 26, 24]], [[0, 26000, 26001, 0]])
    """
    ids = as_label_array(instance_ids, "instance_ids").astype(np.int64)
    of_object = ids >= 1000
    return np.where(of_object, ids // 1000, ids), np.where(of_object, ids, 0)


def cityscapes_iiou(images: Iterable[tuple[Any, Any]]) -> tuple[dict[str, float], dict[str, float]]:
    """Compute the iIoU of classes and categories as cityscapesScripts does.

    Parameters
    ----------
    images : iterable of (instance_ids, pred)
        The content of each ``*_instanceIds.png`` and the predicted label ids.

    Returns
    -------
    classes : dict of str to float
        The iIoU by name; NaN for absent classes and classes without objects (road,
        sky). ``numpy.nanmean`` of the values is the mean that the scripts print.
    categories : dict of str to float
        The iIoU of the categories.

    Raises
    ------
    TypeError
        If an array does not contain integers.
    ValueError
        If the shapes of an image differ, or a truth value is not a label id.

    Examples
    --------
    >>> classes, categories = cityscapes_iiou([([[26000, 26000, 7, 7]], [[26, 27, 26, 7]])])
    >>> round(classes["car"], 4), round(categories["vehicle"], 4), categories["flat"]
    (0.5, 0.9999, nan)
    """
    labels = load_labels("cityscapes")
    values = {c.name: c.values for c in labels.classes}
    members = {
        name: tuple(v for c in classes for v in values[c])
        for name, classes in labels.groups.items()
    }
    groups, taken = (
        LabelSet("cityscapes categories", tuple(starmap(LabelClass, sides.items())))
        for sides in (members, {**members, **_TAKEN_FOR})
    )
    of_classes = InstanceCounts(labels, things=cityscapes_things(labels), unassigned="count")
    of_groups = InstanceCounts(
        groups, pred_labels=taken, ignore=labels.ignore, things=_TAKEN_FOR, unassigned="count"
    )
    wanted = "pairs of instance ids and predicted labels"
    check_several("images", images, wanted)
    for image in images:
        if not isinstance(image, (tuple, list)) or len(image) != 2:
            raise refuse_kind("each of images", image, wanted.replace("pairs", "a pair"))
        instance_ids, pred = image
        truth, instances = cityscapes_instances(instance_ids)
        of_classes.update(truth, instances, pred)
        of_groups.update(truth, instances, pred)
    classes, categories = (
        dict(zip(c.class_names, c.iou(CITYSCAPES_INSTANCE_SIZES).tolist(), strict=True))
        for c in (of_classes, of_groups)
    )
    return classes, categories
