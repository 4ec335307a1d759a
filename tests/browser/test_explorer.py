"""The explorer in a real browser: gestures, numbers, links, and who can use it."""

import numpy as np
import pytest

import segiou

pytestmark = pytest.mark.needs("explorer")

START = {
    "size": {"w": 64, "h": 36},
    "truth": {"x": 12, "y": 8, "w": 30, "h": 20},
    "pred": {"x": 18, "y": 12, "w": 30, "h": 18},
}


def state(page):
    return page.evaluate("segiou.state()")


def rect(x, y, w, h):
    return {"x": x, "y": y, "w": w, "h": h}


def follow(page, fragment):
    """Go to another fragment of the open page, as a link would."""
    return page.evaluate(
        """fragment => new Promise(done => {
            if (location.hash === fragment) done(segiou.state());
            addEventListener("hashchange", () => done(segiou.state()), {once: true});
            location.hash = fragment;
        })""",
        fragment,
    )


def point(page, x, y):
    """Where on the screen the pixel coordinate (x, y) of the frame is."""
    corner = page.locator("#stage .frame").evaluate(
        "f => { const b = f.getBoundingClientRect(); return [b.left, b.top]; }"
    )
    cell = state(page)["cell"]
    return corner[0] + x * cell, corner[1] + y * cell


def press(page, start, end):
    """Press the mouse at `start` and move to `end`, in pixels of the frame; do not let go."""
    page.mouse.move(*point(page, *start))
    page.mouse.down()
    page.mouse.move(*point(page, *end), steps=4)


def drag(page, start, end):
    press(page, start, end)
    page.mouse.up()


def oracle(size, truth, pred):
    """The same numbers from masks, pixel by pixel."""
    masks = np.zeros((2, size["h"], size["w"]), dtype=bool)
    for mask, r in zip(masks, (truth, pred), strict=True):
        mask[r["y"] : r["y"] + r["h"], r["x"] : r["x"] + r["w"]] = True
    t, p = masks
    tp, fp, fn, tn = (int(np.sum(m)) for m in (t & p, ~t & p, t & ~p, ~t & ~p))
    rows, columns = np.nonzero(t | p)
    hull = int((np.ptp(rows) + 1) * (np.ptp(columns) + 1))
    union = tp + fp + fn
    return {
        "tp": tp,
        "fp": fp,
        "fn": fn,
        "tn": tn,
        "iou": tp / union,
        "dice": 2 * tp / (2 * tp + fp + fn),
        "pixel_accuracy": (tp + tn) / t.size,
        "precision": tp / (tp + fp),
        "recall": tp / (tp + fn),
        "giou": tp / union - (hull - union) / hull,
    }


def random_rect(rng, w, h):
    left, right = np.sort(rng.choice(w + 1, size=2, replace=False))
    top, bottom = np.sort(rng.choice(h + 1, size=2, replace=False))
    return rect(int(left), int(top), int(right - left), int(bottom - top))


def fragment_of(size, truth, pred):
    numbers = [",".join(str(r[k]) for k in "xywh") for r in (truth, pred)]
    return f"#t={numbers[0]}&p={numbers[1]}&size={size['w']}x{size['h']}"


def test_numbers_are_those_of_masks_for_random_rectangles(explorer):
    rng = np.random.default_rng(7)
    disjoint = 0
    for w, h in [(16, 9), (32, 18), (7, 31), (256, 144)] * 10:
        size = {"w": w, "h": h}
        truth, pred = random_rect(rng, w, h), random_rect(rng, w, h)
        seen = follow(explorer, fragment_of(size, truth, pred))
        assert (seen["size"], seen["truth"], seen["pred"]) == (size, truth, pred)
        expected = oracle(size, truth, pred)
        assert seen["numbers"] == expected, fragment_of(size, truth, pred)
        disjoint += expected["tp"] == 0
        shown = explorer.locator("#fraction-iou").inner_text().replace("\u2009", "")
        assert shown == f"{expected['tp']}/{expected['tp'] + expected['fp'] + expected['fn']}"
    assert 0 < disjoint < 40


