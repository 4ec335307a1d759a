"""Exact, fast and explained scores for semantic segmentation.

Three lines are enough::

    import segiou
    run = segiou.score_folder("truth/", "predictions/", labels="camvid")
    print(run.report())

Names are loaded when they are first used, so that importing costs little.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from segiou._support import __version__ as __version__

if TYPE_CHECKING:
    from segiou import (
        accumulators as accumulators,
        analysis as analysis,
        boundary as boundary,
        counting as counting,
        geometry as geometry,
        hooks as hooks,
        instances as instances,
        labels as labels,
        masks as masks,
        metrics as metrics,
        plots as plots,
        report as report,
        runs as runs,
        scoring as scoring,
    )
    from segiou.accumulators.channel_counts import ChannelCounts as ChannelCounts
    from segiou.accumulators.confusion import ConfusionMatrix as ConfusionMatrix
    from segiou.analysis.bootstrapping import bootstrap as bootstrap
    from segiou.analysis.comparing import compare as compare
    from segiou.analysis.imbalance import explain as explain
    from segiou.counting.counts import Counts as Counts
    from segiou.counting.encoding import BACKEND as BACKEND
    from segiou.labels.label_files import load_labels as load_labels
    from segiou.labels.label_set import LabelSet as LabelSet
    from segiou.masks.read import MaskError as MaskError, read_mask as read_mask
    from segiou.metrics.protocols import Protocol as Protocol
    from segiou.report.report import Report as Report
    from segiou.runs.run import Run as Run
    from segiou.scoring.folder import score_folder as score_folder
    from segiou.scoring.pairings import DataError as DataError
    from segiou.scoring.score_arrays import score as score
else:
    from segiou._support.lazy import lazy_names

    __getattr__, __dir__, __all__ = lazy_names(
        __name__,
        {
            "accumulators.channel_counts": ("ChannelCounts",),
            "accumulators.confusion": ("ConfusionMatrix",),
            "analysis.bootstrapping": ("bootstrap",),
            "analysis.comparing": ("compare",),
            "analysis.imbalance": ("explain",),
            "counting.counts": ("Counts",),
            "counting.encoding": ("BACKEND",),
            "labels.label_files": ("load_labels",),
            "labels.label_set": ("LabelSet",),
            "masks.read": (
                "MaskError",
                "read_mask",
            ),
            "metrics.protocols": ("Protocol",),
            "report.report": ("Report",),
            "runs.run": ("Run",),
            "scoring.folder": ("score_folder",),
            "scoring.pairings": ("DataError",),
            "scoring.score_arrays": ("score",),
        },
        packages=(
            "accumulators",
            "analysis",
            "boundary",
            "counting",
            "geometry",
            "hooks",
            "instances",
            "labels",
            "masks",
            "metrics",
            "plots",
            "report",
            "runs",
            "scoring",
        ),
    )
