from segiou.analysis.baselines import (
    Baseline as Baseline,
    majority_class as majority_class,
    majority_counts as majority_counts,
    random_iou as random_iou,
    skill as skill,
)
from segiou.analysis.bootstrapping import bootstrap as bootstrap
from segiou.analysis.comparing import compare as compare
from segiou.analysis.comparison import (
    Comparison as Comparison,
    Difference as Difference,
    InfluentialImage as InfluentialImage,
    PairComparison as PairComparison,
    Ranked as Ranked,
)
from segiou.analysis.dependence import Dependence as Dependence
from segiou.analysis.imbalance import (
    ClassBalance as ClassBalance,
    Imbalance as Imbalance,
    explain as explain,
)
from segiou.analysis.imbalance_difference import (
    ImbalanceDifference as ImbalanceDifference,
    explain_difference as explain_difference,
)
from segiou.analysis.intervals import (
    Interval as Interval,
    Intervals as Intervals,
)
from segiou.analysis.jackknife import Influence as Influence, influence as influence
from segiou.analysis.paired_runs import DifferentImagesError as DifferentImagesError
from segiou.analysis.prevalence import (
    Prevalence as Prevalence,
    PrevalenceCurve as PrevalenceCurve,
    at_prevalence as at_prevalence,
    prevalence_curve as prevalence_curve,
)
from segiou.analysis.scored_images import Scored as Scored, ScoredRun as ScoredRun
from segiou.analysis.significance import (
    Power as Power,
    holm as holm,
    permutation_p as permutation_p,
    power as power,
)
from segiou.analysis.statistics import (
    OVERALL_METRICS as OVERALL_METRICS,
    Statistic as Statistic,
    statistic as statistic,
)
from segiou.analysis.steps import NextStep as NextStep, next_steps as next_steps
from segiou.analysis.units import (
    FEW_UNITS as FEW_UNITS,
    Groups as Groups,
    Units as Units,
    group_by_pattern as group_by_pattern,
    groups_of as groups_of,
    units_of as units_of,
)
