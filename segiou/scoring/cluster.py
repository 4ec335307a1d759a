"""A Dask cluster as an engine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from segiou.scoring.engines import Engine

__all__ = ["dask_engine"]

#: How long to wait for the scheduler to answer.
CONNECT_SECONDS = 10.0


@contextmanager
def dask_engine(address: str) -> Iterator[Engine]:
    """Connect to a running Dask scheduler, and let it go at the end.

    Raises
    ------
    ImportError
        If dask.distributed is not installed.
    ValueError
        If nothing answers at the address, or it has no workers.
    """
    try:
        distributed: Any = import_module("distributed")
    except ImportError as error:
        msg = "scoring on a Dask cluster needs distributed: pip install 'segiou[dask]'"
        raise ImportError(msg) from error
    from segiou.scoring.engines import Engine

    try:
        client = distributed.Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, TimeoutError) as error:
        msg = f"no Dask scheduler answers at {address!r}: {error}"
        raise ValueError(msg) from error
    with client:
        slots = sum(client.nthreads().values())
        if not slots:
            msg = f"the Dask scheduler at {address!r} has no workers; start some: dask worker"
            raise ValueError(msg)
        with client.get_executor() as executor:
            yield Engine(executor, slots, 0.2, True)
