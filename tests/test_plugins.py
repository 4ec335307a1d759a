"""What other packages add by entry points: the example of docs/formats.md, installed."""

from __future__ import annotations

import json
import os
import pickle
import re
import sys
from pathlib import Path

import pytest
from PIL import Image

import segiou
from segiou import MaskError, read_mask
from segiou._support import optional
from segiou.cli.main import main

PAGE = (Path(__file__).parents[1] / "docs" / "formats.md").read_text(encoding="utf-8")
SECTION = PAGE.partition("## Custom formats, label sets and protocols")[2]


def block(language: str) -> str:
    return re.search(rf"```{language}\n(.*?)```", SECTION, re.DOTALL)[1]


def install(folder: Path, module: str, entries: str, name: str = "forest-masks") -> None:
    """Write what an installer would: the module, and a folder that describes the package."""
    info = folder / f"{name.replace('-', '_')}-1.0.dist-info"
    info.mkdir(parents=True)
    (folder / f"{name.replace('-', '_')}.py").write_text(module)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    entries = entries.replace("[project.entry-points.", "[").replace('"', "")
    (info / "entry_points.txt").write_text(entries)


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Install packages into a folder for this test."""

    def do(module: str, entries: str, name: str = "forest-masks") -> Path:
        install(tmp_path / "site", module, entries, name)
        optional._entries.cache_clear()
        return tmp_path / "site"

    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    yield do
    optional._entries.cache_clear()
    for name in ("forest_masks", "other_masks"):
        sys.modules.pop(name, None)


def test_the_example_from_the_command_line(installed, tmp_path, monkeypatch, capsys):
    installed(block("python"), block("toml"))
    for side, text in (("truth", "0 1 1\n0 -1 1\n"), ("predictions", "0 1 0\n0 2 1\n")):
        (tmp_path / side).mkdir()
        (tmp_path / side / "a.asc").write_text(text)
    command = re.search(r"```sh\nsegiou (.*?)\n```", SECTION)[1].split()
    monkeypatch.chdir(tmp_path)
    code, found = main([*command, "--format", "json", "--quiet"]), capsys.readouterr()
    assert code == 0, found.err
    report = json.loads(found.out)
    assert report["protocol"] == "forest"
    assert report["mean_iou"] == pytest.approx((2 / 3 + 2 / 3 + 0) / 3)


def test_names_that_nobody_adds(installed):
    installed(block("python"), block("toml"))
    with pytest.raises(ValueError, match="did you mean forest"):
        segiou.load_labels("forrest")
    with pytest.raises(ValueError, match="did you mean forest"):
        segiou.metrics.load_protocol("forrest")


def test_a_label_set_is_called_as_it_is_found(installed):
    module = "from segiou import LabelSet\nLABELS = LabelSet.from_names(['soil', 'tree'])"
    installed(module, '["segiou.labelsets"]\nforest = forest_masks:LABELS\n')
    assert segiou.load_labels("forest").name == "forest"


def test_two_packages_with_one_name(installed):
    for name in ("forest-masks", "other-masks"):
        installed(block("python"), block("toml"), name)
    with pytest.raises(ValueError, match=r"'forest' is defined by .*-masks and .*-masks"):
        segiou.load_labels("forest")


@pytest.mark.parametrize(
    ("module", "error", "words"),
    [
        ("1 / 0", ImportError, "from forest-masks cannot be loaded: division by zero"),
        ("", ImportError, "cannot be loaded"),
        ("LABELS = 3", TypeError, "from forest-masks must be a LabelSet, not 3"),
    ],
)
def test_plugins_that_do_not_work_are_named(installed, module, error, words):
    installed(module, '["segiou.labelsets"]\nforest = forest_masks:LABELS\n')
    with pytest.raises(error, match=words):
        segiou.load_labels("forest")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("return [[0.5]]", r"was read as float64 of shape \(1, 1\)"),
        ("return [1]", r"was read as int64 of shape \(1,\)"),
        ("return 1 / 0", r"cannot be read as \.asc: division by zero"),
    ],
)
def test_formats_that_do_not_work_are_named(installed, tmp_path, body, words):
    entry = '["segiou.formats"]\nasc = forest_masks:read\n'
    installed(f"def read(data, path):\n    {body}\n", entry)
    (tmp_path / "a.asc").write_text("x")
    with pytest.raises(MaskError, match=words):
        read_mask(tmp_path / "a.asc")


@pytest.mark.parametrize("ending", ["mat", "h5", "pkl", "pt", "mgz", "csv"])
def test_formats_that_segiou_refuses_can_be_added(installed, tmp_path, ending):
    entry = f'["segiou.formats"]\n{ending} = forest_masks:read\n'
    installed("import numpy\ndef read(data, path):\n    return [[data[-2]]]\n", entry)
    for side in ("truth", "pred"):
        (tmp_path / side).mkdir()
        (tmp_path / side / f"a.{ending}").write_bytes(pickle.dumps(None, 2))
    assert read_mask(tmp_path / "pred" / f"a.{ending}").tolist() == [[ord("N")]]
    labels = {"a": 0, "b": ord("N")}
    run = segiou.score_folder(tmp_path / "truth", tmp_path / "pred", labels=labels)
    assert run.total().matrix.tolist() == [[0, 0], [0, 1]]


def test_formats_of_volumes(installed, tmp_path):
    """A volume is read as one, as an array in a .npy file."""
    entry = '["segiou.formats"]\nvox = forest_masks:read\n'
    body = "return numpy.frombuffer(data, 'u1').reshape(2, 2, 2)"
    installed(f"import numpy\ndef read(data, path):\n    {body}\n", entry)
    for side, values in (("truth", [0, 0, 0, 0, 1, 1, 1, 1]), ("pred", [0, 0, 0, 1, 1, 1, 1, 1])):
        (tmp_path / f"{side}.vox").write_bytes(bytes(values))
    places = tmp_path / "truth.vox", tmp_path / "pred.vox"
    with pytest.raises(segiou.DataError, match="--array-axes zyx"):
        segiou.score_folder(*places, labels=2)
    run = segiou.score_folder(*places, labels=2, array_axes="zyx")
    assert run.total().matrix.tolist() == [[3, 1], [0, 4]]


def test_scoring_asks_no_other_package(monkeypatch):
    monkeypatch.setattr(optional, "_entries", None)
    streets = Path(__file__).parents[1] / "fixtures" / "streets"
    segiou.score_folder(streets / "truth", streets / "model_a", labels=streets / "labels.toml")


#: What ends a process, or looks like it; Python ends with 0 or 1, which are verdicts.
ENDS = ("SystemExit(0)", "SystemExit(1)", "SystemExit()", "GeneratorExit()", "BaseException('x')")


@pytest.mark.gate
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("more", [[], ["--on-error", "skip"], ["--processes", "2"]])
def test_nothing_that_a_format_raises_is_a_verdict(installed, tmp_path, capsys, end, more):
    entries = '[project.entry-points."segiou.formats"]\nxyz = "forest_masks:read"\n'
    site = installed(f"def read(data, path):\n    raise {end}\n", entries)
    for side in ("truth", "pred"):
        (tmp_path / side).mkdir()
        for name in "ab":
            (tmp_path / side / f"{name}.xyz").write_text("x")
    places = [str(tmp_path / side) for side in ("truth", "pred")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", f"{site}:{os.environ['PYTHONPATH']}")
        gate = ["score", *places, "--labels", "2", "--fail-under", "mean_iou=0.9", *more]
        assert main(gate) == 70
    found = capsys.readouterr()
    assert found.out == ""
    assert "tried to end the process" in found.err
    with pytest.raises(RuntimeError, match=r"the plug-in for \.xyz tried to end the process"):
        segiou.score_folder(*places, labels=2)
    with pytest.raises(RuntimeError, match="tried to end the process"):
        read_mask(tmp_path / "pred" / "a.xyz")


@pytest.mark.parametrize("end", ENDS)
def test_a_plugin_that_ends_while_it_is_loaded_is_no_verdict(installed, tmp_path, capsys, end):
    entries = '[project.entry-points."segiou.formats"]\nxyz = "forest_masks:read"\n'
    installed(f"raise {end}\n", entries)
    (tmp_path / "a.xyz").write_text("x")
    (tmp_path / "b.xyz").write_text("x")
    places = [str(tmp_path / name) for name in ("a.xyz", "b.xyz")]
    assert main(["score", *places, "--labels", "2"]) not in (0, 1)
    assert "cannot be loaded" in capsys.readouterr().err


def test_an_annotation_tool(installed, tmp_path):
    annotations = SECTION.partition("A file of an annotation tool")[2]
    entries, module = re.findall(r"```(?:toml|python)\n(.*?)```", annotations, re.DOTALL)
    installed(module, entries)
    corners = [1, 1, 4, 1, 4, 3, 1, 3]  # three columns and two rows
    stands = [{"species": "spruce", "outline": corners}]
    plot = {"photo": "a.jpg", "height": 4, "width": 5, "stands": stands}
    file = tmp_path / "survey.json"
    file.write_text(json.dumps({"plots": [plot, plot | {"photo": "b.jpg", "stands": []}]}))
    source = segiou.masks.open_source(file)
    masks = {name: source.read(path)[0] for name, path in source.find().items()}
    assert masks["a.jpg"].names == ("", "spruce")
    assert masks["a.jpg"].values.tolist() == [[0] * 5, [0, 1, 1, 1, 0], [0, 1, 1, 1, 0], [0] * 5]
    assert masks["b.jpg"].values.tolist() == [[0] * 5] * 4
    file.write_text("{}")
    with pytest.raises(ValueError, match=r"survey.json: is not .* an object with 'plots' \(forest"):
        segiou.masks.open_source(file).find()


LISTED = """
from pathlib import Path
from segiou.masks import LocalFolder
class Listed(LocalFolder):
    def find(self):
        return {name: str(Path(self.root).parent / name) for name in self.names()}
    def names(self):
        return Path(self.root).read_text().split()
