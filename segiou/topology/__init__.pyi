from segiou.topology.shapes import (
    betti_numbers as betti_numbers,
    skeleton_counts as skeleton_counts,
)
from segiou.topology.topology_plan import TopologyOptions as TopologyOptions
