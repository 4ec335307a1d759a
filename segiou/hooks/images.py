"""Counts per image id, so that an image repeated by a distributed sampler is counted once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat
from typing import Any, Literal, Self, Unpack

from segiou._support.arguments import check_kind
from segiou._support.text import listed
from segiou.accumulators.base import Accumulator
from segiou.accumulators.confusion import ConfusionMatrix
from segiou.counting.arrays import framework_of, not_compiled, to_host, with_dimensions_of
from segiou.hooks.hook_options import check_options
from segiou.labels.class_options import ClassArguments, ClassOptions
from segiou.runs.image_counts import ImageCount, run_from_counts
from segiou.runs.run import Run

__all__ = ["ImageCounts"]

Conflict = Literal["error", "first"]


class ImageCounts(Accumulator):
    """An accumulator that keeps the counts of each image.

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
        if conflict not in ("error", "first"):
            msg = f"conflict must be 'error' or 'first', got {conflict!r}"
            raise ValueError(msg)
        self.conflict = conflict
        classes = ClassOptions.of(labels, **options)
        classes.warn_of_ignored_classes(stacklevel=3)
        self._counting = ConfusionMatrix.from_options(classes)
        self._forget()

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
        new = cls(options.num_classes, conflict=conflict)
        new._counting = ConfusionMatrix.from_options(options)
        return new

    @property
    def options(self) -> ClassOptions:
        """The classes and the ignored values."""
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
            If there is not exactly one id per image, or if an image was counted
            before with a different result and `conflict` is ``"error"``. Nothing
            of the batch is added then.
        """
        pred, mask = with_dimensions_of(truth, pred, argmax), with_dimensions_of(truth, mask)
        names = _names(ids)
        sides = {"truth": truth, "pred": pred, "mask": mask}
        lengths = {name: len(side) for name, side in sides.items() if side is not None}
        if {*lengths.values()} != {len(names)}:
            found = listed([f"{length} {name}" for name, length in lengths.items()])
            msg = f"expected one id per image, got {len(names)} ids for {found} images"
            raise ValueError(msg)
        # Without the batch axis, axes counted from the front move by one.
        axis = argmax - 1 if argmax is not None and argmax > 0 else argmax
        how: dict[str, Any] = {"argmax": axis, "threshold": threshold}
        masks = repeat(None) if mask is None else mask
        images = zip(names, truth, pred, masks, strict=False)
        counts = ((name, self._counting.count(t, p, mask=m, **how)) for name, t, p, m in images)
        return self._keep([ImageCount.of(name, count) for name, count in counts])

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

    def _keep(self, images: Iterable[ImageCount]) -> Self:
        """Add the images, or none of them if one was counted with a different result."""
        new: dict[str, ImageCount] = {}
        for image in images:
            known = self._images.get(image.id) or new.setdefault(image.id, image)
            if self.conflict == "error" and known != image:
                msg = (
                    f"image {image.id!r} was counted twice with different results; check that ids "
                    "are unique and the model did not change, or keep the first result with "
                    "conflict='first'"
                )
                raise ValueError(msg)
        self._images |= new
        return self

    def _forget(self) -> None:
        self._images: dict[str, ImageCount] = {}

    def _settings(self) -> dict[str, Any]:
        return {"options": self.options.to_dict(), "conflict": self.conflict}

    def _difference(self, other: Self) -> str:
        return self.options.difference(other.options)

    def _join(self, others: Sequence[Self]) -> None:
        self._keep(image for other in others for image in other.images)

    def _content(self) -> dict[str, Any]:
        return {"images": [image.to_dict() for image in self.images]}

    @classmethod
    def _of_state(cls, state: Mapping[str, Any]) -> Self:
        classes = ClassOptions.from_dict(state["options"])
        return cls.from_options(classes, conflict=state["conflict"])

    def _fill(self, state: Mapping[str, Any]) -> None:
        self._keep(map(ImageCount.from_dict, state["images"]))

    @property
    def images(self) -> tuple[ImageCount, ...]:
        """Counts of each image."""
        return tuple(self._images.values())

    def run(self, **about: Any) -> Run:
        """A :class:`segiou.Run` of the images, for worst images, intervals and comparisons.

        Parameters
        ----------
        **about
            Options of :func:`segiou.runs.run_from_counts`.
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
    """The ids as strings; ``3`` and ``tensor(3)`` are the same image."""
    plain = to_host(ids).tolist() if framework_of(ids) else ids
    items = [to_host(i).item() if framework_of(i) else i for i in plain]
    return [i.decode() if isinstance(i, bytes) else str(i) for i in items]
