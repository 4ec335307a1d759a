"""What the tests of counting share."""

from __future__ import annotations

from functools import partial

import pytest

from segiou.counting import encoding, reference

try:
    from segiou.counting import _kernel
except ImportError:
    BACKENDS = ()
else:
    BACKENDS = _kernel.BACKENDS


@pytest.fixture(params=["numpy", *BACKENDS])
def count(request):
    """Every implementation of counting that runs here."""
    if request.param == "numpy":
        return reference.count_coded
    return partial(count_with, request.param)


def count_with(backend, *arguments):
    return encoding.count_coded(*arguments, backend)
