"""Boundary counts through runs, run files, reports, comparisons and the command line."""

import json
import sqlite3

import numpy as np
import pytest
from mask_files import score_pairs, write_pairs
from PIL import Image

import segiou
from segiou._support.numbers import percent
from segiou.cli.main import main
from segiou.measures import measure_of
from segiou.measures.boundary import BoundaryOptions, boundary_iou
from segiou.runs import RunFileError, run_from_counts
from segiou.scoring import Evaluator

LABELS = ["sky", "road", "car"]
OPTIONS = BoundaryOptions([1, "10%"])


@pytest.fixture
def pairs():
    """Six images of 24 x 30 pixels; car is in half of them, and in the first is never found."""
    rng = np.random.default_rng(0)
    truths = np.kron(rng.integers(0, 2, (6, 4, 5)), np.ones((6, 6))).astype(np.uint8)
    truths[::2, 6:14, 8:20] = 2
    truths[:, 0] = 255
    preds = np.roll(truths, (1, 2), (1, 2))
    preds[preds == 255] = 0
    preds[0][preds[0] == 2] = 1
    return truths, preds


@pytest.fixture
def folders(pairs, tmp_path):
    return write_pairs(tmp_path, *pairs)


def from_folders(folders, **options):
    return score_pairs(folders, labels=LABELS, ignore=255, **options)


def counted_at_once(pairs):
    evaluator = Evaluator(3, ignore=255, measures=[OPTIONS]).update(*pairs)
    return evaluator.run().counts_of("boundary").summed()


def test_a_volume_is_refused_and_not_cut_into_slices(pairs, tmp_path):
    with pytest.raises(ValueError, match="Boundary IoU of volumes needs widths in mm"):
        segiou.score([pairs[0]], [pairs[1]], labels=LABELS, ignore=255, boundary=OPTIONS)
    for side, masks in zip(("truth", "pred"), pairs, strict=True):
        (tmp_path / side).mkdir()
        np.save(tmp_path / side / "0.npy", masks)
    with pytest.raises(ValueError, match=r"0\.npy: truth and pred have shape \(6, 24, 30\), but"):
        from_folders(tmp_path, boundary=OPTIONS, array_axes="zyx")
    assert len(from_folders(tmp_path, array_axes="zyx")) == 1


def test_arrays_and_folders_count_what_the_accumulator_does(pairs, folders):
    run = segiou.score(*pairs, labels=LABELS, ignore=255, boundary=OPTIONS)
    assert run.counts_of("boundary").table.shape[0] == 6
    assert run.counts_of("boundary").summed() == counted_at_once(pairs)
    for how in ({}, {"run": folders / "r.sqlite"}, {"processes": 1}):
        assert from_folders(folders, boundary=OPTIONS, **how).counts_of(
            "boundary"
        ) == run.counts_of("boundary")
    first = run.counts_of("boundary").band_counts()[:, 0]
    assert first.tp.shape == (6, 3)
    np.testing.assert_array_equal(
        segiou.metrics.iou(first), boundary_iou(run.counts_of("boundary"))[:, 0]
    )
    np.testing.assert_array_equal(
        run.plans[0].scores["boundary_iou"].of_images(run.parts("boundary"))[:, 1:],
        boundary_iou(run.counts_of("boundary"))[:, 0],
    )


def test_scores_and_masks_of_valid_pixels_are_measured(pairs):
    truths, preds = pairs
    truths, valid = np.where(truths == 255, 0, truths), truths != 255
    scores = np.eye(3)[preds].transpose(0, 3, 1, 2)
    run = segiou.score(truths, scores, labels=3, argmax=1, mask=valid, boundary=OPTIONS)
    assert run.counts_of("boundary").summed() == counted_at_once(pairs)
    soft = segiou.score([[0, 1], [0, 1]], [[0.2, 0.9], [0.1, 0.7]], labels=2, threshold=0.5,
                        boundary=OPTIONS)  # fmt: skip
    assert boundary_iou(soft.counts_of("boundary")[0])[0].tolist() == [1.0, 1.0]


