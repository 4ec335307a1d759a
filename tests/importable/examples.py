"""How many random examples a property gets that needs more or fewer of them than others."""

from __future__ import annotations

from hypothesis import settings


def examples(number: int, **options: object) -> settings:
    """This number of examples in the gate, and in plain pytest the same part of it as elsewhere."""
    return settings(max_examples=-(-number * settings.default.max_examples // 100), **options)
