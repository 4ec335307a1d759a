"""Compiled modules are optional, unless the environment asks for them."""

from __future__ import annotations

import os

__all__ = ["allow_missing"]


def allow_missing(what: str, error: ImportError) -> None:
    """Let a compiled module be missing, unless ``SEGIOU_REQUIRE_KERNEL=1``.

    Parameters
    ----------
    what : str
        What the module does, for the message.
    error : ImportError
        Why it could not be imported.

    Raises
    ------
    ImportError
        If the environment asks for compiled modules.
    """
    if os.environ.get("SEGIOU_REQUIRE_KERNEL") == "1":
        msg = (
            f"{what} is missing its compiled module, and SEGIOU_REQUIRE_KERNEL=1 asks for it: "
            f"install segiou where a C compiler is found, or unset the variable ({error})"
        )
        raise ImportError(msg) from error
