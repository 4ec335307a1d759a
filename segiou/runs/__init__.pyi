from segiou.runs.database import RunFileError as RunFileError
from segiou.runs.header import Header as Header
from segiou.runs.image_counts import (
    Columns as Columns,
    ImageCount as ImageCount,
    ImageFiles as ImageFiles,
)
from segiou.runs.merging import merge_files as merge_files
from segiou.runs.run import Run as Run, run_of as run_of
from segiou.runs.run_reading import RunFile as RunFile
from segiou.runs.run_writing import RunWriter as RunWriter, write_new as write_new
