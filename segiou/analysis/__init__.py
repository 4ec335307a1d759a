"""What the numbers mean: imbalance, uncertainty, comparison of models."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from segiou.analysis.baselines import (
        Baseline as Baseline,
        majority_class as majority_class,
        majority_counts as majority_counts,
        random_iou as random_iou,
        skill as skill,
    )
    from segiou.analysis.bootstrapping import (
        FEW_UNITS as FEW_UNITS,
        Interval as Interval,
        Intervals as Intervals,
        bootstrap as bootstrap,
    )
    from segiou.analysis.comparing import (
        DifferentImagesError as DifferentImagesError,
        PairedRun as PairedRun,
        compare as compare,
    )
    from segiou.analysis.comparison import (
        Comparison as Comparison,
        Difference as Difference,
        Mover as Mover,
        PairComparison as PairComparison,
        Ranked as Ranked,
    )
    from segiou.analysis.imbalance import (
        ClassBalance as ClassBalance,
        Imbalance as Imbalance,
        explain as explain,
    )
    from segiou.analysis.imbalance_difference import (
        ImbalanceDifference as ImbalanceDifference,
        explain_difference as explain_difference,
    )
    from segiou.analysis.influence_of_units import Influence as Influence, influence as influence
    from segiou.analysis.prevalence import (
        Prevalence as Prevalence,
        PrevalenceCurve as PrevalenceCurve,
        at_prevalence as at_prevalence,
        prevalence_curve as prevalence_curve,
    )
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
    from segiou.analysis.units import (
        Groups as Groups,
        Units as Units,
        group_by_pattern as group_by_pattern,
        groups_of as groups_of,
        units_of as units_of,
    )
else:
    from segiou._support.lazy import lazy_names

    __getattr__, __dir__, __all__ = lazy_names(
        __name__,
        {
            "baselines": (
                "Baseline",
                "majority_class",
                "majority_counts",
                "random_iou",
                "skill",
            ),
            "bootstrapping": (
                "FEW_UNITS",
                "Interval",
                "Intervals",
                "bootstrap",
            ),
            "comparing": (
                "DifferentImagesError",
                "PairedRun",
                "compare",
            ),
            "comparison": (
                "Comparison",
                "Difference",
                "Mover",
                "PairComparison",
                "Ranked",
            ),
            "imbalance": (
                "ClassBalance",
                "Imbalance",
                "explain",
            ),
            "imbalance_difference": (
                "ImbalanceDifference",
                "explain_difference",
            ),
            "influence_of_units": (
                "Influence",
                "influence",
            ),
            "prevalence": (
                "Prevalence",
                "PrevalenceCurve",
                "at_prevalence",
                "prevalence_curve",
            ),
            "significance": (
                "Power",
                "holm",
                "permutation_p",
                "power",
            ),
            "statistics": (
                "OVERALL_METRICS",
                "Statistic",
                "statistic",
            ),
            "units": (
                "Groups",
                "Units",
                "group_by_pattern",
                "groups_of",
                "units_of",
            ),
        },
    )
