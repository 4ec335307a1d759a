"""The command and the page of suspects."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from mask_files import write_mask
from PIL import Image
from scipy import ndimage

import segiou
from segiou.cli.main import main

CAMVID = Path(__file__).resolve().parents[3] / "shared" / "data" / "camvid"
PAGE = Path(__file__).parents[2] / "docs" / "howto" / "label-errors.md"


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """Four images; the truth of c lacks a car of 60 pixels."""
    monkeypatch.chdir(tmp_path)
    for name in "abcd":
        truth, pred = np.zeros((2, 40, 60), np.uint8)
        truth[30:] = pred[29:] = 1
        pred[2:12, 3:9] = 2
        if name != "c":
            truth[2:12, 3:9] = 2
        write_mask(tmp_path / "truth" / f"{name}.png", truth)
        write_mask(tmp_path / "pred" / f"{name}.png", pred)
        write_mask(tmp_path / "photos" / f"{name}.png", np.full((40, 60, 3), 90, np.uint8))
    labels = segiou.LabelSet.from_names(["wall", "road", "car"])
    (tmp_path / "labels.toml").write_text(labels.to_toml())
    return tmp_path


SCORE = ("truth", "pred", "--labels", "labels.toml", "-q")


def test_from_two_folders_to_the_wrong_mask(folders, capsys):
    assert main(["suspects", *SCORE, "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    first = found["regions"][0]
    assert (first["image"], first["label"], first["suggestion"]) == ("c", "wall", "car")
    assert (first["pixels"], first["box"], first["share"]) == (60, [[2, 12], [3, 9]], 1.0)


def test_a_missing_car_of_camvid_is_the_first_entry(tmp_path, monkeypatch, capsys):
    if not CAMVID.is_dir():
        pytest.skip("the frames of CamVid are not beside this checkout")
    monkeypatch.chdir(tmp_path)
    shutil.copytree(CAMVID / "truth", "planted")
    name, road, car = "0001TP_009510", 3, 8
    mask = np.array(Image.open(f"planted/{name}.png"))
    ids, _ = ndimage.label(mask == car)
    mask[ids == 1 + np.bincount(ids.ravel())[1:].argmax()] = road  # its largest car
    write_mask(tmp_path / "planted" / f"{name}.png", mask)
    command = ["suspects", "planted", str(CAMVID / "base"), "--labels", "0-10", "--ignore", "11"]
    assert main([*command, "--first", "1", "--format", "json", "-q"]) == 0
    first = json.loads(capsys.readouterr().out)["regions"][0]
    assert (first["image"], first["label"], first["suggestion"]) == (name, str(road), str(car))
    assert first["pixels"] == 18003


def test_run_files_give_the_same_list(folders, capsys):
    assert main(["score", *SCORE, "--suspects", "--run", "run.sqlite", "-o", "r.txt"]) == 0
    assert main(["score", *SCORE, "--run", "plain.sqlite", "-o", "r2.txt"]) == 0
    assert main(["suspects", *SCORE]) == 0
    expected = capsys.readouterr().out
    assert main(["suspects", "run.sqlite"]) == 0
    assert capsys.readouterr().out == expected
    assert main(["suspects", "plain.sqlite", "--format", "csv"]) == 0
    assert capsys.readouterr().out.splitlines()[1].startswith("1,c,wall,car,60,0.025,1.0,1.0,1.0,")
    assert main(["suspects", "run.sqlite", "run.sqlite", "-q"]) == 0
    assert "weak evidence" in " ".join(capsys.readouterr().out.split())
    assert main(["report", "plain.sqlite", "--worst", "1", "--worst-by", "suspects"]) == 0
    assert re.search(r"^c +15\.81 %", capsys.readouterr().out, re.M)


def test_options_select(folders, capsys):
    main(["suspects", *SCORE, "--omit", "wall:car", "--format", "csv"])
    assert "car" not in capsys.readouterr().out
    main(["suspects", *SCORE, "--first", "1", "--label", "wall", "--max-extent", "0.026"])
    assert "1 of 4 images" in capsys.readouterr().out
    assert main(["suspects", *SCORE, "--label", "cat"]) == 2
    assert "unknown class 'cat'; choose from wall, road, car" in capsys.readouterr().err
    assert main(["suspects", "nothing.sqlite"]) == 3
    assert main(["suspects", "truth", "-q"]) == 2


def test_the_page_shows_the_region(folders, capsys):
    assert main(["suspects", *SCORE, "--images", "photos"]) == 2
    assert "--images has no effect without --html" in capsys.readouterr().err
    assert main(["suspects", *SCORE, "--seed", "1"]) == 2
    assert "--seed has no effect without --random-sample" in capsys.readouterr().err
    assert main(["suspects", *SCORE, "--images", "photos", "-o", "main.html"]) == 0
    assert "<figcaption>photo</figcaption>" in Path("main.html").read_text()
    assert main(["suspects", *SCORE, "--images", "photos", "--html", "page.html"]) == 0
    page = Path("page.html").read_text()
    claim = page.partition('<p class="claim">')[2].partition("</p>")[0]
    assert re.sub("<.*?>", "", claim) == "labelled wall, predicted car"
    assert claim.count('class="swatch"') == 2  # the colours of both masks
    assert "with as large a region; rows " in page
    assert page.count("<figcaption>photo</figcaption>") == 4
    assert page.count('src="data:image/png;base64,') == 12
    assert "probab" not in page.partition('id="regions"')[2].partition("<script")[0]
    for path in Path("truth").iterdir():
        path.unlink()
    assert main(["score", *SCORE[:2], "--labels", "3", "-q"]) != 0


def test_the_page_without_masks_says_why(folders, capsys):
    main(["score", *SCORE, "--suspects", "--run", "run.sqlite", "-o", "r.txt"])
    for path in Path("truth").iterdir():
        path.unlink()
    assert main(["suspects", "run.sqlite", "--html", "page.html"]) == 0
    assert "No pictures:" in Path("page.html").read_text()


def test_pages_of_volumes_show_a_plane(folders, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    nibabel = pytest.importorskip("nibabel", reason="volumes need nibabel")
    for side in ("vt", "vp"):
        Path(side).mkdir()
        mask = np.zeros((6, 7, 8), np.uint8)
        mask[1:5, 1:5, 1:5] = side == "vp"
        nibabel.save(nibabel.Nifti1Image(mask, np.eye(4)), f"{side}/a.nii.gz")
    assert main(["suspects", "vt", "vp", "--labels", "2", "-q", "--html", "page.html"]) == 0
    assert "64 voxels" in Path("page.html").read_text()
    assert "planes, rows, columns" in capsys.readouterr().out


@pytest.mark.gate
def test_the_example_of_the_page(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    text = PAGE.read_text(encoding="utf-8")
    code = re.search(r"<!-- planted -->\n```python\n(.*?)```", text, re.DOTALL)
    shown = re.search(r"\$ segiou (suspects planted [^\n]*)\n(.*?)```", text, re.DOTALL)
    assert main(["demo", "streets"]) == 0
    exec(code[1], {})
    capsys.readouterr()
    assert main(shown[1].split()) == 0
    assert capsys.readouterr().out == shown[2]


def test_small_regions_have_a_second_list_on_the_page(folders):
    for name in "ab":
        truth, pred = np.zeros((2, 100, 100), np.uint8)
        pred[10:30, 10:30] = 1
        if name == "b":
            pred[60:64, 60:65] = 2  # 20 of 10000 pixels
        write_mask(folders / "large_truth" / f"{name}.png", truth)
        write_mask(folders / "large_pred" / f"{name}.png", pred)
    command = ["suspects", "large_truth", "large_pred", *SCORE[2:], "--html", "page.html"]

    def lists(*options):
        assert main([*command, *options]) == 0
        parts = Path("page.html").read_text().partition('<section id="list"')[0]
        found = [part.count("<article") for part in parts.split('<section id="small"')]
        return found, re.findall(r'name="verdict-(\d+)" value="wrong"', parts)

    assert lists("--first", "2") == ([2, 1], ["0", "1", "2"])
    assert lists("--all-regions") == ([3], ["0", "1", "2"])  # the first list has it already
    assert lists("--max-extent", "0.003") == ([1], ["0"])
    assert lists("--first", "2", "--random-sample", "2") == ([2], ["0", "1"])
    main(["score", *command[1:-2], "--run", "plain.sqlite", "-o", "r.txt"])
    command[1:5] = ["plain.sqlite"]  # images by their confusions: wall → car of b is small
    assert lists() == ([2, 1], ["0", "1", "2"])
    assert "Small confusions</h2>" in Path("page.html").read_text()


def test_the_page_of_a_report_has_the_first_of_them(folders):
    assert main(["score", *SCORE, "--suspects", "--run", "run.sqlite", "--html", "a.html"]) == 0
    assert main(["report", "run.sqlite", "--images", "photos", "--html", "b.html"]) == 0
    for name, pictures in (("a.html", 2), ("b.html", 3)):
        section = Path(name).read_text().partition('<section id="suspects"')[2]
        section = section.partition("</section>")[0]
        first = section.partition("</article>")[0]
        assert "1. c</h3>" in first
        assert "labelled wall, predicted car" in re.sub("<.*?>", "", first)
        assert first.count("<figure>") == pictures
        assert 'type="radio"' not in section
    assert main(["score", *SCORE, "--html", "c.html", "-o", "c.txt"]) == 0
    assert 'id="suspects"' not in Path("c.html").read_text()
