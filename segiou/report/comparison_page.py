"""A comparison of two runs as a page."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from segiou.metrics.per_image import image_means
from segiou.metrics.ratio import Floats
from segiou.report.image_table import EXAMPLES, choose, image_table
from segiou.report.page import assemble, class_colors, hex_color, plural
from segiou.report.pictures import Reader
from segiou.report.provenance import making
from segiou.report.report_page import (
    bins_of,
    images_context,
    making_context,
    page_options,
    source_of,
    write_page,
)
from segiou.report.wording import cell, coefficient, signed, with_short_names

if TYPE_CHECKING:
    from segiou.analysis.comparison import Comparison, Difference, PairComparison
    from segiou.report.report import Report
    from segiou.runs.run import Run

_BINS = 21


def render_comparison(
    comparison: Comparison,
    run_a: Run,
    run_b: Run,
    *,
    pair: int = 0,
    images: str | Path | None = None,
    examples: int = EXAMPLES,
    read: Reader | None = None,
    folder: str | Path | None = None,
) -> str:
    """Render a comparison of two runs as one self-contained HTML page, or a folder's index.

    Parameters
    ----------
    comparison : Comparison
        The comparison to show.
    run_a, run_b : Run
        The two runs of the pair, in its order.
    pair : int
        Which pair of the comparison, where it has more than one.
    images : str or path, optional
        Folder of images that lie under the masks, matched by name as
        :func:`segiou.report.match_images` says.
    examples : int
        Images with pictures in the page, at most: those on which the two differ most.
    read : callable, optional
        Gives the content of a mask file, by its path, where masks lie in an
        archive or at an address.
    folder : str or path, optional
        As for :func:`segiou.report.render_report`.

    Returns
    -------
    str

    Raises
    ------
    FileNotFoundError
        If ``images`` is no folder.
    ValueError
        If ``examples`` is negative, or the runs are not of the same images.
    """
    if examples < 0:
        msg = f"examples must be at least 0, got {examples}"
        raise ValueError(msg)
    if run_a.ids != run_b.ids:
        msg = "the two runs are not of the same images; give the runs that were compared"
        raise ValueError(msg)
    comparison = with_short_names(comparison)
    found = comparison.pairs[pair]
    names = (found.a, found.b)
    colors = class_colors(run_a.labels)
    reports = (run_a.report(comparison.protocol or None), run_b.report(comparison.protocol or None))
    page = page_options(images, examples, None)
    table = image_table((run_a, run_b), names)
    chosen = choose(table, examples, (), 0)
    source = source_of(colors, table, images, read, folder)
    context = {
        **_headings(comparison, names, reports[0]),
        **making_context(
            [
                (name, making(report, run, page))
                for name, report, run in zip(names, reports, (run_a, run_b), strict=True)
            ]
        ),
        **images_context(table, source, chosen),
        "lines": [
            {"row": row, "color": color, "share": of.share, "sure": row.differs(comparison.level)}
            for row, color, of in zip(
                found.classes, map(hex_color, colors), reports[0].classes, strict=False
            )
        ],
        "comparison": comparison,
        "found": found,
        "names": names,
        "class_names": run_a.class_names,
        "pairs_of_scores": _scores(*reports),
        **_sentences(comparison, found),
        "reach": _reach([found.overall, *found.classes]),
        "sure": found.overall.differs(comparison.level),
        "spread": _spread(*(image_means(r.counts, include=r.include) for r in (run_a, run_b))),
    }
    data = {
        "confusion": None,
        "names": list(run_a.class_names),
        "images": table.payload(source, chosen),
    }
    return assemble("comparison.html", context, data)


def write_comparison_html(
    path: str | Path, comparison: Comparison, run_a: Run, run_b: Run, **options: Any
) -> Path:
    """Write the page of a comparison, whole or not at all.

    Parameters
    ----------
    path : str or path
        A file or a folder, as for :func:`segiou.report.write_html`.
    comparison, run_a, run_b, **options
        As for :func:`render_comparison`.

    Returns
    -------
    Path
    """
    return write_page(path, partial(render_comparison, comparison, run_a, run_b, **options))


def _sentences(comparison: Comparison, found: PairComparison) -> dict[str, Any]:
    """The words on the pair of the page, and folded away those on the others."""
    return {
        "ranking_sentences": comparison.ranking_sentences(),
        "sentences": [*comparison.pair_sentences(found), *comparison.closing_sentences()],
        "other_pairs": [
            (f"{pair.b} against {pair.a}", comparison.pair_sentences(pair))
            for pair in comparison.pairs
            if pair is not found
        ],
    }


def _headings(comparison: Comparison, names: tuple[str, str], report: Report) -> dict[str, Any]:
    models = len(comparison.names)
    others = f"; 2 of {models} models" if models > 2 else ""
    return {
        "what": "comparison",
        "page_title": f"{names[1]} against {names[0]}: segmentation scores",
        "heading": f"{names[1]} against {names[0]}",
        "subtitle": (
            f"{plural(comparison.images, 'image')}, "
            f"{plural(len(report.class_names), 'class', 'classes')}, "
            f"protocol {comparison.protocol or report.protocol.name}{others}"
        ),
        "report": report,
    }


def _scores(a: Report, b: Report) -> list[tuple[str, float, float, tuple[str, str, str]]]:
    """Scores of all classes: name, of either model, and both and their difference as text."""
    shown = (
        ("Mean IoU", a.mean_iou, b.mean_iou),
        ("Pixel accuracy", a.pixel_accuracy, b.pixel_accuracy),
        ("Mean accuracy", a.mean_accuracy, b.mean_accuracy),
        ("Mean Dice", a.mean_dice, b.mean_dice),
        ("Weighted IoU", a.frequency_weighted_iou, b.frequency_weighted_iou),
    )
    rows = [(name, x, y, (cell(x), cell(y), signed(y - x))) for name, x, y in shown]
    x, y = a.cohen_kappa, b.cohen_kappa
    difference = f"{y - x:+.4f}".replace("-", "−") if x == x and y == y else "–"
    return [*rows, ("Cohen’s kappa", x, y, (coefficient(x), coefficient(y), difference))]


def _reach(rows: Sequence[Difference]) -> float:
    """How far the axis of differences goes to either side: a round number."""
    ends = [abs(x) for row in rows for x in (row.delta, row.low, row.high) if x == x]
    widest = max(ends, default=0.0)
    steps = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0)
    return next((step for step in steps if widest <= step), 1.0)


def _spread(before: Floats, after: Floats) -> dict[str, Any] | None:
    """How the difference is spread over the images."""
    per_image = after - before
    defined = per_image[~np.isnan(per_image)]
    if not defined.size:
        return None
    widest = float(np.abs(defined).max())
    reach = next((r for r in (0.05, 0.1, 0.2, 0.4, 0.6, 0.8) if widest <= r), 1.0)
    # An odd number, so that one bin lies around no difference.
    counts, edges = np.histogram(defined, _BINS, (-reach, reach))
    facts = (
        ("images where it is higher", str(int((defined > 0).sum()))),
        ("images where it is lower", str(int((defined < 0).sum()))),
        ("images where it is equal", str(int((defined == 0).sum()))),
        ("median difference, points", signed(float(np.median(defined)))),
        ("highest difference, points", signed(float(defined.max()))),
        ("lowest difference, points", signed(float(defined.min()))),
    )
    bins = bins_of(counts, edges)
    return {"bins": bins, "reach": reach, "most": int(counts.max()), "facts": facts}
