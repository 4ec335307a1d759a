"""A run as nnU-Net's ``summary.json``, key for key and digit for digit."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from segiou import metrics
from segiou.metrics.ratio import ratio
from segiou.runs.run import Run


def nnunet_summary(run: Run) -> str:
    """Write the scores of each case and their means as nnU-Net does.

    Scored are the label set's groups, as regions, if it has any; else every
    class but those left out of means and the one of value 0, the background.
    A label that a case has neither in truth nor in prediction is NaN there and
    skipped in the mean over cases. The counts are averaged over cases, too.

    Parameters
    ----------
    run : Run

    Returns
    -------
    str
        JSON, in which NaN stands bare.

    References
    ----------
    nnU-Net v2, ``nnunetv2/evaluation/evaluate_predictions.py``.
    """
    scored = _scored(run)
    cases: list[dict[str, Any]] = [
        {
            "metrics": _metrics_of(run, index, scored),
            "prediction_file": image.pred,
            "reference_file": image.truth,
        }
        for index, image in enumerate(run)
    ]
    means = {key: _mean([case["metrics"][key] for case in cases]) for key in scored}
    summary = {
        "foreground_mean": {
            name: float(np.mean([mean[name] for mean in means.values()]))
            for name in (next(iter(means.values())) if means else ())
        },
        "mean": means,
        "metric_per_case": cases,
    }
    return json.dumps(summary, indent=4, sort_keys=True) + "\n"


def _scored(run: Run) -> dict[str, list[int]]:
    """Classes of each label or region, by the values it has in the files."""
    classes = run.labels.classes
    if run.labels.groups:
        names = run.class_names
        regions = [[names.index(name) for name in group] for group in run.labels.groups.values()]
    else:
        regions = [[c] for c in np.flatnonzero(run.include).tolist() if classes[c].values != (0,)]
    keys = (tuple(value for c in region for value in classes[c].values) for region in regions)
    return {
        str(key[0] if len(key) == 1 else key): region
        for key, region in zip(keys, regions, strict=True)
    }


def _metrics_of(run: Run, index: int, scored: dict[str, list[int]]) -> dict[str, Any]:
    counts = run.tally(index).group_counts([*scored.values()])
    columns = {
        "Dice": ratio(2 * counts.tp, 2 * counts.tp + counts.fp + counts.fn),
        "IoU": metrics.iou(counts),
        "TP": counts.tp,
        "FP": counts.fp,
        "FN": counts.fn,
        "TN": counts.tn,
        "n_pred": counts.tp + counts.fp,
        "n_ref": counts.tp + counts.fn,
    }
    return {
        key: {name: column[at].item() for name, column in columns.items()}
        for at, key in enumerate(scored)
    }


def _mean(cases: list[dict[str, Any]]) -> dict[str, float]:
    """Mean over the cases in which a value is defined; NaN over none."""
    means = {}
    for name in cases[0]:
        values = np.array([case[name] for case in cases], dtype=np.float64)
        defined = values[~np.isnan(values)]
        means[name] = float(defined.mean()) if len(defined) else float("nan")
    return means
