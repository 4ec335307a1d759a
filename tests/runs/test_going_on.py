"""A run file goes on where it was: nothing is read twice, lost, or counted twice."""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest

import segiou
from segiou import DataError
from segiou.cli.main import main
from segiou.labels import ClassOptions
from segiou.runs import Header, ImageCount, ImageFiles, RunFile, RunFileError, RunWriter
from segiou.runs.image_counts import Stamp
from segiou.scoring import ScoringInterrupted, engines

LABELS = ["void", "road", "car", "tree"]
LONG_AGO = 1_600_000_000_000_000_000


def test_a_run_in_a_file_has_the_same_bits_as_one_in_memory(score, tmp_path):
    kept, held = score(run=tmp_path / "r.sqlite"), score()
    assert kept.total() == held.total()
    assert kept.ids == held.ids
    assert kept.counts == held.counts
    assert [kept.tally(i).matrix.tolist() for i in range(12)] == [
        held.tally(i).matrix.tolist() for i in range(12)
    ]
    assert kept.finished
    assert kept.report().to_dict()["classes"] == held.report().to_dict()["classes"]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["pred", "r.sqlite", "truth"]


def test_unchanged_pairs_are_not_read_again(score, tmp_path, reads):
    first = score(run=tmp_path / "r.sqlite").total()
    # 24 files, and the first of each side also for its palette.
    assert len(reads) == 26
    reads.clear()
    assert score(run=tmp_path / "r.sqlite").total() == first
    assert reads == []


def test_a_changed_prediction_and_a_new_pair_are_read(score, tmp_path, reads, write_mask):
    score(run=tmp_path / "r.sqlite")
    reads.clear()
    write_mask(tmp_path / "pred/scene0/03.png", np.ones((6, 8)), when=LONG_AGO + 1)
    for side in ("truth", "pred"):
        write_mask(tmp_path / side / "scene0/99.png", np.ones((6, 8)))
    run = score(run=tmp_path / "r.sqlite")
    assert sorted(set(reads)) == ["03.png", "99.png"]
    assert len(run) == 13
    assert run.total() == score().total()


def test_a_mask_of_the_same_time_but_another_size_is_read(score, tmp_path, reads, write_mask):
    score(run=tmp_path / "r.sqlite")
    reads.clear()
    path = tmp_path / "truth/scene1/01.png"
    size = path.stat().st_size
    write_mask(path, np.zeros((6, 8)))
    assert path.stat().st_size != size
    assert score(run=tmp_path / "r.sqlite").total() == score().total()
    assert "01.png" in reads


def test_missing_pairs_are_named_left_out_and_come_back(score, tmp_path, reads):
    whole = score(run=tmp_path / "r.sqlite").total()
    for side in ("truth", "pred"):
        (tmp_path / side / "scene2/05.png").rename(tmp_path / f"{side}-05.png")
    run = score(run=tmp_path / "r.sqlite")
    assert len(run) == 11
    assert [str(p) for p in run.skipped] == [
        f"{tmp_path}/truth/scene2/05.png: was scored earlier but is now missing; "
        "excluded from the totals"
    ]
    assert run.total() == score().total()
    for side in ("truth", "pred"):
        (tmp_path / f"{side}-05.png").rename(tmp_path / side / "scene2/05.png")
    reads.clear()
    opened = segiou.Run.open(tmp_path / "r.sqlite")
    again = score(run=tmp_path / "r.sqlite")
    with pytest.raises(RunFileError, match="has changed since it was opened"):
        opened.total()
    assert again.total() == whole
    assert again.skipped == ()
    assert reads == []


@pytest.fixture
def resumed(tmp_path):
    """The writer of a run file of one image with these files, opened again."""
    path = tmp_path / "one.sqlite"

    def do(files, header, again):
        with RunWriter(path, header) as writer:
            counts = segiou.ConfusionMatrix.from_options(header.options).count([[0]], [[1]])
            writer.add(ImageCount.of("x", counts, files))
        return RunWriter(path, again)

    return do


KNOWN, UNKNOWN = Stamp(9, 1), Stamp(9, None)


