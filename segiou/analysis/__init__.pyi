from segiou.analysis.baselines import (
    Baseline as Baseline,
    Prevalence as Prevalence,
    PrevalenceCurve as PrevalenceCurve,
    at_prevalence as at_prevalence,
    majority_class as majority_class,
    majority_counts as majority_counts,
    prevalence_curve as prevalence_curve,
    random_iou as random_iou,
    skill_score as skill_score,
)
from segiou.analysis.case_ranks import CaseRanks as CaseRanks, rank_cases as rank_cases
from segiou.analysis.comparing import compare as compare
from segiou.analysis.comparison import (
    Comparison as Comparison,
    Difference as Difference,
    InfluentialImage as InfluentialImage,
    PairComparison as PairComparison,
)
from segiou.analysis.dependence import Dependence as Dependence
from segiou.analysis.imbalance import (
    ClassBalance as ClassBalance,
    Imbalance as Imbalance,
    ImbalanceDifference as ImbalanceDifference,
    explain as explain,
    explain_difference as explain_difference,
)
from segiou.analysis.influential import Influence as Influence, influence as influence
from segiou.analysis.intervals import (
    Interval as Interval,
    Intervals as Intervals,
    bootstrap as bootstrap,
    confidence_intervals as confidence_intervals,
)
from segiou.analysis.leave_one_out import Limits as Limits, jackknife as jackknife
from segiou.analysis.map_estimates import (
    Estimate as Estimate,
    MapAccuracy as MapAccuracy,
    SampleSize as SampleSize,
    map_accuracy as map_accuracy,
    sample_size as sample_size,
)
from segiou.analysis.order_statistics import (
    median_limits as median_limits,
    worst_mean_limits as worst_mean_limits,
)
from segiou.analysis.paired_runs import DifferentImagesError as DifferentImagesError
from segiou.analysis.rank_runs import rank as rank
from segiou.analysis.ranking import ModelRank as ModelRank, Ranking as Ranking
from segiou.analysis.side_by_side import (
    SideBySide as SideBySide,
    compare_scores as compare_scores,
)
from segiou.analysis.significance import (
    Power as Power,
    holm_adjust as holm_adjust,
    permutation_test as permutation_test,
    power as power,
)
from segiou.analysis.statistics import (
    OVERALL_METRICS as OVERALL_METRICS,
    Statistic as Statistic,
    statistic as statistic,
)
from segiou.analysis.steps import NextStep as NextStep, next_steps as next_steps
from segiou.analysis.threshold_gains import ThresholdGain as ThresholdGain
from segiou.analysis.units import (
    FEW_UNITS as FEW_UNITS,
    Groups as Groups,
    HasCounts as HasCounts,
    HasRunCounts as HasRunCounts,
    Units as Units,
    group_by_pattern as group_by_pattern,
    groups_of as groups_of,
    units_of as units_of,
)
