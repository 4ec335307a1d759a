"""Distances between surfaces of folders of volumes: from the command to tables, files and pages."""

from __future__ import annotations

import csv
import html
import importlib
import json
import math
import os
import re
import shlex
import sqlite3
from contextlib import closing

import numpy as np
import pytest

import segiou
from segiou.cli.main import main
from segiou.measures import Parts
from segiou.measures.boundary import BoundaryOptions
from segiou.measures.parts import merged_layout
from segiou.measures.surfaces import SurfaceOptions, SurfaceRows, surface_scores
from segiou.runs import RunFileError
from segiou.runs.database import checksum

if os.environ.get("SEGIOU_REQUIRE_EXTRAS") != "1":
    pytest.importorskip("nibabel")
nibabel = importlib.import_module("nibabel")

CLASSES = {
    "classes": [
        {"name": "background", "values": [0]},
        {"name": "edema", "values": [2]},
        {"name": "core", "values": [1]},
    ],
    "groups": {"whole": ["edema", "core"]},
}
LABELS = segiou.load_labels
SPACINGS = [(1.0, 1.0, 2.5), (0.5, 0.75, 3.0), (1.5, 1.0, 1.0), (2.0, 0.5, 1.0)]


def volume(shift, core=True):
    values = np.zeros((10, 9, 7), np.uint8)
    values[2:7, 2:7, 1:5] = 2
    if core:
        values[4:7, 3:6, 2:4] = 1
    return np.roll(values, shift, axis=(0, 1, 2))


#: Truth and prediction of each case; the core is missed in one, invented in another.
CASES = {
    "a": (volume((0, 0, 0)), volume((1, 0, 0))),
    "b": (volume((0, 0, 0)), volume((0, 1, 1))),
    "c": (volume((0, 0, 0)), volume((0, 0, 0), core=False)),
    "d": (volume((0, 0, 0), core=False), volume((1, 1, 0))),
}


def save(path, values, spacing):
    path.parent.mkdir(exist_ok=True, parents=True)
    image = nibabel.Nifti1Image(values, np.diag([*spacing, 1]))
    image.header.set_xyzt_units("mm")
    image.to_filename(path)


@pytest.fixture
def folder(tmp_path):
    for (name, sides), spacing in zip(CASES.items(), SPACINGS, strict=True):
        for side, values in zip(("truth", "pred"), sides, strict=True):
            save(tmp_path / side / f"{name}.nii.gz", values, spacing)
    (tmp_path / "set.toml").write_text(segiou.LabelSet.from_dict(CLASSES).to_toml())
    return tmp_path


def scored(folder, **options):
    settings = {"labels": folder / "set.toml", "surfaces": "medpy"} | options
    return segiou.score_folder(folder / "truth", folder / "pred", **settings)


def expected(convention="medpy", tolerances=(1.0,)):
    """What surface_scores gives for each case and structure."""
    found = {}
    for (name, sides), spacing in zip(CASES.items(), SPACINGS, strict=True):
        settings = {"spacing": spacing, "convention": convention, "tolerances": tolerances}
        of_classes = surface_scores(*sides, labels=[1, 2], **settings)
        whole = surface_scores(*(side > 0 for side in sides), labels=[1], **settings)
        found[name] = {"edema": of_classes[2], "core": of_classes[1], "whole": whole[1]}
    return found


@pytest.mark.parametrize("convention", ["segiou", "medpy", "monai", "metricsreloaded"])
def test_each_case_and_structure_is_measured(folder, convention):
    run = scored(folder, surfaces=SurfaceOptions((1, 2), convention=convention))
    assert run.plan("surfaces").unit == "mm"
    for row in run.counts_of("surfaces"):
        wanted = expected(convention, (1, 2))[row["case"]][row["label"]]
        for name in ("hausdorff", "hausdorff_95", "average_surface_distance"):
            assert row[name] == pytest.approx(wanted[name], nan_ok=True)
        assert [*row["surface_dice"].values()] == pytest.approx(
            [*wanted["surface_dice"].values()], nan_ok=True
        )
    assert [row["state"] for row in run.counts_of("surfaces") if row["label"] == "core"] == [
        "found",
        "found",
        "missed",
        "false_positive",
    ]


