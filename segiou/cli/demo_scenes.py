"""The street scenes of the demo, with camera, things and light, and what two models predict.

All drawing is integer arithmetic, so that equal seeds give equal masks on every machine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

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
#: A class; None where only a colour changes.
Value = int | None


def draw_scene(rng: np.random.Generator, *, dusk: bool, crowded: bool) -> tuple[Bytes, Bytes]:
    """Draw an image (H, W, 3) and its truth (H, W); ``crowded`` has each rare class for sure."""
    street = Street(rng, _DUSK if dusk else _DAY)
    _draw_far_end(street)
    _draw_ground(street)
    for side in (-1, 1):
        _draw_row(street, side)
    for place, make, style in sorted(_things(street, crowded), key=lambda thing: -thing[0].z):
        make(place, style)
    image = _expose(street)
    truth = street.labels[::OVERSAMPLING, ::OVERSAMPLING].copy()
    _mask_own_car(image, truth)
    return image, truth


#: Sky above and at the horizon, clouds; and what tints all, red, green and blue in per cent.
_DAY = (86, 146, 214), (204, 222, 236), (250, 250, 250), (100, 101, 102)
_DUSK = (84, 104, 166), (246, 206, 168), (255, 226, 196), (102, 93, 86)


class Street:
    """A canvas of class values and colours, seen by a pinhole camera above the middle of the road.

    Lengths in the street are in cm: x to the right, y above the ground, z ahead.
    """

    FOCAL, LENS_HEIGHT = 400, 150

    def __init__(self, rng: np.random.Generator, light: Sequence[Color]) -> None:
        self.rng = rng
        self.zenith, self.haze, self.cloud, self.tint = np.array(light)
        self.vanishing_x = WIDTH + int(rng.integers(-70, 71))
        self.horizon = HEIGHT * 9 // 10 + int(rng.integers(-14, 15))
        #: Where another street crosses: beyond the end where none does.
        self.crossing = int(rng.integers(1700, 2600)) if rng.integers(3) == 0 else 10 * FAR
        shape = (HEIGHT * OVERSAMPLING, WIDTH * OVERSAMPLING)
        self.labels = np.full(shape, SKY, np.uint8)
        down = np.minimum(np.arange(shape[0]), self.horizon)[:, None, None]
        sky = self.zenith + (self.haze - self.zenith) * down // self.horizon
        self.colors: IntArray = sky.repeat(shape[1], axis=1)

    def integer(self, low: int, high: int) -> int:
        """A random integer, without `high`."""
        return int(self.rng.integers(low, high))

    def see(self, x: int, y: int, z: int) -> Point:
        """Column and row of a point."""
        column = self.vanishing_x + self.FOCAL * x // z
        return column, self.horizon + self.FOCAL * (self.LENS_HEIGHT - y) // z

    def polygon(
        self, corners: Sequence[tuple[int, int, int]], color: Color, value: Value, z: int
    ) -> None:
        """Fill a polygon, as hazy as at `z`; without a `value` only its colour changes."""
        columns, rows = np.array([self.see(*corner) for corner in corners]).T
        self.paint(_draw.polygon(rows, columns, self.labels.shape), color, value, z)

    def paint(self, pixels: Any, color: Color, value: Value, z: int) -> None:
        """Give pixels a colour, which fades into the haze far away, and a value."""
        veil = min(z, FAR)
        self.colors[pixels] = (np.array(color) * (14000 - veil) + self.haze * veil) // 14000
        if value is not None:
            self.labels[pixels] = value


# scikit-image's drawing functions carry no annotations.
_draw: Any = draw


@dataclass(frozen=True)
class Place:
    """Position of a thing; its parts are given in cm from here."""

    street: Street
    x: int
    z: int

    def upright(self, corners: Sequence[Point], color: Color, value: Value = None) -> None:
        """Fill a polygon that faces the camera; its corners are (across, up)."""
        solid = [(self.x + across, up, self.z) for across, up in corners]
        self.street.polygon(solid, color, value, self.z)

    def sideways(self, corners: Sequence[Point], color: Color, value: Value = None) -> None:
        """Fill a polygon along the street; its corners are (along, up)."""
        solid = [(self.x, up, self.z + along) for along, up in corners]
        self.street.polygon(solid, color, value, min(z for *_, z in solid))

    def ball(self, across: int, up: int, radii: Point, color: Color, value: Value = None) -> None:
        """Fill an ellipse with radii (across, down)."""
        self.street.paint(self._disc(across, up, radii), color, value, self.z)

    def shadow(self, radii: Point, percent: int) -> None:
        """Darken the ground to `percent` of its light."""
        pixels = self._disc(0, 0, radii)
        self.street.colors[pixels] = self.street.colors[pixels] * percent // 100

    def _disc(self, across: int, up: int, radii: Point) -> Any:
        column, row = self.street.see(self.x + across, up, self.z)
        wide, high = (max(1, self.street.FOCAL * radius // self.z) for radius in radii)
        return _draw.ellipse(row, column, high + 1, wide + 1, self.street.labels.shape)


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


def _draw_far_end(street: Street) -> None:
    left, green = -7000, (70, 110, 66)
    while left < 7000:
        width, height = street.integer(500, 1400), street.integer(500, 1700)
        end = Place(street, left, FAR)
        if street.integer(0, 4):
            wall = _WALLS[street.integer(0, len(_WALLS))]
            end.upright(_box(0, width, 0, height), wall, BUILDING)
        else:
            end.ball(width // 2, 0, (width * 2 // 3, height // 2), green, TREE)
            end.upright(_box(0, width, 0, 200), green, TREE)
        left += width


def _draw_ground(street: Street) -> None:
    def flat(left: int, right: int, near: int, far: int, color: Color, value: Value = None) -> None:
        street.polygon([(x, 0, z) for x, z in _box(left, right, near, far)], color, value, 1200)

    crossing = street.crossing
    flat(-40 * FAR, 40 * FAR, 150, 6 * FAR, _SLABS, PAVEMENT)
    flat(-ROAD_HALF - 18, ROAD_HALF + 18, 150, 5 * FAR, _KERB, PAVEMENT)
    flat(-ROAD_HALF, ROAD_HALF, 150, 5 * FAR, _ASPHALT, ROAD)
    for start in range(300, 8000, 600):
        if not crossing - 300 < start < crossing + 750:
            flat(-7, 7, start, start + 300, _LINES)
    if crossing < FAR:
        flat(-6000, 6000, crossing, crossing + 750, _ASPHALT, ROAD)
        for x in range(-ROAD_HALF + 40, ROAD_HALF - 40, 100):
            flat(x, x + 50, crossing - 330, crossing - 60, _LINES)


def _draw_row(street: Street, side: int) -> None:
    """Draw the houses and parks of one side, from far to near, around the crossing street."""
    lots, near = [], 350
    while near < FAR - 800:
        far = min(near + street.integer(700, 1700), FAR)
        is_cut = near < street.crossing + 750 and far > street.crossing - 100
        end = street.crossing - 100 if is_cut else far
        if end - near > 400:
            lots.append((Place(street, side * FACADE, near), side, end - near))
        near = street.crossing + 850 if is_cut else far
    for lot in reversed(lots):
        draw_lot = _draw_park if street.integer(0, 10) < 3 else _draw_house
        draw_lot(*lot)


def _draw_house(corner: Place, side: int, length: int) -> None:
    """Draw a house: its gable faces us, its front the street."""
    height, wall = corner.street.integer(550, 1500), corner.street.integer(0, len(_WALLS))
    lit = _shaded(_WALLS[wall], 104 if side > 0 else 88)
    corner.upright(_box(0, side * 2500, 0, height), _shaded(_WALLS[wall], 72), BUILDING)
    corner.sideways(_box(0, length, 0, height), lit, BUILDING)
    corner.sideways(_box(0, length, height - 30, height), _shaded(lit, 80))
    corner.sideways(_box(0, length, 0, 50), _shaded(lit, 70))
    for low in range(90, height - 150, 290):
        for left in range(90, min(length - 150, 5000 - corner.z), 260):
            corner.sideways(_box(left - 12, left + 142, low - 10, low + 170), _shaded(lit, 118))
            corner.sideways(_box(left, left + 130, low, low + 160), _GLASS)
            corner.sideways(_box(left, left + 130, low + 90, low + 160), (104, 124, 146))


def _draw_park(corner: Place, side: int, length: int) -> None:
    """Draw trees behind a hedge."""
    street = corner.street
    for along in range(length - 200, 0, -350):
        x = corner.x + side * street.integer(150, 700)
        _draw_tree(Place(street, x, corner.z + along), street.integer(0, 1 << 30))
    corner.sideways(_box(0, length, 0, 130), (66, 104, 56), TREE)
    corner.upright(_box(0, side * 2500, 0, 130), (54, 90, 50), TREE)


def _draw_tree(place: Place, style: int) -> None:
    """Draw a trunk and a crown of overlapping leaf balls, lit from above."""
    rng = np.random.default_rng(style)
    green = _GREENS[int(rng.integers(len(_GREENS)))]
    place.shadow((150, 24), 72)
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
    coat, trousers = (_CLOTHES[number % len(_CLOTHES)] for number in (style, style // 7))
    stride = 8 + style // 49 % 16
    place.shadow((40, 9), 68)
    for foot in (-stride, stride):
        leg = [(-14, 88), (14, 88), (foot + 9, 0), (foot - 9, 0)]
        place.upright(leg, _shaded(trousers, 55), PERSON)
    body = [(-20, 82), (20, 82), (25, 140), (14, 152), (-14, 152), (-25, 140)]
    place.upright(body, coat, PERSON)
    place.upright(_box(-27, -19, 84, 140), _shaded(coat, 82), PERSON)
    place.ball(0, 166, (12, 14), _SKIN, PERSON)
    place.ball(0, 173, (12, 7), _shaded(trousers, 38), PERSON)


_TUBES = (
    *((-54, 34, -18, 88), (-18, 88, 40, 86), (40, 86, -4, 34), (-4, 34, -18, 88)),
    *((-54, 34, -4, 34), (54, 34, 36, 108), (36, 108, 22, 112)),
)


def _draw_cyclist(place: Place, style: int) -> None:
    """Draw a bicycle across the picture with its rider; the wheels' discs belong to it."""
    way = 1 if style % 2 else -1
    place.shadow((95, 9), 70)
    for hub in (-54, 54):
        place.ball(hub, 34, (35, 35), _DARK, BICYCLE)
        place.ball(hub, 34, (29, 29), (132, 132, 134), BICYCLE)
        place.ball(hub, 34, (6, 6), _DARK)
    frame = _PAINTS[style // 2 % len(_PAINTS)]
    for x0, y0, x1, y1 in _TUBES:
        x0, x1 = way * x0, way * x1
        tube = [(x0 - 4, y0), (x0 + 4, y0 + 4), (x1 + 4, y1 + 4), (x1 - 4, y1)]
        place.upright(tube, frame, BICYCLE)
    coat, trousers = (_CLOTHES[number % len(_CLOTHES)] for number in (style // 12, style // 60))
    for part, color in (
        ([(-28, 94), (-6, 96), (14, 60), (4, 24), (-6, 26), (0, 60)], _shaded(trousers, 60)),
        ([(-30, 90), (-4, 92), (26, 142), (4, 152), (-16, 140)], coat),
        ([(6, 140), (16, 144), (38, 112), (30, 106)], _shaded(coat, 84)),
    ):
        place.upright([(way * across, up) for across, up in part], color, PERSON)
    place.ball(way * 18, 164, (12, 14), _SKIN, PERSON)


def _draw_car(place: Place, style: int) -> None:
    """Draw a car from behind or from the front: the side that we see, then the face."""
    paint = _PAINTS[style % len(_PAINTS)]
    Place(place.street, place.x, place.z + 60).shadow((120, 26), 52)
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
    side = Place(street, x + inward, z).sideways
    side([(0, 24), (400, 24), (400, 76), (330, 92), (0, 96)], _shaded(paint, 74), CAR)
    side([(20, 90), (330, 88), (250, 142), (60, 144)], _shaded(paint, 70), CAR)
    side([(46, 96), (300, 94), (240, 136), (80, 138)], _shaded(_GLASS, 80))
    for hub in (70, 320):
        tyre = [(-32, 4), (32, 4), (34, 44), (18, 62), (-18, 62), (-34, 44)]
        side([(hub + along, up) for along, up in tyre], _DARK, CAR)


#: Along both kerbs: how it is drawn, its distance from the middle, the nearest places and how far
#: off, and how often it is there.
_ROADSIDE = (
    (_draw_tree, 790, range(900, 7000, 1300), 700, (2, 5)),
    (_draw_lamp, 540, range(1100, 6000, 1600), 200, (1, 1)),
    (_draw_car, 370, range(1500, 6000, 560), 60, (1, 3)),
)
#: On either side: how it is drawn, how many at most, how far from the middle, and how far ahead.
_SCATTERED = (
    (_draw_car, 2, (150, 151), (1100, 4000)),
    (_draw_sign, 3, (510, 600), (800, 1600)),
    (_draw_person, 5, (560, 800), (850, 2300)),
    (_draw_cyclist, 2, (250, 400), (800, 1500)),
)
#: Where, how to draw it, and its style.
Thing = tuple[Place, Callable[[Place, int], None], int]


def _things(street: Street, crowded: bool) -> list[Thing]:
    """Things in the street."""
    things: list[Thing] = []

    def put(make: Callable[[Place, int], None], x: int, nearest: int, farthest: int) -> None:
        z = street.integer(nearest, farthest)
        if abs(x) < ROAD_HALF or not street.crossing - 60 < z < street.crossing + 800:
            things.append((Place(street, x, z), make, street.integer(0, 1 << 30)))

    for side in (-1, 1):
        for make, x, places, spread, (often, of) in _ROADSIDE:
            for z in places:
                if street.integer(0, of) < often:
                    put(make, side * x, z, z + spread)
    for make, most, aside, ahead in _SCATTERED:
        for _ in range(street.integer(crowded, most + 1)):
            side = 1 if street.integer(0, 2) else -1
            put(make, side * street.integer(*aside), *ahead)
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


#: How far the texture of each class departs from its plain colour, in per cent.
_ROUGHNESS = np.array([0, 6, 6, 6, 26, 0, 0, 0, 0, 0])


def _expose(street: Street) -> Bytes:
    """The canvas as an image at its final size, uint8 (H, W, 3)."""
    rng, (height, width) = street.rng, street.labels.shape
    _add_clouds(street)
    texture = smooth_noise(rng, (height, width), 3)
    texture += smooth_noise(rng, (height, width // 4), 6).repeat(4, axis=1)
    change = 400 * 100 + texture * _ROUGHNESS[street.labels]
    colors = street.colors * change[..., None] // 40000
    blocks = colors.reshape(HEIGHT, OVERSAMPLING, WIDTH, OVERSAMPLING, 3)
    image = blocks.sum(axis=(1, 3)) // OVERSAMPLING**2 * street.tint // 100
    # The corners are darker, as a lens makes them.
    rows, columns = np.ogrid[:HEIGHT, :WIDTH]
    away = (2 * rows - HEIGHT) ** 2 + (2 * columns - WIDTH) ** 2
    image = image * (1000 - 130 * away // (HEIGHT**2 + WIDTH**2))[..., None] // 1000
    image = image + rng.integers(-4, 5, (HEIGHT, WIDTH, 1))
    exposed: Bytes = np.clip(image, 0, 255).astype(np.uint8)
    return exposed


def _add_clouds(street: Street) -> None:
    height, width = street.labels.shape
    # Drawn narrow and stretched: clouds lie flat.
    field = sum(
        smooth_noise(street.rng, (height, width // 4), cell).repeat(4, axis=1) * weight
        for cell, weight in ((40, 6), (22, 4), (12, 3), (6, 1))
    )
    cover = np.clip(field // 10 + 30, 0, 420)[..., None] * (street.labels == SKY)[..., None]
    street.colors += (street.cloud - street.colors) * cover // 480


def predict_smooth(truth: Bytes, rng: np.random.Generator) -> Bytes:
    """Predict as a model that paints broad areas well and never a rare class."""
    pred = _wander(_absorb(truth, (*RARE, VOID)), rng, cell=20, reach=1)
    confusions = (TREE, BUILDING, 5), (PAVEMENT, ROAD, 3), (CAR, ROAD, 4)
    _confuse(pred, rng, confusions, cell=20)
    return _majority(pred, radius=2)[0]


def predict_detailed(truth: Bytes, rng: np.random.Generator) -> Bytes:
    """Predict as a model that finds the rare classes, too large, and frays at the borders."""
    pred = _absorb(truth, (*RARE, VOID))
    confusions = (
        *((BUILDING, TREE, 5), (TREE, BUILDING, 8), (ROAD, PAVEMENT, 2)),
        *((PAVEMENT, ROAD, 8), (SKY, BUILDING, 1), (CAR, ROAD, 6)),
    )
    _confuse(pred, rng, confusions, cell=16)
    pred = _wander(pred, rng, cell=8, reach=4)
    _invent(pred, rng)
    for value in (POLE, SIGN, BICYCLE, PERSON):
        found = (truth == value) & (smooth_noise(rng, truth.shape, 24) > -350)
        grown = box_sum(found, 1) > (smooth_noise(rng, truth.shape, 6) > 120)
        pred[grown] = value
    return _wander(pred, rng, cell=12, reach=1)


def _absorb(labels: Bytes, values: Sequence[int]) -> Bytes:
    """Give the pixels of `values` to whichever common class surrounds them most."""
    result = labels.copy()
    open_pixels = np.isin(labels, values)
    radius = 3
    while open_pixels.any():
        winners, found = _majority(result, radius)
        decided = open_pixels & found
        result[decided] = winners[decided]
        open_pixels &= ~decided
        radius *= 2
    return result


def _majority(labels: Bytes, radius: int) -> tuple[Bytes, npt.NDArray[np.bool_]]:
    """The most frequent common class around each pixel, and whether there is one."""
    votes = np.stack([box_sum(labels == value, radius) for value in COMMON])
    winners: Bytes = np.array(COMMON, np.uint8)[votes.argmax(axis=0)]
    return winners, votes.max(axis=0) > 0


def _wander(labels: Bytes, rng: np.random.Generator, cell: int, reach: int) -> Bytes:
    """Shift every pixel by a smooth field of typically under `reach` pixels."""
    height, width = labels.shape
    down, across = ((smooth_noise(rng, labels.shape, cell) * reach + 256) // 512 for _ in range(2))
    rows = np.clip(np.arange(height)[:, None] + down, 0, height - 1)
    columns = np.clip(np.arange(width) + across, 0, width - 1)
    shifted: Bytes = labels[rows, columns]
    return shifted


def _confuse(
    labels: Bytes, rng: np.random.Generator, confusions: Sequence[tuple[int, int, int]], cell: int
) -> None:
    """Turn blobs, some per cent of the source class, into the target: most where it is near."""
    for source, target, percent in confusions:
        nearness = box_sum(labels == target, cell) * 1500 // (2 * cell + 1) ** 2
        field = smooth_noise(rng, labels.shape, cell) + nearness
        candidates = np.sort(field[labels == source])
        if candidates.size:
            cut = candidates[len(candidates) * (100 - percent) // 100]
            labels[(labels == source) & (field >= cut)] = target


#: What is predicted where there is none: its class, its width and height, and how many at most.
_INVENTED = (
    *((POLE, 3, 40, 1), (POLE, 3, 26, 2), (SIGN, 7, 7, 1)),
    *((PERSON, 5, 16, 2), (BICYCLE, 12, 8, 1)),
)


def _invent(labels: Bytes, rng: np.random.Generator) -> None:
    """Add a few poles, signs, people and bicycles where there are none."""
    height, width = labels.shape
    for value, across, down, most in _INVENTED:
        for _ in range(int(rng.integers(0, most + 1))):
            column = int(rng.integers(8, width - 8 - across))
            row = height // 2 - down + int(rng.integers(-6, 18))
            labels[row : row + down, column : column + across] = value


def box_sum(field: npt.NDArray[np.integer | np.bool_], radius: int) -> IntArray:
    """Sum over the square window of side ``2 * radius + 1``; at edges the nearest value goes on.

    >>> box_sum(np.eye(3, dtype=np.int64), 1)
    array([[5, 3, 1],
           [3, 3, 3],
           [1, 3, 5]])
    """
    side, summed = 2 * radius + 1, field.astype(np.int64)
    for _ in range(2):
        sums = np.pad(summed, ((radius + 1, radius), (0, 0)), mode="edge").cumsum(axis=0)
        summed = (sums[side:] - sums[:-side]).T
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
