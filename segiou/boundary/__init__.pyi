from segiou.boundary.boundary_image import (
    BACKEND as BACKEND,
    boundary_counts as boundary_counts,
    count_labels as count_labels,
)
from segiou.boundary.boundary_options import BoundaryOptions as BoundaryOptions
from segiou.boundary.boundary_scores import (
    BAND_MEASURES as BAND_MEASURES,
    band_iou as band_iou,
    boundary_iou as boundary_iou,
    boundary_rows as boundary_rows,
    class_trimap_accuracy as class_trimap_accuracy,
    class_trimap_iou as class_trimap_iou,
    trimap_accuracy as trimap_accuracy,
    trimap_iou as trimap_iou,
)
from segiou.boundary.boundary_sums import BoundaryCounts as BoundaryCounts
from segiou.boundary.surface_options import SurfaceOptions as SurfaceOptions
from segiou.boundary.surface_rows import SurfaceRows as SurfaceRows
from segiou.boundary.surfaces import (
    measure_surfaces as measure_surfaces,
    surface_scores as surface_scores,
)
