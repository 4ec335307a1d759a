"""The report's page as text: one strict file, whatever the names and the numbers are."""

import json
import re
import shlex
import shutil
from html import unescape

import numpy as np
import pytest
from mask_files import score_pairs, write_masks, write_pairs

import segiou
from segiou.accumulators.channel_counts import ChannelCounts
from segiou.masks import open_source
from segiou.report.pages import image_table
from segiou.report.pages.report_page import render_report, write_html

HOSTILE = ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "</style>", "{{ 7*7 }}"]


@pytest.fixture
def folders(tmp_path):
    rng = np.random.default_rng(0)
    truth = {f"{i:02}": rng.integers(0, 4, (6, 9), dtype=np.uint8) for i in range(5)}
    pred = {k: np.where(rng.random(a.shape) < 0.3, 0, a).astype(np.uint8) for k, a in truth.items()}
    return write_pairs(tmp_path, truth, pred)


def score(folders, names=("a", "b", "c", "d"), **options):
    return score_pairs(folders, labels=segiou.LabelSet.from_names(names), **options)


def data_of(page):
    """What the script of the page works with."""
    return json.loads(re.search(r'id="data">(.*?)</script>', page, re.S).group(1))


def pictures_of(page):
    """The pictures in the page, by the name of their image."""
    found = data_of(page)["images"]
    return {found["ids"][int(i)]: picture for i, picture in found["pictures"].items()}


def text_of(page):
    """What a reader sees, without markup."""
    body = joined(page[page.index("<main") : page.index("</main>")])
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", body)).split())


def joined(page):
    """The page without the marks of words that do not break across lines."""
    return re.sub(r'<span class="whole">(.*?)</span>', r"\1", page)


def command_of(page):
    """The words of the command that makes the page again."""
    return shlex.split(unescape(re.search(r"<code>(segiou score .*?)</code>", joined(page))[1]))


def test_page_is_one_strict_file(folders):
    page = score(folders).to_html()
    policy = unescape(re.search(r'Content-Security-Policy" content="([^"]*)"', page).group(1))
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    for attribute in re.findall(r'(?:src|href)="([^"]*)"', page):
        assert attribute.startswith(("#", "data:")), attribute
    assert "style=" not in page
    assert not re.search(r"\son\w+=", page)
    assert set(re.findall(r"https?://[^\s\"'<>]*", page)) <= {"http://www.w3.org/2000/svg"}


def test_hostile_names_stay_text(folders):
    run = score(folders, HOSTILE, name=HOSTILE[1])
    page = run.to_html()
    assert page.count("<script") == 2
    assert page.count("<style") == 1
    assert "<img src=x" not in page
    for name in HOSTILE:
        assert name in text_of(page)
    assert data_of(page)["names"] == HOSTILE


def test_control_characters_are_escapes_in_every_text_of_a_page():
    """ESC, a line that runs from right to left, a file name that is not UTF-8."""
    names = ["a\x1b[2J", "b\u202e"]
    run = segiou.score([[[0, 1]]], [[[0, 0]]], labels=names, ids=["c\udcff\u2066"])
    page = render_report(run.report(), run=run)
    page.encode()
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", page)
    assert data_of(page)["names"] == ["a\\x1b[2J", "b\\u202e"]
    assert "image=c%5Cudcff%5Cu2066" in page


def test_numbers_are_those_of_the_report(folders):
    run = score(folders)
    report = run.report()
    text = text_of(run.to_html())
    for value in (report.mean_iou, report.pixel_accuracy, report.mean_accuracy, report.mean_dice):
        assert f"{100 * value:.2f} %" in text
    assert "over 4 of 4 classes" in text
    assert "95 % jackknife-t intervals over 5 images" in text
    assert report.protocol.description[1:] in text


def test_intervals_can_be_left_out(folders):
    run = score(folders)
    # Of a report that has intervals, only those are drawn.
    drawn = run.intervals(method="percentile", resamples=20)
    given = run.report(intervals=drawn).to_html()
    assert "5 images, 20 resamples" in text_of(given)
    given = run.report(intervals=run.intervals()).to_html()
    assert 0 < given.count('class="whisker"') < run.to_html().count('class="whisker"')
    text = text_of(run.to_html(intervals=[]))
    assert "jackknife" not in text and "interval" not in text.partition("Costliest errors")[0]


@pytest.mark.gate
def test_page_is_the_same_every_time(folders):
    run = score(folders)
    assert run.to_html() == run.to_html()
    assert len({run.to_html(examples=3, seed=seed) for seed in range(6)}) == 2


