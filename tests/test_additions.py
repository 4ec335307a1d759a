"""The table of docs/architecture.md is enough: one dummy of each kind reaches every output."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import segiou
from segiou import Protocol
from segiou._support import optional
from segiou.cli.main import main
from segiou.document import renderers
from segiou.document.parts import Line
from segiou.labels import LabelSet, label_files, loading
from segiou.metrics import protocols

DOCS = Path(__file__).parents[1] / "docs"
TRUTH = np.repeat([[0, 1]], [6, 4], axis=1).astype(np.uint8)
PRED = np.repeat([[0, 1]], [3, 7], axis=1).astype(np.uint8)  # IoU 3/6 and 4/7


@pytest.fixture
def folders(tmp_path):
    """Six pairs of masks in files, of two models."""
    for folder, mask in (("truth", TRUTH), ("pred", PRED), ("other", TRUTH)):
        (tmp_path / folder).mkdir()
        for i in range(6):
            np.save(tmp_path / folder / f"{i}.npy", mask)
    return tmp_path


def command(*arguments):
    assert main([str(one) for one in arguments]) == 0, arguments


def installed(folder: Path, module: str, code: str, entries: str) -> dict[str, str]:
    """The environment in which a package with one module and its entry points is installed."""
    info = folder / "site" / "dummy-1.0.dist-info"
    info.mkdir(parents=True)
    (folder / "site" / f"{module}.py").write_text(code)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: dummy\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(entries)
    path = os.pathsep.join([str(folder / "site"), str(Path(segiou.__file__).parents[1])])
    return os.environ | {"PYTHONPATH": path}


def python(code: str, **options) -> dict:
    """What a program in a process of its own prints as JSON."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        capture_output=True, text=True, check=False, **options,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


#: Prints a score of class a ("0.5"), by every route, and which outputs show it.
OUTPUTS = """
import csv, io, json
import numpy as np
import segiou

truth, pred = np.repeat([[0, 1]], [6, 4], axis=1), np.repeat([[0, 1]], [3, 7], axis=1)
a = segiou.score([truth] * 6, [pred] * 6, labels=["a", "b"], measures=MEASURES)
b = segiou.score([truth] * 6, [truth] * 6, labels=["a", "b"], measures=MEASURES)
one = a.report(intervals=a.intervals(NAME))
row = next(csv.DictReader(io.StringIO(one.to_csv())))
data = json.loads(one.to_json())
columns = {"columns": NAME}
page = one.to_html(**columns)
texts = (one.to_text(sort=NAME, **columns), one.to_markdown(**columns), page,
         one.to_latex(**columns), one._repr_html_() if MEASURES else SHOWN)
print(json.dumps({
    "values": [row[NAME], data["scores"][NAME]["rows"]["a"]["value"], one.score(NAME + ":a"),
               one.scores(names=NAME)[NAME + "/a"], a.intervals(NAME + ":a").overall.value,
               one.to_pandas()[NAME]["a"], getattr(one.classes[0], NAME),
               segiou.compare(a, b, metric=NAME, groups="none").pairs[0].classes[0].a],
    "shown": [SHOWN in text for text in texts],
    "bars": sorted(bar.get_width() for bar in one.plot("class_bars", metric=NAME).patches),
    "worst": len(a.worst(1, by=NAME)),
    "ranked": segiou.rank([a, b], by=NAME, draws=0, names=["a", "b"]).models[0].name,
    "term": 'id="term-' + NAME + '"' in page,
}))
"""
NEW_METRIC = """
import sys
import zipfile
from importlib.util import find_spec, module_from_spec
from pathlib import Path

record = '''
    ClassMetric(
        "lack", lambda counts: 1 - per_class.iou(counts), "lack", "1 − IoU", "What {unit} lack."
    ),
'''
spec = find_spec("segiou.metrics.pixel_scores")
module = module_from_spec(spec)
sys.modules[spec.name] = module
source = Path(spec.origin).read_text(encoding="utf-8")
exec(source.replace("_SCORES = (", "_SCORES = (" + record, 1), module.__dict__)
MEASURES, NAME, SHOWN = (), "lack", "50.00"
"""


@pytest.mark.gate
def test_a_metric():
    pytest.importorskip("matplotlib")
    pytest.importorskip("pandas")
    found = python(NEW_METRIC + OUTPUTS)
    assert [float(value) for value in found["values"]] == [0.5] * 8
    assert found["shown"] == [True] * 5
    assert found["bars"] == pytest.approx([3 / 7, 0.5])
    assert (found["worst"], found["ranked"], found["term"]) == (1, "a", True)