@pytest.mark.parametrize(
    ("stamps", "kept"),
    [
        ((KNOWN, KNOWN), {"x"}),
        ((KNOWN, UNKNOWN), set()),
        ((UNKNOWN, KNOWN), set()),
        ((UNKNOWN, UNKNOWN), set()),
    ],
)
def test_a_pair_is_skipped_only_if_both_stamps_are_known(resumed, stamps, kept):
    files, header = ImageFiles("t.png", "p.png", *stamps), Header(ClassOptions.of(2))
    with resumed(files, header, header) as writer:
        assert writer.reconcile({"x": files}.get) == kept


def test_missing_images_keep_the_options_of_the_run(resumed):
    files, header = ImageFiles("t.png", "p.png", KNOWN, KNOWN), Header(ClassOptions.of(2))
    with resumed(files, header, header) as writer:
        assert writer.reconcile({}.get) == set()
    with pytest.raises(ValueError, match=r"ignore is \[7\] here and \[\] there"):
        RunWriter(writer.path, Header(ClassOptions.of(2, ignore=7)))


def test_the_versions_of_every_writer_are_kept(resumed):
    files, header = ImageFiles("t.png", "p.png", KNOWN, KNOWN), Header(ClassOptions.of(2))
    earlier = {"segiou": "0.0.1"}
    with resumed(files, replace(header, versions=(earlier,)), header) as writer:
        pass
    first, second = RunFile.open(writer.path).header.versions
    assert (first, second["segiou"]) == (earlier, segiou.__version__)


def test_a_changed_pair_that_cannot_be_scored_any_more_is_not_in_the_totals(score, tmp_path):
    score(run=tmp_path / "r.sqlite")
    (tmp_path / "pred/scene0/00.png").write_bytes(b"no mask")
    with pytest.raises(DataError, match=r"scene0/00\.png"):
        score(run=tmp_path / "r.sqlite")
    run = segiou.Run.open(tmp_path / "r.sqlite")
    assert "scene0/00" not in run.ids
    assert not run.finished
    skipping = score(run=tmp_path / "r.sqlite", on_error="skip")
    assert skipping.finished
    assert skipping.total() == score(on_error="skip").total()
    assert [p.where for p in skipping.skipped] == [f"{tmp_path}/pred/scene0/00.png"]
    assert [p.where for p in segiou.Run.open(tmp_path / "r.sqlite").skipped] == [
        f"{tmp_path}/pred/scene0/00.png"
    ]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"ignore": 7}, r"ignore is \[7\] here and \[\] there"),
        ({"exclude": "car"}, r"exclude is \[2\] here and \[\] there"),
        ({"labels": [*LABELS, "sky"]}, "5 classes here and 4 there"),
        ({"resize_pred": "nearest"}, "resize_pred is 'nearest' here and None there"),
    ],
)
def test_other_options_are_refused_with_the_difference(score, tmp_path, options, text):
    before = score(run=tmp_path / "r.sqlite").total()
    with pytest.raises(ValueError, match=text):
        score(run=tmp_path / "r.sqlite", **options)
    assert segiou.Run.open(tmp_path / "r.sqlite").total() == before


def test_another_models_predictions_are_refused(score, folders):
    score(run=folders / "r.sqlite")
    shutil.copytree(folders / "pred", folders / "pred2")
    with pytest.raises(ValueError, match=r"pred is '.*pred2' here and '.*pred' there"):
        segiou.score_folder(
            folders / "truth", folders / "pred2", labels=LABELS, run=folders / "r.sqlite"
        )


def test_another_protocol_is_no_other_run(score, tmp_path):
    score(run=tmp_path / "r.sqlite")
    run = score(run=tmp_path / "r.sqlite", protocol="monai")
    assert run.protocol.name == "monai"
    assert segiou.Run.open(tmp_path / "r.sqlite").protocol.name == "monai"


