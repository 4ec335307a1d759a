"""Scores of the groups of a label set: one channel each, which may overlap."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou.counting.encoding import Encoding
from segiou.labels.class_options import ClassOptions
from segiou.labels.label_set import LabelClass, LabelSet


@dataclass(frozen=True)
class GroupChannels:
    """The groups of classes as channels, such as the regions that nnU-Net is trained with."""

    classes: ClassOptions
    #: Whether a group has a class, (R, C).
    members: NDArray[np.bool_]

    @classmethod
    def of(cls, classes: ClassOptions) -> GroupChannels:
        """The channels of all groups; ValueError if a pixel in none of them has no class."""
        members = np.zeros((len(classes.groups), classes.num_classes), bool)
        for row, (_, indices) in zip(members, classes.groups, strict=True):
            row[list(indices)] = True
        if not len(members) or members.any(0).all():
            msg = "channels='groups' needs a label set with groups, and a class outside all of them"
            raise ValueError(msg)
        return cls(classes, members)

    @property
    def options(self) -> ClassOptions:
        """The groups as classes."""
        names = [name for name, _ in self.classes.groups]
        entries = tuple(LabelClass(name, (value,)) for value, name in enumerate(names))
        return ClassOptions.of(LabelSet("groups", entries))

    def of_truth(
        self, truth: NDArray[Any], mask: NDArray[np.bool_] | None
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """The true channels (R, ...) of labels, and the valid pixels."""
        codes = Encoding.of_classes(self.classes).truth.codes_of(truth).astype(np.intp)
        valid = codes < self.classes.num_classes
        channels = self.members[:, np.where(valid, codes, 0)]
        return channels, valid if mask is None else valid & mask

    def labels(self, hits: NDArray[np.bool_]) -> NDArray[np.intp]:
        """Class indices of predicted channels (R, ...).

        The class that is in exactly the predicted groups; if there is none, that of the smallest
        predicted group, as nnU-Net exports regions.
        """
        indices = np.zeros(hits.shape[1:], np.intp)
        sizes = self.members.sum(1)
        for group in np.argsort(-sizes, kind="stable"):
            others = self.members[sizes < sizes[group]].any(0)
            exclusive = self.members[group] & ~others
            indices[hits[group]] = (exclusive if exclusive.any() else self.members[group]).argmax()
        sets, wanted = np.packbits(hits, axis=0), np.packbits(self.members, axis=0)
        for c in reversed(range(self.classes.num_classes)):
            same = [hit == member for hit, member in zip(sets, wanted[:, c], strict=True)]
            indices[np.logical_and.reduce(same)] = c
        return indices
