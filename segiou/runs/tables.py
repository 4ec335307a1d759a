"""A run as a table with one row per image."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from segiou import metrics
from segiou._support.arguments import check_kind
from segiou._support.csv_text import csv_text
from segiou._support.files import replacing
from segiou._support.numbers import COUNT
from segiou._support.optional import import_extra
from segiou._support.text import encodable
from segiou.counting.counts import Counts, SparseConfusionCounts
from segiou.inference.scored_runs import has_volumes, structure_arguments, structure_score
from segiou.inference.statistics import scored_counts
from segiou.labels.class_options import ClassOptions
from segiou.labels.label_set import BACKGROUNDS
from segiou.measures.plan import Plan
from segiou.measures.score_names import (
    ScoreName,
    members_of,
    not_measured,
    read_name,
    row_of,
    rows_of_score,
)
from segiou.metrics.per_image import false_positive_classes, image_influence, image_means
from segiou.metrics.pixel_scores import CASE_SCORES, PIXEL_SCORES
from segiou.metrics.protocols import Protocol
from segiou.metrics.ratio import Floats
from segiou.runs.image_counts import Columns, unpack_parts

if TYPE_CHECKING:
    import pandas

    from segiou.runs.run_counts import RunCounts

#: Images whose rows are created at a time.
_BLOCK = 1 << 13
_SCORES = ("mean_iou", "pixel_accuracy", "influence")
#: Scores of pixels in the long table.
_LONG_SCORES = ("dice", "iou", "precision", "recall")
#: Numbers of images that are not scores of a run.
_OTHER = ("influence", "false_positive_classes", "suspects")
#: Note of images whose truth is background only, unlike their prediction.
_ALARM = "false positives without foreground"


def check_score_name(by: str, options: ClassOptions, plans: Sequence[Plan] = ()) -> None:
    """Raise ValueError, with a list of scores, unless it is a per-image score."""
    check_kind("by", by, str, "the name of a score")
    if by in _OTHER or by in {c.name for plan in plans for c in plan.image_columns if c.better}:
        return
    scores = {name: score for plan in plans for name, score in plan.scores.items()}
    try:
        name = read_name(by, scores)
    except ValueError as error:
        hint = "; to score objects, use --objects" if by.startswith("objects_") else ""
        msg = f"{error}, or {', '.join(_OTHER)}{hint}"
        raise ValueError(msg) from None
    if name.score not in {*PIXEL_SCORES, *CASE_SCORES, *scores}:
        raise not_measured(name)
    if name.row:
        row_of(name.row, rows_of_score(name.score, options, plans), name.score)


def unusual(share: Floats, extent: Floats) -> Floats:
    """How unusual confusions are: share · √extent.

    The share is that of the pixels with this pair of classes in all images, and the extent that
    of the pixels of the image. Where the truth may be wrong, values are large.
    """
    return share * np.sqrt(extent)


def unusual_confusion(block: Columns, *, whole: SparseConfusionCounts) -> Floats:
    """How unusual the confusion of each image is, (N,): the largest of its pairs of classes."""
    owner = np.repeat(np.arange(len(block)), block.sizes)
    truth, pred = np.divmod(block.cells, whole.num_classes + 1)
    known = pred < whole.num_classes
    valid = np.bincount(owner[known], block.values[known], len(block))
    at = np.flatnonzero(known & (truth != pred))
    total = whole.cells.values[np.searchsorted(whole.cells.indices, block.cells[at])]
    pixels, worst = block.values[at], np.zeros(len(block))
    np.maximum.at(worst, owner[at], unusual(pixels / total, pixels / valid[owner[at]]))
    return worst


def background_of(run: RunCounts) -> NDArray[np.bool_]:
    """The class that is named background, or else the class of value 0 in volumes."""
    is_background = np.array([name.lower() in BACKGROUNDS for name in run.class_names], bool)
    volumes = has_volumes(run.provenance) or any(plan.masks.volumes for plan in run.plans)
    if is_background.any() or not volumes:
        return is_background
    return np.array([values == (0,) for values in run.labels.class_values], bool)


def false_alarms(
    counts: Counts, background: NDArray[np.bool_], include: NDArray[np.bool_]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Images without foreground whose prediction has some, and all without foreground, (N,)."""
    structures = include & ~background
    without = (counts.truth[:, background].sum(-1) > 0) & ~counts.truth[:, ~background].any(-1)
    return without & counts.pred[:, structures].any(-1), without


