from segiou.plots.class_plots import (
    accuracy_against_iou as accuracy_against_iou,
    boundary_against_iou as boundary_against_iou,
    class_bars as class_bars,
    class_boxes as class_boxes,
    confusion_matrix as confusion_matrix,
    distance_boxes as distance_boxes,
    image_distribution as image_distribution,
    prevalence_curve as prevalence_curve,
)
from segiou.plots.kinds import plot as plot, save_plots as save_plots
from segiou.plots.mask_overlay import overlay as overlay
from segiou.plots.model_plots import (
    comparison_forest as comparison_forest,
    model_bars as model_bars,
)
