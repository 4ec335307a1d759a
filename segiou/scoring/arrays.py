"""Arrays → a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from segiou.boundary import BoundaryOptions, LabelCodes, count_labels
from segiou.classes import Labels
from segiou.confusion import ConfusionMatrix
from segiou.counting.devices import to_host
from segiou.counting.scores import decide
from segiou.protocols import Protocol, load_protocol
from segiou.run import Run
from segiou.runs import ImageCount
from segiou.runs.boundaries import pack_boundary
from segiou.windows import count_windows, is_lazy

__all__ = ["score"]


def score(
    truth: Any,
    pred: Any,
    *,
    labels: Labels,
    ids: Sequence[str] | None = None,
    argmax: int | None = None,
    threshold: float | None = None,
    mask: Any = None,
    boundary: BoundaryOptions | bool | None = None,
    protocol: Protocol | str = "segiou",
    name: str = "",
    **options: Any,
) -> Run:
    """Score arrays: a batch of label images, keeping the counts of each.

    Parameters
    ----------
    truth, pred : sequence of array_like
        One label image (or scores, with a rule) an entry; the first axis of an
        array counts the images. A single 2-D array of truth is one image.
        Arrays of zarr, dask or h5py are counted window by window, and may be
        larger than memory.
    labels
        As :class:`segiou.ConfusionMatrix`.
    ids : sequence of str, optional
        Names of the images; their numbers by default.
    argmax, threshold : optional
        Rule for scores; ``argmax`` is the class axis of one image's scores.
    mask : sequence of array_like of bool, optional
        Valid pixels of each image.
    boundary : BoundaryOptions or bool, optional
        As :func:`score_folder`.
    protocol, name
        As :func:`score_folder`.
    **options
        Others of :class:`segiou.ConfusionMatrix`.

    Returns
    -------
    Run

    Raises
    ------
    ValueError
        If there are not as many predictions as truths, or a pair cannot be
        counted; the message names the image.

    Examples
    --------
    >>> run = score([[0, 1], [1, 1]], [[0, 1], [0, 1]], labels=["no", "yes"])
    >>> round(run.report().mean_iou, 4)
    0.5833
    """
    matrix = ConfusionMatrix(labels, **options)
    truths, preds, masks = _as_images(truth, pred, mask)
    names = [str(i) for i in range(len(truths))] if ids is None else [str(i) for i in ids]
    for what, items in (("predictions", preds), ("masks", masks), ("ids", names)):
        if len(items) != len(truths):
            msg = f"there are {len(truths)} truth images but {len(items)} {what}"
            raise ValueError(msg)
    measured = BoundaryOptions.of(boundary)
    codes = LabelCodes(matrix.options.encoding(pred_is_index=not argmax is threshold is None))
    images = []
    for image, t, p, m in zip(names, truths, preds, masks, strict=True):
        try:
            if m is argmax is threshold is None and (is_lazy(t) or is_lazy(p)):
                count = count_windows(matrix.options.encoding(), t, p)
            else:
                count = matrix.count(t, p, mask=m, argmax=argmax, threshold=threshold)
            packed = None
            if measured is not None:
                pixels = np.asarray(to_host(t)), _decided(p, argmax, threshold)
                packed = pack_boundary(count_labels(codes, *pixels, measured, m))
        except (ValueError, TypeError) as error:
            error.add_note(f"in image {image!r}")
            raise
        images.append(ImageCount.of(image, count, boundary=packed))
    return Run(
        matrix.options,
        tuple(images),
        name=name,
        protocol=load_protocol(protocol),
        boundary=measured,
    )


def _decided(pred: Any, argmax: int | None, threshold: float | None) -> Any:
    found = np.asarray(to_host(pred))
    if argmax is threshold is None:
        return found
    return decide(found, argmax=argmax, threshold=threshold)


def _as_images(
    truth: Any, pred: Any, mask: Any
) -> tuple[Sequence[Any], Sequence[Any], Sequence[Any]]:
    single = _is_one_image(truth)
    truths, preds = ([truth], [pred]) if single else (_images(truth), _images(pred))
    if mask is None:
        return truths, preds, [None] * len(truths)
    return truths, preds, [mask] if single else _images(mask)


def _images(batch: Any) -> Sequence[Any]:
    return _StoredImages(batch) if is_lazy(batch) else list(batch)


class _StoredImages(Sequence[Any]):
    """Images along the first axis of an array on disk, one in memory at a time."""

    def __init__(self, batch: Any) -> None:
        self._batch = batch

    def __len__(self) -> int:
        return int(self._batch.shape[0])

    def __getitem__(self, index: Any) -> Any:
        return self._batch[range(len(self))[index]]


def _is_one_image(truth: Any) -> bool:
    if isinstance(truth, (list, tuple)):
        first = truth[0] if truth else None
        return isinstance(first, (list, tuple)) and not (
            first and isinstance(first[0], (list, tuple, np.ndarray))
        )
    return len(np.shape(truth)) <= 2
