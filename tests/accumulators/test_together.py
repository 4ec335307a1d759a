"""What every accumulator keeps: nothing is lost under threads, and no sum leaves 64 bits."""

import sys
from threading import Barrier, Event, Thread

import numpy as np
import pytest

from segiou import ChannelCounts, ConfusionMatrix, Counts
from segiou.counting import ConfusionCounts, UndeclaredValuesError
from segiou.counting.counts import SparseConfusionCounts
from segiou.measures.boundary import BoundaryOptions
from segiou.runs import Columns, ImageCount
from segiou.scoring import Evaluator

LARGEST = 2**63 - 1
THREADS, UPDATES = 8, 40
RNG = np.random.default_rng(0)
TRUTH = [RNG.integers(0, 3, (200, 300), dtype=np.uint8) for _ in range(THREADS)]
PRED = [RNG.integers(0, 3, (200, 300), dtype=np.uint8) for _ in range(THREADS)]
NARROW = BoundaryOptions(widths=1, trimaps=False)

KINDS = {
    "pairs": (lambda: ConfusionMatrix(3), lambda counted, t, p: counted.update(t, p)),
    "channels": (
        lambda: ChannelCounts(["a"]),
        lambda counted, t, p: counted.update(t[None] == 1, p[None] == 1, axis=0),
    ),
    "boundaries": (
        lambda: Evaluator(3, measures=[NARROW]),
        lambda counted, t, p: counted.update(t[:30, :30], p[:30, :30]),
    ),
}


