"""Which images: tables of them, and the worst."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from segiou import metrics
from segiou.counts import Counts
from segiou.fine_grained.values import Metric, check_per_image, image_means
from segiou.metrics import Floats

__all__ = ["image_rows", "leave_one_out", "rows_to_csv", "worst_images"]


def leave_one_out(
    per_image: Counts, metric: Metric = metrics.iou, *, include: Any = None
) -> Floats:
    """What leaving each image out does to the data set mean, (N,).

    The mean without the image minus the mean with all: positive where the
    image drags the score down. Exact, since the counts without an image are a
    subtraction of integers.

    Examples
    --------
    >>> per_image = Counts(tp=[[9], [1]], fp=[[1], [3]], fn=[[0], [0]], tn=[[0], [6]])
    >>> leave_one_out(per_image).round(4)
    array([-0.4643,  0.1857])
    """
    check_per_image(per_image)
    whole = per_image.summed()
    rest = Counts(
        whole.tp - per_image.tp,
        whole.fp - per_image.fp,
        whole.fn - per_image.fn,
        whole.tn - per_image.tn,
    )
    return metrics.mean(metric(rest), include) - metrics.mean(metric(whole), include)


def worst_images(
    per_image: Counts,
    k: int,
    by: int | Literal["image", "leave-one-out"] = "image",
    *,
    metric: Metric = metrics.iou,
    include: Any = None,
) -> NDArray[np.intp]:
    """Positions of the k worst images, the worst first.

    Parameters
    ----------
    per_image : Counts of shape (N, C)
    k : int
        How many at most; images without a value are never among them.
    by : {"image", "leave-one-out"} or int
        Lowest own mean over the classes in the image's truth; most to win for
        the data set mean by leaving it out; or the lowest value of the class
        of this index, in images with the class in truth or prediction.
    metric : callable
        A per-class metric of :mod:`segiou.metrics`.
    include : array_like of bool, shape (C,), optional
        Classes that take part in means.

    Raises
    ------
    ValueError
        If ``by`` is neither of the words nor a class.

    Examples
    --------
    >>> per_image = Counts(tp=[[9], [1]], fp=[[1], [3]], fn=[[0], [0]], tn=[[0], [6]])
    >>> worst_images(per_image, 1).tolist(), worst_images(per_image, 9, by=0).tolist()
    ([1], [1, 0])
    """
    badness = _badness(per_image, by, metric, include)
    order = np.argsort(badness, kind="stable")
    return order[: min(max(k, 0), int((~np.isnan(badness)).sum()))]


def _badness(per_image: Counts, by: int | str, metric: Metric, include: Any) -> Floats:
    check_per_image(per_image)
    if by == "image":
        return image_means(per_image, metric, include=include)
    if by == "leave-one-out":
        return -leave_one_out(per_image, metric, include=include)
    num_classes = per_image.tp.shape[1]
    if isinstance(by, (int, np.integer)) and 0 <= by < num_classes:
        return metric(per_image)[:, by]
    msg = (
        f"worst images go by 'image', 'leave-one-out' or a class index 0 to {num_classes - 1}, "
        f"not {by!r}"
    )
    raise ValueError(msg)


def image_rows(
    per_image: Counts,
    ids: Sequence[str],
    class_names: Sequence[str],
    metric: Metric = metrics.iou,
    *,
    include: Any = None,
) -> list[dict[str, Any]]:
    """One row an image, for tables and CSV.

    Columns: ``id``; ``mean_iou`` over the classes in the image's truth;
    ``pixel_accuracy``; ``leave_one_out`` (:func:`leave_one_out`);
    ``false_positive_classes``, how many are predicted and not in the truth;
    then ``iou:NAME`` of each class, NaN where it is in neither truth nor
    prediction. With another metric its name stands for ``iou``.

    Raises
    ------
    ValueError
        If there is not one id an image and one name a class.
    """
    check_per_image(per_image)
    if (len(ids), len(class_names)) != per_image.tp.shape:
        msg = (
            f"{len(ids)} ids and {len(class_names)} class names do not fit counts of shape "
            f"{per_image.tp.shape}"
        )
        raise ValueError(msg)
    columns = zip(
        ids,
        image_means(per_image, metric, include=include).tolist(),
        metrics.pixel_accuracy(per_image).tolist(),
        leave_one_out(per_image, metric, include=include).tolist(),
        ((per_image.truth == 0) & (per_image.fp > 0)).sum(1).tolist(),
        metric(per_image).tolist(),
        strict=True,
    )
    what = metric.__name__
    names = ("id", f"mean_{what}", "pixel_accuracy", "leave_one_out", "false_positive_classes")
    classes = [f"{what}:{name}" for name in class_names]
    return [
        dict(zip(names, row, strict=True)) | dict(zip(classes, values, strict=True))
        for *row, values in columns
    ]


def rows_to_csv(rows: Sequence[dict[str, Any]]) -> str:
    """Rows as CSV at full precision; an undefined value is an empty cell."""
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]) if rows else ["id"], lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({key: "" if value != value else value for key, value in row.items()})
    return out.getvalue()
