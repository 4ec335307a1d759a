"""The report in a headless Chromium: sorting, filtering, heat map, gallery, hostile names."""

import json
import re

import numpy as np
import pytest
from PIL import Image

import segiou
from segiou.report import render_report

HOSTILE = "<script>alert(1)</script>"
NAMES = ["road", "car", HOSTILE, 'pole" onload="alert(2)', "bus"]
FILE = '"><img src=x onerror=alert(3)>'
BREAKOUT = "</script><script>alert(4)</script>"

# Columns: both correct (0), missed (1), false positive (1), ignored, other correct.
TRUTH = np.array([[0, 1, 0, 255, 1, 2, 3, 0]] * 4, np.uint8)
PRED = np.array([[0, 0, 1, 1, 1, 2, 2, 0]] * 4, np.uint8)
TP, FN, FP = [22, 158, 132], [31, 105, 214], [243, 138, 34]
WRONG, IGNORED, PAPER = [210, 54, 84], [176, 176, 176], [238, 236, 230]


@pytest.fixture(scope="module")
def report_url(tmp_path_factory):
    """A report on ten small images, two of them known pixel by pixel."""
    folder = tmp_path_factory.mktemp("report")
    for name in ("truth", "pred", "images"):
        (folder / name).mkdir()
    rng = np.random.default_rng(0)
    for number in range(10):
        # A name with slashes is no file name; the title takes it instead.
        stem = FILE.replace("/", "") if number == 3 else f"scene_{number}"
        truth = rng.choice(5, (4, 8), p=[0.5, 0.2, 0.15, 0.15, 0]).astype(np.uint8)
        pred = np.where(rng.random((4, 8)) < 0.08 * number, 1, truth).astype(np.uint8)
        if number == 9:
            truth, pred = TRUTH, PRED
        Image.fromarray(truth).save(folder / "truth" / f"{stem}.png")
        Image.fromarray(pred).save(folder / "pred" / f"{stem}.png")
    image = np.full((4, 8, 3), 100, np.uint8)
    Image.fromarray(image).save(folder / "images" / "scene_0.png")
    labels = segiou.LabelSet.from_names(NAMES, ignore=255)
    run = segiou.score_folder(folder / "truth", folder / "pred", labels=labels, name=BREAKOUT)
    page = render_report(run.report(), run=run, images=folder / "images")
    path = folder / "report.html"
    path.write_text(page, encoding="utf-8")
    return path.as_uri()


@pytest.fixture
def report(page, report_url):
    page.on("dialog", lambda dialog: pytest.fail(f"a dialog opened: {dialog.message}"))
    page.goto(report_url)
    return page


def column(page, number):
    rows = page.locator("#class-table tbody tr:visible")
    return [
        cell.inner_text().split("\n")[0] for cell in rows.locator(f":nth-child({number})").all()
    ]


def image_names(page):
    return page.locator("#image-table .name").all_inner_texts()


def names(page):
    return page.locator("#class-table tbody tr:visible .name").all_inner_texts()


def test_hostile_names_are_only_text(report, until):
    assert names(report)[:4] == NAMES[:4]
    assert report.locator("h1").inner_text() == "script>"
    assert (
        report.locator("main script, main [onerror], main [onload], main img[src=x]").count() == 0
    )
    assert FILE.replace("/", "") in image_names(report)
    # The choice and the close look take names from the data, by script.
    report.locator("#lens").select_option(label=HOSTILE)
    assert HOSTILE in report.locator("#lens-row li a").all_inner_texts()
    report.locator("#image-class").select_option(label=HOSTILE)
    until(report, "document.querySelector('#images-asked b') !== null")
    assert (
        report.locator("#images-asked b").inner_text() == f"{HOSTILE}: missed and false positives"
    )
    report.locator("#image-class").select_option(index=0)
    report.locator("#image-find").fill("onerror")
    report.locator("#image-table tbody a").first.click()
    assert report.locator("#viewer-title").inner_text() == FILE.replace("/", "")
    assert report.evaluate("document.scripts.length") == 2