@pytest.fixture
def often_switched():
    """Threads take turns as often as Python can make them."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def in_threads(work):
    """Run work(0) … work(7) at once; what one of them raises is raised."""
    start, errors = Barrier(THREADS), []

    def run(number):
        start.wait()
        try:
            work(number)
        except BaseException as error:  # noqa: BLE001
            errors.append(error)

    threads = [Thread(target=run, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


@pytest.mark.parametrize(
    "round_", [0, 1, *(pytest.param(i, marks=pytest.mark.gate) for i in range(2, 10))]
)
def test_the_kernel_adds_to_a_table_a_thread(round_):
    # Long enough for threads to count at the same time, without Python's lock.
    empty, together = np.zeros((1000, 1000), np.uint8), ConfusionMatrix(2)

    def work(_):
        for _ in range(60):
            together.update(empty, empty)

    in_threads(work)
    assert together.matrix.tolist() == [[THREADS * 60 * 1_000_000, 0], [0, 0]]
    assert together.pairs == THREADS * 60


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "round_", [0, *(pytest.param(i, marks=pytest.mark.gate) for i in range(1, 5))]
)
def test_nothing_is_lost_under_threads(kind, round_, often_switched):
    make, update = KINDS[kind]
    together, alone = make(), make()

    def work(number):
        for _ in range(UPDATES):
            update(together, TRUTH[number], PRED[number])

    in_threads(work)
    for number in range(THREADS):
        update(alone, TRUTH[number], PRED[number])
    assert together == sum([alone] * UPDATES)
    assert (len(together) if kind == "boundaries" else together.pairs) == THREADS * UPDATES


def test_threads_that_merge_and_are_refused_disturb_nobody(often_switched):
    together, part = ConfusionMatrix(3), ConfusionMatrix(3).update(TRUTH[0], PRED[0])
    wrong = np.where(TRUTH[1] == 2, 7, TRUTH[1])

    def work(number):
        for _ in range(UPDATES):
            if number % 2:
                with pytest.raises(UndeclaredValuesError):
                    together.update(wrong, PRED[1])
            else:
                together.update(TRUTH[0], PRED[0])
                together.merge(part)
            assert together.pixels % TRUTH[0].size >= 0  # readable at any time

    in_threads(work)
    assert together == sum([part] * (THREADS * UPDATES))


def test_tables_of_ended_threads_are_used_again():
    matrix = ConfusionMatrix(3)
    for _ in range(30):
        thread = Thread(target=matrix.update, args=(TRUTH[0], PRED[0]))
        thread.start()
        thread.join()
    assert matrix.pairs == 30
    assert len(matrix._parts) < 30


HALF = [[2**62, 0, 0], [0, 2**61, 0]]


@pytest.mark.parametrize(
    ("add", "text"),
    [
        (
            lambda m: m + m,
            r"sum of confusion matrices at index \(0, 0\) must not exceed 9223372036854",
        ),
        (lambda m: m.merge(m.copy(), m), r"at index \(0, 0\) must not exceed 9223372036854775807"),
        (
            lambda m: m.add(ConfusionCounts([[0, 2**62, 0], [0, 0, 0]])),
            "the pixels of confusion matrices",
        ),
        (
            lambda m: m.add(ConfusionCounts([[0, 0, 0], [0, 0, 0]], 2**62)),
            "the pixels of confusion matr",
        ),
        (lambda m: sum([m, m, m]), "must not exceed"),
        (lambda m: m.add(ConfusionCounts(HALF)), r"at index \(0, 0\)"),
    ],
)
def test_a_matrix_past_64_bits_is_refused_and_stays(add, text):
    matrix = ConfusionMatrix(2).add(ConfusionCounts(HALF), pairs=3)
    before = matrix.copy()
    with pytest.raises(OverflowError, match=text):
        add(matrix)
    assert matrix == before
    assert matrix.matrix.tolist() == [[2**62, 0], [0, 2**61]]


def test_a_matrix_holds_as_many_pixels_as_64_bits_and_no_more():
    matrix = ConfusionMatrix(2, ignore=9).add(ConfusionCounts([[LARGEST - 3, 0, 0], [0, 0, 0]]))
    matrix.update([0, 1, 9], [0, 0, 0])
    assert matrix.pixels == LARGEST
    assert matrix.counts.total.tolist() == [LARGEST - 1] * 2
    before = matrix.copy()
    with pytest.raises(OverflowError, match="must not exceed"):
        matrix.update([0], [0])
    with pytest.raises(OverflowError, match="the pixels of confusion matrices must not exceed"):
        matrix.update([9], [0])
    assert matrix == before
    assert ConfusionMatrix.from_state_dict(matrix.state_dict()) == matrix


def test_channels_past_64_bits_are_refused_and_stay():
    channels = ChannelCounts(2).add(Counts([2**62, 1], [0, 1], [0, 1], [5, LARGEST - 3]))
    before = channels.copy()
    for add in (
        lambda: channels + channels,
        lambda: channels.add(Counts([0, 0], [0, 1], [0, 0], [0, 0])),
        lambda: channels.update([[1], [0]], [[1], [1]], axis=0),
    ):
        with pytest.raises(OverflowError, match="must not exceed"):
            add()
    assert channels == before


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (
            lambda: ConfusionCounts([[2**62, 0, 0], [0, 2**62, 0]]),
            "pixels must not exceed 9223372036854775807",
        ),
        (
            lambda: ConfusionCounts([[[1, 0]], [[LARGEST, 0]]], [0, 1]),
            "pixels at index 1 must not exceed",
        ),
        (
            lambda: Counts([2**62], [2**62], [0], [0]),
            r"tp \+ fp \+ fn \+ tn at index 0 must not exceed",
        ),
        (lambda: Counts([2**62], [0], [0], [0]) + Counts([2**62], [0], [0], [0]), "tp at index 0"),
        (lambda: Counts([2**62] * 2, [0] * 2, [0] * 2, [0] * 2).pooled(), "tp must not exceed"),
        (lambda: Counts([[1]] * 2, [[1]] * 2, [[0]] * 2, [[2**62]] * 2).summed(), "tn at index 0"),
    ],
)
def test_counts_past_64_bits_are_refused(make, text):
    with pytest.raises(OverflowError, match=text):
        make()


def test_large_counts_that_fit_are_summed_exactly():
    counts = Counts([[2**61, 1]] * 3, [[3, 0]] * 3, [[0, 7]] * 3, [[1, 2**60]] * 3)
    assert counts.summed() == Counts([3 * 2**61, 3], [9, 0], [0, 21], [3, 3 * 2**60])


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"table": [[1, 2, -3], [0, 0, 0]]}, ValueError, "table must not be negative, got -3"),
        (
            {"table": [[1, 2], [0, 0]]},
            ValueError,
            r"expected a table|must have shape \(\.\.\., C, C \+ 1\)",
        ),
        ({"table": [[1, 2, 3, 4]] * 3}, ValueError, "expected a table of shape"),
        ({"table": [[1.5, 2, 3], [0, 0, 0]]}, TypeError, "table must be integers, got float64"),
        ({"pairs": -1}, ValueError, "pairs must be at least 0, got -1"),
        ({"pairs": "many"}, TypeError, "pairs must be an integer"),
    ],
)
def test_a_damaged_state_is_refused_and_changes_nothing(change, error, text):
    matrix = ConfusionMatrix(2).update([0, 1], [1, 1])
    before = matrix.copy()
    with pytest.raises(error, match=text):
        matrix.load_state_dict(before.state_dict() | change)
    assert matrix == before
    state = before.state_dict()
    del state["table"]
    with pytest.raises(ValueError, match="missing: table"):
        matrix.load_state_dict(state)


def test_images_past_64_bits_are_refused():
    columns = Columns.of(
        [ImageCount.of(n, ConfusionCounts([[2**62, 0, 0], [0, 0, 1]])) for n in "ab"]
    )
    with pytest.raises(
        OverflowError, match="the pixels of the images must not exceed 9223372036854"
    ):
        SparseConfusionCounts.summed(2, [columns.summed()])
    one = SparseConfusionCounts.summed(2, [columns.take([0]).summed()])
    assert one.table.tolist() == [[2**62, 0, 0], [0, 0, 1]]


def test_a_state_read_while_another_thread_updates_is_of_whole_batches():
    ones = np.ones((64, 64), np.uint8)
    counted = [ConfusionMatrix(2), ChannelCounts(2)]
    updates = [
        lambda: counted[0].update(ones, ones),
        lambda: counted[1].update([ones, ones], [ones, ones], axis=0),
    ]
    done = Event()

    def work(update):
        while not done.is_set():
            update()

    threads = [Thread(target=work, args=(update,)) for update in updates * 2]
    for thread in threads:
        thread.start()
    try:
        for _ in range(100):
            matrix, channels = (accumulator.state_dict() for accumulator in counted)
            assert matrix["table"][1][1] == 64 * 64 * matrix["pairs"]
            assert channels["tp"] == [64 * 64 * channels["pairs"]] * 2
    finally:
        done.set()
        for thread in threads:
            thread.join()


def test_counts_of_very_many_classes_are_sums_of_rows_and_columns():
    rng = np.random.default_rng(3)
    truth, pred = rng.integers(0, 1500, (2, 4000))
    counts = ConfusionMatrix(1500).update(truth, pred).counts
    np.testing.assert_array_equal(counts.tp, np.bincount(truth[truth == pred], minlength=1500))
    np.testing.assert_array_equal(counts.truth, np.bincount(truth, minlength=1500))
    np.testing.assert_array_equal(counts.pred, np.bincount(pred, minlength=1500))
    assert (counts.total == 4000).all()


WRONG = np.array([[0, 1], [1, 9]])
RIGHT = WRONG % 8
BATCHES = {
    "pairs": (ConfusionMatrix, lambda c, t, p: c.update(t, p), lambda c: c.pairs),
    "channels": (
        ChannelCounts,
        lambda c, t, p: c.update(t.swapaxes(0, 1), p.swapaxes(0, 1), axis=0),
        lambda c: c.pairs,
    ),
    "images": (
        Evaluator,
        lambda c, t, p: c.update(t, p, ids=[str(i) for i in range(len(t))]),
        len,
    ),
    "boundaries": (
        lambda labels: Evaluator(labels, measures=["boundary"]),
        lambda c, t, p: c.update(t, p),
        len,
    ),
    "evaluator": (Evaluator, lambda c, t, p: c.update(t, p), len),
}


@pytest.mark.parametrize("kind", BATCHES)
@pytest.mark.parametrize("side", [0, 1])
def test_of_a_batch_with_a_wrong_image_nothing_is_kept(kind, side):
    make, update, images = BATCHES[kind]
    counted = make(2)
    sides = [np.stack([RIGHT, WRONG if k == side else RIGHT, RIGHT]) for k in (0, 1)]
    with pytest.raises(ValueError, match="9"):
        update(counted, *sides)
    assert images(counted) == 0
    right = np.stack([RIGHT % 2] * 3)
    update(counted, right, right)
    assert images(counted) > 0


def test_images_with_different_results_change_nothing():
    counted = Evaluator(2).update([[[0]]], [[[0]]], ids=["a"])
    with pytest.raises(ValueError, match="'a' was counted twice"):
        counted.update([[[0]], [[0]]], [[[1]], [[1]]], ids=["b", "a"])
    other = Evaluator(2).update([[[0]], [[0]]], [[[1]], [[1]]], ids=["b", "a"])
    with pytest.raises(ValueError, match="'a' was counted twice"):
        counted.merge(other)
    assert [image.id for image in counted.images] == ["a"]
