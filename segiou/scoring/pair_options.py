"""Which files are pairs: options that travel as one object."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from segiou._support.arguments import check_choice, check_kind
from segiou._support.options import Options, option
from segiou._support.text import encodable
from segiou.scoring.id_lists import ids_of

#: Options that a table of the pairs replaces.
_REPLACED = ("truth_suffix", "pred_suffix", "key", "ids")


@dataclass(frozen=True, kw_only=True)
class PairOptions(Options):
    """Which files are pairs; :func:`segiou.score_folder` documents the options."""

    truth_suffix: str | None = option(None, check_kind, str, "text")
    pred_suffix: str | None = option(None, check_kind, str, "text")
    key: str | None = option(None, check_kind, str, "text")
    ids: str | Path | tuple[str, ...] | None = None
    pairs: str | Path | None = option(None, check_kind, (str, os.PathLike), "a path or a URL")
    missing: str = option("error", check_choice, ("error", "skip"))
    extra: str = option("error", check_choice, ("error", "skip"))
    on_error: str = option("stop", check_choice, ("stop", "skip"))

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.listed
        if given := [name for name in _REPLACED if getattr(self, name) is not None]:
            self.check_beside(given[0])

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Self:
        """The options among arguments, with ids of an iterable as a tuple."""
        ids: Any = given.get("ids")
        is_path = ids is None or isinstance(ids, (str, Path))
        return super().of({**given, "ids": ids if is_path else ids_of(ids)})

    def check_beside(self, name: str) -> None:
        """ValueError if an option that was given is replaced by a table of the pairs."""
        if self.pairs is not None:
            msg = f"pairs names the pairs, so {name} would have no effect; omit one of them"
            raise ValueError(msg)

    @property
    def has_rule(self) -> bool:
        """Whether an option decides which files are pairs."""
        return any((self.truth_suffix, self.pred_suffix, self.key, self.pairs))

    @cached_property
    def listed(self) -> tuple[str, ...] | None:
        """The ids to score; None for all."""
        return None if self.ids is None else ids_of(self.ids)

    @property
    def recorded(self) -> dict[str, Any]:
        """Options that differ from their defaults, as runs record them: ids by their file."""
        chosen = {
            name: value for name, value in self.chosen.items() if not isinstance(value, tuple)
        }
        return {name: encodable(str(value)) for name, value in chosen.items()}
