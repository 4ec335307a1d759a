"""Scoring of label or score arrays into a run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Sized
from dataclasses import replace
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import numpy as np

from segiou._support.arguments import check_kind, check_several, read_several
from segiou.accumulators.confusion import ConfusionMatrix
from segiou.counting.arrays import to_host
from segiou.counting.counts import ConfusionCounts
from segiou.counting.encoding import Encoding, count_windows
from segiou.counting.scores import scores_to_labels
from segiou.labels.class_options import ClassOptions, Labels
from segiou.masks.windows import is_chunked
from segiou.measures.measure import Masks
from segiou.measures.registry import fitted, plans_of, read_measures
from segiou.metrics.protocols import Protocol, load_protocol
from segiou.runs.header import Header
from segiou.runs.image_counts import NO_FILES, Columns, ImageCount
from segiou.runs.run import Run
from segiou.scoring.pair import PairScorer

if TYPE_CHECKING:
    from segiou.boundary.boundary_options import BoundaryOptions
    from segiou.boundary.surfaces import SurfaceOptions
    from segiou.instances.object_files import ObjectOptions
    from segiou.measures.measure import Measure

_END = object()


def score(
    truth: Any,
    pred: Any,
    *,
    labels: Labels,
    ids: Iterable[str] | None = None,
    argmax: int | None = None,
    threshold: float | None = None,
    mask: Any = None,
    boundary: BoundaryOptions | bool | None = None,
    objects: ObjectOptions | bool | None = None,
    measures: Any = (),
    surfaces: SurfaceOptions | str | bool | None = None,
    spacing: Sequence[float] | None = None,
    protocol: Protocol | str = "segiou",
    name: str = "",
    **options: Any,
) -> Run:
    """Score a batch of label arrays, keeping the counts of each image.

    Parameters
    ----------
    truth, pred : iterable of array_like
        One label array per image (or scores, with ``argmax`` or ``threshold``). The
        first axis of an array indexes the images; a single 2-D truth array is one
        image. Generators are consumed one image at a time. Arrays of zarr, dask or
        h5py are counted window by window and may be larger than memory.
    labels
        See :class:`segiou.ConfusionMatrix`.
    ids : iterable of str, optional
        Image ids; by default their indices.
    argmax, threshold : optional
        How to convert scores to classes; ``argmax`` is the class axis of one image's scores.
    mask : iterable of array_like of bool, optional
        Valid pixels of each image.
    boundary : BoundaryOptions or bool, optional
        See :func:`score_folder`; not supported for volumes, use ``surfaces``.
    objects : ObjectOptions or bool, optional
        See :func:`score_folder`; objects are connected components.
    surfaces : SurfaceOptions, str or bool, optional
        See :func:`score_folder`.
    spacing : sequence of float, optional
        Size of a pixel or voxel along each axis, for surfaces and the minimum
        size of objects.
    protocol, name
        See :func:`score_folder`.
    **options
        Other options of :class:`segiou.ConfusionMatrix`.

    Returns
    -------
    Run

    Raises
    ------
    TypeError
        If an argument has the wrong type.
    ValueError
        If the numbers of truth and prediction images differ, or a pair cannot be
        counted.

    Examples
    --------
    >>> run = score([[0, 1], [1, 1]], [[0, 1], [0, 1]], labels=["no", "yes"])
    >>> round(run.report().mean_iou, 4)
    0.5833
    """
    classes = ClassOptions.of(labels, **options)
    classes.warn_of_ignored_classes(stacklevel=2)
    matrix = ConfusionMatrix.from_options(classes)
    check_kind("name", name, str, "text")
    if ids is not None:
        check_several("ids", ids, "one id per image")
    short = {"boundary": boundary, "objects": objects, "surfaces": surfaces}
    chosen = fitted(read_measures(measures, **short), labels, spacing)
    named = (getattr(measure, "source", "components") for measure in chosen)
    if sources := [source for source in named if source != "components"]:
        msg = (
            f"arrays have no {sources[0]!r} object ids; score connected components "
            "(objects=True), files (score_folder), or ids (segiou.instances.PanopticCounts)"
        )
        raise ValueError(msg)
    header = Header(classes, load_protocol(protocol), name)
    scorer: PairScorer | None = None
    decided: dict[str, Any] = {"argmax": argmax, "threshold": threshold}
    first_values = {entry.name: entry.values[0] for entry in classes.pred_labels.classes}
    values = np.array([first_values[name] for name in classes.labels.class_names])
    images = []
    for image, t, p, m in _together(truth, pred, mask, ids):
        try:
            if m is argmax is threshold is None and (is_chunked(t) or is_chunked(p)):
                counted: ConfusionCounts = count_windows(Encoding.of_classes(classes), t, p)
            else:
                counted = matrix.count(t, p, mask=m, **decided)
            beside: bytes | None = None
            if chosen:
                pixels = np.asarray(to_host(t)), np.asarray(to_host(p))
                if not argmax is threshold is None:
                    pixels = pixels[0], values.take(scores_to_labels(pixels[1], **decided))
                if scorer is None:
                    scorer = PairScorer(_planned(header, chosen, pixels[0].ndim == 3, spacing))
                beside = scorer.measured(*pixels, mask=m, tally=counted)
        except (ValueError, TypeError) as error:
            error.add_note(f"in image {image!r}")
            raise
        images.append(ImageCount.of(image, counted, NO_FILES, beside))
    if scorer is None:
        scorer = PairScorer(_planned(header, chosen, False, spacing))
    return Run(scorer.header, Columns.of(images).by_id())


def _planned(header: Header, measures: Sequence[Measure], volumes: bool, spacing: Any) -> Header:
    """The header with what is counted beside the pixels."""
    masks = Masks(volumes, spacing)
    return replace(header, plans=plans_of(measures, header.options, masks, header.protocol.name))


def _together(
    truth: Any, pred: Any, mask: Any, ids: Iterable[Any] | None
) -> Iterator[tuple[str, Any, Any, Any]]:
    """Id, truth, prediction and mask of each image."""
    is_one = _is_one_image(truth)

    def images(name: str, batch: Any) -> Iterable[Any]:
        if is_one:
            return [batch]
        if is_chunked(batch):
            return _StoredImages(batch)
        if isinstance(batch, Iterator):
            return batch
        return read_several(name, batch, "an iterable of images")

    streams = {"truth images": images("truth", truth), "predictions": images("pred", pred)}
    if mask is not None:
        streams["masks"] = images("mask", mask)
    if ids is not None:
        streams["ids"] = ids
    lengths = [(what, len(items)) for what, items in streams.items() if isinstance(items, Sized)]
    for what, length in lengths[1:]:
        if length != lengths[0][1]:
            msg = f"got {lengths[0][1]} {lengths[0][0]} but {length} {what}"
            raise ValueError(msg)
    for number, items in enumerate(zip_longest(*streams.values(), fillvalue=_END)):
        row = dict(zip(streams, items, strict=True))
        ended = [what for what, item in row.items() if item is _END]
        if ended:
            longer = next(what for what in row if what not in ended)
            msg = f"got only {number} {ended[0]}, but more {longer}"
            raise ValueError(msg)
        name = str(row.get("ids", number))
        yield name, row["truth images"], row["predictions"], row.get("masks")


class _StoredImages(Sequence[Any]):
    """Images along the first axis of a chunked array, one in memory at a time."""

    def __init__(self, batch: Any) -> None:
        self._batch = batch

    def __len__(self) -> int:
        return int(self._batch.shape[0])

    def __getitem__(self, index: Any) -> Any:
        return self._batch[range(len(self))[index]]


def _is_one_image(truth: Any) -> bool:
    if isinstance(truth, Iterator):
        return False
    if isinstance(truth, (list, tuple)):
        first = truth[0] if truth else None
        return isinstance(first, (list, tuple)) and not (
            first and isinstance(first[0], (list, tuple, np.ndarray))
        )
    return len(np.shape(truth)) <= 2
