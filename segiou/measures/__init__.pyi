from segiou.measures.mask_pair import (
    MaskPair as MaskPair,
    Masks as Masks,
    ScoredPrediction as ScoredPrediction,
)
from segiou.measures.measure import Measure as Measure
from segiou.measures.object_mask import ObjectMask as ObjectMask
from segiou.measures.parts import Field as Field, Layout as Layout, Parts as Parts
from segiou.measures.plan import Alternative as Alternative, Counted as Counted, Plan as Plan
from segiou.measures.registry import measure_keys as measure_keys, measure_of as measure_of
from segiou.measures.score import Quantity as Quantity, Score as Score
from segiou.measures.score_table import (
    CaseScores as CaseScores,
    Chart as Chart,
    RowCurves as RowCurves,
    ScoreTable as ScoreTable,
)
from segiou.measures.score_values import ScoreValues as ScoreValues
from segiou.measures.structures import (
    StructureOptions as StructureOptions,
    StructurePlan as StructurePlan,
)
