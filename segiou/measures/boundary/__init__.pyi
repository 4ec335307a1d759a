from segiou.measures.boundary.arrays import boundary_counts as boundary_counts
from segiou.measures.boundary.image import BACKEND as BACKEND, count_labels as count_labels
from segiou.measures.boundary.measure import BoundaryOptions as BoundaryOptions
from segiou.measures.boundary.scores import (
    BAND_MEASURES as BAND_MEASURES,
    band_iou as band_iou,
    boundary_iou as boundary_iou,
    boundary_rows as boundary_rows,
    class_trimap_accuracy as class_trimap_accuracy,
    class_trimap_iou as class_trimap_iou,
    trimap_accuracy as trimap_accuracy,
    trimap_iou as trimap_iou,
)
from segiou.measures.boundary.sums import BoundaryCounts as BoundaryCounts
