"""A page of ten small images with hostile names, and what tests read from it."""

import numpy as np
from PIL import Image

import segiou
from segiou.report import render_report

HOSTILE = "<script>alert(1)</script>"
NAMES = ["road", "car", HOSTILE, 'pole" onload="alert(2)', "bus"]
FILE = '"><img src=x onerror=alert(3)>'
BREAKOUT = "</script><script>alert(4)</script>"

# Columns of scene_9: both correct (0), missed (1), false positive (1), ignored, other correct.
TRUTH = np.array([[0, 1, 0, 255, 1, 2, 3, 0]] * 4, np.uint8)
PRED = np.array([[0, 0, 1, 1, 1, 2, 2, 0]] * 4, np.uint8)


def write_hostile_page(folder):
    """Write the masks and their page, and return its address."""
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


def image_names(page):
    """Names in the list of images."""
    return page.locator("#image-table .name").all_inner_texts()


def percentage(text):
    """The number of a percentage."""
    return float(text.removesuffix(" %"))


def class_names(page):
    """Names in the visible rows of the table of classes."""
    return page.locator("#class-table tbody tr:visible .name").all_inner_texts()
