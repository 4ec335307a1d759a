"""Arrays that may be channels of the classes are not counted as label maps."""

from __future__ import annotations

import numpy as np
import pytest

import segiou
from segiou.counting import count_pairs
from segiou.counting.one_hot import OneHotError
from segiou.hooks.evaluate import mean_iou
from segiou.labels import LabelClass
from segiou.scoring import Evaluator

RNG = np.random.default_rng(8)
TRUTH = RNG.integers(0, 4, (8, 10))
PRED = np.where(RNG.random((8, 10)) < 0.7, TRUTH, 3)
WANTED = count_pairs(TRUTH, PRED, 4)[:, :4].tolist()


def channels(labels, axis, dtype=np.uint8):
    return np.moveaxis(np.eye(4, dtype=dtype)[labels], -1, axis)


def update(t, p, **how):
    return segiou.ConfusionMatrix(4).update(t, p, **how).matrix.tolist()


def scored(t, p, argmax=None):
    """One image in a list, which is the first axis of the batch."""
    axis = argmax if argmax is None or argmax < 0 else argmax + 1
    return segiou.score([t], [p], labels=4, argmax=axis).total().matrix.tolist()


COUNTERS = {
    "update": update,
    "count": lambda t, p, **how: segiou.ConfusionMatrix(4).count(t, p, **how).table[:, :4].tolist(),
    "score": scored,
}


@pytest.mark.parametrize("name", COUNTERS)
@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int64, np.float32])
def test_the_error_names_the_option_and_the_option_counts(name, axis, dtype):
    sides = channels(TRUTH, axis, dtype), channels(PRED, axis, dtype)
    text = rf"argmax={axis}, which decides both sides, .* segiou\.ChannelCounts\(4\)\.update"
    with pytest.raises(OneHotError, match=text):
        COUNTERS[name](*sides)
    assert COUNTERS[name](*sides, argmax=axis) == WANTED
    assert COUNTERS[name](TRUTH, sides[1], argmax=axis) == WANTED
    assert COUNTERS[name](*(side.argmax(axis) for side in sides)) == WANTED


@pytest.mark.parametrize("name", COUNTERS)
def test_scores_decide_what_truth_of_two_classes_is(name):
    truth = np.zeros((4, 2, 3), np.int64)  # as many images as classes, of which two occur
    truth[0, 0] = 1
    scores = channels(np.ones_like(truth), 1, np.float32)
    matrix = COUNTERS[name](truth, scores, argmax=1)
    assert matrix == [[0, 21, 0, 0], [0, 3, 0, 0], [0] * 4, [0] * 4]


def test_batches_and_pixels_in_rows():
    sides = [channels(np.stack([side] * 2), 1) for side in (TRUTH, PRED)]
    with pytest.raises(OneHotError, match="argmax=1,"):
        update(*sides)
    assert np.array_equal(update(*sides, argmax=1), 2 * np.array(WANTED))
    rows = [np.eye(4)[side.ravel()] for side in (TRUTH, PRED)]
    with pytest.raises(OneHotError, match="argmax=1,"):
        update(*rows)


def test_every_other_door():
    sides = channels(TRUTH, 0), channels(PRED, 0)
    with pytest.raises(OneHotError):
        count_pairs(*sides, 4)
    with pytest.raises(OneHotError):
        mean_iou([sides[1]], [sides[0]], num_labels=4, ignore_index=255)
    with pytest.raises(OneHotError):
        Evaluator(labels=4).update([sides[0]], [sides[1]])


