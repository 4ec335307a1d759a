"""Classes listed by names, by values or by both, in a sequence or in text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import Any

from segiou._support.arguments import check_integer, refuse_kind
from segiou._support.files import is_file
from segiou.labels.label_set import LabelClass, LabelSet

#: Values in text: ``7``, ``1-3`` or ``none``; and those of a class: ``road=7``.
_SPAN = re.compile(r"(-?[0-9]{1,20})(?:-([0-9]{1,20}))?|none")
_ASSIGNED = re.compile(r".*\S.*=\s*-?[0-9]{1,20}")
#: Most values in a range; as many as classes.
_MOST = 1 << 16


def listed_values(labels: Any) -> list[int | None] | None:
    """The values of a number of classes, or of a list such as ``1-3,7,none``; None for others."""
    if _is_integer(labels) or (isinstance(labels, str) and re.fullmatch("[0-9]+", labels)):
        return [*range(check_integer("num_classes", int(labels), 1, _MOST))]
    if isinstance(labels, str):
        parts = [part.strip() for part in labels.split(",")]
        if is_file(labels) or not all(map(_SPAN.fullmatch, parts)) or {*parts} == {"none"}:
            return None
        return [value for part in parts for value in _span(part)]
    if not isinstance(labels, Sequence) or not any(map(_is_integer, labels)):
        return None
    wrong = next((label for label in labels if label is not None and not _is_integer(label)), None)
    if wrong is not None:
        raise refuse_kind("labels", wrong, "an integer like the others, or all must be names")
    return [None if label is None else int(label) for label in labels]


def _is_integer(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _span(text: str) -> Iterable[int | None]:
    """The values of ``7``, ``1-3`` or ``none``."""
    match = _SPAN.fullmatch(text)
    if match is None or match[1] is None:
        return [None]
    first, last = int(match[1]), int(match[2] or match[1])
    if not first <= last < first + _MOST:
        msg = f"{text!r}: expected an increasing range of at most {_MOST} values"
        raise ValueError(msg)
    return range(first, last + 1)


def value_labels(labels: Any) -> LabelSet | None:
    """The label set of listed values, which also name the classes; None for others."""
    if (values := listed_values(labels)) is None:
        return None
    if None in values:
        msg = "only pred_labels may have 'none' among its values, for classes never predicted"
        raise ValueError(msg)
    return LabelSet("custom", tuple(LabelClass(str(v), (v,)) for v in values if v is not None))


def names_in(text: str) -> LabelSet | None:
    """The label set of ``road,car`` or ``road=7,car=26``; None for other text."""
    parts = [part.strip() for part in text.split(",")]
    if all(map(_ASSIGNED.fullmatch, parts)):
        several: dict[str, list[int]] = {}
        for name, _, value in (part.rpartition("=") for part in parts):
            several.setdefault(name.strip(), []).append(int(value))
        return LabelSet("custom", tuple(LabelClass(n, tuple(v)) for n, v in several.items()))
    return LabelSet.from_names(parts) if len(parts) > 1 and "" not in parts else None
