"""Predictions of cluster numbers: matched once over all images, then scored as classes."""

import json

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays
from PIL import Image
from scipy.optimize import linear_sum_assignment

import segiou
from segiou.cli.main import main
from segiou.labels import ClassOptions
from segiou.scoring import Callbacks, DataError, Job, ScoringInterrupted, match_clusters, score_job

NAMES = ["road", "sky", "car"]


def stego(table):
    """IoU of each class as in `UnsupervisedMetrics.compute` of STEGO and in PiCIE."""
    stats = table.T
    _, classes = linear_sum_assignment(stats, maximize=True)
    histogram = stats[np.argsort(classes), :]
    tp = np.diag(histogram)
    return tp / (tp + (histogram.sum(0) - tp) + (histogram.sum(1) - tp))


def one_to_one(table):
    """The same with other numbers of clusters; pixels of unmatched ones are missed."""
    columns, rows = linear_sum_assignment(table.T, maximize=True)
    wrong = np.delete(table, columns, axis=1).sum(1, keepdims=True)
    order = np.full(len(table), -1)
    order[rows] = columns
    square = np.where(order >= 0, table[:, order], 0)
    tp = np.diag(square)
    return tp / (square.sum(0) + np.hstack([square, wrong]).sum(1) - tp)


def majority(table):
    """IoU of each class if each cluster has that of its largest overlap."""
    square = np.zeros((len(table), len(table)), int)
    for cluster in table.T:
        square[:, int(np.argmax(cluster))] += cluster
    tp = np.diag(square)
    return tp / (square.sum(0) + square.sum(1) - tp)


def masks_of(table):
    """Truth and clusters with these pixels of each class and cluster."""
    truth, pred = np.indices(table.shape)
    return np.repeat(truth.ravel(), table.ravel()), np.repeat(pred.ravel(), table.ravel())


tables = st.tuples(st.integers(1, 5), st.integers(1, 8)).flatmap(
    lambda shape: arrays(np.int64, shape, elements=st.integers(1, 20))
)


squares = st.integers(1, 6).flatmap(
    lambda size: arrays(np.int64, (size, size), elements=st.integers(0, 20))
)


@given(squares)
def test_iou_of_stego(table):
    table[np.arange(len(table)), np.arange(len(table))] += 1  # every class and cluster occurs
    run = segiou.score(*([side] for side in masks_of(table)), labels=len(table), match="hungarian")
    assert run.total().iou() == pytest.approx(stego(table), abs=1e-12)
    assert run.report().mean_iou == pytest.approx(stego(table).mean(), abs=1e-12)


@pytest.mark.parametrize(("how", "oracle"), [("hungarian", one_to_one), ("majority", majority)])
@given(table=tables, data=st.data())
def test_iou_with_other_numbers_of_clusters(how, oracle, table, data):
    truth, pred = masks_of(table)
    cut = data.draw(st.integers(0, len(truth)))
    images = [[side[:cut], side[cut:]] for side in (truth, pred * 3 - 7)]
    run = segiou.score(*images, labels=len(table), match=how)
    found, expected = run.total().iou(), oracle(table)
    assert np.allclose(np.nan_to_num(found), np.nan_to_num(expected), rtol=0, atol=1e-12)
    assert run.ignored.sum() == 0
    assert run.total().matrix.sum() + run.total().unassigned.sum() == table.sum()


@given(table=tables, data=st.data())
def test_the_hungarian_match_has_most_correct_pixels_whatever_the_numbers(table, data):
    order = data.draw(st.permutations(range(table.shape[1])))
    totals = []
    for one in (table, table[:, order]):
        classes = match_clusters(one)
        matched = classes[classes >= 0]
        assert len({*matched.tolist()}) == len(matched) == min(one.shape)
        totals.append(sum(one[k, i] for i, k in enumerate(classes) if k >= 0))
    rows, columns = linear_sum_assignment(table, maximize=True)
    assert totals == [table[rows, columns].sum()] * 2


