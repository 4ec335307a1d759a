"""What needs an extra names it where the extra is not installed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import segiou
from segiou import geometry, plots
from segiou.cli.main import main

RUN = segiou.score([[[0, 1]], [[0, 0]]], [[[0, 1]], [[0, 1]]], labels=2)
CORNERS = [(0, 0), (1, 0), (1, 1)]

DATA_YAML = Path(__file__).parent / "labels" / "data.yaml"

EXTRAS = [
    ("pandas", "pandas", lambda folder: RUN.to_pandas()),
    ("pandas", "pandas", lambda folder: RUN.report().to_pandas()),
    ("pyarrow", "parquet", lambda folder: RUN.to_parquet(folder / "run.parquet")),
    ("matplotlib", "plot", lambda folder: plots.class_bars(RUN)),
    ("matplotlib", "plot", lambda folder: plots.save_plots(RUN, folder / "plots")),
    ("yaml", "yaml", lambda folder: segiou.load_labels(DATA_YAML)),
    ("shapely", "polygon", lambda folder: geometry.polygon_iou([CORNERS], [CORNERS])),
    ("fsspec.core", "remote", lambda folder: segiou.score_folder("s3://a", "s3://b", labels=2)),
]


@pytest.mark.parametrize(("module", "extra", "call"), EXTRAS)
def test_an_extra_that_is_missing_is_named(module, extra, call, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=rf"pip install 'segiou\[{extra}\]'"):
        call(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_cluster_without_dask(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "distributed", None)
    streets = Path(__file__).parents[1] / "fixtures" / "streets"
    command = ["score", f"{streets}/truth", f"{streets}/model_a", "--dask", "localhost:1"]
    assert main([*command, "--labels", f"{streets}/labels.toml"]) == 2
    assert "pip install 'segiou[dask]'" in capsys.readouterr().err
