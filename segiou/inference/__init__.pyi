from segiou.inference.dependence import Dependence as Dependence
from segiou.inference.intervals import (
    Interval as Interval,
    Intervals as Intervals,
    bootstrap as bootstrap,
    confidence_intervals as confidence_intervals,
)
from segiou.inference.leave_one_out import jackknife as jackknife
from segiou.inference.limits import Limits as Limits
from segiou.inference.order_statistics import (
    median_limits as median_limits,
    worst_mean_limits as worst_mean_limits,
)
from segiou.inference.paired_runs import DifferentImagesError as DifferentImagesError
from segiou.inference.significance import (
    Power as Power,
    holm_adjust as holm_adjust,
    permutation_test as permutation_test,
    power as power,
)
from segiou.inference.statistics import (
    OVERALL_METRICS as OVERALL_METRICS,
    Statistic as Statistic,
    statistic as statistic,
)
from segiou.inference.units import (
    FEW_UNITS as FEW_UNITS,
    Groups as Groups,
    HasCounts as HasCounts,
    HasRunCounts as HasRunCounts,
    Units as Units,
    group_by_pattern as group_by_pattern,
    groups_of as groups_of,
    units_of as units_of,
)