@pytest.mark.gate
def test_page_stays_small_for_19_classes_and_24_images(tmp_path):
    rng = np.random.default_rng(0)
    truth, pred, images = {}, {}, {}
    for i in range(24):
        blocks = rng.integers(0, 19, (40, 64), dtype=np.uint8).repeat(8, 0).repeat(8, 1)
        noise = rng.integers(0, 19, blocks.shape, dtype=np.uint8)
        truth[f"{i:02}"] = blocks
        pred[f"{i:02}"] = np.where(rng.random(blocks.shape) < 0.2, noise, blocks).astype(np.uint8)
        images[f"{i:02}"] = rng.integers(0, 255, (*blocks.shape, 3), dtype=np.uint8)
    write_pairs(tmp_path, truth, pred)
    write_masks(tmp_path / "images", images)
    run = segiou.score_folder(tmp_path / "truth", tmp_path / "pred", labels=19)
    page = run.to_html(images=tmp_path / "images")
    assert all(picture["image"] for picture in pictures_of(page).values())
    assert len(pictures_of(page)) == 24
    assert len(page.encode()) < 1_500_000


def test_gone_files_are_said(folders):
    run = score(folders)
    (folders / "pred" / "00.png").unlink()
    pictures = pictures_of(run.to_html())
    assert pictures["00"] == {"problem": f"No pictures: {folders}/pred/00.png: does not exist"}
    assert [len(pictures[f"0{i}"]["masks"]) for i in range(1, 5)] == [2] * 4


def test_images_are_found_by_name_and_their_absence_said(folders):
    write_masks(folders / "images", {"01": np.zeros((12, 18, 3), np.uint8)})
    run = score(folders)
    page = run.to_html(images=folders / "images")
    assert [id for id, picture in pictures_of(page).items() if picture["image"]] == ["01"]
    assert "photos for 1 of 5 images in" in text_of(page)
    assert "e.g. 01.png for 01; 4 missing, e.g. 00." in text_of(page)
    (folders / "others").mkdir()
    assert "photos for 0 of 5 images in" in text_of(run.to_html(images=folders / "others"))
    with pytest.raises(FileNotFoundError, match="nowhere is not a folder"):
        run.to_html(images=folders / "nowhere")


def test_a_damaged_image_is_said(folders):
    (folders / "images").mkdir()
    (folders / "images" / "01.jpg").write_bytes(b"\xff\xd8\xff no image")
    page = score(folders).to_html(images=folders / "images")
    assert "01.jpg cannot be shown" in pictures_of(page)["01"]["problem"]


def test_without_a_run_there_is_a_page_all_the_same():
    matrix = segiou.ConfusionMatrix(["road", "car"]).update([0, 1, 1], [0, 1, 0])
    text = text_of(matrix.report(title="held out").to_html())
    assert "held out" in text
    assert "Reproduce this page" not in text
    assert "Table of images" not in text


def test_overlapping_channels_have_no_confusions():
    channels = ChannelCounts(["edema", "tumour"])
    channels.update([[[1, 1, 0]], [[0, 1, 0]]], [[[1, 0, 0]], [[0, 1, 1]]], axis=0)
    page = channels.report().to_html()
    assert "50.00 %" in text_of(page)
    assert "values (pixels × channels)" in text_of(page)
    assert 'id="confusions"' not in page


def test_arrays_have_scores_but_no_pictures():
    run = segiou.score([[[0, 1]], [[1, 1]]], [[[0, 1]], [[0, 1]]], labels=2)
    assert "scored from arrays" in pictures_of(run.to_html())["1"]["problem"]


def test_nothing_counted_gives_a_page():
    page = segiou.ConfusionMatrix(["road", "car"]).report().to_html()
    assert "Mean IoU is undefined" in text_of(page)
    run = segiou.score([[[9, 9]]], [[[0, 0]]], labels=2, ignore=9)
    assert data_of(run.to_html())["images"]["scores"] == [[None]]


def test_examples_must_not_be_negative(folders):
    run = score(folders)
    with pytest.raises(ValueError, match="at least 0, got -1"):
        run.to_html(examples=-1)
    page = run.to_html(examples=2)
    assert len(pictures_of(page)) == 2
    assert "pictures of 2 of 5 images." in text_of(page)
    assert pictures_of(run.to_html(examples=0)) == {}


@pytest.mark.gate
def test_many_classes_keep_their_names_and_colors():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 300, (1, 40, 40))
    run = segiou.score(truth, (truth + (rng.random(truth.shape) < 0.2)) % 300, labels=300)
    page = run.to_html()
    assert 'id="heat-large"' in page
    assert "showing the 40 of" in text_of(page)


def test_what_was_left_out_is_listed_and_left_out_again(folders):
    (folders / "pred" / "00.png").unlink()
    (folders / "pred" / "01.png").write_bytes(b"no picture")
    run = score(folders, missing="skip", on_error="skip")
    page = run.to_html()
    assert "2 pairs skipped" in text_of(page)
    assert "01.png: is not an image" in text_of(page)


def test_write_html_writes_the_page(folders):
    run = score(folders)
    path = write_html(folders / "report.html", run.report(), run=run)
    assert path.read_text(encoding="utf-8") == render_report(run.report(), run=run)


