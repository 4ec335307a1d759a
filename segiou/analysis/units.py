"""The units of a test set: images, groups of images that belong together, or stretches of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from segiou._support.arguments import check_kind, read_several

T = TypeVar("T")

#: What is given in place of groups where images are independent.
INDEPENDENT = "none"
#: Fewer units than this stand for no others of their kind; classes in fewer are flagged.
FEW_UNITS = 10

#: Which images belong together; see :func:`groups_of`.
Groups = str | Mapping[str, Hashable] | Callable[[str], Hashable] | Sequence[Hashable]


@dataclass(frozen=True, eq=False)
class Units:
    """Which images are drawn together.

    Attributes
    ----------
    kind : {"image", "group", "block"}
    names : tuple of str
        One per unit.
    index : ndarray of int, shape (N,)
        The unit of each image.
    """

    kind: str
    names: tuple[str, ...]
    index: NDArray[np.intp]

    def __post_init__(self) -> None:
        if len(self) < 2:
            msg = (
                f"there is {len(self)} {self.kind} to resample and at least 2 are needed; "
                "one unit does not show how much units differ"
            )
            raise ValueError(msg)

    def __len__(self) -> int:
        return len(self.names)

    @property
    def few_groups(self) -> bool:
        """Whether these are groups, and too few to stand for others."""
        return self.kind == "group" and len(self) < FEW_UNITS

    def sums(self, per_image: NDArray[Any]) -> NDArray[Any]:
        """Sum the rows (N, F) of the images of each unit, (U, F).

        Parameters
        ----------
        per_image : ndarray
            A row of numbers for each image, (N, F).

        Returns
        -------
        ndarray
        """
        if self.kind == "image":
            return per_image
        summed = np.zeros((len(self), *per_image.shape[1:]), per_image.dtype)
        np.add.at(summed, self.index, per_image)
        return summed


def units_of(
    num_images: int,
    groups: Sequence[Hashable] | None = None,
    ids: Sequence[str] | None = None,
) -> Units:
    """Find the units of ``num_images`` images.

    Parameters
    ----------
    num_images : int
        Number of images.
    groups : sequence of hashable, length N, optional
        The group of each image; every image is its own unit by default.
    ids : sequence of str, length N, optional
        Names of the images; their positions by default.

    Returns
    -------
    Units

    Raises
    ------
    ValueError
        If there is not one group or id per image, or there are fewer than two
        units: nothing can be resampled.

    Examples
    --------
    >>> found = units_of(4, ["drive 2", "drive 1", "drive 2", "drive 2"])
    >>> found.names, found.index
    (('drive 2', 'drive 1'), array([0, 1, 0, 0]))
    """
    groups = one_per_image("group", groups, num_images)
    ids = one_per_image("id", ids, num_images)
    if groups is None:
        names = range(num_images) if ids is None else ids
        return Units("image", tuple(str(name) for name in names), np.arange(num_images))
    places = {group: place for place, group in enumerate(dict.fromkeys(groups))}
    index = np.fromiter((places[group] for group in groups), np.intp, num_images)
    return Units("group", tuple(str(group) for group in places), index)


def one_per_image(what: str, given: Iterable[T] | None, num_images: int) -> list[T] | None:
    """Read groups or ids; refuse them where there is not one per image."""
    if given is None:
        return None
    found = read_several(f"{what}s", given, f"a sequence, one {what} an image")
    if len(found) != num_images:
        msg = f"there must be one {what} per image: {num_images} images, {len(found)} {what}s"
        raise ValueError(msg)
    return found


def group_by_pattern(ids: Sequence[str], pattern: str) -> tuple[str, ...]:
    """Group images by what a regular expression finds in their ids.

    Parameters
    ----------
    ids : sequence of str
        Ids of images.
    pattern : str
        Searched in each id. The group is the text of its capturing groups,
        joined by "/", or the whole match where it has none.

    Returns
    -------
    tuple of str
        One per id.

    Raises
    ------
    ValueError
        If the pattern is no regular expression or is not found in some ids;
        the first of them are named.

    Examples
    --------
    >>> group_by_pattern(["0001TP_008550", "Seq05VD_f00060"], r"^([^_]+)_")
    ('0001TP', 'Seq05VD')
    """
    ids = read_several("ids", ids, "a sequence of texts")
    for name in ids:
        check_kind("an id", name, str, "text")
    check_kind("pattern", pattern, str, "a regular expression")
    try:
        searched = re.compile(pattern)
    except re.error as error:
        msg = f"{pattern!r} is not a regular expression: {error}"
        raise ValueError(msg) from None
    found = [searched.search(name) for name in ids]
    missing = [name for name, match in zip(ids, found, strict=True) if match is None]
    if missing:
        msg = f"{pattern!r} is not found in {some_of(missing)}; every image needs a group"
        raise ValueError(msg)
    return tuple(
        "/".join(part or "" for part in match.groups()) if searched.groups else match.group()
        for match in found
        if match is not None
    )


def groups_of(ids: Sequence[str], groups: Groups | None) -> Sequence[Hashable] | None:
    """Find the group of each image.

    Parameters
    ----------
    ids : sequence of str
        Ids of images.
    groups : str, mapping, callable or sequence, optional
        A regular expression (see :func:`segiou.analysis.units.group_by_pattern`),
        a mapping or function from id to group, or the groups in the order of
        the ids. ``"none"`` states that images are independent.

    Returns
    -------
    sequence of Hashable or None

    Raises
    ------
    ValueError
        If an image has no group.
    """
    if groups is None or (isinstance(groups, str) and groups == INDEPENDENT):
        return None
    if isinstance(groups, str):
        return group_by_pattern(ids, groups)
    if callable(groups):
        return [groups(name) for name in ids]
    if isinstance(groups, Mapping):
        if missing := [name for name in ids if name not in groups]:
            msg = f"no group is given for {some_of(missing)}"
            raise ValueError(msg)
        return [groups[name] for name in ids]
    wanted = "a regular expression, a mapping, a function or a sequence"
    return read_several("groups", groups, wanted)


def some_of(names: Sequence[str]) -> str:
    """Name the first three of several."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"{', '.join(names[:3])}{more}"
