"""The explorer as a lesson: shrinking, challenges, links, themes, accessibility."""

import pytest

from segiou.html.explorer import explorer_page

pytestmark = pytest.mark.browser

START = "#t=12,8,30,20&p=18,12,30,18&size=64x36"


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    path = tmp_path_factory.mktemp("explorer") / "explorer.html"
    path.write_text(explorer_page(), encoding="utf-8")
    return path.as_uri()


@pytest.fixture
def explorer(page, url):
    page.goto(url)
    return page


def state(page):
    return page.evaluate("segiou.state()")


def follow(page, fragment):
    return page.evaluate(
        """fragment => new Promise(done => {
            if (location.hash === fragment) done(segiou.state());
            addEventListener("hashchange", () => done(segiou.state()), {once: true});
            location.hash = fragment;
        })""",
        fragment,
    )


def nudge(page):
    """Move the prediction by hand, back to where it was: only a hand can solve a challenge."""
    page.locator("#shape-pred").focus()
    away, back = ("ArrowRight", "ArrowLeft")
    before = state(page)["pred"]
    page.keyboard.press(away)
    if state(page)["pred"] == before:
        away, back = back, away
        page.keyboard.press(away)
    page.keyboard.press(back)
    assert state(page)["pred"] == before


def test_accuracy_stays_and_iou_falls_as_the_object_shrinks(explorer):
    start = state(explorer)["numbers"]
    explorer.locator("#scale").press("Home")
    seen = state(explorer)
    assert seen["scale"] == 5
    assert (seen["truth"]["w"], seen["truth"]["h"]) == (2, 1)
    assert seen["numbers"]["iou"] == 0 < start["iou"]
    assert seen["numbers"]["pixel_accuracy"] > 0.99 > start["pixel_accuracy"]
    remark = explorer.locator("#shrink-remark").inner_text()
    assert "misses it entirely" in remark
    assert "99.8 %" in remark
    spoken = explorer.locator("#scale").get_attribute("aria-valuetext")
    assert spoken == "5 per cent, IoU 0.000, pixel accuracy 0.998"


def test_the_same_picture_smaller_keeps_its_iou(explorer):
    follow(explorer, "#t=48,32,120,80&p=72,48,120,72&size=256x144")
    explorer.get_by_label("It shrinks too").check()
    for _ in range(50):
        explorer.locator("#scale").press("ArrowLeft")
    seen = state(explorer)
    assert (seen["scale"], seen["mistake"]) == (50, "shrinks")
    assert seen["numbers"]["iou"] == pytest.approx(384 / 756, abs=0.02)


def test_chart_marks_the_present_numbers(explorer):
    for scale in (100, 40):
        seen = follow(explorer, f"{START}&scale={scale}")
        plot = explorer.evaluate(
            """() => {
                const [iou, dot] = ["rect.point.iou", "circle.point.accuracy"].map(
                    s => document.querySelector("#chart > " + s));
                const curve = document.querySelector("#chart > .curve.iou").getAttribute("d");
                return {iou: +iou.getAttribute("y") + 6, accuracy: +dot.getAttribute("cy"),
                        x: +dot.getAttribute("cx"), curve};
            }"""
        )
        height = {value: 12 + (1 - value) * 190 for value in (0, 1)}
        for key, name in (("iou", "iou"), ("accuracy", "pixel_accuracy")):
            value = (height[0] - plot[key]) / (height[0] - height[1])
            assert value == pytest.approx(seen["numbers"][name])
        nodes = [tuple(map(float, n.split())) for n in plot["curve"].lstrip("M").split("L")]
        assert len(nodes) == 96
        assert nodes[scale - 5] == pytest.approx((plot["x"], plot["iou"]), abs=0.06)


@pytest.mark.parametrize("motion", ["no-preference", "reduce"])
def test_shrinking_by_itself(new_page, url, motion):
    page = new_page(reduced_motion=motion)
    page.clock.install()
    page.goto(url)
    page.locator("#play").click()
    page.clock.run_for(100)
    assert state(page)["scale"] == {"no-preference": 98, "reduce": 100}[motion]
    page.clock.run_for(8000)
    assert state(page)["scale"] == 5
    assert page.locator("#play").inner_text() == "Shrink it for me"


def test_a_hand_on_the_slider_or_a_rectangle_stops_the_film(explorer):
    explorer.locator("#play").click()
    explorer.wait_for_function("segiou.state().scale < 95")
    explorer.locator("#scale").press("ArrowRight")
    held = state(explorer)["scale"]
    explorer.wait_for_timeout(150)
    assert state(explorer)["scale"] == held
    assert explorer.locator("#play").inner_text() == "Shrink it for me"


