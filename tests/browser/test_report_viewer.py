"""The pictures of an image in a page: their colours, size, order and key."""

import re

import pytest

TP, FN, FP = [22, 158, 132], [31, 105, 214], [243, 138, 34]
WRONG, IGNORED, PAPER = [210, 54, 84], [176, 176, 176], [238, 236, 230]


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


@pytest.mark.parametrize("height", [900, 1500])
def test_three_pictures_are_side_by_side_below_the_list(new_page, report_url, until, height):
    page = new_page(viewport={"width": 1280, "height": height})
    page.goto(f"{report_url}#image=scene_9")
    until(page, "document.querySelectorAll('#viewer-panels canvas').length === 3")
    boxes = [frame.bounding_box() for frame in page.locator("#viewer-panels .frame").all()]
    assert len({box["y"] for box in boxes}) == 1
    assert boxes[0]["width"] > 300
    assert boxes[0]["y"] > page.locator("#image-rows").bounding_box()["y"]


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


#: Images are decoded late, as on a slow machine.
LATE = """(() => {
    const { decode } = HTMLImageElement.prototype;
    const later = (image) => new Promise((resolve) => setTimeout(() => resolve(image), 400));
    HTMLImageElement.prototype.decode = function () { return decode.call(this).then(later); };
})()"""


def test_pictures_of_the_image_before_are_not_shown_as_those_of_the_next(page, report_url, until):
    page.add_init_script(LATE)
    page.goto(f"{report_url}#image=scene_0")
    assert page.locator("#zoom-to").is_hidden()  # there is nothing to zoom yet
    until(page, "document.getElementById('viewer').dataset.shown === 'image=scene_0'")
    panels = "getComputedStyle(document.getElementById('viewer-panels'))"
    assert page.evaluate(f"[{panels}.opacity, {panels}.pointerEvents]") == ["1", "auto"]
    page.evaluate("location.hash = '#image=scene_9'")
    until(page, "document.getElementById('viewer-title').textContent === 'scene_9'")
    state = f"[document.getElementById('viewer').dataset.shown, {panels}.pointerEvents]"
    assert page.evaluate(state) in (["image=scene_0", "none"], ["image=scene_9", "auto"])
    until(page, "document.getElementById('viewer').dataset.shown === 'image=scene_9'")
    assert page.evaluate(f"[{panels}.opacity, {panels}.pointerEvents]") == ["1", "auto"]
    assert page.locator("#zoom-to").inner_text() == "Zoom to errors"
