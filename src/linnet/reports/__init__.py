"""Pages about runs: what a report and a dashboard show, as data, and the page that draws it."""

from linnet.reports.data import described
from linnet.reports.page import html_page
from linnet.reports.report import Report

__all__ = ["Report", "described", "html_page"]
