"""What stands along a street, each drawn by its shape in cm and its distance."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from segiou.demo.canvas import Camera, Canvas, Color
from segiou.demo.classes import BICYCLE, BUILDING, CAR, PERSON, POLE, SIGN, TREE

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
