from segiou.boundary.boundary_image import (
    BACKEND as BACKEND,
    ImageBoundaries as ImageBoundaries,
    boundary_counts as boundary_counts,
    count_labels as count_labels,
    measure_boundaries as measure_boundaries,
    measure_codes as measure_codes,
)
from segiou.boundary.boundary_options import (
    BoundaryOptions as BoundaryOptions,
    Tolerance as Tolerance,
    bin_distances as bin_distances,
)
from segiou.boundary.boundary_scores import (
    BAND_MEASURES as BAND_MEASURES,
    CONTOUR_MEASURES as CONTOUR_MEASURES,
    average_surface_distance as average_surface_distance,
    band_iou as band_iou,
    boundary_f1 as boundary_f1,
    boundary_iou as boundary_iou,
    boundary_precision as boundary_precision,
    boundary_recall as boundary_recall,
    boundary_rows as boundary_rows,
    class_trimap_accuracy as class_trimap_accuracy,
    class_trimap_iou as class_trimap_iou,
    hausdorff_distance as hausdorff_distance,
    surface_dice as surface_dice,
    trimap_accuracy as trimap_accuracy,
    trimap_iou as trimap_iou,
)
from segiou.boundary.boundary_sums import BoundaryCounts as BoundaryCounts
from segiou.boundary.contours import (
    ContourDistances as ContourDistances,
    ContourPoints as ContourPoints,
    element_lengths as element_lengths,
    find_contour as find_contour,
)
from segiou.boundary.label_codes import LabelCodes as LabelCodes
from segiou.boundary.surface_options import SurfaceOptions as SurfaceOptions
from segiou.boundary.surface_rows import SurfaceRows as SurfaceRows
from segiou.boundary.surfaces import (
    measure_surfaces as measure_surfaces,
    surface_scores as surface_scores,
)
