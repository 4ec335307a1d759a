from segiou.runs.database import RunFile as RunFile, RunFileError as RunFileError
from segiou.runs.header import Header as Header
from segiou.runs.image_counts import (
    Columns as Columns,
    ImageCount as ImageCount,
    ImageFiles as ImageFiles,
    run_from_counts as run_from_counts,
)
from segiou.runs.run import Run as Run
from segiou.runs.run_writing import (
    RunWriter as RunWriter,
    merge_files as merge_files,
    write_run as write_run,
)
