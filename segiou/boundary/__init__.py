"""Boundary quality of label maps, per class, from counts that add up.

Region overlap forgives ragged edges on large objects; these measures do not.
"""

from segiou.boundary._backend import BACKEND
from segiou.boundary.accumulator import BoundaryAccumulator
from segiou.boundary.codes import LabelCodes
from segiou.boundary.contours import ContourPoints, find_contour, kind_lengths
from segiou.boundary.counts import BoundaryCounts
from segiou.boundary.distances import ContourDistances
from segiou.boundary.image import (
    ImageBoundaries,
    boundary_counts,
    measure_boundaries,
    measure_codes,
)
from segiou.boundary.measures import (
    BAND_MEASURES,
    CONTOUR_MEASURES,
    average_surface_distance,
    boundary_f1,
    boundary_iou,
    boundary_precision,
    boundary_recall,
    class_trimap_accuracy,
    class_trimap_iou,
    hausdorff_distance,
    surface_dice,
    trimap_accuracy,
    trimap_iou,
)
from segiou.boundary.options import BoundaryOptions, Tolerance
from segiou.boundary.scale import bin_values
from segiou.boundary.table import boundary_rows

__all__ = [
    "BACKEND",
    "BAND_MEASURES",
    "CONTOUR_MEASURES",
    "BoundaryAccumulator",
    "BoundaryCounts",
    "BoundaryOptions",
    "ContourDistances",
    "ContourPoints",
    "ImageBoundaries",
    "LabelCodes",
    "Tolerance",
    "average_surface_distance",
    "bin_values",
    "boundary_counts",
    "boundary_f1",
    "boundary_iou",
    "boundary_precision",
    "boundary_recall",
    "boundary_rows",
    "class_trimap_accuracy",
    "class_trimap_iou",
    "find_contour",
    "hausdorff_distance",
    "kind_lengths",
    "measure_boundaries",
    "measure_codes",
    "surface_dice",
    "trimap_accuracy",
    "trimap_iou",
]
