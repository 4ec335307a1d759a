"""The street scenes of the demo: classes, things, light and noise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from skimage import draw

pass

SKY, BUILDING, ROAD, PAVEMENT, TREE, CAR, POLE, SIGN, PERSON, BICYCLE = range(10)
VOID: Final = 255

# Any two colours are at least 20 apart in CIELAB (Delta E 1976), as seen with normal sight and, by
# simulation, with deuteranopia and protanopia.
CLASSES: Final[tuple[tuple[str, str], ...]] = (
    ("sky", "#9bd5f8"),
    ("building", "#bba788"),
    ("road", "#6c6c82"),
    ("pavement", "#ebe3a6"),
    ("tree", "#186a48"),
    ("car", "#2d3f9e"),
    ("pole", "#5a123e"),
    ("sign", "#f7c700"),
    ("person", "#ec4d34"),
    ("bicycle", "#ed90b6"),
)
COMMON: Final = (SKY, BUILDING, ROAD, PAVEMENT, TREE, CAR)
RARE: Final = (POLE, SIGN, PERSON, BICYCLE)
GROUPS: Final[dict[str, tuple[int, ...]]] = {
    "flat": (ROAD, PAVEMENT),
    "scenery": (SKY, BUILDING, TREE),
    "furniture": (POLE, SIGN),
    "traffic": (CAR, PERSON, BICYCLE),
}
VOID_COLOR: Final = "#000000"
MARK: Final = "# Written by segiou demo."


def labels_toml() -> str:
    """Return the demo's label set as the text of a TOML file."""
    classes = [
        f'  {{ name = "{name}", values = [{value}], colors = ["{color}"] }},'
        for value, (name, color) in enumerate(CLASSES)
    ]
    groups = [f"{name} = [{_names(members)}]" for name, members in GROUPS.items()]
    lines = [
        MARK,
        'name = "streets"',
        'title = "Drawn street scenes of segiou demo"',
        f"ignore = [{VOID}]",
        f'ignore_colors = ["{VOID_COLOR}"]',
        "classes = [",
        *classes,
        "]",
        "",
        "[groups]",
        *groups,
    ]
    return "\n".join(lines) + "\n"


def palette() -> bytes:
    """Return the 256 RGB triples of a mask's palette: the classes' colours, black elsewhere."""
    colors = b"".join(bytes.fromhex(color[1:]) for _, color in CLASSES)
    return colors.ljust(3 * 256, b"\0")


def _names(members: tuple[int, ...]) -> str:
    return ", ".join(f'"{CLASSES[value][0]}"' for value in members)


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


IntArray = npt.NDArray[np.int64]


def box_sum(field: npt.NDArray[np.integer | np.bool_], radius: int) -> IntArray:
    """Sum over the square window of side ``2 * radius + 1`` around each pixel.

    Parameters
    ----------
    field : ndarray of int or bool, shape (H, W)
        Values to sum; beyond the edge the nearest value goes on.
    radius : int
        Half the window's side, in pixels.

    Returns
    -------
    ndarray of int64, shape (H, W)

    Examples
    --------
    >>> box_sum(np.eye(3, dtype=np.int64), 1)
    array([[5, 3, 1],
           [3, 3, 3],
           [1, 3, 5]])
    """
    summed = field.astype(np.int64)
    for _ in range(2):
        padded = np.pad(summed, ((radius + 1, radius), (0, 0)), mode="edge")
        padded[0] = 0
        running = np.cumsum(padded, axis=0)
        summed = (running[2 * radius + 1 :] - running[: -2 * radius - 1]).T
    return summed


