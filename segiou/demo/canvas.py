"""What a scene is drawn on: class values and colours side by side, and a camera."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from skimage import draw

# scikit-image's drawing functions carry no annotations.
shapes: Any = draw

Color = tuple[int, int, int]
Point = tuple[int, int]

# Scenes are drawn twice as large as they are kept: the photograph's edges become soft.
OVERSAMPLING = 2
HEIGHT, WIDTH = 192, 320


@dataclass(frozen=True)
class Camera:
    """A pinhole camera above the middle of the road; lengths in cm, picture in pixels.

    Attributes
    ----------
    vanishing_x, horizon : int
        Where the street's parallels meet.
    focal : int
        Focal length, in pixels.
    height : int
        The lens above the ground, in cm.
    """

    vanishing_x: int
    horizon: int
    focal: int = 400
    height: int = 150

    def see(self, x: int, y: int, z: int) -> Point:
        """Return column and row of a point `x` to the right, `y` above ground, `z` ahead."""
        column = self.vanishing_x + self.focal * x // z
        return column, self.horizon + self.focal * (self.height - y) // z

    def size(self, length: int, z: int) -> int:
        """Return how many pixels `length` cm make at distance `z`, at least one."""
        return max(1, self.focal * length // z)


@dataclass
class Canvas:
    """Class values and colours of one scene, both painted over from far to near."""

    haze: Color
    labels: npt.NDArray[np.uint8] = field(
        default_factory=lambda: np.zeros((HEIGHT * OVERSAMPLING, WIDTH * OVERSAMPLING), np.uint8)
    )
    colors: npt.NDArray[np.int64] = field(
        default_factory=lambda: np.zeros((HEIGHT * OVERSAMPLING, WIDTH * OVERSAMPLING, 3), np.int64)
    )

    def polygon(self, points: Sequence[Point], color: Color, value: int | None, z: int = 0) -> None:
        """Fill a polygon of (column, row) corners; without a `value` only its colour changes."""
        columns, rows = np.array(points).T
        self._paint(shapes.polygon(rows, columns, self.labels.shape), color, value, z)

    def ellipse(
        self, center: Point, radii: Point, color: Color, value: int | None, z: int = 0
    ) -> None:
        """Fill an ellipse with radii (across, down)."""
        (column, row), (across, down) = center, radii
        pixels = shapes.ellipse(row, column, down + 1, across + 1, self.labels.shape)
        self._paint(pixels, color, value, z)

    def shade(self, center: Point, radii: Point, percent: int) -> None:
        """Darken an ellipse of the ground to `percent` of its light."""
        (column, row), (across, down) = center, radii
        pixels = shapes.ellipse(row, column, down + 1, across + 1, self.labels.shape)
        self.colors[pixels] = self.colors[pixels] * percent // 100

    def _paint(
        self,
        pixels: tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]],
        color: Color,
        value: int | None,
        z: int,
    ) -> None:
        veil = min(z, 9000)
        mixed = [
            (c * (14000 - veil) + h * veil) // 14000 for c, h in zip(color, self.haze, strict=True)
        ]
        self.colors[pixels] = mixed
        if value is not None:
            self.labels[pixels] = value
