"""``inspect`` lists exactly the values that ``score`` sees, in every format."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from hypothesis.extra import numpy as hnp
from PIL import Image

import segiou
from segiou.scoring import inspect_folder


def image(path, values):
    Image.fromarray(values).save(path)


def palette(path, values):
    picture = Image.fromarray(values)
    picture.putpalette([*range(256)] * 3)
    picture.save(path)


def npz(path, values):
    np.savez_compressed(path, values)


def points(path, values):
    objects = np.arange(values.size, dtype=np.uint32).reshape(values.shape) << 16
    (values.astype("<u4") | objects).tofile(path)


def lidarseg(path, values):
    values.tofile(path)


def nifti(path, values):
    nibabel = pytest.importorskip("nibabel")
    nibabel.save(nibabel.Nifti1Image(values[..., None], np.eye(4)), path)


def tiff(path, values):
    pytest.importorskip("tifffile").imwrite(path, values)


FORMATS = {
    **dict.fromkeys(("a.png", "a.bmp", "a.tif", "a.pgm"), image),
    "b.png": palette,
    "a.npy": np.save,
    "a.npz": npz,
    "a.label": points,
    "a_lidarseg.bin": lidarseg,
    "a.nii.gz": nifti,
    "b.tiff": tiff,
}
MASKS = hnp.arrays(np.uint8, st.tuples(st.integers(2, 5), st.integers(2, 5)))


@pytest.mark.parametrize("name", FORMATS)
@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(values=MASKS)
def test_inspect_lists_what_score_sees(tmp_path, name, values):
    for side in ("truth", "pred"):
        (tmp_path / side).mkdir(exist_ok=True)
        FORMATS[name](tmp_path / side / name, values)
    options = {"read_palette": "indices"}
    run = segiou.score_folder(tmp_path / "truth", tmp_path / "pred", labels=256, **options)
    seen = {value: int(n) for value, n in enumerate(run.counts.tp.sum(0)) if n}
    assert inspect_folder(tmp_path / "truth").values == seen
    assert seen == dict(zip(*map(list, np.unique(values, return_counts=True)), strict=True))
