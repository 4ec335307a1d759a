"""The same ratio on other sets: boxes, polygons, intervals, label sets, annotators."""

from segiou.geometry.agreement import (
    UNDECIDED,
    annotator_iou,
    consensus,
    consensus_iou,
    disagreement,
    vote_counts,
)
from segiou.geometry.boxes import (
    box_blocks,
    box_giou,
    box_intersection,
    box_iof,
    box_iou,
    box_signed_iou,
    box_union,
)
from segiou.geometry.intervals import interval_iou, interval_set_iou, merge_intervals
from segiou.geometry.label_sets import LabelSetCounts, count_indicators, count_label_sets
from segiou.geometry.masks import box_to_mask, mask_iou, mask_to_box
from segiou.geometry.matching import Matching, greedy_match, match_boxes
from segiou.geometry.polygons import (
    polygon_giou,
    polygon_intersection,
    polygon_iou,
    polygon_to_mask,
    polygon_union,
)

__all__ = [
    "UNDECIDED",
    "LabelSetCounts",
    "Matching",
    "annotator_iou",
    "box_blocks",
    "box_giou",
    "box_intersection",
    "box_iof",
    "box_iou",
    "box_signed_iou",
    "box_to_mask",
    "box_union",
    "consensus",
    "consensus_iou",
    "count_indicators",
    "count_label_sets",
    "disagreement",
    "greedy_match",
    "interval_iou",
    "interval_set_iou",
    "mask_iou",
    "mask_to_box",
    "match_boxes",
    "merge_intervals",
    "polygon_giou",
    "polygon_intersection",
    "polygon_iou",
    "polygon_to_mask",
    "polygon_union",
    "vote_counts",
]
