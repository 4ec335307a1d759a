"""A run as a table with one row an image."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou import metrics
from segiou.classes import ClassOptions
from segiou.runs.columns import Columns

__all__ = ["block_rows", "column_names", "shown", "to_csv", "to_pandas", "to_parquet", "worst_rows"]

Rows = list[dict[str, Any]]
#: Images whose rows are made at once.
_BLOCK = 1 << 13


def column_names(options: ClassOptions) -> list[str]:
    """Names of the columns."""
    scores = ["pixels", "ignored", "mean_iou", "pixel_accuracy"]
    return ["id", "truth", "pred", *scores, *(f"iou:{n}" for n in options.labels.class_names)]


def shown(name: str) -> str:
    """A file name as text that any encoding of Unicode can hold."""
    return name.encode("utf-8", "backslashreplace").decode()


def block_columns(block: Columns, options: ClassOptions) -> dict[str, list[Any]]:
    """Columns of a table of some images."""
    counts = block.counts(options.num_classes)
    iou = metrics.iou(counts)
    pixels = counts.total[:, 0] + block.ignored
    data: dict[str, list[Any]] = {
        "id": [shown(id) for id in block.ids],
        "truth": [shown(files.truth) for files in block.files],
        "pred": [shown(files.pred) for files in block.files],
        "pixels": pixels.tolist(),
        "ignored": block.ignored.tolist(),
        "mean_iou": _listed(metrics.mean(iou, options.include)),
        "pixel_accuracy": _listed(metrics.pixel_accuracy(counts)),
    }
    for c, name in enumerate(options.labels.class_names):
        data[f"iou:{name}"] = iou[:, c].tolist()
    return data


def _listed(values: NDArray[np.float64]) -> list[float]:
    return [float(value) for value in np.atleast_1d(values)]


def block_rows(blocks: Iterable[Columns], options: ClassOptions) -> Iterator[dict[str, Any]]:
    """One row an image: id, files, pixels, its scores and the IoU of each class in it."""
    for block in _small(blocks):
        data = block_columns(block, options)
        names = list(data)
        for values in zip(*data.values(), strict=True):
            yield dict(zip(names, values, strict=True))


def _small(blocks: Iterable[Columns]) -> Iterator[Columns]:
    for block in blocks:
        for start in range(0, len(block), _BLOCK):
            stop = min(start + _BLOCK, len(block))
            whole = start == 0 and stop == len(block)
            yield block if whole else block.take(range(start, stop))


def worst_rows(
    blocks: Iterable[Columns], options: ClassOptions, n: int, by: str
) -> list[dict[str, Any]]:
    """The rows of the n lowest scores, the lowest first.

    Raises
    ------
    ValueError
        If there is no such score.
    """
    scores = ["mean_iou", "pixel_accuracy", *(f"iou:{c}" for c in options.labels.class_names)]
    if by not in scores:
        msg = f"no score {by!r}; there are {', '.join(scores)}"
        raise ValueError(msg)
    worst: Rows = []
    for block in _small(blocks):
        rows = [row for row in block_rows([block], options) if row[by] == row[by]]
        worst = sorted([*worst, *rows], key=lambda row: row[by])[: max(0, n)]
    return worst


def to_csv(blocks: Iterable[Columns], options: ClassOptions) -> str:
    """The rows as CSV; an undefined ratio is an empty cell."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(column_names(options))
    for row in block_rows(blocks, options):
        writer.writerow(["" if value != value else value for value in row.values()])
    return out.getvalue()


def to_pandas(blocks: Iterable[Columns], options: ClassOptions) -> Any:
    """The rows as a :class:`pandas.DataFrame`, indexed by id."""
    try:
        import pandas as pd
    except ImportError as error:
        msg = "to_pandas needs pandas: pip install 'segiou[pandas]'"
        raise ImportError(msg) from error
    frames = [pd.DataFrame(block_columns(block, options)) for block in _small(blocks)]
    if not frames:
        frames = [pd.DataFrame(columns=column_names(options))]
    return pd.concat(frames, ignore_index=True).set_index("id")


def to_parquet(path: Path, blocks: Iterable[Columns], options: ClassOptions) -> Path:
    """The rows as a Parquet file, written whole or not at all."""
    try:
        pa: Any = import_module("pyarrow")
        parquet: Any = import_module("pyarrow.parquet")
    except ImportError as error:
        msg = "to_parquet needs pyarrow: pip install 'segiou[parquet]'"
        raise ImportError(msg) from error
    integers = {"pixels", "ignored"}
    texts = {"id", "truth", "pred"}
    schema = pa.schema(
        (name, pa.string() if name in texts else pa.int64() if name in integers else pa.float64())
        for name in column_names(options)
    )
    draft = path.with_name(f".segiou-{id(schema)}.tmp")
    try:
        with parquet.ParquetWriter(draft, schema) as writer:
            for block in _small(blocks):
                writer.write_table(pa.table(block_columns(block, options), schema=schema))
        return draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
