"""Pages: the report of one evaluation, the comparison of two, the explorer that teaches IoU."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__all__ = ["render_comparison", "render_report", "write_comparison_html", "write_html"]

if TYPE_CHECKING:
    from segiou.html.report import (
        render_comparison,
        render_report,
        write_comparison_html,
        write_html,
    )


def __getattr__(name: str) -> Any:
    # Lazily: the explorer lies in this package too and needs none of it.
    if name in __all__:
        from segiou.html import report

        return getattr(report, name)
    msg = f"module 'segiou.html' has no attribute {name!r}"
    raise AttributeError(msg)
