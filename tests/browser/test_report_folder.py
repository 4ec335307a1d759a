"""The report as a folder, which reads its pictures from disk."""

import numpy as np
from PIL import Image

import segiou
from segiou.report import write_html


def test_a_folder_shows_pictures_from_disk_as_they_are_seen(new_page, tmp_path, until):
    """Two hundred images: only those in sight are read, and scrolling reads others."""
    for name in ("truth", "pred"):
        (tmp_path / name).mkdir()
        for number in range(200):
            mask = np.full((2, 4), number % 2, np.uint8)
            mask[:, 0] = 1 if name == "pred" else 0
            Image.fromarray(mask).save(tmp_path / name / f"{number:03}.png")
    run = segiou.score_folder(tmp_path / "truth", tmp_path / "pred", labels=["road", "car"])
    path = write_html(f"{tmp_path}/page/", run.report(), run=run)
    page = new_page()
    read = []
    page.on("request", lambda request: read.append(request.url.rpartition("/")[2]))
    page.goto(path.as_uri())
    until(page, "document.querySelectorAll('.thumb[data-painted]').length > 5")
    until(page, "document.querySelectorAll('#viewer-panels canvas').length === 3")
    assert 1 < len([name for name in read if name.endswith(".js")]) < 60
    assert "199.js" not in read
    page.evaluate("document.getElementById('image-rows').scrollTop = 1e6")
    page.locator("#image-rows").press("End")
    until(page, "document.querySelector('#image-table [aria-current] .name') !== null")
    last = page.locator("#image-table [aria-current] .name").inner_text()
    until(page, f"document.getElementById('viewer').dataset.shown === 'image={last}'")
    assert f"{int(last)}.js" in read
    assert page.locator("#image-table tbody tr:not(.space)").count() < 60
    assert page.locator("#viewer-problem").inner_text() == ""
    # A picture of a different report is rejected.
    unread = next(number for number in range(200) if f"{number}.js" not in read)
    wrong = path.parent / "pictures" / f"{unread}.js"
    text = wrong.read_text(encoding="utf-8")
    wrong.write_text(text.replace(f'"{unread:03}"', '"other"'), encoding="utf-8")
    page.evaluate("(hash) => { location.hash = hash; }", f"#image={unread:03}")
    until(page, "document.getElementById('viewer-problem').textContent !== ''")
    assert "different report" in page.locator("#viewer-problem").inner_text()


def test_pictures_of_an_image_with_unseen_characters_in_its_name_are_its_own(page, tmp_path, until):
    """The page has such characters as escapes, and so the name in the file of its pictures."""
    for name in ("truth", "pred"):
        (tmp_path / name).mkdir()
        Image.fromarray(np.eye(4, dtype=np.uint8)).save(tmp_path / name / "\u202egnp.evil.png")
    run = segiou.score_folder(tmp_path / "truth", tmp_path / "pred", labels=["road", "car"])
    page.goto(write_html(f"{tmp_path}/page/", run.report(), run=run).as_uri())
    until(page, "document.querySelectorAll('#viewer-panels canvas').length === 3")
    assert page.locator("#viewer-title").inner_text() == "\\u202egnp.evil"
    assert page.locator("#viewer-problem").inner_text() == ""
