"""Several files of many masks as one source."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from segiou._support.files import Stamp
from segiou.masks.finding import check_found
from segiou.masks.raw_mask import RawMask
from segiou.masks.sources.folders import Source
from segiou.masks.sources.opening import open_source
from segiou.masks.sources.patterns import is_pattern, matches

_RANGE = re.compile(r"\{(\d+)\.\.(\d+)\}")
_MOST_SHARDS = 1 << 16


@dataclass(frozen=True)
class Shards(Source):
    """Several archives or Parquet files as one source."""

    #: Their paths as one pattern, such as ``val-*.tar`` or ``val-*.parquet/annotation``.
    root: str

    @classmethod
    def at(cls, path: Path, file: Path) -> Shards | None:
        """The shards at a path if the name of its file is a pattern or a range of numbers."""
        is_open = (is_pattern(str(file)) or "{" in file.name) and not file.exists()
        return cls(str(path)) if is_open else None

    @property
    def draws(self) -> bool:
        """Whether its masks may be drawn from polygons."""
        return self.root.lower().endswith(".json")

    def find(self) -> dict[str, str]:
        """Masks of all shards."""
        masks: dict[str, str] = {}
        for shard in self._shards():
            for name, path in shard.find().items():
                if name in masks:
                    msg = f"{self.root}: {name!r} is in two shards, {masks[name]} and {path}"
                    raise ValueError(msg)
                masks[name] = path
        check_found(masks, self.root)
        return masks

    def stamp(self, path: str) -> Stamp:
        """The stamp given by the shard."""
        return open_source(path).stamp(path)

    def read(self, path: str) -> tuple[bytes | RawMask, Stamp]:
        """The content of a file in its shard."""
        return open_source(path).read(path)

    def _shards(self) -> Iterator[Source]:
        pattern, ending, column = self.root.partition(".parquet/")
        pattern += ending.rstrip("/")
        if (numbers := _RANGE.search(pattern)) is None:
            paths = [*matches(pattern)]
        else:
            first, last = int(numbers[1]), int(numbers[2])
            several = range(first, min(last, first + _MOST_SHARDS) + 1)
            width = len(numbers[1])
            paths = [_RANGE.sub(f"{number:0{width}}", pattern, count=1) for number in several]
        if not paths:
            msg = f"{self.root}: no files match"
            raise ValueError(msg)
        for path in paths:
            yield open_source(f"{path}/{column}" if column else path)
