from segiou.measures.class_sets.measure import ClassSetOptions as ClassSetOptions
