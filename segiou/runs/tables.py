"""A run as a table with one row an image."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from segiou import metrics
from segiou._support.arguments import check_kind
from segiou._support.files import replacing
from segiou._support.text import csv_text, did_you_mean, encodable
from segiou.counting.counts import Counts
from segiou.labels.class_options import ClassOptions
from segiou.metrics.per_image import false_positive_classes, image_influence, image_means
from segiou.metrics.ratio import Floats
from segiou.runs.cells import unpack_objects
from segiou.runs.header import Header
from segiou.runs.image_counts import Columns

Rows = list[dict[str, Any]]
#: Images whose rows are made at once.
_BLOCK = 1 << 13
_SCORES = ("mean_iou", "pixel_accuracy", "influence")
#: Columns of runs with objects, in the order in which they are kept.
_OBJECTS = ("objects_found", "objects_invented", "objects_missed")


def column_names(header: Header) -> list[str]:
    """Names of the columns."""
    files = ["id", "truth", "pred", "pixels", "ignored"]
    scores = ["mean_iou", "pixel_accuracy", "influence", "false_positive_classes"]
    scores += [] if header.objects is None else [*_OBJECTS]
    classes = header.options.labels.class_names
    further = header.surfaces.column_names(classes) if header.surfaces else ()
    return [*files, *scores, *(f"iou:{name}" for name in classes), *further]


def block_columns(block: Columns, header: Header, whole: Counts) -> dict[str, list[Any]]:
    """Columns of a table of some images."""
    options = header.options
    counts = block.counts(options.num_classes)
    iou = metrics.iou(counts)
    pixels = counts.total[:, 0] + block.ignored
    data: dict[str, list[Any]] = {
        "id": [encodable(id) for id in block.ids],
        "truth": [encodable(files.truth) for files in block.files],
        "pred": [encodable(files.pred) for files in block.files],
        "pixels": pixels.tolist(),
        "ignored": block.ignored.tolist(),
        "mean_iou": image_means(counts, include=options.include).tolist(),
        "pixel_accuracy": metrics.pixel_accuracy(counts).tolist(),
        "influence": image_influence(counts, whole, include=options.include).tolist(),
        "false_positive_classes": false_positive_classes(counts).tolist(),
    }
    if header.objects is not None:
        detections = unpack_objects(block.measured, header)[0].sum(1)
        data |= dict(zip(_OBJECTS, detections.T.tolist(), strict=True))
    for c, name in enumerate(options.labels.class_names):
        data[f"iou:{name}"] = iou[:, c].tolist()
    plan = header.surfaces
    return data | (plan.columns(block, options.labels.class_names) if plan else {})


def block_rows(
    blocks: Iterable[Columns], header: Header, whole: Counts
) -> Iterator[dict[str, Any]]:
    """One row an image: id, files, pixels, its scores and the IoU of each class in it."""
    for block in _small(blocks):
        data = block_columns(block, header, whole)
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
    blocks: Iterable[Columns], header: Header, whole: Counts, n: int, by: str
) -> list[dict[str, Any]]:
    """The rows of the n lowest scores, the lowest first; of objects the highest numbers.

    Raises
    ------
    ValueError
        If there is no such score.
    """
    score = _score(by, header, whole)
    worst: Rows = []
    for block in _small(blocks):
        values = score(block)
        order = np.argsort(values, kind="stable")[: int((~np.isnan(values)).sum())]
        rows = block_rows([block.take(order[:n].tolist())], header, whole)
        worst = sorted([*worst, *rows], key=lambda row: -row[by] if by in _OBJECTS else row[by])[:n]
    return worst


def check_score_name(by: str, options: ClassOptions, objects: object = None) -> None:
    """Refuse what is no score of an image.

    Raises
    ------
    ValueError
        Listing what there is.
    """
    check_kind("by", by, str, "the name of a score")
    known = [*_SCORES, *(f"iou:{name}" for name in options.labels.class_names)]
    known += _OBJECTS[1:] if objects is not None else []
    if by not in known:
        hint = did_you_mean(by, known)
        hint = "; score objects too: --objects" if by in _OBJECTS[1:] else hint
        msg = f"no score {by!r}; there are {', '.join(known)}{hint}"
        raise ValueError(msg)


def _score(by: str, header: Header, whole: Counts) -> Callable[[Columns], Floats]:
    """The score of a column, (N,) of N images; the lower the worse."""
    options = header.options
    check_score_name(by, options, header.objects)
    if by in _OBJECTS:
        at = _OBJECTS.index(by)
        return lambda block: -unpack_objects(block.measured, header)[0].sum(1)[:, at].astype(float)
    scores: dict[str, Callable[[Counts], Floats]] = {
        "mean_iou": lambda counts: image_means(counts, include=options.include),
        "pixel_accuracy": metrics.pixel_accuracy,
        "influence": lambda counts: image_influence(counts, whole, include=options.include),
    }
    if by not in scores:
        c = options.labels.index(by.removeprefix("iou:"))
        scores[by] = lambda counts: metrics.iou(counts)[:, c]
    return lambda block: scores[by](block.counts(options.num_classes))


def to_csv(blocks: Iterable[Columns], header: Header, whole: Counts) -> str:
    """The rows as CSV; an undefined ratio is an empty cell."""
    rows = (
        ["" if value != value else value for value in row.values()]
        for row in block_rows(blocks, header, whole)
    )
    return csv_text(chain([column_names(header)], rows))


def to_pandas(blocks: Iterable[Columns], header: Header, whole: Counts) -> Any:
    """The rows as a :class:`pandas.DataFrame`, indexed by id."""
    try:
        import pandas as pd
    except ImportError as error:
        msg = "to_pandas needs pandas: pip install 'segiou[pandas]'"
        raise ImportError(msg) from error
    frames = [pd.DataFrame(block_columns(block, header, whole)) for block in _small(blocks)]
    if not frames:
        frames = [pd.DataFrame(columns=column_names(header))]
    return pd.concat(frames, ignore_index=True).set_index("id")


def to_parquet(path: Path, blocks: Iterable[Columns], header: Header, whole: Counts) -> Path:
    """The rows as a Parquet file, written whole or not at all, in the place of one before it.

    Raises
    ------
    ImportError
        If pyarrow is not installed.
    OSError
        If the file cannot be written.
    """
    try:
        pa: Any = import_module("pyarrow")
        parquet: Any = import_module("pyarrow.parquet")
    except ImportError as error:
        msg = "to_parquet needs pyarrow: pip install 'segiou[parquet]'"
        raise ImportError(msg) from error
    integers = {"pixels", "ignored", "false_positive_classes", *_OBJECTS}
    texts = {"id", "truth", "pred"}
    schema = pa.schema(
        (name, pa.string() if name in texts else pa.int64() if name in integers else pa.float64())
        for name in column_names(header)
    )
    with replacing(path) as draft, parquet.ParquetWriter(draft, schema) as writer:
        for block in _small(blocks):
            writer.write_table(pa.table(block_columns(block, header, whole), schema=schema))
    return path