def test_the_run_file_keeps_every_case(folder):
    path = folder / "r.sqlite"
    run = scored(folder)
    assert scored(folder, run=path).counts_of("surfaces") == run.counts_of("surfaces")
    opened = segiou.Run.open(path)
    assert opened.counts_of("surfaces") == run.counts_of("surfaces")
    assert opened.plan("surfaces") == run.plan("surfaces")
    assert opened.report().to_dict()["surfaces"] == run.report().to_dict()["surfaces"]
    # One case changes, and only that one is read again.
    save(folder / "pred" / "a.nii.gz", CASES["b"][1], SPACINGS[0])
    again = scored(folder, run=path)
    assert again.counts_of("surfaces")[:3] != run.counts_of("surfaces")[:3]
    assert again.counts_of("surfaces")[3:] == run.counts_of("surfaces")[3:]
    with pytest.raises(ValueError, match="convention 'segiou' here and 'medpy' there"):
        scored(folder, run=path, surfaces="segiou")
    with pytest.raises(ValueError, match="surfaces are measured there but not here"):
        scored(folder, run=path, surfaces=None)


def test_parts_are_merged(folder):
    whole = scored(folder)
    runs = [scored(folder, shard=(i, 2), run=folder / f"{i}.sqlite") for i in (1, 2)]
    assert runs[0].merge(runs[1]).counts_of("surfaces") == whole.counts_of("surfaces")
    paths = [str(folder / f"{i}.sqlite") for i in (1, 2)]
    assert main(["merge", *paths, "-o", str(folder / "all.sqlite"), "--quiet"]) == 0
    merged = segiou.Run.open(folder / "all.sqlite")
    assert merged.counts_of("surfaces") == whole.counts_of("surfaces")
    first_and_third = [whole.counts_of("surfaces")[part] for part in (slice(3), slice(6, 9))]
    selected = merged.select(["a", "c"]).counts_of("surfaces")
    assert selected == SurfaceRows.joined(first_and_third)


def forged(path, change, key="b"):
    """The run file with other rows of a case, and the checksum of these."""
    plan = segiou.Run.open(path).plans[0]
    layout = merged_layout({"surfaces": plan.layout})
    with closing(sqlite3.connect(path)) as file, file:
        (packed,) = file.execute("SELECT measured FROM image WHERE id = ?", (key,)).fetchone()
        rows = change(Parts.unpack(layout, [packed])["surfaces/cases"].copy())
        (packed,) = Parts.of(layout, **{"surfaces/cases": rows}).pack()
        values = (packed, checksum(key, packed), key)
        file.execute("UPDATE image SET measured = ?, measured_crc = ? WHERE id = ?", values)


def forged_plan(path, change):
    with closing(sqlite3.connect(path)) as file, file:
        (text,) = file.execute("SELECT value FROM run WHERE key = 'measures'").fetchone()
        text = json.dumps({"surfaces": change(json.loads(text)["surfaces"])})
        values = (text, checksum("measures", text))
        file.execute("UPDATE run SET value = ?, crc = ? WHERE key = 'measures'", values)


def with_cell(column, value, structure=0):
    """Another number in the row of a structure: 0 is the state, 1 the diagonal, 2 a size, …."""

    def change(rows):
        rows[0, structure, column] = value
        return rows

    return change


#: Columns of a structure: state, diagonal, sizes, Hausdorff and mean distance, then what lies
#: within the tolerances, percentiles and pixels.
STATE, SIZE, HAUSDORFF, AVERAGE, WITHIN = 0, 2, 4, 5, 6


