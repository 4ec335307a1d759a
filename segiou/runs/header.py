"""Run-level metadata of a run file."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from segiou._support.arguments import check_kind
from segiou._support.text import Json, listed, plural
from segiou.labels.class_options import ClassOptions
from segiou.metrics.protocols import Protocol, load_protocol
from segiou.runs.stored_measures import (
    Stored,
    UnreadMeasure,
    entry_of,
    read_entry,
    stored_difference,
)

if TYPE_CHECKING:
    from segiou.measures.measure import Measure
    from segiou.measures.parts import Field
    from segiou.measures.plan import Plan

#: Types of the entries of a header as plain data.
_KINDS: dict[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("options", "protocol", "reading", "provenance", "measures"), dict),
    **dict.fromkeys(("name", "truth", "pred"), str),
    **dict.fromkeys(("versions", "shards"), list),
    "finished": bool,
}


def versions() -> dict[str, str]:
    """Versions of the installed packages that affect counts."""
    import numpy
    import PIL

    from segiou._support import __version__

    return {
        "segiou": __version__,
        "python": ".".join(map(str, sys.version_info[:3])),
        "numpy": numpy.__version__,
        "Pillow": PIL.__version__,
    }


class Shard(NamedTuple):
    """Part ``part`` of ``parts`` of a data set with ``pairs`` pairs."""

    part: int
    parts: int
    pairs: int


@dataclass(frozen=True)
class Header:
    """Options and origin of a run.

    Attributes
    ----------
    options : ClassOptions
    protocol : Protocol
    name : str
    truth, pred : str
        Folders of the files; empty if there are none.
    reading : mapping
        Reading options that can change counts.
    provenance : mapping
        Other information about the run.
    expected : int, optional
        Number of pairs to score.
    finished : bool
        Whether all pairs were tried.
    versions : tuple of mapping
        Package versions of every writer, in order.
    plans : tuple of Plan
        The measures counted in every image.
    unread : tuple of UnreadMeasure
        Further measures whose scores cannot be derived here.
    shards : tuple of Shard
        The parts of the data set in this run; empty if it was not split.
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
    plans: tuple[Plan, ...] = ()
    unread: tuple[UnreadMeasure, ...] = ()
    shards: tuple[Shard, ...] = ()

    @property
    def counts_more(self) -> bool:
        """Whether any measure is counted."""
        return bool(self.plans or self.unread)

    def plan(self, key: str) -> Plan | None:
        """The plan of a measure.

        Parameters
        ----------
        key : str
            Key of the measure.

        Returns
        -------
        Plan or None
            None if the measure is not counted.
        """
        check_kind("the key of a measure", key, str, "text")
        return next((plan for plan in self.plans if plan.key == key), None)

    @cached_property
    def layout(self) -> dict[str, Field]:
        """The arrays that the measures count in an image."""
        from segiou.measures.parts import merged_layout

        return merged_layout({key: measure.layout for key, measure in self._stored.items()})

    @property
    def _stored(self) -> dict[str, Stored]:
        """All measures by key, in the order of their counts."""
        stored: list[Stored] = [*self.plans]
        for measure in self.unread:
            stored.insert(measure.place, measure)
        return {entry.key: entry for entry in stored}

    def missing_shards(self) -> str:
        """Which parts of the data set are missing from the run; empty if none are."""
        texts = []
        for pairs in sorted({shard.pairs for shard in self.shards}):
            by_parts: dict[int, set[int]] = {}
            for shard in self.shards:
                if shard.pairs == pairs:
                    by_parts.setdefault(shard.parts, set()).add(shard.part)
            if all(len(held) < parts for parts, held in by_parts.items()):
                texts += [_missing_text(pairs, parts, held) for parts, held in by_parts.items()]
        return "; ".join(texts)

    def counting_difference(self, other: Header) -> str:
        """Describe how the counting options of two headers differ; empty if they are equal.

        Parameters
        ----------
        other : Header
            The header to compare with.
        """
        differences = [self.options.difference(other.options)]
        mine_by_key, others = self._stored, other._stored
        for key in {**mine_by_key, **others}:
            mine, theirs = mine_by_key.get(key), others.get(key)
            if mine and theirs:
                differences.append(stored_difference(mine, theirs))
            else:
                sides = ("here", "there") if mine else ("there", "here")
                noun = getattr(getattr(mine or theirs, "measure", None), "noun", key)
                differences.append(f"{noun} are measured {sides[0]} but not {sides[1]}")
        return "; ".join(part for part in differences if part)

    def difference(self, other: Header) -> str:
        """Describe why images of both headers cannot share a run; empty if they can.

        Parameters
        ----------
        other : Header
            The header to compare with.
        """
        parts = [self.counting_difference(other)]
        reading = sorted({*self.reading, *other.reading})
        for what, mine, theirs in (
            ("truth", self.truth, other.truth),
            ("pred", self.pred, other.pred),
            ("shard", self._shard_text(), other._shard_text()),
            *((k, self.reading.get(k), other.reading.get(k)) for k in reading),
        ):
            if mine != theirs:
                parts.append(f"{what} is {mine!r} here and {theirs!r} there")
        return "; ".join(part for part in parts if part)

    def _shard_text(self) -> str:
        # Without the number of pairs, which grows when pairs are added to a run.
        return ", ".join(f"{shard.part}/{shard.parts}" for shard in self.shards)

    def to_dict(self) -> dict[str, Json]:
        """The header as plain data."""
        measures = ("plans", "unread", "layout")
        entries = {name: value for name, value in vars(self).items() if name not in measures}
        stored: dict[str, Any] = {
            key: dict(measure.data) if isinstance(measure, UnreadMeasure) else entry_of(measure)
            for key, measure in self._stored.items()
        }
        return {
            **entries,
            "measures": stored,
            "options": self.options.to_dict(),
            "protocol": asdict(self.protocol),
            "reading": dict(self.reading),
            "provenance": dict(self.provenance),
            "versions": [dict(v) for v in self.versions],
            "shards": [list(shard) for shard in self.shards],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], given: Sequence[Measure] = ()) -> Header:
        """Create a header from the result of :meth:`to_dict`.

        Parameters
        ----------
        data : mapping
            The result of :meth:`to_dict`.
        given : sequence of Measure
            Measures that no installed package defines.

        Raises
        ------
        KeyError, TypeError, ValueError
            If an entry is missing or has the wrong type.
        """
        for key, kind in _KINDS.items():
            if not isinstance(data[key], kind):
                msg = f"{key} is {data[key]!r:.60}"
                raise TypeError(msg)
        read = {key: data[key] for key in _KINDS}
        read["options"] = ClassOptions.from_dict(data["options"])
        read["protocol"] = Protocol(**data["protocol"])
        read["expected"] = None if data["expected"] is None else read_count(data, "expected")
        read["versions"] = tuple(dict(entry) for entry in data["versions"])
        read["shards"] = tuple(_shard(entry) for entry in data["shards"])
        measures = read.pop("measures")
        stored = [
            read_entry(key, entry, position, read["options"], given)
            for position, (key, entry) in enumerate(measures.items())
        ]
        unread = tuple(measure for measure in stored if isinstance(measure, UnreadMeasure))
        plans = tuple(measure for measure in stored if not isinstance(measure, UnreadMeasure))
        return cls(**read, plans=plans, unread=unread)


def _missing_text(pairs: int, parts: int, held: set[int]) -> str:
    missing = [str(part) for part in range(1, min(parts, 1000) + 1) if part not in held]
    subject = f"part {missing[0]}" if len(missing) == 1 else f"parts {listed(missing)}"
    are = "is" if len(missing) == 1 else "are"
    return f"{subject} of {parts} {are} missing ({plural(pairs, 'pair')} in all)"


def read_count(data: Mapping[str, Any], key: str) -> int:
    """A count in plain data, from 0 to 2^63 - 1."""
    number = data[key]
    if type(number) is not int or not 0 <= number < 1 << 63:
        msg = f"{key} must be an integer ≥ 0, got {number!r:.60}"
        raise ValueError(msg)
    return number


def _shard(entry: Sequence[Any]) -> Shard:
    shard = Shard(*entry)
    for name in shard._fields:
        read_count(shard._asdict(), name)
    if not 1 <= shard.part <= shard.parts:
        msg = f"part {shard.part} of {shard.parts}"
        raise ValueError(msg)
    return shard
