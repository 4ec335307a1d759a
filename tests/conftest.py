"""What several test folders use."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from segiou.counting import count_pairs

CAMVID = Path(__file__).resolve().parents[2] / "shared" / "data" / "camvid"
CAMVID_CLASSES = (
    *("sky", "building", "pole", "road", "pavement", "tree"),
    *("sign", "fence", "car", "pedestrian", "bicyclist"),
)


def pytest_configure(config):
    config.addinivalue_line(
        "markers", "slow: statistical checks; small by default, full size with SEGIOU_SLOW=1"
    )


@pytest.fixture(scope="session")
def camvid_tables():
    """Counts (N, C, C + 1) per model, with ``ids`` and ``class_names``."""
    if not CAMVID.is_dir():
        pytest.skip("the CamVid masks are not beside this checkout")
    ids = sorted(path.stem for path in (CAMVID / "truth").glob("*.png"))
    truths = [np.asarray(Image.open(CAMVID / "truth" / f"{name}.png")) for name in ids]
    tables = {"ids": ids, "class_names": CAMVID_CLASSES}
    for model in ("small", "base"):
        preds = (np.asarray(Image.open(CAMVID / model / f"{name}.png")) for name in ids)
        tables[model] = np.stack(
            [count_pairs(t, p, 11, ignore=11) for t, p in zip(truths, preds, strict=True)]
        )
    return tables
