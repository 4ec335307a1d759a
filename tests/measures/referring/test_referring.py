"""Referring segmentation by hand, and as ReLA's and LISA's own evaluators score it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from segiou.measures.referring import ReferringOptions
from segiou.scoring import Evaluator

FOLDER = Path(__file__).resolve().parents[4] / "shared" / "rules" / "referring"


def scores_of(pairs, **options):
    evaluator = Evaluator(2, measures=[ReferringOptions()], **options)
    for truth, pred in pairs:
        evaluator.update(truth, pred)
    report = evaluator.report()
    return {name: report.score(name) for name in ReferringOptions.score_names}


def mask(*ones):
    found = np.zeros((1, 10), np.uint8)
    found[0, list(ones)] = 1
    return found


def test_every_kind_of_expression():
    found = scores_of(
        [
            (mask(0, 1, 2, 3), mask(0, 1, 2)),  # IoU 3/4
            (mask(0, 1), mask()),  # missed: IoU 0, union 2
            (mask(), mask()),  # rightly nothing: IoU 1, adds to no sum
            (mask(), mask(5)),  # wrongly something: IoU 0, union 1
        ]
    )
    assert found["giou"] == (3 / 4 + 0 + 1 + 0) / 4
    assert found["ciou"] == 3 / (4 + 2 + 0 + 1)
    assert found["n_acc"] == found["t_acc"] == 1 / 2
    assert found["precision_70"] == 1 / 2
    assert found["precision_80"] == found["precision_90"] == 0


def test_without_targets_or_without_empty_truths_shares_are_undefined():
    assert np.isnan(scores_of([(mask(0), mask(0))])["n_acc"])
    assert np.isnan(scores_of([(mask(), mask(0))])["t_acc"])


def test_ignored_pixels_are_left_out():
    truth = mask(0, 1, 2)
    truth[0, 2] = 255
    assert scores_of([(truth, mask(0, 1, 2))], ignore=255)["giou"] == 1


def test_more_classes_need_a_target():
    with pytest.raises(ValueError, match="--referring-target"):
        Evaluator(3, measures=[ReferringOptions()]).update(mask(0), mask(0))
    evaluator = Evaluator(3, measures=[ReferringOptions((2,))])
    evaluator.update(2 * mask(0, 1), 2 * mask(1))
    assert evaluator.report().score("ciou") == 1 / 2


@pytest.mark.skipif(not FOLDER.is_dir(), reason="the masks are not beside this checkout")
@pytest.mark.parametrize("peer", ["rela_head_from_mask", "lisa"])
def test_masks_that_peers_scored(peer):
    expected = json.loads((FOLDER / "referring.json").read_text(encoding="utf-8"))["scores"][peer]
    with np.load(FOLDER / "referring.npz") as packed:
        number = len(packed.files) // 2
        pairs = [(packed[f"truth_{i:02}"], packed[f"pred_{i:02}"]) for i in range(number)]
    found = scores_of(pairs)
    names = {"gIoU": "giou", "cIoU": "ciou", "N_acc": "n_acc", "T_acc": "t_acc"}
    names |= {f"Pr@0.{t}": f"precision_{t}0" for t in (7, 8, 9)}
    for name, value in expected.items():
        in_per_cent = peer != "lisa" and not name.endswith("acc")
        # LISA adds 1e-5 to each union.
        tolerance = 1e-5 if peer == "lisa" else 1e-9
        assert found[names[name]] == pytest.approx(
            value / (100 if in_per_cent else 1), abs=tolerance
        )


@pytest.mark.parametrize("target", ["target", None, 1])
def test_the_target_is_a_sequence(target):
    with pytest.raises(TypeError, match="target must be classes"):
        ReferringOptions(target)
