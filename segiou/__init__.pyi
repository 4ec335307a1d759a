from segiou import (
    accumulators as accumulators,
    analysis as analysis,
    counting as counting,
    explorer as explorer,
    geometry as geometry,
    hooks as hooks,
    inference as inference,
    labels as labels,
    masks as masks,
    measures as measures,
    metrics as metrics,
    plots as plots,
    raters as raters,
    regions as regions,
    report as report,
    runs as runs,
    scoring as scoring,
    suspects as suspects,
)
from segiou._support import __version__ as __version__
from segiou.accumulators.channel_counts import ChannelCounts as ChannelCounts
from segiou.accumulators.confusion import ConfusionMatrix as ConfusionMatrix
from segiou.accumulators.histograms.score_counts import ScoreHistogram as ScoreHistogram
from segiou.analysis.comparison.compare_runs import compare as compare
from segiou.analysis.comparison.rank_runs import rank as rank
from segiou.analysis.gap.imbalance import explain as explain
from segiou.analysis.slices.search import slices as slices
from segiou.counting.counts import Counts as Counts
from segiou.explorer.page import explore as explore
from segiou.inference.intervals import (
    bootstrap as bootstrap,
    confidence_intervals as confidence_intervals,
)
from segiou.labels.label_set import LabelSet as LabelSet
from segiou.labels.loading import load_labels as load_labels
from segiou.masks.raw_mask import MaskError as MaskError
from segiou.masks.read import read_mask as read_mask
from segiou.metrics.protocols import Protocol as Protocol
from segiou.raters.folders import compare_raters as compare_raters
from segiou.raters.result import RaterAgreement as RaterAgreement
from segiou.report.report import Report as Report
from segiou.runs.run import Run as Run
from segiou.scoring.folder import score_folder as score_folder
from segiou.scoring.problems import DataError as DataError
from segiou.scoring.score_arrays import score as score
from segiou.suspects.ranking import find_suspects as find_suspects
