"""The counting routine that is live; the kernel where it was built, NumPy elsewhere."""

from segiou.counting._reference import count_coded

__all__ = ["BACKEND", "count_coded"]

BACKEND = "numpy"
