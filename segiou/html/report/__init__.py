"""The report and the comparison as self-contained HTML pages."""

from segiou.html.report.comparing import render_comparison, write_comparison_html
from segiou.html.report.render import render_report, write_html

__all__ = ["render_comparison", "render_report", "write_comparison_html", "write_html"]