def test_a_shrunken_rectangle_changed_by_hand_is_the_new_drawing(explorer):
    shrunken = follow(explorer, f"{START}&scale=50")
    explorer.locator("#shape-pred").focus()
    explorer.keyboard.press("ArrowDown")
    seen = state(explorer)
    assert seen["scale"] == 100
    assert seen["truth"] == shrunken["truth"]
    assert seen["pred"] == {**shrunken["pred"], "y": shrunken["pred"]["y"] + 1}


SOLUTIONS = {
    "half": ["#t=2,2,4,4&p=2,2,4,2&size=16x9"],
    "three": [
        "#t=2,2,10,1&p=2,2,8,1&size=16x9",
        "#t=2,2,8,1&p=2,2,10,1&size=16x9",
        "#t=2,2,9,1&p=3,2,9,1&size=16x9",
    ],
    "mirage": ["#t=0,0,2,2&p=8,4,1,1&size=16x9"],
    "slip": ["#t=4,4,3,3&p=5,4,3,3&size=16x9"],
    "apart": ["#t=0,0,1,1&p=14,8,1,1&size=16x9"],
    "greedy": ["#t=4,4,2,2&p=4,4,4,4&size=16x9"],
    "dice": ["#t=0,0,5,2&p=0,0,12,2&size=16x9"],
    "nothing": ["#t=2,2,4,2&p=2,2,10,2&size=16x9"],
}


@pytest.mark.parametrize("challenge", SOLUTIONS)
def test_every_challenge_can_be_solved(explorer, challenge):
    item = explorer.locator(f"#challenge-{challenge}")
    for fragment in SOLUTIONS[challenge]:
        assert challenge not in follow(explorer, fragment)["solved"]
        nudge(explorer)
    assert challenge in state(explorer)["solved"]
    assert "done" in item.get_attribute("class")
    title = item.locator("h3").inner_text()
    assert title.endswith("(solved)")
    assert f"Solved: {title.removesuffix(' (solved)')}." in explorer.locator("#news").inner_text()
    assert " of 8 solved." in explorer.locator("#tally").inner_text()
    explorer.locator("#reset").click()
    assert challenge in state(explorer)["solved"]


def test_every_challenge_has_a_solution_above(explorer):
    ids = explorer.locator("#challenges > li").evaluate_all("items => items.map(i => i.id)")
    assert ids == [f"challenge-{name}" for name in SOLUTIONS]


def test_the_same_kind_of_mistake_counts_once(explorer):
    for fragment in ["#t=2,2,10,1&p=2,2,8,1&size=16x9", "#t=2,2,10,2&p=2,2,8,2&size=16x9"]:
        follow(explorer, fragment)
        nudge(explorer)
    assert explorer.locator("#challenge-three li.met").count() == 1
    assert "three" not in state(explorer)["solved"]


def test_passing_through_a_solution_does_not_solve(explorer):
    follow(explorer, "#t=4,4,4,4&p=4,6,4,2&size=16x9")
    frame = explorer.locator("#stage .frame").bounding_box()
    cell = state(explorer)["cell"]
    explorer.mouse.move(frame["x"] + 6 * cell, frame["y"] + 7 * cell)
    explorer.mouse.down()
    explorer.mouse.move(frame["x"] + 6 * cell, frame["y"] + 6.1 * cell)
    assert state(explorer)["numbers"]["iou"] == 0.5
    assert explorer.locator("#challenge-half .hint").inner_text() == "That is it. Let go."
    explorer.mouse.move(frame["x"] + 9 * cell, frame["y"] + 6.1 * cell)
    explorer.mouse.up()
    assert state(explorer)["solved"] == []


def test_link_carries_the_state(explorer, new_page):
    explorer.locator("#size-preset").select_option("128x72")
    explorer.locator("#shape-truth").focus()
    explorer.keyboard.press("ArrowDown")
    explorer.locator("#scale").press("PageDown")
    explorer.get_by_label("It shrinks too").check()
    explorer.wait_for_function("location.hash.includes('mistake=shrinks')")
    expected = state(explorer)
    assert expected["scale"] < 100
    other = new_page(viewport={"width": 900, "height": 700})
    other.goto(explorer.url)
    got = state(other)
    for key in ("size", "truth", "pred", "scale", "mistake", "numbers"):
        assert got[key] == expected[key]
    explorer.locator("#reset").click()
    explorer.wait_for_function("location.hash === ''")


