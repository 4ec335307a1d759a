"""The explorer as a page: one strict file, links, themes, sizes, accessibility."""

import re
from pathlib import Path

import pytest

import segiou

pytestmark = pytest.mark.needs("explorer")

START = "#t=12,8,30,20&p=18,12,30,18&size=64x36"


def state(page):
    return page.evaluate("segiou.state()")


def test_page_is_one_strict_file():
    page = segiou.explore().to_html()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page).group(1)
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    for attribute in re.findall(r'(?:src|href)="([^"]*)"', page):
        assert attribute.startswith(("#", "data:")), attribute
    assert set(re.findall(r"https?://[^\s\"'<>]*", page)) == {"http://www.w3.org/2000/svg"}
    assert not re.search(r"\{\{\w+\}\}", page)
    assert "style=" not in page
    assert len(page.encode()) < 200_000


def test_parts_of_the_page_are_packaged():
    folder = Path(segiou.__file__).parent / "explorer"
    packaged = {
        f for pattern in ("*.html", "style/*.css", "script/*.js") for f in folder.glob(pattern)
    }
    text = segiou.explore().to_html()
    for part in packaged - {folder / "page.html"}:
        assert part.read_text(encoding="utf-8") in text, part.name
    assert len(packaged) > 10


def test_link_carries_the_state(explorer, new_page, until):
    explorer.locator("#size-preset").select_option("128x72")
    explorer.locator("#shape-truth").focus()
    explorer.keyboard.press("ArrowDown")
    explorer.locator("#scale").press("PageDown")
    explorer.get_by_label("It shrinks with the object").check()
    until(explorer, "location.hash.includes('mistake=shrinks')")
    expected = state(explorer)
    assert expected["scale"] < 100
    other = new_page(viewport={"width": 900, "height": 700})
    other.goto(explorer.url)
    got = state(other)
    for key in ("size", "truth", "pred", "scale", "mistake", "numbers"):
        assert got[key] == expected[key]
    explorer.locator("#reset").click()
    until(explorer, "location.hash === ''")


def test_copied_link_is_that_of_the_state(new_page, explorer_url, until):
    page = new_page(permissions=["clipboard-read", "clipboard-write"])
    page.goto(explorer_url)
    page.locator("#copy").click()
    until(page, "document.getElementById('copy').textContent === 'Copied'")
    assert page.evaluate("navigator.clipboard.readText()") == explorer_url + START


def test_without_a_clipboard_the_link_is_shown(new_page, explorer_url):
    page = new_page()
    page.add_init_script("Object.defineProperty(navigator, 'clipboard', {value: undefined})")
    page.goto(explorer_url)
    page.locator("#copy").click()
    assert page.locator("#link").input_value() == explorer_url + START


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
def test_a_mistyped_link_still_gives_a_page(page, explorer_url, fragment, expected):
    page.goto(explorer_url + fragment)
    seen = state(page)
    for key, value in expected.items():
        got = seen[key]
        assert (tuple(got.values()) if isinstance(got, dict) else got) == value


def background(page):
    return page.evaluate("getComputedStyle(document.body).backgroundColor")


def test_theme_follows_the_system_until_it_is_chosen(new_page, explorer_url):
    dark, light = "rgb(21, 23, 27)", "rgb(251, 250, 246)"
    page = new_page(color_scheme="dark")
    page.goto(explorer_url)
    assert background(page) == dark
    page.locator("#theme").select_option("light")
    assert background(page) == light
    page.reload()
    assert background(page) == light
    page.locator("#theme").select_option("")
    assert background(page) == dark


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1280])
def test_axe_finds_nothing_serious(new_page, explorer_url, accessibility_faults, scheme, width):
    page = new_page(color_scheme=scheme, viewport={"width": width, "height": 800})
    page.goto(explorer_url + "#t=2,2,4,4&p=2,2,4,3&size=16x9")
    page.locator("#shape-pred").press("Shift+ArrowUp")
    page.locator("summary").click()
    assert page.locator("#challenges li.done").count() > 0
    assert accessibility_faults(page) == []


def test_axe_would_find_a_fault(new_page, explorer_url, accessibility_faults):
    page = new_page()
    page.goto(explorer_url)
    page.evaluate("document.getElementById('scale').removeAttribute('aria-label')")
    assert any("label" in fault for fault in accessibility_faults(page))


@pytest.mark.parametrize("width", [320, 400, 768, 1280])
def test_nothing_is_wider_than_the_screen(new_page, explorer_url, width):
    page = new_page(viewport={"width": width, "height": 800})
    for fragment in (START, "#t=0,0,256,1&p=200,140,56,4&size=256x144"):
        page.goto(explorer_url + fragment)
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_figure_stays_in_view_while_one_slides(new_page, explorer_url):
    for width in (400, 1280):
        page = new_page(viewport={"width": width, "height": 800})
        page.goto(explorer_url)
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


def test_foreign_script_and_style_are_refused(browser, explorer_url, watch):
    page = browser.new_page()
    seen = watch(page)
    page.goto(explorer_url)
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