def percentage(text):
    return float(text.removesuffix(" %"))


def test_classes_are_sorted_by_a_click(report):
    head = report.locator("#class-table thead th").nth(1)
    button = head.get_by_role("button", name="Sort by IoU")
    in_order = names(report)
    button.click()
    assert head.get_attribute("aria-sort") == "descending"
    values = [
        percentage(text)
        for text in report.locator("#class-table tbody tr:visible b").all_inner_texts()
    ]
    assert values == sorted(values, reverse=True)
    button.press("Enter")
    assert head.get_attribute("aria-sort") == "ascending"
    assert [
        percentage(t) for t in report.locator("#class-table tbody tr:visible b").all_inner_texts()
    ] == sorted(values)
    assert "ascending" in report.locator("#live").inner_text()
    button.click()
    assert names(report) == in_order
    report.locator("#class-table thead").get_by_role("button", name="Class").click()
    assert names(report) == [HOSTILE, "car", NAMES[3], "road"]


def test_what_is_undefined_comes_last_either_way(report):
    report.locator(".hide-absent").uncheck()
    button = report.locator("#class-table thead").get_by_role("button", name="Sort by IoU")
    for _ in range(2):
        button.click()
        assert names(report)[-1] == "bus"


def test_terms_explain_themselves(report, new_page, report_url):
    """By keyboard and mouse here, by touch on a phone; sorting has a button of its own."""
    term = report.locator("#class-table .term", has_text="Precision")
    definition = report.locator("#term-precision")
    assert definition.is_hidden()
    term.press("Enter")
    definition.wait_for()
    assert "TP / (TP + FP)" in definition.inner_text()
    report.keyboard.press("Escape")
    definition.wait_for(state="hidden")
    term.press("Enter")
    definition.wait_for()
    report.evaluate("scrollBy(0, 20)")
    definition.wait_for(state="hidden")
    term.hover()
    definition.wait_for()
    report.locator("h1").hover()
    definition.wait_for(state="hidden")
    assert report.locator("#class-table [aria-sort]").count() == 0
    phone = new_page(viewport={"width": 390, "height": 800}, has_touch=True, is_mobile=True)
    phone.goto(report_url)
    phone.locator("#class-table .term", has_text="IoU").tap()
    definition = phone.locator("#term-iou")
    definition.wait_for()  # a tap becomes a click later
    box = definition.bounding_box()
    assert box["x"] >= 0 and box["x"] + box["width"] <= 390


@pytest.mark.parametrize("height", [900, 1500])
def test_three_pictures_are_side_by_side_below_the_list(new_page, report_url, until, height):
    page = new_page(viewport={"width": 1280, "height": height})
    page.goto(f"{report_url}#image=scene_9")
    until(page, "document.querySelectorAll('#viewer-panels canvas').length === 3")
    boxes = [frame.bounding_box() for frame in page.locator("#viewer-panels .frame").all()]
    assert len({box["y"] for box in boxes}) == 1
    assert boxes[0]["width"] > 300
    assert boxes[0]["y"] > page.locator("#image-rows").bounding_box()["y"]


def test_classes_are_filtered(report):
    assert "bus" not in names(report)
    find = report.locator("#classes .find")
    find.fill("CAR")
    assert names(report) == ["car"]
    assert report.locator("#classes .found").inner_text() == "1 of 5"
    # Who asks for an absent class finds it.
    find.fill("bus")
    assert names(report) == ["bus"]
    find.fill("")
    report.locator(".hide-absent").uncheck()
    assert len(names(report)) == 5


def test_heat_map_has_three_views(report):
    def shown():
        views = ("rows", "columns", "counts")
        return [
            key for key in views if report.locator(f"#heat-map > g.only-{key} rect").is_visible()
        ]

    assert shown() == ["rows"]
    report.get_by_label("by prediction").check(force=True)
    assert shown() == ["columns"]
    assert report.get_by_text("The diagonal is precision").is_visible()
    report.get_by_label("pixels", exact=True).press("ArrowRight")
    assert shown() == ["rows"]


