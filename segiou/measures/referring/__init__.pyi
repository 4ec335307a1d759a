from segiou.measures.referring.measure import ReferringOptions as ReferringOptions
