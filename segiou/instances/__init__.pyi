from segiou.instances.lesion_plan import LesionOptions as LesionOptions
from segiou.instances.lesions import (
    LESION_PROTOCOLS as LESION_PROTOCOLS,
    LesionProtocol as LesionProtocol,
    ObjectScores as ObjectScores,
    lesion_scores as lesion_scores,
    object_scores as object_scores,
)
from segiou.instances.object_files import ObjectOptions as ObjectOptions
from segiou.instances.panoptic import (
    PROTOCOLS as PROTOCOLS,
    PanopticCounts as PanopticCounts,
    PanopticProtocol as PanopticProtocol,
)
from segiou.instances.partitions import (
    PartitionOptions as PartitionOptions,
    PartitionScores as PartitionScores,
    partition_scores as partition_scores,
)
from segiou.instances.per_component import (
    ComponentOptions as ComponentOptions,
    component_counts as component_counts,
)
from segiou.instances.referring import ReferringOptions as ReferringOptions
from segiou.instances.weighted import (
    CITYSCAPES_INSTANCE_SIZES as CITYSCAPES_INSTANCE_SIZES,
    InstanceCounts as InstanceCounts,
    cityscapes_iiou as cityscapes_iiou,
    cityscapes_instances as cityscapes_instances,
)
