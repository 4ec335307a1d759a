"""What can be wrong with a data set, in words that say what to do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from segiou.counting import UndeclaredValuesError
from segiou.runs import Problem
from segiou.runs.problems import problem_lines

__all__ = ["DataError", "Stopped", "size_text", "undeclared_text"]


class DataError(ValueError):
    """Problems of a data set. The message tells files with the same problem together.

    Attributes
    ----------
    problems : tuple of Problem
        All of them.
    """

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        count = len(self.problems)
        head = "1 problem" if count == 1 else f"{count} problems"
        lines = problem_lines(self.problems)
        if len(lines) < count:
            lines.append("all of them, one by one: .problems of this error (--problems FILE)")
        super().__init__(f"{head}:\n" + "\n".join(f"  {line}" for line in lines))

    def __reduce__(self) -> tuple[Any, ...]:
        return (DataError, (self.problems,))


class Stopped(Exception):
    """Scoring was asked to stop before all pairs were done.

    Attributes
    ----------
    done, total : int
        Pairs that are scored, and all.
    """

    def __init__(self, done: int, total: int) -> None:
        self.done, self.total = done, total
        super().__init__(f"stopped after {done} of {total} pairs")

    def __reduce__(self) -> tuple[Any, ...]:
        return (Stopped, (self.done, self.total))


def size_text(truth: str, shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> str:
    """What to do about a prediction of another size than its truth."""

    def size(shape: tuple[int, ...]) -> str:
        return f"{shape[1]} × {shape[0]}" if len(shape) == 2 else f"shape {shape}"

    return (
        f"is {size(shapes[1])} pixels, but its truth is {size(shapes[0])}; predict at the truth's "
        "size, or resize predictions: resize_pred='nearest' (--resize-pred nearest) "
        f"[truth: {truth}]"
    )


def undeclared_text(
    error: UndeclaredValuesError, num_classes: int, ignore: Sequence[int] = ()
) -> str:
    """What undeclared values in a file most likely mean, and the options that take them."""
    values = error.values
    ranked = sorted(values.items(), key=lambda item: -item[1])
    more = f" and {len(ranked) - 6} more" if len(ranked) > 6 else ""
    pixels = ", ".join(f"{value}: {count} px" for value, count in ranked[:6])
    if len(values) > max(8, num_classes):
        return (
            "has very many values that are no class; so many look like a mask that was resized "
            "with interpolation or saved with loss: make it again with nearest neighbour, as PNG "
            f"[{pixels}{more}]"
        )
    shown = ", ".join(str(value) for value, _ in ranked[:6])
    text = f"has values that are no class: {shown}{more}"
    if set(values) == {255} and num_classes <= 2:
        text += "; a 0/255 mask? labels='binary' (--labels binary) reads both"
    if error.side == "truth":
        options = " ".join(f"--ignore {value}" for value, _ in ranked[:6])
        return f"{text}; add them to the label set, or drop their pixels: {options} [{pixels}]"
    ignored = set(values) <= set(ignore)
    swapped = "the truth ignores them: are truth and prediction swapped? If not, "
    return (
        f"{text}, on pixels that are not ignored; {swapped if ignored else ''}add them to the "
        "label set, or count them as missed: unassigned='count' (--unassigned count) "
        f"[{pixels}]"
    )