def test_heat_map_reads_the_cell_under_pointer_and_keys(report):
    heat = report.locator("#heat-map")
    heat.focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowRight", "ArrowLeft", "ArrowLeft"):
        heat.press(key)
    readout = report.locator("#heat-readout")
    assert readout.inner_text().startswith("car predicted as road")
    cell = report.evaluate(
        """() => {
            const map = document.getElementById("heat-map");
            const size = 600 / 5;
            const middle = new DOMPoint(1.5 * size, 0.5 * size);
            const { x, y } = middle.matrixTransform(map.getScreenCTM());
            return [x, y];
        }"""
    )
    report.mouse.move(*cell)
    pixels = report.evaluate(
        "JSON.parse(document.getElementById('data').textContent).confusion.matrix[0][1]"
    )
    lines = readout.inner_text().split("\n")
    assert lines[0] == "road predicted as car"
    assert lines[1].replace("\N{NARROW NO-BREAK SPACE}", "") == f"{pixels} pixels"


def test_one_class_is_looked_at_closely(report):
    report.locator("#lens").select_option(label="car")
    first = report.locator("#lens-row li").first
    assert first.locator("a").inner_text() == "car"
    shares = report.locator("#lens-column .of").all_inner_texts()
    total = sum(float(text.split()[0].lstrip("<")) for text in shares)
    assert total == pytest.approx(100, abs=0.5)


@pytest.fixture
def opened(report, until):
    """Opens images of the report by the address, and waits for the pictures."""

    def open_at(address):
        report.evaluate("(hash) => { location.hash = hash; }", address)
        until(report, f"document.getElementById('viewer').dataset.shown === '{address[1:]}'")
        return report

    return open_at


def canvas_row(page, panel):
    """Colours of the first row of a panel of the viewer."""
    return page.evaluate(
        """(panel) => {
            const canvas = [...document.querySelectorAll("#viewer-panels figure")]
                .find((node) => node.textContent === panel).querySelector("canvas");
            const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, 1);
            return [...Array(canvas.width).keys()].map((x) => [...data.slice(4 * x, 4 * x + 3)]);
        }""",
        panel,
    )


ANYTHING = {
    "#image=scene_9": [PAPER, WRONG, WRONG, IGNORED, PAPER, PAPER, WRONG, PAPER],
    "#c=car&image=scene_9": [PAPER, FN, FP, IGNORED, TP, PAPER, PAPER, PAPER],
    "#t=car&p=road&image=scene_9": [PAPER, WRONG, PAPER, IGNORED, *[PAPER] * 4],
    "#t=car&p=car&image=scene_9": [*[PAPER] * 3, IGNORED, TP, *[PAPER] * 3],
    "#t=car&image=scene_9": [PAPER, FN, PAPER, IGNORED, *[PAPER] * 4],
    "#p=car&image=scene_9": [PAPER, PAPER, FP, IGNORED, *[PAPER] * 4],
}


@pytest.mark.parametrize("address", ANYTHING)
def test_viewer_shows_exactly_the_pixels_that_are_asked_for(opened, address):
    page = opened(address)
    assert canvas_row(page, "difference") == ANYTHING[address]
    assert len({tuple(color) for color in canvas_row(page, "truth")}) == 5


def test_on_an_image_the_ground_shows_through_as_far_as_is_wanted(opened):
    page = opened("#image=scene_0")
    assert page.locator("#viewer-panels figcaption").all_inner_texts() == [
        *("image", "truth", "prediction", "difference")
    ]
    assert canvas_row(page, "image") == [[100, 100, 100]] * 8
    # Nothing is wrong in it, and grey lies between 40 and 244.
    assert canvas_row(page, "difference") == [[120, 120, 120]] * 8
    page.locator("#viewer-opacity").fill("0")
    assert canvas_row(page, "truth") == [[120, 120, 120]] * 8


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


def test_on_a_phone_an_image_that_is_named_comes_into_view(new_page, report_url, until):
    page = new_page(viewport={"width": 390, "height": 800})
    page.goto(report_url)
    page.locator(".next-steps a").first.click()
    box = "document.querySelector('#viewer-panels figure')?.getBoundingClientRect()"
    until(page, f"{box}?.top >= 0 && {box}?.bottom <= 800")


