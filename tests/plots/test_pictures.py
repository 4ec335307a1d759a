"""The page of plots has a row and a picture for every kind, and little to load."""

import importlib.util
from pathlib import Path

import pytest

pyplot = pytest.importorskip("matplotlib.pyplot")

DOCS = Path(__file__).parents[2] / "docs"


def kinds():
    from segiou.plots.kinds import (
        _OF_COMPARISONS,
        _OF_RANKINGS,
        _OF_REPORTS,
        _OF_SCORES,
        _OF_SLICES,
    )

    return {
        *_OF_REPORTS,
        *_OF_COMPARISONS,
        *_OF_RANKINGS,
        *_OF_SCORES,
        *_OF_SLICES,
        "overlay",
        "panel",
    }


def test_every_kind_has_a_row_and_a_picture():
    lines = (DOCS / "plots.md").read_text(encoding="utf-8").splitlines()
    rows = {line.split("`")[1]: line for line in lines if line.startswith("| `")}
    assert set(rows) == kinds()
    for kind, row in rows.items():
        assert f"](images/plots/{kind}.png)" in row
    pictures = list((DOCS / "images" / "plots").iterdir())
    assert {path.stem for path in pictures} == kinds()
    assert sum(path.stat().st_size for path in pictures) < 220_000


@pytest.mark.needs("measures.surfaces", "measures.volume")
def test_the_script_draws_every_kind():
    pytest.importorskip("nibabel", reason="a picture is of volumes")
    spec = importlib.util.spec_from_file_location("_pictures", DOCS / "_pictures.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    drawings = module.drawings()
    assert set(drawings) == kinds()
    for draw in drawings.values():
        figure = draw().figure
        assert all(axes.has_data() for axes in figure.axes)
        pyplot.close(figure)
