from segiou.measures.partitions.measure import (
    PartitionOptions as PartitionOptions,
    PartitionScores as PartitionScores,
    partition_scores as partition_scores,
)
