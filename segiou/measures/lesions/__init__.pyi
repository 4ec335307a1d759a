from segiou.measures.lesions.plan import LesionOptions as LesionOptions
from segiou.measures.lesions.scores import (
    LESION_PROTOCOLS as LESION_PROTOCOLS,
    LesionProtocol as LesionProtocol,
    ObjectScores as ObjectScores,
    lesion_scores as lesion_scores,
    object_scores as object_scores,
)
