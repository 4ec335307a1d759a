"""The one door to counting: the compiled kernel where it was built, else NumPy.

``count_coded(truth, pred, truth_low, truth_codes, pred_low, pred_codes, table)`` adds, for every
pixel, one to ``table[row, column]``. A value ``v`` of `truth` means row ``truth_codes[v -
truth_low]`` where ``0 <= v - truth_low < len(truth_codes)``, and the last row otherwise; `pred`
likewise gives the column.

Parameters
----------
truth, pred : ndarray of equal shape, of any integer dtype or bool
    Labels. Any strides and byte order; never changed, never copied as a whole.
truth_low, pred_low : int
    The values that the first codes stand for.
truth_codes, pred_codes : ndarray of shape (K,), dtype uint16, C-contiguous
    Row (column) of each value; all smaller than the number of rows (columns).
table : ndarray of shape (R, S), dtype int64, C-contiguous and writable
    The counts are added to it. R and S are at most 65536.

Returns
-------
bool
    Whether the last row or the last column of the table holds anything now.

`BACKEND` says which implementation is live: "c-avx512", "c-avx2", "c" or "numpy". All of them
give the same table to the last bit. The kernel releases the GIL. With the environment variable
``SEGIOU_REQUIRE_KERNEL=1`` a missing kernel is an ImportError, not a slower fallback.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from segiou._compiled import allow_missing

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["BACKEND", "count_coded"]


def _choose() -> tuple[str, Callable[..., bool]]:
    try:
        from segiou.counting import _kernel
    except ImportError as error:
        allow_missing("counting", error)
        from segiou.counting import _reference

        return "numpy", _reference.count_coded
    return _kernel.BACKENDS[0], _kernel.count_coded


BACKEND, count_coded = _choose()
