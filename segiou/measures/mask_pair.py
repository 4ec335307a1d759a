"""Inputs of measures: properties of all masks, a pair of masks, and files of scores."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from segiou._support.arguments import check_choice, check_flag, read_spacing
from segiou.counting.counts import ConfusionCounts
from segiou.counting.encoding import Encoding
from segiou.labels.class_options import ClassOptions
from segiou.masks.formats.georeference import Raster

if TYPE_CHECKING:
    from segiou.masks.raw_mask import Volume


@dataclass(frozen=True)
class Masks:
    """Properties of all masks, known before the first is read.

    Attributes
    ----------
    volumes : bool
        Whether they are label volumes.
    spacing : tuple of float, optional
        Size of a pixel along each axis that replaces the spacing of the files.
    unit : {"mm", ""}
        Unit of the spacing of the files, if it is known.
    """

    volumes: bool = False
    spacing: tuple[float, ...] | None = None
    unit: str = ""

    def __post_init__(self) -> None:
        check_flag("volumes", self.volumes)
        check_choice("unit", self.unit, ("", "mm"))
        if self.spacing is not None:
            object.__setattr__(self, "spacing", read_spacing(self.spacing))


def _read_only(array: Any) -> NDArray[Any]:
    """A view of an array that measures cannot write into."""
    view = np.asarray(array).view()
    view.setflags(write=False)
    return view


@dataclass(frozen=True, eq=False)
class MaskPair:
    """One truth and prediction, as measures count them.

    Attributes
    ----------
    truth, pred : ndarray
        Label values, of one shape; treat them as read-only.
    classes : ClassOptions
        The classes, and which values are ignored.
    ids : (object, object)
        Object ids of truth and prediction, where the files have any.
    mask : ndarray of bool, optional
        Valid pixels; all by default.
    spacing : sequence of float, optional
        Size of a pixel along each axis, from the file of the truth.
    tally : ConfusionCounts, optional
        The confusion matrix of the pair.
    scores : ndarray, optional
        Scores from which the prediction was derived, if known: one per class,
        (C, ...), or with the shape of the truth that of the second of two classes.
    raster : Raster, optional
        The georeference of the truth, or of the prediction if the truth has none.
    """

    truth: NDArray[Any]
    pred: NDArray[Any]
    classes: ClassOptions
    ids: tuple[Any, Any] = (None, None)
    mask: Any = None
    spacing: Sequence[float] | None = None
    tally: ConfusionCounts | None = None
    scores: Any = None
    raster: Raster | None = None

    def copied(self) -> MaskPair:
        """A copy of the masks, so that a change reaches no other measure or caller.

        Several libraries reject read-only arrays, but scores are too large to copy.
        """
        arrays: dict[str, Any] = {
            "truth": np.array(self.truth),
            "pred": np.array(self.pred),
            "mask": None if self.mask is None else np.array(self.mask),
            "tally": deepcopy(self.tally),
            "scores": None if self.scores is None else _read_only(self.scores),
        }
        return replace(self, **arrays)

    @cached_property
    def codes(self) -> tuple[NDArray[np.unsignedinteger], NDArray[np.unsignedinteger]]:
        """Class index of each pixel of truth and prediction; C for no class, and where ignored."""
        encoding, number = Encoding.of_classes(self.classes), self.classes.num_classes
        truth, pred = encoding.truth.codes_of(self.truth), encoding.pred.codes_of(self.pred)
        void = truth >= number
        if self.mask is not None:
            void |= ~np.asarray(self.mask, bool)
        truth = np.where(void, truth.dtype.type(number), truth)
        return truth, np.where(void | (pred >= number), pred.dtype.type(number), pred)

    @cached_property
    def indices(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The same as signed integers; -1 for no class, and where ignored."""
        truth, pred = (side.astype(np.int64) for side in self.codes)
        for side in (truth, pred):
            side[side == self.classes.num_classes] = -1
        return truth, pred

    @property
    def id_maps(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Object id of each pixel of truth and prediction; ValueError if the masks have none."""
        if None in self.ids:
            msg = (
                "has no ids of objects, which scores of objects need; pass --objects labels for "
                "images with one id per object (objects='labels')"
            )
            raise ValueError(msg)
        return _read_only(self.ids[0].id_map), _read_only(self.ids[1].id_map)


class ScoredPrediction(NamedTuple):
    """A prediction file of scores.

    Attributes
    ----------
    labels : ndarray
        Label values derived from the scores.
    scores : ndarray
        The scores, as in :class:`MaskPair`.
    volume : Volume, optional
        The labels with their geometry.
    """

    labels: NDArray[Any]
    scores: NDArray[Any]
    volume: Volume | None = None
