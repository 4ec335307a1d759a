"""Resampling units (images, groups or blocks) and sums over them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain
from typing import Any, Protocol as Structure, TypeVar

import numpy as np
from numpy.typing import NDArray

from segiou._support.arguments import check_integer, check_kind, compiled, read_several
from segiou._support.table_files import cell_text
from segiou._support.text import composed
from segiou.counting.counts import Counts, check_counts
from segiou.measures.parts import Parts, row_parts as parts_of_rows
from segiou.metrics.protocols import Protocol
from segiou.metrics.ratio import Floats

T = TypeVar("T")

#: Passed as groups to declare the images independent.
INDEPENDENT = "none"
#: Classes in fewer units are flagged, because these do not represent others of their kind.
FEW_UNITS = 10

#: Fewer units show no difference of models: with two, the interval of equal models excludes 0 in
#: up to 11 % of samples, and with three in at most 5 %.
FEWEST_COMPARED = 3

#: Scores and errors closer than this are equal except for rounding.
ROUNDING = 1e-12

#: Grouping of images; see :func:`groups_of`.
Groups = str | Mapping[str, Hashable] | Callable[[str], Hashable] | Sequence[Hashable]


def difference(first: Any, second: Any) -> Any:
    """Second minus first; 0 for scores that are equal except for rounding."""
    delta = np.subtract(second, first)
    return np.where(np.abs(delta) < ROUNDING, 0.0, delta)


def plural_of(kind: str, image: str = "image") -> str:
    """The plural of a kind of units; images have this noun."""
    return "batches" if kind == "batch" else f"{image if kind == 'image' else kind}s"


def are_too_few(kind: str, number: int) -> bool:
    """Whether these are groups or sequences, but too few to generalise to others."""
    return kind in ("group", "sequence") and number < FEWEST_COMPARED


@dataclass(frozen=True, eq=False)
class Units:
    """Assignment of images to units, which are omitted, resampled or permuted.

    Attributes
    ----------
    kind : {"image", "group", "sequence", "batch"}
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
            msg = f"expected at least 2 {plural_of(self.kind)}, got {len(self)}"
            raise ValueError(msg)

    def __len__(self) -> int:
        return len(self.names)

    @property
    def too_few(self) -> bool:
        """Whether these are groups or sequences, but too few to generalise to others."""
        return are_too_few(self.kind, len(self))

    @property
    def too_few_to_compare(self) -> bool:
        """Whether differences of models have no interval over so few units of any kind."""
        return len(self) < FEWEST_COMPARED

    def sums(self, per_image: T) -> T:
        """Sum the rows (N, F) of the images in each unit, (U, F).

        Parameters
        ----------
        per_image : ndarray or sparse array
            One row per image, (N, F).

        Returns
        -------
        ndarray or sparse array
        """
        if self.kind == "image":
            return per_image
        rows: Any = per_image
        flat = rows.reshape(len(rows), -1) if isinstance(rows, np.ndarray) else rows
        totals = group_sums(flat, self.index, len(self))
        table: T = totals.reshape(len(self), *rows.shape[1:])
        return table


#: More images have counts that do not fit into memory.
_MOST_IMAGES = 10**9


def units_of(
    num_images: int, groups: Sequence[Hashable] | None = None, ids: Sequence[str] | None = None
) -> Units:
    """Find the units of ``num_images`` images.

    Parameters
    ----------
    num_images : int
        Number of images.
    groups : sequence of hashable, length N, optional
        The group of each image; by default, each image is a unit.
    ids : sequence of str, length N, optional
        Names of the images; by default, their positions.

    Raises
    ------
    ValueError
        If there is not exactly one group or id per image, or there are fewer
        than two units.

    Examples
    --------
    >>> found = units_of(4, ["drive 2", "drive 1", "drive 2", "drive 2"])
    >>> found.names, found.index
    (('drive 2', 'drive 1'), array([0, 1, 0, 0]))
    """
    check_integer("num_images", num_images, 0, _MOST_IMAGES)
    ids = one_per_image("id", ids, num_images)
    names = tuple(map(str, range(num_images) if ids is None else ids))
    if groups is None:
        return Units("image", names, np.arange(num_images))
    named = group_names(groups, names)
    places = {group: place for place, group in enumerate(dict.fromkeys(named))}
    index = np.fromiter((places[group] for group in named), np.intp, num_images)
    return Units("group", tuple(places), index)


