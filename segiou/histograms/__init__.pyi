from segiou.histograms.calibration_errors import Calibration as Calibration
from segiou.histograms.score_bins import ScoreRangeError as ScoreRangeError
from segiou.histograms.score_counts import ScoreHistogram as ScoreHistogram
from segiou.histograms.score_plan import ScoreOptions as ScoreOptions
from segiou.histograms.threshold_curves import (
    BestThreshold as BestThreshold,
    Curve as Curve,
    ThresholdTable as ThresholdTable,
)
