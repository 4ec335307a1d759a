from segiou.labels.class_options import ClassOptions as ClassOptions
from segiou.labels.label_set import LabelClass as LabelClass, LabelSet as LabelSet
from segiou.labels.loading import labelset_names as labelset_names, load_labels as load_labels
