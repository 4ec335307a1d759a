"""The classes of the demo: their values, colours and groups, and its label file."""

from __future__ import annotations

from typing import Final

SKY, BUILDING, ROAD, PAVEMENT, TREE, CAR, POLE, SIGN, PERSON, BICYCLE = range(10)
VOID: Final = 255

# Neighbours in the picture differ in lightness as well as in hue, so that the masks stay
# readable for colour-blind readers and in grey print.
CLASSES: Final[tuple[tuple[str, str], ...]] = (
    ("sky", "#9cd3ee"),
    ("building", "#b9a79b"),
    ("road", "#59606e"),
    ("pavement", "#e6d5a0"),
    ("tree", "#1f7a46"),
    ("car", "#2b3f9e"),
    ("pole", "#7a1f4f"),
    ("sign", "#f7c700"),
    ("person", "#d9412b"),
    ("bicycle", "#35b5a5"),
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
