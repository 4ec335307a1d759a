"""A comparison of two runs as a page."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from segiou.metrics.per_image import image_means
from segiou.metrics.ratio import Floats
from segiou.report.image_table import EXAMPLES
from segiou.report.pictures import Reader
from segiou.report.report_page import histogram, render_page, write_page
from segiou.report.wording import with_short_names

if TYPE_CHECKING:
    from segiou.analysis.comparison import Comparison
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
    if run_a.ids != run_b.ids:
        msg = "the two runs are not of the same images; give the runs that were compared"
        raise ValueError(msg)
    comparison = with_short_names(comparison)
    found = comparison.pairs[pair]
    runs = (run_a, run_b)
    # Means of surfaces and objects follow no protocol of pixels.
    beside = comparison.metric in ("surface_dice", "pq", "sq", "rq")
    protocol = "" if beside else comparison.protocol
    reports = [run.report(protocol or None) for run in runs]
    rows = (found.overall, *found.classes)
    before, after = (image_means(run.counts, include=run.include) for run in runs)
    context = {
        "comparison": comparison,
        "found": found,
        "names": (found.a, found.b),
        "reports": reports,
        # Structures of surfaces are classes and regions.
        "shares": {r.name: r.share for r in (*reports[0].group_rows, *reports[0].classes)},
        "reach": _reach(x for row in rows for x in (row.delta, row.low, row.high)),
        "spread": _spread(after - before),
    }
    return render_page(
        "comparison.html",
        context,
        reports,
        runs,
        (found.a, found.b),
        images=images,
        examples=examples,
        read=read,
        folder=folder,
    )


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


def _reach(values: Iterable[float], least: float = 0.005) -> float:
    """How far an axis of differences goes to either side: a round number."""
    widest = max((abs(value) for value in values if value == value), default=0.0)
    steps = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8)
    return next((step for step in steps if step >= max(widest, least)), 1.0)


def _spread(per_image: Floats) -> dict[str, Any] | None:
    """How the difference is spread over the images."""
    defined = per_image[~np.isnan(per_image)]
    if not defined.size:
        return None
    reach = _reach(defined.tolist(), least=0.05)
    return {
        # An odd number of bins, so that one lies around no difference.
        **histogram(defined, _BINS, -reach, reach),
        "reach": reach,
        "higher": int((defined > 0).sum()),
        "lower": int((defined < 0).sum()),
        "equal": int((defined == 0).sum()),
        "median": float(np.median(defined)),
        "highest": float(defined.max()),
        "lowest": float(defined.min()),
    }
