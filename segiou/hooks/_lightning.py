"""Lightning's Callback, of whichever of its two packages is in use."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

from segiou.hooks._scoring import missing

__all__ = ["Callback"]


def _callback() -> Any:
    # The classes of the two are not each other's; what is imported already is what is used.
    packages = ["lightning.pytorch", "pytorch_lightning"]
    packages.sort(key=lambda name: name not in sys.modules)
    try:
        return import_module(packages[0]).Callback
    except ImportError:
        try:
            return import_module(packages[1]).Callback
        except ImportError as error:
            raise missing("lightning", "lightning") from error


Callback: Any = _callback()