@pytest.mark.parametrize("large", [False, True])
def test_on_a_phone_the_key_of_colours_is_in_view_with_the_picture(
    new_page, report_url, until, large
):
    page = new_page(viewport={"width": 390, "height": 800})
    page.goto(report_url)
    page.locator(".next-steps a").first.click()
    until(page, "document.querySelectorAll('#viewer-panels figure').length > 0")
    if large:
        page.locator("#viewer-enlarge").click()
    picture = "document.querySelector('#viewer-panels figure').getBoundingClientRect()"
    key = "document.getElementById('key-names').getBoundingClientRect()"
    until(page, f"{picture}.top >= 0 && {picture}.bottom <= {key}.top && {key}.bottom <= 800")
    named = page.locator("#key-names span").all_inner_texts()
    classes = page.locator("#class-key a").all_inner_texts()
    assert named == [*classes, "ignored"]


def test_a_click_on_the_matrix_leads_to_the_images(report, until):
    cell = report.evaluate(
        """() => {
            const map = document.getElementById("heat-map");
            map.scrollIntoView();
            const place = new DOMPoint(1.5 * (600 / 5), 0.5 * (600 / 5));
            const { x, y } = place.matrixTransform(map.getScreenCTM());
            return [x, y];
        }"""
    )
    report.mouse.click(*cell)
    until(report, "location.hash === '#t=road&p=car'")


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


def test_viewer_zooms_flips_and_reads(opened, until):
    page = opened("#image=scene_0")
    holder = page.locator("#viewer-panels")
    holder.focus()
    scale = "parseInt(document.getElementById('zoom-reset').textContent)"
    page.keyboard.press("+")
    assert page.locator("#zoom-reset").inner_text() == "150 %"
    canvas = page.locator("#viewer-panels canvas").first
    left = "document.querySelector('#viewer-panels canvas').getBoundingClientRect().left"
    before = page.evaluate(left)
    page.keyboard.press("ArrowRight")
    assert page.evaluate(left) < before
    assert page.locator("#viewer-title").inner_text() == "scene_0"
    page.keyboard.press("0")
    canvas.hover()
    page.mouse.wheel(0, -300)
    until(page, f"{scale} > 200")
    until(page, "document.getElementById('viewer-readout').textContent.startsWith('truth: ')")
    holder.dblclick()
    assert page.locator("#zoom-reset").inner_text() == "100 %"
    shown = page.locator("#viewer-panels figure:visible figcaption")
    order = []
    for _ in range(5):
        page.keyboard.press("f")
        order += shown.all_inner_texts()
    assert order == ["image", "truth", "prediction", "difference", "image"]
    page.keyboard.press("3")
    assert shown.all_inner_texts() == ["prediction"]
    page.keyboard.press("e")
    assert page.evaluate("document.getElementById('viewer').matches(':modal')")
    page.keyboard.press("ArrowLeft")
    until(page, "document.getElementById('viewer-title').textContent !== 'scene_0'")


def test_one_picture_at_a_time_is_chosen_by_touch(new_page, report_url, until):
    page = new_page(viewport={"width": 390, "height": 800}, has_touch=True, is_mobile=True)
    page.goto(f"{report_url}#image=scene_0")
    until(page, "document.getElementById('viewer').dataset.shown === 'image=scene_0'")
    choice = page.locator("#viewer-content")
    assert choice.is_hidden()
    # A tap becomes a click later.
    page.locator("#viewer-mode label", has_text="one at a time").tap()
    choice.wait_for()
    assert choice.locator("span").all_inner_texts() == [
        *("image", "truth", "prediction", "difference")
    ]
    choice.locator("label", has_text="difference").tap()
    shown = page.locator("#viewer-panels figure:visible")
    shown.locator("figcaption", has_text="difference").wait_for()
    assert shown.locator("figcaption").all_inner_texts() == ["difference"]
    shown.locator("canvas").tap()
    page.locator("#viewer-readout", has_text=re.compile("^truth: ")).wait_for()


