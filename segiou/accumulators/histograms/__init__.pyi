from segiou.accumulators.histograms.calibration_errors import Calibration as Calibration
from segiou.accumulators.histograms.score_bins import ScoreRangeError as ScoreRangeError
from segiou.accumulators.histograms.score_counts import ScoreHistogram as ScoreHistogram
from segiou.accumulators.histograms.threshold_curves import (
    BestThreshold as BestThreshold,
    Curve as Curve,
    ThresholdTable as ThresholdTable,
)
