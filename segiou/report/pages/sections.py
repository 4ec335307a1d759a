"""Sections that features add to the page of a report, below the table of their measure.

An entry point of the group ``segiou.sections`` has the key of the measure as its name, and is a
function of the run and of ``images`` and ``read``, as of :func:`segiou.report.render_report`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from segiou._support.optional import find_plugin
from segiou.report.pages.picture_masks import Reader
from segiou.runs.run import Run


class Section(NamedTuple):
    """A template as ``PACKAGE:PATH``, which reads ``part.section.context``, and its styles."""

    template: str
    context: Mapping[str, Any]
    styles: tuple[str, ...] = ()


def sections_of(
    run: Run | None, *, images: str | Path | None, read: Reader | None
) -> dict[str, Section]:
    """The sections of a run by the key of their measure."""
    makers = {plan.key: find_plugin("sections", plan.key) for plan in run.plans} if run else {}
    return {key: make(run, images=images, read=read) for key, make in makers.items() if make}
