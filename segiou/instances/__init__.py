"""Objects instead of pixels: IoU weighted by the size of instances."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from segiou.instances.weighted import (
        CITYSCAPES_INSTANCE_SIZES as CITYSCAPES_INSTANCE_SIZES,
        InstanceCounts as InstanceCounts,
        cityscapes_instances as cityscapes_instances,
        count_instances as count_instances,
        instance_weighted_iou as instance_weighted_iou,
    )
else:
    from segiou._support.lazy import lazy_names

    __getattr__, __dir__, __all__ = lazy_names(
        __name__,
        {
            "weighted": (
                "CITYSCAPES_INSTANCE_SIZES",
                "InstanceCounts",
                "cityscapes_instances",
                "count_instances",
                "instance_weighted_iou",
            ),
        },
    )
