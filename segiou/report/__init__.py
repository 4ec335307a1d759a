"""Numbers → something to read. Only in this room is anything rounded."""

from segiou.report.channel_report import ChannelReport
from segiou.report.report import ClassRow, Report

__all__ = ["ChannelReport", "ClassRow", "Report"]
