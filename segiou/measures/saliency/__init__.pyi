from segiou.measures.saliency.formulas import (
    SaliencyScores as SaliencyScores,
    saliency_scores as saliency_scores,
)
from segiou.measures.saliency.measure import SaliencyOptions as SaliencyOptions