@pytest.mark.gate
def test_a_score_of_ones_own(tmp_path):
    pytest.importorskip("matplotlib")
    pytest.importorskip("pandas")
    page = (DOCS / "howto" / "your-own-metric.md").read_text("utf-8")
    section = page.partition("## A measure in a package")[2]
    code = re.search(r"```python\n(.*?)```", section, re.DOTALL)[1]
    environment = installed(tmp_path, "drift_measure", code, DRIFT)
    start = 'MEASURES, NAME, SHOWN = ["drift"], "drift", "1.50"\n'
    found = python(start + OUTPUTS, env=environment)
    assert [float(value) for value in found["values"]] == [1.5] * 8
    assert found["shown"] == [True] * 5
    assert found["bars"] == [1.5, 1.5]
    assert (found["worst"], found["ranked"]) == (1, "b")


DRIFT = "[segiou.measures]\ndrift = drift_measure:Drift\n"
ASC = """
import numpy as np


def read(data, path):
    return np.array([line.split() for line in data.decode().splitlines()], dtype=np.int32)
"""


def test_a_mask_format(tmp_path, monkeypatch):
    installed(tmp_path, "asc", ASC, "[segiou.formats]\nasc = asc:read\n")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    for folder, text in (("truth", "0 0 1 1\n"), ("pred", "0 1 1 1\n")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "x.asc").write_text(text)
        with zipfile.ZipFile(tmp_path / f"{folder}.zip", "w") as archive:
            archive.writestr(f"{folder}/x.asc", text)
    optional._entries.cache_clear()
    try:
        for end in ("", ".zip", "/*.asc"):
            sides = [f"{tmp_path}/{side}{end}" for side in ("truth", "pred")]
            report = segiou.score_folder(*sides, labels=2).report()
            assert report.score("iou:1") == pytest.approx(2 / 3)
        assert segiou.read_mask(tmp_path / "truth" / "x.asc").tolist() == [[0, 0, 1, 1]]
        assert segiou.scoring.inspect_folder(tmp_path / "truth").files == 1
    finally:
        optional._entries.cache_clear()
        sys.modules.pop("asc", None)


def test_a_protocol(folders, monkeypatch, capsys):
    monkeypatch.setitem(protocols.PROTOCOLS, "dummy", Protocol("dummy", "a test", absent="one"))
    run = segiou.score([TRUTH] * 6, [PRED] * 6, labels=["a", "b", "never"])
    report, expected = run.report("dummy"), pytest.approx((3 / 6 + 4 / 7 + 1) / 3)
    assert report.mean_iou == report.score("iou") == expected
    assert report.class_table.columns[0].means[0] == expected
    assert segiou.explain(run, protocol="dummy").mean_iou == expected
    assert run.intervals("iou", protocol="dummy").overall.value == expected
    found = segiou.compare(run, run, names=("a", "b"), protocol="dummy")
    assert found.pairs[0].overall.a == expected
    options = "--labels", "3", "--protocol", "dummy"
    command("score", folders / "truth", folders / "pred", *options, "-o", folders / "r.json")
    found = json.loads((folders / "r.json").read_text())
    assert (found["protocol"], found["mean_iou"]) == ("dummy", expected)
    assert main(["score", "x", "y", "--labels", "3", "--protocol", "dumy"]) == 2
    assert "did you mean dummy?" in capsys.readouterr().err


LABELS = """name = "dummy"
classes = [{name = "first", values = [0]}, {name = "second", values = [1]}]
"""


def test_a_label_set(folders, monkeypatch, capsys):
    presets = folders / "presets"
    presets.mkdir()
    (presets / "dummy.toml").write_text(LABELS)
    monkeypatch.setattr(loading, "_PRESETS", presets)
    for cached in (loading.labelset_names, loading._preset):
        cached.cache_clear()
    try:
        assert segiou.load_labels("dummy").class_names == ("first", "second")
        command("labelsets", "dummy")
        assert "second" in capsys.readouterr().out
        options = "--labels", "dummy", "--format", "csv"
        command("score", folders / "truth", folders / "pred", *options)
        assert _names(capsys.readouterr().out) == ["first", "second"]
    finally:
        monkeypatch.undo()
        for cached in (loading.labelset_names, loading._preset):
            cached.cache_clear()


def test_a_label_file(folders, monkeypatch, capsys):
    def read(path):
        return LabelSet.from_names(path.read_text().split("|"))

    monkeypatch.setitem(label_files.READERS, ".lbl", read)
    (folders / "set.lbl").write_text("first|second")
    assert segiou.load_labels(folders / "set.lbl").class_names == ("first", "second")
    options = "--labels", folders / "set.lbl", "--format", "csv"
    command("score", folders / "truth", folders / "pred", *options)
    assert _names(capsys.readouterr().out) == ["first", "second"]


def _names(text):
    return [row["name"] for row in csv.DictReader(io.StringIO(text))]


