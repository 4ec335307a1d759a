"""Locks that are free in a forked process, whatever thread held them before."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from threading import RLock
from weakref import WeakSet


class Lockable:
    """Something with a lock."""

    __slots__ = ("__weakref__", "lock")

    def __init__(self) -> None:
        self.lock: AbstractContextManager[bool] = RLock()
        _ALL.add(self)


_ALL: WeakSet[Lockable] = WeakSet()


def _free() -> None:
    """Replace all locks, since the threads that held them do not exist in this process."""
    for lockable in list(_ALL):
        lockable.lock = RLock()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_free)
