"""Measures of other packages that fail: each is named, and others are not affected."""

from __future__ import annotations

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import segiou
from segiou._support import optional
from segiou.cli.main import main
from segiou.document.report_dict import ReportDict
from segiou.measures import Field, Parts, measure_of
from segiou.measures.registry import is_taken, own_keys

#: A measure of the number of pixels of each class; braces are filled by tests.
MODULE = '''
from dataclasses import dataclass
import numpy as np
from segiou.measures import Field, Measure, Parts, Plan, Score
{top}

@dataclass(frozen=True)
class Sizes(Measure):
    """Pixels of each class."""

    key = "{key}"
    options = """{key}: score
  --{key}  score sizes"""

    def plan(self, classes, masks):
        {plan}
        return SizePlan(self, classes, masks)


class SizePlan(Plan):
    @property
    def layout(self):
        {layout}
        return {{"sizes": Field((self.classes.num_classes, 2))}}

    def count(self, pair):
        sizes = np.array(
            [[(side == c).sum() for side in pair.indices] for c in range(self.classes.num_classes)]
        )
        {count}
        return Parts.of(self.layout, sizes=sizes)

    @property
    def scores(self):
        def share(sums):
            {evaluate}
            with np.errstate(invalid="ignore", divide="ignore"):
                return sums.min(-1) / sums.max(-1)

        def numbers(parts):
            {numbers}
            return parts["sizes"]

        {scores}
        return {{"{score}": Score.of_classes("{score}", "size", self.classes, numbers, share)}}
'''
PARTS = dict.fromkeys(("top", "plan", "layout", "count", "numbers", "evaluate", "scores"), "pass")


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Install a package with the measure; returns its folder."""
    site = tmp_path / "site"

    def do(key="sizes", score="size_ratio", version="1.0", **parts):
        module = f"pack_{key}"
        info = site / f"{module}.dist-info"
        info.mkdir(parents=True, exist_ok=True)
        (site / f"{module}.py").write_text(
            MODULE.format(**{**PARTS, **parts}, key=key, score=score)
        )
        about = f"Metadata-Version: 2.1\nName: pack-{key}\nVersion: {version}\n"
        (info / "METADATA").write_text(about)
        (info / "entry_points.txt").write_text(f"[segiou.measures]\n{key} = {module}:Sizes\n")
        forget()
        return site

    def forget():
        optional._entries.cache_clear()
        for name in [name for name in sys.modules if name.startswith("pack_")]:
            del sys.modules[name]
        import importlib

        importlib.invalidate_caches()

    monkeypatch.syspath_prepend(str(site))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield do
    forget()


@pytest.fixture
def score(command, folders):
    places = folders / "truth", folders / "good", "--labels", folders / "set.toml", "--quiet"
    return lambda *arguments: command("score", *places, *arguments)


OPTIONS = [
    "roi",
    "columns",
    "array_key",
    "per_case",
    pytest.param("model", marks=pytest.mark.needs("raters")),
    pytest.param("topology_classes", marks=pytest.mark.needs("measures.topology")),
    pytest.param("no_open", marks=pytest.mark.needs("explorer")),
    "help",
]


@pytest.mark.parametrize("key", [*OPTIONS, "matrix", "image_cautions", "boundary_options"])
def test_a_key_named_like_an_option_or_a_key_of_a_report_is_refused(install, key):
    install(key=key)
    with pytest.raises(ValueError, match=f"key '{key}' of a measure of pack-{key} 1.0 is a name"):
        measure_of(key)


@pytest.mark.needs("measures.lesions", "measures.surfaces", "measures.topology")
def test_every_key_of_a_report_is_taken():
    free = {key for key in ReportDict.__annotations__ if not is_taken(key)}
    assert free <= {*own_keys()}


def test_every_column_of_a_table_is_taken(folders):
    run = segiou.score_folder(folders / "truth", folders / "good", labels=folders / "set.toml")
    report = run.report(intervals=run.intervals())
    tables = run.rows()[0], report.to_pandas().reset_index(), run.intervals().to_pandas()
    columns = {name.partition(":")[0] for table in tables for name in table}
    assert {"id", "truth", "pred", "tp", "share", "low"} < columns
    limits = {"iou_low", "iou_high", "standard_error", "units"}
    assert {name for name in columns if not is_taken(name)} <= limits


@pytest.mark.needs("measures.volume")
def test_a_score_named_like_a_column_of_a_measure_is_refused(install, score):
    install(score="volume_truth")
    assert score("--sizes", "--format", "csv")[0] == 0
    code, _, noted = score("--sizes", "--volume", "--format", "csv")
    assert code == 2
    assert "'volume_truth' is defined by segiou and pack-sizes 1.0" in noted


def test_a_score_named_like_a_column_is_refused(install, score):
    install(score="dice")
    code, _, noted = score("--sizes", "--format", "csv")
    assert code == 2
    assert "'dice' is defined by segiou and pack-sizes 1.0" in noted


def test_a_key_of_segiou_is_refused_where_it_is_used(install, score):
    _, usual, _ = score("--format", "csv")
    install("sort")
    install("objects")
    assert score("--format", "csv")[1] == usual
    code, _, noted = score("--objects", "--format", "csv")
    assert code == 2
    assert "'objects' is defined by segiou and pack-objects; uninstall one of them" in noted


@pytest.mark.needs("measures.topology")
def test_a_plain_number_has_no_unit_in_a_gate(score):
    code, _, noted = score("--topology", "--fail-over", "betti_0_error:bar=0.1")
    assert code == 1
    assert "betti_0_error:bar is 0.25, above 0.10," in noted


@pytest.mark.needs("measures.topology")
def test_an_option_of_a_measure_alone_is_refused(score):
    code, _, noted = score("--topology-classes", "bar")
    assert (code, noted.strip()) == (2, "segiou: --topology-classes needs --topology")


def test_a_measure_that_nobody_asked_for_takes_part_in_nothing(install, score):
    _, usual, _ = score("--format", "csv")
    install(score="iou")
    install("others", score="dice", top="raise SystemExit('broken')")
    code, text, noted = score("--format", "csv", "--fail-under", "dice:bar=0.1")
    assert code == 0
    assert "others" not in noted
    assert text == usual
    install("sizes", score="size_ratio")
    code, text, _ = score("--sizes", "--format", "csv")
    rows = {row["name"]: row for row in csv.DictReader(text.splitlines())}
    assert (code, float(rows["bar"]["size_ratio"])) == (0, 72 / 96)


def test_measures_lists_those_that_can_be_used(install, command):
    install()
    install("broken", top="1 / 0")
    install("odd", score="area_error")
    code, text, noted = command("measures", "--format", "json")
    assert code == 0
    listed = {one["key"]: one for one in json.loads(text)["measures"]}
    assert [score["name"] for score in listed["sizes"]["scores"]] == ["size_ratio"]
    assert not {"broken", "odd"} & listed.keys()
    assert "'broken' from pack-broken cannot be loaded: division by zero" in noted
    assert "'area_error' is defined by segiou and pack-odd 1.0" in noted


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"plan": "raise RuntimeError('no plan')"}, "plan failed (RuntimeError: no plan)"),
        ({"plan": "raise SystemExit(0)"}, "plan failed (SystemExit: 0)"),
        ({"plan": "raise GeneratorExit"}, "plan failed (GeneratorExit: )"),
        ({"plan": "return 3"}, "plan failed (it must return a Plan, not int)"),
        ({"layout": "return 3"}, "layout failed (it must return a mapping of names to Field"),
        ({"layout": "return {'sizes': (3, 2)}"}, "layout failed (TypeError: the array 'sizes'"),
        ({"scores": "raise KeyError('x')"}, "scores failed (KeyError: 'x')"),
        ({"scores": "return {}"}, "scores failed (it must return a mapping of names to Score"),
        ({"scores": "return [3]"}, "scores failed (it must return a mapping of names to Score"),
    ],
)
def test_faults_of_plans_end_the_command_before_it_counts(install, score, tmp_path, parts, words):
    install(**parts)
    code, _, noted = score("--sizes", "--run", tmp_path / "run.sqlite")
    assert code == 2
    assert "measure 'sizes' of pack-sizes 1.0" in noted
    assert words in noted
    assert "Traceback" not in noted


@pytest.mark.parametrize(
    ("evaluate", "words"),
    [
        ("raise RuntimeError('no value')", "RuntimeError: no value"),
        ("return sums", "could not be broadcast"),
        ("return sums.min(-1).astype(str)", "size_ratio"),
        ("return np.full(sums.shape[:-1], np.inf)", "must return finite numbers, or NaN if"),
    ],
)
def test_faults_of_scores(install, score, evaluate, words):
    install(evaluate=evaluate)
    code, _, noted = score("--sizes")
    assert code == 2
    assert "measure 'sizes' of pack-sizes 1.0: evaluate of the score 'size_ratio' failed" in noted
    assert "Traceback" not in noted


@pytest.mark.few(4)
@pytest.mark.parametrize(
    ("count", "words"),
    [
        ("raise RuntimeError('no count')", "RuntimeError: no count"),
        ("raise SystemExit(1)", "SystemExit: 1"),
        ("raise GeneratorExit", "GeneratorExit: "),
        ("return 3", "it must return Parts, not int"),
        ("return Parts.of({'x': Field(())}, x=1)", "it must return Parts of 1"),
        ("sizes = sizes[:1]", "sizes must have shape (3, 2) for one image"),
        ("sizes = sizes * 0.5", "sizes must contain integers"),
        ("sizes = sizes.astype(np.uint64) + np.uint64(2**63)", "must be less than 2^63"),
    ],
)
def test_faults_of_counting_name_file_and_package(install, score, count, words):
    install(count=count)
    code, _, noted = score("--sizes")
    assert code == 3
    assert "a.png" in noted
    assert "measure 'sizes' of pack-sizes 1.0: count failed" in noted
    assert words in noted


def test_other_images_go_on(install, score):
    # Only the prediction of b has the bar in row 5.
    install(count="if (pair.pred[5] == 2).any(): raise RuntimeError('no count')")
    code, text, _ = score("--sizes", "--on-error", "skip", "--format", "json")
    assert code == 3
    found = json.loads(text)
    assert found["pairs"] == 3
    assert "b.png" in found["problems"][0]["file"]
    assert "measure 'sizes' of pack-sizes 1.0" in found["problems"][0]["problem"]


@pytest.mark.gate
@pytest.mark.parametrize("engine", [[], ["--processes", "1"]], ids=["threads", "processes"])
def test_ctrl_c_ends_a_measure_that_hangs(install, folders, tmp_path, engine):
    started = tmp_path / "started"
    site = install(
        top="import pathlib, time",
        count=f"pathlib.Path({str(started)!r}).touch()\n        time.sleep(600)",
    )
    places = [str(folders / "truth"), str(folders / "good"), "--labels", str(folders / "set.toml")]
    code = (
        "import signal, sys, segiou.cli.console as c; c._PATIENCE = 1.0\n"
        # A shell starts its background jobs with SIGINT ignored, and children inherit it.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from segiou.cli.main import main; sys.exit(main(['score', *sys.argv[1:]]))"
    )
    path = os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")])
    process = subprocess.Popen(
        [sys.executable, "-c", code, *places, "--sizes", *engine],
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": path},
    )
    while not started.exists():
        assert process.poll() is None
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, noted = process.communicate(timeout=600)
    assert process.returncode == 130
    assert "did not finish, probably because of measure 'sizes' of pack-sizes 1.0" in noted


def test_an_unexpected_error_has_its_own_code(monkeypatch, capsys):
    from segiou.cli import commands

    monkeypatch.setattr(commands, "labelsets", lambda parsed: {}["key"])
    assert main(["labelsets"]) == 70
    noted = capsys.readouterr().err
    assert "KeyError" in noted
    assert "Report it" in noted


def test_sums_are_finite_and_counts_fit():
    layout = {"sums": Field((2,), floats=True), "counts": Field(())}
    with pytest.raises(ValueError, match="sums must be finite"):
        Parts.of(layout, sums=[1.0, np.inf])
    with pytest.raises(ValueError, match=r"counts must be less than 2\^63"):
        Parts.of(layout, counts=np.uint64(2**63))
    assert Parts.of(layout, counts=np.uint64(2**63 - 1))["counts"].tolist() == [2**63 - 1]


def test_a_package_that_changed_or_is_gone(install, score, command, folders, tmp_path):
    site = install()
    path = tmp_path / "run.sqlite"
    assert score("--sizes", "--objects", "--run", path)[0] == 0
    _, usual, _ = command("report", path, "--format", "json")
    install(version="2.0", layout="return {'sizes': Field((self.classes.num_classes, 3))}")
    code, _, noted = score("--sizes", "--objects", "--run", path)
    assert code == 2
    assert "sizes was counted by pack-sizes 2.0 here and pack-sizes 1.0 there" in noted
    assert "(3, 3) here" in noted
    code, text, noted = command("report", path, "--format", "json")
    assert code == 0
    assert "pack-sizes 1.0 counted them, but pack-sizes 2.0 is installed" in noted
    assert json.loads(text)["objects"] == json.loads(usual)["objects"]
    shutil.rmtree(site / "pack_sizes.dist-info")
    install("others")
    code, text, noted = command("report", path, "--format", "json")
    assert code == 0
    assert noted.count("they need pack-sizes 1.0, which is not installed") == 1
    assert "sizes" not in json.loads(text)
    assert command("merge", path, "-o", tmp_path / "all.sqlite")[0] == 0
    install()
    code, text, noted = command("report", tmp_path / "all.sqlite", "--format", "json")
    assert (code, noted) == (0, "")
    assert json.loads(text)["sizes"] == json.loads(usual)["sizes"]


@pytest.mark.parametrize(
    "array", ["pair.truth", "pair.pred", "pair.codes[0]", "pair.indices[1]", "pair.mask"]
)
def test_a_measure_that_writes_into_masks_changes_its_own_copy(install, array):
    install(count=f"{array}[0] = 1")
    sides = [np.array([[0, 1, 1], [0, 1, 0]]), np.array([[0, 0, 1], [0, 1, 0]])]
    mask = np.array([[True, True, True], [True, True, False]])
    given = [*(side.copy() for side in sides), mask.copy()]
    run = segiou.score(
        [given[0]], [given[1]], mask=[given[2]], labels=2, measures=["sizes", "volume"]
    )
    for array_given, array_kept in zip(given, (*sides, mask), strict=True):
        assert array_given.tolist() == array_kept.tolist()
    assert run.total().matrix.tolist() == [[2, 0], [1, 2]]
    # Both classes differ by one pixel.
    assert run.report().score("volume_error") == 1.0


@pytest.mark.parametrize(
    ("parts", "ratio"),
    [
        # Each class has 12 pixels on one side and 20 on the other.
        ({"count": "pair.tally.table[0] = 0"}, 12 / 20),
        ({"evaluate": "sums[..., 0, 0] *= 2"}, 20 / 24),
        ({"numbers": 'parts["sizes"][:, 0, 0] *= 2'}, 20 / 24),
    ],
)
def test_a_measure_that_writes_into_numbers_changes_its_own_copy(install, parts, ratio):
    truth = np.array([[[0, 1, 1, 1]], [[0, 1, 0, 1]]] * 4)
    pred = np.array([[[0, 0, 1, 1]], [[0, 1, 0, 0]]] * 4)
    install(**parts)
    run = segiou.score(truth, pred, labels=2, measures=["sizes"])
    assert run.total().matrix.tolist() == [[12, 0], [8, 12]]
    for _ in range(2):
        score, intervals = run.report().score, run.intervals("size_ratio")
        assert [score("size_ratio", row) for row in run.class_names] == [ratio, 12 / 20]
        assert [row.value for row in intervals.classes] == [ratio, 12 / 20]
        assert intervals.overall.value == pytest.approx((ratio + 12 / 20) / 2)


def test_a_measure_cannot_write_into_scores(install):
    install(count="pair.scores[0] = 1")
    truth, scores = np.array([[0, 1]]), np.array([[0.1, 0.7]])
    with pytest.raises(
        ValueError, match=r"measure 'sizes' of pack-sizes 1.0: count failed .*read-only"
    ):
        segiou.score([truth], [scores], threshold=0.5, labels=2, measures=["sizes"])
    assert scores.tolist() == [[0.1, 0.7]]


def test_a_measure_may_use_the_spacing(install, command, folders):
    install(count="sizes = np.rint(sizes * np.prod(self.masks.spacing)).astype(int)")
    score = ("score", folders / "truth", folders / "good", "--labels", folders / "set.toml")
    code, text, noted = command(*score, "--sizes", "--spacing", "2,3", "--format", "json")
    assert (code, noted) == (0, "")
    assert json.loads(text)["sizes"]
    assert command(*score, "--spacing", "2,3")[0] == 2