def test_a_renderer(folders, monkeypatch, capsys):
    def loud_of(parts):
        return "".join(f"{part.text.upper()}\n" for part in parts if isinstance(part, Line))

    module = ModuleType("loud")
    module.loud_of = loud_of
    monkeypatch.setitem(sys.modules, "loud", module)
    monkeypatch.setitem(renderers.RENDERERS, "loud", renderers.Renderer("loud:loud_of", (".loud",)))
    places, runs = [folders / "truth"], [folders / "a.sqlite", folders / "b.sqlite"]
    for name, run in zip(("pred", "other"), runs, strict=True):
        command("score", *places, folders / name, "--labels", "2", "--quiet", "--run", run)
    capsys.readouterr()
    report = segiou.Run.open(runs[0]).report()
    assert "MEAN IOU 53.57 %" in report.save(folders / "r.loud").read_text()
    for arguments, text in (
        (["report", runs[0]], "MEAN IOU 53.57 %"),
        (["score", *places, folders / "pred", "--labels", "2", "--quiet"], "MEAN IOU 53.57 %"),
        (["compare", *runs, "--names", "a,b", "--group-by", "none"], "MEAN IOU"),
        (["explain", runs[0]], "MEAN IOU"),
        (["inspect", *places], "LABEL SETS"),
        (["measures"], "TO MEASURE ONE"),
    ):
        command(*arguments, "--format", "loud")
        assert text in capsys.readouterr().out, arguments
        command(*arguments, "-o", folders / "out.loud")
        assert text in (folders / "out.loud").read_text(), arguments


@pytest.mark.gate
def test_a_feature_with_a_command(tmp_path):
    package, feature = tmp_path / "segiou", tmp_path / "segiou" / "greeting"
    source, without = Path(segiou.__file__).parent, shutil.ignore_patterns("__pycache__")
    shutil.copytree(source, package, ignore=without)
    feature.mkdir()
    (feature / "__init__.py").touch()
    (feature / "command.py").write_text(
        "def command(parsed):\n"
        "    print('Hello', *[parsed.name_of_person] * (1 + parsed.twice))\n"
        "    return 0\n"
    )
    (feature / "options.txt").write_text(
        "arguments: greet\n  NAME_OF_PERSON  the person\ngreet: greet\n  --twice  say it twice\n"
    )
    for name, before, added in (
        ("options.txt", "commands:\n", "  greet  greet a person [twice]\n"),
        ("options.py", "HOMES = {\n", '    "greet": ("segiou.greeting.command", "command"),\n'),
    ):
        text = (package / "cli" / name).read_text(encoding="utf-8")
        text = text.replace(before, f"{before}{added}", 1)
        (package / "cli" / name).write_text(text, encoding="utf-8")

    def said(*words):
        options = {"env": os.environ | {"PYTHONPATH": str(tmp_path)}, "cwd": tmp_path}
        done = subprocess.run(
            [sys.executable, "-m", "segiou", *words], capture_output=True, text=True, **options
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert said("greet", "Ada", "--twice") == "Hello Ada Ada\n"
    assert "say it twice" in said("greet", "--help")
    assert "greet a person" in said("--help")


def test_a_kind_of_plot(folders, monkeypatch):
    pytest.importorskip("matplotlib")
    from segiou.plots import kinds
    from segiou.plots.style import drawing, plot_kind, report_of

    @plot_kind
    def lone_dot(source, *, size=3, **look):
        with drawing(2.0, **look) as axes:
            axes.plot([report_of(source).mean_iou], [0], "o", markersize=size)
        return axes

    monkeypatch.setitem(kinds._OF_REPORTS, "lone_dot", lone_dot)
    run = segiou.score([TRUTH], [PRED], labels=2)
    axes = run.plot("lone_dot", title="x")
    assert axes.lines[0].get_xdata() == [pytest.approx((3 / 6 + 4 / 7) / 2)]
    with pytest.raises(TypeError, match="lone_dot has no option 'sise'; choose from size, title"):
        run.plot("lone_dot", sise=2)
    masks = (folders / "truth", folders / "pred")
    command("score", *masks, "--labels", "2", "--quiet", "--plots", folders / "plots")
    saved = {path.name for path in (folders / "plots").glob("lone_dot.*")}
    assert saved == {"lone_dot.png", "lone_dot.svg", "lone_dot.pdf"}


def test_the_page_has_these_kinds():
    page = (DOCS / "architecture.md").read_text(encoding="utf-8")
    table = page.partition("## To add …")[2]
    kinds = re.findall(r"^\| (a .*?) \|", table, re.MULTILINE)
    tests = [name for name in globals() if name.startswith("test_a_")]
    assert [f"test_{kind.replace(' ', '_')}" for kind in kinds] == [
        name.replace("ones_own", "your_own") for name in tests
    ]