def test_overlapping_channels():
    """As TC, WT and ET of BraTS: each in the next."""
    whole = RNG.random((9, 10)) < 0.6
    truth = np.stack([whole & (RNG.random(whole.shape) < 0.7), whole, whole & (TRUTH[0, 0] < 9)])
    with pytest.raises(OneHotError, match=r"ChannelCounts\(3\)\.update\(truth, pred, axis=0\)"):
        segiou.ConfusionMatrix(3).update(truth, truth[::-1])
    assert segiou.ChannelCounts(3).update(truth, truth, axis=0).counts.fp.tolist() == [0, 0, 0]
    with pytest.raises(ValueError, match="not one-hot along axis 0; for channels that may overlap"):
        segiou.ConfusionMatrix(3).update(truth, truth, argmax=0)


def test_label_maps_are_counted():
    pair = np.array([[[0, 1], [1, 0]], [[0, 0], [1, 1]]])
    batch = np.concatenate([pair, pair])
    assert sum(map(sum, update(np.where(batch == 1, 3, 0), batch))) == 16
    assert update(batch, batch) == [[8, 0, 0, 0], [0, 8, 0, 0], [0] * 4, [0] * 4]
    columns = np.moveaxis(batch, 0, -1)
    with pytest.raises(OneHotError, match=r"argmax=-1, .*for label maps, pass truth\.ravel\(\)"):
        update(columns, columns)
    assert update(columns.ravel(), columns.ravel())[1][1] == 8
    assert update(batch[0], batch[0])[1][1] == 2
    assert segiou.ConfusionMatrix(2).update(pair, pair).matrix.tolist() == [[4, 0], [0, 4]]
    assert segiou.ConfusionMatrix(3).update([[0, 0, 1]], [[0, 1, 1]]).pixels == 3


@pytest.mark.few(5)
@pytest.mark.filterwarnings("ignore:bool arrays of shape")
@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint16, np.int64])
@pytest.mark.parametrize("classes", [2, 3, 4, 5])
def test_batches_of_as_many_images_as_classes(classes, dtype):
    """Images of which two classes occur, with objects, without, or of a single class."""
    rng = np.random.default_rng(classes)
    cm = segiou.ConfusionMatrix(classes)
    for _ in range(100):
        truth = rng.integers(0, 2, (classes, 9, 11))
        truth[:, rng.integers(9) :] = 0
        whole = rng.integers(0, 4, classes)
        truth[whole < 2] = whole[whole < 2, None, None]
        pred = np.where(rng.random(truth.shape) < rng.choice([0, 0.1]), 1 - truth, truth)
        before, found = cm.matrix.copy(), truth.astype(dtype)
        wanted = np.bincount((2 * truth + pred).ravel(), minlength=4).reshape(2, 2)
        cm.update(found, pred.astype(dtype))
        assert np.array_equal((cm.matrix - before)[:2, :2], wanted)
    assert cm.matrix[:2, :2].sum() == cm.pixels == 100 * classes * 99


def test_one_side_alone_is_hinted_at():
    with pytest.raises(ValueError, match=r"If truth is one-hot, pass truth\.argmax\(0\)"):
        update(channels(TRUTH, 0), PRED)
    with pytest.raises(ValueError, match="If pred is one-hot or contains scores, pass argmax=0"):
        update(TRUTH, channels(PRED, 0))
    with pytest.raises(TypeError, match=r"truth is one-hot along axis 0 .*truth\.argmax\(0\)"):
        update(channels(TRUTH, 0, np.float32), PRED)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_an_axis_of_size_1_is_named_with_the_index_that_drops_it(axis):
    longer = np.expand_dims(PRED, axis)
    for sides, name in (((TRUTH, longer), "pred"), ((longer, PRED), "truth")):
        with pytest.raises(ValueError, match=f"axis {axis} of {name} has size 1") as raised:
            update(*sides)
        index = str(raised.value).rpartition(name)[2]
        assert eval(f"longer{index}", {"longer": longer}).shape == PRED.shape


def test_tensors():
    torch = pytest.importorskip("torch")
    sides = [torch.from_numpy(channels(side, 0)) for side in (TRUTH, PRED)]
    with pytest.raises(OneHotError):
        update(*sides)
    assert update(*sides, argmax=0) == WANTED


