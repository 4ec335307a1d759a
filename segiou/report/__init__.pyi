from segiou.document.report_dict import ReportDict as ReportDict
from segiou.report.channel_report import ChannelReport as ChannelReport
from segiou.report.class_table import ClassRow as ClassRow
from segiou.report.image_cautions import ImageCaution as ImageCaution
from segiou.report.pages.comparison_page import (
    render_comparison as render_comparison,
    write_comparison_html as write_comparison_html,
)
from segiou.report.pages.error_pictures import save_errors as save_errors
from segiou.report.pages.photos import ImageMatch as ImageMatch, match_images as match_images
from segiou.report.pages.report_page import render_report as render_report, write_html as write_html
from segiou.report.report import Report as Report
from segiou.report.report_numbers import WorstImages as WorstImages
