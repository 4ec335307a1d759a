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
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

import segiou
from segiou.cli.main import main
from segiou.measures import Parts
from segiou.measures.boundary import BoundaryOptions
from segiou.measures.parts import merged_layout
from segiou.measures.surfaces import SurfaceOptions, SurfaceRows, surface_scores
from segiou.report.measured import score_part
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


FIXTURE = Path(__file__).parents[3] / "fixtures" / "volumes"
INTERRUPTED = Path(__file__).parents[2] / "importable" / "interrupted.py"


def patients(model, **options):
    settings = {"labels": FIXTURE / "dataset.json", "boundary": True} | options
    return segiou.score_folder(FIXTURE / "truth", FIXTURE / model, **settings)


def test_intervals_are_over_cases():
    run = patients("model_a")
    rows = run.report().measures["surfaces"]
    found = run.intervals("surface_dice", resamples=500)
    assert (found.units, found.aggregate) == (10, "class")
    assert [c.name for c in found.classes] == [*run.plan("surfaces").structures]
    means = [row["surface_dice_1"]["mean"] for row in rows]
    assert [c.value for c in found.classes] == pytest.approx(means, nan_ok=True)
    assert found.overall.value == pytest.approx(np.nanmean(means))
    assert found.overall.low < found.overall.value < found.overall.high


@pytest.mark.parametrize("width", [40, 60, 80, 140])
def test_a_terminal_of_any_width_shows_every_measure(width):
    options = SurfaceOptions(tolerances=(1, 3))
    run = patients("model_a", labels=FIXTURE / "regions.json", surfaces=options)
    report = run.report(intervals=run.intervals("surface_dice", resamples=50))
    text = report.to_text(width=width)
    assert max(map(len, text.splitlines())) <= width
    lines = [line.split("  ")[1:] for line in text.splitlines() if line.startswith("core ")]
    found = {value.strip() for line in lines for value in line}
    core = report.to_dict()["surfaces"][-1]
    for name in ("surface_dice_1", "surface_dice_3"):
        assert f"{100 * core[name]['mean']:.2f} %" in found
    assert f"{core['average_surface_distance']['mean_of_found']:.2f}" in found
    assert ("Hidden columns (widen the terminal): Dice" in " ".join(text.split())) == (width == 40)


def test_csv_has_the_surfaces_of_classes():
    report = patients("model_a", exclude=["background"]).report()
    background, organ, *_ = csv.DictReader(report.to_csv().splitlines())
    row = report.to_dict()["surfaces"][0]
    assert (row["label"], organ["surfaces_false_positive"]) == ("organ", "1")
    assert float(organ["dice:mean"]) == row["dice"]["mean"]
    assert float(organ["hausdorff_95:median"]) == row["hausdorff_95"]["median"]
    assert organ["hausdorff_95:mean"] == "inf"
    assert background["hausdorff_95:median"] == background["surfaces_found"] == ""


def test_the_table_has_mean_dice_and_says_what_a_protocol_is_about():
    report = patients("model_a", boundary=None, exclude=["background"]).report("nnunet")
    text = " ".join(report.to_text().split())
    assert f"mean Dice {100 * report.mean_dice:.2f} %" in text
    assert "groups, shares and counts pool voxels over all cases" in text
    assert "applies to means only" not in patients("model_a").report().to_text()
    assert "--exclude background" not in text
    whole = patients("model_a", boundary=None).report("nnunet").to_text(width=200)
    assert "includes background, which this protocol leaves out; use --exclude background" in whole


def test_a_structure_that_no_case_has_is_not_listed():
    mask = np.zeros((4, 4), np.uint8)
    mask[1:3, 1:3] = 1
    run = segiou.score([mask], [mask], labels=["ground", "organ", "lesion"], surfaces=True)
    lines = str(run.report()).partition("structure ")[2].splitlines()
    assert any(line.startswith("organ ") for line in lines)
    assert not any(line.startswith("lesion ") for line in lines)


def test_models_are_compared_on_the_same_cases():
    runs = [patients(model) for model in ("model_a", "model_b")]
    compared = segiou.compare(*runs, metric="surface_dice", resamples=200, permutations=200)
    pair = compared.pairs[0]
    intervals = [run.intervals("surface_dice", resamples=200) for run in runs]
    assert pair.overall.a == pytest.approx(intervals[0].overall.value)
    assert pair.overall.b == pytest.approx(intervals[1].overall.value)
    assert "surface Dice" in str(compared)
    other = patients("model_b", boundary=None, surfaces="monai")
    # Only options that differ are named: not the structures and the unit.
    differing = "with convention segiou in model_a but convention monai in model_b; score both"
    with pytest.raises(ValueError, match=differing):
        segiou.compare(runs[0], other, metric="surface_dice")
    plain = patients("model_b", boundary=None)
    with pytest.raises(
        ValueError, match=r"has no surface counts; .* measures=..surfaces'\] \(--surface\)"
    ):
        segiou.compare(runs[0], plain, metric="surface_dice")


