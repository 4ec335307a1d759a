from segiou.measures.objects.options import ObjectOptions as ObjectOptions
from segiou.measures.objects.panoptic import (
    PROTOCOLS as PROTOCOLS,
    PanopticCounts as PanopticCounts,
    PanopticProtocol as PanopticProtocol,
)
from segiou.measures.objects.weighted import (
    CITYSCAPES_INSTANCE_SIZES as CITYSCAPES_INSTANCE_SIZES,
    InstanceCounts as InstanceCounts,
    cityscapes_iiou as cityscapes_iiou,
    cityscapes_instances as cityscapes_instances,
)
