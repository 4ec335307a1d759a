"""The problems of files and pairs: as errors, and as texts with the options that help."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from operator import ge
from typing import Any, TypeVar

from segiou._support.files import Problem, all_listed, problem_lines, problems_by_cause
from segiou._support.optional import ForeignExitError
from segiou._support.text import plural
from segiou.counting.encoding import UndeclaredValuesError
from segiou.counting.one_hot import OneHotError
from segiou.labels.class_options import ClassOptions
from segiou.labels.loading import labelset_names, load_labels
from segiou.masks.raw_mask import SOFT_EDGES, MaskError

T = TypeVar("T")

#: Values whose pixels are listed.
_SHOWN = 6
#: Share of a preset's classes that must occur for undeclared values to match it.
_MOST_OCCUR = 0.5
#: Likely causes of many undeclared values, with the fix.
_INTERPOLATED = {
    "pixels": (
        "it was probably resized with interpolation or saved with lossy compression. Recreate it "
        "with nearest-neighbour resizing as PNG"
    ),
    "voxels": (
        "it is probably an image, not a segmentation, or was resampled with interpolation. "
        "Resample labels with nearest neighbour"
    ),
}
#: Part of texts about undeclared values of predictions.
NOT_IGNORED = " on non-ignored "
#: Beginnings of texts about undeclared values.
UNDECLARED = ("has too many undeclared values", "has undeclared values")


class UndeclaredError(Exception):
    """A file has undeclared values; its argument is the problem."""


class DataError(ValueError):
    """Problems with the files of a data set; the message lists them by cause.

    Attributes
    ----------
    problems : tuple of Problem
        One per file and cause.
    reason : str
        The likely reason for most problems, if known.
    """

    def __init__(self, problems: Sequence[Problem], reason: str = "") -> None:
        self.problems: tuple[Problem, ...] = tuple(problems)
        self.reason = reason
        causes = problems_by_cause(self.problems, advice=not reason)
        lines = problem_lines(self.problems, advice=not reason)
        if len(causes) > 1:
            lines = [f"{len(causes)} problems:", *(f"  {line}" for line in lines)]
        lines += [reason] if reason else []
        if not all_listed(causes):
            lines.append("Full list: --problems FILE (Python: error.problems)")
        super().__init__("\n".join(lines))

    def __reduce__(self) -> tuple[Any, ...]:
        return (DataError, (self.problems, self.reason))


class ScoringInterrupted(Exception):
    """Scoring was stopped before all pairs were done.

    Attributes
    ----------
    done, total : int
        Number of scored pairs and of all pairs.
    """

    def __init__(self, done: int, total: int) -> None:
        self.done = done
        self.total = total
        super().__init__(f"stopped after {done} of {total} pairs")

    def __reduce__(self) -> tuple[Any, ...]:
        return (ScoringInterrupted, (self.done, self.total))


def or_problem(path: str, do: Callable[..., T], *arguments: Any) -> T | Problem:
    """The result, or the problem with the file."""
    try:
        return do(*arguments)
    except UndeclaredError as error:
        problem: Problem = error.args[0]
        return problem
    except MaskError as error:
        return Problem(error.path, error.problem)
    except ForeignExitError:
        raise
    except MemoryError:
        return Problem(path, "does not fit into memory; store it as tiled TIFF or .npy")
    except Exception as error:  # noqa: BLE001 - one odd file must not end the run
        return Problem(path, f"cannot be read: {type(error).__name__}: {error}")


def one_hot_text(error: OneHotError) -> str:
    """The problem of files that may have an axis of classes."""
    axis, count = error.axis, error.shape[error.axis]
    return (
        f"has shape {error.shape} and no values except 0 and 1, as its prediction, and axis {axis} "
        f"is as long as the {count} classes, so both are probably channels, not label maps. For "
        f"one-hot channels, save array.argmax({axis}) of both (of the truth only with --scores); "
        "for channels that may overlap, use segiou.ChannelCounts in Python, or save one file per "
        "class (--class-files); for label maps, save volumes as NIfTI or one file per slice"
    )


def size_text(truth: str, shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> str:
    """The problem of a prediction whose size differs from its truth's."""

    def size(shape: tuple[int, ...]) -> str:
        flat = len(shape) == 2
        return f"is {shape[1]} × {shape[0]} pixels" if flat else f"has shape {shape}"

    shape, wanted = shapes[1], shapes[0]
    fix = "predict at full size, or resize with resize_pred='nearest' (--resize-pred nearest)"
    if is_swapped(shapes):
        fix = "width and height are swapped; save it transposed (numpy: mask.T)"
    elif len(shape) == len(wanted) == 2 and not _is_scaled(*shapes):
        larger = "padded" if all(map(ge, shape, wanted)) else "cropped or padded"
        fix = f"the aspect ratio differs, so it was {larger}; undo this before saving it"
    if len(shape) != len(wanted):
        fix = "save one label per pixel"
        if tuple(n for n in shape if n > 1) == wanted:
            fix = "remove the axes of length 1 (numpy.squeeze)"
        elif shape[1:] == wanted:
            fix += ", such as scores.argmax(0), or each mask as a separate file"
        elif shape[:-1] == wanted:
            fix += ", such as scores.argmax(-1)"
    return f"{size(shape)}, but the truth {size(wanted)}; {fix} [truth: {truth}]"