def test_a_folder_of_arrays(tmp_path):
    for side, labels in (("truth", TRUTH), ("pred", PRED)):
        (tmp_path / side).mkdir()
        for name in "ab":
            np.save(tmp_path / side / f"{name}.npy", channels(labels, 0))
    folders = tmp_path / "truth", tmp_path / "pred"
    unclear = r"2 files .* have shape \(4, 8, 10\), which may be .* save array\.argmax\(AXIS\)"
    with pytest.raises(segiou.DataError, match=unclear):
        segiou.score_folder(*folders, labels=4)
    text = r"2 files .* have shape \(4, 8, 10\) and no values .* save array\.argmax\(0\) of both"
    with pytest.raises(segiou.DataError, match=text):
        segiou.score_folder(*folders, labels=4, array_axes="zyx")


class Chunked:
    """An array in chunks, as dask and zarr have them."""

    def __init__(self, values):
        self.values, self.shape, self.dtype = values, values.shape, values.dtype
        self.chunks = (2, *values.shape[1:])

    def __getitem__(self, window):
        return self.values[window]


@pytest.mark.parametrize("axis", [0, -1])
def test_arrays_in_chunks(axis):
    sides = [Chunked(channels(side, axis)) for side in (TRUTH, PRED)]
    with pytest.raises(OneHotError, match=f"argmax={axis},"):
        segiou.score([sides[0]], [sides[1]], labels=4)
    overlapping = Chunked(channels(TRUTH, axis) | channels(PRED, axis))
    with pytest.raises(OneHotError):
        segiou.score([overlapping], [sides[1]], labels=4)
    rows = Chunked(np.eye(4, dtype=int)[TRUTH.ravel()])
    with pytest.raises(OneHotError, match="argmax=1,"):
        segiou.score([rows], [rows], labels=4)
    labels = [Chunked(side) for side in (TRUTH, PRED)]
    assert segiou.score([labels[0]], [labels[1]], labels=4).total().matrix.tolist() == WANTED
    # Labels with as many rows as classes, of which only two occur.
    two = Chunked(TRUTH[:4] % 2)
    assert segiou.score([two], [two], labels=4).total().pixels == 40


def test_large_files_in_windows(tmp_path, monkeypatch):
    for side, labels in (("truth", TRUTH), ("pred", PRED)):
        (tmp_path / side).mkdir()
        np.save(tmp_path / side / "a.npy", channels(labels, 0))
    monkeypatch.setattr("segiou.masks.read.WHOLE_PIXELS", 8)
    monkeypatch.setattr("segiou.scoring.open_mask._BIG_BYTES", 8)
    folders = tmp_path / "truth", tmp_path / "pred"
    with pytest.raises(segiou.DataError, match=r"save array\.argmax\(0\) of both"):
        segiou.score_folder(*folders, labels=4, array_axes="zyx")


@pytest.mark.gate
def test_compiled_counts_show_it():
    jax = pytest.importorskip("jax")
    from segiou.hooks.jax import PixelCounter

    counter = PixelCounter(4)
    sides = [np.tile(channels(side, -1), (4, 1, 1)) for side in (TRUTH, PRED)]
    state = jax.jit(counter.update)(counter.init(), *sides)
    with pytest.warns(UserWarning, match="look like those of one-hot arrays"):
        counter.counts(state)