def group_names(groups: Iterable[Hashable], names: Sequence[str]) -> list[str]:
    """Names of the groups of images, of which every image needs one."""
    per_image = one_per_image("group", groups, len(names)) or []
    texts = [cell_text(group) for group in per_image]
    if missing := [name for name, text in zip(names, texts, strict=True) if not text]:
        msg = f"no group for {some_of(missing)}; every id needs one"
        raise ValueError(msg)
    return texts


def one_per_image(what: str, values: Iterable[T] | None, num_images: int) -> list[T] | None:
    """Read groups or ids; there must be one per image."""
    if values is None:
        return None
    several = read_several(f"{what}s", values, f"a sequence, one {what} per image")
    if len(several) != num_images:
        msg = f"expected one {what} per image: {num_images} images, {len(several)} {what}s"
        raise ValueError(msg)
    return several


def group_by_pattern(ids: Sequence[str], pattern: str) -> tuple[str, ...]:
    """Group images by a regular expression searched in their ids.

    Parameters
    ----------
    ids : sequence of str
        Ids of images.
    pattern : str
        Searched in each id. The group of an image is the text of the capturing
        groups, joined by "/", or the whole match if there are none.

    Returns
    -------
    tuple of str
        One per id.

    Raises
    ------
    ValueError
        If the pattern is not a regular expression or is not found in some ids.

    Examples
    --------
    >>> group_by_pattern(["0001TP_008550", "Seq05VD_f00060"], r"^([^_]+)_")
    ('0001TP', 'Seq05VD')
    """
    ids = read_several("ids", ids, "a sequence of texts")
    for name in ids:
        check_kind("an id", name, str, "text")
    check_kind("pattern", pattern, str, "a regular expression")
    searched = compiled(composed(pattern), f"{pattern!r} is not a regular expression")
    matches = [searched.search(name) for name in ids]
    missing = [name for name, match in zip(ids, matches, strict=True) if match is None]
    if missing:
        msg = f"{pattern!r} is not found in {some_of(missing)}; every id needs a group"
        raise ValueError(msg)
    found = [match for match in matches if match is not None]
    if searched.groups < 2:
        return tuple([match[searched.groups] or "" for match in found])
    return tuple(["/".join(part or "" for part in match.groups()) for match in found])


def groups_of(ids: Sequence[str], groups: Groups | None) -> Sequence[Hashable] | None:
    """Find the group of each image.

    Parameters
    ----------
    ids : sequence of str
        Ids of images.
    groups : str, mapping, callable or sequence, optional
        A regular expression (see :func:`segiou.inference.units.group_by_pattern`),
        ``FILE:COLUMN`` of a table (see :func:`segiou.inference.metadata.metadata_of`),
        a mapping or function from id to group, or the groups in the order of
        the ids. ``"none"`` declares the images independent.

    Raises
    ------
    ValueError
        If a pattern or a table lacks the group of an image.
    """
    if groups is None or (isinstance(groups, str) and groups == INDEPENDENT):
        return None
    if isinstance(groups, str):
        from segiou.inference.metadata import column_of

        column = column_of(groups, ids)
        return group_by_pattern(ids, groups) if column is None else column
    if callable(groups):
        return [groups(name) for name in ids]
    if isinstance(groups, Mapping):
        return [groups.get(name) for name in ids]
    wanted = "a regular expression, a mapping, a function or a sequence"
    return read_several("groups", groups, wanted)


