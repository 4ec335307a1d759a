from segiou.geometry.agreement import (
    UNDECIDED as UNDECIDED,
    annotator_iou as annotator_iou,
    consensus as consensus,
    consensus_iou as consensus_iou,
    disagreement as disagreement,
    vote_counts as vote_counts,
)
from segiou.geometry.binary_masks import (
    box_to_mask as box_to_mask,
    mask_iou as mask_iou,
    mask_to_box as mask_to_box,
)
from segiou.geometry.boxes import (
    box_giou as box_giou,
    box_intersection as box_intersection,
    box_iof as box_iof,
    box_iou as box_iou,
    box_signed_iou as box_signed_iou,
    box_union as box_union,
    iter_box_iou as iter_box_iou,
)
from segiou.geometry.label_sets import (
    LabelSetCounts as LabelSetCounts,
    count_indicators as count_indicators,
    count_label_sets as count_label_sets,
)
from segiou.geometry.matching import (
    Matching as Matching,
    greedy_match as greedy_match,
    match_boxes as match_boxes,
)
from segiou.geometry.polygons import (
    polygon_giou as polygon_giou,
    polygon_intersection as polygon_intersection,
    polygon_iou as polygon_iou,
    polygon_to_mask as polygon_to_mask,
    polygon_union as polygon_union,
)
from segiou.geometry.positions import (
    interval_iou as interval_iou,
    interval_set_iou as interval_set_iou,
    merge_intervals as merge_intervals,
)
