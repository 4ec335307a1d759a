"""Analysis of scores: class imbalance, uncertainty and comparison of models."""

from segiou._support import lazy_face

__getattr__, __dir__ = lazy_face(
    __name__,
    {
        "Ranked": "ModelRank",
        "Scored": "HasCounts",
        "ScoredRun": "HasRunCounts",
        "holm": "holm_adjust",
        "permutation_p": "permutation_test",
        "skill": "skill_score",
    },
)