def test_hand_computed_matches():
    pixels = [[0, 9, 1], [8, 1, 2]]
    assert match_clusters(pixels).tolist() == [1, 0, -1]
    assert match_clusters(pixels, "majority").tolist() == [1, 0, 1]
    # The best pair of one cluster is not part of the best match.
    assert match_clusters([[10, 9], [9, 0]]).tolist() == [1, 0]
    assert match_clusters([[10, 9], [9, 0]], "majority").tolist() == [0, 0]


def test_ties_take_the_first_class_and_empty_clusters_none():
    assert match_clusters([[3, 0], [3, 0]], "majority").tolist() == [0, -1]
    assert match_clusters([[3, 0], [3, 0]])[1] == -1


def test_fewer_clusters_than_classes_leave_classes_unpredicted():
    truth, pred = [[0, 0, 1, 2]], [[7, 7, 7, 4]]
    for how in ("hungarian", "majority"):
        run = segiou.score([truth], [pred], labels=NAMES, match=how)
        assert run.total().iou().tolist() == [2 / 3, 0, 1]
        assert "sky = none" in run.provenance["clusters"]


def test_unmatched_clusters_are_wrong_and_never_dropped():
    truth, pred = [[0, 0, 0, 1, 1]], [[5, 5, 8, 6, 6]]
    run = segiou.score([truth], [pred], labels=2, match="hungarian")
    assert run.total().iou().tolist() == [2 / 3, 1]
    assert run.report().pixel_accuracy == 4 / 5
    assert run.total().unassigned.tolist() == [1, 0]
    assert "unmatched: 8 (20.00 % of the predictions)" in run.provenance["clusters"]
    every = segiou.score([truth], [pred], labels=2, match="majority")
    assert every.report().mean_iou == 1


def test_the_match_is_of_all_images_and_not_of_each():
    truths = [[[0, 0, 0, 0]], [[1, 1, 1, 0]]]
    preds = [[[3, 3, 3, 9]], [[3, 3, 9, 9]]]
    run = segiou.score(truths, preds, labels=2, match="hungarian")
    # 3 is class 0, with 3 + 0 pixels of 0 and 2 of 1; 9 shares one pixel with class 1 at best.
    assert run.total().matrix.tolist() == [[3, 2], [2, 1]]


def test_ignored_pixels_and_masks_do_not_match():
    truth, pred = [[0, 0, 1, 255, 255, 255]], [[4, 4, 2, 2, 2, 9]]
    run = segiou.score([truth], [pred], labels=2, ignore=255, match="majority")
    assert run.total().iou().tolist() == [1, 1]
    assert "9" not in run.provenance["clusters"]
    valid = [[[True, True, True, False]]]
    masked = segiou.score(
        [[[0, 0, 1, 1]]], [[[4, 4, 2, 4]]], labels=2, mask=valid, match="majority"
    )
    assert masked.report().mean_iou == 1


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    rng = np.random.default_rng(5)
    place = tmp_path_factory.mktemp("clusters")
    for side in ("truth", "clusters", "other"):
        (place / side).mkdir()
    for i in range(6):
        truth = rng.integers(0, 3, (9, 11))
        clusters = np.where(rng.random(truth.shape) < 0.2, 4, np.array([6, 1, 3])[truth])
        other = np.where(rng.random(truth.shape) < 0.4, 0, truth)
        for side, mask in (("truth", truth), ("clusters", clusters), ("other", other)):
            Image.fromarray(mask.astype(np.uint8)).save(place / side / f"{i}.png")
    return place


@pytest.fixture
def command(capsys):
    """Run the command; gives the exit code, what it wrote and what it noted."""

    def run(*arguments):
        code = main([*arguments])
        found = capsys.readouterr()
        return code, found.out, found.err

    return run


def options_of(folders):
    return str(folders / "truth"), str(folders / "clusters"), "--labels", ",".join(NAMES)


