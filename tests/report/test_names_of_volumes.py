"""Law: outputs on volumes call pixels voxels and images cases, and names stay as they are."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path

import numpy as np
import pytest
from deletable import kind_of_scores

import segiou
from segiou import LabelSet
from segiou.cli.main import main
from segiou.report import ImageCaution, write_comparison_html

VOLUMES = Path(__file__).parents[2] / "fixtures" / "volumes"
PLAIN = ("m1", "m2", "m3")
HOSTILE = ("pixel decoder", "image encoder", "Images of pixels")


@pytest.fixture(scope="module")
def runs():
    pytest.importorskip("nibabel")
    folders = [VOLUMES / name for name in ("model_a", "model_b", "model_b")]
    labels = VOLUMES / "dataset.json"
    return [segiou.score_folder(VOLUMES / "truth", one, labels=labels) for one in folders]


FINDINGS = {
    "comparison": lambda runs, names: segiou.compare(*runs[:2], names=names[:2], groups="none"),
    "units": lambda runs, names: segiou.compare(*runs[:2], names=names[:2]),
    "recipes": lambda runs, names: segiou.compare(
        dict(zip(names, ([runs[0]], runs[1:]), strict=False)), groups="none"
    ),
    "three": lambda runs, names: segiou.compare(*runs, names=names, resamples=100),
    "ranking": lambda runs, names: segiou.rank(dict(zip(names, runs, strict=True)), groups="none"),
    "several scores": lambda runs, names: segiou.analysis.compare_scores(
        *runs[:2], metrics=["iou", "dice"], names=names[:2], groups="none"
    ),
}


def texts_of(found):
    yield found.to_markdown()
    yield found.to_latex()
    yield found.to_text(500).replace("─", "")
    yield repr(found)
    if hasattr(found, "sentences"):
        yield "\n".join(found.sentences())


@pytest.mark.parametrize("kind", FINDINGS)
def test_names_are_not_rewritten(kind, runs):
    plain, hostile = (texts_of(FINDINGS[kind](runs, names)) for names in (PLAIN, HOSTILE))
    for one, other in zip(plain, hostile, strict=True):
        for short, name in zip(PLAIN, HOSTILE, strict=True):
            other = other.replace(name, short)
        assert other.split() == one.split()
        assert "images" not in one and "pixels" not in one


def test_columns_of_metadata_are_not_rewritten(runs):
    kinds = [
        {"id": id, "image pixel": "image" if i % 2 else "pixel"} for i, id in enumerate(runs[0].ids)
    ]
    found = segiou.slices(*runs[:2], by=kinds, groups="none")
    text = found.to_markdown()
    assert "image pixel=image" in text and "image pixel=pixel" in text
    assert "| cases |" in text and "The rest are the other cases" in text


def test_the_page_keeps_names(runs, tmp_path):
    found = segiou.compare(*runs[:2], names=HOSTILE[:2], groups="none")
    path = tmp_path / "page.html"
    write_comparison_html(path, found, *runs[:2])
    page = path.read_text(encoding="utf-8")
    assert "pixel decoder" in page and "image encoder" in page
    assert "voxel decoder" not in page and "case encoder" not in page


def test_notebooks_name_arguments_and_keep_names():
    ids = [f"drive_{i:04d}" for i in range(60)]
    truth = [[[0, 0, 1, 1]]] * 60
    preds = ([[[0, i % 2, 1, 1]] for i in range(60)], [[[0, 0, 1, i % 3 > 0]] for i in range(60)])
    runs = [segiou.score(truth, pred, labels=2, ids=ids) for pred in preds]
    found = segiou.compare(*runs, names=("new", "--group-by image"), blocks=8)
    page = found._repr_html_()
    assert "--group-by none" in found.to_markdown() and "--group-by none" not in page
    assert "groups=&#x27;none&#x27;" in page and "--group-by image" in page


WORD = re.compile(r"(?i)\b(?:pixels?|images?)\b")
#: Text that readers of a page see or hear: outside tags, scripts and styles, and labels.
UNREAD = re.compile(r"(?s)<(script|style)\b.*?</\1>")
LABELS = re.compile(r'(?:aria-label|title|placeholder)="([^"]*)"')


def read_by_people(path):
    page = UNREAD.sub("", path.read_text(encoding="utf-8"))
    return unescape("\n".join([re.sub(r"<[^>]*>", " ", page), *LABELS.findall(page)]))


def strings_of(data):
    """The sentences and titles of plain data; keys and words such as a unit are one word."""
    if isinstance(data, dict | list):
        several = data.values() if isinstance(data, dict) else data
        return [text for one in several for text in strings_of(one)]
    return [data] if isinstance(data, str) and " " in data else []


def write_volumes(folder, ids, values):
    nib = pytest.importorskip("nibabel")
    folder.mkdir(parents=True)
    for id, array in zip(ids, values, strict=True):
        nib.save(nib.Nifti1Image(array, np.diag([1.0, 1.0, 2.0, 1.0])), folder / f"{id}.nii.gz")


def volumes(seed=0):
    """Truth and prediction of a dozen cases with every caution and every kind of error."""
    rng = np.random.default_rng(seed)
    truth = rng.choice(np.array([0, 1, 2], np.uint8), (12, 6, 5, 4), p=[0.6, 0.3, 0.1])
    pred = np.where(rng.random(truth.shape) < 0.8, truth, rng.integers(0, 2, truth.shape))
    truth[0, 0, 0] = 4  # in one image only
    truth[1] = 255  # no valid pixel
    pred[2] = 0  # empty
    pred[3] = np.where(truth[3] > 0, 0, 1)  # nothing found
    truth[4], pred[4, 0] = 0, 1  # no foreground
    pred[5, 0], pred[pred == 2] = 3, 0  # never in the truth; never predicted
    return truth, pred.astype(np.uint8)


NAMES = ("background", "first", "second", "third", "fourth")
HOSTILE_NAMES = ("background", "image pixel", "Pixels", "image-wise", "the pixels of an image")
IDS = {"plain": "head", "hostile": "image of pixels"}


@pytest.fixture(scope="module")
def scored(tmp_path_factory):
    """Folders and run files with plain and with hostile names of classes and cases."""
    kind_of_scores("surfaces")
    root = tmp_path_factory.mktemp("volumes")
    for kind, names in (("plain", NAMES), ("hostile", HOSTILE_NAMES)):
        ids = [f"{IDS[kind]} {letter}" for letter in "abcdefghijkl"]
        truth, pred = volumes()
        write_volumes(root / kind / "truth", ids, truth)
        for model, values in (("one", pred), ("two", np.where(truth == 4, 1, truth))):
            write_volumes(root / kind / model, ids, np.where(values == 255, 0, values))
            segiou.score_folder(
                root / kind / "truth",
                root / kind / model,
                labels=LabelSet.from_names(names),
                ignore=255,
                surfaces=True,
                run=root / kind / f"{model}.run",
            )
    return root


COMMANDS = {
    "report": "report {one} --detail --intervals --worst 3",
    "report of a protocol": "report {one} --protocol nnunet --detail",
    "over images": "report {one} --protocol smp-imagewise --detail",
    "over pairs": "report {one} --protocol torchmetrics-segmentation",
    "markdown": "report {one} --format markdown --worst 3",
    "latex": "report {one} --format latex --worst 3",
    "threshold": "report {one} --require pixel_accuracy=0.1",
    "explain": "explain {one}",
    "explain two": "explain {one} {two}",
    "compare accuracy": "compare {one} {two} --metric pixel_accuracy --group-by none",
    "compare": "compare {one} {two} --group-by none",
    "rank": "compare {one} {two} {two} --group-by none",
    "merge": "merge {one} -o {folder}/merged.run",
    "raters": "raters {folder}/one {folder}/two {folder}/truth --labels 5 --ignore 255",
    "inspect": "inspect {folder}/truth",
}


@pytest.fixture(autouse=True)
def wide(monkeypatch):
    monkeypatch.setenv("COLUMNS", "400")


def run_command(command, root, kind, capsys):
    folder = root / kind
    places = {"one": folder / "one.run", "two": folder / "two.run", "folder": folder}
    (folder / "merged.run").unlink(missing_ok=True)
    main([part.format(**places) for part in command.split(" ")])
    captured = capsys.readouterr()
    return (captured.out + captured.err).replace(str(folder), "")


@pytest.mark.parametrize("name", COMMANDS)
def test_commands_on_volumes_speak_of_voxels_and_cases(name, scored, capsys):
    plain = run_command(COMMANDS[name], scored, "plain", capsys)
    assert plain and not WORD.findall(plain)


def words_of(text):
    """Words of a text without rules, whose length depends on names."""
    return re.sub(r"[─-]+", " ", text).split()


@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in ("raters", "inspect")])
def test_commands_on_volumes_keep_names(name, scored, capsys):
    plain, hostile = (run_command(COMMANDS[name], scored, k, capsys) for k in IDS)
    for short, long in (
        (IDS["plain"], IDS["hostile"]),
        *zip(NAMES[:0:-1], HOSTILE_NAMES[:0:-1], strict=True),
    ):
        hostile = hostile.replace(long, short)
    assert words_of(hostile) == words_of(plain)


def test_json_and_csv_of_volumes(scored, capsys):
    for command in ("report {one} --format json --worst 3", "compare {one} {two} --format json"):
        data = json.loads(run_command(command, scored, "plain", capsys))
        assert not [text for text in strings_of(data) if WORD.search(text)]
    hostile = json.loads(run_command("report {one} --format json", scored, "hostile", capsys))
    assert [one["name"] for one in hostile["classes"]] == [*HOSTILE_NAMES]


@pytest.mark.parametrize("kind", ["plain", "hostile"])
def test_pages_of_volumes(kind, scored, capsys, tmp_path):
    page = tmp_path / "page.html"
    for command in ("report {one} --worst 3", "compare {one} {two}"):
        run_command(f"{command} --html {page}", scored, kind, capsys)
        text = read_by_people(page)
        if kind == "plain":
            assert "Voxel accuracy" in text and not WORD.findall(text)
        else:
            assert all(name in text for name in (*HOSTILE_NAMES, "image of pixels c"))
            assert "case pixel" not in text and "of voxels c" not in text


def test_plots_of_volumes(scored):
    pytest.importorskip("matplotlib")
    run = segiou.Run.open(scored / "plain" / "one.run")
    kinds = ("class_bars", "accuracy_vs_iou", "prevalence_curve", "image_distribution")
    for kind in (*kinds, "class_boxes", "confusion_matrix"):
        figure = run.plot(kind).figure
        texts = [one.get_text() for one in figure.findobj(lambda one: hasattr(one, "get_text"))]
        assert any(texts) and not [text for text in texts if WORD.search(text)]


def test_python_objects_of_volumes(scored):
    report = segiou.Run.open(scored / "plain" / "one.run").report()
    kinds = {step.kind for step in report.next_steps}
    assert {"missed_class", "false_class", "few_images", "confusion"} <= kinds
    assert {one.kind for one in report.image_cautions} >= {"void", "empty", "structures_missed"}
    texts = [*map(str, report.next_steps), *map(str, report.image_cautions), repr(report)]
    texts += [report.verdict, report._repr_html_(), *report.imbalance.sentences()]
    assert not [text for text in texts if WORD.search(UNREAD.sub("", text))]
    assert "Finding every voxel of" in "".join(texts) and "voxel accuracy" in repr(report)


def test_one_score_has_one_title(scored):
    """A value of the accuracy of voxels is called so in JSON, intervals and comparisons."""
    run = segiou.Run.open(scored / "plain" / "one.run")
    assert run.report().to_dict()["scores"]["pixel_accuracy"]["title"] == "voxel accuracy"
    assert "Voxel accuracy is" in run.intervals("pixel_accuracy").sentences()[0]
    flat = segiou.score([[[0, 1]]] * 3, [[[0, 0]]] * 3, labels=2)
    assert "Pixel accuracy is" in flat.intervals("pixel_accuracy").sentences()[0]
    assert str(ImageCaution("void", ("a", "b"))) == "Every pixel is ignored in 2 images: a and b."
