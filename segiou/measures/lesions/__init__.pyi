from segiou.measures.lesions.plan import LesionOptions as LesionOptions
from segiou.measures.lesions.protocols import (
    LESION_PROTOCOLS as LESION_PROTOCOLS,
    LesionProtocol as LesionProtocol,
)
from segiou.measures.lesions.scores import (
    ObjectScores as ObjectScores,
    lesion_scores as lesion_scores,
    object_scores as object_scores,
)