def read(path, part):
    return Listed(str(part)) if path == part else None
def read_folder(path, part):
    return Listed(str(next(path.glob("*.lst"))))
def none(path, part):
    return "x"
"""


def test_a_source(installed, tmp_path):
    """A kind of file with many masks: a list of the masks to score."""
    functions = {"lst": "read", "folder.lst": "read_folder", "bad": "none"}
    entries = [f"{name} = forest_masks:{function}" for name, function in functions.items()]
    installed(LISTED, "\n".join(["[segiou.sources]", *entries]))
    for name in "abc":
        Image.new("L", (3, 2), 1).save(tmp_path / f"{name}.png")
    (tmp_path / "masks.lst").write_text("a.png c.png")
    for place in (tmp_path / "masks.lst", tmp_path):
        assert [*segiou.masks.open_source(place).find()] == ["a.png", "c.png"]
    with pytest.raises(
        TypeError, match=r"'bad' of segiou.sources must be a Source or None, not 'x'"
    ):
        segiou.masks.open_source(tmp_path / "x.bad")


TOOL = """
import numpy as np
from segiou.masks import AnnotationFormat, Annotations, DrawnImage
def read(path, data):
    {read}
def area(shape, size):
    {area}
STANDS = AnnotationFormat(read)
"""


@pytest.mark.parametrize(
    ("read", "words"),
    [
        ("return {}", "'stands' of segiou.annotations: the result must be Annotations or None"),
        ("return Annotations({'a': 1})", "image 'a' must be a DrawnImage, not int"),
        ("return Annotations({1: DrawnImage((2, 3), [], area)})", "must be text, not int"),
        ("return data['none']", "cannot be read by the plug-in 'stands' .*: 'none'"),
        ("return 1 / 0", "division by zero"),
        ("raise ValueError('has no plots')", "survey.json: has no plots"),
    ],
)
def test_annotation_tools_that_do_not_work_are_named(installed, tmp_path, read, words):
    entry = '["segiou.annotations"]\nstands = forest_masks:STANDS\n'
    installed(TOOL.format(read=read, area="pass"), entry)
    (tmp_path / "survey.json").write_text('{"a": 1}')
    with pytest.raises(ValueError, match=words) as caught:
        segiou.masks.open_source(tmp_path / "survey.json").find()
    assert str(caught.value).startswith(str(tmp_path))


@pytest.mark.parametrize(
    ("size", "area", "words"),
    [
        ("(2, 3)", "return 'a', np.ones((2, 3), np.uint8)", r"its area is uint8 of shape \(2, 3\)"),
        ("(2, 3)", "return 'a', np.ones((3, 2), bool)", r"\(3, 2\); expected bool of .*\(2, 3\)"),
        ("(2, 3)", "return shape[0]", "shape 1 of 1: 0 is missing"),
        ("(2, 3)", "return 1 / 0", "shape 1 of 1: unexpected structure"),
        ("(2, 3)", "return 'a', None", "neither run lengths nor polygons"),
        ("(2.0, 3)", "return 'a', []", r"invalid size \(height, width\): \(2.0, 3\)"),
    ],
)
def test_shapes_of_annotation_tools_are_checked(installed, tmp_path, size, area, words):
    entry = '["segiou.annotations"]\nstands = forest_masks:STANDS\n'
    read = f"return Annotations({{'a': DrawnImage({size}, [{{}}], area)}})"
    installed(TOOL.format(read=read, area=area), entry)
    (tmp_path / "survey.json").write_text('{"a": 1}')
    source = segiou.masks.open_source(tmp_path / "survey.json")
    with pytest.raises(MaskError, match=words):
        source.read(source.find()["a"])


@pytest.mark.parametrize("end", ENDS)
def test_annotation_tools_that_end_the_process_are_named(installed, tmp_path, end):
    entry = '["segiou.annotations"]\nstands = forest_masks:STANDS\n'
    installed(TOOL.format(read=f"raise {end}", area="pass"), entry)
    (tmp_path / "survey.json").write_text('{"a": 1}')
    with pytest.raises(RuntimeError, match=r"'stands' of segiou.annotations tried to end the"):
        segiou.masks.open_source(tmp_path / "survey.json").find()
