from segiou.measures.cost.measure import CostOptions as CostOptions
