from segiou.measures.suspects.plan import SuspectOptions as SuspectOptions
