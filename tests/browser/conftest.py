"""A headless Chromium for the tests of pages, and a watch over what those pages do.

Missing Chromium or Playwright skips these tests, and fails them where SEGIOU_REQUIRE_BROWSER=1.
"""

import importlib
import os
import shutil
import time
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest
from hostile_page import write_hostile_page

import segiou

CHROMIUM_OPTIONS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
#: Only a page that never gets there takes as long, however busy the machine is: at a tenth of a
#: processor, Chromium takes minutes to start.
LIMIT_SECONDS = 300
LOCAL = ("file:", "data:", "blob:", "about:")


class Watch:
    """Keeps what a page should never do: errors, warnings, and requests that leave it."""

    def __init__(self, page: Any) -> None:
        self.problems: list[str] = []
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.problems.append(f"uncaught: {error}"))
        page.on("request", self._request)
        page.on("websocket", lambda socket: self.problems.append(f"web socket: {socket.url}"))
        # Seen above all the same, but never sent.
        page.route("http*://**", lambda route: route.abort())

    def _console(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.problems.append(f"console {message.type}: {message.text}")

    def _request(self, request: Any) -> None:
        if not request.url.startswith(LOCAL):
            self.problems.append(f"request: {request.url}")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test that opens a browser, so that ``-m "not browser"`` leaves them out."""
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker("browser")


def need(what: str) -> None:
    """Skip the test, or fail it where a browser is required."""
    message = f"{what} is missing; `pip install --group browser` and install Chromium"
    if os.environ.get("SEGIOU_REQUIRE_BROWSER") == "1":
        pytest.fail(message)
    pytest.skip(message)


def module(name: str) -> ModuleType:
    """Import a module of the `browser` group, or skip."""
    try:
        return importlib.import_module(name)
    except ImportError:
        need(name.partition(".")[0])
        raise


# Not for the whole session: while Playwright's synchronous interface is open, its event loop
# counts as running in this thread, and asyncio.run() in any other test would fail.
@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = module("playwright.sync_api")
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        need("Chromium")
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(
            executable_path=path,
            headless=True,
            args=CHROMIUM_OPTIONS,
            timeout=1000 * LIMIT_SECONDS,  # Playwright's own is 30 s
        )
        yield chromium
        chromium.close()


@pytest.fixture
def watch() -> type[Watch]:
    """For a page opened by hand: ``watch(page).problems``."""
    return Watch


@pytest.fixture
def new_page(browser: Any) -> Iterator[Callable[..., Any]]:
    """Open watched pages, each in a context of its own with the options given.

    The test fails at its end if any of these pages had an error, or asked for anything outside.
    """
    opened: list[tuple[Any, Watch]] = []

    def make(**options: Any) -> Any:
        context = browser.new_context(**options)
        context.set_default_timeout(1000 * LIMIT_SECONDS)
        page = context.new_page()
        opened.append((context, Watch(page)))
        return page

    yield make
    for context, _ in opened:
        context.close()
    problems = [problem for _, seen in opened for problem in seen.problems]
    assert not problems, "\n".join(problems)


@pytest.fixture
def page(new_page: Callable[..., Any]) -> Any:
    """A watched page, 1280 × 800."""
    return new_page(viewport={"width": 1280, "height": 800})


@pytest.fixture
def until() -> Callable[[Any, str], None]:
    """Wait for a JavaScript expression to be true.

    Playwright's own ``wait_for_function`` needs eval within the page, which the pages forbid.
    """

    def wait(page: Any, expression: str) -> None:
        end = time.monotonic() + LIMIT_SECONDS
        while time.monotonic() < end:
            if page.evaluate(expression):
                return
            page.wait_for_timeout(25)
        pytest.fail(f"never true: {expression}")

    return wait


@pytest.fixture
def accessibility_faults() -> Callable[[Any], list[str]]:
    """Give axe-core's violations of a page, in words."""
    axe = module("axe_playwright_python.sync_playwright").Axe()

    def faults(page: Any) -> list[str]:
        # Colours in a transition are neither the old nor the new ones.
        page.evaluate("Promise.all(document.getAnimations().map(one => one.finished))")
        violations = axe.run(page).response["violations"]
        return [
            f"{v['impact']} {v['id']}: {v['help']}: {[node['html'][:120] for node in v['nodes']]}"
            for v in violations
        ]

    return faults


@pytest.fixture(scope="module")
def explorer_url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The explorer written to disk, as someone would open it."""
    path = tmp_path_factory.mktemp("explorer") / "explorer.html"
    return segiou.explore().save(path).as_uri()


@pytest.fixture
def explorer(page: Any, explorer_url: str) -> Any:
    """The explorer in a watched page, 1280 × 800."""
    page.goto(explorer_url)
    return page


@pytest.fixture(scope="module")
def report_url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A report on ten small images, two of them known pixel by pixel."""
    return write_hostile_page(tmp_path_factory.mktemp("report"))


@pytest.fixture
def report(page: Any, report_url: str) -> Any:
    """The report in a watched page, which opens no dialog."""
    page.on("dialog", lambda dialog: pytest.fail(f"a dialog opened: {dialog.message}"))
    page.goto(report_url)
    return page


@pytest.fixture
def opened(report: Any, until: Callable[[Any, str], None]) -> Callable[[str], Any]:
    """Open images of the report by their address, and wait for the pictures."""

    def open_at(address: str) -> Any:
        report.evaluate("(hash) => { location.hash = hash; }", address)
        until(report, f"document.getElementById('viewer').dataset.shown === '{address[1:]}'")
        return report

    return open_at
