"""What a run can be asked, in memory and from a file alike."""

from __future__ import annotations

import csv
import io
import math
from itertools import permutations

import numpy as np
import pytest

import segiou
from segiou._support.files import Problem
from segiou.labels import ClassOptions
from segiou.runs import (
    Header,
    ImageCount,
    ImageFiles,
    RunFileError,
    merge_files,
    run_from_counts,
    write_run,
)
from segiou.runs.image_counts import Stamp


def required(name: str):
    import os

    if os.environ.get("SEGIOU_REQUIRE_EXTRAS") == "1":
        return __import__(name)
    return pytest.importorskip(name, reason=f"{name} is not installed")


@pytest.fixture(params=["in memory", "in a file"])
def run(request, score, tmp_path):
    return score(run=tmp_path / "r.sqlite" if request.param == "in a file" else None)


def test_it_is_a_sequence_of_images_by_id(run):
    assert len(run) == 12
    assert list(run.ids) == sorted(run.ids)
    assert [image.id for image in run] == list(run.ids)
    assert run.images[3].id == run.ids[3]
    assert run.images[0].pixels == 48
    assert run.ignored.tolist() == [0] * 12


ASKED = {
    "ids": lambda run: run.ids,
    "counts": lambda run: run.counts,
    "total": lambda run: run.total(),
    "verdict": lambda run: run.report().verdict,
}


@pytest.mark.few(3)
@pytest.mark.parametrize("order", [*permutations(ASKED, 3)][::4], ids="-".join)
def test_answers_do_not_depend_on_their_order(score, tmp_path, order):
    """One pass over a file answers several of them."""
    in_memory, path = score(), tmp_path / "r.sqlite"
    score(run=path)
    run = segiou.Run.open(path)
    for name in order:
        assert ASKED[name](run) == ASKED[name](in_memory), name


def test_total_is_the_sum_of_the_images(run):
    total = run.total()
    assert total.pairs == 12
    assert total.matrix.tolist() == sum(run.tally(i).matrix for i in range(12)).tolist()
    assert total.counts == run.counts.summed()
    total.reset()
    assert run.total().pairs == 12


def test_worst_is_the_lowest_first(run):
    rows = run.rows()
    worst = run.worst(3)
    assert [row["id"] for row in worst] == [
        row["id"] for row in sorted(rows, key=lambda row: row["mean_iou"])[:3]
    ]
    by_car = run.worst(2, by="iou:car")
    assert by_car[0]["iou:car"] == min(row["iou:car"] for row in rows)
    assert len(run.worst(100)) == 12
    with pytest.raises(ValueError, match="iou of 'bus': unknown class; choose from void"):
        run.worst(by="iou:bus")


def test_worst_leaves_out_images_where_the_score_is_undefined():
    run = segiou.score([[[0]], [[1]]], [[[0]], [[1]]], labels=2)
    assert [row["id"] for row in run.worst(by="iou:0")] == ["0"]


def test_undeclared_predictions_are_ignored_in_rows_under_a_protocol_that_drops_them():
    run = segiou.score([[[0, 0, 1]]], [[[0, 9, 1]]], labels=["road", "car"], unassigned="count")
    rows = [csv.DictReader(io.StringIO(run.to_csv(protocol=p))) for p in ("segiou", "ultralytics")]
    found = [(row["ignored"], row["iou:road"]) for (row,) in rows]
    assert found == [("0", "0.5"), ("1", "1.0")]


def test_groups_are_parts_by_a_key(run):
    parts = run.groups(r"^scene(\d)")
    assert list(parts) == ["0", "1", "2"]
    assert [len(part) for part in parts.values()] == [4, 4, 4]
    assert sum(part.total() for part in parts.values()) == run.total()
    assert list(run.groups(lambda id: id[-1]))[:2] == ["0", "1"]
    assert list(run.groups(r"(?P<key>\d\d)$"))[-1] == "11"
    with pytest.raises(ValueError, match="'nothing' is not found in scene0/00, scene0/03"):
        run.groups("nothing")
    with pytest.raises(ValueError, match="not a regular expression"):
        run.groups("(")


def test_select_keeps_the_counts(run):
    part = run.select(["scene0/00", "scene1/04"])
    assert part.ids == ("scene0/00", "scene1/04")
    assert part.tally(1).matrix.tolist() == run.tally(run.ids.index("scene1/04")).matrix.tolist()
    with pytest.raises(ValueError, match="1 id is not in the run: scene9/00"):
        run.select(["scene9/00"])


def test_tables_have_one_row_an_image(run, tmp_path):
    rows = list(csv.DictReader(io.StringIO(run.to_csv())))
    assert [row["id"] for row in rows] == list(run.ids)
    assert float(rows[0]["mean_iou"]) == run.rows()[0]["mean_iou"]
    assert rows[0]["truth"].endswith("truth/scene0/00.png")


def test_pandas(run):
    required("pandas")
    frame = run.to_pandas()
    assert list(frame.index) == list(run.ids)
    assert frame["mean_iou"].tolist() == [row["mean_iou"] for row in run.rows()]


def test_parquet(run, tmp_path):
    required("pyarrow")
    from pyarrow import parquet

    path = run.to_parquet(tmp_path / "r.parquet")
    table = parquet.read_table(path).to_pylist()
    assert [row["id"] for row in table] == list(run.ids)
    assert table[5]["iou:car"] == run.rows()[5]["iou:car"]
    assert table[0]["pixels"] == 48
    (tmp_path / "link.parquet").symlink_to(path)
    run_from_counts(run.options).to_parquet(tmp_path / "link.parquet")
    assert (tmp_path / "link.parquet").is_symlink()
    assert parquet.read_table(path).num_rows == 0
    with pytest.raises(OSError, match="No such file"):
        run.to_parquet(tmp_path / "no" / "r.parquet")
    assert not [p for p in tmp_path.iterdir() if p.name.startswith(".")]