@dataclass(frozen=True, eq=False)
class RunTable:
    """A run as a table with one row per image, under a protocol."""

    run: RunCounts
    protocol: Protocol

    @property
    def include(self) -> NDArray[np.bool_]:
        """The classes that means cover, (C,)."""
        return self.protocol.include_of(self.run)

    def names(self) -> list[str]:
        """Names of the columns."""
        return [*self.columns(Columns.of([]))]

    def columns(self, block: Columns) -> dict[str, list[Any]]:
        """Columns of a block of images: files, pixels, scores, and IoU of each class."""
        options = self.run.options
        counts = block.counts(options.num_classes)
        pixels = counts.total[:, 0] + block.ignored
        data: dict[str, Any] = {
            "id": [encodable(id) for id in block.ids],
            "truth": [encodable(files.truth) for files in block.files],
            "pred": [encodable(files.pred) for files in block.files],
            "pixels": pixels.tolist(),
            "ignored": block.ignored.tolist(),
        }
        scores = self._scores()
        data |= {name: scores[name](counts).tolist() for name in _SCORES}
        data["false_positive_classes"] = false_positive_classes(counts).tolist()
        data |= {name: scores[name](counts).tolist() for name in scores if name not in _SCORES}
        for plan in self.run.plans:
            measured = plan.columns(unpack_parts(block.measured, self.run._header, plan.key))
            data |= {name: values.tolist() for name, values in measured.items()}
        return data

    def _scores(self) -> dict[str, Callable[[Counts], Floats]]:
        """Functions that map counts (N, C) to scores (N,), by name."""
        include, whole = self.include, self.run._tally.counts
        return {
            "mean_iou": partial(image_means, include=include),
            "pixel_accuracy": metrics.pixel_accuracy,
            "influence": partial(image_influence, whole=whole, include=include),
            **{f"iou:{n}": partial(_class_iou, c) for c, n in enumerate(self.run.class_names)},
        }

    def rows(self) -> Iterator[dict[str, Any]]:
        """One row per image."""
        return (row for block in self._small() for row in self._rows_of(block))

    def _rows_of(self, block: Columns) -> Iterator[dict[str, Any]]:
        data = self.columns(block)
        for values in zip(*data.values(), strict=True):
            yield dict(zip(data, values, strict=True))

    def _small(self) -> Iterator[Columns]:
        measured = bool(self.run.plans)
        blocks = self.run._images.blocks(measured=measured)
        return (part for block in blocks for part in block.parts(_BLOCK))

    def worst(self, n: int, by: str) -> list[dict[str, Any]]:
        """Rows of the n worst images, the worst first; ValueError if the score is unknown.

        Mean IoU over the classes of the truth does not see the false positives of a truth without
        foreground, so such images are ranked with IoU 0 of each false class, and have a note.
        """
        score, sign = self._score(by)
        background = background_of(self.run)
        worst: list[tuple[float, dict[str, Any]]] = []
        for block in self._small():
            values = sign * score(block)
            counts = block.counts(self.run.options.num_classes)
            alarms = false_alarms(counts, background, self.include)[0] & (by == "mean_iou")
            false_classes = false_positive_classes(counts[:, self.include])
            places = np.where(alarms, values / (1 + false_classes), values)
            order = np.argsort(places, kind="stable")[: int((~np.isnan(values)).sum())][:n]
            columns = ((sign * values[order]).tolist(), places[order].tolist(), alarms[order])
            for value, rank, alarm, row in zip(
                *columns, self._rows_of(block.take([*order])), strict=True
            ):
                noted = {"note": _ALARM} if alarm else {}
                worst.append((rank, {**row, by: value, **noted}))
            worst = sorted(worst, key=lambda ranked: ranked[0])[:n]
        return [row for _, row in worst]

    def _score(self, by: str) -> tuple[Callable[[Columns], Floats], int]:
        """A function from N images to scores (N,), and -1 if lower is better."""
        check_score_name(by, self.run.options, self.run.plans)
        if by == "suspects":
            return partial(unusual_confusion, whole=self.run._tally), -1
        if by in _OTHER:
            sign = -1 if by == "false_positive_classes" else 1
            function: Any = self._scores().get(by) or false_positive_classes
            return self._image_function(function), sign
        for plan in self.run.plans:
            columns = {column.name: column.better for column in plan.image_columns}
            if columns.get(by) is not None:
                return partial(self._measured, plan, by), 1 if columns[by] == "higher" else -1
        plans = self.run.score_plans
        name = read_name(by, plans)
        if name.score in plans:
            plan = plans[name.score]
            sign = 1 if plan.scores[name.score].better == "higher" else -1
            return partial(self._measured, plan, name), sign
        return self._pixel_score(name), 1

    def _image_function(self, function: Callable[[Counts], Floats]) -> Callable[[Columns], Floats]:
        """A function of counts (N, C) as one of images."""
        number = self.run.options.num_classes
        return lambda block: function(block.counts(number)).astype(float)

    def _pixel_score(self, name: ScoreName) -> Callable[[Columns], Floats]:
        """A score of pixels: of structures, of a class, or of all of them."""
        options = self.run.options
        if name.score in CASE_SCORES and not has_volumes(self.run.provenance):
            raise not_measured(name)
        members = members_of(name, options.labels.class_names, options.groups, options)
        if members is not None:
            return partial(self._structure_score, name, members)
        rule = str(name), self.protocol, self.run.class_names, self.include
        return self._image_function(lambda counts: scored_counts(counts, *rule).of_images())

    def _structure_score(
        self, name: ScoreName, members: Mapping[str, Sequence[int]], block: Columns
    ) -> Floats:
        """A score of a group of classes, or of the structures, in each image."""
        options = self.run.options
        counted, rule = structure_arguments(name, members, options.groups, self.protocol)
        counts: Any = block.structure_counts(counted, options.num_classes, **rule)
        counts = counts[:, : len(members)]
        score = structure_score(name.score, [*members])
        return (score.of_row(name.row) if name.row else score).of_images(counts)[:, 0]

    def _measured(self, plan: Plan, by: str | ScoreName, block: Columns) -> Floats:
        parts = unpack_parts(block.measured, self.run._header, plan.key)
        if isinstance(by, ScoreName):
            score = plan.scores[by.score]
            at = 1 + row_of(by.row, score.names, by.score) if by.row else 0
            return score.of_images(parts)[:, at]
        return plan.columns(parts)[by].astype(float)

    def values_of(self, name: str) -> Floats:
        """A score of a measure in each image, (N, 1 + K), the whole first.

        NaN in images whose truth lacks the class.
        """
        plan = self.run.score_plans[name]
        score = plan.scores[name]
        values = [np.empty((0, 1 + len(score.names)))]
        for block in self._small():
            parts = unpack_parts(block.measured, self.run._header, plan.key)
            images = score.of_images(parts).copy()
            images[:, 1:][~score.seen_in(parts)] = np.nan
            values.append(images)
        return np.concatenate(values)

    def to_csv(self) -> str:
        """The rows as CSV; an undefined ratio is an empty cell."""
        rows = (["" if value != value else value for value in row.values()] for row in self.rows())
        return csv_text(chain([self.names()], rows))

    def to_long_csv(self) -> str:
        """One row per image, structure and score, as CSV.

        Undefined and infinite values are empty cells with a note, because spreadsheets
        leave empty cells out of means.
        """
        heads = ["case", "structure", "score", "value", "unit", "note"]
        return csv_text(
            chain([heads], (row for block in self._small() for row in self._long(block)))
        )

    def _long(self, block: Columns) -> Iterator[list[Any]]:
        """Rows of a block; a measure's score replaces that of pixels with the same name."""
        counts, columns = block.counts(self.run.options.num_classes), {}
        for score in _LONG_SCORES:
            values = PIXEL_SCORES[score].function(counts).T.tolist()
            for name, cells in zip(self.run.class_names, values, strict=True):
                columns[name, score] = "", cells
        for plan in self.run.plans:
            measured = plan.columns(unpack_parts(block.measured, self.run._header, plan.key))
            for column in plan.image_columns:
                score, _, structure = column.name.partition(":")
                columns[structure, score] = column.unit, measured[column.name].tolist()
        for i, id in enumerate(map(encodable, block.ids)):
            for key, (unit, cells) in columns.items():
                yield [id, *key, *_noted(cells[i], unit)]

    def to_pandas(self) -> pandas.DataFrame:
        """The rows as a :class:`pandas.DataFrame`, indexed by id."""
        pd = import_extra("pandas", "to_pandas needs pandas", "pandas")
        frames = [pd.DataFrame(self.columns(block)) for block in self._small()]
        frames = frames or [pd.DataFrame(columns=self.names())]
        table: pandas.DataFrame = pd.concat(frames, ignore_index=True).set_index("id")
        return table

    def to_parquet(self, path: Path) -> Path:
        """Write the rows as a Parquet file, atomically."""
        need = "to_parquet needs pyarrow", "parquet"
        pa, parquet = import_extra("pyarrow", *need), import_extra("pyarrow.parquet", *need)
        kinds = dict.fromkeys(("id", "truth", "pred"), pa.string())
        integers = ["pixels", "ignored", "false_positive_classes"]
        columns = (column for plan in self.run.plans for column in plan.image_columns)
        integers += [column.name for column in columns if column.unit == COUNT]
        kinds |= dict.fromkeys(integers, pa.int64())
        schema = pa.schema((name, kinds.get(name, pa.float64())) for name in self.names())
        with replacing(path) as draft, parquet.ParquetWriter(draft, schema) as writer:
            for block in self._small():
                writer.write_table(pa.table(self.columns(block), schema=schema))
        return path


def _noted(value: float, unit: str) -> tuple[float | str, str, str]:
    """A value, its unit, and why it is empty."""
    if value != value:
        return "", unit, "undefined"
    return ("", unit, "infinite") if math.isinf(value) else (value, unit, "")


def _class_iou(c: int, counts: Counts) -> Floats:
    return metrics.iou(counts[:, c])