def test_nothing_is_measured_unless_asked_for(pairs):
    run = segiou.score(*pairs, labels=LABELS, ignore=255, boundary=False)
    assert run.counts_of("boundary") is run.plan("boundary") is None
    assert "boundary" not in run.report().measures
    with pytest.raises(ValueError, match="was not measured; score with --boundary"):
        run.report().score("boundary_iou")
    with pytest.raises(ValueError, match=r"no boundary counts; rescore with measures=..boundary"):
        run.intervals("boundary_iou")
    with pytest.raises(TypeError, match="boundary must be True or BoundaryOptions, got '2%'"):
        segiou.score(*pairs, labels=LABELS, ignore=255, boundary="2%")


def test_a_run_keeps_its_boundaries_through_everything(pairs, tmp_path):
    run = segiou.score(*pairs, labels=LABELS, ignore=255, boundary=OPTIONS)
    first, rest = run.select(["0", "1"]), run.select(["2", "3", "4", "5"])
    assert rest.counts_of("boundary") == run.counts_of("boundary")[2:]
    assert rest.merge(first).counts_of("boundary") == run.counts_of("boundary")
    assert run.groups("[01]|.")["0"].counts_of("boundary") == run.counts_of("boundary")[:1]
    opened = segiou.Run.open(run.save(tmp_path / "r.sqlite"))
    assert opened.counts_of("boundary") == run.counts_of("boundary")
    assert list(opened) == list(run)
    paths = [part.save(tmp_path / f"{len(part)}.sqlite") for part in (first, rest)]
    assert main(["merge", *map(str, paths), "-o", str(tmp_path / "all.sqlite"), "--quiet"]) == 0
    assert segiou.Run.open(tmp_path / "all.sqlite").counts_of("boundary") == run.counts_of(
        "boundary"
    )


def test_runs_of_other_boundaries_do_not_merge(pairs):
    def scored(boundary):
        return segiou.score(*pairs, labels=LABELS, ignore=255, boundary=boundary)

    run = scored(OPTIONS)
    with pytest.raises(ValueError, match="boundaries are measured here but not there"):
        run.merge(scored(None))
    with pytest.raises(ValueError, match="boundaries are measured there but not here"):
        scored(None).merge(run)
    other = BoundaryOptions([1], border="none")
    with pytest.raises(
        ValueError,
        match="widths is 1, 10% here and 1 there; boundary border is reference here and none",
    ):
        run.merge(scored(other))
    with pytest.raises(ValueError, match="6 of 6 images have no counts of boundaries"):
        run_from_counts(run.options, list(scored(None)), measures=[OPTIONS])


def test_a_run_file_goes_on(folders):
    path = folders / "r.sqlite"
    whole = from_folders(folders, boundary=OPTIONS, run=path).counts_of("boundary")
    with pytest.raises(ValueError, match="boundary widths is 2% here and 1, 10% there"):
        from_folders(folders, boundary=True, run=path)
    with pytest.raises(ValueError, match="boundaries are measured there but not here"):
        from_folders(folders, run=path)
    # One pair changes and another goes, so that there is one to count anew, and one set aside.
    Image.fromarray(np.zeros((24, 30), np.uint8)).save(folders / "pred" / "3.png")
    for side in ("truth", "pred"):
        (folders / side / "5.png").rename(folders / f"{side}-5.png")
    changed = from_folders(folders, boundary=OPTIONS, run=path).counts_of("boundary")
    assert changed[:3] == whole[:3]
    assert changed != whole[:5]
    for side in ("truth", "pred"):
        (folders / f"{side}-5.png").rename(folders / side / "5.png")
    assert from_folders(folders, boundary=OPTIONS, run=path).counts_of("boundary")[5] == whole[5]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ("UPDATE image SET measured = x'0102' WHERE id = '2'", "measures of image '2'"),
        ("UPDATE image SET measured = NULL WHERE id = '2'", "measures of image '2'"),
        ("ALTER TABLE image DROP COLUMN measured", "unexpected schema: image"),
    ],
)
def test_damage_is_found(folders, damage, message):
    path = folders / "r.sqlite"
    from_folders(folders, boundary=OPTIONS, run=path)
    connection = sqlite3.connect(path)
    connection.execute(damage)
    connection.commit()
    connection.close()
    with pytest.raises(RunFileError, match=message):
        _ = segiou.Run.open(path).counts_of("boundary")