def test_enlarged_pictures_are_no_smaller_and_none_stands_alone(new_page, report_url, until):
    for width, height in ((390, 844), (1440, 900)):
        page = new_page(viewport={"width": width, "height": height})
        page.goto(f"{report_url}#image=scene_9")
        until(page, "document.getElementById('viewer').dataset.shown === 'image=scene_9'")
        figures = page.locator("#viewer-panels figure")
        before = figures.first.bounding_box()["width"]
        page.locator("#viewer-enlarge").click()
        boxes = [figure.bounding_box() for figure in figures.all()]
        assert boxes[0]["width"] >= before
        rows = [box["y"] for box in boxes]
        columns = rows.count(rows[0])
        assert columns == 1 or len(boxes) % columns != 1


def test_key_names_what_is_not_scored_and_missing_photos(opened):
    page = opened("#t=car&p=road&image=scene_9")
    assert page.locator("#overlay-key > span").all_inner_texts() == [
        *("car predicted as road", "ignored (not scored)", "elsewhere")
    ]
    assert page.locator("#class-key li").last.inner_text() == "ignored (not scored)"
    assert page.locator("#class-key-title").inner_text() == "IoU in this image"
    assert "car pixels labelled road" in page.locator("#viewer-facts").inner_text()
    assert "car pixels labelled road" in page.locator("#image-table thead").inner_text()
    said = page.locator("#viewer-problem")
    assert said.inner_text() == "No photo for this image (1 of 10 photos were found)."
    opened("#image=scene_0")
    assert said.inner_text() == ""


def test_two_fingers_zoom_and_one_moves(new_page, report_url, until):
    page = new_page(viewport={"width": 390, "height": 800}, has_touch=True, is_mobile=True)
    page.goto(f"{report_url}#image=scene_9")
    until(page, "document.getElementById('viewer').dataset.shown === 'image=scene_9'")
    page.locator("#viewer-enlarge").tap()
    until(page, "document.getElementById('viewer').matches(':modal')")
    box = page.locator("#viewer-panels canvas").first.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    session = page.context.new_cdp_session(page)

    def touch(kind, *places):
        points = [{"x": x + dx, "y": y, "id": i} for i, dx in enumerate(places)]
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    touch("touchStart", -20, 20)
    for distance in (25, 30, 40):
        touch("touchMove", -distance, distance)
    touch("touchEnd")
    until(page, "document.getElementById('zoom-reset').textContent === '200 %'")
    left = "document.querySelector('#viewer-panels canvas').getBoundingClientRect().left"
    before = page.evaluate(left)
    touch("touchStart", 0)
    touch("touchMove", -20)
    touch("touchMove", -30)
    touch("touchEnd")
    until(page, f"{left} < {before}")


def test_page_without_script_still_shows_its_numbers(new_page, report_url):
    page = new_page(java_script_enabled=False)
    page.goto(report_url)
    assert page.locator("#class-table tbody tr").count() == 5
    assert page.locator("#confusion-table tbody tr").count() > 3


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(new_page, report_url, accessibility_faults, until, scheme):
    page = new_page(color_scheme=scheme)
    page.goto(report_url)
    page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    assert accessibility_faults(page) == []
    page.evaluate("location.hash = '#c=car&image=scene_0'")
    until(page, "document.querySelectorAll('#viewer-panels canvas').length === 4")
    assert accessibility_faults(page) == []
    page.locator("#viewer-enlarge").click()
    assert accessibility_faults(page) == []


def test_nothing_is_wider_than_the_screen(new_page, report_url):
    page = new_page()
    page.goto(report_url)
    for width in (320, 400, 768, 1280):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_nothing_is_wider_than_the_screen_before_a_resize_is_heard(new_page, report_url):
    page = new_page(viewport={"width": 900, "height": 800})
    deaf = "addEventListener('resize', (event) => event.stopImmediatePropagation(), true)"
    page.add_init_script(deaf)
    page.goto(report_url)
    for width in (1280, 700, 1000, 320):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
