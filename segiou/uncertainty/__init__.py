"""How sure a score is: bootstrap intervals over images or groups of images.

The unit of chance is the image, or a group of images that belong together
(frames of one drive, slices of one patient), never the pixel. Everything is
made from the counts per image; no image is read again.
"""

from segiou.uncertainty.bootstrapping import bootstrap
from segiou.uncertainty.intervals import FEW_UNITS, Interval, Intervals
from segiou.uncertainty.jackknife import Influence, influence
from segiou.uncertainty.scores import OVERALL_METRICS, Statistic, statistic
from segiou.uncertainty.units import Groups, Units, group_by_pattern, groups_of, units_of

__all__ = [
    "FEW_UNITS",
    "OVERALL_METRICS",
    "Groups",
    "Influence",
    "Interval",
    "Intervals",
    "Statistic",
    "Units",
    "bootstrap",
    "group_by_pattern",
    "groups_of",
    "influence",
    "statistic",
    "units_of",
]