def test_empty_runs_give_empty_tables():
    run = run_from_counts(segiou.score([[[0]]], [[[0]]], labels=2).options)
    assert len(run) == 0
    assert run.rows() == []
    assert run.to_csv().splitlines() == [
        "id,truth,pred,pixels,ignored,mean_iou,pixel_accuracy,"
        "influence,false_positive_classes,iou:0,iou:1"
    ]
    assert math.isnan(run.total().iou()[0])


def test_saving_and_opening_changes_nothing(run, tmp_path):
    path = run.save(tmp_path / "saved.sqlite")
    opened = segiou.Run.open(path)
    assert opened.images == run.images
    assert opened.report().to_dict() == run.report().to_dict()
    with pytest.raises(RunFileError, match="already exists"):
        run.save(path)


def test_an_image_without_valid_pixels_is_an_image(tmp_path):
    run = segiou.score([[[255, 255]]], [[[0, 1]]], labels=2, ignore=255)
    opened = segiou.Run.open(run.save(tmp_path / "r.sqlite"))
    assert (opened.ignored.tolist(), opened.total().pairs) == ([2], 1)


def test_names_that_are_not_unicode_survive(tmp_path):
    names = ["plain", "new\nline", "🦆", "\udcff.raw", "é"]
    counts = segiou.score([[[0]]] * 5, [[[0]]] * 5, labels=2, ids=names)
    opened = segiou.Run.open(counts.save(tmp_path / "r.sqlite"))
    assert set(opened.ids) == set(names)
    assert opened.ids == counts.ids
    assert opened.images == counts.images
    assert "\\udcff.raw" in opened.to_csv()
    opened.to_csv().encode()


def image(id, value, **files):
    return ImageCount(id, np.array([0]), np.array([value]), 0, **files)


def test_merging_joins_and_counts_equal_duplicates_once(tmp_path):
    options = segiou.score([[[0]]], [[[0]]], labels=2).options
    a = run_from_counts(
        options, [image("x", 3, truth="/a/x"), image("y", 4)], skipped=[Problem("f", "bad")]
    )
    b = run_from_counts(options, [image("y", 4), image("x", 3, truth="/b/x"), image("z", 5)])
    merged = a.merge(b)
    assert merged.ids == ("x", "y", "z")
    assert merged.total().matrix[0, 0] == 12
    assert merged.skipped == (Problem("f", "bad"),)
    paths = [a.save(tmp_path / "a.sqlite"), b.save(tmp_path / "b.sqlite")]
    joined = segiou.Run.open(merge_files(paths, tmp_path / "c.sqlite"))
    assert joined.images == merged.images
    assert joined.skipped == merged.skipped
    assert joined.finished


def test_a_merged_run_is_finished_if_every_part_is(tmp_path):
    classes = ClassOptions.of(2)
    done = write_run(tmp_path / "done.sqlite", Header(classes), ())
    begun = write_run(tmp_path / "begun.sqlite", Header(classes, finished=False), ())
    merged = merge_files([done, begun], tmp_path / "both.sqlite")
    assert not segiou.Run.open(merged).finished


def test_merging_refuses_conflicts_and_other_options(tmp_path):
    options = segiou.score([[[0]]], [[[0]]], labels=2).options
    a, b = run_from_counts(options, [image("x", 3)]), run_from_counts(options, [image("x", 4)])
    with pytest.raises(ValueError, match="image 'x' has different counts"):
        a.merge(b)
    other = segiou.score([[[0]]], [[[0]]], labels=3)
    with pytest.raises(ValueError, match="2 classes here and 3 there"):
        a.merge(other)
    paths = [a.save(tmp_path / "a.sqlite"), b.save(tmp_path / "b.sqlite")]
    with pytest.raises(ValueError, match=r"'x' has different counts \(.*a.sqlite, .*b"):
        merge_files(paths, tmp_path / "c.sqlite")
    paths[1] = other.save(tmp_path / "o.sqlite")
    with pytest.raises(ValueError, match=r"cannot merge runs: labels: .*2 classes here and 3"):
        merge_files(paths, tmp_path / "c.sqlite")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.sqlite", "b.sqlite", "o.sqlite"]


def test_files_and_stamps_are_kept(tmp_path):
    options = segiou.score([[[0]]], [[[0]]], labels=2).options
    files = ImageFiles("s3://b/x.png", "/p/x.png", Stamp(5, "etag"), Stamp(None, None))
    run = run_from_counts(options, [ImageCount("x", np.array([1]), np.array([2]), 7, *files)])
    (opened,) = segiou.Run.open(run.save(tmp_path / "r.sqlite"))
    assert (opened.truth, opened.truth_stamp) == ("s3://b/x.png", Stamp(5, "etag"))
    assert (opened.pred, opened.pred_stamp) == ("/p/x.png", None)
    assert opened.pixels == 9


def test_sums_beyond_double_precision_are_exact():
    options = segiou.score([[[0]]], [[[0]]], labels=2).options
    large = 2**60 + 1
    run = run_from_counts(options, [image("a", large), image("b", 1), image("c", 1)])
    assert int(run.total().matrix[0, 0]) == 2**60 + 3
    assert int(run.counts.tp[0, 0]) == large


def test_two_images_of_one_id_are_refused():
    options = segiou.score([[[0]]], [[[0]]], labels=2).options
    with pytest.raises(ValueError, match="duplicate image id 'x'"):
        run_from_counts(options, [image("x", 1), image("x", 1)])