@pytest.mark.parametrize(
    "change",
    [
        lambda rows: rows[:0],
        lambda rows: np.concatenate([rows, rows]),
        with_cell(STATE, 4),
        with_cell(STATE, -1),
        with_cell(STATE, 0.5),
        with_cell(STATE, math.nan),
        with_cell(HAUSDORFF, math.nan),
        with_cell(AVERAGE, math.inf),
        with_cell(AVERAGE, -1),
        with_cell(WITHIN, math.nan),
        with_cell(SIZE, math.inf),
        with_cell(slice(SIZE, SIZE + 2), 0),
        with_cell(-1, 0.5),
        with_cell(-1, math.nan),
        with_cell(slice(None), math.nan, structure=2),
    ],
)
def test_forged_rows_are_refused(folder, change):
    path = folder / "r.sqlite"
    scored(folder, run=path)
    forged(path, lambda rows: rows)
    assert len(segiou.Run.open(path).counts_of("surfaces")) == 12
    forged(path, change)
    with pytest.raises(RunFileError, match=r"invalid surface rows|must have one row per image"):
        _ = segiou.Run.open(path).counts_of("surfaces")


@pytest.mark.parametrize(
    "damage", [lambda packed: packed[:-1], lambda packed: packed + b"\0", lambda packed: b""]
)
def test_rows_of_another_length_are_refused(folder, damage):
    path = folder / "r.sqlite"
    scored(folder, run=path)
    with closing(sqlite3.connect(path)) as file, file:
        (packed,) = file.execute("SELECT measured FROM image WHERE id = 'b'").fetchone()
        packed = damage(packed)
        values = (packed, checksum("b", packed))
        file.execute("UPDATE image SET measured = ?, measured_crc = ? WHERE id = 'b'", values)
    with pytest.raises(RunFileError, match=r"is truncated|more counts"):
        _ = segiou.Run.open(path).counts_of("surfaces")


@pytest.mark.parametrize(
    "change",
    [
        lambda plan: {**plan, "masks": {**plan["masks"], "spacing": [1]}},
        lambda plan: {**plan, "masks": {**plan["masks"], "volumes": "yes"}},
        lambda plan: {**plan, "masks": {**plan["masks"], "unit": "miles"}},
        lambda plan: {**plan, "masks": None},
        lambda plan: {**plan, "options": {**plan["options"], "convention": "mine"}},
        lambda plan: {**plan, "options": {**plan["options"], "tolerances": ["x"]}},
        lambda plan: {**plan, "options": {**plan["options"], "more": 1}},
        lambda plan: {"options": plan["options"]},
        lambda plan: [plan],
    ],
)
def test_a_forged_plan_is_refused(folder, change):
    path = folder / "r.sqlite"
    scored(folder, run=path)
    forged_plan(path, change)
    with pytest.raises(RunFileError, match="is corrupt"):
        segiou.Run.open(path)


@pytest.mark.parametrize("value", ["'[]'", "NULL", "x'00'", "7"])
def test_damage_is_found(folder, value):
    scored(folder, run=folder / "r.sqlite")
    connection = sqlite3.connect(folder / "r.sqlite")
    connection.execute(f"UPDATE image SET measured = {value} WHERE id = 'b'")
    connection.commit()
    connection.close()
    with pytest.raises(RunFileError, match="checksum mismatch in the measures of image 'b'"):
        _ = segiou.Run.open(folder / "r.sqlite").counts_of("surfaces")


