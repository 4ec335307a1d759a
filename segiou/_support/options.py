"""Options that travel as one frozen object, from the faces to where they are used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self


def option(default: Any, check: Callable[..., object], *wanted: Any, repr: bool = True) -> Any:
    """A field of :class:`Options`; values other than the default pass ``check(name, value, …)``.

    Without a default (MISSING), the option is required.
    """
    return field(default=default, metadata={"check": (check, wanted)}, repr=repr)


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of one purpose; subclasses have a field for each."""

    def __post_init__(self) -> None:
        for option in fields(self):
            value = getattr(self, option.name)
            if option.metadata and value is not option.default:
                check, wanted = option.metadata["check"]
                check(option.name, value, *wanted)

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Names of the options."""
        return tuple(option.name for option in fields(cls))

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Self:
        """The options among the arguments of a function, a command or a run.

        Parameters
        ----------
        given : mapping of str to object
            The arguments by name; those of other options are left out.
        """
        return cls(**{name: given[name] for name in cls.names() if name in given})

    @property
    def chosen(self) -> dict[str, Any]:
        """Options that differ from their defaults."""
        usual = {option.name: option.default for option in fields(self)}
        values = {name: getattr(self, name) for name in usual}
        return {name: value for name, value in values.items() if value != usual[name]}
