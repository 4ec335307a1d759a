"""The explorer as a lesson: shrinking the object, and the challenges."""

import pytest

pytestmark = pytest.mark.needs("explorer")

START = "#t=12,8,30,20&p=18,12,30,18&size=64x36"


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
    assert "99.83\N{NO-BREAK SPACE}%" in remark
    spoken = explorer.locator("#scale").get_attribute("aria-valuetext")
    assert spoken == "5 %, IoU 0.00 %, pixel accuracy 99.83 %"


def test_the_same_picture_smaller_keeps_its_iou(explorer):
    follow(explorer, "#t=48,32,120,80&p=72,48,120,72&size=256x144")
    explorer.get_by_label("It shrinks with the object").check()
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
def test_shrinking_by_itself(new_page, explorer_url, motion):
    page = new_page(reduced_motion=motion)
    page.clock.install()
    page.goto(explorer_url)
    page.locator("#play").click()
    page.clock.run_for(100)
    # Small steps, or none yet: with less motion, the first large one comes after 0.9 s.
    assert (state(page)["scale"] < 100) == (motion == "no-preference")
    page.clock.run_for(8000)
    assert state(page)["scale"] == 5
    assert page.locator("#play").inner_text() == "Play"


def test_a_hand_on_the_slider_or_a_rectangle_stops_the_film(explorer, until):
    explorer.locator("#play").click()
    until(explorer, "segiou.state().scale < 95")
    explorer.locator("#scale").press("ArrowRight")
    held = state(explorer)["scale"]
    explorer.wait_for_timeout(150)
    assert state(explorer)["scale"] == held
    assert explorer.locator("#play").inner_text() == "Play"


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
    title = item.locator("h3").text_content()
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
    assert explorer.locator("#challenge-half .hint").inner_text() == "Done. Release to confirm."
    explorer.mouse.move(frame["x"] + 9 * cell, frame["y"] + 6.1 * cell)
    explorer.mouse.up()
    assert state(explorer)["solved"] == []
