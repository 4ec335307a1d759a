"""How masks are read: options that all readers receive as one object."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from segiou._support.arguments import check_choice, check_flag, check_kind, check_number
from segiou._support.options import Options, option
from segiou.masks.colors import READINGS, ReadPalette

Geometry = Literal["check", "ignore", "reorient"]
Match = Literal["hungarian", "majority"]
#: Rules that give clusters their classes.
MATCHES = get_args(Match)
#: Axes of a volume, in the order of the file of a volume or reversed.
OF_VOLUMES = ("xyz", "zyx")
#: Axes of a stack of images.
STACKED = "nyx"
#: Pattern of a folder with the files of a single image.
ONE_IMAGE = "{class}"
#: Placeholder for the name of a file with one object, in place of ``{class}``.
OBJECT = "{object}"


def check_pattern(name: str, pattern: object) -> None:
    """Raise an error unless a pattern has ``{id}`` and ``{class}`` once, or is ``{class}``.

    Files of objects have ``{object}`` in place of ``{class}``.
    """
    check_kind(name, pattern, str, "a pattern such as '{id}/{class}'")
    text = str(pattern).replace(OBJECT, "{class}")
    if (text.count("{id}"), text.count("{class}")) != (1, 1) and text != ONE_IMAGE:
        msg = f"{name} must contain {{id}}, and {{class}} or {{object}}, once, got {pattern!r}"
        raise ValueError(msg)


def _check_threshold(name: str, value: object) -> None:
    if check_number(name, value, 0) == 0:
        msg = f"{name} must be above 0"
        raise ValueError(msg)


def _check_key(name: str, value: object) -> None:
    check_kind(name, value, str, "text")
    if str(value).count(",") > 1:
        msg = f"{name} {value!r}: expected one name, or one each for truth and pred"
        raise ValueError(msg)


@dataclass(frozen=True, kw_only=True)
class Reading(Options):
    """How masks are read; :func:`segiou.score_folder` documents the options."""

    allow_lossy: bool = option(False, check_flag)
    resize_pred: Literal["nearest"] | None = option(None, check_choice, ("nearest",))
    geometry: Geometry = option("check", check_choice, get_args(Geometry))
    array_axes: str | None = option(None, check_choice, (*OF_VOLUMES, STACKED))
    class_files: str | None = option(None, check_pattern)
    truth_threshold: float | None = option(None, _check_threshold)
    pred_threshold: float | None = option(None, _check_threshold)
    array_key: str | None = option(None, _check_key)
    roi: str | Path | None = option(None, check_kind, (str, os.PathLike), "a path or a URL")
    read_palette: ReadPalette | None = option(None, check_choice, READINGS)
    match: Match | None = option(None, check_choice, MATCHES)

    @property
    def axes_of_volumes(self) -> str | None:
        """The order of the axes of arrays that are volumes; None if it was not given."""
        return self.array_axes if self.array_axes in OF_VOLUMES else None

    def key_of(self, side: int) -> str:
        """Name of the array of the truth (side 0) or the predictions (1); empty if not given."""
        return (self.array_key or "").split(",")[-side]

    def threshold_of(self, side: int) -> float | None:
        """Threshold of the truth (side 0) or the predictions (1)."""
        return self.pred_threshold if side else self.truth_threshold

    def adjusts(self, side: int) -> bool:
        """Whether options change the masks of a side."""
        others = self.threshold_of(side), self.read_palette
        return bool(self.key_of(side)) or others != (None, None)
