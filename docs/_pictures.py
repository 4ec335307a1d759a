"""Draw the pictures of the documentation: `python docs/_pictures.py` (needs Chromium)."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

import segiou
from segiou import plots
from segiou.demo import write_demo
from segiou.plots.style import no_pyplot
from segiou.report import write_html

ROOT = Path(__file__).parents[1]
STREETS = ROOT / "fixtures" / "streets"
#: Number of colours: the files are less than half as large as with all, and with fewer, colour
#: bars have stripes.
COLORS = 256


def drawings() -> dict[str, Callable[[], Any]]:
    """Functions that draw the pictures, by name."""

    def scored(model: Path) -> segiou.Run:
        labels = STREETS / "labels.toml"
        return segiou.score_folder(STREETS / "truth", model, labels=labels, boundary=True)

    tidy, keen = scored(STREETS / "model_a"), scored(STREETS / "model_b")
    with tempfile.TemporaryDirectory() as folder:
        for number, path in enumerate(sorted((STREETS / "truth").iterdir())):
            model = "model_a" if number % 3 else "model_b"
            shutil.copy(STREETS / model / path.name, folder)
        mixed = scored(Path(folder))
    volumes = ROOT / "fixtures" / "volumes"
    patients = segiou.score_folder(
        *(volumes / "truth", volumes / "model_a"),
        labels=volumes / "dataset.json",
        boundary=True,
        measures=["volume"],
    )
    found = segiou.compare(tidy, keen, names=("tidy", "keen"), permutations=1000)
    ranking = segiou.rank({"tidy": tidy, "keen": keen, "mixed": mixed}, groups="none")
    rows = [
        {"id": id, "part": "ab"[i % 2], "third": "xyz"[i % 3]} for i, id in enumerate(mixed.ids)
    ]
    sliced = mixed.slices(rows, groups="none")
    masks = [
        segiou.read_mask(next(iter(sorted((STREETS / folder).iterdir()))))
        for folder in ("truth", "model_b")
    ]
    scores = score_histogram()
    return {
        "confusion_matrix": lambda: keen.plot("confusion_matrix"),
        "class_bars": lambda: keen.plot("class_bars", intervals=keen.intervals()),
        "accuracy_vs_iou": lambda: keen.plot("accuracy_vs_iou"),
        "boundary_vs_iou": lambda: keen.plot("boundary_vs_iou"),
        "prevalence_curve": lambda: keen.plot("prevalence_curve"),
        "image_distribution": lambda: keen.plot("image_distribution", bins=10),
        "class_boxes": lambda: keen.plot("class_boxes"),
        "distance_boxes": lambda: patients.plot("distance_boxes"),
        "bland_altman": lambda: patients.plot("bland_altman"),
        "comparison_forest": lambda: found.plot(),
        "slices": lambda: sliced.plot(),
        "model_bars": lambda: found.plot("model_bars"),
        "rank_stability": lambda: ranking.plot(),
        "case_boxes": lambda: ranking.plot("case_boxes"),
        **{
            kind: partial(scores.plot, kind)
            for kind in ("pr_curve", "roc_curve", "reliability", "thresholds")
        },
        "overlay": lambda: plots.overlay(*masks, 1),
        "panel": lambda: plots.panel([tidy, keen], 2, names=["tidy", "keen"], width=3.3),
    }


def score_histogram() -> segiou.ScoreHistogram:
    """Scores of an overconfident model that ranks rare classes worse."""
    rng = np.random.default_rng(0)
    truth = rng.choice(3, (8, 96, 96), p=(0.85, 0.12, 0.03))
    logits = 2.5 * rng.normal(size=(8, 3, 96, 96)) + 5 * (
        truth[:, None] == np.arange(3)[:, None, None]
    )
    logits += np.array([4, 1, 0])[:, None, None]
    scores = segiou.ScoreHistogram(["road", "car", "pole"])
    return scores.update(truth, logits, activation="softmax")


def screenshots(folder: Path) -> None:
    """Show the page of the demo in Chromium: its top, and the images with wrong pixels of a class."""
    from PIL import Image
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright:
        demo = write_demo(Path(scratch))
        run = segiou.score_folder(demo.truth, demo.model_b, labels=demo.labels)
        page = write_html(Path(scratch) / "page.html", run.report(), run=run, images=demo.images)
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"))
        for name, scheme, part in (("report", "light", ""), ("viewer", "dark", "#c=pole")):
            view = browser.new_page(
                viewport={"width": 1280, "height": 800},
                color_scheme=scheme,
                reduced_motion="reduce",
            )
            view.goto(Path(page).as_uri() + part)
            view.wait_for_timeout(1500)
            picture = Image.open(BytesIO(view.screenshot())).convert("RGB").quantize(COLORS)
            picture.save(folder / f"{name}.png", optimize=True)
        browser.close()


def main() -> None:
    """Write all pictures."""
    from PIL import Image

    screenshots(ROOT / "docs" / "images")
    folder = ROOT / "docs" / "images" / "plots"
    folder.mkdir(exist_ok=True, parents=True)
    for name, draw in drawings().items():
        out = BytesIO()
        with no_pyplot():
            draw().figure.savefig(out, format="png", dpi=160)
        picture = Image.open(out).convert("RGB").quantize(COLORS)
        picture.save(folder / f"{name}.png", optimize=True)


if __name__ == "__main__":
    main()
