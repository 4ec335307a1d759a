"""Counts by image id: an image that a distributed sampler repeats is counted once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, Self

from segiou.accumulators.confusion import ConfusionMatrix
from segiou.counting.arrays import framework_of, not_compiled, to_host
from segiou.labels.class_options import ClassOptions
from segiou.runs.image_counts import ImageCount, run_from_counts
from segiou.runs.run import Run

__all__ = ["ImageCounts"]

Conflict = Literal["error", "first"]


class ImageCounts:
    """An accumulator that knows which image each count is of.

    Memory grows by about a KiB for each image: its filled cells are kept.

    Parameters
    ----------
    labels, **options
        As :class:`segiou.ConfusionMatrix`.
    conflict : {"error", "first"}
        What happens if one image is counted twice with different results: an
        error, or the first result (of the lowest rank) is kept. Half precision
        can make such a difference where batches differ in size.

    Examples
    --------
    >>> images = ImageCounts(2)
    >>> images.update([[0, 1], [1, 1]], [[0, 1], [1, 0]], ids=["a", "b"])
    <ImageCounts: 2 images>
    >>> images.update([[1, 1]], [[1, 0]], ids=["b"]).total().pixels
    4
    """

    def __init__(self, labels: Any, *, conflict: Conflict = "error", **options: Any) -> None:
        if conflict not in ("error", "first"):
            msg = f"conflict must be 'error' or 'first', got {conflict!r}"
            raise ValueError(msg)
        self.conflict = conflict
        classes = ClassOptions.of(labels, **options)
        classes.warn_of_ignored_classes(stacklevel=3)
        self._counting = ConfusionMatrix.from_options(classes)
        self._images: dict[str, ImageCount] = {}

    @classmethod
    def from_options(cls, options: ClassOptions, *, conflict: Conflict = "error") -> Self:
        """Of these classes and options, with no images.

        Parameters
        ----------
        options : ClassOptions
            The classes, and what is ignored.
        conflict : Conflict, default "error"
            What happens to an image that comes again.
        """
        new = cls(options.num_classes, conflict=conflict)
        new._counting = ConfusionMatrix.from_options(options)
        return new

    @property
    def options(self) -> ClassOptions:
        """The classes and how pixels are counted."""
        return self._counting.options

    @not_compiled
    def update(
        self,
        truth: Any,
        pred: Any,
        *,
        ids: Sequence[object] | Any,
        mask: Any = None,
        argmax: int | None = None,
        threshold: float | None = None,
    ) -> Self:
        """Count a batch; the first axis of truth, pred and mask is the image.

        Parameters
        ----------
        truth, pred, mask, argmax, threshold
            As :meth:`segiou.ConfusionMatrix.update`, for the batch as a whole.
        ids : sequence of str or int, or tensor of them, one an image
            What distinguishes the images, over all processes.

        Returns
        -------
        Self

        Raises
        ------
        ValueError
            If there are more or fewer ids than images, or as `conflict` says.
        """
        names = _names(ids)
        if not len(names) == len(truth) == len(pred):
            msg = f"{len(names)} ids, {len(truth)} truths and {len(pred)} preds; one id an image"
            raise ValueError(msg)
        # The axis of one image is one less; the last axes stay the last.
        axis = argmax - 1 if argmax is not None and argmax > 0 else argmax
        for i, name in enumerate(names):
            valid = None if mask is None else mask[i]
            count = self._counting.count(
                truth[i], pred[i], mask=valid, argmax=axis, threshold=threshold
            )
            self._add(ImageCount.of(name, count))
        return self

    def merge(self, images: Iterable[ImageCount]) -> Self:
        """Add images counted elsewhere with the same options.

        Parameters
        ----------
        images : iterable of ImageCount
            Images of other counts.

        Returns
        -------
        Self
        """
        for image in images:
            self._add(image)
        return self

    def _add(self, image: ImageCount) -> None:
        known = self._images.setdefault(image.id, image)
        if self.conflict == "error" and known != image:
            msg = (
                f"image {image.id!r} was counted twice with different results; are its ids unique "
                "and the model the same? conflict='first' keeps the first"
            )
            raise ValueError(msg)

    def empty(self) -> Self:
        """Of the same options, with no images."""
        return self.from_options(self.options, conflict=self.conflict)

    def reset(self) -> Self:
        """Forget all images."""
        self._images.clear()
        return self

    @property
    def images(self) -> tuple[ImageCount, ...]:
        """Counts of each image."""
        return tuple(self._images.values())

    def run(self, **about: Any) -> Run:
        """A :class:`segiou.Run` of the images: worst images, intervals, comparisons.

        Parameters
        ----------
        **about
            Options of the run, as :func:`segiou.runs.run_from_counts` takes them.

        Returns
        -------
        Run
        """
        return run_from_counts(self.options, self.images, **about)

    def total(self) -> ConfusionMatrix:
        """All images in one confusion matrix."""
        return self.run().total()

    def __len__(self) -> int:
        return len(self._images)

    def __repr__(self) -> str:
        return f"<ImageCounts: {len(self)} images>"


def _names(ids: Any) -> list[str]:
    """The ids as text, the same whatever they came in: ``3`` and ``tensor(3)`` are one image."""
    plain = to_host(ids).tolist() if framework_of(ids) else ids
    items = [to_host(i).item() if framework_of(i) else i for i in plain]
    return [i.decode() if isinstance(i, bytes) else str(i) for i in items]
