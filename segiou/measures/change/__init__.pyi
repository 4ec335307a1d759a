from segiou.measures.change.measure import (
    ChangeOptions as ChangeOptions,
    ChangeScores as ChangeScores,
    change_scores as change_scores,
)
