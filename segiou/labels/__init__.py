"""What a class is: its name, the file values and colours that mean it, its group."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from segiou.labels.class_options import ClassOptions as ClassOptions
    from segiou.labels.label_files import (
        labelset_names as labelset_names,
        load_labels as load_labels,
    )
    from segiou.labels.label_set import LabelClass as LabelClass, LabelSet as LabelSet
else:
    from segiou._support.lazy import lazy_names

    __getattr__, __dir__, __all__ = lazy_names(
        __name__,
        {
            "class_options": ("ClassOptions",),
            "label_files": (
                "labelset_names",
                "load_labels",
            ),
            "label_set": (
                "LabelClass",
                "LabelSet",
            ),
        },
    )
