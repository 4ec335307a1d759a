"""Scoring of label or score arrays into a run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import replace
from functools import partial
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import numpy as np

from segiou._support.arguments import (
    check_choice,
    check_kind,
    check_several,
    names_options,
    read_several,
)
from segiou.accumulators.confusion import ConfusionMatrix
from segiou.counting.arrays import (
    as_array,
    axis_in_image,
    framework_of,
    is_on_device,
    to_host,
    with_dimensions_of,
    without_lists,
)
from segiou.counting.counts import ConfusionCounts
from segiou.counting.encoding import Encoding
from segiou.counting.one_hot import decided_truth
from segiou.counting.window_counts import count_windows
from segiou.labels.class_options import ClassArguments, ClassOptions, Labels
from segiou.masks.reading import MATCHES, Match
from segiou.masks.windows import is_chunked
from segiou.measures.mask_pair import MaskPair, Masks
from segiou.measures.registry import plans_of, read_measures, with_defaults
from segiou.metrics.protocols import Protocol, load_protocol
from segiou.runs.header import Header
from segiou.runs.image_counts import NO_FILES, Columns, ImageCount
from segiou.runs.run import Run
from segiou.scoring.clusters import ClusterOptions, Clusters, check_clusters, counting_options
from segiou.scoring.pair import PairScorer

if TYPE_CHECKING:
    from segiou.measures.measure import Measure

_END = object()


@partial(names_options, also=ClassArguments.__annotations__)
def score(
    truth: Any,
    pred: Any,
    *,
    labels: Labels,
    ids: Iterable[str] | None = None,
    argmax: int | None = None,
    threshold: float | None = None,
    mask: Any = None,
    boundary: Measure | bool | None = None,
    objects: Measure | bool | None = None,
    measures: Any = (),
    surfaces: Measure | str | bool | None = None,
    spacing: Sequence[float] | None = None,
    match: Match | None = None,
    protocol: Protocol | str = "segiou",
    name: str = "",
    **options: Any,
) -> Run:
    """Score a batch of label arrays, keeping the counts of each image.

    Parameters
    ----------
    truth, pred : iterable of array_like, or mapping from id to array_like
        One label array per image (or scores, with ``argmax`` or ``threshold``). The
        first axis of an array indexes the images; a single 2-D truth array is one
        image, and (N, H, W) are N; pass volumes in a list. Generators are consumed one
        image at a time. Arrays of zarr, dask or h5py are counted window by window and may
        be larger than memory.
    labels
        See :class:`segiou.ConfusionMatrix`.
    ids : iterable of str, optional
        Image ids; by default their indices. Runs sort them as text, so that "10" is before "2".
    argmax, threshold : optional
        How to convert scores to classes, as in :meth:`segiou.ConfusionMatrix.update`.
        ``argmax`` is the class axis of the batch: 1 for (N, C, H, W), and also for lists,
        iterators and mappings of (C, H, W), which count as the first axis; −1 for classes
        last; 0 only for the (C, H, W) of a single image. ``threshold`` is compared with the
        scores as they are: 0.5 for probabilities, 0 for logits, also with
        ``ScoreOptions("sigmoid")``. Only that of files (``--scores=sigmoid --threshold 0.5``,
        ``ScoreOptions("sigmoid", threshold=0.5)``) is a probability of logits.
    mask : iterable of array_like of bool, optional
        Valid pixels of each image.
    boundary : BoundaryOptions or bool, optional
        See :func:`score_folder`; not supported for volumes, use ``surfaces``.
    objects : ObjectOptions or bool, optional
        See :func:`score_folder`; objects are connected components.
    measures : iterable of Measure or str
        Other measures, or their keys.
    surfaces : SurfaceOptions, str or bool, optional
        See :func:`score_folder`.
    spacing : sequence of float, optional
        Size of a pixel or voxel along each axis, for surfaces and the minimum
        size of objects.
    match : {"hungarian", "majority"}, optional
        Predictions are cluster numbers; see :func:`score_folder`. Generators are read into
        memory.
    protocol, name
        See :func:`score_folder`.
    **options
        Other options of :class:`segiou.ConfusionMatrix`.

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
    classes.warn_of_ignored_classes()
    check_kind("name", name, str, "text")
    if isinstance(truth, Mapping) and isinstance(pred, Mapping) and ids is None:
        ids, truth, pred, mask = _named_images(truth, pred, mask)
    if isinstance(ids, str) and is_one_image(truth):
        ids = [ids]
    if ids is not None:
        check_several("ids", ids, "one id per image")
    several = read_measures(measures, boundary=boundary, objects=objects, surfaces=surfaces)
    chosen = with_defaults(several, labels, spacing)
    if threshold is not None:  # images alone do not show channels
        classes.check_scores(tuple(getattr(pred, "shape", ())), None)
    header = Header(classes, load_protocol(protocol), name)
    is_batch = not is_one_image(truth)
    class_axis = axis_in_image(argmax, is_batch=is_batch)
    decided: dict[str, Any] = {"argmax": class_axis, "threshold": threshold}
    batch: Iterable[Any] = each_image(truth, pred, mask, ids, is_batch=is_batch)
    if match is not None:
        check_choice("match", match, MATCHES)
        are_scores = (argmax, threshold) != (None, None)
        check_clusters(match, pred_labels=options.get("pred_labels"), scores=are_scores)
        batch = [*batch]
        header = _matched(header, match, batch)
    scorer = ArrayScorer(header, chosen, spacing)
    images = [scorer.count(*each, **decided) for each in batch]
    return Run(scorer.header, Columns.of(images).by_id())


