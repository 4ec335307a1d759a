from segiou.measures.area.measure import AreaOptions as AreaOptions