def test_a_stopped_run_keeps_what_was_finished_and_goes_on(score, tmp_path, reads, monkeypatch):
    monkeypatch.setattr(engines, "_MAX_BATCH", 1)
    done = []
    with pytest.raises(ScoringInterrupted) as stopped:
        score(
            run=tmp_path / "r.sqlite",
            workers=1,
            progress=lambda *counts: done.append(counts),
            stop=lambda: len(done) > 0,
        )
    assert 0 < stopped.value.done < stopped.value.total == 12
    run = segiou.Run.open(tmp_path / "r.sqlite")
    assert len(run) == stopped.value.done
    assert not run.finished
    assert run.provenance["unfinished"] == f"{len(run)} of 12 pairs are scored"
    reads.clear()
    assert score(run=tmp_path / "r.sqlite").total() == score().total()
    # Each score also reads the first file of each side for its palette.
    assert len(reads) == 24 + 2 * (12 - stopped.value.done) + 4


def test_a_mask_without_its_pair_leaves_no_pairs_to_score(score, folders):
    (folders / "pred" / "scene0" / "00.png").unlink()
    with pytest.raises(DataError, match="has no prediction"):
        score(run=folders / "r.sqlite")
    run = segiou.Run.open(folders / "r.sqlite")
    text = "all 11 pairs are scored, but the command stopped with an error; run it again"
    assert (run.finished, run.provenance["unfinished"]) == (False, text)


def test_shards_merge_to_the_whole(score, tmp_path):
    parts = [score(run=tmp_path / f"{i}.sqlite", shard=(i, 3)) for i in (1, 2, 3)]
    assert sum(len(part) for part in parts) == 12
    assert all(len(part) for part in parts)
    assert sum(part.total() for part in parts) == score().total()
    whole = parts[0].merge(*parts[1:])
    assert whole.total() == score().total()
    assert "partial" not in whole.provenance
    assert "not complete" not in str(whole)


def test_a_shard_says_that_it_is_a_part(score, tmp_path):
    for part in (score(shard=(1, 3)), score(shard=(1, 3), run=tmp_path / "1.sqlite")):
        text = "parts 2 and 3 of 3 are missing (12 pairs in all)"
        assert part.provenance["partial"] == text
        assert f"\nincomplete: {text}\n{len(part)} pairs, " in part.report().to_text(width=200)
        assert f"incomplete: {text}" in part.report().to_markdown()
        assert text in part.to_html()
    with pytest.raises(ValueError, match="shard is '2/3' here and '1/3' there"):
        score(shard=(2, 3), run=tmp_path / "1.sqlite")


def test_a_missing_shard_is_an_error_unless_it_is_accepted(score, tmp_path, capsys):
    paths = [tmp_path / f"{i}.sqlite" for i in (1, 2, 3)]
    parts = [score(run=path, shard=(i, 3)) for i, path in enumerate(paths, 1)]
    text = r"part 2 of 3 is missing \(12 pairs in all\)"
    with pytest.raises(ValueError, match=text):
        parts[0].merge(parts[2])
    merge = ["merge", str(paths[0]), str(paths[2]), "-o", str(tmp_path / "m.sqlite")]
    assert main(merge) == 2
    assert "part 2 of 3 is missing (12 pairs in all); add the missing parts" in (
        capsys.readouterr().err
    )
    assert not (tmp_path / "m.sqlite").exists()
    assert main([*merge, "--partial"]) == 0
    assert "incomplete: part 2 of 3 is missing" in capsys.readouterr().err
    assert main(["report", str(tmp_path / "m.sqlite")]) == 0
    found = capsys.readouterr()
    assert "incomplete: part 2 of 3 is missing (12 pairs in all)" in " ".join(found.out.split())
    assert "incomplete run: part 2 of 3 is missing" in found.err
    partial = parts[0].merge(parts[2], partial=True)
    assert partial.merge(parts[1]).total() == score().total()


def test_a_finer_division_of_the_same_pairs_is_complete(score):
    thirds = [score(shard=(i, 3)) for i in (1, 2)]
    halves = [score(shard=(i, 2)) for i in (1, 2)]
    assert thirds[0].merge(thirds[1], *halves).total() == score().total()
    with pytest.raises(ValueError, match=r"part 2 of 2 is missing .*; part 3 of 3 is missing"):
        halves[0].merge(*thirds)