def _matched(header: Header, match: Match, batch: Iterable[Any]) -> Header:
    """The header with the classes of the clusters of all images."""
    empty = replace(header, options=counting_options(header.options))
    scorer = ArrayScorer(empty, [ClusterOptions()])
    counted = Columns.of([scorer.count(*each) for each in batch])
    parts = Run(scorer.header, counted).measured[ClusterOptions.key]
    clusters = Clusters.of(match, header.options, parts, len(counted))
    origin = {"match": match, "clusters": str(clusters)}
    return replace(header, options=clusters.options, provenance=origin)


def _named_images(
    truth: Mapping[str, Any], pred: Mapping[str, Any], mask: Any
) -> tuple[list[str], list[Any], list[Any], Any]:
    """Names and images of mappings from the name of an image."""
    for what, side in (("pred", pred), ("mask", mask)):
        if isinstance(side, Mapping) and (different := truth.keys() ^ side.keys()):
            msg = f"truth and {what} must have the same images; {sorted(different)[0]!r} differs"
            raise ValueError(msg)
    names = list(truth)
    masks = [mask[name] for name in names] if isinstance(mask, Mapping) else mask
    return names, [truth[name] for name in names], [pred[name] for name in names], masks


class ArrayScorer:
    """Counts images that are arrays; the first shows whether they are volumes."""

    def __init__(
        self,
        header: Header,
        measures: Sequence[Measure],
        spacing: Any = None,
        matrix: ConfusionMatrix | None = None,
    ) -> None:
        for measure in measures:
            measure.check_arrays()
        self._empty, self._measures, self._spacing = header, measures, spacing
        self._matrix = matrix or ConfusionMatrix.from_options(header.options)
        self._scorer: PairScorer | None = None

    @property
    def header(self) -> Header:
        """Header of the images; before the first, they are assumed not to be volumes."""
        return self._scorer_for(volumes=False).header

    def go_on(self, header: Header) -> None:
        """Count further images for a header that others were counted for."""
        self._scorer = PairScorer(header)

    def _scorer_for(self, *, volumes: bool) -> PairScorer:
        if self._scorer is None:
            masks, options = Masks(volumes, self._spacing), self._empty.options
            plans = plans_of(self._measures, options, masks, self._empty.protocol.name)
            return PairScorer(replace(self._empty, plans=plans))
        return self._scorer

    def count(
        self,
        image: str,
        truth: Any,
        pred: Any,
        mask: Any = None,
        *,
        argmax: int | None = None,
        threshold: float | None = None,
        spacing: Sequence[float] | None = None,
    ) -> ImageCount:
        """Count an image; a spacing is that of its file."""
        decision: dict[str, Any] = {"argmax": argmax, "threshold": threshold}
        is_labels, scores = argmax is threshold is None, None
        truth, pred = without_lists(truth, "truth"), without_lists(pred, "pred")
        truth = decided_truth(truth, pred, argmax, self._matrix._encoding.truth_values)
        pred, mask = with_dimensions_of(truth, pred, argmax), with_dimensions_of(truth, mask)
        try:
            if mask is None and is_labels and (is_chunked(truth) or is_chunked(pred)):
                encoding = Encoding.of_classes(self._empty.options)
                counted: ConfusionCounts = count_windows(encoding, truth, pred)
            elif self._measures:
                local = [to_host(a) if is_on_device(a) else a for a in (truth, pred, mask)]
                counted, pred = self._matrix._count_decided(*local, **decision)
                if not is_labels:
                    pred = self._empty.options.decided_values.take(pred)
                    scores = as_array(local[1], "pred")
                    scores = scores if argmax is None else np.moveaxis(scores, argmax, 0)
            else:
                counted = self._matrix.count(truth, pred, mask=mask, **decision)
            extras = {"mask": mask, "spacing": spacing, "scores": scores, "tally": counted}
            measured = self._measured(truth, pred, **extras) if self._measures else None
        except (ValueError, TypeError) as error:
            error.add_note(f"in image {image!r}")
            raise
        return ImageCount.of(image, counted, NO_FILES, measured)

    def _measured(self, truth: Any, pred: Any, **extras: Any) -> bytes | None:
        """Packed counts of the measures of two arrays of labels."""
        pixels = as_array(truth, "truth"), as_array(pred, "pred")
        scorer = self._scorer = self._scorer_for(volumes=pixels[0].ndim == 3)
        return scorer.measured(MaskPair(*pixels, scorer.header.options, **extras))