def test_start_is_shown_in_words(explorer):
    seen = state(explorer)
    assert {key: seen[key] for key in START} == START
    assert seen["numbers"] == oracle(START["size"], START["truth"], START["pred"])
    assert seen["solved"] == []
    assert explorer.locator("#value-iou").inner_text() == "≈ 50.79 %"
    assert explorer.locator("#fraction-precision").inner_text() == "384\u2009/\u2009540"
    assert explorer.locator("#count-tn").inner_text() == "1548"


def test_the_code_on_the_page_gives_the_number_beside_it(explorer):
    code = explorer.locator("#python").inner_text()
    if not hasattr(segiou, "ConfusionMatrix"):
        pytest.skip("segiou.ConfusionMatrix is not there")
    names = {}
    exec(compile(code, "page", "exec"), names)
    assert names["iou"] == state(explorer)["numbers"]["iou"]
    assert code.endswith(f"# {float(names['iou'])!r}")


def test_mouse_drags_the_prediction_and_it_stays_inside(explorer):
    drag(explorer, (45.5, 25.5), (48.5, 23.5))
    assert state(explorer)["pred"] == rect(21, 10, 30, 18)
    assert state(explorer)["truth"] == START["truth"]
    drag(explorer, (45.5, 25.5), (90, 60))
    assert state(explorer)["pred"] == rect(34, 18, 30, 18)


def test_where_both_lie_the_active_one_is_dragged(explorer):
    drag(explorer, (30.5, 20.5), (31.5, 20.5))
    assert state(explorer)["pred"] == rect(19, 12, 30, 18)
    explorer.mouse.click(*point(explorer, 14.5, 10.5))
    drag(explorer, (30.5, 20.5), (31.5, 20.5))
    assert state(explorer)["truth"] == rect(13, 8, 30, 20)


def test_a_rectangle_inside_the_other_can_be_taken(explorer):
    follow(explorer, "#t=20,12,10,6&p=10,4,40,28&size=64x36")
    drag(explorer, (25.5, 15.5), (27.5, 15.5))
    assert state(explorer)["truth"] == rect(22, 12, 10, 6)
    drag(explorer, (12.5, 6.5), (13.5, 6.5))
    assert state(explorer)["pred"] == rect(11, 4, 40, 28)


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        ((48, 30), (52, 32), rect(18, 12, 34, 20)),  # south-east corner
        ((18, 12), (20, 9), rect(20, 9, 28, 21)),  # north-west corner
        ((33, 12), (40, 14), rect(18, 14, 30, 16)),  # north edge: moves in one direction only
        ((48, 21), (2, 21), rect(18, 12, 1, 18)),  # east edge pulled past the west one
        ((48, 30), (90, 90), rect(18, 12, 46, 24)),  # out of the frame
    ],
)
def test_handles_resize(explorer, start, end, expected):
    drag(explorer, start, end)
    assert state(explorer)["pred"] == expected


def test_one_pixel_in_the_largest_frame_can_be_moved_and_resized(explorer):
    follow(explorer, "#t=5,5,20,20&p=100,70,1,1&size=256x144")
    drag(explorer, (100.5, 70.5), (110.5, 80.5))
    assert state(explorer)["pred"] == rect(110, 80, 1, 1)
    handle = explorer.locator(".handle.se .knob").bounding_box()
    start = (handle["x"] + handle["width"] / 2, handle["y"] + handle["height"] / 2)
    cell = state(explorer)["cell"]
    explorer.mouse.move(*start)
    explorer.mouse.down()
    explorer.mouse.move(start[0] + 8 * cell, start[1] + 4 * cell)
    explorer.mouse.up()
    assert state(explorer)["pred"] == rect(110, 80, 9, 5)


def test_escape_undoes_a_drag(explorer):
    press(explorer, (45.5, 25.5), (50.5, 25.5))
    assert state(explorer)["pred"] == rect(23, 12, 30, 18)
    explorer.keyboard.press("Escape")
    explorer.mouse.move(*point(explorer, 5, 5))
    explorer.mouse.up()
    assert state(explorer)["pred"] == START["pred"]


def tab_to(page, element_id):
    for _ in range(12):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == element_id:
            return
    pytest.fail(f"Tab does not reach #{element_id}")


