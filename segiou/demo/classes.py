"""The classes of the demo: their values, colours and groups, and its label file."""

from __future__ import annotations

from typing import Final

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
