"""Rows of docs/coming-from.md: calls of another tool and of segiou have the same value."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from deletable import deleted_in

import segiou

PAGE = (Path(__file__).parents[2] / "docs" / "coming-from.md").read_text("utf-8")
SECTIONS = re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]
#: Both cells are one call each.
ROW = re.compile(r"^\| `([^`]+)` \| `([^`]+)` \|", re.MULTILINE)
MODULES = {
    "scikit-learn": ("sklearn.metrics",),
    "torchmetrics": ("torchmetrics.classification", "torchmetrics.segmentation"),
    "MONAI": ("monai.metrics",),
}
ROWS = [
    (section.partition("\n")[0], theirs, ours)
    for section in SECTIONS
    for theirs, ours in ROW.findall(section)
]
RUN = [row for row in ROWS if row[0] in MODULES and not row[1].startswith("metric.")]
#: Calls of segiou whose counterpart is no Python call of an installable package.
OURS = sorted(
    set(re.findall(r"`((?:run|segiou)\.(?:report|score)\([^`…]*\)\.[^`]*)`", PAGE))
    - {ours for _, _, ours in RUN}
)


def masks():
    """The masks of the page."""
    code = re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)[1]
    names: dict = {}
    exec("\n".join(line[4:] for line in code.splitlines() if line.startswith(">>> ")), names)
    return names


def averaged(metric, pred, truth):
    metric(pred, truth)
    return metric.aggregate().item()


def hd95(run):
    return np.mean([row["hausdorff_95"] for row in run.counts_of("surfaces")])


def tensors_of(tool, names, peer):
    """The masks as the section says."""
    if tool == "scikit-learn":
        return names["truth"].ravel(), names["pred"].ravel()
    torch = peer("torch")
    both = (torch.tensor(names[side]) for side in ("truth", "pred"))
    if tool == "torchmetrics":
        return (*both,)
    return tuple(torch.nn.functional.one_hot(one, 3).movedim(-1, 1).float() for one in both)


@pytest.mark.parametrize(("tool", "theirs", "ours"), RUN, ids=lambda text: text[:40])
def test_calls_have_the_same_value(tool, theirs, ours, peer):
    if deleted_in(ours):
        pytest.skip("needs a deleted folder")
    names = masks()
    for module in MODULES[tool]:
        names |= {name: one for name, one in vars(peer(module)).items() if name[0] != "_"}
    t, p = tensors_of(tool, names, peer)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = eval(theirs, names | {"t": t, "p": p, "averaged": averaged})
    wanted = eval(ours, names | {"hd95": hd95})
    assert np.asarray(found) == pytest.approx(np.asarray(wanted), abs=2e-6)


@pytest.mark.parametrize("ours", OURS)
def test_other_calls_have_values(ours):
    assert 0 < float(eval(ours, masks())) <= 1


def test_every_tool_has_a_table():
    tools = [section.partition("\n")[0] for section in SECTIONS]
    assert tools == [
        *("scikit-learn", "torchmetrics", "MONAI", "mmsegmentation", "nnU-Net", "Ultralytics"),
    ]
    assert len(RUN) == 26 and len(OURS) == 7


def test_value_0_of_the_truth_is_ignored_and_predictions_start_at_0():
    # reduce_zero_label: the truth is (ignored), 0, 1, 1.
    truth, pred = np.array([[[0, 1, 2, 2]]]), np.array([[[1, 0, 1, 0]]])
    by_index = {"labels": "1-2", "ignore": 0, "pred_labels": "0-1"}
    names = {"labels": "ade20k", "pred_labels": "ade20k-index"}
    for options, shift in ((by_index, 0), (names, 0), ({"labels": "ade20k"}, 1)):
        report = segiou.score(truth, pred + shift, **options).report("mmsegmentation")
        assert report.mean_iou == (1 / 2 + 1 / 2) / 2
        assert report.mean_accuracy == (1 / 1 + 1 / 2) / 2
        assert report.ignored == 1
