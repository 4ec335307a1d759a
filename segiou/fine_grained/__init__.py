"""Scores by image: averages over images and classes, and worst cases.

From the counts of each image, (N, C). The data set mean IoU ("D") sums counts
first, so large objects and full images rule it. Here ratios are taken image by
image, over the classes in each image's truth: "I" averages over an image's
classes, then over images; "C" over a class's images, then over classes; and
worst cases average the lowest values only. Both are blind to a class predicted
where the truth has none of it, so those images are counted beside them.

References
----------
Z. Wang et al., Revisiting Evaluation Metrics for Semantic Segmentation:
Optimization and Evaluation of Fine-grained Intersection over Union, NeurIPS
2023, arXiv:2310.19252.
"""

from segiou.fine_grained.averages import QUANTILES, FineGrained, fine_grained
from segiou.fine_grained.images import false_positive_classes, image_influence
from segiou.fine_grained.values import (
    class_means,
    false_positive_images,
    image_means,
    image_values,
    worst_mean,
)

__all__ = [
    "QUANTILES",
    "FineGrained",
    "class_means",
    "false_positive_classes",
    "false_positive_images",
    "fine_grained",
    "image_influence",
    "image_means",
    "image_values",
    "worst_mean",
]