def test_copied_link_is_that_of_the_state(new_page, url):
    page = new_page(permissions=["clipboard-read", "clipboard-write"])
    page.goto(url)
    page.locator("#copy").click()
    page.wait_for_function("document.getElementById('copy').textContent === 'Copied'")
    assert page.evaluate("navigator.clipboard.readText()") == url + START


def test_without_a_clipboard_the_link_is_shown(new_page, url):
    page = new_page()
    page.add_init_script("Object.defineProperty(navigator, 'clipboard', {value: undefined})")
    page.goto(url)
    page.locator("#copy").click()
    assert page.locator("#link").input_value() == url + START


@pytest.mark.parametrize(
    ("fragment", "expected"),
    [
        ("#t=1,2,3&p=x&size=9", {"size": (64, 36), "truth": (12, 8, 30, 20)}),
        ("#size=99999x99999&t=0,0,999,999", {"size": (256, 144), "truth": (0, 0, 256, 144)}),
        ("#size=16x9&t=15,8,5,5", {"size": (16, 9), "truth": (11, 4, 5, 5)}),
        ("#size=0x0&t=0,0,0,0", {"size": (2, 2), "truth": (0, 0, 1, 1)}),
        ("#t=-1,0,1e9,2&<script>alert(1)</script>", {"truth": (12, 8, 30, 20)}),
        ("#scale=1&mistake=%00", {"scale": 5, "mistake": "stays"}),
    ],
)
def test_a_mistyped_link_still_gives_a_page(page, url, fragment, expected):
    page.goto(url + fragment)
    seen = state(page)
    for key, value in expected.items():
        got = seen[key]
        assert (tuple(got.values()) if isinstance(got, dict) else got) == value


def background(page):
    return page.evaluate("getComputedStyle(document.body).backgroundColor")


def test_theme_follows_the_system_until_it_is_chosen(new_page, url):
    dark, light = "rgb(21, 23, 27)", "rgb(251, 250, 246)"
    page = new_page(color_scheme="dark")
    page.goto(url)
    assert background(page) == dark
    page.locator("#theme").select_option("light")
    assert background(page) == light
    page.reload()
    assert background(page) == light
    page.locator("#theme").select_option("")
    assert background(page) == dark


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1280])
def test_axe_finds_nothing_serious(new_page, url, accessibility_faults, scheme, width):
    page = new_page(color_scheme=scheme, viewport={"width": width, "height": 800})
    page.goto(url + SOLUTIONS["half"][0])
    nudge(page)
    page.locator("summary").click()
    assert page.locator("#challenges li.done").count() > 0
    assert accessibility_faults(page) == []


def test_axe_would_find_a_fault(new_page, url, accessibility_faults):
    page = new_page()
    page.goto(url)
    page.evaluate("document.getElementById('scale').removeAttribute('aria-label')")
    assert any("label" in fault for fault in accessibility_faults(page))


@pytest.mark.parametrize("width", [320, 400, 768, 1280])
def test_nothing_is_wider_than_the_screen(new_page, url, width):
    page = new_page(viewport={"width": width, "height": 800})
    for fragment in (START, "#t=0,0,256,1&p=200,140,56,4&size=256x144"):
        page.goto(url + fragment)
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_figure_stays_in_view_while_one_slides(new_page, url):
    for width in (400, 1280):
        page = new_page(viewport={"width": width, "height": 800})
        page.goto(url)
        page.locator("#scale").focus()
        page.locator("#scale").press("Home")
        stage, slider = (page.locator(s).bounding_box() for s in ("#stage", "#scale"))
        assert stage["y"] >= -1
        assert slider["y"] + slider["height"] <= 800
        on_top = page.evaluate(
            "([x, y]) => document.elementFromPoint(x, y).id",
            [slider["x"] + slider["width"] / 2, slider["y"] + slider["height"] / 2],
        )
        assert on_top == "scale"


def test_foreign_script_and_style_are_refused(browser, url, watch):
    page = browser.new_page()
    seen = watch(page)
    page.goto(url)
    page.evaluate(
        """() => {
            const script = document.createElement("script");
            script.textContent = "window.intruder = true";
            document.body.append(script);
            new Image().src = "https://example.org/pixel.png";
        }"""
    )
    page.wait_for_timeout(100)
    assert page.evaluate("window.intruder") is None
    # The watch that guards all other tests saw both refusals.
    assert sum("Content Security Policy" in problem for problem in seen.problems) == 2
    page.close()