def each_image(
    truth: Any, pred: Any, mask: Any, ids: Iterable[Any] | None, *, is_batch: bool
) -> Iterator[tuple[str, Any, Any, Any]]:
    """Id, truth, prediction and mask of each image; rows of a 2-D array may be flat images."""
    sides = {"truth": truth, "pred": pred} | ({} if mask is None else {"mask": mask})
    if not is_batch:
        images: list[Any] = [[side] for side in sides.values()]
    else:
        images = [_images_of(name, side, truth) for name, side in sides.items()]
    streams = dict(zip(("truth images", "predictions", "masks"), images, strict=False))
    if ids is not None:
        check_several("ids", ids, "one id per image")
        streams["ids"] = to_host(ids).tolist() if framework_of(ids) else ids
    _check_lengths(streams)
    for number, items in enumerate(zip_longest(*streams.values(), fillvalue=_END)):
        if any(item is _END for item in items):
            row = dict(zip(streams, items, strict=True))
            ended = [what for what, item in row.items() if item is _END]
            longer = next(what for what in row if what not in ended)
            msg = f"got {number} {ended[0]}, but more {longer}; pass equal numbers"
            raise ValueError(msg)
        name = str(number) if ids is None else id_text(items[-1])
        yield name, items[0], items[1], None if mask is None else items[2]


def _images_of(name: str, batch: Any, truth: Any) -> Iterable[Any]:
    """The images of a batch, whose first axis is that of the truth if both name their axes."""
    axes, dims = getattr(truth, "dims", None), getattr(batch, "dims", None)
    if isinstance(axes, tuple) and isinstance(dims, tuple) and axes[0] in dims[1:]:
        batch = batch.transpose(axes[0], *(name for name in dims if name != axes[0]))
    if is_chunked(batch):
        return _StoredImages(batch)
    if isinstance(batch, Iterator):
        return batch
    return read_several(name, batch, "an iterable of images")


def _check_lengths(streams: Mapping[str, Iterable[Any]]) -> None:
    """Raise ValueError if the numbers of images differ, as far as they are known."""
    lengths = [(what, len(items)) for what, items in streams.items() if isinstance(items, Sized)]
    for what, length in lengths[1:]:
        if length != lengths[0][1]:
            msg = f"got {lengths[0][1]} {lengths[0][0]} but {length} {what}"
            raise ValueError(msg)


def id_text(id: Any) -> str:
    """An id as text; ``3`` and ``tensor(3)`` are the same image."""
    plain = to_host(id).item() if framework_of(id) else id
    return plain.decode() if isinstance(plain, bytes) else str(plain)


class _StoredImages(Sequence[Any]):
    """Images along the first axis of a chunked array, one in memory at a time."""

    def __init__(self, batch: Any) -> None:
        self._batch = batch

    def __len__(self) -> int:
        return int(self._batch.shape[0])

    def __getitem__(self, index: Any) -> Any:
        return self._batch[range(len(self))[index]]


def is_one_image(truth: Any) -> bool:
    """Whether the truth is one image, not a batch of them."""
    if isinstance(truth, Iterator):
        return False
    if isinstance(truth, (list, tuple)):
        first = truth[0] if truth else None
        return isinstance(first, (list, tuple)) and not (
            first and isinstance(first[0], (list, tuple, np.ndarray))
        )
    return len(np.shape(truth)) <= 2
