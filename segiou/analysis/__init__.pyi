from segiou.analysis.comparison.case_ranks import CaseRanks as CaseRanks, rank_cases as rank_cases
from segiou.analysis.comparison.compare_runs import compare as compare
from segiou.analysis.comparison.influential import Influence as Influence, influence as influence
from segiou.analysis.comparison.model_table import (
    ModelScore as ModelScore,
    ModelTable as ModelTable,
    SideBySide as SideBySide,
    compare_scores as compare_scores,
    model_table as model_table,
)
from segiou.analysis.comparison.rank_runs import rank as rank
from segiou.analysis.comparison.ranking import ModelRank as ModelRank, Ranking as Ranking
from segiou.analysis.comparison.result import (
    Comparison as Comparison,
    Difference as Difference,
    InfluentialImage as InfluentialImage,
    PairComparison as PairComparison,
)
from segiou.analysis.gap.baselines import (
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
from segiou.analysis.gap.gains import ThresholdGain as ThresholdGain
from segiou.analysis.gap.imbalance import (
    ClassBalance as ClassBalance,
    Imbalance as Imbalance,
    explain as explain,
)
from segiou.analysis.gap.imbalance_difference import (
    ImbalanceDifference as ImbalanceDifference,
    explain_difference as explain_difference,
)
from segiou.analysis.gap.steps import NextStep as NextStep, next_steps as next_steps
