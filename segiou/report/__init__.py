"""Numbers → something to read. Only in this room is anything rounded."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from segiou.report.comparison_page import (
        render_comparison as render_comparison,
        write_comparison_html as write_comparison_html,
    )
    from segiou.report.explorer import explorer_page as explorer_page
    from segiou.report.report import (
        ChannelReport as ChannelReport,
        ClassRow as ClassRow,
        Report as Report,
        WorstImages as WorstImages,
    )
    from segiou.report.report_page import render_report as render_report, write_html as write_html
else:
    from segiou._support.lazy import lazy_names

    __getattr__, __dir__, __all__ = lazy_names(
        __name__,
        {
            "comparison_page": (
                "render_comparison",
                "write_comparison_html",
            ),
            "explorer": ("explorer_page",),
            "report": (
                "ChannelReport",
                "ClassRow",
                "Report",
                "WorstImages",
            ),
            "report_page": (
                "render_report",
                "write_html",
            ),
        },
    )
