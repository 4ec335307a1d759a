"""From painted colours to something like a photograph: clouds, texture, light, grain."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from segiou.demo.canvas import OVERSAMPLING, Canvas, Color
from segiou.demo.classes import BUILDING, PAVEMENT, ROAD, SKY, TREE
from segiou.demo.noise import smooth_noise


@dataclass(frozen=True)
class Light:
    """The light of a drive.

    Attributes
    ----------
    zenith, haze : tuple of int
        Colours of the sky above and at the horizon; far things fade to the latter.
    cloud : tuple of int
        Colour of the clouds.
    tint : tuple of int
        Strength of red, green and blue, in percent.
    """

    zenith: Color
    haze: Color
    cloud: Color
    tint: Color


DAY = Light((86, 146, 214), (204, 222, 236), (250, 250, 250), (100, 101, 102))
DUSK = Light((84, 104, 166), (246, 206, 168), (255, 226, 196), (102, 93, 86))
# How far the texture of a class departs from its plain colour, in percent.
ROUGHNESS = {BUILDING: 6, ROAD: 6, PAVEMENT: 6, TREE: 26}


def expose(canvas: Canvas, light: Light, rng: np.random.Generator) -> npt.NDArray[np.uint8]:
    """Return the canvas as a photograph at its final size, uint8 (H, W, 3)."""
    colors = canvas.colors
    _add_clouds(canvas, light, rng)
    shape = canvas.labels.shape
    texture = smooth_noise(rng, shape, 3) + smooth_noise(rng, (shape[0], shape[1] // 4), 6).repeat(
        4, 1
    )
    strength = np.zeros(256, np.int64)
    strength[list(ROUGHNESS)] = list(ROUGHNESS.values())
    change = 400 * 100 + texture * strength[canvas.labels]
    colors = colors * change[..., None] // 40000
    height, width = (side // OVERSAMPLING for side in shape)
    blocks = colors.reshape(height, OVERSAMPLING, width, OVERSAMPLING, 3)
    picture = blocks.sum(axis=(1, 3)) // OVERSAMPLING**2
    picture = picture * np.array(light.tint) // 100
    picture = picture * _vignette(height, width)[..., None] // 1000
    picture = picture + rng.integers(-4, 5, (height, width, 1))
    exposed: npt.NDArray[np.uint8] = np.clip(picture, 0, 255).astype(np.uint8)
    return exposed


def _add_clouds(canvas: Canvas, light: Light, rng: np.random.Generator) -> None:
    height, width = canvas.labels.shape
    # Drawn narrow and stretched: clouds lie flat.
    field = sum(
        smooth_noise(rng, (height, width // 4), cell).repeat(4, axis=1) * weight
        for cell, weight in ((40, 6), (22, 4), (12, 3), (6, 1))
    )
    cover = np.clip(field // 10 + 30, 0, 420)[..., None] * (canvas.labels == SKY)[..., None]
    canvas.colors += (np.array(light.cloud) - canvas.colors) * cover // 480


def _vignette(height: int, width: int) -> npt.NDArray[np.int64]:
    rows, columns = np.ogrid[:height, :width]
    down, across = 2 * rows - height, 2 * columns - width
    falloff = 130 * (down * down + across * across) // (height * height + width * width)
    return np.asarray(1000 - falloff)
