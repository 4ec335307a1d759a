"""What was found in a folder of masks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from segiou.runs import Problem
from segiou.runs.problems import problem_lines

__all__ = ["FileLook", "Fit", "Inspection"]


@dataclass(frozen=True, slots=True)
class Fit:
    """How well a label set describes the masks.

    Attributes
    ----------
    name : str
    undeclared : int
        Pixels whose value or colour the set does not declare.
    classes_seen, num_classes : int
    meanings : mapping of int or str to str
        Values and colours (``"#rrggbb"``), and what they mean in the set.
    """

    name: str
    undeclared: int
    classes_seen: int
    num_classes: int
    meanings: Mapping[int | str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class FileLook:
    """What one file holds."""

    path: str
    mode: str
    kind: str
    dtype: str
    shape: tuple[int, ...]
    values: dict[int, int]
    colors: dict[str, int]
    lossy: bool
    grey_as_color: bool


@dataclass(frozen=True)
class Inspection:
    """What was found in a folder of masks.

    Attributes
    ----------
    folder : str
    files : int
        Files read.
    modes, kinds, dtypes, sizes : mapping of str to int
        How many files have each.
    values : mapping of int to int
        Pixels of each value.
    value_files : mapping of int to int
        Files in which each value occurs.
    colors : mapping of str to int
        Pixels of each colour, ``"#rrggbb"``.
    fits : tuple of Fit
        Label sets, the best first.
    suspicions : tuple of str
        What looks wrong.
    problems : tuple of Problem
        Files that cannot be read as masks.
    """

    folder: str
    files: int
    modes: dict[str, int]
    kinds: dict[str, int]
    dtypes: dict[str, int]
    sizes: dict[str, int]
    values: dict[int, int]
    value_files: dict[int, int]
    colors: dict[str, int]
    fits: tuple[Fit, ...] = ()
    suspicions: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = field(default=())

    @property
    def fitting(self) -> tuple[Fit, ...]:
        """Label sets that declare every value; which of them is meant, no mask can tell."""
        return tuple(fit for fit in self.fits if not fit.undeclared)

    @property
    def problem_lines(self) -> list[str]:
        """The problems in words, equal ones together."""
        return problem_lines(self.problems)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data."""
        pixels = sum(self.values.values()) or 1
        return {
            "folder": self.folder,
            "files": self.files,
            "modes": self.modes,
            "kinds": self.kinds,
            "dtypes": self.dtypes,
            "sizes": self.sizes,
            "values": [
                {"value": v, "pixels": n, "share": n / pixels, "files": self.value_files[v]}
                for v, n in self.values.items()
            ],
            "colors": [{"color": color, "pixels": n} for color, n in self.colors.items()],
            "fits": [
                {
                    "labels": fit.name,
                    "undeclared": fit.undeclared,
                    "classes_seen": fit.classes_seen,
                    "num_classes": fit.num_classes,
                }
                for fit in self.fits
            ],
            "suspicions": list(self.suspicions),
            "problems": [{"file": p.where, "problem": p.text} for p in self.problems],
        }

    def to_text(self, *, width: int = 100, color: bool = False) -> str:
        """The findings for a terminal."""
        from segiou.report.inspection_text import render_inspection

        return render_inspection(self, width, color=color)

    def __str__(self) -> str:
        return self.to_text()
