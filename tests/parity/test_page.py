"""The table of docs/why-another-number.md, against the masks it was made from."""

from pathlib import Path

import numpy as np
import pytest

from segiou import metrics
from segiou._support.numbers import percent
from segiou.counting import ConfusionCounts, count_pairs
from segiou.metrics.protocols import PROTOCOLS

PAGE = Path(__file__).parents[2] / "docs" / "why-another-number.md"
CAMVID = Path(__file__).parents[2].parent / "shared" / "data" / "camvid"


def table():
    """Protocol → its three figures, in per cent."""
    rows = {}
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| `"):
            for name in cells[0].replace("`", "").split(", "):
                rows[name] = cells[3:]
    return rows


def test_every_protocol_is_in_the_table():
    assert set(table()) == set(PROTOCOLS)


def test_figures_of_the_case(void_case):
    for name, (figure, *_) in table().items():
        assert percent(void_case.mean_iou(name)) == figure, name


@pytest.mark.skipif(not CAMVID.is_dir(), reason="the CamVid masks are not there")
@pytest.mark.parametrize(("column", "model"), [(1, "small"), (2, "base")])
def test_figures_of_camvid(column, model):
    from PIL import Image

    tables = []
    for path in sorted((CAMVID / "truth").glob("*.png")):
        truth, pred = (np.asarray(Image.open(CAMVID / d / path.name)) for d in ("truth", model))
        tables.append(count_pairs(truth, pred, 11, ignore=11))
    per_image = ConfusionCounts(np.array(tables), np.zeros(len(tables), int)).counts
    for name, figures in table().items():
        mean = PROTOCOLS[name].mean(metrics.iou, per_image.summed(), per_image=per_image)
        assert percent(mean.value) == figures[column], name