def some_of(names: Sequence[str]) -> str:
    """Name the first three of several."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"{', '.join(names[:3])}{more}"


Metric = str | Callable[[Counts], Floats]

#: Most numbers that are processed at once.
_PART = 1 << 18
#: Most numbers of a dense table; larger ones are sparse because most images have few classes.
_DENSE = 1 << 23


class HasCounts(Structure):
    """An object with per-class counts: a run, a report or a confusion matrix."""

    @property
    def counts(self) -> Counts:
        """Counts of each class, (C,)."""

    @property
    def class_names(self) -> tuple[str, ...]:
        """Names of the classes."""

    @property
    def include(self) -> NDArray[np.bool_]:
        """Classes that are included in means, (C,)."""


class HasRunCounts(HasCounts, Structure):
    """An object that can be compared, such as :class:`segiou.Run`."""

    @property
    def name(self) -> str:
        """Name of the run."""

    @property
    def ids(self) -> tuple[str, ...]:
        """Ids of the images."""

    @property
    def protocol(self) -> Protocol:
        """Protocol of the means."""


@dataclass(frozen=True, eq=False)
class ImageParts:
    """Counts of N images, in parts that fit into memory: of C classes (n, C), or of a measure."""

    number: int
    width: int
    parts: Callable[[], Iterator[Any]]

    @classmethod
    def of(cls, counts: Counts | Parts | ImageParts) -> ImageParts:
        """The parts of counts (N, C), or the counts of a measure."""
        if isinstance(counts, ImageParts):
            return counts
        if isinstance(counts, Parts):
            return cls(len(counts), 0, lambda: iter([counts]))
        check_counts(counts, "per-image counts")
        if counts.tp.ndim != 2:
            msg = f"counts must have shape (N, C) for N images, got {counts.tp.shape}"
            raise ValueError(msg)
        number, classes = counts.tp.shape
        step = max(1, _PART // max(classes, 1))
        starts = range(0, max(number, 1), step)
        return cls(number, classes, lambda: (counts[s : s + step] for s in starts))

    def where(self, taken: NDArray[np.bool_]) -> ImageParts:
        """The parts of some images, (N,), if they are counts of classes."""

        def parts() -> Iterator[Any]:
            start = 0
            for part in self.parts():
                number = len(part.tp) if isinstance(part, Counts) else 0
                places = np.flatnonzero(taken[start : start + number])
                yield part[places] if number else part
                start += number

        return ImageParts(int(taken.sum()), self.width, parts)

    def joined(self, function: Callable[[Any], Floats]) -> Floats:
        """Values of the images, (N, ...)."""
        return np.concatenate([*map(function, self.parts())])


@dataclass(frozen=True, eq=False)
class ManyRows:
    """Rows of very many images (N, F), computed from their counts each time that they are read."""

    parts: Callable[[], Iterator[NDArray[Any]]]
    number: int

    @cached_property
    def _first(self) -> NDArray[Any]:
        return next(self.parts())[:0].copy()

    @property
    def shape(self) -> tuple[int, ...]:
        """Numbers of rows and columns."""
        return self.number, self._first.shape[1]

    def sum(self, axis: int) -> NDArray[Any]:
        """Sum along the first axis."""
        return np.asarray(sum(part.sum(axis) for part in self.parts()))

    def __getitem__(self, taken: NDArray[np.bool_]) -> NDArray[Any]:
        starts = np.cumsum([0, *map(len, self.parts())])
        places = zip(starts, self.parts(), strict=False)  # the last start is the end
        chosen = (part[taken[start : start + len(part)]] for start, part in places)
        return np.concatenate([*chosen])


def row_parts(table: Any) -> Iterator[NDArray[Any]]:
    """The rows of a table as dense parts."""
    parts = table.parts() if isinstance(table, ManyRows) else [table]
    return chain.from_iterable(map(parts_of_rows, parts))


def group_sums(table: Any, index: NDArray[np.intp], groups: int) -> Any:
    """Sums of rows over groups by the place of each row's group; rows with -1 are left out.

    The sums are dense unless they are many numbers.
    """
    from scipy import sparse  # type: ignore[import-untyped, unused-ignore]

    if isinstance(table, ManyRows):
        return _sums_of_parts(table.parts(), index, groups)
    taken = np.flatnonzero(index >= 0)
    members = np.ones(len(taken), table.dtype), (index[taken], taken)
    sums = sparse.csr_array(members, shape=(groups, table.shape[0])) @ table
    return sums if isinstance(sums, np.ndarray) or is_large(*sums.shape) else sums.toarray()


def is_large(rows: int, columns: int) -> bool:
    """Whether a table is stored sparse."""
    return rows * columns > _DENSE


def unit_sums(units: Units, parts: Iterable[NDArray[Any]]) -> Any:
    """Sum per-image rows, given in parts (n, F), over units: dense or sparse, (U, F)."""
    rest = iter(parts)
    first = next(rest)
    number = len(units.index)
    if first.shape[0] == number:
        return units.sums(first)
    if units.kind != "image" and not is_large(len(units), first.shape[1]):
        return _sums_of_parts(chain([first], rest), units.index, len(units))
    if not is_large(number, first.shape[1]):
        return units.sums(np.concatenate([first, *rest]))
    from scipy import sparse  # type: ignore[import-untyped, unused-ignore]

    # Part by part, because all of them may not fit into memory as dense arrays.
    rows = [sparse.csr_array(part) for part in chain([first], rest)]
    return units.sums(sparse.vstack(rows, format="csr"))


def _sums_of_parts(
    parts: Iterable[NDArray[Any]], index: NDArray[np.intp], groups: int
) -> NDArray[Any]:
    """As :func:`group_sums`, of rows in parts."""
    start, total = 0, np.zeros(0)
    for part in parts:
        if not start:  # the last row is of those that are left out
            total = np.zeros((groups + 1, part.shape[1]), part.dtype)
        # A part has few of many groups.
        found, place = np.unique(index[start : start + len(part)], return_inverse=True)
        total[found] += group_sums(part, place, len(found))
        start += len(part)
    return total[:groups]


#: Resamples of more units draw so many sums of units.
MOST_RESAMPLED = 20_000


@lru_cache(maxsize=1)  # each slice asks for them again
def random_groups(number: int) -> NDArray[np.intp]:
    """The random group of each of very many units.

    They follow from the number alone, so those of two models match.
    """
    groups = np.random.default_rng(number).permutation(number) % MOST_RESAMPLED
    groups.flags.writeable = False
    return groups


def resampled_sums(table: Any) -> Any:
    """The rows that are resampled: of units (U, F), or their sums over random groups if many."""
    number = table.shape[0]
    if number <= MOST_RESAMPLED:
        return table
    return group_sums(table, random_groups(number), MOST_RESAMPLED)


def weighted(weights: NDArray[Any], table: Any) -> NDArray[Any]:
    """Sums over resamples: weights (B, U) times a table (U, F), in the table's data type."""
    weights = weights.astype(table.dtype)
    if isinstance(table, np.ndarray):
        return _product(weights, table)
    return np.ascontiguousarray((table.T @ np.ascontiguousarray(weights.T)).T)


#: Multiplications of a product that BLAS computes in one thread.
_ONE_THREAD = 1 << 17


def _product(a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    """Matrix product of few rows at a time: BLAS would wait for threads of busy cores."""
    rows = max(1, _ONE_THREAD // max(len(a) * b.shape[1], 1))
    whole = len(b) // rows * rows
    parts = a[:, :whole].reshape(len(a), -1, rows).transpose(1, 0, 2)
    total = (parts @ b[:whole].reshape(-1, rows, b.shape[1])).sum(0)
    return np.asarray(total + a[:, whole:] @ b[whole:])
