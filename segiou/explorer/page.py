"""The explorer: one HTML page with its styles, its script and its masks inside."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou._support.arguments import check_integer, check_path, names_options
from segiou._support.files import write_whole
from segiou.counting.arrays import as_label_array, with_dimensions_of
from segiou.counting.encoding import Encoding
from segiou.labels.class_options import ClassOptions, Labels
from segiou.labels.label_set import LabelClass, LabelSet, hex_color
from segiou.masks.read import read_mask
from segiou.report.pages.page import class_colors, filled, json_in_html

#: The files of the page; those without a package belong to all pages.
STYLES = (
    "style/theme.css",
    *(f"segiou.explorer:style/{name}.css" for name in ("layout", "parts", "brush")),
)
# The order matters: each file uses names that those before it declare.
SCRIPTS = (
    "script/dom.js",
    "script/theme.js",
    *(
        f"segiou.explorer:script/{name}.js"
        for name in (
            *("numbers", "geometry", "store", "stage", "gestures", "readout", "shrink"),
            *("challenges", "masks", "rarer", "brush", "main"),
        )
    ),
)
#: Pixels of a mask that a browser still paints smoothly.
_MOST_PIXELS = 4_000_000
#: Values used as classes when no labels are passed.
_MOST_VALUES = 40


class Explorer:
    """An explorer that is shown inline in notebooks and can be saved as one file.

    Parameters
    ----------
    page : str
        The page, HTML.
    height : int
        Height of the frame, in pixels.
    """

    def __init__(self, page: str, height: int) -> None:
        self._page = page
        self._height = height

    def to_html(self) -> str:
        """Return the page, a single file that works offline."""
        return self._page

    def save(self, path: str | Path) -> Path:
        """Write the page to a file that opens in a browser.

        Parameters
        ----------
        path : str or Path
            The file to write.
        """
        check_path("path", path)
        return write_whole(Path(path).expanduser(), self._page)

    def __repr__(self) -> str:
        return "<Explorer: a notebook shows it, and save(path) writes it as a page>"

    def _repr_html_(self) -> str:
        # In a separate frame, so that neither its styles nor its keys reach the notebook.
        return (
            f'<iframe srcdoc="{escape(self._page)}" title="segiou explorer" '
            f'style="width:100%;height:{self._height}px;border:1px solid rgba(128,128,128,.35)">'
            "</iframe>"
        )


@names_options
def explore(
    truth: Any = None,
    pred: Any = None,
    *,
    labels: Labels | None = None,
    ignore: int | str | Iterable[int | str] = (),
    exclude: int | str | Iterable[int | str] = (),
    height: int = 900,
) -> Explorer:
    """Explore how scores change: drag rectangles, or paint a truth and a prediction.

    A notebook shows the explorer inline. It is a single page that works offline
    and sends nothing.

    Parameters
    ----------
    truth, pred : array_like of int, shape (H, W), or path, optional
        A pair of masks to paint on, at most 4 million pixels. By default the
        explorer shows a drawn street.
    labels : int, sequence of str, LabelSet, name of a preset or path, optional
        The classes, as for :class:`segiou.ConfusionMatrix`. By default every
        value of the masks is a class; at most 40.
    ignore, exclude
        As for :class:`segiou.ConfusionMatrix`. Ignored pixels cannot be painted.
    height : int
        Height of the frame in a notebook, in CSS pixels.

    Raises
    ------
    TypeError
        If a mask does not contain integers, or only one of the two is given.
    ValueError
        If the masks differ in shape, are not images, are too large, or have
        undeclared values.

    Examples
    --------
    >>> explorer = explore([[0, 0, 1, 1]], [[0, 1, 1, 1]], labels=["road", "car"])
    >>> explorer.to_html()[:15]
    '<!doctype html>'
    """
    check_integer("height", height, 200)
    if truth is None and pred is None:
        return Explorer(explorer_page(), height)
    if truth is None or pred is None:
        msg = "pass both truth and pred, or neither"
        raise TypeError(msg)
    truth, pred = _mask("truth", truth), _mask("pred", with_dimensions_of(truth, pred))
    if truth.size > _MOST_PIXELS:
        msg = (
            f"masks of {truth.size} pixels are too large to paint; "
            f"crop them to at most {_MOST_PIXELS} pixels"
        )
        raise ValueError(msg)
    if labels is None:
        labels = _values(truth, pred, ignore)
    options = ClassOptions.of(labels, ignore=ignore, exclude=exclude, unassigned="count")
    return Explorer(explorer_page(_encoded(truth, pred, options)), height)


def _mask(name: str, mask: Any) -> NDArray[Any]:
    labels = as_label_array(read_mask(mask) if isinstance(mask, (str, Path)) else mask, name)
    if labels.ndim != 2 or not labels.size:
        msg = f"{name} must be an image of labels, shape (H, W), got shape {labels.shape}"
        raise ValueError(msg)
    return labels


def _values(truth: NDArray[Any], pred: NDArray[Any], ignore: Any) -> LabelSet:
    """A label set of the values that occur and are not ignored."""
    ignored = set(ignore) if isinstance(ignore, Iterable) else {ignore}
    values = sorted({*np.unique(truth).tolist(), *np.unique(pred).tolist()} - ignored)
    if not 0 < len(values) <= _MOST_VALUES:
        msg = f"the masks have {len(values)} distinct values; pass labels= to declare the classes"
        raise ValueError(msg)
    return LabelSet("values", tuple(LabelClass(str(int(v)), (int(v),)) for v in values))


def _encoded(truth: NDArray[Any], pred: NDArray[Any], options: ClassOptions) -> dict[str, Any]:
    encoding = Encoding.of_classes(options)
    encoding.count(truth, pred)  # raises for different shapes and undeclared values
    colors = class_colors(options.labels)
    return {
        "names": options.labels.class_names,
        "colors": [hex_color(color) for color in colors[: options.num_classes]],
        "include": options.include.tolist(),
        "size": truth.shape[::-1],
        "truth": _runs(encoding.truth.codes_of(truth)),
        "pred": _runs(encoding.pred.codes_of(pred)),
    }


def _runs(codes: NDArray[np.uint16]) -> list[int]:
    """Runs of equal codes, row by row, as pairs of code and length."""
    flat = codes.ravel()
    starts = np.concatenate([[0], np.flatnonzero(np.diff(flat)) + 1])
    lengths = np.diff([*starts, flat.size])
    pairs: list[int] = np.stack([flat[starts], lengths], axis=1).ravel().tolist()
    return pairs


def explorer_page(masks: dict[str, Any] | None = None) -> str:
    """Return the explorer as one self-contained HTML page.

    The page has two views. One draws a truth and a predicted rectangle on a grid of pixels, to be
    dragged and resized by mouse, touch or keyboard, and shows TP, FP, FN, TN, IoU, Dice, pixel
    accuracy, precision, recall and generalised IoU of the two as they move. In the other a truth
    and a prediction of several classes are painted with a brush. The page loads nothing: its
    content security policy allows only its own style sheet and script, identified by SHA-256.

    Parameters
    ----------
    masks : dict, optional
        A pair of masks as encoded by :func:`segiou.explore`; a drawn street by default.

    Returns
    -------
    str
        The page, UTF-8 text that begins with the doctype. Write it to a file and open that.

    Notes
    -----
    The state of the rectangles is in the fragment, so that a link can carry an example:
    ``#t=6,4,15,10&p=9,6,15,9&size=32x18`` is a truth of 15 × 10 pixels whose top left pixel is
    in column 6 and row 4 (counted from 0), a prediction likewise, and a frame 32 pixels wide
    and 18 high. ``#brush`` is the view with the brush.

    Examples
    --------
    >>> from segiou.explorer import explorer_page
    >>> page = explorer_page()
    >>> page[:15]
    '<!doctype html>'
    """
    data = masks and json_in_html(masks)
    return filled(f"{__package__}:page.html", STYLES, SCRIPTS, loads=False, masks=data)
