"""The routines that are live: the compiled kernel where it was built, NumPy and SciPy elsewhere."""

from segiou.boundary._reference import count_bands, nearest

__all__ = ["BACKEND", "count_bands", "nearest"]

BACKEND = "numpy"
