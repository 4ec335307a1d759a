"""The HTML page of a comparison."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from segiou._support.arguments import check_integer, check_kind
from segiou.analysis.comparison import text as comparison_text
from segiou.analysis.comparison.result import Comparison
from segiou.analysis.comparison.text import difference_head, influences, significant_text
from segiou.document.parts import Section, Table
from segiou.inference.paired_runs import check_runs
from segiou.inference.scored_runs import scored_images
from segiou.measures.score_names import read_name
from segiou.metrics.pixel_scores import PIXEL_SCORES
from segiou.metrics.ratio import Floats
from segiou.report.pages.distance_pictures import box_of
from segiou.report.pages.image_table import EXAMPLES, ImageScores
from segiou.report.pages.page import sentence
from segiou.report.pages.picture_masks import Reader
from segiou.report.pages.report_page import histogram, read_slices, render_page, write_page

if TYPE_CHECKING:
    from segiou.analysis.comparison.ranking import Ranking
    from segiou.analysis.comparison.result import PairComparison
    from segiou.analysis.slices.result import Slices
    from segiou.report.report import Report
    from segiou.runs.run import Run

_BINS = 21


def render_comparison(
    comparison: Comparison,
    run_a: Run,
    run_b: Run,
    *,
    pair: int = 0,
    slices: Iterable[Slices] = (),
    images: str | Path | None = None,
    examples: int = EXAMPLES,
    read: Reader | None = None,
    folder: str | Path | None = None,
    command: str = "",
) -> str:
    """Render a comparison of two runs as one self-contained HTML page, or a folder's index.

    Parameters
    ----------
    comparison : Comparison
        The comparison to show.
    run_a, run_b : Run
        The two runs of the pair, in its order.
    pair : int
        Index of the pair, if the comparison has several.
    slices : iterable of Slices, optional
        Slices of the two runs, one entry per score.
    images : str or path, optional
        Folder of images to show under the masks, matched by name, see
        :func:`segiou.report.match_images`.
    examples : int
        Most images with pictures: those on which the two models differ most.
    read : callable, optional
        Returns the content of a mask file by its path, for masks in archives
        or at remote paths.
    folder, command
        As for :func:`segiou.report.render_report`.

    Raises
    ------
    FileNotFoundError
        If ``images`` is not a folder.
    ValueError
        If ``examples`` is negative, or the runs have different images.
    """
    check_kind("comparison", comparison, Comparison, "a Comparison, as from segiou.compare")
    check_runs("render_comparison", (run_a, run_b))
    check_integer("pair", pair, 0, len(comparison.pairs) - 1)
    if run_a.ids != run_b.ids:
        msg = "the two runs have different images; pass the runs that were compared"
        raise ValueError(msg)
    shown_pair = comparison.pairs[pair]
    runs = (run_a, run_b)
    # Means of measures do not follow a protocol of pixels.
    is_measured = _score_of(comparison, run_a) not in ("", *PIXEL_SCORES)
    protocol = "" if is_measured else comparison.protocol
    reports = [run.report(protocol or None) for run in runs]
    scores = _image_scores(comparison, runs, protocol)
    context = {
        **_pair_context(comparison, shown_pair, reports),
        **_words_context(comparison, shown_pair),
        **_models_context(comparison, shown_pair),
        "sliced": read_slices(slices),
        "reports": reports,
        "image_score": scores.title,
        "spread": _spread(scores, better=comparison.better),
    }
    return render_page(
        "comparison.html",
        context,
        reports,
        runs,
        (shown_pair.a, shown_pair.b),
        scores=scores,
        images=images,
        examples=examples,
        read=read,
        folder=folder,
        command=command,
    )


def _pair_context(
    comparison: Comparison, pair: PairComparison, reports: Sequence[Report]
) -> dict[str, Any]:
    """The two models and their differences by class."""
    rows = (pair.overall, *pair.classes)
    return {
        "comparison": comparison,
        "shown_pair": pair,
        "names": (pair.a, pair.b),
        "higher": (pair.a, pair.b) if comparison.better == "higher" else (pair.b, pair.a),
        # Structures of measures may be groups, or neither classes nor groups, as lesions are.
        "shares": {row.name: math.nan for row in rows}
        | {r.name: r.share for r in (*reports[0].group_rows, *reports[0].classes)},
        "reach": _reach(x for row in rows for x in (row.delta, row.low, row.high)),
        "movers": influences(comparison, pair),
        "difference": difference_head(pair, comparison.score_unit),
    }


def _words_context(comparison: Comparison, pair: PairComparison) -> dict[str, Any]:
    """The verdict, its evidence and the method, in words."""
    method = [
        line.partition(": ") for line in comparison_text.method(comparison, pair, options=False)
    ]
    verdict, *evidence = comparison_text.claims(comparison, pair)
    return {
        "verdict": verdict,
        "evidence": evidence,
        "caution": comparison_text.caution(comparison, pair),
        "left_out": comparison_text.left_out(comparison),
        "significant": significant_text(comparison, pair),
        "contributions": comparison_text.contributions(comparison, pair),
        "reasons": pair.imbalance.sentences() if pair.imbalance.disagree else (),
        "method": [(name, sentence(text)) for name, _, text in method],
    }


def _models_context(comparison: Comparison, pair: PairComparison) -> dict[str, Any]:
    """The ranking of all models, and the training runs of the two."""
    trained = zip(comparison.names, comparison.run_scores, strict=False)
    return {
        "ranking": comparison.stability,
        "boxes": _boxes(comparison.stability),
        "model_tables": _model_tables(comparison),
        "trained": [(name, scores) for name, scores in trained if name in (pair.a, pair.b)],
        "runs_reach": _runs_reach(comparison),
    }


def write_comparison_html(
    path: str | Path,
    comparison: Comparison,
    run_a: Run,
    run_b: Run,
    *,
    overwrite: bool = False,
    **options: Any,
) -> Path:
    """Write the page of a comparison atomically.

    Parameters
    ----------
    path : str or path
        A file or a folder, as for :func:`segiou.report.write_html`.
    comparison, run_a, run_b, **options
        As for :func:`render_comparison`.
    overwrite : bool
        As for :func:`segiou.report.write_html`.
    """
    render = partial(render_comparison, comparison, run_a, run_b, **options)
    return write_page(path, render, overwrite=overwrite)


def _runs_reach(comparison: Comparison) -> float:
    """The end of the axis of the scores of training runs: 1 for ratios."""
    scores = [score for of_model in comparison.run_scores for score in of_model]
    return _reach(scores) if comparison.score_unit else 1.0


def _boxes(ranking: Ranking | None) -> dict[str, Any]:
    """Quartiles, whiskers and outliers of the images of each model, as shares of an axis."""
    if ranking is None:
        return {}
    rows = {name: np.array(row) for name, row in zip(ranking.names, ranking.cases, strict=True)}
    finite = {name: row[np.isfinite(row)] for name, row in rows.items()}
    every = np.concatenate([*finite.values()])
    is_ratio = not ranking.score_unit and not (np.abs(every) > 1).any()
    reach = 1.0 if is_ratio or not every.size else _reach([float(np.abs(every).max())])
    low = -reach if (every < 0).any() else 0.0
    of = {
        name: {
            "infinite": int(np.isinf(rows[name]).sum()),
            **(box_of(row - low, reach - low) | {"median": np.median(row)} if row.size else {}),
        }
        for name, row in finite.items()
    }
    return {"low": low, "reach": reach, "of": of}


def _model_tables(comparison: Comparison) -> list[tuple[str, Table]]:
    """The scores of all models by class, and by group, if there are more than two."""
    if len(comparison.names) < 3:
        return []
    tables = []
    for part in comparison.table()._parts():
        inside = part.parts if isinstance(part, Section) else [part]
        title = part.title if isinstance(part, Section) else "Models and classes"
        # A score without classes is in the ranking.
        tables += [(title, t) for t in inside if isinstance(t, Table) and len(t.rows) > 1]
    return tables


def _reach(values: Iterable[float], least: float = 0.005) -> float:
    """The limit of an axis of differences: a round number."""
    widest = max((abs(value) for value in values if math.isfinite(value)), default=0.0)
    steps = (s * 10.0**power for power in range(-3, 12) for s in (1, 2, 4, 5))
    return next(step for step in steps if step >= max(widest, least))


def _score_of(comparison: Comparison, run: Run) -> str:
    """The name of the compared score; empty if it is the caller's own function."""
    try:
        return read_name(comparison.metric, run.score_plans).score
    except ValueError:
        return ""


