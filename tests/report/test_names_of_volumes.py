"""Law: findings on volumes call images cases, and names stay as they are."""

from __future__ import annotations

from pathlib import Path

import pytest

import segiou
from segiou.report.pages.comparison_page import write_comparison_html

VOLUMES = Path(__file__).parents[2] / "fixtures" / "volumes"
PLAIN = ("m1", "m2", "m3")
HOSTILE = ("pixel decoder", "image encoder", "Images of pixels")


@pytest.fixture(scope="module")
def runs():
    pytest.importorskip("nibabel")
    folders = [VOLUMES / name for name in ("model_a", "model_b", "model_b")]
    labels = VOLUMES / "dataset.json"
    return [segiou.score_folder(VOLUMES / "truth", one, labels=labels) for one in folders]


FINDINGS = {
    "comparison": lambda runs, names: segiou.compare(*runs[:2], names=names[:2], groups="none"),
    "units": lambda runs, names: segiou.compare(*runs[:2], names=names[:2]),
    "recipes": lambda runs, names: segiou.compare(
        dict(zip(names, ([runs[0]], runs[1:]), strict=False)), groups="none"
    ),
    "three": lambda runs, names: segiou.compare(*runs, names=names, resamples=100),
    "ranking": lambda runs, names: segiou.rank(dict(zip(names, runs, strict=True)), groups="none"),
    "several scores": lambda runs, names: segiou.analysis.compare_scores(
        *runs[:2], metrics=["iou", "dice"], names=names[:2], groups="none"
    ),
}


def texts_of(found):
    yield found.to_markdown()
    yield found.to_latex()
    yield found.to_text(500).replace("─", "")
    yield repr(found)
    if hasattr(found, "sentences"):
        yield "\n".join(found.sentences())


@pytest.mark.parametrize("kind", FINDINGS)
def test_names_are_not_rewritten(kind, runs):
    plain, hostile = (texts_of(FINDINGS[kind](runs, names)) for names in (PLAIN, HOSTILE))
    for one, other in zip(plain, hostile, strict=True):
        for short, name in zip(PLAIN, HOSTILE, strict=True):
            other = other.replace(name, short)
        assert other.split() == one.split()
        assert "images" not in one and "pixels" not in one


def test_columns_of_metadata_are_not_rewritten(runs):
    kinds = [
        {"id": id, "image pixel": "image" if i % 2 else "pixel"} for i, id in enumerate(runs[0].ids)
    ]
    found = segiou.slices(*runs[:2], by=kinds, groups="none")
    text = found.to_markdown()
    assert "image pixel=image" in text and "image pixel=pixel" in text
    assert "| cases |" in text and "The rest are the other cases" in text


def test_the_page_keeps_names(runs, tmp_path):
    found = segiou.compare(*runs[:2], names=HOSTILE[:2], groups="none")
    path = tmp_path / "page.html"
    write_comparison_html(path, found, *runs[:2])
    page = path.read_text(encoding="utf-8")
    assert "pixel decoder" in page and "image encoder" in page
    assert "voxel decoder" not in page and "case encoder" not in page


def test_notebooks_name_arguments_and_keep_names():
    ids = [f"drive_{i:04d}" for i in range(60)]
    truth = [[[0, 0, 1, 1]]] * 60
    preds = ([[[0, i % 2, 1, 1]] for i in range(60)], [[[0, 0, 1, i % 3 > 0]] for i in range(60)])
    runs = [segiou.score(truth, pred, labels=2, ids=ids) for pred in preds]
    found = segiou.compare(*runs, names=("new", "--group-by image"), blocks=8)
    page = found._repr_html_()
    assert "--group-by none" in found.to_markdown() and "--group-by none" not in page
    assert "groups=&#x27;none&#x27;" in page and "--group-by image" in page
