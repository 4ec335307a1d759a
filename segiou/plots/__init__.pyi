from segiou.plots.class_plots import (
    accuracy_vs_iou as accuracy_vs_iou,
    boundary_vs_iou as boundary_vs_iou,
    class_bars as class_bars,
    prevalence_curve as prevalence_curve,
)
from segiou.plots.confusion_plot import confusion_matrix as confusion_matrix
from segiou.plots.distribution_plots import (
    bland_altman as bland_altman,
    class_boxes as class_boxes,
    distance_boxes as distance_boxes,
    image_distribution as image_distribution,
)
from segiou.plots.kinds import plot as plot, save_plots as save_plots
from segiou.plots.mask_overlay import overlay as overlay
from segiou.plots.mask_panel import panel as panel
from segiou.plots.model_plots import (
    case_boxes as case_boxes,
    comparison_forest as comparison_forest,
    model_bars as model_bars,
    rank_stability as rank_stability,
    slices as slices,
)
from segiou.plots.score_plots import (
    pr_curve as pr_curve,
    reliability as reliability,
    roc_curve as roc_curve,
    thresholds as thresholds,
)