def smooth_noise(rng: np.random.Generator, shape: tuple[int, int], cell: int) -> IntArray:
    """Return a smooth random field, mean 0 and standard deviation about 300.

    Parameters
    ----------
    rng : numpy.random.Generator
        Source of the random numbers.
    shape : tuple of int
        Height and width, in pixels.
    cell : int
        Size of the field's hills and hollows, in pixels.

    Returns
    -------
    ndarray of int64, shape (H, W)
        Values within [-1024, 1024]: uniform noise on a coarse grid, twice averaged over the grid's
        cells (a quadratic spline), in whole numbers.
    """
    height, width = shape
    coarse = rng.integers(-1024, 1025, (height // cell + 4, width // cell + 4))
    field = coarse.repeat(cell, axis=0).repeat(cell, axis=1)
    radius = cell // 2
    for _ in range(2):
        field = box_sum(field, radius) // (2 * radius + 1) ** 2
    return field[cell : cell + height, cell : cell + width]


Place = tuple[int, int]
Maker = Callable[[Canvas, Camera, Place, int], None]

GREENS: tuple[Color, ...] = ((74, 122, 60), (92, 138, 66), (60, 108, 70), (120, 132, 58))
PAINTS: tuple[Color, ...] = (
    (170, 46, 40),
    (44, 78, 138),
    (208, 208, 206),
    (62, 66, 72),
    (34, 92, 88),
    (222, 178, 66),
)
CLOTHES: tuple[Color, ...] = (
    (184, 54, 60),
    (52, 72, 130),
    (228, 196, 84),
    (70, 120, 96),
    (90, 60, 96),
)
GLASS, DARK, STEEL, SKIN = (58, 72, 88), (34, 34, 38), (88, 92, 96), (214, 168, 138)


def shaded(color: Color, percent: int) -> Color:
    """Return the colour at `percent` of its light, at most white."""
    red, green, blue = (min(255, c * percent // 100) for c in color)
    return red, green, blue


def _upright(
    canvas: Canvas,
    camera: Camera,
    place: Place,
    corners: Sequence[Place],
    color: Color,
    value: int | None,
) -> None:
    """Fill a polygon of (across, up) corners that stands at `place` and faces the camera."""
    x, z = place
    canvas.polygon([camera.see(x + dx, dy, z) for dx, dy in corners], color, value, z)


def _box(left: int, right: int, low: int, high: int) -> list[Place]:
    return [(left, low), (right, low), (right, high), (left, high)]


def draw_house(
    canvas: Canvas, camera: Camera, lot: tuple[int, int, int], height: int, wall: Color
) -> None:
    """Draw a house on a lot ``(x, near, far)``: its gable faces us, its front the street."""
    x, near, far = lot
    outward = 1 if x > 0 else -1
    _upright(
        canvas, camera, (x, near), _box(0, outward * 2500, 0, height), shaded(wall, 72), BUILDING
    )

    def front(z0: int, z1: int, low: int, high: int, color: Color, value: int | None) -> None:
        corners = [(z0, low), (z1, low), (z1, high), (z0, high)]
        canvas.polygon([camera.see(x, y, z) for z, y in corners], color, value, z0)

    lit = shaded(wall, 104 if x > 0 else 88)
    front(near, far, 0, height, lit, BUILDING)
    front(near, far, height - 30, height, shaded(lit, 80), None)
    front(near, far, 0, 50, shaded(lit, 70), None)
    for low in range(90, height - 150, 290):
        for z in range(near + 90, min(far - 150, 5000), 260):
            front(z - 12, z + 142, low - 10, low + 170, shaded(lit, 118), None)
            front(z, z + 130, low, low + 160, GLASS, None)
            front(z, z + 130, low + 90, low + 160, (104, 124, 146), None)


def draw_park(
    canvas: Canvas, camera: Camera, rng: np.random.Generator, lot: tuple[int, int, int]
) -> None:
    """Draw trees behind a hedge on a lot ``(x, near, far)``."""
    x, near, far = lot
    outward = 1 if x > 0 else -1
    for z in range(far - 200, near, -350):
        aside = outward * int(rng.integers(150, 700))
        draw_tree(canvas, camera, (x + aside, z), int(rng.integers(1 << 30)))
    corners = [(near, 0), (far, 0), (far, 130), (near, 130)]
    canvas.polygon([camera.see(x, y, z) for z, y in corners], (66, 104, 56), TREE, near)
    _upright(canvas, camera, (x, near), _box(0, outward * 2500, 0, 130), (54, 90, 50), TREE)


def draw_tree(canvas: Canvas, camera: Camera, place: Place, style: int) -> None:
    """Draw a trunk and a crown of overlapping leaf balls, lit from above."""
    rng = np.random.default_rng(style)
    x, z = place
    green = GREENS[int(rng.integers(len(GREENS)))]
    canvas.shade(camera.see(x, 0, z), (camera.size(150, z), camera.size(24, z)), 72)
    _upright(canvas, camera, place, _box(-14, 14, 0, 300), (86, 68, 54), TREE)
    balls = rng.integers((-130, 260, 70), (131, 560, 120), (14, 3))
    for shrink, percent in ((100, 78), (86, 100), (55, 118)):
        for across, up, radius in balls.tolist():
            lift = radius * (100 - shrink) // 120
            size = camera.size(radius * shrink // 100, z)
            center = camera.see(x + across - lift // 2, up + lift, z)
            value = TREE if shrink == 100 else None
            canvas.ellipse(center, (size, size), shaded(green, percent + up // 40), value, z)


def draw_lamp(canvas: Canvas, camera: Camera, place: Place, style: int) -> None:
    """Draw a street lamp whose arm reaches over the road."""
    del style
    inward = -1 if place[0] > 0 else 1
    _upright(canvas, camera, place, _box(-8, 8, 0, 620), STEEL, POLE)
    _upright(canvas, camera, place, _box(-12, 12, 0, 90), shaded(STEEL, 80), POLE)
    _upright(canvas, camera, place, _box(0, inward * 150, 605, 622), STEEL, POLE)
    _upright(
        canvas, camera, place, _box(inward * 100, inward * 165, 594, 612), (228, 220, 190), POLE
    )


def draw_sign(canvas: Canvas, camera: Camera, place: Place, style: int) -> None:
    """Draw a round, a three-cornered or a square traffic sign on its pole."""
    x, z = place
    _upright(canvas, camera, place, _box(-5, 5, 0, 280), STEEL, POLE)
    kind = style % 3
    if kind == 0:
        for radius, color in ((42, (200, 40, 44)), (30, (240, 240, 236))):
            size = camera.size(radius, z)
            canvas.ellipse(camera.see(x, 270, z), (size, size), color, SIGN, z)
        _upright(canvas, camera, place, _box(-20, 20, 264, 276), DARK, SIGN)
    elif kind == 1:
        for reach, color in ((50, (200, 40, 44)), (32, (244, 236, 210))):
            corners = [
                (-reach, 262 - reach * 2 // 3),
                (reach, 262 - reach * 2 // 3),
                (0, 262 + reach),
            ]
            _upright(canvas, camera, place, corners, color, SIGN)
    else:
        _upright(canvas, camera, place, _box(-40, 40, 230, 310), (236, 238, 240), SIGN)
        _upright(canvas, camera, place, _box(-35, 35, 235, 305), (40, 96, 180), SIGN)
        _upright(canvas, camera, place, _box(-8, 8, 246, 294), (236, 238, 240), SIGN)


def draw_person(canvas: Canvas, camera: Camera, place: Place, style: int) -> None:
    """Draw someone walking."""
    x, z = place
    coat, trousers = CLOTHES[style % len(CLOTHES)], shaded(CLOTHES[style // 7 % len(CLOTHES)], 55)
    stride = 8 + style // 49 % 16
    canvas.shade(camera.see(x, 0, z), (camera.size(40, z), camera.size(9, z)), 68)
    for foot in (-stride, stride):
        leg = [(-14, 88), (14, 88), (foot + 9, 0), (foot - 9, 0)]
        _upright(canvas, camera, place, leg, trousers, PERSON)
    coat_line = [(-20, 82), (20, 82), (25, 140), (14, 152), (-14, 152), (-25, 140)]
    _upright(canvas, camera, place, coat_line, coat, PERSON)
    _upright(canvas, camera, place, _box(-27, -19, 84, 140), shaded(coat, 82), PERSON)
    head = camera.size(12, z), camera.size(14, z)
    canvas.ellipse(camera.see(x, 166, z), head, SKIN, PERSON, z)
    canvas.ellipse(camera.see(x, 173, z), (head[0], head[1] // 2), shaded(trousers, 70), PERSON, z)


def draw_cyclist(canvas: Canvas, camera: Camera, place: Place, style: int) -> None:
    """Draw a bicycle across the picture with its rider; the wheels' discs belong to it."""
    x, z = place
    way = 1 if style % 2 else -1
    canvas.shade(camera.see(x, 0, z), (camera.size(95, z), camera.size(9, z)), 70)
    for hub in (-54, 54):
        center = camera.see(x + hub, 34, z)
        below = camera.see(x + hub, 34, z + 60)
        for radius, color in ((35, DARK), (29, (132, 132, 134))):
            size = camera.size(radius, z)
            canvas.ellipse(center, (size, size), color, BICYCLE, z)
        canvas.ellipse(below, (2, 2), DARK, None, z)
    frame = PAINTS[style // 2 % len(PAINTS)]
    tubes = [
        ((-54, 34), (-18, 88)),
        ((-18, 88), (40, 86)),
        ((40, 86), (-4, 34)),
        ((-4, 34), (-18, 88)),
    ]
    tubes += [((-54, 34), (-4, 34)), ((54, 34), (36, 108)), ((36, 108), (22, 112))]
    for (x0, y0), (x1, y1) in tubes:
        corners = [
            (way * x0 - 4, y0),
            (way * x0 + 4, y0 + 4),
            (way * x1 + 4, y1 + 4),
            (way * x1 - 4, y1),
        ]
        _upright(canvas, camera, place, corners, frame, BICYCLE)
    coat, trousers = (
        CLOTHES[style // 12 % len(CLOTHES)],
        shaded(CLOTHES[style // 60 % len(CLOTHES)], 60),
    )
    for rider, color in (
        ([(-28, 94), (-6, 96), (14, 60), (4, 24), (-6, 26), (0, 60)], trousers),
        ([(-30, 90), (-4, 92), (26, 142), (4, 152), (-16, 140)], coat),
        ([(6, 140), (16, 144), (38, 112), (30, 106)], shaded(coat, 84)),
    ):
        _upright(canvas, camera, place, [(way * dx, dy) for dx, dy in rider], color, PERSON)
    head = camera.size(12, z), camera.size(14, z)
    canvas.ellipse(camera.see(x + way * 18, 164, z), head, SKIN, PERSON, z)


def draw_car(canvas: Canvas, camera: Camera, place: Place, style: int) -> None:
    """Draw a car from behind or from the front: the flank that we see, then the face."""
    x, z = place
    paint = PAINTS[style % len(PAINTS)]
    canvas.shade(camera.see(x, 0, z + 60), (camera.size(120, z), camera.size(26, z)), 52)
    _draw_flank(canvas, camera, place, paint)

    def face(corners: Sequence[Place], color: Color, value: int | None = None) -> None:
        _upright(canvas, camera, place, corners, color, value)

    for wheel in (-78, 52):
        face(_box(wheel, wheel + 26, 0, 34), DARK, CAR)
    face([(-86, 24), (86, 24), (88, 62), (82, 96), (-82, 96), (-88, 62)], paint, CAR)
    face([(-76, 94), (76, 94), (58, 146), (-58, 146)], shaded(paint, 92), CAR)
    face([(-66, 98), (66, 98), (52, 138), (-52, 138)], GLASS)
    face([(-50, 98), (-10, 98), (-4, 138), (-40, 138)], shaded(GLASS, 150))
    face(_box(-86, 86, 24, 38), shaded(DARK, 130))
    lights = (244, 236, 196) if x < 0 else (206, 38, 36)
    for left in (-82, 54):
        face(_box(left, left + 28, 66, 82), lights)
    face(_box(-24, 24, 48, 60), (232, 232, 222))


def _draw_flank(canvas: Canvas, camera: Camera, place: Place, paint: Color) -> None:
    """Draw the side of a car that is turned to the middle of the road, where it is in view."""
    x, z = place
    inward = -86 if x > 0 else 86
    if (inward > 0) != (camera.see(x, 0, z + 400)[0] > camera.see(x, 0, z)[0]):
        return

    def side(shape: Sequence[Place], color: Color, value: int | None = None) -> None:
        corners = [camera.see(x + inward, up, z + along) for along, up in shape]
        canvas.polygon(corners, color, value, z)

    side([(0, 24), (400, 24), (400, 76), (330, 92), (0, 96)], shaded(paint, 74), CAR)
    side([(20, 90), (330, 88), (250, 142), (60, 144)], shaded(paint, 70), CAR)
    side([(46, 96), (300, 94), (240, 136), (80, 138)], shaded(GLASS, 80))
    for hub in (70, 320):
        tyre = [(-32, 4), (32, 4), (34, 44), (18, 62), (-18, 62), (-34, 44)]
        side([(hub + along, up) for along, up in tyre], DARK, CAR)


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
            draw_park(canvas, camera, rng, (side * FACADE, near, far))
            continue
        height = int(rng.integers(550, 1500))
        wall = WALLS[int(rng.integers(len(WALLS)))]
        draw_house(canvas, camera, (side * FACADE, near, far), height, wall)


def _furnish(
    rng: np.random.Generator, crossing: int | None, crowded: bool
) -> list[tuple[int, Callable[[Canvas, Camera], None]]]:
    """Return what stands in the street, each with its distance."""
    placed: list[tuple[int, Callable[[Canvas, Camera], None]]] = []

    def put(make: Maker, x: int, nearest: int, farthest: int) -> None:
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
                put(draw_tree, which * 790, z, z + 700)
        for z in range(1100, 6000, 1600):
            put(draw_lamp, which * 540, z, z + 200)
        for z in range(1500, 6000, 560):
            if rng.integers(3) == 0:
                put(draw_car, which * 370, z, z + 60)
    for _ in several(2):
        put(draw_car, side() * 150, 1100, 4000)
    for _ in several(3):
        put(draw_sign, side() * int(rng.integers(510, 600)), 800, 1600)
    for _ in several(5):
        put(draw_person, side() * int(rng.integers(560, 800)), 850, 2300)
    for _ in several(2):
        put(draw_cyclist, side() * int(rng.integers(250, 400)), 800, 1500)
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