@pytest.mark.parametrize("how", ["hungarian", "majority"])
def test_folders_and_arrays_agree_with_the_labels_passed(folders, how):
    sides = [
        [np.array(Image.open(path)) for path in sorted((folders / side).iterdir())]
        for side in ("truth", "clusters")
    ]
    places = folders / "truth", folders / "clusters"
    more = {"labels": NAMES, "boundary": True, "measures": ["class_sets"]}
    run = segiou.score_folder(*places, match=how, **more)
    values = [6, 1, 3] if how == "hungarian" else run.options.pred_labels
    given = segiou.score_folder(*places, pred_labels=values, unassigned="count", **more)
    memory = segiou.score(*map(iter, sides), match=how, **more)
    scores = run.report().scores()
    assert scores == given.report().scores() == memory.report().scores()
    assert run.intervals().overall == given.intervals().overall


def test_every_output_prints_the_match(folders, command, tmp_path):
    path, page = str(tmp_path / "a.segiou"), tmp_path / "a.html"
    run = "score", *options_of(folders), "--match", "hungarian", "--run", path
    expected = "matched by hungarian over 6 images: road = 6, sky = 1, car = 3; unmatched: 4"
    for kind in ("table", "markdown", "latex", "json"):
        code, out, _ = command(*run, "--format", kind, "--html", str(page))
        assert code == 0
        assert expected in " ".join(out.split())
    assert expected in page.read_text("utf-8")
    assert expected in json.loads(out)["provenance"]["clusters"]


def test_gates_comparisons_and_saved_runs(folders, command, tmp_path):
    runs = [str(tmp_path / name) for name in ("a.segiou", "b.segiou")]
    matched = ("score", *options_of(folders), "--match", "hungarian", "--run", runs[0])
    assert command(*matched, "--fail-under", "iou:road=0.99")[0] == 1
    assert command(*matched, "--fail-under", "iou:road=0.5", "--intervals")[0] == 0
    truth, _, *labels = options_of(folders)
    assert command("score", truth, str(folders / "other"), *labels, "--run", runs[1])[0] == 0
    code, out, _ = command("compare", *runs, "--metric", "iou")
    assert code == 0
    assert "scores higher than" in out
    assert "The match of clusters to classes is treated as fixed." in " ".join(out.split())
    code, _, noted = command("score", *options_of(folders), "--match", "majority", "--run", runs[0])
    assert code == 2
    assert "match is 'majority' here and 'hungarian' there" in " ".join(noted.split())


def test_parts_of_the_data_set_have_the_match_of_all(folders, command, tmp_path):
    parts = [str(tmp_path / f"{i}.segiou") for i in (1, 2)]
    for i, part in enumerate(parts, 1):
        sharded = "--match", "hungarian", "--run", part, "--shard", f"{i}/2"
        assert command("score", *options_of(folders), *sharded)[0] == 0
    both = str(tmp_path / "both.segiou")
    assert command("merge", *parts, "-o", both)[0] == 0
    places = folders / "truth", folders / "clusters"
    whole = segiou.score_folder(*places, labels=NAMES, match="hungarian")
    merged = segiou.Run.open(both)
    assert merged.total().matrix.tolist() == whole.total().matrix.tolist()
    assert "matched by hungarian over 6 images" in command("report", both)[1]


def test_skipped_pairs_do_not_match_and_are_reported_once(folders, tmp_path):
    (tmp_path / "some").mkdir()
    for i in range(6):
        mask = np.array(Image.open(folders / "clusters" / f"{i}.png"))
        Image.fromarray(mask if i else mask[:4]).save(tmp_path / "some" / f"{i}.png")
    places, found = (folders / "truth", tmp_path / "some"), []
    options = ClassOptions.of(NAMES)
    given = {"truth": places[0], "pred": places[1], "labels": NAMES, "protocol": None}
    job = Job.from_arguments(options, (), {**given, "match": "majority", "on_error": "skip"})
    run = score_job(job, Callbacks(on_problem=found.append))
    assert (len(run), len(run.skipped), len(found)) == (5, 1, 1)
    assert "matched by majority over 5 images" in run.provenance["clusters"]
    with pytest.raises(DataError, match=r"0\.png"):
        segiou.score_folder(*places, labels=NAMES, match="majority")


