"""What the command refuses before it does any work: its folders do not even exist."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from mask_files import write_pairs
from PIL import Image

from segiou.cli.main import main

NOWHERE = ["score", "no-truth", "no-pred", "--labels", "camvid"]
COMPARE = ["compare", "no-a", "no-b"]


def refused(capsys, arguments) -> str:
    """What is said by a command that must end with 2 and print no data."""
    try:
        assert main([str(argument) for argument in arguments]) == 2
    except SystemExit as ended:  # argparse found it
        assert ended.code == 2
    found = capsys.readouterr()
    assert found.out == ""
    assert found.err.startswith("segiou: ")
    return found.err


def test_without_a_fault_the_folders_are_looked_at(capsys):
    """The tests below could not fail otherwise."""
    assert main(NOWHERE) == 3
    assert "2 files do not exist\n  no-truth, no-pred" in capsys.readouterr().err
    assert main(COMPARE) == 3


@pytest.mark.parametrize("option", ["--output", "--html", "--per-image", "--run"])
class TestFiles:
    def test_in_no_folder(self, capsys, tmp_path, option):
        said = refused(capsys, [*NOWHERE, option, tmp_path / "no" / "f.html"])
        assert f"{option} {tmp_path}/no/f.html: {tmp_path}/no does not exist" in said

    def test_in_a_file(self, capsys, tmp_path, option):
        (tmp_path / "file").touch()
        said = refused(capsys, [*NOWHERE, option, tmp_path / "file" / "f.html"])
        assert f"{tmp_path}/file is a file; create it or choose another folder" in said

    def test_that_are_folders(self, capsys, tmp_path, option):
        said = refused(capsys, [*NOWHERE, option, tmp_path])
        assert f"{option} {tmp_path}: expected a file, got a folder" in said

    def test_that_may_not_be_written(self, capsys, tmp_path, option):
        folder = tmp_path / "closed"
        folder.mkdir(mode=0o500)
        if os.access(folder, os.W_OK):
            # Permissions do not bind this user, but nobody makes files in here.
            folder = Path("/proc")
            if not folder.is_dir():
                pytest.skip("every folder may be written here")
        said = refused(capsys, [*NOWHERE, option, folder / "f.html"])
        assert f"cannot write to {folder}: " in said

    def test_leave_nothing_behind(self, capsys, tmp_path, option):
        main([*NOWHERE, option, str(tmp_path / "f.html")])
        assert list(tmp_path.iterdir()) == []


def test_a_run_file_is_replaced_by_no_report(capsys, tmp_path):
    old = tmp_path / "old.sqlite"
    old.write_bytes(b"SQLite format 3\0")
    said = refused(capsys, [*NOWHERE, "--per-image", old])
    assert f"--per-image {old}: would overwrite a run file; choose a different path" in said


def test_one_file_for_two_outputs(capsys, tmp_path):
    files = ["--html", tmp_path / "r.html", "--output", tmp_path / "." / "r.html"]
    assert "would overwrite what --output writes" in refused(capsys, [*NOWHERE, *files])
    pytest.importorskip("matplotlib")
    folder = ["--html", tmp_path / "r.html", "--plots", tmp_path / "r.html"]
    assert "r.html: would overwrite what --html writes;" in refused(capsys, [*NOWHERE, *folder])


def test_an_output_over_an_input(capsys, tmp_path):
    for name in ("run.sqlite", "mine.toml"):
        (tmp_path / name).write_text("precious")
    run, labels = tmp_path / "run.sqlite", tmp_path / "mine.toml"
    for command in (["report", run], ["explain", run], ["compare", run, "b"]):
        said = refused(capsys, [*command, "--output", run])
        assert f"would overwrite {run}; choose a different path" in said
    command = ["score", "no-truth", "no-pred", "--labels", labels, "--run", labels]
    assert f"would overwrite {labels}" in refused(capsys, command)
    assert {path.read_text() for path in tmp_path.iterdir()} == {"precious"}


def test_outputs_may_share_a_folder(capsys, tmp_path):
    pytest.importorskip("matplotlib")
    photos, out = tmp_path / "photos", tmp_path / "out"
    photos.mkdir()
    shared = ["--html", f"{out}/", "--plots", out, "--errors", out, "--images", photos]
    assert main([str(one) for one in (*NOWHERE, *shared)]) == 3
    assert "no-truth, no-pred" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "lost"),
    [
        ("slices RUN TABLE:w -o TABLE", "TABLE"),
        ("slices RUN RUN --group-by TABLE:id -o TABLE", "TABLE"),
        ("report RUN --slices TABLE:w -o TABLE", "TABLE"),
        ("report RUN --group-by TABLE:w --per-image TABLE", "TABLE"),
        ("compare RUN RUN --slices TABLE -o TABLE", "TABLE"),
        ("compare --recipes a=RUN,x b=y -o RUN", "RUN"),
        ("score DIR DIR --labels 2 --ids TABLE:id --junit TABLE", "TABLE"),
        ("score DIR DIR --labels 2 -o MASK --format csv", "a mask of DIR"),
        ("raters a=DIR b=DIR --labels 2 --html MASK", "a mask of DIR"),
        ("inspect DIR --propose MASK", "a mask of DIR"),
        pytest.param(
            *("map-accuracy TABLE --areas TABLE --html TABLE", "TABLE"),
            marks=pytest.mark.needs("maps"),
        ),
        ("merge RUN RUN -o RUN", "RUN"),
    ],
)
def test_an_output_over_an_input_of_any_kind(capsys, tmp_path, command, lost):
    places = {"RUN": "run.sqlite", "TABLE": "meta.csv", "DIR": "masks", "MASK": "masks/a.png"}
    (tmp_path / "masks").mkdir()
    for name in ("run.sqlite", "meta.csv", "masks/a.png"):
        (tmp_path / name).write_text("precious")
    for word, path in places.items():
        command, lost = (text.replace(word, str(tmp_path / path)) for text in (command, lost))
    assert f"would overwrite {lost}; choose a different path" in refused(capsys, command.split())
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {path.read_text() for path in files} == {"precious"} and len(files) == 3


def test_plots_where_a_file_is(capsys, tmp_path):
    pytest.importorskip("matplotlib", reason="without it that is what is said first")
    (tmp_path / "plots").touch()
    said = refused(capsys, [*NOWHERE, "--plots", tmp_path / "plots"])
    assert "expected a folder, got a file" in said


def test_images_that_are_no_folder(capsys, tmp_path):
    page = ["--html", tmp_path / "r.html", "--images", tmp_path / "no"]
    said = refused(capsys, [*NOWHERE, *page])
    assert "no: not a folder" in said


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--output", "r.xyz"], "unknown extension '.xyz'"),
        (["--protocol", "mine"], "unknown protocol 'mine'"),
        (["--protocol", "detectron"], "did you mean detectron2?"),
        (["--exclude", "buildng"], "did you mean building?"),
        (["--fail-under", "iou:buildng=0.5"], "did you mean building?"),
        (["--labels", "camvd"], "did you mean camvid?"),
        (
            ["--sort", "iuo"],
            "cannot sort by 'iuo'; sort by order, name, iou, dice",
        ),
        pytest.param(
            *(["--surface"], "argument --surface: expected one argument: segiou, medpy, monai"),
            marks=pytest.mark.needs("measures.surfaces"),
        ),
        (["--format", "jsn"], "did you mean json?"),
        (["--fail-under", "mean_acuracy=0.5"], "did you mean mean_accuracy?"),
        (["--worst", "1", "--worst-by", "iou:buildng"], "did you mean building?"),
        (["--labels", "voc"], "did you mean voc2012?"),
        (["--fail-under", "iou:unicorn=0.5"], "unknown class; classes: sky, building"),
        (["--require", "iou:unicorn=0.5"], "--require iou:unicorn: unknown class; classes: sky"),
        (["--fail-under", "dice:=0.5"], "unknown class"),
        (["--fail-under", "boundary_iou=0.5"], "score with --boundary"),
        (
            ["--worst", "3", "--worst-by", "iou:unicorn"],
            "iou of 'unicorn': unknown class; choose from sky",
        ),
        (["--worst-by", "influence"], "--worst-by has no effect without --worst"),
        (["--images", "."], "--images has no effect without --html"),
        (["--examples", "3"], "--examples has no effect without --html"),
        (["--overwrite"], "--overwrite has no effect without --plots, --html or --errors"),
        (["--workers", "2", "--processes", "2"], "--workers has no effect with --processes"),
        pytest.param(
            ["--lesions=brats2023-gli", "--columns", "iou,lesion_f1"],
            "lesions of protocol 'brats2023-gli' are regions of the values",
            marks=pytest.mark.needs("measures.lesions"),
        ),
        (["--spacing", "1,2"], "--spacing has no effect without --boundary"),
        (["--seed", "1"], "--seed has no effect without --intervals"),
        (["--intervals", "--level", "95"], "level must be between 0 and 1"),
        (["--intervals", "--resamples", "1"], "--resamples must be at least 2"),
        (
            ["--intervals", "--resamples", "99999999999"],
            "--resamples must be at most 1000000, got 99999999999",
        ),
        (["--intervals", "--seed", "-1"], "--seed: expected an integer ≥ 0, got '-1'"),
        (["--group-by", "("], "'(' is not a regular expression"),
        (["--group-by", "no.csv:drive"], "no.csv: does not exist"),
        (["--group-by", "none", "--blocks", "3"], "pass only one of them"),
        (["--ignore", "1" + 20 * "0"], "ignore must be at most 18446744073709551615"),
        (["--exclude", "unicorn"], "unknown class 'unicorn'"),
    ],
)
def test_options_of_a_report(capsys, options, said):
    assert said in refused(capsys, [*NOWHERE, *options])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([*COMPARE, "--metric", "beauty"], "unknown score 'beauty'; choose from iou, dice"),
        ([*COMPARE, "--metric", "dise"], "did you mean dice?"),
        ([*COMPARE, "--names", "one"], "got 1 name for 2 models"),
        ([*COMPARE, "--names", "one,one"], "names must be unique"),
        ([*COMPARE, "--level", "2"], "level must be between"),
        ([*COMPARE, "--group-by", "["], "not a regular expression"),
        ([*COMPARE, "--protocol", "mine"], "unknown protocol 'mine'"),
        ([*COMPARE, "--output", "x.xml"], "use .txt, .md, .markdown, .tex, .json or .csv"),
        ([*COMPARE, "--html", "no/x.html"], "does not exist"),
        (["explain", "no-run", "--protocol", "mine"], "unknown protocol 'mine'"),
        (["explain", "no-run", "--output", "no/x.txt"], "does not exist"),
        (["inspect", "no-dir", "--output", "no/x.txt"], "does not exist"),
        (["merge", "no-a", "no-b", "--output", "no/x.sqlite"], "does not exist"),
    ],
)
def test_options_of_other_commands(capsys, arguments, said):
    assert said in refused(capsys, arguments)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        *(
            ([option, "1" * 5000], f"argument {option}: expected an integer ≥ ")
            for option in ("--workers", "--resamples", "--seed", "--worst", "--labels")
        ),
        (["--shard", "1"], "expected I/N with 1 ≤ I ≤ N, got '1'"),
        (["--shard", "3/2"], "expected I/N with 1 ≤ I ≤ N, got '3/2'"),
        (
            ["--dask", "nonsense"],
            "expected an address with a port, e.g. tcp://host:8786, got 'nonsense'",
        ),
        (["--dask", "8786"], "expected an address with a port, e.g. tcp://host:8786, got '8786'"),
        (["--run", "-"], "cannot write a run file to stdout"),
    ],
)
def test_values_that_no_option_takes(capsys, options, said):
    assert said in refused(capsys, [*NOWHERE, *options])


def test_a_merged_run_is_no_stream(capsys):
    assert "cannot write a run file to stdout" in refused(capsys, ["merge", "a", "b", "-o", "-"])


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"id,drive\n\xff,1\n", "is neither UTF-8 nor UTF-16 text"),
        (b'id,drive\n"a,1\n', "is not valid CSV: unexpected end of data"),
        (b"id\na\n", "has no column 'drive'; columns: id"),
        (b"", "has no rows"),
    ],
)
def test_tables_of_groups_that_cannot_be_read(capsys, tmp_path, content, said):
    table = tmp_path / "groups.csv"
    table.write_bytes(content)
    found = refused(capsys, [*NOWHERE, "--group-by", f"{table}:drive"])
    assert said in found and str(table) in found


def broken_pairs(root: Path, *names: str) -> list[str]:
    """Pairs whose predictions are broken: reading one would be an error of its own."""
    masks = {name: [[0, 1]] for name in names}
    write_pairs(root, masks, masks)
    for name in names:
        (root / "pred" / f"{name}.png").write_bytes(b"broken")
    return ["score", str(root / "truth"), str(root / "pred"), "--labels", "2"]


def test_intervals_over_one_image(capsys, tmp_path):
    said = refused(capsys, [*broken_pairs(tmp_path, "a"), "--intervals"])
    assert "expected at least 2 images, got 1" in said
    assert "omit --intervals, --group-by and --blocks, or score more images" in said


def test_intervals_over_one_group(capsys, tmp_path):
    command = broken_pairs(tmp_path, "a_1", "a_2")
    assert "expected at least 2 groups, got 1" in refused(capsys, [*command, "--group-by", "^."])
    assert "is not found in a_1" in refused(capsys, [*command, "--group-by", "^b"])
    assert main([*command, "--intervals"]) == 3


def test_no_run_file_is_made_for_a_command_that_is_refused(capsys, tmp_path):
    command = broken_pairs(tmp_path, "a")
    refused(capsys, [*command, "--intervals", "--run", tmp_path / "r.sqlite"])
    assert not (tmp_path / "r.sqlite").exists()


def test_options_of_scoring_with_a_run_file(capsys, tmp_path):
    """They would be passed over, and the numbers not be what was asked for."""
    for side in ("truth", "pred"):
        Image.fromarray(np.uint8([[0, 1]])).save(tmp_path / f"{side}.png")
    run = tmp_path / "r.sqlite"
    pair = [str(tmp_path / "truth.png"), str(tmp_path / "pred.png")]
    assert main(["score", *pair, "--labels", "2", "--run", str(run)]) == 0
    capsys.readouterr()
    said = refused(capsys, ["explain", run, "--ignore", "0", "--labels", "2"])
    assert "is already scored, so --labels, --ignore" in said
    said = refused(capsys, ["explain", run, "--labels", "2"])
    assert "so --labels would have no effect; omit it, or" in said
    for column, hint in (
        ("kappa", "'kappa' has no column in the table of classes; choose from iou,"),
        ("kapa", "unknown column 'kapa'; choose from map, medical, iou,"),
        ("jacard", "did you mean jaccard?"),
    ):
        assert hint in refused(capsys, ["report", run, "--columns", column])


def test_findings_take_their_format_from_their_ending(capsys, tmp_path):
    Image.fromarray(np.uint8([[0, 1]])).save(tmp_path / "mask.png")
    for ending, first in ((".json", "{"), (".txt", "f")):
        path = tmp_path / f"found{ending}"
        assert main(["inspect", str(tmp_path / "mask.png"), "--output", str(path)]) == 0
        assert path.read_text()[0] == first


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["score", "", "no-pred", "--labels", "2"], "TRUTH is empty; is a shell variable unset?"),
        (["score", "no-truth", "", "--labels", "2"], "PRED is empty"),
        (["compare", "no-a", ""], "MODEL is empty"),
        (["inspect", ""], "DIR is empty"),
        (["labelsets", ""], "NAME is empty"),
        *(
            ([*NOWHERE, option, ""], f"{option} is empty; is a shell variable unset?")
            for option in ("--output", "--html", "--run", "--key", "--group-by", "--ignore")
        ),
        ([*NOWHERE, "--ignore", ","], "expected values or names of classes, got ','"),
        (["explain", "."], "a run file; for folders: segiou explain TRUTH PRED --labels SET"),
        (["compare", ".", "no-b"], "segiou compare PRED PRED --truth DIR --labels SET"),
        (["report", "."], ". is a folder, not a run file; to score it, use segiou score"),
    ],
)
def test_arguments_that_are_not_what_was_meant(capsys, arguments, said):
    assert said in refused(capsys, arguments)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([*NOWHERE, "--formt", "json"], "--formt json; did you mean --format?"),
        ([*NOWHERE, "--formt=json"], "--formt=json; did you mean --format?"),
        (["score", "a", "b", "--lables", "2"], "--lables 2; did you mean --labels?"),
        ([*NOWHERE, "another"], "unrecognized arguments: another\n"),
        (
            [*NOWHERE, "--num_classes=3"],
            "unrecognized arguments: --num_classes=3; did you mean --labels?",
        ),
        ([*NOWHERE, "c.json", "pred"], "c.json pred; to pass several files, quote the pattern"),
        (
            ["report", "run", "--labels", "3"],
            "unrecognized arguments: --labels 3; --labels is an option of score, ",
        ),
        ([*NOWHERE, *"abcde"], "unrecognized arguments: a b c and 2 more\n"),
    ],
)
def test_options_that_are_not_there(capsys, arguments, said):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    lines = capsys.readouterr().err.splitlines(keepends=True)
    assert said in lines[0]
    assert lines[1:] == [f"See segiou {arguments[0]} --help\n"]


def test_run_files_where_folders_are_meant(capsys, tmp_path):
    a = tmp_path / "a"
    a.write_bytes(b"SQLite format 3\0" + bytes(100))
    mixed = ["compare", a, "no-b", "--truth", "no-truth", "--labels", "2"]
    assert f"{a} is a run file)" in refused(capsys, mixed)


def test_a_file_against_a_folder(capsys, tmp_path):
    Image.fromarray(np.uint8([[0, 1]])).save(tmp_path / "a.png")
    assert main(["score", str(tmp_path / "a.png"), str(tmp_path), "--labels", "2"]) == 3
    assert "is a file, not a folder; pass two folders or two files" in capsys.readouterr().err
    assert main(["score", str(tmp_path / "a.png"), "no.png", "--labels", "2"]) == 3
    said = capsys.readouterr().err
    assert said == "segiou: no.png: does not exist\n"


def test_swapped_folders_are_asked_about(capsys, tmp_path):
    for side, array in (("truth", [[0, 255]]), ("pred", [[0, 1]])):
        (tmp_path / side).mkdir()
        Image.fromarray(np.uint8(array)).save(tmp_path / side / "a.png")
    options = ["--labels", "2", "--ignore", "255"]
    assert main(["score", str(tmp_path / "pred"), str(tmp_path / "truth"), *options]) == 3
    said = capsys.readouterr().err
    assert "are truth and prediction swapped?" in said


@pytest.mark.skipif(sys.platform == "win32", reason="has no limit of open files")
@pytest.mark.gate
def test_processes_without_enough_open_files(tmp_path):
    """The fork server only prints a traceback then."""
    write_pairs(tmp_path, [[[0, 1]]], [[[0, 1]]])
    folders = f"{tmp_path / 'truth'} {tmp_path / 'pred'}"
    command = f"{sys.executable} -m segiou score {folders} --labels 2 --processes 2"
    done = subprocess.run(
        ["sh", "-c", f"ulimit -n 16; {command}"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "segiou: 2 processes need 36 open files, but only 16 are allowed (ulimit -n). Allow more, "
        "start fewer processes, or use threads\n"
    )


@pytest.mark.gate
def test_log_lines_of_other_libraries_stay_off_stderr(tmp_path):
    """Python prints what is logged without a handler."""
    work = (
        "import logging, sys; from segiou.cli.main import main; code = main(sys.argv[1:]); "
        "[logging.getLogger(name).error('noise') for name in ('tifffile', 'zarr', 'numcodecs')]; "
        "sys.exit(code)"
    )
    command = [sys.executable, "-c", work, *NOWHERE]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert "noise" not in done.stderr
    assert "no-truth" in done.stderr