def is_swapped(shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> bool:
    """Whether an image and its truth differ in size as if one were transposed."""
    wanted, shape = shapes
    return len(wanted) == len(shape) == 2 and shape == wanted[::-1] != wanted


def _is_scaled(wanted: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    """Whether sizes are proportional, up to rounding by a pixel."""
    return abs(shape[0] * wanted[1] - shape[1] * wanted[0]) <= max(*shape, *wanted)


def geometry_text(truth: str, difference: str, move: str = "resample", unit: str = "voxel") -> str:
    """The problem of a mask whose geometry differs from its truth's."""
    fix = f"{move} it to the truth's grid"
    if difference.startswith("orientation"):
        fix = "reorient it: geometry='reorient' (--geometry reorient)"
    # Masks of different shapes cannot be compared voxel by voxel.
    if not difference.startswith("shape"):
        fix += f", or compare {unit} by {unit}: geometry='ignore' (--geometry ignore)"
    return f"has {difference}; {fix} [truth: {truth}]"


def undeclared_problem(
    path: str,
    error: UndeclaredValuesError,
    options: ClassOptions,
    unit: str,
    nodata: int | None = None,
) -> Problem:
    """The problem of a file with undeclared values: the likely cause, and the options that help."""
    values = dict(sorted(error.values.items()))
    more = f" and {len(values) - _SHOWN} more" if len(values) > _SHOWN else ""
    names = ("px", "px") if unit == "pixels" else ("voxel", "voxels")
    shown = [f"{v}: {plural(n, *names)}" for v, n in values.items()][:_SHOWN]
    pattern = _undeclared_pattern(values, error.side, options, unit)
    if nodata in values:
        pattern = pattern.replace("; ", f"; {nodata} is the file's nodata value; ", 1)
    return Problem.of_values(path, pattern, values, ", ".join(shown) + more)


def _preset_with(values: Collection[int]) -> str | None:
    """The preset that declares all of the values, and of whose classes most occur."""
    shares = {}
    for name in labelset_names():
        labels = load_labels(name)
        if labels.declared_values.issuperset(values):
            seen = sum(any(v in values for v in label.values) for label in labels.classes)
            shares[name] = seen / labels.num_classes
    best = max(shares, key=lambda name: shares[name], default=None)
    return best if best is not None and shares[best] >= _MOST_OCCUR else None


def _undeclared_pattern(
    values: Collection[int], side: str, options: ClassOptions, unit: str
) -> str:
    pattern = "has undeclared values: {values}"
    declared = options.labels.declared_values
    # Cityscapes has instances of its labels 24 to 33.
    if any(24 <= value // 1000 <= 33 and value // 1000 in declared for value in values):
        return (
            f"{pattern}; for Cityscapes instanceIds, use objects='cityscapes' (segiou score "
            "--objects cityscapes) or the labelIds files"
        )
    two = options.num_classes == 2 and unit == "pixels" and {*values} - {255}
    if two and min(values) >= 0 and 127 < max(values) < 256:
        return f"{pattern}; {SOFT_EDGES}"
    as_one = f"; {one_class_text([side])}" if may_be_ids(values, options) else ""
    if len(values) > max(8, options.num_classes):
        if preset := _preset_with(values):
            matched = f"they match label set {preset!r}: --labels {preset}"
            return f"{pattern}; {matched}. Otherwise, {_INTERPOLATED[unit]}"
        return f"has too many undeclared values for a label mask; {_INTERPOLATED[unit]}{as_one}"
    return f"{pattern}{_few_undeclared(values, side, options, unit)}{as_one}"


def may_be_ids(values: Collection[int], options: ClassOptions) -> bool:
    """Whether undeclared values may be ids of objects of the second of two classes."""
    declared = {*options.labels.class_values[0], *options.labels.class_values[-1]}
    is_binary = options.num_classes == 2 and {0, 1} <= declared
    return is_binary and min(values, default=0) >= 2 and 255 not in values


def one_class_text(sides: Iterable[str]) -> str:
    """The options that read ids of objects as one class on these sides."""
    several = [*sides]
    python = ", ".join(f"{side}_threshold=1" for side in several)
    command = " ".join(f"--{side}-threshold 1" for side in several)
    return (
        f"if all values from 1 on are one class, such as ids of objects, pass {python} ({command})"
    )


def _few_undeclared(values: Collection[int], side: str, options: ClassOptions, unit: str) -> str:
    """The options that help with a few undeclared values."""
    binary = ""
    if set(values) == {255} and options.num_classes <= 2:
        binary = "for a 0/255 mask, use labels='binary' (--labels binary); otherwise "
    if side == "truth":
        fix = f"add them to the label set, or ignore their {unit}: --ignore {{option}}"
        return f"; {binary}{fix}"
    swapped = ""
    if set(values) <= set(options.ignore):
        swapped = "they are ignored in the truth (are truth and prediction swapped?); otherwise "
    return (
        f"{NOT_IGNORED}{unit}; {binary}{swapped}add them to the label set, or count "
        "them as missed: unassigned='count' (--unassigned count)"
    )