def test_a_run_that_is_stopped_before_the_match_has_no_pairs(folders, tmp_path):
    places, path = (folders / "truth", folders / "clusters"), tmp_path / "a.segiou"
    options = {"labels": NAMES, "match": "hungarian", "run": path, "workers": 1}
    with pytest.raises(ScoringInterrupted, match="stopped after 0 of 6 pairs"):
        segiou.score_folder(*places, **options, stop=lambda: True)
    assert len(segiou.score_folder(*places, **options)) == 6


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"match": "best"}, "match must be 'hungarian' or 'majority', got 'best'"),
        ({"match": "majority", "pred_labels": [1, 0, 2]}, "omit pred_labels"),
        ({"match": "majority", "pred_labels": NAMES}, "omit pred_labels"),
        ({"match": "majority", "argmax": 1}, "pass label maps"),
        ({"match": "majority", "ignore": [0, 1, 2]}, "predictions have 0 values on valid pixels"),
    ],
)
@pytest.mark.filterwarnings("ignore:ignore includes")
def test_refused(options, problem):
    with pytest.raises(ValueError, match=problem):
        segiou.score([[[0, 1]]], [[[0, 1]]], labels=NAMES, **options)


def test_values_that_are_not_cluster_numbers_are_refused():
    many = np.arange(90_000).reshape(1, 300, 300)
    with pytest.raises(
        ValueError, match="90\u202f000 values on valid pixels; expected cluster numbers"
    ):
        segiou.score(np.zeros_like(many), many, labels=2, match="hungarian")
    with pytest.raises(ValueError, match="cluster number 18446744073709551615 is not within"):
        segiou.score([[[0]]], [np.array([[2**64 - 1]], np.uint64)], labels=2, match="majority")
    for wrong in ([1, 2], [[0.5]], [[-1]]):
        with pytest.raises((ValueError, TypeError)):
            match_clusters(wrong)


def test_colours_of_clusters_are_refused(folders, command, tmp_path):
    (tmp_path / "colors").mkdir()
    for path in (folders / "clusters").iterdir():
        colors = np.multiply.outer(np.array(Image.open(path)), np.array([37, 13, 1], np.uint8))
        Image.fromarray(colors).save(tmp_path / "colors" / path.name)
    truth, _, *labels = options_of(folders)
    code, _, noted = command(
        "score", truth, str(tmp_path / "colors"), *labels, "--match", "majority"
    )
    assert code == 3
    assert "Save cluster numbers instead of their colours" in " ".join(noted.split())


def test_scores_are_refused_in_folders(folders, command):
    code, _, noted = command("score", *options_of(folders), "--match", "majority", "--scores")
    assert code == 2
    assert "pass label maps" in " ".join(noted.split())


def test_labels_of_predictions_are_refused_in_folders_also_if_equal(folders, command):
    words = *options_of(folders), "--match", "majority", "--pred-labels", ",".join(NAMES)
    code, _, noted = command("score", *words)
    assert code == 2
    assert "omit pred_labels (--pred-labels)" in " ".join(noted.split())


def test_nodata_of_predictions_is_not_a_cluster(tmp_path):
    """Nodata shared most pixels with class 1, which was then its class."""
    tifffile = pytest.importorskip("tifffile")
    truth = np.array([[0, 0, 0, 0], [1, 1, 1, 1]], np.uint8)
    pred = np.array([[5, 5, 5, 5], [9, 9, 9, 7]], np.uint8)
    for side, mask in (("truth", truth), ("pred", pred)):
        (tmp_path / side).mkdir()
        tags = [(42113, "s", 0, "9", True)] if side == "pred" else []
        tifffile.imwrite(tmp_path / side / "a.tif", mask, extratags=tags)
    with pytest.warns(UserWarning, match="nodata value 9; predicted pixels with it are not a"):
        run = segiou.score_folder(tmp_path / "truth", tmp_path / "pred", labels=2, match="majority")
    assert run.provenance["clusters"].startswith(
        "matched by majority over 1 image: class 0 = 5, class 1 = 7"
    )
    assert [row.iou for row in run.report().classes] == [1, 0.25]
    assert run.total().unassigned.tolist() == [0, 3]