def _image_scores(comparison: Comparison, runs: tuple[Run, ...], protocol: str) -> ImageScores:
    """The compared score of each image; mean IoU if the score is the caller's own function."""
    if not _score_of(comparison, runs[0]):
        return ImageScores.of_iou(runs)
    images = [scored_images(run, comparison.metric, protocol or None) for run in runs]
    values = tuple(scored.of_images() for scored in images)
    return ImageScores(images[0].score.image_title, comparison.score_unit, values)


def _spread(scores: ImageScores, better: str) -> dict[str, Any] | None:
    """Distribution of the per-image differences."""
    differences = scores.differences
    defined = differences[~np.isnan(differences)]
    if not defined.size:
        return None
    reach = _reach(defined.tolist(), least=0.05)
    sign = 1 if better == "higher" else -1
    return {
        # An odd number of bins, so that one is centred on 0.
        **histogram(defined, _BINS, -reach, reach),
        "reach": reach,
        "improved": int((sign * defined > 0).sum()),
        "worse": int((sign * defined < 0).sum()),
        "equal": int((defined == 0).sum()),
        "undefined": differences.size - defined.size,
        "infinite": int(np.isinf(defined).sum()),
        "median": _median(defined),
        "highest": float(defined.max()),
        "lowest": float(defined.min()),
    }


def _median(values: Floats) -> float:
    """The median; undefined between the two infinities."""
    with np.errstate(invalid="ignore"):
        return float(np.median(values))
