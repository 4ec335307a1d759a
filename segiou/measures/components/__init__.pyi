from segiou.measures.components.measure import (
    ComponentOptions as ComponentOptions,
    component_counts as component_counts,
)
