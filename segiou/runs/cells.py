"""Counts as bytes: the cells of a run file that are not zero."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from segiou.boundary.boundary_options import BoundaryOptions
from segiou.boundary.boundary_sums import BoundaryCounts
from segiou.counting.counts import Counts

if TYPE_CHECKING:
    from segiou.instances.panoptic import PanopticCounts
    from segiou.runs.header import Header

Ints = NDArray[np.int64]
#: 63 bits take nine bytes.
_MAX_BYTES = 9


def encode_cells(sizes: Ints, cells: Ints, values: Ints) -> list[bytes]:
    r"""Encode the counts of several images at once.

    Parameters
    ----------
    sizes : ndarray of int64, shape (N,)
        Filled cells of each image.
    cells, values : ndarray of int64, shape (sum of sizes,)
        Flat indices, ascending within each image, and their pixels.

    Examples
    --------
    >>> encode_cells(np.array([2, 0]), np.array([0, 3]), np.array([5, 300]))
    [b'\x01\x05\x03\xac\x02', b'']
    """
    numbers = np.empty(2 * len(cells), dtype=np.int64)
    numbers[0::2] = np.diff(cells, prepend=-1)
    firsts = (np.cumsum(sizes) - sizes)[sizes > 0]
    numbers[2 * firsts] = cells[firsts] + 1
    numbers[1::2] = values
    lengths = np.ones(len(numbers), dtype=np.int64)
    for bits in range(7, int(numbers.max(initial=0)).bit_length(), 7):
        lengths += numbers >= 1 << bits
    ends = np.cumsum(lengths)
    data = _spread(numbers, ends - lengths, lengths)
    stops = np.concatenate([[0], ends])[np.concatenate([[0], 2 * np.cumsum(sizes)])].tolist()
    return [data[a:b] for a, b in pairwise(stops)]


def _spread(numbers: Ints, starts: Ints, lengths: Ints) -> bytes:
    out = np.zeros(int(lengths.sum()), dtype=np.uint8)
    # Byte by byte, of ever fewer numbers.
    longer = np.arange(len(numbers))
    for k in range(_MAX_BYTES):
        longer = longer[lengths[longer] > k]
        if not len(longer):
            break
        part = (numbers[longer] >> (7 * k)) & 0x7F
        part[lengths[longer] > k + 1] |= 0x80
        out[starts[longer] + k] = part
    return out.tobytes()


def decode_cells(blobs: list[bytes], num_cells: int) -> tuple[Ints, Ints, Ints]:
    r"""Decode what :func:`encode_cells` gave.

    Parameters
    ----------
    blobs : list of bytes
        One an image.
    num_cells : int
        Cells of the full table, C · (C + 1).

    Returns
    -------
    sizes, cells, values : ndarray of int64

    Raises
    ------
    ValueError
        If a blob is not what an image's counts look like.

    Examples
    --------
    >>> decode_cells([b'\x01\x05\x03\xac\x02', b''], 6)
    (array([2, 0]), array([0, 3]), array([  5, 300]))
    """
    data = np.frombuffer(b"".join(blobs), dtype=np.uint8)
    last = np.flatnonzero(data < 0x80)
    stops = np.cumsum(np.array([len(blob) for blob in blobs], dtype=np.int64))
    if len(data) and data[stops[stops > 0] - 1].max() >= 0x80:
        msg = "a number of its counts is cut off"
        raise ValueError(msg)
    numbers = _gathered(data, last)
    per_image = np.diff(np.searchsorted(last, stops), prepend=0)
    if (per_image % 2).any():
        msg = "a count has no cell"
        raise ValueError(msg)
    return _checked(per_image // 2, numbers[0::2], numbers[1::2], num_cells)


def _gathered(data: NDArray[np.uint8], last: Ints) -> Ints:
    lengths = np.diff(last, prepend=-1)
    if len(lengths) and int(lengths.max()) > _MAX_BYTES:
        msg = "a number of its counts is too long"
        raise ValueError(msg)
    starts = last - lengths + 1
    numbers = np.zeros(len(last), dtype=np.int64)
    used = np.arange(len(last))
    for k in range(int(lengths.max(initial=0))):
        used = used[lengths[used] > k]
        part = (data[starts[used] + k] & 0x7F).astype(np.int64)
        numbers[used] |= part << (7 * k)
    return numbers


def _checked(sizes: Ints, steps: Ints, values: Ints, num_cells: int) -> tuple[Ints, Ints, Ints]:
    if len(steps) and (int(steps.min()) < 1 or int(steps.max()) > num_cells):
        msg = "a cell of its counts lies outside the table"
        raise ValueError(msg)
    ends = np.cumsum(sizes)
    filled = sizes > 0
    cells = np.cumsum(steps)
    before = np.concatenate([[0], cells])[(ends - sizes)]
    cells -= np.repeat(before, sizes) + 1
    if filled.any() and int(cells[ends[filled] - 1].max()) >= num_cells:
        msg = "a cell of its counts lies outside the table"
        raise ValueError(msg)
    if len(values) and int(values.min()) < 1:
        msg = "a count is not positive"
        raise ValueError(msg)
    return sizes, cells, values


#: Images unpacked at once: an entry of a histogram takes eight bytes then.
_BLOCK = 256
#: Of one image, more than there can be.
_MOST_NUMBERS = 1 << 40


def pack_measured(boundary: BoundaryCounts | None, objects: PanopticCounts | None) -> bytes | None:
    """Pack the counts of one image as :func:`segiou.runs.cells.encode_cells` does.

    First those at boundaries, then TP, FP and FN of the objects of each class,
    then class, intersection, union and number of the matches.
    """
    if boundary is None and objects is None:
        return None
    parts = [] if boundary is None else [boundary.table]
    parts += [] if objects is None else [objects.detections.ravel(), objects.overlaps.ravel()]
    numbers = np.concatenate(parts)
    cells = np.flatnonzero(numbers)
    (packed,) = encode_cells(np.array([len(cells)]), cells, numbers[cells])
    return packed


def boundary_length(num_classes: int, options: BoundaryOptions | None) -> int:
    """Entries of the counts at boundaries of one image."""
    return 0 if options is None else len(BoundaryCounts.zeros(num_classes, options).table)


def check_packed(packed: Sequence[bytes], header: Header) -> None:
    """Refuse what is not what :func:`pack_measured` gives."""
    if header.objects is None:
        decode_cells([*packed], boundary_length(header.options.num_classes, header.boundary))
        return
    matches = unpack_objects(packed, header)[1]
    wrong = (matches[:, 0] >= header.options.num_classes) | (matches[:, 1] > matches[:, 2])
    if wrong.any() or (matches[:, 1:] < 1).any():
        msg = "a match of its objects has no class, or an intersection above its union"
        raise ValueError(msg)


def unpack_objects(packed: Sequence[bytes], header: Header) -> tuple[Ints, Ints, Ints]:
    """TP, FP and FN of images (N, C, 3); their matches (M, 4), and the image of each match."""
    start = boundary_length(header.options.num_classes, header.boundary)
    num_classes = header.options.num_classes
    sizes, cells, values = decode_cells([*packed], _MOST_NUMBERS)
    owner = np.repeat(np.arange(len(packed)), sizes)
    chosen = cells >= start
    cells, values, owner = cells[chosen] - start, values[chosen], owner[chosen]
    found = np.zeros((len(packed), num_classes * 3), dtype=np.int64)
    few = cells < num_classes * 3
    found[owner[few], cells[few]] = values[few]
    cells, values, owner = cells[~few] - num_classes * 3, values[~few], owner[~few]
    # The last number of a match, how often it is there, is never 0.
    last = cells % 4 == 3
    if len(last) and not last[-1]:
        msg = "a match of its objects is cut off"
        raise ValueError(msg)
    at = np.searchsorted(np.flatnonzero(last), np.arange(len(cells)))
    matches = np.zeros((int(last.sum()), 4), dtype=np.int64)
    matches[at, cells % 4] = values
    return found.reshape(-1, num_classes, 3), matches, owner[last]


def unpack_boundaries(
    packed: Iterable[bytes], num_classes: int, options: BoundaryOptions
) -> BoundaryCounts:
    """Unpack the counts of images, as rows of one table (N, n).

    Raises
    ------
    ValueError
        If something is not what the counts of an image look like.
    """
    rows = list(packed)
    length = boundary_length(num_classes, options)
    table = np.zeros((len(rows), length), dtype=np.int64)
    sizes, cells, values = decode_cells(rows, _MOST_NUMBERS)
    here = cells < length  # counts of objects follow
    table[np.repeat(np.arange(len(rows)), sizes)[here], cells[here]] = values[here]
    return BoundaryCounts(table, num_classes, options)


def sum_boundaries(
    packed: Iterable[bytes], num_classes: int, options: BoundaryOptions
) -> BoundaryCounts:
    """Sum the counts of images; memory does not grow with their number."""
    total = BoundaryCounts.zeros(num_classes, options)
    for part in _unpacked(packed, num_classes, options):
        total += part.summed()
    return total


def band_counts(packed: Iterable[bytes], num_classes: int, options: BoundaryOptions) -> Counts:
    """Counts of Boundary IoU at the first width of each image, (N, C).

    Raises
    ------
    ValueError
        If no width was measured.
    """
    if not options.widths:
        msg = "no width of Boundary IoU was measured; see BoundaryOptions"
        raise ValueError(msg)
    parts = [np.zeros((4, 0, num_classes), dtype=np.int64)]
    for part in _unpacked(packed, num_classes, options):
        found = part.band_counts()
        parts.append(np.stack([a[:, 0] for a in (found.tp, found.fp, found.fn, found.tn)]))
    return Counts(*np.concatenate(parts, axis=1))


def _unpacked(
    packed: Iterable[bytes], num_classes: int, options: BoundaryOptions
) -> Iterator[BoundaryCounts]:
    remaining = iter(packed)
    while part := list(islice(remaining, _BLOCK)):
        yield unpack_boundaries(part, num_classes, options)
