"""The list of images of a page: ways into it, addresses, order."""

import json

import pytest
from hostile_page import image_names, percentage


def pixels_of(page):
    texts = page.locator("#image-table tbody tr td:last-child").all_inner_texts()
    return [int(text.replace("\N{NARROW NO-BREAK SPACE}", "")) for text in texts]


def test_a_cell_leads_to_its_images_and_back(report, until):
    assert len(image_names(report)) == 10
    report.get_by_label("by truth").press("Tab")
    heat = report.locator("#heat-map")
    heat.focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowLeft"):
        heat.press(key)
    assert report.locator("#heat-readout").inner_text().startswith("car predicted as road")
    heat.press("Enter")
    until(report, "location.hash === '#t=car&p=road'")
    until(report, "document.getElementById('images-asked').textContent.startsWith('car pred')")
    matrix = "JSON.parse(document.getElementById('data').textContent).confusion.matrix"
    pixels = pixels_of(report)
    assert sum(pixels) == report.evaluate(f"{matrix}[1][0]")
    assert pixels == sorted(pixels, reverse=True)
    assert min(pixels) > 0
    # Keys alone go on: down to the next image, Enter to see it large, Escape back.
    assert report.evaluate("document.activeElement.id") == "image-rows"
    second = image_names(report)[1] if len(pixels) > 1 else image_names(report)[0]
    report.keyboard.press("ArrowDown")
    until(report, f"document.getElementById('viewer-title').textContent === {json.dumps(second)}")
    report.keyboard.press("Enter")
    assert report.evaluate("document.getElementById('viewer').matches(':modal')")
    report.keyboard.press("Escape")
    until(report, "!document.getElementById('viewer').matches(':modal')")
    report.get_by_role("link", name="all images", exact=True).click()
    until(report, "document.getElementById('images-asked').textContent === '10 of 10 images'")
    assert len(image_names(report)) == 10
    report.go_back()
    until(report, "document.getElementById('images-asked').textContent.startsWith('car pred')")
    assert f"image={second}" in report.url
    report.go_back()
    until(report, "location.hash === ''")
    until(report, "document.getElementById('images-asked').textContent === '10 of 10 images'")
    report.go_forward()
    until(report, "document.getElementById('images-asked').textContent.startsWith('car pred')")


def test_back_leads_to_where_the_reader_was(report, until):
    report.locator("#image-find").fill("scene")
    report.evaluate("document.documentElement.scrollTop = 300")
    until(report, "history.state !== null && history.state.y === 300")
    # A click by Playwright itself would scroll first.
    report.evaluate("document.querySelector('.next-steps a').click()")
    until(report, "scrollY > 500")
    report.locator("#image-find").fill("")
    report.evaluate("document.querySelector('.contents a').click()")
    until(report, "location.hash === '#summary' && scrollY < 100")
    report.go_back()
    until(report, "scrollY > 500")
    report.go_back()
    until(report, "scrollY === 300")
    assert report.locator("#image-find").input_value() == "scene"
    assert all("scene" in name for name in image_names(report))


@pytest.mark.parametrize(
    ("section", "link", "asked"),
    [
        (".next-steps", "a >> nth=0", "predicted as"),
        (".next-steps", "li >> nth=0 >> a:last-child", "predicted as"),
        ("#class-table", "a.name >> nth=1", "car: missed and false positives"),
        ("#confusion-table", "a.name >> nth=0", "predicted as"),
        (".histogram", "a >> nth=0", "mean IoU"),
        ("#lens-row", "a >> nth=0", ""),
        ("#class-key", "a >> nth=0", "missed and false positives"),
    ],
)
def test_everything_leads_to_images(report, until, section, link, asked):
    until(report, "document.querySelectorAll('#class-key a').length > 0")
    report.locator(f"{section} {link}").first.press("Enter")
    until(report, "document.querySelector('#images-asked b') !== null")
    said = report.locator("#images-asked b").inner_text()
    assert asked in said
    # What is asked of pixels stands in the list of classes, too.
    chosen = report.locator("#image-class option:checked").text_content()
    assert chosen == said or chosen in ("all classes", *said.split(":")[:1])
    assert len(image_names(report)) > 0


def test_every_bar_leads_to_as_many_images_as_it_says(report, until):
    links = report.locator(".histogram a")
    total = 0
    for link in links.all():
        number = int(link.get_attribute("aria-label").rpartition(": ")[2].split()[0])
        link.press("Enter")
        until(report, f"location.hash === {json.dumps(link.get_attribute('href'))}")
        until(report, f"document.querySelectorAll('#image-table .name').length === {number}")
        total += number
    assert total == 10


def test_address_opens_the_page_where_it_was_sent_from(new_page, report_url, until):
    page = new_page()
    page.goto(f"{report_url}#c=car&image=scene_9")
    until(page, "document.getElementById('viewer').dataset.shown === 'c=car&image=scene_9'")
    assert page.locator("#image-class").input_value() == "car"
    assert page.evaluate("document.getElementById('image-list').getBoundingClientRect().top < 400")


@pytest.mark.parametrize("address", ["#t=no such class", "#image=no such image", "#classes"])
def test_address_of_nothing_shows_all_images(new_page, report_url, address):
    page = new_page()
    page.goto(f"{report_url}{address}")
    assert page.locator("#images-asked").inner_text() == "10 of 10 images"
    assert len(image_names(page)) == 10


@pytest.mark.parametrize(
    ("address", "named"),
    [
        ("c=fense", "class “fense”"),
        ("t=road&p=fense", "class “fense”"),
        ("slice=rain", "slice “rain”"),
        ("image=none", "image “none”"),
    ],
)
def test_address_of_what_the_page_lacks_says_so(new_page, report_url, until, address, named):
    page = new_page()
    page.goto(f"{report_url}#{address}")
    said = page.locator("#images-unknown")
    assert said.inner_text() == f"The address names {named}, which this page does not have."
    page.evaluate("location.hash = '#images'")
    until(page, "document.getElementById('images-unknown').textContent === ''")
    assert not said.is_visible()


def test_images_are_sorted_and_found(report):
    button = report.locator("#image-table thead").get_by_role("button", name="Mean IoU")
    # The worst come first unasked, so a click turns them round.
    for direction in (-1, 1):
        button.click()
        shown = report.locator("#image-table tbody td:nth-child(2)").all_inner_texts()
        values = [percentage(text) for text in shown]
        assert values == sorted(values, reverse=direction < 0)
    assert report.locator("#image-table [aria-sort]").get_attribute("aria-sort") == "ascending"
    report.locator("#image-find").fill("SCENE_9")
    assert image_names(report) == ["scene_9"]
    report.locator("#image-find").fill("nothing like it")
    assert image_names(report) == []
    assert report.locator("#viewer").is_hidden()
