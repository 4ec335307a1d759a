"""What a run file says about the run as a whole."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from segiou.boundary.boundary_options import BoundaryOptions
from segiou.labels.class_options import ClassOptions
from segiou.metrics.protocols import Protocol, load_protocol

__all__ = ["Header", "versions"]


def versions() -> dict[str, str]:
    """What was installed when images were counted."""
    import numpy
    import PIL

    from segiou._support import __version__

    return {
        "segiou": __version__,
        "python": ".".join(map(str, sys.version_info[:3])),
        "numpy": numpy.__version__,
        "Pillow": PIL.__version__,
    }


@dataclass(frozen=True)
class Header:
    """Options and origin of a run.

    Attributes
    ----------
    options : ClassOptions
    protocol : Protocol
    name : str
    truth, pred : str
        Folders that the files of ``image`` lie in; empty if there are none.
    reading : mapping
        Options of reading that can change a count.
    provenance : mapping
        Whatever else is to be known.
    expected : int, optional
        Pairs that there are to score.
    finished : bool
        Whether all pairs were tried.
    versions : tuple of mapping
        Versions of everything that wrote to the file, in order.
    boundary : BoundaryOptions, optional
        What is measured at boundaries; None for nothing.
    """

    options: ClassOptions
    protocol: Protocol = field(default_factory=lambda: load_protocol("segiou"))
    name: str = ""
    truth: str = ""
    pred: str = ""
    reading: Mapping[str, Any] = field(default_factory=dict)
    provenance: Mapping[str, Any] = field(default_factory=dict)
    expected: int | None = None
    finished: bool = True
    versions: tuple[Mapping[str, str], ...] = ()
    boundary: BoundaryOptions | None = None

    def counting_difference(self, other: Header) -> str:
        """Say in words in what both count otherwise; empty if they do not."""
        found = [self.options.difference(other.options)]
        mine, theirs = self.boundary, other.boundary
        if mine and theirs:
            found.append(mine.difference(theirs))
        elif mine or theirs:
            sides = ("here", "there") if mine else ("there", "here")
            found.append(f"boundaries are measured {sides[0]} and not {sides[1]}")
        return "; ".join(part for part in found if part)

    def difference(self, other: Header) -> str:
        """Say in words why images of both cannot be in one run; empty if they can."""
        parts = [self.counting_difference(other)]
        for what, mine, theirs in (
            ("truth", self.truth, other.truth),
            ("pred", self.pred, other.pred),
            *((k, self.reading.get(k), other.reading.get(k)) for k in sorted(self.reading)),
        ):
            if mine != theirs:
                parts.append(f"{what} is {mine!r} here and {theirs!r} there")
        return "; ".join(part for part in parts if part)

    def to_dict(self) -> dict[str, Any]:
        """The header as plain data."""
        return {
            "options": self.options.to_dict(),
            "protocol": asdict(self.protocol),
            "name": self.name,
            "truth": self.truth,
            "pred": self.pred,
            "reading": dict(self.reading),
            "provenance": dict(self.provenance),
            "expected": self.expected,
            "finished": self.finished,
            "versions": [dict(v) for v in self.versions],
            **({} if self.boundary is None else {"boundary": self.boundary.to_dict()}),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Header:
        """Read what :meth:`to_dict` gave.

        Raises
        ------
        KeyError, TypeError, ValueError
            If something is missing or of the wrong kind.
        """
        expected, boundary = data["expected"], data.get("boundary")
        return cls(
            ClassOptions.from_dict(data["options"]),
            Protocol(**data["protocol"]),
            str(data["name"]),
            str(data["truth"]),
            str(data["pred"]),
            dict(data["reading"]),
            dict(data["provenance"]),
            None if expected is None else int(expected),
            bool(data["finished"]),
            tuple(dict(v) for v in data["versions"]),
            None if boundary is None else BoundaryOptions.from_dict(boundary),
        )
