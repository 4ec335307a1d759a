"""Options that travel as one frozen object, from the faces to where they are used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self


def option(default: Any, check: Callable[..., object], *wanted: Any) -> Any:
    """A field of :class:`Options`; values other than the default pass ``check(name, value, …)``."""
    return field(default=default, metadata={"check": (check, wanted)})


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of one purpose; subclasses have a field for each."""

    def __post_init__(self) -> None:
        for one in fields(self):
            value = getattr(self, one.name)
            if one.metadata and value is not one.default:
                check, wanted = one.metadata["check"]
                check(one.name, value, *wanted)

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Names of the options."""
        return tuple(one.name for one in fields(cls))

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Self:
        """The options among the arguments of a function, a command or a run."""
        return cls(**{name: given[name] for name in cls.names() if name in given})

    @property
    def chosen(self) -> dict[str, Any]:
        """Options that differ from their defaults."""
        values = {one.name: (getattr(self, one.name), one.default) for one in fields(self)}
        return {name: value for name, (value, usual) in values.items() if value != usual}
