"""The street scenes of the demo: camera and canvas, things in the street, light.

All drawing is integer arithmetic, so that equal seeds give equal masks on every machine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
from skimage import draw

SKY, BUILDING, ROAD, PAVEMENT, TREE, CAR, POLE, SIGN, PERSON, BICYCLE = range(10)
VOID: Final = 255
COMMON: Final = (SKY, BUILDING, ROAD, PAVEMENT, TREE, CAR)
RARE: Final = (POLE, SIGN, PERSON, BICYCLE)

HEIGHT, WIDTH = 192, 320
#: Scenes are drawn twice as large as they are kept, so that edges in the image are soft.
OVERSAMPLING = 2
#: Half the width of the road, where the houses begin, and where the street ends, in cm.
ROAD_HALF, FACADE, FAR = 470, 900, 9000

Bytes = npt.NDArray[np.uint8]
IntArray = npt.NDArray[np.int64]
Color = tuple[int, int, int]
Point = tuple[int, int]


def draw_scene(rng: np.random.Generator, *, dusk: bool, crowded: bool) -> tuple[Bytes, Bytes]:
    """Draw an image (H, W, 3) and its truth (H, W); ``crowded`` has each rare class for sure."""
    light = _DUSK if dusk else _DAY
    street = Street(
        rng,
        vanishing_x=WIDTH + int(rng.integers(-70, 71)),
        horizon=HEIGHT * 9 // 10 + int(rng.integers(-14, 15)),
        haze=light.haze,
    )
    crossing = int(rng.integers(1700, 2600)) if rng.integers(3) == 0 else None
    _draw_sky(street, light)
    _draw_far_end(street)
    _draw_ground(street, crossing)
    for side in (-1, 1):
        _draw_row(street, side, crossing)
    for z, make, x, style in sorted(_things(rng, crossing, crowded), key=lambda thing: -thing[0]):
        make(street.at(x, z), style)
    image = _expose(street, light)
    truth = street.labels[::OVERSAMPLING, ::OVERSAMPLING].copy()
    _mask_own_car(image, truth)
    return image, truth


class Street:
    """A canvas of class values and colours, seen by a pinhole camera above the middle of the road.

    Lengths in the street are in cm: x to the right, y above the ground, z ahead.
    """

    FOCAL, LENS_HEIGHT = 400, 150

    def __init__(
        self, rng: np.random.Generator, vanishing_x: int, horizon: int, haze: Color
    ) -> None:
        self.rng, self.vanishing_x, self.horizon, self.haze = rng, vanishing_x, horizon, haze
        shape = (HEIGHT * OVERSAMPLING, WIDTH * OVERSAMPLING)
        self.labels = np.full(shape, SKY, np.uint8)
        self.colors: IntArray = np.zeros((*shape, 3), np.int64)

    def integer(self, low: int, high: int) -> int:
        """A random integer, without `high`."""
        return int(self.rng.integers(low, high))

    def choice(self, colors: Sequence[Color]) -> Color:
        """A random colour."""
        return colors[int(self.rng.integers(len(colors)))]

    def at(self, x: int, z: int) -> Place:
        """A place in the street."""
        return Place(self, x, z)

    def see(self, x: int, y: int, z: int) -> Point:
        """Column and row of a point."""
        column = self.vanishing_x + self.FOCAL * x // z
        return column, self.horizon + self.FOCAL * (self.LENS_HEIGHT - y) // z

    def polygon(
        self, corners: Sequence[tuple[int, int, int]], color: Color, value: int | None, z: int
    ) -> None:
        """Fill a polygon in the street; without a `value` only its colour changes."""
        columns, rows = np.array([self.see(*corner) for corner in corners]).T
        self._paint(_draw.polygon(rows, columns, self.labels.shape), color, value, z)

    def ellipse(self, at: Point, radii: Point, color: Color, value: int | None, z: int) -> None:
        """Fill an ellipse of the picture."""
        self._paint(self._disc(at, radii), color, value, z)

    def shade(self, at: Point, radii: Point, percent: int) -> None:
        """Darken an ellipse of the picture to `percent` of its light."""
        pixels = self._disc(at, radii)
        self.colors[pixels] = self.colors[pixels] * percent // 100

    def _disc(self, at: Point, radii: Point) -> Any:
        return _draw.ellipse(at[1], at[0], radii[1] + 1, radii[0] + 1, self.labels.shape)

    def _paint(self, pixels: Any, color: Color, value: int | None, z: int) -> None:
        """What is far fades into the haze."""
        veil = min(z, FAR)
        mixed = [
            (c * (14000 - veil) + h * veil) // 14000 for c, h in zip(color, self.haze, strict=True)
        ]
        self.colors[pixels] = mixed
        if value is not None:
            self.labels[pixels] = value


# scikit-image's drawing functions carry no annotations.
_draw: Any = draw


@dataclass(frozen=True)
class Place:
    """Where a thing stands; its parts are given as (across, up) in cm, and face the camera."""

    street: Street
    x: int
    z: int

    def upright(self, corners: Sequence[Point], color: Color, value: int | None = None) -> None:
        """Fill a polygon that stands here."""
        solid = [(self.x + across, up, self.z) for across, up in corners]
        self.street.polygon(solid, color, value, self.z)

    def ball(
        self, across: int, up: int, radii: Point, color: Color, value: int | None = None
    ) -> None:
        """Fill an ellipse with radii (across, down) in cm."""
        pixels = self.size(radii[0]), self.size(radii[1])
        at = self.street.see(self.x + across, up, self.z)
        self.street.ellipse(at, pixels, color, value, self.z)

    def shadow(self, across: int, down: int, percent: int, behind: int = 0) -> None:
        """Darken the ground below."""
        at = self.street.see(self.x, 0, self.z + behind)
        self.street.shade(at, (self.size(across), self.size(down)), percent)

    def size(self, length: int) -> int:
        """How many pixels `length` cm make here, at least one."""
        return max(1, self.street.FOCAL * length // self.z)


def _box(left: int, right: int, low: int, high: int) -> list[Point]:
    return [(left, low), (right, low), (right, high), (left, high)]


def _colors(text: str) -> tuple[Color, ...]:
    red_green_blue = [bytes.fromhex(color) for color in text.split()]
    return tuple((red, green, blue) for red, green, blue in red_green_blue)


def _shaded(color: Color, percent: int) -> Color:
    """The colour at `percent` of its light, at most white."""
    red, green, blue = (min(255, c * percent // 100) for c in color)
    return red, green, blue


_GREENS = _colors("4a7a3c 5c8a42 3c6c46 78843a")
_PAINTS = _colors("aa2e28 2c4e8a d0d0ce 3e4248 225c58 deb242")
_CLOTHES = _colors("b8363c 344882 e4c454 467860 5a3c60")
_WALLS = _colors("c4a48a ac6852 d6cab4 968e8a ba966e 807476")
_GLASS, _DARK, _STEEL, _SKIN = _colors("3a4858 222226 585c60 d6a88a")
_ASPHALT, _SLABS, _KERB, _LINES = _colors("54555c a89e92 cecac0 e2e0d8")


def _draw_sky(street: Street, light: Light) -> None:
    rows = np.arange(len(street.labels))[:, None, None]
    zenith, low = np.array(light.zenith), np.array(light.haze)
    street.colors[:] = zenith + (low - zenith) * np.minimum(rows, street.horizon) // street.horizon


def _draw_far_end(street: Street) -> None:
    left, green = -7000, (70, 110, 66)
    while left < 7000:
        width, height = street.integer(500, 1400), street.integer(500, 1700)
        end = street.at(left, FAR)
        if street.integer(0, 4):
            end.upright(_box(0, width, 0, height), street.choice(_WALLS), BUILDING)
        else:
            end.ball(width // 2, 0, (width * 2 // 3, height // 2), green, TREE)
            end.upright(_box(0, width, 0, 200), green, TREE)
        left += width


def _draw_ground(street: Street, crossing: int | None) -> None:
    def flat(
        left: int, right: int, near: int, far: int, color: Color, value: int | None = None
    ) -> None:
        corners = [(left, 0, far), (right, 0, far), (right, 0, near), (left, 0, near)]
        street.polygon(corners, color, value, 1200)

    flat(-40 * FAR, 40 * FAR, 150, 6 * FAR, _SLABS, PAVEMENT)
    flat(-ROAD_HALF - 18, ROAD_HALF + 18, 150, 5 * FAR, _KERB, PAVEMENT)
    flat(-ROAD_HALF, ROAD_HALF, 150, 5 * FAR, _ASPHALT, ROAD)
    if crossing is not None:
        flat(-6000, 6000, crossing, crossing + 750, _ASPHALT, ROAD)
    for start in range(300, 8000, 600):
        if crossing is None or not crossing - 300 < start < crossing + 750:
            flat(-7, 7, start, start + 300, _LINES)
    if crossing is not None:
        for x in range(-ROAD_HALF + 40, ROAD_HALF - 40, 100):
            flat(x, x + 50, crossing - 330, crossing - 60, _LINES)


def _draw_row(street: Street, side: int, crossing: int | None) -> None:
    """Draw the houses and parks of one side, from far to near."""
    for near, far in reversed(_lots(street, crossing)):
        if street.integer(0, 10) < 3:
            _draw_park(street, side, near, far)
        else:
            height = street.integer(550, 1500)
            _draw_house(street, side, near, far, height, street.choice(_WALLS))


def _lots(street: Street, crossing: int | None) -> list[tuple[int, int]]:
    """Where each lot begins and ends, around the crossing street."""
    lots: list[tuple[int, int]] = []
    near = 350
    while near < FAR - 800:
        far = min(near + street.integer(700, 1700), FAR)
        if crossing is not None and near < crossing + 750 and far > crossing - 100:
            if crossing - near > 500:
                lots.append((near, crossing - 100))
            near = crossing + 850
        else:
            lots.append((near, far))
            near = far
    return lots


def _draw_house(street: Street, side: int, near: int, far: int, height: int, wall: Color) -> None:
    """Draw a house: its gable faces us, its front the street."""
    x = side * FACADE
    street.at(x, near).upright(_box(0, side * 2500, 0, height), _shaded(wall, 72), BUILDING)

    def front(corners: Sequence[Point], color: Color, value: int | None = None) -> None:
        street.polygon([(x, up, z) for z, up in corners], color, value, corners[0][0])

    lit = _shaded(wall, 104 if side > 0 else 88)
    front(_box(near, far, 0, height), lit, BUILDING)
    front(_box(near, far, height - 30, height), _shaded(lit, 80))
    front(_box(near, far, 0, 50), _shaded(lit, 70))
    for low in range(90, height - 150, 290):
        for z in range(near + 90, min(far - 150, 5000), 260):
            front(_box(z - 12, z + 142, low - 10, low + 170), _shaded(lit, 118))
            front(_box(z, z + 130, low, low + 160), _GLASS)
            front(_box(z, z + 130, low + 90, low + 160), (104, 124, 146))


def _draw_park(street: Street, side: int, near: int, far: int) -> None:
    """Draw trees behind a hedge."""
    x = side * FACADE
    for z in range(far - 200, near, -350):
        aside = side * street.integer(150, 700)
        _draw_tree(street.at(x + aside, z), street.integer(0, 1 << 30))
    hedge = [(x, y, z) for z, y in _box(near, far, 0, 130)]
    street.polygon(hedge, (66, 104, 56), TREE, near)
    street.at(x, near).upright(_box(0, side * 2500, 0, 130), (54, 90, 50), TREE)


def _draw_tree(place: Place, style: int) -> None:
    """Draw a trunk and a crown of overlapping leaf balls, lit from above."""
    rng = np.random.default_rng(style)
    green = _GREENS[int(rng.integers(len(_GREENS)))]
    place.shadow(150, 24, 72)
    place.upright(_box(-14, 14, 0, 300), (86, 68, 54), TREE)
    balls = rng.integers((-130, 260, 70), (131, 560, 120), (14, 3))
    for shrink, percent in ((100, 78), (86, 100), (55, 118)):
        for across, up, radius in balls.tolist():
            lift, size = radius * (100 - shrink) // 120, radius * shrink // 100
            color = _shaded(green, percent + up // 40)
            value = TREE if shrink == 100 else None
            place.ball(across - lift // 2, up + lift, (size, size), color, value)


def _draw_lamp(place: Place, style: int) -> None:
    """Draw a street lamp whose arm reaches over the road."""
    inward = -1 if place.x > 0 else 1
    place.upright(_box(-8, 8, 0, 620), _STEEL, POLE)
    place.upright(_box(-12, 12, 0, 90), _shaded(_STEEL, 80), POLE)
    place.upright(_box(0, inward * 150, 605, 622), _STEEL, POLE)
    place.upright(_box(inward * 100, inward * 165, 594, 612), (228, 220, 190), POLE)


def _draw_sign(place: Place, style: int) -> None:
    """Draw a round, a three-cornered or a square traffic sign on its pole."""
    red, white = (200, 40, 44), (236, 238, 240)
    place.upright(_box(-5, 5, 0, 280), _STEEL, POLE)
    if style % 3 == 0:
        place.ball(0, 270, (42, 42), red, SIGN)
        place.ball(0, 270, (30, 30), (240, 240, 236), SIGN)
        place.upright(_box(-20, 20, 264, 276), _DARK, SIGN)
    elif style % 3 == 1:
        for reach, color in ((50, red), (32, (244, 236, 210))):
            low = 262 - reach * 2 // 3
            place.upright([(-reach, low), (reach, low), (0, 262 + reach)], color, SIGN)
    else:
        place.upright(_box(-40, 40, 230, 310), white, SIGN)
        place.upright(_box(-35, 35, 235, 305), (40, 96, 180), SIGN)
        place.upright(_box(-8, 8, 246, 294), white, SIGN)


def _draw_person(place: Place, style: int) -> None:
    """Draw someone walking."""
    coat, trousers = _clothes(style, style // 7, 55)
    stride = 8 + style // 49 % 16
    place.shadow(40, 9, 68)
    for foot in (-stride, stride):
        place.upright([(-14, 88), (14, 88), (foot + 9, 0), (foot - 9, 0)], trousers, PERSON)
    body = [(-20, 82), (20, 82), (25, 140), (14, 152), (-14, 152), (-25, 140)]
    place.upright(body, coat, PERSON)
    place.upright(_box(-27, -19, 84, 140), _shaded(coat, 82), PERSON)
    place.ball(0, 166, (12, 14), _SKIN, PERSON)
    place.ball(0, 173, (12, 7), _shaded(trousers, 70), PERSON)


def _clothes(coat: int, trousers: int, percent: int) -> tuple[Color, Color]:
    """Colours of a coat and of trousers."""
    several = len(_CLOTHES)
    return _CLOTHES[coat % several], _shaded(_CLOTHES[trousers % several], percent)


_TUBES = (
    *((-54, 34, -18, 88), (-18, 88, 40, 86), (40, 86, -4, 34), (-4, 34, -18, 88)),
    *((-54, 34, -4, 34), (54, 34, 36, 108), (36, 108, 22, 112)),
)


def _draw_cyclist(place: Place, style: int) -> None:
    """Draw a bicycle across the picture with its rider; the wheels' discs belong to it."""
    way = 1 if style % 2 else -1
    place.shadow(95, 9, 70)
    for hub in (-54, 54):
        place.ball(hub, 34, (35, 35), _DARK, BICYCLE)
        place.ball(hub, 34, (29, 29), (132, 132, 134), BICYCLE)
        street = place.street
        street.ellipse(street.see(place.x + hub, 34, place.z + 60), (2, 2), _DARK, None, place.z)
    frame = _PAINTS[style // 2 % len(_PAINTS)]
    for x0, y0, x1, y1 in _TUBES:
        x0, x1 = way * x0, way * x1
        tube = [(x0 - 4, y0), (x0 + 4, y0 + 4), (x1 + 4, y1 + 4), (x1 - 4, y1)]
        place.upright(tube, frame, BICYCLE)
    coat, trousers = _clothes(style // 12, style // 60, 60)
    for part, color in (
        ([(-28, 94), (-6, 96), (14, 60), (4, 24), (-6, 26), (0, 60)], trousers),
        ([(-30, 90), (-4, 92), (26, 142), (4, 152), (-16, 140)], coat),
        ([(6, 140), (16, 144), (38, 112), (30, 106)], _shaded(coat, 84)),
    ):
        place.upright([(way * across, up) for across, up in part], color, PERSON)
    place.ball(way * 18, 164, (12, 14), _SKIN, PERSON)


def _draw_car(place: Place, style: int) -> None:
    """Draw a car from behind or from the front: the side that we see, then the face."""
    paint = _PAINTS[style % len(_PAINTS)]
    place.shadow(120, 26, 52, behind=60)
    _draw_side(place, paint)
    for wheel in (-78, 52):
        place.upright(_box(wheel, wheel + 26, 0, 34), _DARK, CAR)
    body = [(-86, 24), (86, 24), (88, 62), (82, 96), (-82, 96), (-88, 62)]
    place.upright(body, paint, CAR)
    place.upright([(-76, 94), (76, 94), (58, 146), (-58, 146)], _shaded(paint, 92), CAR)
    place.upright([(-66, 98), (66, 98), (52, 138), (-52, 138)], _GLASS)
    place.upright([(-50, 98), (-10, 98), (-4, 138), (-40, 138)], _shaded(_GLASS, 150))
    place.upright(_box(-86, 86, 24, 38), _shaded(_DARK, 130))
    lights = (244, 236, 196) if place.x < 0 else (206, 38, 36)
    for left in (-82, 54):
        place.upright(_box(left, left + 28, 66, 82), lights)
    place.upright(_box(-24, 24, 48, 60), (232, 232, 222))


def _draw_side(place: Place, paint: Color) -> None:
    """Draw the side of a car that is turned to the middle of the road, where it is in view."""
    street, x, z = place.street, place.x, place.z
    inward = -86 if x > 0 else 86
    if (inward > 0) != (street.see(x, 0, z + 400)[0] > street.see(x, 0, z)[0]):
        return

    def side(shape: Sequence[Point], color: Color, value: int | None = None) -> None:
        street.polygon([(x + inward, up, z + along) for along, up in shape], color, value, z)

    side([(0, 24), (400, 24), (400, 76), (330, 92), (0, 96)], _shaded(paint, 74), CAR)
    side([(20, 90), (330, 88), (250, 142), (60, 144)], _shaded(paint, 70), CAR)
    side([(46, 96), (300, 94), (240, 136), (80, 138)], _shaded(_GLASS, 80))
    for hub in (70, 320):
        tyre = [(-32, 4), (32, 4), (34, 44), (18, 62), (-18, 62), (-34, 44)]
        side([(hub + along, up) for along, up in tyre], _DARK, CAR)


#: Distance, how to draw it, place across the street, and style.
Thing = tuple[int, Callable[[Place, int], None], int, int]


def _things(rng: np.random.Generator, crossing: int | None, crowded: bool) -> list[Thing]:
    """What stands in the street."""
    things: list[Thing] = []

    def put(make: Callable[[Place, int], None], x: int, nearest: int, farthest: int) -> None:
        z = int(rng.integers(nearest, farthest))
        on_crossing = crossing is not None and crossing - 60 < z < crossing + 800
        if abs(x) < ROAD_HALF or not on_crossing:
            things.append((z, make, x, int(rng.integers(1 << 30))))

    def several(most: int) -> range:
        return range(int(rng.integers(crowded, most + 1)))

    def side() -> int:
        return 1 if rng.integers(2) else -1

    for which in (-1, 1):
        for z in range(900, 7000, 1300):
            if rng.integers(5) < 2:
                put(_draw_tree, which * 790, z, z + 700)
        for z in range(1100, 6000, 1600):
            put(_draw_lamp, which * 540, z, z + 200)
        for z in range(1500, 6000, 560):
            if rng.integers(3) == 0:
                put(_draw_car, which * 370, z, z + 60)
    for _ in several(2):
        put(_draw_car, side() * 150, 1100, 4000)
    for _ in several(3):
        put(_draw_sign, side() * int(rng.integers(510, 600)), 800, 1600)
    for _ in several(5):
        put(_draw_person, side() * int(rng.integers(560, 800)), 850, 2300)
    for _ in several(2):
        put(_draw_cyclist, side() * int(rng.integers(250, 400)), 800, 1500)
    return things


def _mask_own_car(image: Bytes, truth: Bytes) -> None:
    """Void the bonnet of the car that carries the camera, and the outermost pixels."""
    rows, columns = np.ogrid[:HEIGHT, :WIDTH]
    across, down = 2 * columns - WIDTH + 1, HEIGHT - rows
    edge = 20 - across * across * 15 // (WIDTH * WIDTH)
    bonnet = down <= edge
    glare = np.maximum(60 - np.abs(across + 90), 0) // 2
    tone = (38 + glare + 60 * (edge - down < 1) + 2 * down)[bonnet]
    image[bonnet] = np.stack([tone * 4 // 5, tone * 9 // 10, tone], axis=-1)
    truth[bonnet] = VOID
    truth[:, :2] = truth[:, -2:] = truth[:2] = VOID


class Light(NamedTuple):
    """Light of a drive: sky above and at the horizon, clouds; red, green and blue in per cent."""

    zenith: Color
    haze: Color
    cloud: Color
    tint: Color


_DAY = Light((86, 146, 214), (204, 222, 236), (250, 250, 250), (100, 101, 102))
_DUSK = Light((84, 104, 166), (246, 206, 168), (255, 226, 196), (102, 93, 86))
#: How far the texture of a class departs from its plain colour, in per cent.
_ROUGHNESS = {BUILDING: 6, ROAD: 6, PAVEMENT: 6, TREE: 26}


def _expose(street: Street, light: Light) -> Bytes:
    """The canvas as an image at its final size, uint8 (H, W, 3)."""
    rng, shape = street.rng, street.labels.shape
    _add_clouds(street, light)
    flat = smooth_noise(rng, shape, 3)
    texture = flat + smooth_noise(rng, (shape[0], shape[1] // 4), 6).repeat(4, 1)
    strength = np.zeros(256, np.int64)
    strength[list(_ROUGHNESS)] = list(_ROUGHNESS.values())
    change = 400 * 100 + texture * strength[street.labels]
    colors = street.colors * change[..., None] // 40000
    blocks = colors.reshape(HEIGHT, OVERSAMPLING, WIDTH, OVERSAMPLING, 3)
    image = blocks.sum(axis=(1, 3)) // OVERSAMPLING**2
    image = image * np.array(light.tint) // 100
    image = image * _vignette(HEIGHT, WIDTH)[..., None] // 1000
    image = image + rng.integers(-4, 5, (HEIGHT, WIDTH, 1))
    exposed: Bytes = np.clip(image, 0, 255).astype(np.uint8)
    return exposed


def _add_clouds(street: Street, light: Light) -> None:
    height, width = street.labels.shape
    # Drawn narrow and stretched: clouds lie flat.
    field = sum(
        smooth_noise(street.rng, (height, width // 4), cell).repeat(4, axis=1) * weight
        for cell, weight in ((40, 6), (22, 4), (12, 3), (6, 1))
    )
    cover = np.clip(field // 10 + 30, 0, 420)[..., None] * (street.labels == SKY)[..., None]
    street.colors += (np.array(light.cloud) - street.colors) * cover // 480


def _vignette(height: int, width: int) -> IntArray:
    rows, columns = np.ogrid[:height, :width]
    down, across = 2 * rows - height, 2 * columns - width
    falloff = 130 * (down * down + across * across) // (height * height + width * width)
    return np.asarray(1000 - falloff)


def box_sum(field: npt.NDArray[np.integer | np.bool_], radius: int) -> IntArray:
    """Sum over the square window of side ``2 * radius + 1``; at edges the nearest value goes on.

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
    """A smooth random field in [-1024, 1024] whose hills are `cell` pixels wide.

    Its mean is 0 and its standard deviation about 300: noise on a coarse grid, averaged twice.
    """
    height, width = shape
    coarse = rng.integers(-1024, 1025, (height // cell + 4, width // cell + 4))
    field = coarse.repeat(cell, axis=0).repeat(cell, axis=1)
    radius = cell // 2
    for _ in range(2):
        field = box_sum(field, radius) // (2 * radius + 1) ** 2
    return field[cell : cell + height, cell : cell + width]
