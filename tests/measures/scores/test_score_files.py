"""Folders of score files: formats, axes, one file per class, and what is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest
from PIL import Image

import segiou
from segiou import MaskError
from segiou.cli.main import main
from segiou.measures.scores import ScoreOptions
from segiou.measures.scores.files import ScoreShape

RNG = np.random.default_rng(4)
TRUTH = RNG.integers(0, 3, (3, 9, 12)).astype(np.uint8)
LOGITS = RNG.normal(size=(3, 3, 9, 12)) + 2 * np.moveaxis(np.eye(3)[TRUTH], -1, 1)
SCORES = (np.exp(LOGITS) / np.exp(LOGITS).sum(1, keepdims=True)).astype(np.float32)
BYTES = np.rint(SCORES * 255).astype(np.uint8)


@pytest.fixture
def folder(tmp_path):
    """Truth masks of three images, and an empty folder for scores."""
    for name in ("truth", "scores"):
        (tmp_path / name).mkdir()
    for i, truth in enumerate(TRUTH):
        Image.fromarray(truth).save(tmp_path / "truth" / f"im{i}.png")
    return tmp_path


def written(folder, write, arrays=SCORES):
    for i, array in enumerate(arrays):
        write(folder / "scores" / f"im{i}", array)
    return folder


def npy(path, array):
    np.save(path.with_suffix(".npy"), array)


def scored(folder, *, labels=3, **options):
    how = ScoreOptions(bins=64, **options)
    return segiou.score_folder(folder / "truth", folder / "scores", labels=labels, measures=[how])


def wanted(arrays=SCORES):
    return segiou.ScoreHistogram(3, bins=64).update(TRUTH, arrays)


def counts_of(run):
    return segiou.ScoreHistogram.of_run(run).counts.tolist()


def last(array):
    return np.moveaxis(array, 0, -1)


@pytest.mark.parametrize(
    ("write", "arrays"),
    [
        (npy, SCORES),
        (lambda path, array: npy(path, last(array)), SCORES),
        (lambda path, array: npy(path, array), BYTES),
        (lambda path, array: np.savez_compressed(path.with_suffix(".npz"), array), SCORES),
        (
            lambda path, array: np.savez(path.with_suffix(".npz"), other=1, probabilities=array),
            SCORES,
        ),
    ],
    ids=["first axis", "last axis", "uint8", "npz", "nnU-Net"],
)
def test_arrays_of_files(folder, write, arrays):
    run = scored(written(folder, write, arrays))
    assert counts_of(run) == wanted(arrays).counts.tolist()
    plain = segiou.ConfusionMatrix(3).update(TRUTH, arrays, argmax=1)
    assert (run.total().matrix == plain.matrix).all()


def test_tiff(folder):
    tifffile = pytest.importorskip("tifffile")
    for write in (
        lambda path, array: tifffile.imwrite(
            path.with_suffix(".tif"), array, photometric="minisblack"
        ),
        lambda path, array: tifffile.imwrite(
            path.with_suffix(".tif"), last(array), planarconfig="contig", photometric="minisblack"
        ),
    ):
        assert counts_of(scored(written(folder, write))) == wanted().counts.tolist()


def test_nifti(tmp_path):
    nib = pytest.importorskip("nibabel")
    truth = RNG.integers(0, 2, (5, 6, 7)).astype(np.uint8)
    scores = RNG.random((5, 6, 7, 2)).astype(np.float32)
    for name, array, affine in (
        ("truth", truth, np.eye(4)),
        ("scores", scores, np.eye(4)),
        ("moved", scores, np.diag([2, 2, 2, 1])),
    ):
        (tmp_path / name).mkdir()
        nib.save(nib.Nifti1Image(array, affine), tmp_path / name / "case.nii.gz")
    run = scored(tmp_path, labels=2)
    found = segiou.ScoreHistogram(2, bins=64).update(truth, scores, axis=-1)
    assert counts_of(run) == found.counts.tolist()
    with pytest.raises(segiou.DataError, match="spacing"):
        segiou.score_folder(tmp_path / "truth", tmp_path / "moved", labels=2, measures=["scores"])


@pytest.mark.parametrize("pattern", ["{id}_{class}", "{class}/{id}"])
@pytest.mark.parametrize("names", ["012", ("sky", "road", "car")])
def test_one_file_per_class(folder, pattern, names):
    for i, image in enumerate(BYTES):
        for name, plane in zip(names, image, strict=True):
            filled = pattern.replace("{id}", f"im{i}").replace("{class}", name)
            path = folder / "scores" / f"{filled}.png"
            path.parent.mkdir(exist_ok=True)
            Image.fromarray(plane).save(path)
    labels = list(names) if names != "012" else 3
    run = scored(folder, labels=labels, files=pattern)
    assert counts_of(run) == wanted(BYTES).counts.tolist()
    assert run.ids == ("im0", "im1", "im2")
    path.unlink()
    with pytest.raises(ValueError, match="im2 has no file for"):
        scored(folder, labels=labels, files=pattern)


def test_one_class_as_16_bit_images(folder):
    values = np.rint(SCORES[:, 1] * 65535).astype(np.uint16)
    for i, plane in enumerate(values):
        Image.fromarray(plane).save(folder / "scores" / f"im{i}.png")
        Image.fromarray((TRUTH[i] == 1).astype(np.uint8)).save(folder / "truth" / f"im{i}.png")
    run = scored(folder, labels=2, threshold=0.5)
    found = segiou.ScoreHistogram(2, bins=64).update(TRUTH == 1, values, axis=None)
    assert counts_of(run) == found.counts.tolist()
    plain = segiou.ConfusionMatrix(2).update(TRUTH == 1, values / 65535, threshold=0.5)
    assert (run.total().matrix == plain.matrix).all()
    with pytest.raises(segiou.DataError, match="--threshold"):
        scored(folder, labels=2)


def test_the_axis_is_not_guessed(tmp_path):
    for name in ("truth", "scores"):
        (tmp_path / name).mkdir()
    truth = RNG.integers(0, 3, (3, 3)).astype(np.uint8)
    scores = RNG.random((3, 3, 3))
    Image.fromarray(truth).save(tmp_path / "truth" / "a.png")
    np.save(tmp_path / "scores" / "a.npy", scores)
    with pytest.raises(segiou.DataError, match=r"first and the last.*--scores-axis"):
        scored(tmp_path)
    for axis, at in (("first", 0), ("last", -1)):
        found = segiou.ScoreHistogram(3, bins=64).update(truth, scores, axis=at)
        assert counts_of(scored(tmp_path, axis=axis)) == found.counts.tolist()


def test_the_command(folder, capsys):
    run = folder / "run.sqlite"
    written(folder, npy, LOGITS)
    words = ["score", folder / "truth", folder / "scores", "--labels", 3, "--quiet"]
    words = [*map(str, words)]
    assert main([*words, "--scores=softmax", "--run", str(run), "--format", "json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["score_histograms"]["options"]["activation"] == "softmax"
    precise = segiou.ScoreHistogram(3).update(TRUTH, LOGITS, activation="softmax")
    rows = report["scores"]["average_precision"]["rows"]
    assert rows["2"]["value"] == precise.average_precision()[2]
    assert main([*words, "--scores=softmax", "--run", str(run), "--processes", "2"]) == 0
    assert "AUROC" in capsys.readouterr().out
    assert "scores" in segiou.Run.open(run).plans[0].key
    assert main([*words, "--scores"]) == 3
    told = capsys.readouterr().err
    assert "outside [0, 1]" in told and "--scores=softmax" in told
    assert main([*words, "--scores=softmax", "--scores-bins", "many"]) == 2
    assert main([*words, "--threshold", "0.5"]) == 2
    assert "needs --scores" in capsys.readouterr().err
    assert main([*words, "--scores=softmax", "--scores-bins=float16"]) == 0
    assert "half-precision" in capsys.readouterr().out


def test_shards_merge(folder):
    written(folder, npy, LOGITS)
    words = [str(folder / "truth"), str(folder / "scores"), "--labels", "3", "--quiet"]
    words = ["score", *words, "--scores=softmax", "--scores-regions"]
    shards = [str(folder / f"{i}.sqlite") for i in (1, 2)]
    for i, shard in enumerate(shards, 1):
        assert main([*words, "--run", shard, "--shard", f"{i}/2"]) == 0
    assert main(["merge", *shards, "-o", str(folder / "all.sqlite"), "--quiet"]) == 0
    found = segiou.ScoreHistogram.of_run(segiou.Run.open(folder / "all.sqlite"))
    whole = segiou.ScoreHistogram(3, regions=True).update(TRUTH, LOGITS, activation="softmax")
    assert (found.counts == whole.counts).all()
    assert (found.aupro() == whole.aupro()).all()


def test_refused(folder):
    problems = {
        "needs? .*first": lambda path, array: npy(path, array[:2]),
        "int64": lambda path, array: npy(path, array.astype(int)),
        "contain 2 arrays": lambda path, array: np.savez(path.with_suffix(".npz"), array, array),
        "corrupt or unsafe": lambda path, array: path.with_suffix(".npy").write_bytes(
            b"\x93NUMPY\1\0"
        ),
        "mode RGB": lambda path, array: Image.fromarray(
            last((array * 255).astype(np.uint8)).copy()
        ).save(path.with_suffix(".png")),
        "NaN": lambda path, array: npy(path, array * np.nan),
        "one score per pixel": lambda path, array: npy(path, array[0]),
    }
    for text, write in problems.items():
        for old in (folder / "scores").iterdir():
            old.unlink()
        with pytest.raises(segiou.DataError, match=text):
            scored(written(folder, write))
    with pytest.raises(ValueError, match="class"):
        ScoreOptions(files="{id}")
    with pytest.raises(ValueError, match="axis"):
        ScoreOptions(axis="second")


def test_a_threshold_of_three_classes(folder):
    with pytest.raises(segiou.DataError, match="have scores of 3 classes, but a threshold"):
        scored(written(folder, npy), threshold=0.5)


def test_a_number_in_place_of_channels_of_groups():
    wanted = ScoreShape((2, 2), 3, other=2, hint="pass channels='groups'")
    with pytest.raises(MaskError, match=r"has shape \(\), but 3 classes and truth \(2, 2\) need"):
        wanted.axis_of((), "scores.npy")


def test_one_score_per_pixel_in_an_array_named_probabilities(tmp_path):
    # Its rows are not channels: their sums, 1.2 and 0.5, say nothing about its classes.
    for side in ("truth", "scores"):
        (tmp_path / side).mkdir()
    Image.fromarray(np.array([[1, 0], [0, 0]], np.uint8)).save(tmp_path / "truth" / "a.png")
    np.savez(tmp_path / "scores" / "a.npz", probabilities=np.array([[0.9, 0.4], [0.3, 0.1]]))
    run = scored(tmp_path, labels=2, threshold=0.35)
    assert run.total().matrix.tolist() == [[2, 1], [0, 1]]


@pytest.mark.parametrize(
    ("activation", "channels"), [("sigmoid", 1), ("sigmoid", 2), ("softmax", 2)]
)
def test_a_threshold_of_logits_is_a_probability(tmp_path, activation, channels):
    """0.3 was compared with the logits, and the channel of the first class was not read."""
    for side in ("truth", "scores"):
        (tmp_path / side).mkdir()
    Image.fromarray(np.array([[1, 1, 0, 0]], np.uint8)).save(tmp_path / "truth" / "a.png")
    # Probabilities 0.5, 0.33, 0.27 and 0.05 of the second class.
    logits = np.array([[0, -0.7, -1, -3]])
    first = np.zeros_like(logits)
    if activation == "softmax":
        logits, first = logits + 5, first + 5
    np.save(tmp_path / "scores" / "a.npy", logits if channels == 1 else np.stack([first, logits]))
    for threshold, pixels in ((0.3, [2, 0]), (0.6, [0, 0]), (0.2, [2, 1]), (0.49, [1, 0])):
        run = scored(tmp_path, labels=2, activation=activation, threshold=threshold)
        assert run.total().matrix[:, 1].tolist() == pixels[::-1], threshold


def test_a_threshold_of_logits_outside_0_to_1_is_refused():
    for threshold in (0, 1, -0.5, 3):
        with pytest.raises(ValueError, match=r"between 0 and 1 with sigmoid, .* logit 0 is 0\.5"):
            ScoreOptions("sigmoid", threshold=threshold)


def test_pages_show_what_was_counted(folder):
    run = scored(written(folder, npy))
    page = run.to_html()
    assert "No pictures: " not in page
    assert page.count("data:image") >= 3


@pytest.mark.parametrize(("most", "dtype"), [(100, np.uint8), (1000, ">u2")])
def test_a_pgm_declares_its_maximum(tmp_path, most, dtype):
    scores = np.array([[most // 4, most // 2, most]], dtype)
    for side in ("truth", "pred"):
        (tmp_path / side).mkdir()
    Image.fromarray(np.array([[0, 1, 1]], np.uint8)).save(tmp_path / "truth" / "a.png")
    header = b"P5\n3 1\n%d\n" % most
    (tmp_path / "pred" / "a.pgm").write_bytes(header + scores.tobytes())
    how = {"labels": 2, "measures": [ScoreOptions(threshold=0.4)]}
    run = segiou.score_folder(tmp_path / "truth", tmp_path / "pred", **how)
    counts = run.counts_of("scores").counts[1]
    assert np.flatnonzero(counts.sum(-1)).tolist() == [1024, 2048, 4095]
    assert run.total().matrix.tolist() == [[1, 0], [0, 2]]
