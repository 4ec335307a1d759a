from segiou.measures.topology.plan import TopologyOptions as TopologyOptions
from segiou.measures.topology.shapes import (
    betti_numbers as betti_numbers,
    skeleton_counts as skeleton_counts,
)