def test_one_dimension_has_no_boundary(folders):
    with pytest.raises(ValueError, match="boundaries require two label maps") as error:
        segiou.score([np.zeros(5, int)], [np.zeros(5, int)], labels=2, boundary=True)
    assert error.value.__notes__ == ["in image '0'"]


def test_intervals_are_of_the_first_width(pairs):
    run = segiou.score(*pairs, labels=LABELS, ignore=255, boundary=OPTIONS)
    found = run.intervals("boundary_iou", resamples=200)
    assert found.metric == "boundary_iou"
    assert found.overall.name == "mean Boundary IoU"
    assert found.overall.value == run.report().score("boundary_iou")
    values = boundary_iou(run.counts_of("boundary").summed())[0]
    assert [c.value for c in found.classes] == values.tolist()
    assert found.overall.low < found.overall.value < found.overall.high


def test_models_are_compared(pairs):
    truths, preds = pairs
    better = np.where(truths == 255, 0, truths)
    runs = [
        segiou.score(truths, p, labels=LABELS, ignore=255, boundary=b)
        for p, b in ((preds, OPTIONS), (better, BoundaryOptions(1)))
    ]
    found = segiou.compare(*runs, metric="boundary_iou", resamples=100, permutations=100)
    (pair,) = found.pairs
    assert found.metric == "boundary_iou"
    assert pair.overall.b == 1.0
    assert pair.overall.a == runs[0].report().score("boundary_iou")
    # What pixel accuracy hides is about the whole images, not of the bands.
    plain = segiou.compare(*runs, resamples=100, permutations=100)
    assert pair.imbalance.to_dict() == plain.pairs[0].imbalance.to_dict()
    other = segiou.score(truths, preds, labels=LABELS, ignore=255, boundary=BoundaryOptions(2))
    with pytest.raises(ValueError, match="with 1 in A but 2 in B"):
        segiou.compare(runs[0], other, metric="boundary_iou")
    none = segiou.score(truths, preds, labels=LABELS, ignore=255)
    with pytest.raises(ValueError, match="B has no boundary counts"):
        segiou.compare(runs[0], none, metric="boundary_iou")


def test_reports_show_them(pairs):
    run = segiou.score(*pairs, labels=LABELS, ignore=255, exclude="sky", boundary=OPTIONS)
    report = run.report()
    values = boundary_iou(run.counts_of("boundary").summed())
    assert report.score("boundary_iou") == np.mean(values[0, 1:])
    data = json.loads(report.to_json(), parse_constant=pytest.fail)
    rows = {(row["measure"], row["tolerance"]): row for row in data["boundary"]}
    assert rows["boundary_iou", "10%"]["classes"]["car"] == values[1, 2]
    assert rows["boundary_iou", "1"]["mean_classes"] == 2
    assert BoundaryOptions.from_dict(data["boundary_options"]) == OPTIONS
    text = " ".join(report.to_text(width=120).split())
    for part in ("Boundary IoU 1 px", "Boundary IoU 10%", "boundaries: widths 1, 10 %"):
        assert part in text
    assert percent(report.score("boundary_iou")) in text
    assert "| class | Boundary IoU 1 px |" in report.to_markdown()
    assert "Boundaries</summary>" in report._repr_html_()
    assert "boundary_iou:10%" in report.to_csv().splitlines()[0]


def test_reports_without_them_say_nothing(pairs):
    report = segiou.score(*pairs, labels=LABELS, ignore=255).report()
    assert report.to_dict()["boundary"] is None
    for shown in (report.to_text(), report.to_markdown(), report.to_csv(), report._repr_html_()):
        assert "oundar" not in shown


@pytest.mark.needs("measures.surfaces")
def test_the_image_border_and_tolerances_are_shown(pairs):
    options = BoundaryOptions(2, border="none")
    report = segiou.score([[0, 1]], [[0, 1]], labels=2, boundary=options).report()
    assert "boundaries: widths 2; image border: none" in " ".join(report.to_text().split())
    surfaces = measure_of("surfaces")(("10%", 2), border=False)
    run = segiou.score(*pairs, labels=LABELS, ignore=255, surfaces=surfaces)
    text = " ".join(run.report().to_text(width=160).split())
    for part in ("boundary F1 10%", "surface Dice 10%", "surface Dice 2 px",
                 "distances in pixels, no surface at the border"):  # fmt: skip
        assert part in text
    titles = {column.name: column.title for column in run.plan("surfaces").image_columns}
    assert titles["surface_dice_10%:car"] == "surface Dice 10%"
    assert titles["boundary_f1_2:car"] == "boundary F1 2 px"