def test_a_run_file_that_is_replaced_while_scoring_is_an_error(score, tmp_path, write_mask):
    other = tmp_path / "other.sqlite"
    score(run=other, unassigned="count")
    for how in (lambda path: shutil.copy(other, path), lambda path: other.rename(path)):
        path = tmp_path / f"{how.__code__.co_firstlineno}{how.__code__.co_code.hex()[:8]}.sqlite"

        def replace(done, total, path=path, how=how):
            if done == total:
                how(path)

        with pytest.raises(RunFileError, match="was replaced, removed or modified by another"):
            score(run=path, progress=replace)


def test_a_file_that_is_changed_while_it_is_read_is_read_again(
    score, tmp_path, monkeypatch, write_mask, in_python
):
    from segiou.masks.sources import folders as sources

    path = tmp_path / "pred/scene0/00.png"
    other = tmp_path / "other.png"
    write_mask(other, np.full((6, 8), 3))
    fstat, changed = os.fstat, []

    def changing(number):
        found = fstat(number)
        if not changed and found.st_ino == path.stat().st_ino:
            changed.append(True)
            path.write_bytes(other.read_bytes())
        return found

    monkeypatch.setattr(sources.os, "fstat", changing)
    run = score(run=tmp_path / "r.sqlite", workers=1)
    monkeypatch.undo()
    assert changed
    assert run.total() == score().total()
    assert run.tally(run.ids.index("scene0/00")).matrix[:, :3].sum() == 0


def test_a_file_that_never_stays_the_same_is_a_problem(score, tmp_path, monkeypatch, in_python):
    from segiou.masks.sources import folders as sources

    path = tmp_path / "truth/scene0/00.png"
    fstat, inode, count = os.fstat, path.stat().st_ino, iter(range(1000))

    def changing(number):
        found = fstat(number)
        if found.st_ino == inode:
            os.utime(path, ns=(LONG_AGO, LONG_AGO + next(count)))
        return found

    monkeypatch.setattr(sources.os, "fstat", changing)
    with pytest.raises(DataError, match=r"scene0/00.png: changed while being read"):
        score()


def test_the_tables_can_be_asked_in_sql(score, tmp_path):
    run = score(run=tmp_path / "r.sqlite")
    with closing(sqlite3.connect(tmp_path / "r.sqlite")) as connection, connection:
        ask = connection.execute
        cells = ask("SELECT id, truth, pred, pixels FROM cell").fetchall()
        counted = ask(
            "SELECT name, sum(tp), sum(fp), sum(fn) FROM class_count GROUP BY class ORDER BY class"
        ).fetchall()
        names = [name for (name,) in ask("SELECT name FROM class ORDER BY class")]
    connection.close()
    matrix = np.zeros((4, 4), dtype=int)
    for _, truth, pred, pixels in cells:
        matrix[truth, pred] += pixels
    assert matrix.tolist() == run.total().matrix.tolist()
    counts = run.total().counts
    assert names == LABELS
    assert counted == list(
        zip(LABELS, counts.tp.tolist(), counts.fp.tolist(), counts.fn.tolist(), strict=True)
    )


def test_unassigned_pixels_are_null_in_sql(tmp_path, write_mask):
    write_mask(tmp_path / "t/a.png", [[1, 1, 0]])
    write_mask(tmp_path / "p/a.png", [[9, 1, 0]])
    segiou.score_folder(
        tmp_path / "t", tmp_path / "p", labels=2, unassigned="count", run=tmp_path / "r.sqlite"
    )
    connection = sqlite3.connect(tmp_path / "r.sqlite")
    rows = connection.execute("SELECT * FROM cell ORDER BY truth, pred").fetchall()
    counts = connection.execute("SELECT class, tp, fp, fn FROM class_count").fetchall()
    connection.close()
    assert rows == [("a", 0, 0, 1), ("a", 1, None, 1), ("a", 1, 1, 1)]
    assert counts == [(0, 1, 0, 0), (1, 1, 0, 1)]