def test_the_command_from_table_to_json(folder, capsys):
    command = ["score", str(folder / "truth"), str(folder / "pred"), "--quiet", "--labels"]
    command += [str(folder / "set.toml"), "--boundary", "--boundary-tolerance", "1mm,2mm"]
    command += ["--surface", "medpy", "--per-image", str(folder / "cases.csv")]
    assert main([*command, "--run", str(folder / "r.sqlite")]) == 0
    table = capsys.readouterr().out
    assert "surfaces: convention medpy, distances in mm" in " ".join(table.split())
    core = next(line for line in table.splitlines() if line.startswith("core ") and "∞" in line)
    assert core.split()[1:4] == ["2", "1", "1"]
    with (folder / "cases.csv").open(newline="") as file:
        rows = {row["id"]: row for row in csv.DictReader(file)}
    wanted = expected(tolerances=(1, 2))
    for case, structures in wanted.items():
        for name, scores in structures.items():
            value = float(rows[case][f"hausdorff_95:{name}"])
            assert value == pytest.approx(scores["hausdorff_95"])
            dice = float(rows[case][f"surface_dice_2:{name}"])
            assert dice == pytest.approx(scores["surface_dice"][2])
    truth, pred = (side > 0 for side in CASES["a"])
    overlap = (truth & pred).sum() / (truth | pred).sum()
    assert float(rows["a"]["iou:whole"]) == overlap
    assert float(rows["a"]["dice:whole"]) == 2 * (truth & pred).sum() / (truth.sum() + pred.sum())

    assert main(["report", str(folder / "r.sqlite"), "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["surface_plan"]["unit"] == "mm"
    core = next(row for row in found["surfaces"] if row["label"] == "core")
    assert (core["found"], core["missed"], core["false_positive"], core["cases"]) == (2, 1, 1, 4)
    both = [wanted[case]["core"]["hausdorff_95"] for case in "ab"]
    assert core["hausdorff_95"]["mean_of_found"] == pytest.approx(np.mean(both))
    # Neither a mean nor a median over all cases is finite: two of four are infinitely far.
    assert core["hausdorff_95"]["mean"] == core["hausdorff_95"]["median"] == "inf"
    assert len(found["surface_cases"]) == 12
    assert found["boundary"] is None

    for format in ("markdown", "html", "csv"):
        assert main(["report", str(folder / "r.sqlite"), "--format", format]) == 0
    assert "surfaces: convention medpy" in capsys.readouterr().out


def test_boundary_alone_measures_the_surfaces_of_volumes(folder):
    run = scored(folder, surfaces=None, boundary=True)
    assert run.plan("boundary") is None
    options = run.plan("surfaces").options
    assert (options.convention, options.tolerances) == ("segiou", (1.0, 2.0, 4.0))
    relative = scored(folder, surfaces=SurfaceOptions(("50%", 1)))
    assert relative.report().measures["surfaces"][0]["surface_dice_50%"]["mean_of_found"] == 1
    with pytest.raises(ValueError, match="widths 1%, 3: Boundary IoU of volumes needs"):
        scored(folder, boundary=BoundaryOptions(widths=["1%", 3]))


def test_what_missed_ones_count_is_data(folder):
    options = SurfaceOptions(empty={"hausdorff": (math.nan, "diagonal", 100.0)})
    run = scored(folder, surfaces=options, run=folder / "r.sqlite")
    assert "structure counts as 0" in " ".join(str(run.report()).split())
    rows = {row["id"]: row for row in segiou.Run.open(run.path).rows()}
    assert rows["c"]["hausdorff:core"] == 100
    size = np.multiply(CASES["d"][0].shape, SPACINGS[3])
    assert rows["d"]["hausdorff:core"] == pytest.approx(np.sqrt((size**2).sum()))
    assert rows["d"]["hausdorff_95:core"] == math.inf


def test_a_structure_may_have_tolerances_of_its_own(folder):
    options = SurfaceOptions(
        (1.0,), tolerances_of={"core": (3.0,)}, empty={"surface_dice": (1, 0, 0)}
    )
    run = scored(folder, surfaces=options)
    text = " ".join(str(run.report()).split())
    counted = "for surface Dice a missed structure counts as 0, a false positive counts as 0, "
    assert (
        f"{counted}a structure absent from both counts as 1; individual tolerances: core 3" in text
    )
    rows = run.rows()
    assert {"surface_dice_3:core", "surface_dice_1:edema"} <= set(rows[0])
    assert rows[0]["surface_dice_3:core"] == 1
    without = scored(folder, surfaces=SurfaceOptions(()))
    with pytest.raises(ValueError, match="the run has surface counts without surface_dice"):
        without.intervals("surface_dice")
    assert "HD95" in str(without.report())


def test_other_values_in_predictions_and_ignored_voxels(folder):
    given = {"name": "other", **CLASSES}
    given["classes"] = [{**c, "values": [c["values"][0] + 10]} for c in CLASSES["classes"]]
    (folder / "other.toml").write_text(segiou.LabelSet.from_dict(given).to_toml())
    plain = scored(folder)
    for name, (_, pred) in CASES.items():
        spacing = SPACINGS["abcd".index(name)]
        save(folder / "pred" / f"{name}.nii.gz", pred + 10, spacing)
    # Sums of the same areas in another order differ in the last digits.
    for row, other in zip(
        plain.rows(), scored(folder, pred_labels=folder / "other.toml").rows(), strict=True
    ):
        assert row == pytest.approx(other, nan_ok=True)


@pytest.mark.parametrize("case", ["b", "d"])
def test_what_a_mask_leaves_out_is_ignored(case):
    truth, pred = CASES[case]
    valid = np.ones(truth.shape, bool)
    valid[:, 5:] = valid[:3, :, 3] = False
    options = {"labels": segiou.LabelSet.from_dict(CLASSES), "surfaces": True, "spacing": (1, 2, 3)}
    masked = segiou.score([truth], [pred], mask=[valid], **options)
    ignored = segiou.score([np.where(valid, truth, 9)], [pred], ignore=9, **options)
    assert masked.rows()[0] == pytest.approx(ignored.rows()[0], nan_ok=True)
    scores = np.stack([pred == label for label in (0, 2, 1)]).astype(np.float32)
    decided = segiou.score([truth], [scores], mask=[valid], argmax=1, **options)
    assert decided.rows()[0] == pytest.approx(masked.rows()[0], nan_ok=True)


def test_images_are_measured_in_pixels_or_with_a_spacing():
    truth, pred = CASES["a"][0][:, :, 3], CASES["a"][1][:, :, 3]
    labels = segiou.LabelSet.from_dict(CLASSES)
    run = segiou.score([truth], [pred], labels=labels, surfaces="medpy")
    assert (run.plan("surfaces").unit, [*run.plan("surfaces").structures]) == (
        "px",
        ["background", "edema", "core", "whole"],
    )
    wide = segiou.score([truth], [pred], labels=labels, surfaces="medpy", spacing=(2, 2))
    near, far = (r.counts_of("surfaces")[1]["hausdorff"] for r in (run, wide))
    assert (near, far) == (1.0, 2.0)


def test_millimetres_of_images_need_a_spacing(tmp_path, capsys):
    Image = pytest.importorskip("PIL.Image")
    for side, values in zip(("truth", "pred"), CASES["a"], strict=True):
        (tmp_path / side).mkdir()
        Image.fromarray(values[:, :, 3]).save(tmp_path / side / "a.png")
    command = ["score", str(tmp_path / "truth"), str(tmp_path / "pred"), "--labels", "3"]
    command += ["--surface", "segiou", "--boundary-tolerance", "1mm", "--format", "json"]
    assert main(command) == 2
    assert "tolerances in mm require the pixel size in mm" in capsys.readouterr().err
    assert main([*command, "--spacing", "0.5,0.5"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["surface_plan"]["spacing"] == [0.5, 0.5]
    assert found["surfaces"][1]["hausdorff"]["mean"] == 0.5
    assert found["boundary"] is None


def scores_of_command(capsys, folder, *options, code=0):
    command = [str(folder / "truth"), str(folder / "pred"), "--labels", str(folder / "set.toml")]
    assert main(["score", *command, "--quiet", "--format", "json", *options]) == code
    output = capsys.readouterr()
    return output.err if code else json.loads(output.out)


def test_tolerances_and_empty_masks_have_options(folder, capsys):
    rules = {"hausdorff_95": "nan,diagonal,100", "distances": "0,1,2", "dice": "1,0.5,0.25"}
    empty = [word for rule in rules.items() for word in ("--empty", "=".join(rule))]
    named = ["--boundary-tolerance", "1mm,2mm,core=3mm,core=4mm"]
    found = scores_of_command(capsys, folder, "--surface", "medpy", *named, *empty)
    options = SurfaceOptions(
        (1, 2),
        convention="medpy",
        tolerances_of={"core": (3, 4)},
        empty={
            "hausdorff_percentile": (0, 1, 2),
            "hausdorff": (0, 1, 2),
            "average_surface_distance": (0, 1, 2),
            "dice": (1, 0.5, 0.25),
        },
    )
    report = scored(folder, surfaces=options).report().to_dict()
    assert found["surfaces"] == report["surfaces"]
    assert {"surface_dice_3", "surface_dice_4"} <= {
        name for row in found["surfaces"] if row["label"] == "core" for name in row
    }
    missed = next(row for row in found["surface_cases"] if row["state"] == "missed")
    assert (missed["dice"], missed["hausdorff_95"]) == (0.25, 2)
    # The last of two rules for one measure counts.
    turned = [word for rule in reversed(rules.items()) for word in ("--empty", "=".join(rule))]
    found = scores_of_command(capsys, folder, *turned)
    missed = next(row for row in found["surface_cases"] if row["state"] == "missed")
    assert (missed["hausdorff"], missed["hausdorff_95"], missed["dice"]) == (2, 100, 0.25)


@pytest.mark.parametrize(
    ("options", "what"),
    [
        (["--boundary-tolerance", "coer=3mm"], "unknown structure .*did you mean core"),
        (["--boundary-tolerance", "1mm,core=3"], "use the same unit for all tolerances"),
        (["--boundary-tolerance", "core=x"], "invalid tolerance 'x'"),
        (["--empty", "dice"], "expected MEASURE=BOTH,TRUTH,PRED"),
        (
            ["--empty", "surface_dice=2,0,0"],
            r"empty\['surface_dice'\] must be from 0 to 1, .*got 2",
        ),
        (["--empty", "iou=1,0,-0.5"], r"empty\['iou'\] must be from 0 to 1, .*got -0.5"),
        (["--empty", "dice=inf,0,0"], r"empty\['dice'\] must be from 0 to 1, or nan .*got inf"),
        (["--empty", "hausdorff=0,-1,0"], r"empty\['hausdorff'\] must be at least 0, .*got -1"),
        (["--empty", "recall=1,0,0"], "a measure of empty masks"),
        (["--empty", "dice=1,0"], "three numbers or 'diagonal'"),
    ],
)
def test_options_that_do_not_fit_are_refused(folder, capsys, options, what):
    assert re.search(what, scores_of_command(capsys, folder, *options, code=2))


def test_texts_of_volumes_say_voxels(folder, capsys):
    run = scored(folder)
    report = run.report()
    first = report.next_steps[0]
    assert (first.kind, first.truth, first.pred) == ("confusion", "core", "edema")
    assert first.share == pytest.approx(2 / 3)
    text = str(report)
    assert " voxels, " in text and "pixels" not in text
    merged = run.select(run.ids[:2]).merge(run.select(run.ids[2:]))
    assert merged.report().unit == "voxels"
    assert main(["inspect", str(folder / "truth")]) == 0
    shown = capsys.readouterr().out
    assert "voxels" in shown
    assert "pixels" not in shown
    assert "brats2023" in shown
    assert not {"camvid", "cityscapes", "voc2012"} & set(shown.split())


def test_boundary_iou_of_volumes_has_widths_in_mm(folder, capsys):
    found = scores_of_command(capsys, folder, "--boundary=1mm,2mm")
    options = SurfaceOptions((1, 2, 4), widths=(1, 2))
    report = scored(folder, surfaces=options).report()
    assert found["surfaces"] == report.to_dict()["surfaces"]
    assert "Boundary IoU 2 mm" in report.to_text(width=240)
    assert found["surface_plan"]["options"]["widths"] == [1, 2]


def test_the_page_says_how_to_measure_the_same_again(folder, capsys, tmp_path):
    """The command of the page gives the numbers of the page."""
    page, empty = tmp_path / "page.html", ["--empty", "hausdorff_95=nan,diagonal,inf"]
    asked = ["--boundary=2mm", "--boundary-tolerance", "1mm,core=3.5mm", *empty]
    found = scores_of_command(capsys, folder, *asked, "--html", str(page))
    text = html.unescape(re.sub(r"</?span[^>]*>", "", page.read_text()))
    said = re.search(r"<code>(segiou score .*?)</code>", text).group(1)
    given = shlex.split(said)
    options = given[given.index(asked[0]) : given.index("--html")]
    assert options == asked
    assert scores_of_command(capsys, folder, *options)["surfaces"] == found["surfaces"]
