from segiou.measures.scores.plan import ScoreOptions as ScoreOptions
