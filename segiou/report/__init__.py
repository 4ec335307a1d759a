"""Numbers → something to read. Only in this room is anything rounded."""

from segiou.report.channel_report import ChannelReport
from segiou.report.report import Report
from segiou.report.rows import ClassRow, WorstImages

__all__ = ["ChannelReport", "ClassRow", "Report", "WorstImages"]
