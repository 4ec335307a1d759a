"""The report and the comparison as self-contained HTML pages."""

from segiou.html.report.render import render_report, write_html

__all__ = ["render_report", "write_html"]
