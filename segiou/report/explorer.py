"""Assemble the explorer: one HTML page with its styles and its script inside."""

from importlib import resources

from segiou._support.html import content_policy, script_of

STYLES = ("theme.css", "layout.css", "parts.css")

# The order matters: each file uses names that those before it declare.
SCRIPTS = (
    "numbers.js",
    "geometry.js",
    "store.js",
    "stage.js",
    "gestures.js",
    "readout.js",
    "shrink.js",
    "challenges.js",
    "theme.js",
    "main.js",
)


def explorer_page() -> str:
    """Give the explorer as one self-contained HTML page.

    The page draws a truth and a predicted rectangle on a grid of pixels, to be dragged and
    resized by mouse, touch or keyboard, and shows TP, FP, FN, TN, IoU, Dice, pixel accuracy,
    precision, recall and generalised IoU of the two as they move. It asks for nothing outside
    itself: its content security policy allows only the style sheet and the script within it,
    each named by its SHA-256.

    Returns
    -------
    str
        The page, UTF-8 text that begins with the doctype. Write it to a file and open that.

    Notes
    -----
    The state of the page is in its fragment, so that a link can carry an example:
    ``#t=6,4,15,10&p=9,6,15,9&size=32x18`` is a truth of 15 × 10 pixels whose top left pixel is
    in column 6 and row 4 (counted from 0), a prediction likewise, and a frame 32 pixels wide
    and 18 high.

    Examples
    --------
    >>> from segiou.report import explorer_page
    >>> page = explorer_page()
    >>> page[:15]
    '<!doctype html>'
    """
    style = "\n".join(_read(name) for name in STYLES)
    script = script_of(_read("script", name) for name in SCRIPTS)
    policy = content_policy(style, script)
    page = _read("page.html")
    for mark, text in (("{{policy}}", policy), ("{{style}}", style), ("{{script}}", script)):
        page = page.replace(mark, text)
    return page


def _read(*parts: str) -> str:
    """Read a part of the page from the package."""
    return (
        resources.files(__package__).joinpath("explorer_files", *parts).read_text(encoding="utf-8")
    )
