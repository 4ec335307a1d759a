from segiou.measures.mask_pair import (
    MaskPair as MaskPair,
    Masks as Masks,
    ScoredPrediction as ScoredPrediction,
)
from segiou.measures.measure import (
    Alternative as Alternative,
    Counted as Counted,
    ImageColumn as ImageColumn,
    Measure as Measure,
    Plan as Plan,
)
from segiou.measures.parts import Field as Field, Layout as Layout, Parts as Parts
from segiou.measures.registry import measure_keys as measure_keys, measure_of as measure_of
from segiou.measures.score import Score as Score
from segiou.measures.score_table import (
    Chart as Chart,
    Column as Column,
    RowCurves as RowCurves,
    ScoreTable as ScoreTable,
)
from segiou.measures.structures import (
    StructureOptions as StructureOptions,
    StructurePlan as StructurePlan,
)
from segiou.report.measure_check import MeasureCheck as MeasureCheck, check_measure as check_measure
from segiou.scoring.evaluator import Evaluator as Evaluator
