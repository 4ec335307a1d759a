"""Results → dictionaries of plain Python values, as JSON takes them."""

from __future__ import annotations

import math
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

__all__ = ["plain"]


def plain(value: Any) -> Any:
    """Convert dataclasses, arrays and numbers; what is not finite becomes None.

    Parameters
    ----------
    value : dataclass, mapping, sequence, ndarray or scalar

    Examples
    --------
    >>> plain({"iou": np.array([0.5, np.nan]), "n": np.int64(3)})
    {'iou': [0.5, None], 'n': 3}
    """
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (np.ndarray, np.generic)):
        return plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
