"""Both masks of a pair on the grid on which their pixels are counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from segiou.masks.raw_mask import VOLUME_SUFFIXES, MaskError, RawMask, image_shape
from segiou.masks.read import mapped_background
from segiou.masks.reading import Reading
from segiou.masks.sources.pairing import Pair
from segiou.measures.mask_pair import ScoredPrediction
from segiou.scoring.array_axes import check_is_volume, is_reversed, scored_in_order
from segiou.scoring.open_mask import OpenMask
from segiou.scoring.problems import geometry_text, is_swapped, size_text

if TYPE_CHECKING:
    from segiou.measures.plan import Plan

_TOO_LARGE_TO_TURN = (
    "is too large to be reoriented; save it in the orientation of its truth, or as .nii.gz"
)


@dataclass(frozen=True)
class Alignment:
    """Puts predictions on the grid of their truth.

    Attributes
    ----------
    reading : Reading
        How masks are read.
    plans : tuple of Plan
        The measures, whose spacing may replace that of the files.
    score_reader : Plan, optional
        The plan that reads the predictions, if they are scores.
    """

    reading: Reading
    plans: tuple[Plan, ...]
    score_reader: Plan | None

    def aligned(self, pair: Pair, truth: OpenMask, pred: OpenMask) -> tuple[OpenMask, OpenMask]:
        """Both sides on the grid on which their pixels are counted.

        Parameters
        ----------
        pair : Pair
            The files.
        truth, pred : OpenMask
            Both sides as they were opened.

        Raises
        ------
        MaskError
            If they do not fit.
        """
        truth, pred = self._aligned_axes(pair, truth, pred)
        truth, pred = self._common_extent(truth, pred)
        return truth, self._fitted(pair, truth, pred)

    def spacing(self, pair: Pair, truth: OpenMask) -> Sequence[float] | None:
        """Spacing of the truth; MaskError if measures need it and its order is unknown."""
        spacing = truth.array_spacing if truth.volume is None else truth.volume.spacing
        spacings = [plan.masks.spacing for plan in self.plans]
        if spacing is None or spacing[0] == spacing[0] or None not in spacings:
            return spacing
        problem = (
            "has a spacing that may be in the order of its axes or reversed; pass it in the order "
            "of the axes: spacing=(A, B, C) (--spacing A,B,C)"
        )
        raise MaskError(pair.truth, problem)

    def _aligned_axes(
        self, pair: Pair, truth: OpenMask, pred: OpenMask
    ) -> tuple[OpenMask, OpenMask]:
        """Both sides, an array paired with a volume with the axes of the volume."""
        shapes = tuple(truth.values.shape), tuple(pred.values.shape)
        if truth.volume is pred.volume is None and len(shapes[0]) == len(shapes[1]) == 2:
            return truth, pred
        if truth.volume is pred.volume is None and self.spacing(pair, truth) is None:
            spacings = [plan.masks.spacing for plan in self.plans]
            if self.reading.axes_of_volumes is None and not any(spacings):
                truth, pred = truth.as_image(shapes[1]), pred.as_image(shapes[0])
                check_is_volume(tuple(truth.values.shape), pair.truth)
        if pred.content is not None or (truth.volume is None) == (pred.volume is None):
            return truth, pred
        path, array = (pair.truth, truth) if truth.volume is None else (pair.pred, pred)
        shapes = tuple(truth.values.shape), tuple(pred.values.shape)
        wanted = shapes[array is truth]
        if not is_reversed(shapes[array is pred], wanted, self.reading.axes_of_volumes, path):
            return truth, pred
        if array.is_big:
            raise MaskError(path, f"has reversed axes and {_TOO_LARGE_TO_TURN}")
        turned = replace(
            array,
            values=np.asarray(array.values).transpose(),
            objects=array.objects and array.objects._replace(ids=array.objects.id_map.T),
            valid=None if array.valid is None else array.valid.transpose(),
            array_spacing=array.array_spacing and array.array_spacing[::-1],
        )
        return (turned, pred) if array is truth else (truth, turned)

    def _common_extent(self, truth: OpenMask, pred: OpenMask) -> tuple[OpenMask, OpenMask]:
        """Both sides on one grid, if 3D Slicer has saved them without their empty border."""
        volumes = truth.volume, pred.volume
        if self.reading.geometry == "ignore" or volumes[0] is None or volumes[1] is None:
            return truth, pred
        is_plain = not any(
            side.is_big or side.objects or side.valid is not None for side in (truth, pred)
        )
        if not is_plain or not (volumes[0].segments or volumes[1].segments):
            return truth, pred
        from segiou.masks.formats.slicer import common_extent
        from segiou.masks.formats.volumes import reorient

        other = volumes[1]
        if self.reading.geometry == "reorient" and other.orientation != volumes[0].orientation:
            other = reorient(other, volumes[0])
        sides = zip((truth, pred), common_extent(volumes[0], other), strict=True)
        first, second = (replace(side, values=new.values, volume=new) for side, new in sides)
        return first, second

    def _scored(self, path: str, content: bytes | RawMask, truth: OpenMask) -> ScoredPrediction:
        """The prediction in a file of scores, with the axes of the truth."""
        shape = tuple(truth.values.shape)
        assert self.score_reader is not None
        read = partial(self.score_reader.read_prediction, content, path)
        if truth.volume is None or path.lower().endswith(VOLUME_SUFFIXES):
            scored: ScoredPrediction = read(shape)
            return scored
        return scored_in_order(read, path, content, shape, self.reading.axes_of_volumes)

    def _fitted(self, pair: Pair, truth: OpenMask, pred: OpenMask) -> OpenMask:
        """The prediction with the grid, the size and the background label of its truth."""
        if pred.content is not None:
            scored = self._scored(pair.pred, pred.content, truth)
            pred = OpenMask(scored.labels, pred.stamp, scored.volume, scores=scored.scores)
        pred = self._with_grid(pair, truth, pred)
        if (background := pred.outside[0]) is not None:
            values = mapped_background(pred.values, background, truth.outside[1], pair.pred)
            pred = replace(pred, values=values)
        shapes = tuple(truth.values.shape), tuple(pred.values.shape)
        is_fixed = self.reading.resize_pred is None
        if is_fixed or len(shapes[0]) != len(shapes[1]) or is_swapped(shapes):
            check_size(pair, *shapes)
        return pred if shapes[0] == shapes[1] else pred.resized(shapes[0])

    def _with_grid(self, pair: Pair, truth: OpenMask, pred: OpenMask) -> OpenMask:
        """The prediction on the grid of its truth; MaskError if they differ."""
        if self.reading.geometry == "ignore":
            return pred
        if truth.raster and pred.raster:
            shapes = truth.values.shape, pred.values.shape
            if difference := truth.raster.difference(pred.raster, *shapes):
                text = geometry_text(pair.truth, difference, "warp", "pixel")
                raise MaskError(pair.pred, text)
        if truth.volume is None or pred.volume is None:
            return pred
        from segiou.masks.formats.volumes import geometry_difference, reorient

        volume = pred.volume
        turned = volume.orientation != truth.volume.orientation and pred.scores is None
        if self.reading.geometry == "reorient" and turned:
            if pred.is_big:
                raise MaskError(pair.pred, _TOO_LARGE_TO_TURN)
            volume = reorient(volume, truth.volume)
        if difference := geometry_difference(truth.volume, volume):
            raise MaskError(pair.pred, geometry_text(pair.truth, difference))
        objects = pred.objects and pred.objects._replace(ids=volume.values)
        return replace(pred, values=volume.values, volume=volume, objects=objects)


def check_size(
    pair: Pair,
    wanted: tuple[int, ...],
    shape: tuple[int, ...],
    *,
    may_be_reversed: bool = False,
    may_be_image: bool = False,
) -> None:
    """MaskError if a prediction has another shape than its truth."""
    fits = shape == wanted or (may_be_reversed and shape == wanted[::-1])
    if may_be_image:
        is_image = image_shape(shape, wanted) == image_shape(wanted, shape)
        fits = fits or is_image or shape == (*wanted, 3)
    if not fits:
        raise MaskError(pair.pred, size_text(pair.truth, (wanted, shape)))
