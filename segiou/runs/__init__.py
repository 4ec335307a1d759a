"""What is kept of every image of an evaluation, in memory and on disk."""

from segiou.runs.columns import Columns
from segiou.runs.database import RunFileError
from segiou.runs.header import Header
from segiou.runs.image import ImageCount, ImageFiles, Stamp
from segiou.runs.problems import Problem
from segiou.runs.reading import RunFile
from segiou.runs.saving import write_new
from segiou.runs.writing import RunWriter

__all__ = [
    "Columns",
    "Header",
    "ImageCount",
    "ImageFiles",
    "Problem",
    "RunFile",
    "RunFileError",
    "RunWriter",
    "Stamp",
    "write_new",
]