def test_a_folder_has_the_pictures_of_all_images_beside_its_page(folders):
    run = score(folders)
    path = write_html(f"{folders}/page/", run.report(), run=run, examples=1)
    assert path == folders / "page" / "index.html"
    page = path.read_text(encoding="utf-8")
    assert pictures_of(page) == {}
    assert "'strict-dynamic'" in unescape(page[: page.index("<title>")])
    assert "This page embeds" not in text_of(page)
    scripts = sorted(path.name for path in (folders / "page" / "pictures").iterdir())
    assert scripts == [f"{i}.js" for i in range(5)]
    call = (folders / "page" / "pictures" / "2.js").read_text(encoding="utf-8")
    assert re.fullmatch(r'segiouPicture\(2, "02", \{.*\}\);\n', call)
    # A folder that exists needs no slash.
    assert write_html(folders / "page", run.report(), run=run) == path


def test_data_hold_the_pairs_of_classes_of_every_image(folders):
    run = score(folders)
    (cells,) = data_of(run.to_html())["images"]["cells"]
    steps, pixels = iter(cells["steps"]), iter(cells["pixels"])
    for image, size in zip(run, cells["sizes"], strict=True):
        assert np.cumsum([next(steps) for _ in range(size)]).tolist() == image.cells.tolist()
        assert [next(pixels) for _ in range(size)] == image.values.tolist()


def test_of_too_many_pairs_the_largest_are_kept(folders, monkeypatch):
    monkeypatch.setattr(image_table, "_CELLS", 15)
    run = score(folders)
    page = run.to_html()
    (cells,) = data_of(page)["images"]["cells"]
    assert cells["sizes"] == [3] * 5
    kept = [sorted(image.values.tolist())[-3:] for image in run]
    assert [sorted(cells["pixels"][3 * i : 3 * i + 3]) for i in range(5)] == kept
    assert "the 3 largest confusions" in text_of(page)


def test_of_too_many_images_the_worst_are_listed(folders, monkeypatch):
    monkeypatch.setattr(image_table, "LISTED", 2)
    run = score(folders)
    page = run.to_html()
    assert data_of(page)["images"]["ids"] == sorted(row["id"] for row in run.worst(2))
    assert "the worst 2 images; 3 more" in text_of(page)


def test_masks_in_an_archive_are_shown(folders):
    shutil.make_archive(str(folders / "pred"), "zip", folders / "pred")
    labels = segiou.LabelSet.numbered(4)
    run = segiou.score_folder(folders / "truth", folders / "pred.zip", labels=labels)
    page = run.to_html(read=lambda path: open_source(path).read(path)[0])
    assert [len(picture["masks"]) for picture in pictures_of(page).values()] == [2] * 5


def test_nothing_is_read_where_reading_fails(folders):
    def unplugged(path):
        raise ConnectionError("the network is gone")

    pictures = pictures_of(score(folders).to_html(read=unplugged))
    assert all("the network is gone" in picture["problem"] for picture in pictures.values())


def test_boundaries_have_a_section_where_they_were_measured():
    truth, pred = [[[0, 1, 1], [0, 1, 1]]], [[[0, 0, 1], [0, 1, 1]]]
    page = segiou.score(truth, pred, labels=["road", "<b>"], boundary=True).to_html()
    assert 'id="boundaries"' in page
    assert "Boundary IoU" in page
    assert "<b></span>" not in page
    without = segiou.score(truth, pred, labels=["road", "<b>"]).to_html()
    assert 'id="boundaries"' not in without


def test_perfect_scores_have_the_interval_of_one_wrong_pixel():
    truth = np.array([[[0, 1, 1, 0]]] * 12)
    run = segiou.score(truth, truth, labels=["road", "car"])
    # Of one of two classes: 24 of 25 pixels, ± t(11) √(11/12) 25/24 on the logit, and half of it.
    assert "95 % interval 86.38 to 100.00 %" in text_of(run.to_html())


@pytest.mark.parametrize(("classes", "small"), [(1, True), (5, False), (60, False)])
def test_few_classes_get_a_small_matrix(classes, small):
    page = segiou.ConfusionMatrix(classes).update([0], [0]).report().to_html()
    assert ('class="small"' in page) == small


def test_every_report_says_how_much_was_left_out(folders):
    (folders / "pred" / "00.png").unlink()
    report = score(folders, missing="skip").report()
    assert report.to_dict()["left_out"] == 1
    assert "4 pairs (1 skipped), 216 pixels" in " ".join(report.to_text().split())
    assert "4 pairs (1 skipped), 216 pixels" in report.to_markdown()
    assert "4 pairs (1 skipped), 216 pixels" in report._repr_html_()
    assert "216 pixels; 1 skipped" in text_of(report.to_html())
    (folders / "truth" / "00.png").unlink()
    whole = score(folders).report()
    assert whole.to_dict()["left_out"] == 0
    assert "left out" not in whole.to_text() + whole.to_markdown() + whole._repr_html_()


@pytest.mark.gate
def test_the_matrix_of_very_many_classes_is_not_drawn():
    few, many = (
        render_report(segiou.ConfusionMatrix(number).update([0, 1], [1, 1]).report())
        for number in (1000, 1001)
    )
    assert '<svg id="heat-map"' in few and "too large to draw" not in few
    assert '<svg id="heat-map"' not in many and "too large to draw" in many
