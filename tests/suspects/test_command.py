"""The command and the page of suspects."""

from __future__ import annotations

import json
import re
import shutil
from base64 import b64decode
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from mask_files import write_mask
from PIL import Image
from scipy import ndimage

import segiou
from segiou.cli.main import main
from segiou.suspects.page import suspects_html

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


def test_a_table_of_verdicts_names_file_and_column(folders, capsys):
    (folders / "v.csv").write_text("image,label\n")
    assert main(["suspects", *SCORE, "--reviewed", "v.csv"]) == 2
    assert capsys.readouterr().err == "segiou: v.csv: has no rows\n"
    (folders / "v.csv").write_text("image,label\na,car\n")
    assert main(["suspects", *SCORE, "--reviewed", "v.csv"]) == 2
    assert "v.csv: has no column 'suggestion'; columns: image, label" in capsys.readouterr().err


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
    assert "with a region of at least this size; rows " in page
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
    assert "box (axes 1, 2, 3)" in capsys.readouterr().out


@pytest.mark.gate
def test_cards_of_volumes_show_their_own_region(tmp_path):
    nibabel = pytest.importorskip("nibabel", reason="volumes need nibabel")
    truth, pred = np.zeros((2, 20, 30, 12), np.uint8)
    pred[2:10, 3:13, 2:4] = 1  # planes of 80 voxels
    pred[14:18, 20:26, 7:10] = 1  # of 24
    scan = np.tile(np.arange(12.0), (20, 30, 1))  # each plane in one grey
    scan[16, 24] = [0] * 9 + [50, 0, 0]
    files = {"truth": truth, "pred": pred, "scan": scan}
    for side, values in files.items():
        (tmp_path / side).mkdir()
        nibabel.save(nibabel.Nifti1Image(values, np.diag([1, 1, 2, 1])), tmp_path / side / "a.nii")
    folders = tmp_path / "truth", tmp_path / "pred"
    run = segiou.score_folder(*folders, labels=2, measures=["suspects"])
    result = segiou.find_suspects(run, all_regions=True)
    assert [region.box[2] for region in result.regions] == [(2, 4), (7, 10)]
    page = suspects_html(result, run, images=tmp_path / "scan")
    photo, truth_picture, second = pictures_of(page)[3:]
    # To the right of the patient is the left of the picture, and the front is at the top:
    # columns 19 - x, rows 29 - y. The box has 4 columns from 2 and 6 rows from 4, with 12 around
    # it, of 20 and 30; the picture has 260 / 22 ≈ 12 times its pixels.
    assert second.shape == truth_picture.shape == (22 * 12, 18 * 12, 3)
    purple = (second != truth_picture).any(2)
    rows, columns = (np.flatnonzero(purple.any(axis)) for axis in (1, 0))
    assert (rows[0] // 12, rows[-1] // 12) == (4, 9)
    assert (columns[0] // 12, columns[-1] // 12) == (2, 5)
    grey = photo[15 * 12, 10 * 12]
    assert 0 < grey[0] == grey[1] < 255  # plane 7, the first with most of it


def test_the_outline_is_that_of_the_region_alone(tmp_path):
    truth, pred = np.zeros((2, 40, 60), np.uint8)
    pred[10:20, 10] = pred[10, 10:30] = 1  # an angle of 29 pixels
    pred[15:18, 20:24] = 1  # 12 other pixels within its box
    for side, mask in (("truth", truth), ("pred", pred)):
        write_mask(tmp_path / side / "a.png", mask)
    folders = tmp_path / "truth", tmp_path / "pred"
    run = segiou.score_folder(*folders, labels=2, measures=["suspects"])
    result = segiou.find_suspects(run, first=1)
    assert result.regions[0].pixels == 29 and result.regions[0].box == ((10, 20), (10, 30))
    picture = pictures_of(suspects_html(result, run))[0]
    # The view begins at row 0 and column 0, and 260 / 42 columns are 6 times as large.
    black = (picture == 0).all(2)[3::6, 3::6] | (picture == 0).all(2)[::6, ::6]
    assert black[9:12, 9:31].any()
    assert not black[13:20, 14:28].any()


def pictures_of(page):
    """The pictures of the cards as arrays."""
    found = re.findall(r'<figure><img src="data:image/png;base64,([^"]+)"', page)
    return [np.asarray(Image.open(BytesIO(b64decode(data))).convert("RGB")) for data in found]


@pytest.mark.gate
def test_photos_of_16_bits_and_turned_ones_are_shown(folders, capsys):
    values = np.tile(np.linspace(1000, 5000, 60), (40, 1))
    Image.fromarray(values.astype(np.uint16)).save(folders / "photos" / "a.png")
    turned = Image.fromarray(np.repeat(np.arange(60, dtype=np.uint8), 40).reshape(60, 40))
    exif = Image.Exif()
    exif[0x0112] = 8  # shown after a quarter turn to the left
    (folders / "photos" / "c.png").unlink()
    turned.save(folders / "photos" / "c.tif")
    turned.save(folders / "photos" / "b.png", exif=exif)
    (folders / "photos" / "d.png").unlink()
    assert main(["suspects", *SCORE[:-1], "--images", "photos", "--html", "page.html"]) == 0
    assert "--images: Found photos for 3 of 4 images" in capsys.readouterr().err
    page = Path("page.html").read_text()
    assert "No photo for this image (3 of 4 photos were found)." in page
    photos = {
        card.partition(". ")[2][0]: pictures_of(card)[0]
        for card in page.split('<h3 id="suspect-')[1:]
        if "<figcaption>photo" in card
    }
    # All columns, four times as large.
    wide = photos["a"][0, 2::4, 0].astype(float)
    assert wide.shape == (60,)
    # The first and the last of 60 columns have more than a per cent, and are black and white.
    np.testing.assert_allclose(wide, np.linspace(0, 255, 60), atol=1)
    assert photos["b"][0, 2::4, 0].tolist() == [*range(60)]


def test_verdicts_on_names_as_files_write_them_are_found(tmp_path):
    names = ["=1+1", "-5", "'=q", "bell\a", "zero\u200bwidth", " lead", "a\rb", 'a"b, c']
    truth, pred = np.zeros((2, len(names), 9, 9), np.uint8)
    pred[:, 2:6, 2:6] = 1
    run = segiou.score(truth, pred, labels=2, ids=names, measures=["suspects"])
    reviewed = tmp_path / "reviewed.csv"
    text = segiou.find_suspects(run).to_csv()
    lines = (line + ("wrong" if i else "") for i, line in enumerate(text.split("\n")[:-1]))
    reviewed.write_text("\n".join(lines) + "\n", newline="")
    assert segiou.find_suspects(run, reviewed=reviewed).reviewed.wrong == len(names)


@pytest.mark.gate
@pytest.mark.needs("demo")
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
