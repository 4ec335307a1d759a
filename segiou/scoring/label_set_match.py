"""Match of label sets with the values and colours of masks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from segiou._support.text import Json
from segiou.labels.label_set import LabelSet, hex_color
from segiou.labels.loading import labelset_names, load_labels
from segiou.scoring.file_values import FileContent

#: A label set of at least this quality fits well.
GOOD = 0.4
#: Maximum number of label sets listed.
LISTED = 6
#: Presets for point clouds and volumes, never suggested for images.
_NO_IMAGES = {"flare22", "kits23", "nuscenes", "nuscenes-challenge", "semantickitti"}
#: Presets of data sets whose masks have colours, never suggested for values.
_OF_COLORS = {"deepglobe", "isaid", "uavid"}
#: Presets for volumes.
_OF_VOLUMES = {
    *("binary", "brats", "brats2023", "flare22", "kits23"),
    *("totalsegmentator", "totalsegmentator-mr"),
}


@dataclass(frozen=True, slots=True)
class LabelSetMatch:
    """Match of a label set with the masks.

    Attributes
    ----------
    name : str
    undeclared : int
        Pixels whose value or colour the set does not declare.
    classes_seen, num_classes : int
    quality : float
        The share of pixels that belong to its classes, times the share of
        its classes that occur.
    meanings : mapping of int or str to str
        Class names of values and colours (``"#rrggbb"``) in the set.
    """

    name: str
    undeclared: int
    classes_seen: int
    num_classes: int
    quality: float = 0.0
    meanings: Mapping[int | str, str] = field(default_factory=dict, repr=False)

    @property
    def is_named(self) -> bool:
        """Whether the set has a name, unlike a number of classes."""
        return self.name != "custom"

    @property
    def option(self) -> str:
        """The set as a command-line option."""
        return f"--labels {self.name}"

    @property
    def occurring(self) -> str:
        """Number of its classes that occur, as text."""
        return f"{self.classes_seen} of {self.num_classes} classes occur"

    def __str__(self) -> str:
        return f"{self.option} ({self.occurring})"

    def to_dict(self) -> dict[str, Json]:
        """Everything except the meanings, as plain data."""
        names = ("undeclared", "classes_seen", "num_classes", "quality")
        return {"labels": self.name, **{name: getattr(self, name) for name in names}}


def spaced(values: Iterable[int]) -> list[int]:
    """The values if they have equal steps above 1, such as 0, 85, 170 and 255; else none."""
    several = sorted(values)
    step = several[1] - several[0] if len(several) > 2 else 1
    return several if step > 1 and several == [*range(several[0], several[-1] + 1, step)] else []


def possible_label_sets(files: Sequence[FileContent]) -> list[LabelSet]:
    """The presets for masks of this kind: images, volumes or point clouds."""
    possible = {*labelset_names()}
    if any(file.mask.volume for file in files):
        possible &= _OF_VOLUMES
    elif not any(len(file.shape) == 1 for file in files):
        possible -= _NO_IMAGES
    if not any(file.what == "colors" for file in files):
        possible -= _OF_COLORS
    return [load_labels(name) for name in sorted(possible)]


def matches(
    candidates: Sequence[LabelSet], values: Mapping[int, int], colors: Mapping[str, int]
) -> list[LabelSetMatch]:
    """Matches of label sets with a class that occurs; those that declare everything first."""
    every = [match_of(candidate, values, colors) for candidate in candidates]
    return sorted(
        (match for match in every if match.classes_seen),
        key=lambda match: (match.undeclared, -match.quality, match.num_classes),
    )


def match_of(
    labels: LabelSet, values: Mapping[int, int], colors: Mapping[str, int]
) -> LabelSetMatch:
    """The match of a label set with numbers of pixels by value and by colour."""
    owner: dict[int | str, str] = {v: c.name for c in labels.classes for v in c.values}
    owner |= {hex_color(x): c.name for c in labels.classes for x in c.colors}
    ignored: set[int | str] = {*labels.ignore, *map(hex_color, labels.ignore_colors)}
    pixels = [*values.items(), *colors.items()]
    undeclared = sum(n for v, n in pixels if v not in owner and v not in ignored)
    seen = {owner[v] for v, _ in pixels if v in owner}
    of_classes = sum(n for v, n in pixels if v in owner and v not in ignored)
    total = sum(n for _, n in pixels)
    quality = of_classes * len(seen) / (total * labels.num_classes) if total else 0.0
    meanings: dict[int | str, str] = {**owner, **dict.fromkeys(ignored, "ignored")}
    return LabelSetMatch(labels.name, undeclared, len(seen), labels.num_classes, quality, meanings)