def command(folders, *more):
    places = (str(folders / "truth"), str(folders / "pred"))
    return main(["score", *places, "--labels", "3", "--ignore", "255", "--quiet", *more])


@pytest.mark.needs("measures.surfaces")
def test_the_command_measures(folders, capsys):
    assert command(folders, "--boundary=1,10%", "--boundary-tolerance", "3,0.75%",
                   "--run", str(folders / "r.sqlite"), "--format", "json") == 0  # fmt: skip
    data = json.loads(capsys.readouterr().out)
    assert BoundaryOptions.from_dict(data["boundary_options"]) == OPTIONS
    assert data["surface_plan"]["options"]["tolerances"] == [3, "0.75%"]
    f1 = data["scores"]["boundary_f1"]["rows"]
    for row in data["surfaces"]:
        assert row["boundary_f1_3"]["mean"] == pytest.approx(f1[row["label"]]["value"], rel=1e-12)
        assert 0 < row["boundary_f1_0.75%"]["mean"] < row["boundary_f1_3"]["mean"]
    assert main(["report", str(folders / "r.sqlite"), "--format", "json", "--quiet"]) == 0
    assert json.loads(capsys.readouterr().out)["boundary"] == data["boundary"]
    assert command(folders, "--boundary", "--format", "json") == 0
    data = json.loads(capsys.readouterr().out)
    assert BoundaryOptions.from_dict(data["boundary_options"]) == BoundaryOptions()
    assert data["surfaces"] is None
    assert command(folders, "--boundary-tolerance", "3", "--format", "json") == 0
    data = json.loads(capsys.readouterr().out)
    assert data["boundary"] is None
    assert data["surface_plan"]["options"]["tolerances"] == [3]


def test_the_command_refuses_what_is_no_tolerance(folders, capsys):
    assert command(folders, "--boundary=wide") == 2
    assert "invalid tolerance 'wide'" in capsys.readouterr().err
    assert command(folders, "--boundary=,") == 2
    assert "--boundary ,: expected lengths" in capsys.readouterr().err
    assert command(folders, "--boundary=0.5") == 2
    assert "a width must be a whole number of pixels" in capsys.readouterr().err


def test_the_command_has_a_threshold(folders, capsys):
    assert command(folders, "--boundary", "--fail-under", "boundary_iou=0.01") == 0
    assert command(folders, "--boundary", "--fail-under", "boundary_iou=0.99") == 1
    assert "threshold failed: boundary_iou is " in capsys.readouterr().err
    assert command(folders, "--fail-under", "boundary_iou=0.01") == 2
    assert "boundaries are not measured" in capsys.readouterr().err


def test_folders_are_compared_by_boundary_iou(folders, capsys):
    truth, pred = str(folders / "truth"), str(folders / "pred")
    places = ["--truth", truth, "--labels", "3", "--ignore", "255", "--resamples", "50", "--quiet"]
    arguments = [*places, "--metric", "boundary_iou", "--format", "json"]
    assert main(["compare", pred, pred, *arguments]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["metric"] == "boundary_iou"
    assert data["pairs"][0]["overall"]["delta"] == 0


@pytest.mark.needs("measures.surfaces")
def test_a_missed_structure_alone_is_as_far_as_its_image():
    truth = np.zeros((2, 9, 12), np.uint8)
    truth[:, 2:5, 2:5], truth[:, 6:8, 8:11] = 1, 2
    pred = truth.copy()
    pred[1][truth[1] == 2] = 0
    run = segiou.score(truth, pred, labels=["background", "a", "b"], measures=["surfaces"])
    score, parts = run.plan("surfaces").scores["hausdorff_95"].of_row("b"), run.parts("surfaces")
    # The background of the second image reaches where b is missed; b counts as the diagonal, 15.
    whole = run.plan("surfaces").scores["hausdorff_95"].alone(parts)
    assert score.of_images(parts)[:, 0].tolist() == [0, np.inf]
    assert score.alone(parts).tolist() == [0, whole[1]]
    assert 15 / 3 <= whole[1] < 15
