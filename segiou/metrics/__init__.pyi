from segiou.metrics.overall import (
    average as average,
    cohen_kappa as cohen_kappa,
    frequency_weighted_iou as frequency_weighted_iou,
    matthews_correlation as matthews_correlation,
    mean as mean,
    mean_accuracy as mean_accuracy,
    mean_dice as mean_dice,
    mean_iou as mean_iou,
    pixel_accuracy as pixel_accuracy,
    soft_dice as soft_dice,
    soft_iou as soft_iou,
)
from segiou.metrics.per_class import (
    balanced_accuracy as balanced_accuracy,
    dice as dice,
    f_beta as f_beta,
    iou as iou,
    precision as precision,
    prevalence as prevalence,
    recall as recall,
    specificity as specificity,
    tversky as tversky,
    volumetric_similarity as volumetric_similarity,
)
from segiou.metrics.per_image import (
    QUANTILES as QUANTILES,
    ImageLevelMeans as ImageLevelMeans,
    class_means as class_means,
    false_positive_classes as false_positive_classes,
    false_positive_images as false_positive_images,
    image_influence as image_influence,
    image_level_means as image_level_means,
    image_means as image_means,
    image_values as image_values,
    worst_mean as worst_mean,
)
from segiou.metrics.pixel_scores import METRICS as METRICS
from segiou.metrics.protocols import Protocol as Protocol, load_protocol as load_protocol
from segiou.metrics.ratio import Floats as Floats
