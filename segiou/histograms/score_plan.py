"""The built-in measure of scores: histograms of each image, what follows, and its table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from segiou._support.arguments import check_choice, check_integer
from segiou._support.text import Json
from segiou.histograms import threshold_curves as curves
from segiou.histograms.calibration_errors import diagram, errors, top_calibration
from segiou.histograms.score_bins import SCORE_UNIT, ScoreBins, as_scores
from segiou.histograms.score_counts import ScoreHistogram
from segiou.labels.class_options import ClassOptions
from segiou.measures.measure import Counted, MaskPair, Masks, Measure, Plan
from segiou.measures.parts import Field, Layout, Parts
from segiou.measures.score import Score
from segiou.measures.score_table import Column, ScoreTable
from segiou.metrics.ratio import Floats, ratio


@dataclass(frozen=True)
class ScoreOptions(Measure):
    """Ranking, thresholds and calibration of the scores that predictions were decided from.

    Attributes
    ----------
    activation : {"", "softmax", "sigmoid"}
        What turns the scores into numbers in [0, 1]; empty if they are such numbers.
    bins : int or "float16"
        As of :class:`segiou.ScoreHistogram`.
    rows : int
        Number of bins of the reliability diagram, for calibration errors.

    Raises
    ------
    TypeError
        If an option has the wrong type.
    ValueError
        If an option has the wrong value.

    Examples
    --------
    >>> ScoreOptions("softmax").bins
    4096
    """

    key: ClassVar[str] = "scores"
    title: ClassVar[str] = "Scores"

    activation: str = ""
    bins: int | str = 4096
    rows: int = 15

    def __post_init__(self) -> None:
        check_choice("activation", self.activation, ("", "softmax", "sigmoid"))
        check_integer("rows", self.rows, 1)
        ScoreBins(self.bins)

    @classmethod
    def of(cls, choice: Any) -> ScoreOptions:
        """Options from options, the name of an activation, or True for probabilities."""
        return choice if isinstance(choice, cls) else cls() if choice is True else cls(choice)

    def plan(self, classes: ClassOptions, masks: Masks) -> Plan:
        """The plan for these classes."""
        return ScorePlan(self, classes, masks)


@dataclass(frozen=True)
class ScorePlan(Plan):
    """Plan of the scores measure: the cells of a histogram per image."""

    measure: ScoreOptions

    @cached_property
    def bins(self) -> ScoreBins:
        """The bins."""
        return ScoreBins(self.measure.bins)

    @property
    def _shape(self) -> tuple[int, int, int]:
        return self.classes.num_classes + 2, self.bins.number, 2

    @property
    def layout(self) -> Layout:
        """The cells of :class:`ScoreHistogram`; most are 0."""
        return {"cells": Field(self._shape, sparse=True)}

    @cached_property
    def _nothing(self) -> ScoreHistogram:
        return ScoreHistogram.from_options(self.classes, self.measure.bins)

    def count(self, pair: MaskPair) -> Parts:
        """Count the scores of an image."""
        if pair.scores is None:
            msg = (
                "the measure 'scores' needs scores, but the prediction holds labels; pass scores "
                "with argmax=AXIS (the class axis) or threshold=T, or files of scores"
            )
            raise ValueError(msg)
        scores = as_scores(pair.scores)
        axis = None if scores.ndim == np.ndim(pair.truth) else 0
        activation: Any = self.measure.activation or None
        cells = self._nothing.count(pair.truth, scores, axis, activation, mask=pair.mask)
        return Parts.of(self.layout, cells=cells)

    def check(self, parts: Parts) -> None:
        """Reject cells whose numbers of pixels differ between the classes."""
        image, cell, numbers = _filled(parts)
        row, at = np.divmod(cell, 2 * self.bins.number)
        last = self._shape[0] - 1
        is_sum, is_pixels = (row == last) & (at % 2 == 0), row < last
        pixels = np.zeros((len(parts), last))
        np.add.at(pixels, (image[is_pixels], row[is_pixels]), numbers[is_pixels])
        sums = np.bincount(image[is_sum], numbers[is_sum] * SCORE_UNIT, len(parts))
        wrong = (pixels != pixels[:, :1]).any() or (sums > pixels[:, -1]).any()
        if wrong or ((row == last) & ~is_sum & (at != 1)).any():
            msg = "invalid score histograms"
            raise ValueError(msg)

    @cached_property
    def scores(self) -> Mapping[str, Score]:
        """Areas and best IoU as means of the classes; calibration errors of the highest scores."""
        values, found = self.bins.values, {}

        def add(name: str, title: str, ratio_of: Any, **more: Any) -> None:
            include = self.classes.include

            def evaluate(flat: NDArray[Any]) -> Floats:
                cells = flat.reshape(*flat.shape[:-1], *self._shape)
                each = ratio_of(cells[..., :-2, :, :])
                if "overall" in more:
                    return np.concatenate([more["overall"](cells, each)[..., None], each], -1)
                known = ~np.isnan(each) & include
                mean = ratio(np.where(known, each, 0.0).sum(-1), known.sum(-1))
                return np.concatenate([mean[..., None], each], -1)

            names = self.classes.labels.class_names
            better: Any = more.get("better", "higher")
            found[name] = Score(
                name, title, names, lambda parts: parts["cells"], evaluate, self._seen, "", better
            )

        add("average_precision", "AP", curves.average_precision)
        add("roc_auc", "AUROC", curves.roc_auc)
        add("best_iou", "best IoU", lambda n: curves.scores_at(n, "iou").max(-1))
        add("fpr95", "FPR at 95 % TPR", curves.fpr_at_tpr, better="lower")
        for at, name in enumerate(("ece", "mce", "ace")):
            add(
                name,
                name.upper(),
                self._class_error(at),
                overall=self._top_error(at),
                better="lower",
            )
        add(
            "brier",
            "Brier",
            lambda n: curves.brier(n, values),
            overall=lambda _, each: each.sum(-1),
            better="lower",
        )
        return found

    def _class_error(self, at: int) -> Callable[[NDArray[Any]], Floats]:
        return lambda n: errors(
            *diagram(n, n.sum(-1) * self.bins.values, self.bins, self.measure.rows)
        )[at]

    def _top_error(self, at: int) -> Callable[[NDArray[Any], Floats], Floats]:
        def of(cells: NDArray[Any], _: Floats) -> Floats:
            sums = cells[..., -1, :, 0] * SCORE_UNIT
            return errors(*diagram(cells[..., -2, :, :], sums, self.bins, self.measure.rows))[at]

        return of

    def _seen(self, parts: Parts) -> NDArray[np.bool_]:
        image, cell, _ = _filled(parts)
        own = (cell % 2 == 1) & (cell < (self._shape[0] - 2) * 2 * self.bins.number)
        found = np.zeros((len(parts), self.classes.num_classes), bool)
        found[image[own], cell[own] // (2 * self.bins.number)] = True
        return found

    def columns(self, parts: Parts) -> dict[str, NDArray[Any]]:
        """Every score of each image, and the average precision and IoU of its classes."""
        found: dict[str, NDArray[Any]] = {}
        for name, score in self.scores.items():
            several = zip(score.column_names, score.of_images(parts).T, strict=True)
            by_name = dict(several)
            detailed = name in ("average_precision", "best_iou")
            found |= by_name if detailed else {name: by_name[name]}
        return found

    def table(self, found: Counted) -> ScoreTable:
        """Scores of each class with its best threshold; JSON adds the diagram."""
        cells = found.total.dense("cells")[0]
        best = curves.best_threshold(
            cells[:-2], self.bins.edges, self.classes.include, "iou", beta=1.0
        )
        plain = super().table(found)
        columns = []
        for column in plain.columns:
            hidden = column.name in ("fpr95", "mce", "ace")
            columns.append(column._replace(title="" if hidden else column.title))
            if column.name == "best_iou":
                columns.append(
                    Column(
                        "best_threshold",
                        "threshold",
                        tuple(best.thresholds.tolist()),
                        (best.overall,),
                        kind="distance",
                        better=None,
                        digits=3,
                    )
                )
        table = ScoreTable(
            self.key,
            "Scores",
            "Average precision (AP) and area under the ROC curve of each class against the rest, "
            "its IoU at the best threshold, and calibration errors (ECE, Brier; lower is better).",
            plain.rows,
            tuple(columns),
            note=self._note(best),
            empty=plain.empty,
        )
        calibration = top_calibration(cells, self.bins, self.measure.rows)
        data: Any = table.to_dict()["scores"]
        data |= {"options": self.measure.to_dict(), "calibration": calibration.to_dict()}
        return ScoreTable(**{**vars(table), "data": {"scores": data}})

    def _note(self, best: curves.BestThreshold) -> str:
        kind = self.measure.bins
        bins = f"{kind} bins" if isinstance(kind, int) else "half-precision bins"
        activation = self.measure.activation or "probabilities"
        return (
            f"scores: {activation}, {bins}; mean ECE is that of the highest scores, mean Brier the "
            f"sum over classes; one threshold for all classes: {best.overall:.3f} (mean IoU "
            f"{self.scores['best_iou'].shown(best.mean)})"
        )

    def way(self) -> Mapping[str, Json]:
        """What must be equal for scores to be comparable."""
        return self.measure.to_dict()


def _filled(parts: Parts) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.int64]]:
    """Image, flat index and number of every cell that is not 0."""
    table: Any = parts["cells"]
    image = np.repeat(np.arange(len(parts)), np.diff(table.indptr))
    return image, table.indices.astype(np.int64), table.data
