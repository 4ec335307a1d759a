"""Segmentations of 3D Slicer (``.seg.nrrd``): layers, and segments matched by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou.labels.label_set import LabelSet
from segiou.masks.formats.itk_headers import Segment
from segiou.masks.raw_mask import MaskError, RawMask, Volume

#: Difference of grids that is rounding, in voxels.
_TOLERANCE = 1e-3
#: Most voxels of a grid that contains two volumes.
_MOST_VOXELS = 1 << 30


def numbered(segments: Sequence[Segment]) -> tuple[tuple[str, int], ...]:
    """Names and values; segments of several layers with equal values are numbered in their order.

    3D Slicer numbers them so when it exports a label map.
    """
    values = [segment.value for segment in segments]
    if len({*values}) < len(values):
        values = [*range(1, len(values) + 1)]
    return tuple((segment.name, value) for segment, value in zip(segments, values, strict=True))


def flattened(
    layers: NDArray[Any], segments: Sequence[Segment], path: str | Path
) -> NDArray[np.integer[Any]]:
    """The labels of layers (L, X, Y, Z); MaskError if segments overlap."""
    if not segments:
        problem = f"has {len(layers)} layers without named segments"
        raise MaskError(path, f"{problem}; save each layer as a separate file")
    values = [value for _, value in numbered(segments)]
    labels = np.zeros(layers.shape[1:], np.min_scalar_type(max(values)), order="F")
    for (name, value, layer), label in zip(segments, values, strict=True):
        inside = layers[layer] == value
        if overlap := int((inside & (labels > 0)).sum()):
            other = segments[values.index(int(labels[inside & (labels > 0)][0]))].name
            problem = f"has {overlap} voxels in several segments, such as {other} and {name}"
            fix = "export each segment as a separate file and pass --class-files"
            raise MaskError(path, f"{problem}; {fix}")
        labels[inside] = label
    if lost := int(((layers > 0).any(0) & (labels == 0)).sum()):
        problem = f"has {lost} voxels with values that are not those of its segments"
        raise MaskError(path, f"{problem}; export the file again")
    return labels


def assign_values(raw: RawMask, wanted: Mapping[str, int], path: str | Path) -> RawMask:
    """The mask with the wanted values for its named segments, so that files match by name."""
    volume = raw.volume
    if volume is None:
        return raw
    new = {name: wanted.get(name, value) for name, value in volume.segments}
    if all(new[name] == value for name, value in volume.segments):
        return raw
    old, values = [value for _, value in volume.segments], [*new.values()]
    if len({*old}) < len(old) or len({*values}) < len(old):
        problem = (
            f"has segments {dict(volume.segments)}, whose values cannot all be those of their "
            f"names ({new}); declare every segment as a class (--labels)"
        )
        raise MaskError(path, problem)
    others = set(np.unique(volume.values).tolist()) - {*old}
    if clash := others & {*values}:
        problem = (
            f"contains the value {min(clash)} outside its segments, but a segment gets it by name"
        )
        raise MaskError(path, f"{problem}; export the file again")
    labels = volume.values.astype(
        np.promote_types(volume.values.dtype, np.min_scalar_type(max(values)))
    )
    for before, after in zip(old, values, strict=True):
        labels[volume.values == before] = after
    volume = replace(volume, values=labels, segments=tuple(new.items()))
    return raw._replace(values=labels, volume=volume)


def values_of(labels: LabelSet | None) -> dict[str, int]:
    """The value that a segment with the name of a class gets."""
    classes = () if labels is None else labels.classes
    return {label.name: label.values[0] for label in classes if label.values}


def joined(several: Iterable[Iterable[tuple[str, int]]]) -> dict[str, int]:
    """One value per name: that of the first file with it, unless another name has the value."""
    wanted: dict[str, int] = {}
    for name, value in (segment for segments in several for segment in segments):
        if name not in wanted:
            taken = {*wanted.values()}
            wanted[name] = next(v for v in (value, *range(1, len(taken) + 2)) if v not in taken)
    return wanted


def common_extent(truth: Volume, pred: Volume) -> tuple[Volume, Volume]:
    """Both volumes, those of 3D Slicer padded with background to the grid that contains both.

    3D Slicer saves segments without the empty voxels around them. Volumes that differ otherwise
    are unchanged, as are those whose larger grid would have to be cut.
    """
    volumes = truth, pred
    if not (truth.segments or pred.segments) or truth.values.ndim != 3 or pred.values.ndim != 3:
        return volumes
    matrix, bound = truth.affine[:3, :3], _TOLERANCE * min(truth.spacing)
    if (np.abs(matrix - pred.affine[:3, :3]) > bound).any():
        return volumes
    shift = np.linalg.solve(matrix, pred.affine[:3, 3] - truth.affine[:3, 3])
    offset = np.rint(shift).astype(np.int64)
    if (np.abs(shift - offset) > _TOLERANCE).any():
        return volumes
    starts = np.zeros(3, np.int64), offset
    stops = [start + volume.values.shape for start, volume in zip(starts, volumes, strict=True)]
    low, high = np.minimum(*starts), np.maximum(*stops)
    if (high - low).prod(dtype=float) > _MOST_VOXELS:
        return volumes
    padded = []
    for volume, start, stop in zip(volumes, starts, stops, strict=True):
        before, after = start - low, high - stop
        if not (before.any() or after.any()):
            padded.append(volume)
            continue
        if not volume.segments:
            return volumes
        values = np.pad(volume.values, np.stack([before, after], 1).tolist())
        affine = volume.affine.copy()
        affine[:3, 3] -= affine[:3, :3] @ before
        padded.append(replace(volume, values=values, affine=affine))
    return padded[0], padded[1]