def test_the_command_compares_runs(tmp_path, capsys):
    for model in ("model_a", "model_b"):
        patients(model, run=tmp_path / model)
    command = ["compare", str(tmp_path / "model_a"), str(tmp_path / "model_b"), "--quiet"]
    assert main([*command, "--metric", "surface_dice", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["metric"] == "surface_dice"


@pytest.mark.gate
def test_what_was_killed_goes_on(tmp_path):
    """SIGKILL between cases and in a commit: the totals are the same."""
    arguments = ["score", str(FIXTURE / "truth"), str(FIXTURE / "model_a"), "--quiet"]
    arguments += ["--labels", str(FIXTURE / "regions.json"), "--format", "json"]
    arguments += ["--boundary", "--surface", "medpy", "--run"]
    whole = patients("model_a", labels=FIXTURE / "regions.json", surfaces="medpy")
    for number, where in enumerate(("RunWriter.add:3", "RunWriter._write_entries:2")):
        path = tmp_path / f"{number}.sqlite"
        killed = subprocess.run(
            [sys.executable, str(INTERRUPTED), "at", where, "SIGKILL", *arguments, str(path)],
            capture_output=True,
            start_new_session=True,
        )
        assert killed.returncode == -signal.SIGKILL, killed.stderr
        command = [sys.executable, "-m", "segiou", *arguments, str(path)]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert segiou.Run.open(path).counts_of("surfaces") == whole.counts_of("surfaces")
        assert json.loads(done.stdout)["surfaces"] == whole.report().to_dict()["surfaces"]


def test_the_page_has_the_distances(tmp_path):
    from segiou.report import write_html

    run = patients("model_a", run=tmp_path / "r.sqlite")
    page = write_html(tmp_path / "page.html", run.report(), run=run).read_text()
    section = page[page.index('<section id="surfaces"') :]
    section = section[: section.index("</section>")]
    for row in run.report().measures["surfaces"]:
        assert f'<span class="name">{row["label"]}</span>' in section
    assert "Surfaces: convention segiou, distances in mm." in section
    assert '"unit":"voxels"' in page
    # Volumes have voxels in every sentence.
    text = re.sub(r"<(style|script).*?</\1>", "", page, flags=re.DOTALL)
    assert "Voxel accuracy" in text and not re.search(r"\bpixels?\b(?![-\"])", text, re.IGNORECASE)
    assert "HD95 median, mm</th>" in section
    assert "2.06\xa0% of organ voxels predicted as tumour" in page
    case = next(c for c in run.report().measures["surface_cases"] if c["case"] == "patient_05")
    known = f"organ {100 * case['dice']:.2f} %, {case['hausdorff_95']:.2f}; tumour missed; vessel "
    assert f"Dice and HD95 in mm: {known}" in page


def test_structures_show_surface_dice_at_their_own_tolerance():
    """Two cubes a voxel apart: at 1 mm nothing of the other's front and back is within reach."""
    truth, pred = np.zeros((2, 6, 6, 6), np.uint8)
    truth[1:3, 1:3, 1:3], pred[1:3, 1:3, 2:4] = 1, 1
    truth[4:, 4:, 3:5], pred[4:, 4:, 4:] = 2, 2
    surfaces = SurfaceOptions((0.5,), tolerances_of={"b": (3.0,)})
    run = segiou.score([truth], [pred], labels=["air", "a", "b"], exclude="air", surfaces=surfaces)
    table = score_part(run.report().tables[0])
    at = next(i for i, c in enumerate(table.filled) if c.head.startswith("surface Dice 0.5"))
    rows = {row[0].text: row[at].text for row in table.rows}
    assert rows["b"].startswith("100.00 % at 3") and " at " not in rows["a"]


def test_the_page_on_volumes_shows_what_its_command_prints(monkeypatch, tmp_path, capsys):
    page = (FIXTURE.parents[1] / "docs" / "volumes.md").read_text(encoding="utf-8")
    command = next(line for line in page.splitlines() if line.startswith("segiou score fixtures"))
    table = page[page.index("```text\n") :].split("```")[1].removeprefix("text\n")
    monkeypatch.chdir(FIXTURE.parents[1])
    monkeypatch.setenv("COLUMNS", "160")
    words = shlex.split(command.replace("model_a.sqlite", str(tmp_path / "a.sqlite")))
    assert main([*words[1:], "--quiet"]) == 0
    assert table in capsys.readouterr().out


@pytest.mark.parametrize(("least", "code"), [("0.5", 0), ("0.95", 1)])
def test_surface_dice_may_have_a_threshold(capsys, least, code):
    """The mean of the structures at the first tolerance."""
    folders = [str(FIXTURE / name) for name in ("truth", "model_a")]
    labels = ["--labels", str(FIXTURE / "dataset.json"), "--format", "json"]
    asked = ["--boundary", "--boundary-tolerance", "2mm", "--fail-under", f"surface_dice={least}"]
    assert main(["score", *folders, *labels, *asked]) == code
    found = json.loads(capsys.readouterr().out)
    means = [row["surface_dice_2"]["mean"] for row in found["surfaces"]]
    assert found["thresholds"][0]["value"] == pytest.approx(sum(means) / len(means), abs=1e-12)


def test_without_a_tolerance_there_is_no_surface_dice():
    mask = np.pad(np.ones((2, 2), np.uint8), 1)
    options = SurfaceOptions(tolerances=())
    for measured in (options, None):
        report = segiou.score([mask], [mask], labels=2, surfaces=measured).report()
        with pytest.raises(ValueError, match="surface_dice was not measured"):
            report.score("surface_dice")


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


def test_the_command_from_two_folders_to_the_page(tmp_path, capsys, monkeypatch):
    """With and without a run, in parts, merged, compared, with intervals over patients."""
    monkeypatch.setenv("COLUMNS", "200")
    labels = ["--labels", str(FIXTURE / "regions.json"), "--exclude", "background", "--quiet"]
    measured = ["--boundary", "--boundary-tolerance", "1mm,2mm", "--surface", "medpy"]
    sampled = ["--intervals", "--group-by", r"^(patient_\d\d)", "--resamples", "200"]

    def command(*words, code=0):
        assert main([*map(str, words)]) == code
        return capsys.readouterr().out

    def scored_of(model, *options):
        folders = FIXTURE / "truth", FIXTURE / model
        return command("score", *folders, *labels, *measured, *options)

    whole = json.loads(scored_of("model_a", "--format", "json", *sampled))
    for part in (1, 2):
        scored_of("model_a", "--run", tmp_path / f"part{part}", "--shard", f"{part}/2")
    parts = tmp_path / "part1", tmp_path / "part2"
    command("merge", *parts, "--output", tmp_path / "model_a.sqlite", "--quiet")
    shown = command("report", tmp_path / "model_a.sqlite", "--format", "json", *sampled, "--quiet")
    again = json.loads(shown)
    for key in ("surfaces", "surface_cases", "mean_iou", "groups", "intervals"):
        assert again[key] == whole[key]
    found = segiou.Run.open(tmp_path / "model_a.sqlite").intervals(
        "surface_dice", groups=r"^(patient_\d\d)", resamples=200
    )
    assert (found.unit, found.units) == ("group", 10)
    score = again["scores"]["surface_dice"]["rows"]
    for row, interval in zip(again["surfaces"], found.classes, strict=True):
        dice = score[row["label"]]
        assert (dice["low"], dice["high"]) == (interval.low, interval.high)
        assert interval.value == pytest.approx(row["surface_dice_1"]["mean"], abs=1e-9)
        assert dice["low"] < dice["value"] < dice["high"]
    table = command("report", tmp_path / "model_a.sqlite", *sampled, "--quiet")
    assert "95 % interval" in table.split("\nstructure")[2]
    page = tmp_path / "page.html"
    command("report", tmp_path / "model_a.sqlite", "--html", page, *sampled, "--quiet")
    text = page.read_text()
    section = text[text.index('<section id="surfaces"') :].split("</section>")[0]
    assert section.count('<rect class="box"') == len(again["surfaces"])
    assert "9 of 10 cases" in section
    assert "voxels that was found" in " ".join(text.split())
    scored_of("model_b", "--run", tmp_path / "model_b.sqlite")
    runs = tmp_path / "model_a.sqlite", tmp_path / "model_b.sqlite"
    differing = ["--metric", "surface_dice", "--group-by", r"^(patient_\d\d)", "--quiet"]
    compared = json.loads(command("compare", *runs, *differing, "--format", "json"))
    assert compared["metric"] == "surface_dice"
    cases = tmp_path / "cases.csv"
    command("report", runs[0], "--per-image", cases, "--quiet")
    with cases.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 10
    assert {"dice:core", "hausdorff_95:core", "surface_dice_2:whole"} <= rows[0].keys()


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
