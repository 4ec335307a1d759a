"""What a class is: its name, the file values and colours that mean it, its group."""

from segiou.labels.label_set import LabelClass, LabelSet
from segiou.labels.loading import labelset_names, load_labels

__all__ = ["LabelClass", "LabelSet", "labelset_names", "load_labels"]
