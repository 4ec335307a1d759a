"""Counts per image id, so that an image repeated by a distributed sampler is counted once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Self, Unpack

from segiou._support.arguments import check_kind
from segiou.counting.arrays import not_compiled, with_dimensions_of
from segiou.hooks.hook_options import check_options
from segiou.labels.class_options import ClassArguments, ClassOptions
from segiou.runs.header import Header
from segiou.runs.image_counts import ImageCount
from segiou.scoring.evaluator import Conflict, Evaluator
from segiou.scoring.score_arrays import each_image

__all__ = ["ImageCounts"]


class ImageCounts(Evaluator):
    """An :class:`segiou.measures.Evaluator` of batches with an id per image.

    It stores the non-zero counts of each image, typically about 1 KiB per image.

    Parameters
    ----------
    labels, **options
        As for :class:`segiou.ConfusionMatrix`.
    conflict : {"error", "first"}
        Whether an image that is counted twice with different results raises an
        error, or keeps its first result (that of the lowest rank). Results can
        differ in half precision if batch sizes differ.

    Examples
    --------
    >>> images = ImageCounts(2)
    >>> images.update([[0, 1], [1, 1]], [[0, 1], [1, 0]], ids=["a", "b"])
    <ImageCounts: 2 images>
    >>> images.update([[1, 1]], [[1, 0]], ids=["b"]).total().pixels
    4
    """

    _noun = "images"

    def __init__(
        self, labels: Any, *, conflict: Conflict = "error", **options: Unpack[ClassArguments]
    ) -> None:
        check_options(ImageCounts, options, ClassArguments)
        classes = ClassOptions.of(labels, **options)
        classes.warn_of_ignored_classes(stacklevel=3)
        self._start(Header(classes), (), conflict)

    @classmethod
    def from_options(cls, options: ClassOptions, *, conflict: Conflict = "error") -> Self:
        """Build from class options.

        Parameters
        ----------
        options : ClassOptions
            The classes and the ignored values.
        conflict : {"error", "first"}, default "error"
            Treatment of an image that is counted twice with different results.
        """
        new = cls.__new__(cls)
        new._start(Header(options), (), conflict)
        return new

    @not_compiled
    def update(  # type: ignore[override] # ids are required here
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
            As for :meth:`segiou.ConfusionMatrix.update`, for the whole batch.
        ids : sequence of str or int, or tensor of them
            One id per image, unique over all processes.

        Returns
        -------
        Self
            This accumulator.

        Raises
        ------
        ValueError
            If there is not exactly one id per image, if ``argmax`` is 0, the axis of the
            images, or if an image was counted before with a different result and
            `conflict` is ``"error"``. Nothing of the batch is added then.
        """
        check_kind("ids", ids, Iterable, "one id per image")
        pred, mask = with_dimensions_of(truth, pred, argmax), with_dimensions_of(truth, mask)
        if argmax == 0:
            msg = "argmax=0 is the axis of the images; pass the class axis, such as argmax=1"
            raise ValueError(msg)
        # Without the batch axis, axes counted from the front move by one.
        axis = argmax - 1 if argmax is not None and argmax > 0 else argmax
        batch = each_image(truth, pred, mask, ids, is_batch=True)
        decision: dict[str, Any] = {"argmax": axis, "threshold": threshold}
        return self._keep([self._scorer.count(*each, **decision) for each in batch])

    def merge(self, *others: Self | Iterable[ImageCount]) -> Self:
        """Add images counted elsewhere with the same options.

        Parameters
        ----------
        *others : ImageCounts or iterable of ImageCount
            Counts to add; the others do not change.

        Returns
        -------
        Self
            This accumulator.

        Raises
        ------
        TypeError
            If an argument is something else.
        ValueError
            If classes or options differ, or if an image has different counts and
            `conflict` is ``"error"``. Nothing is added then.
        """
        return super().merge(*map(self._of_images, others))

    def _of_images(self, other: Any) -> Any:
        if isinstance(other, ImageCounts):
            return other
        check_kind("images", other, Iterable, "ImageCounts or an iterable of ImageCount")
        return self.empty()._keep(other)
