"""One street scene: where everything stands, drawn from the far end to the camera."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from segiou.demo import things
from segiou.demo.canvas import HEIGHT, OVERSAMPLING, WIDTH, Camera, Canvas, Color
from segiou.demo.classes import BUILDING, PAVEMENT, ROAD, SKY, TREE, VOID
from segiou.demo.photograph import DAY, DUSK, Light, expose

ROAD_HALF, FACADE = 470, 900
FAR = 9000
WALLS: tuple[Color, ...] = (
    (196, 164, 138),
    (172, 104, 82),
    (214, 202, 180),
    (150, 142, 138),
    (186, 150, 110),
    (128, 116, 118),
)


@dataclass(frozen=True)
class Scene:
    """A photograph, uint8 (H, W, 3), and its truth, uint8 (H, W)."""

    photograph: npt.NDArray[np.uint8]
    truth: npt.NDArray[np.uint8]


def draw_scene(rng: np.random.Generator, *, dusk: bool, crowded: bool) -> Scene:
    """Draw one scene.

    Parameters
    ----------
    rng : numpy.random.Generator
        Decides what stands where.
    dusk : bool
        Evening light, instead of noon.
    crowded : bool
        Whether there must be someone of each rare class in view, instead of by chance.

    Returns
    -------
    Scene
    """
    light = DUSK if dusk else DAY
    camera = Camera(
        vanishing_x=WIDTH + int(rng.integers(-70, 71)),
        horizon=HEIGHT * 9 // 10 + int(rng.integers(-14, 15)),
    )
    canvas = Canvas(haze=light.haze)
    crossing = int(rng.integers(1700, 2600)) if rng.integers(3) == 0 else None
    _draw_sky(canvas, camera, light)
    _draw_far_end(canvas, camera, rng)
    _draw_ground(canvas, camera, crossing)
    for side in (-1, 1):
        _draw_row(canvas, camera, rng, side, crossing)
    for _, put in sorted(_furnish(rng, crossing, crowded), key=lambda thing: -thing[0]):
        put(canvas, camera)
    photograph = expose(canvas, light, rng)
    truth = canvas.labels[::OVERSAMPLING, ::OVERSAMPLING].copy()
    _mask_own_car(photograph, truth)
    return Scene(photograph, truth)


def _draw_sky(canvas: Canvas, camera: Camera, light: Light) -> None:
    canvas.labels[:] = SKY
    rows = np.arange(len(canvas.labels))[:, None, None]
    zenith, low = np.array(light.zenith), np.array(light.haze)
    canvas.colors[:] = zenith + (low - zenith) * np.minimum(rows, camera.horizon) // camera.horizon


def _draw_ground(canvas: Canvas, camera: Camera, crossing: int | None) -> None:
    def flat(left: int, right: int, near: int, far: int, color: Color, value: int | None) -> None:
        ends = [(left, far), (right, far), (right, near), (left, near)]
        canvas.polygon([camera.see(x, 0, z) for x, z in ends], color, value, 1200)

    asphalt, paint = (84, 85, 92), (226, 224, 216)
    flat(-40 * FAR, 40 * FAR, 150, 6 * FAR, (168, 158, 146), PAVEMENT)
    flat(-ROAD_HALF - 18, ROAD_HALF + 18, 150, 5 * FAR, (206, 202, 192), PAVEMENT)
    flat(-ROAD_HALF, ROAD_HALF, 150, 5 * FAR, asphalt, ROAD)
    if crossing is not None:
        flat(-6000, 6000, crossing, crossing + 750, asphalt, ROAD)
    for start in range(300, 8000, 600):
        if crossing is None or not crossing - 300 < start < crossing + 750:
            flat(-7, 7, start, start + 300, paint, None)
    if crossing is not None:
        for x in range(-ROAD_HALF + 40, ROAD_HALF - 40, 100):
            flat(x, x + 50, crossing - 330, crossing - 60, paint, None)


def _draw_far_end(canvas: Canvas, camera: Camera, rng: np.random.Generator) -> None:
    left = -7000
    while left < 7000:
        width, height = int(rng.integers(500, 1400)), int(rng.integers(500, 1700))
        if rng.integers(4):
            wall = WALLS[int(rng.integers(len(WALLS)))]
            _front(canvas, camera, (left, left + width), height, FAR, wall, BUILDING)
        else:
            center = camera.see(left + width // 2, 0, FAR)
            radii = camera.size(width * 2 // 3, FAR), camera.size(height // 2, FAR)
            canvas.ellipse(center, radii, (70, 110, 66), TREE, FAR)
            _front(canvas, camera, (left, left + width), 200, FAR, (70, 110, 66), TREE)
        left += width


def _front(
    canvas: Canvas,
    camera: Camera,
    span: tuple[int, int],
    height: int,
    z: int,
    color: Color,
    value: int,
) -> None:
    left, right = span
    corners = [(left, 0), (right, 0), (right, height), (left, height)]
    canvas.polygon([camera.see(x, y, z) for x, y in corners], color, value, z)


def _draw_row(
    canvas: Canvas, camera: Camera, rng: np.random.Generator, side: int, crossing: int | None
) -> None:
    lots: list[tuple[int, int]] = []
    near = 350
    while near < FAR - 800:
        far = min(near + int(rng.integers(700, 1700)), FAR)
        if crossing is not None and near < crossing + 750 and far > crossing - 100:
            if crossing - near > 500:
                lots.append((near, crossing - 100))
            near = crossing + 850
            continue
        lots.append((near, far))
        near = far
    for near, far in reversed(lots):
        if rng.integers(10) < 3:
            things.draw_park(canvas, camera, rng, (side * FACADE, near, far))
            continue
        height = int(rng.integers(550, 1500))
        wall = WALLS[int(rng.integers(len(WALLS)))]
        things.draw_house(canvas, camera, (side * FACADE, near, far), height, wall)


def _furnish(
    rng: np.random.Generator, crossing: int | None, crowded: bool
) -> list[tuple[int, Callable[[Canvas, Camera], None]]]:
    """Return what stands in the street, each with its distance."""
    placed: list[tuple[int, Callable[[Canvas, Camera], None]]] = []

    def put(make: things.Maker, x: int, nearest: int, farthest: int) -> None:
        z = int(rng.integers(nearest, farthest))
        on_crossing = crossing is not None and crossing - 60 < z < crossing + 800
        if abs(x) < ROAD_HALF or not on_crossing:
            style = int(rng.integers(1 << 30))
            placed.append((z, lambda canvas, camera: make(canvas, camera, (x, z), style)))

    def several(most: int) -> range:
        return range(int(rng.integers(crowded, most + 1)))

    def side() -> int:
        return 1 if rng.integers(2) else -1

    for which in (-1, 1):
        for z in range(900, 7000, 1300):
            if rng.integers(5) < 2:
                put(things.draw_tree, which * 790, z, z + 700)
        for z in range(1100, 6000, 1600):
            put(things.draw_lamp, which * 540, z, z + 200)
        for z in range(1500, 6000, 560):
            if rng.integers(3) == 0:
                put(things.draw_car, which * 370, z, z + 60)
    for _ in several(2):
        put(things.draw_car, side() * 150, 1100, 4000)
    for _ in several(3):
        put(things.draw_sign, side() * int(rng.integers(510, 600)), 800, 1600)
    for _ in several(5):
        put(things.draw_person, side() * int(rng.integers(560, 800)), 850, 2300)
    for _ in several(2):
        put(things.draw_cyclist, side() * int(rng.integers(250, 400)), 800, 1500)
    return placed


def _mask_own_car(photograph: npt.NDArray[np.uint8], truth: npt.NDArray[np.uint8]) -> None:
    """Void the bonnet of the car that carries the camera, and the outermost pixels."""
    rows, columns = np.ogrid[:HEIGHT, :WIDTH]
    across, down = 2 * columns - WIDTH + 1, HEIGHT - rows
    edge = 20 - across * across * 15 // (WIDTH * WIDTH)
    bonnet = down <= edge
    glare = np.maximum(60 - np.abs(across + 90), 0) // 2
    tone = (38 + glare + 60 * (edge - down < 1) + 2 * down)[bonnet]
    photograph[bonnet] = np.stack([tone * 4 // 5, tone * 9 // 10, tone], axis=-1)
    truth[bonnet] = VOID
    truth[:, :2] = truth[:, -2:] = truth[:2] = VOID
