from segiou.measures.measure import (
    Column as Column,
    Counted as Counted,
    MaskPair as MaskPair,
    Masks as Masks,
    Measure as Measure,
    Plan as Plan,
    Score as Score,
    ScoreTable as ScoreTable,
)
from segiou.measures.parts import Field as Field, Layout as Layout, Parts as Parts
