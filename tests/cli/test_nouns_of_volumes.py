"""Errors and notes of options on volumes name cases and voxels, not images and pixels."""

from __future__ import annotations

import numpy as np
import pytest

from segiou.cli.main import main


@pytest.fixture(scope="module")
def volumes(tmp_path_factory):
    """A run of two volumes, one of four, and their metadata."""
    nibabel = pytest.importorskip("nibabel", reason="volumes need nibabel")
    folder = tmp_path_factory.mktemp("volumes")
    rng = np.random.default_rng(2)
    for side, wrong in (("truth", 0.0), ("pred", 0.2)):
        (folder / side).mkdir()
        for i in range(4):
            values = np.kron(np.arange(8).reshape(2, 2, 2) % 3, np.ones((3, 3, 3)))
            values = np.where(rng.random(values.shape) < wrong, 0, values).astype(np.uint8)
            nibabel.save(nibabel.Nifti1Image(values, np.eye(4)), folder / side / f"c{i}.nii")
    (folder / "few.txt").write_text("c0\nc1\n")
    rows = "".join(f"c{i},{'xy'[i % 2]}\n" for i in range(4))
    (folder / "meta.csv").write_text(f"id,site\n{rows}")
    score = ["score", f"{folder}/truth", f"{folder}/pred", "--labels", "3", "-q"]
    assert main([*score, "--run", f"{folder}/all.sqlite"]) == 0
    assert main([*score, "--ids", f"{folder}/few.txt", "--run", f"{folder}/few.sqlite"]) == 0
    return folder


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("report all.sqlite --group-by x --intervals", "every id needs a group"),
        ("report all.sqlite --slices meta.csv --fail-under mean_iou@site=z=0.5", "does not occur"),
        ("slices all.sqlite meta.csv --mix site:z=1", "does not occur"),
        ("report all.sqlite --baseline few.sqlite", "cases"),
        ("report all.sqlite --baseline few.sqlite --common", "2 cases compared, of 2 in the"),
        ("report few.sqlite --intervals --blocks 9", ""),
    ],
)
def test_no_images(volumes, capsys, monkeypatch, options, said):
    monkeypatch.chdir(volumes)
    main(options.split(" "))
    text = " ".join(capsys.readouterr().err.split())
    assert said in text
    assert "image" not in text
    assert "pixel" not in text


@pytest.mark.parametrize("metric", ["dice_cases", "iou_cases:1", "dice_pooled", "dice_cases,iou"])
def test_scores_of_cases_are_compared(volumes, capsys, metric):
    runs, page = [str(volumes / "all.sqlite")] * 2, volumes / "page.html"
    if "," not in metric:
        runs += ["--html", str(page), "--names", "a,b"]
    assert main(["compare", *runs, "--metric", metric, "--group-by", "none"]) == 0
    assert "over cases" in (text := capsys.readouterr().out) or "pooled Dice" in text