class TestTwoClasses:
    """Two classes: label maps also contain only 0 and 1."""

    LABELS = RNG.integers(0, 2, (3, 8, 10))
    WRONG = np.where(RNG.random(LABELS.shape) < 0.1, 1 - LABELS, LABELS)

    def sides(self, axis, dtype=np.uint8):
        return [
            np.moveaxis(np.eye(2, dtype=dtype)[side], -1, axis)
            for side in (self.LABELS, self.WRONG)
        ]

    @pytest.mark.parametrize("axis", [0, 1, -1])
    @pytest.mark.parametrize("dtype", [bool, np.uint8, np.int64])
    def test_one_hot_pairs_are_not_counted_as_labels(self, axis, dtype):
        cm = segiou.ConfusionMatrix(2)
        with pytest.raises(OneHotError, match=f"argmax={axis}, which decides both sides"):
            cm.update(*self.sides(axis, dtype))
        wanted = np.bincount((2 * self.LABELS + self.WRONG).ravel(), minlength=4).reshape(2, 2)
        assert np.array_equal(cm.update(*self.sides(axis, dtype), argmax=axis).matrix, wanted)

    @pytest.mark.parametrize("shape", [(2, 9, 11), (4, 2, 99), (9, 11, 2), (1, 2, 9, 11), (99, 2)])
    def test_label_maps_are(self, shape):
        rng = np.random.default_rng(3)
        cm = segiou.ConfusionMatrix(2)
        truth = rng.integers(0, 2, shape)
        one_class = np.zeros(shape, int)
        one_class[:1] = 1
        for pred in (truth, 1 - truth, rng.integers(0, 2, shape)):
            cm.update(truth, pred).update(one_class, pred)
        assert cm.pixels == 6 * truth.size
        channels = np.moveaxis(np.eye(2, dtype=int)[truth], -1, 0)
        assert cm.update(channels, np.roll(channels, 1, -1) & channels).pixels == 8 * truth.size

    def test_small_label_maps_are(self):
        board = [[0, 1, 0], [1, 0, 1]]
        assert segiou.ConfusionMatrix(2).update(board, board).matrix.tolist() == [[3, 0], [0, 3]]

    def test_tensors(self):
        torch = pytest.importorskip("torch")
        with pytest.raises(OneHotError):
            segiou.ConfusionMatrix(2).update(*map(torch.from_numpy, self.sides(1)))

    def test_half_of_the_pixels_of_a_device_look_like_labels(self):
        torch = pytest.importorskip("torch")
        pytest.importorskip("torchmetrics")
        from segiou.hooks.torchmetrics import SegmentationScores

        half = torch.zeros(2, 32, 32, dtype=torch.int64)
        half[:, :16] = 1
        metric = SegmentationScores(2)
        metric.update(half, half)
        assert float(metric.compute()) == 1


def test_one_hot_truth_has_the_values_of_the_label_set():
    """Channels are classes in order, whatever their values."""
    entries = [("a", (20, 3)), ("b", (10,)), ("c", (0,)), ("d", (1,))]
    labels = segiou.LabelSet("x", tuple(LabelClass(*one) for one in entries))
    scores = channels(PRED, -1, np.float32)
    cm = segiou.ConfusionMatrix(labels)
    assert cm.update(channels(TRUTH, -1), scores, argmax=-1).matrix.tolist() == WANTED
    assert cm.count(channels(TRUTH, -1), scores, argmax=-1).table[:, :4].tolist() == WANTED
    run = segiou.score([channels(TRUTH, -1)], [scores], labels=labels, argmax=-1)
    assert run.total().matrix.tolist() == WANTED


def test_overlapping_channels_of_bool_are_reported():
    """A threshold gives bool, which cannot hold labels of three classes."""
    rng = np.random.default_rng(5)
    truth, pred = (rng.random((3, 9, 10)) < 0.5 for _ in range(2))
    with pytest.warns(UserWarning, match=r"ChannelCounts\(3\)\.update\(truth, pred, axis=0\)"):
        segiou.ConfusionMatrix(3).update(truth, pred)
    with pytest.warns(UserWarning, match="counted as 3 label maps") as warned:
        segiou.ConfusionMatrix(3).update(truth.astype(int), pred)
    assert warned[0].filename == __file__
    assert segiou.ConfusionMatrix(3).update(truth.astype(int), pred.astype(int)).pixels == 270
    assert segiou.ConfusionMatrix(2).update(truth, pred).pixels == 270
