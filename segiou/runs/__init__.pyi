from segiou.runs.database import RunFile as RunFile, RunFileError as RunFileError
from segiou.runs.header import Header as Header
from segiou.runs.image_counts import (
    Columns as Columns,
    ImageCount as ImageCount,
    ImageFiles as ImageFiles,
)
from segiou.runs.run import (
    Run as Run,
    merge_files as merge_files,
    run_from_counts as run_from_counts,
)
from segiou.runs.run_writing import RunWriter as RunWriter, write_run as write_run