def test_keyboard_moves_and_resizes(explorer):
    tab_to(explorer, "shape-truth")
    for keys in ("ArrowRight", "ArrowRight", "ArrowDown", "Shift+ArrowRight", "Shift+ArrowUp"):
        explorer.keyboard.press(keys)
    assert state(explorer)["truth"] == rect(14, 9, 31, 19)
    label = explorer.locator("#shape-truth").get_attribute("aria-label")
    assert label == "truth, 31 by 19 pixels, left 14, top 9"
    tab_to(explorer, "shape-pred")
    for _ in range(40):
        explorer.keyboard.press("ArrowUp")
    assert state(explorer)["pred"] == rect(18, 0, 30, 18)


def test_numbers_are_said_politely_once_the_hand_rests(explorer, until):
    live = explorer.locator("#live")
    assert live.get_attribute("aria-live") == "polite"
    press(explorer, (45.5, 25.5), (45.5, 5.5))
    explorer.wait_for_timeout(600)
    assert live.inner_text() == ""
    explorer.mouse.up()
    expected = oracle(START["size"], START["truth"], rect(18, 0, 30, 18))
    until(explorer, "document.getElementById('live').textContent !== ''")
    assert live.inner_text().startswith(
        f"IoU {expected['iou']:.2%}".replace("%", f" %, {expected['tp']} of ")
    )


def test_touch_drags_and_leaves_the_page_where_it_is(new_page, explorer_url, until):
    page = new_page(viewport={"width": 400, "height": 800}, has_touch=True, is_mobile=True)
    page.goto(explorer_url)
    page.locator("#stage").scroll_into_view_if_needed()
    scrolled = page.evaluate("scrollY")
    finger = page.context.new_cdp_session(page)

    def touch(kind, *where):
        points = [{"x": where[0], "y": where[1]}] if where else []
        finger.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    touch("touchStart", *point(page, 13.5, 25.5))
    for step in range(1, 6):
        touch("touchMove", *point(page, 13.5 + step, 25.5 - step))
    touch("touchEnd")
    assert state(page)["truth"] == rect(17, 3, 30, 20)
    assert state(page)["pred"] == START["pred"]
    assert page.evaluate("scrollY") == scrolled

    # The empty frame is no trap: a swipe over it scrolls the page.
    touch("touchStart", *point(page, 60, 30))
    for _ in range(6):
        touch("touchMove", *point(page, 60, 12))
    touch("touchEnd")
    until(page, f"scrollY > {scrolled}")


def test_frame_size_keeps_the_picture(explorer):
    explorer.locator("#size-preset").select_option("256x144")
    seen = state(explorer)
    assert seen["truth"] == rect(48, 32, 120, 80)
    assert seen["numbers"] == oracle({"w": 256, "h": 144}, seen["truth"], seen["pred"])
    assert seen["numbers"]["iou"] == pytest.approx(384 / 756)
    explorer.locator("#size-preset").select_option("64x36")
    assert {key: state(explorer)[key] for key in START} == START


def test_numbers_can_be_typed(explorer):
    explorer.locator("summary").click()
    for field, value in [("frame width", "50"), ("truth left", "3"), ("prediction height", "999")]:
        box = explorer.get_by_label(field, exact=True)
        box.fill(value)
        box.press("Enter")
    seen = state(explorer)
    assert seen["size"] == {"w": 50, "h": 36}
    assert seen["truth"]["x"] == 3
    assert (seen["pred"]["y"], seen["pred"]["h"]) == (0, 36)
    assert explorer.get_by_label("prediction height", exact=True).input_value() == "36"
    assert explorer.locator("#size-preset").input_value() == "50x36"


def test_swap_match_and_reset(explorer):
    before = state(explorer)["numbers"]
    explorer.get_by_role("button", name="Swap truth and prediction").click()
    after = state(explorer)["numbers"]
    assert (after["precision"], after["recall"]) == (before["recall"], before["precision"])
    assert after["iou"] == before["iou"]
    explorer.get_by_role("button", name="Match the truth").click()
    assert state(explorer)["numbers"]["iou"] == 1
    explorer.locator("#scale").press("Home")
    explorer.get_by_role("button", name="Reset").click()
    seen = state(explorer)
    assert {key: seen[key] for key in START} == START
    assert seen["scale"] == 100
