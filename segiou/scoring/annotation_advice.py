"""Annotation files in a folder of photographs, to pass in place of the folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from segiou._support.files import Problem
from segiou._support.text import plural
from segiou.masks.sources.adjusted import place_of
from segiou.masks.sources.folders import LocalFolder
from segiou.masks.sources.opening import open_source
from segiou.scoring.job import Job

#: Beginning of the problem of a photograph in place of a mask.
_PHOTOGRAPH = "is a photograph"
_ENDINGS = (".json", ".xml", ".csv")
#: Annotation files that are tried.
_TRIED = 8


def annotations_text(job: Job, problems: Sequence[Problem]) -> str:
    """The annotation file of a side whose files are photographs; empty if there is none."""
    photographs = [problem.where for problem in problems if problem.text.startswith(_PHOTOGRAPH)]
    if not photographs or len(photographs) < len(problems):
        return ""
    for source in map(place_of, job.sources):
        if not isinstance(source, LocalFolder) or not photographs[0].startswith(source.root):
            continue
        files = sorted(path for path in Path(source.root).glob("*") if path.suffix in _ENDINGS)
        for path in files[:_TRIED]:
            source = open_source(path)
            try:
                number = 0 if isinstance(source, LocalFolder) else len(source.find())
            except ValueError:  # another kind of file
                continue
            if number:
                images = plural(number, "image")
                return f"{path} has the segments of {images}; pass it in place of {source.root}"
    return ""
