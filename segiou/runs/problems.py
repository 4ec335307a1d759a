"""What is wrong with files, and many such problems as a few lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from segiou._files import printable

__all__ = ["Problem", "problem_lines"]

#: Up to so many files with one problem have a line each; of more, the first few are named.
_EACH = 5
_NAMED = 3
#: Kinds of problems that are listed at most.
_KINDS = 40


@dataclass(frozen=True, slots=True)
class Problem:
    """Something wrong with a file: where, and what to do about it.

    Attributes
    ----------
    where : str
        The file.
    text : str
        What it is. What is particular to this file stands last, in square
        brackets: ``"is no class: 7 [7: 20 px]"``.
    """

    where: str
    text: str

    def __str__(self) -> str:
        return printable(f"{self.where}: {self.text}")

    @property
    def kind(self) -> str:
        """What files with the same problem share."""
        return self._parts[0]

    @property
    def particulars(self) -> str:
        """The rest of the text."""
        return self._parts[1]

    @property
    def _parts(self) -> tuple[str, str]:
        kind, bracket, rest = self.text.rpartition(" [")
        return (kind, f"{bracket}{rest}") if bracket and rest.endswith("]") else (self.text, "")


def problem_lines(problems: Sequence[Problem]) -> list[str]:
    r"""Lines that tell of problems; where many files have one, together.

    Examples
    --------
    >>> found = [Problem(f"{i}.png", f"is no class: 7 [7: {i} px]") for i in range(1, 9)]
    >>> print("\n".join(problem_lines(found)))
    8 files: is no class: 7
      1.png [7: 1 px]
      2.png [7: 2 px]
      3.png [7: 3 px]
      and 5 more
    """
    kinds: dict[str, list[Problem]] = {}
    for problem in problems:
        kinds.setdefault(problem.kind, []).append(problem)
    shown = list(kinds.items())[:_KINDS]
    lines = [line for kind, found in shown for line in _lines_of(kind, found)]
    if len(kinds) > len(shown):
        left = len(problems) - sum(len(found) for _, found in shown)
        lines.append(f"and {left} more problems of {len(kinds) - len(shown)} other kinds")
    return lines


def _lines_of(kind: str, found: Sequence[Problem]) -> list[str]:
    if len(found) <= _EACH:
        return [str(problem) for problem in found]
    return [
        f"{len(found)} files: {printable(kind)}",
        *(printable(f"  {p.where}{p.particulars}") for p in found[:_NAMED]),
        f"  and {len(found) - _NAMED} more",
    ]
