"""How many planted errors of truth masks are ranked first: ``python -m benchmarks.suspects``.

The masks of CamVid are taken as right, and one error is planted in a share of them: a missing,
extra or misshapen object, one of a wrong class, a part of the image with a wrong class, one class
instead of all, or two classes exchanged. Three sources: a network, the same with 70 % of its
wrong regions corrected, and probabilities of trees that learn colours and textures on the other
frames (tiles of the frames with a photo). The command ranks them, and so do sizes, pixel accuracy,
mean IoU and, for probabilities, the softmin of cleanlab (arXiv 2307.05080).

``--reference FILE`` compares scores and order with those of another program, whose functions
``count_image`` and ``rank`` find and rank the regions, on the same draws.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import numpy as np
from PIL import Image
from scipy import ndimage

import segiou

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "camvid"
CLASSES, VOID = 11, 11
AROUND = np.ones((3, 3))
#: Shares of an image, and of wrong images.
SIZES = {"small": (0.0003, 0.002), "medium": (0.002, 0.01), "large": (0.01, 0.08)}
RATES = (0.05, 0.1, 0.2)
#: Largest share of an image in the list of small regions, and lengths of lists.
SMALL, FIRST, LONG = 0.003, 50, 100
FOUND = "found, first 50"

Draw = np.random.Generator


class Source(NamedTuple):
    """Truth and predictions of images, with probabilities (C, H, W) or None."""

    truths: Sequence[np.ndarray]
    preds: Sequence[np.ndarray]
    probabilities: Sequence[np.ndarray] | None = None


def read(folder: str) -> dict[str, np.ndarray]:
    """The arrays of a folder by name."""
    paths = sorted((DATA / folder).glob("*.png"))
    return {path.stem: np.asarray(Image.open(path)) for path in paths}


def network() -> Source:
    """A small network on 59 frames."""
    return Source([*read("truth").values()], [*read("base").values()])


def corrected() -> Source:
    """The same, with 70 % of its wrong regions corrected."""
    rng, preds = np.random.default_rng(0), []
    truths, wrong = network()[:2]
    for truth, pred in zip(truths, wrong, strict=True):
        ids, number = ndimage.label((truth != pred) & (truth != VOID), AROUND)
        right = np.append(False, rng.random(number) < 0.7)[ids]
        preds.append(np.where(right, truth, pred))
    return Source(truths, preds)


def trees() -> Source:
    """Extremely randomised trees, trained on the other frames, on tiles of frames with a photo."""
    from sklearn.ensemble import ExtraTreesClassifier

    photos, masks = read("images"), read("truth")
    seen = {id: features(photo) for id, photo in photos.items()}
    tiles: list[tuple[np.ndarray, np.ndarray]] = []
    for fold in range(4):
        held = [*photos][fold::4]
        rest = [id for id in photos if id not in held]
        x = np.concatenate([seen[id][::3, ::3].reshape(-1, seen[id].shape[-1]) for id in rest])
        y = np.concatenate([masks[id][::3, ::3].ravel() for id in rest])
        model = ExtraTreesClassifier(40, min_samples_leaf=10, n_jobs=2, random_state=0)
        model.fit(x[y != VOID], y[y != VOID])
        for id in held:
            height, width, number = seen[id].shape
            p = np.zeros((CLASSES, height, width), np.float32)
            p[model.classes_] = model.predict_proba(seen[id].reshape(-1, number)).T.reshape(
                -1, height, width
            )
            tiles += zip(tiles_of(masks[id]), tiles_of(p), strict=True)
    truths, probabilities = zip(*tiles, strict=True)
    return Source(truths, [p.argmax(0).astype(np.uint8) for p in probabilities], probabilities)


def features(photo: np.ndarray) -> np.ndarray:
    """Colours, their means and deviations at three sizes, and the height in the image."""
    floats = photo[..., :3].astype(np.float32)
    found = [floats]
    for size in (5, 15, 41):
        mean = ndimage.uniform_filter(floats, (size, size, 0))
        found += [
            mean,
            np.sqrt(np.maximum(ndimage.uniform_filter(floats**2, (size, size, 0)) - mean**2, 0)),
        ]
    rows = np.broadcast_to(
        np.arange(len(photo), dtype=np.float32)[:, None, None], (*photo.shape[:2], 1)
    )
    return np.concatenate([*found, rows], -1)


def tiles_of(array: np.ndarray) -> Iterator[np.ndarray]:
    """Two by three tiles of the last two axes."""
    for rows in np.array_split(array, 2, -2):
        yield from np.array_split(rows, 3, -1)


SOURCES: dict[str, Callable[[], Source]] = {
    "network": network,
    "corrected network": corrected,
    "trees": trees,
}


def an_object(truth: np.ndarray, size: str, rng: Draw) -> np.ndarray | None:
    """A random component of a random class with a share of the image."""
    low, high = np.array(SIZES[size]) * truth.size
    for c in rng.permutation(CLASSES):
        ids, _ = ndimage.label(truth == c, AROUND)
        pixels = np.bincount(ids.ravel())[1:]
        fit = np.flatnonzero((pixels >= low) & (pixels < high))
        if len(fit):
            return ids == 1 + rng.choice(fit)
    return None


def around(truth: np.ndarray, where: np.ndarray) -> int | None:
    """The most frequent class around an object."""
    ring = truth[ndimage.binary_dilation(where, AROUND, 4) & ~where]
    ring = ring[ring != VOID]
    return int(np.bincount(ring).argmax()) if len(ring) else None


def missing(truth: np.ndarray, other: np.ndarray, size: str, rng: Draw) -> np.ndarray | None:
    """Label an object as its surroundings."""
    where = an_object(truth, size, rng)
    value = None if where is None else around(truth, where)
    return None if value is None else np.where(where, value, truth)


def flipped(truth: np.ndarray, other: np.ndarray, size: str, rng: Draw) -> np.ndarray | None:
    """Give an object a wrong class."""
    where = an_object(truth, size, rng)
    if where is None:
        return None
    return np.where(where, (truth[where][0] + rng.integers(1, CLASSES)) % CLASSES, truth)


def extra(truth: np.ndarray, other: np.ndarray, size: str, rng: Draw) -> np.ndarray | None:
    """Add an object of another image."""
    where = an_object(other, size, rng)
    return None if where is None else np.where(where & (truth != VOID), other, truth)


def misshapen(truth: np.ndarray, other: np.ndarray, size: str, rng: Draw) -> np.ndarray | None:
    """Shift an object, or make it larger, by 3 to 12 pixels."""
    where = an_object(truth, str(rng.choice([*SIZES])), rng)
    value = None if where is None else around(truth, where)
    if where is None or value is None:
        return None
    by, own = int(rng.integers(3, 13)), truth[where][0]
    if rng.random() < 0.5:
        moved, left = ndimage.binary_dilation(where, AROUND, by), truth
    else:
        moved = ndimage.shift(where, rng.choice([-by, 0, by], 2), order=0)
        left = np.where(where, value, truth)
    return np.where(moved & (truth != VOID), own, left)


def part(truth: np.ndarray, other: np.ndarray, size: str, rng: Draw) -> np.ndarray | None:
    """Give a rectangle of 1 to 20 % of the image the class of another place."""
    area = truth.size * rng.uniform(0.01, 0.2)
    height = int(np.clip(np.sqrt(area * rng.uniform(0.5, 2)), 8, truth.shape[0] - 1))
    width = int(np.clip(area / height, 8, truth.shape[1] - 1))
    top, left = (rng.integers(0, n - m) for n, m in zip(truth.shape, (height, width), strict=True))
    changed = truth.copy()
    inside = changed[top : top + height, left : left + width]
    others = np.setdiff1d(truth, [VOID, np.bincount(inside.ravel()).argmax()])
    inside[inside != VOID] = rng.choice(others)
    return changed


def replaced(truth: np.ndarray, other: np.ndarray, size: str, rng: Draw) -> np.ndarray | None:
    """Label everything as the most frequent class."""
    most = np.bincount(truth[truth != VOID]).argmax()
    return np.where(truth == VOID, VOID, most)


def exchanged(truth: np.ndarray, other: np.ndarray, size: str, rng: Draw) -> np.ndarray | None:
    """Exchange two classes."""
    a, b = rng.choice(np.setdiff1d(truth, [VOID]), 2, replace=False)
    return np.where(truth == a, b, np.where(truth == b, a, truth))


KINDS = {
    "missing object": missing,
    "wrong class": flipped,
    "extra object": extra,
    "boundary": misshapen,
    "part": part,
    "all labels": replaced,
    "exchanged classes": exchanged,
}


class Planted(NamedTuple):
    """An error: its kind, the class of its size, and the mask."""

    kind: str
    size: str
    mask: np.ndarray


def planted(truths: Sequence[np.ndarray], at: int, rng: Draw) -> Planted:
    """A random error in one mask."""
    truth = truths[at]
    while True:
        kind, size = str(rng.choice([*KINDS])), str(rng.choice([*SIZES]))
        mask = KINDS[kind](truth, truths[rng.integers(len(truths))], size, rng)
        share = 0 if mask is None else (mask != truth).mean()
        if share < SIZES["small"][0] or (kind == "boundary" and share >= SIZES["large"][1]):
            continue
        if kind in ("part", "all labels", "exchanged classes"):
            return Planted(kind, "", mask.astype(np.uint8))
        named = next((name for name, (_, high) in SIZES.items() if share < high), "large")
        return Planted(kind, named, mask.astype(np.uint8))


def average_precision(scores: np.ndarray, wrong: np.ndarray) -> float:
    """Mean precision at the wrong images, ties in the order of the images."""
    ranked = wrong[np.argsort(-scores, kind="stable")]
    return float((np.cumsum(ranked) / np.arange(1, len(ranked) + 1))[ranked].mean())


class Trial:
    """One draw: images of a source, some with an error, and their rankings."""

    def __init__(self, source: Source, rate: float, seed: int) -> None:
        self.source, number = source, len(source.truths)
        rng = np.random.default_rng([seed, int(100 * rate)])
        chosen = rng.choice(number, max(2, round(rate * number)), replace=False)
        self.bad = {int(i): planted(source.truths, int(i), rng) for i in chosen}
        self.truths = [
            self.bad[i].mask if i in self.bad else t for i, t in enumerate(source.truths)
        ]
        self.wrong = np.isin(np.arange(number), chosen)
        self.run = self.scored(source.preds)

    def scored(self, preds: Sequence[np.ndarray], **options: object) -> segiou.Run:
        measures = ["suspects"]
        classes = {"labels": CLASSES, "ignore": VOID}
        ids = [f"{i:05}" for i in range(len(self.truths))]
        return segiou.score(self.truths, [*preds], ids=ids, measures=measures, **classes, **options)

    def of_images(self, rows: Sequence[segiou.suspects.Region], attribute: str) -> np.ndarray:
        """The largest value of the regions of each image."""
        found = np.zeros(len(self.truths))
        for row in rows:
            found[int(row.image)] = max(found[int(row.image)], getattr(row, attribute))
        return found

    def worst(self, by: str, sign: int) -> np.ndarray:
        found = np.zeros(len(self.truths))
        for row in self.run.worst(len(found), by=by):
            found[int(row["id"])] = sign * float(row[by])
        return found

    def rankings(self) -> dict[str, float]:
        """The average precision of images, and the share of errors in the first 50 regions."""
        rows = listed(self.run)
        of_images = {
            "rule": self.of_images(rows, "score"),
            "matrices": self.worst("suspects", 1),
            "size": self.of_images(rows, "pixels"),
            "accuracy": self.worst("pixel_accuracy", -1),
            "mean IoU": self.worst("mean_iou", -1),
        }
        found = {FOUND: len(self.found(rows[:FIRST])) / len(self.bad)}
        if self.source.probabilities is not None:
            rows = listed(self.scored(self.source.probabilities, argmax=1))
            of_images |= {"rule, scores": self.of_images(rows, "score"), "softmin": self.softmin()}
        precision = {name: average_precision(of, self.wrong) for name, of in of_images.items()}
        return precision | found

    def found(self, rows: Sequence[segiou.suspects.Region]) -> set[int]:
        """The wrong images with a region of which at least half was changed."""
        hits = set()
        for row in rows:
            i = int(row.image)
            if i in self.bad and i not in hits:
                box = tuple(slice(*ends) for ends in row.box)
                truth, pred = self.truths[i][box], self.source.preds[i][box]
                where = (truth == int(row.label)) & (pred == int(row.suggestion))
                if (truth != self.source.truths[i][box])[where].mean() >= 0.5:
                    hits.add(i)
        return hits

    def softmin(self) -> np.ndarray:
        """The softmin of cleanlab, of the labelled pixels."""
        found = []
        for truth, p in zip(self.truths, self.source.probabilities or (), strict=True):
            known = truth != VOID
            own = np.take_along_axis(p, np.where(known, truth, 0)[None], 0)[0][known]
            weight = np.exp((1 - own.astype(float)) / 0.1)
            found.append((weight * own).sum() / weight.sum())
        return -np.array(found)


def listed(run: segiou.Run, **options: object) -> tuple[segiou.suspects.Region, ...]:
    """All regions of a run, the most suspicious first."""
    return run.suspects(first=10**6, all_regions=True, **options).regions


def tables(source: Source, draws: int) -> tuple[dict, dict]:
    """Figures of each rate by ranking, and whether each error was found, by kind and size."""
    figures: dict[float, list[Mapping[str, float]]] = defaultdict(list)
    errors: dict[tuple[str, str], list[tuple[bool, bool]]] = defaultdict(list)
    for rate in RATES:
        for seed in range(draws):
            trial = Trial(source, rate, seed)
            figures[rate].append(trial.rankings())
            found = trial.found(listed(trial.run)[:FIRST])
            small = trial.found(listed(trial.run, max_extent=SMALL)[:LONG])
            for i, error in trial.bad.items():
                errors[error.kind, error.size].append((i in found, i in small))
    return figures, errors


def deviation(source: Source, reference: ModuleType, draws: int) -> tuple[int, int, float]:
    """Draws, those in which all regions are in the order of the reference, largest difference."""
    number = equal = 0
    largest = 0.0
    preds = [np.where(pred == VOID, -1, pred.astype(int)) for pred in source.preds]
    for rate in RATES:
        for seed in range(draws):
            trial = Trial(source, rate, seed)
            truths = (np.where(truth == VOID, -1, truth.astype(int)) for truth in trial.truths)
            counted = [
                reference.count_image(truth, pred, CLASSES)
                for truth, pred in zip(truths, preds, strict=True)
            ]
            ranked, rows = reference.rank(counted), listed(trial.run)
            number += 1
            places = [(int(row.image), np.ravel(row.box).tolist()) for row in rows]
            equal += places == [(row["image"], [*row["box"]]) for row in ranked]
            scores = zip(rows, ranked, strict=True)
            largest = max(largest, *(abs(a.score - b["score"]) for a, b in scores))
    return number, equal, largest


def written(values: Sequence[float]) -> str:
    """A mean with 1.96 standard errors."""
    error = 1.96 * np.std(values, ddof=1) / np.sqrt(len(values))
    return f"{np.mean(values):.3f} ± {error:.3f}"


def show_sources(of_sources: Sequence[Sequence[Mapping[str, float]]]) -> None:
    """Print the differences from the rule with 95 % intervals over sources, which are few."""
    from scipy.stats import t

    number = len(of_sources)
    print("  over sources (Student's t)")
    for name in ("matrices", "size", "accuracy", "mean IoU"):
        means = [np.mean([row[name] - row["rule"] for row in rows]) for rows in of_sources]
        error = t.ppf(0.975, number - 1) * np.std(means, ddof=1) / np.sqrt(number)
        print(f"    {name:16} − rule {np.mean(means):.3f} ± {error:.3f}")


def show(title: str, rows: Sequence[Mapping[str, float]]) -> None:
    """Print the figures that all rows have, and their differences from the rule."""
    print(f"  {title}")
    for name in [name for name in rows[0] if all(name in row for row in rows)]:
        text = written([row[name] for row in rows])
        if name not in ("rule", FOUND):
            text += f"   − rule {written([row[name] - row['rule'] for row in rows])}"
        print(f"    {name:16} {text}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=15)
    parser.add_argument("--reference", type=Path, help="compare with the functions of this file")
    parsed = parser.parse_args()
    draws = parsed.draws
    if parsed.reference:
        spec = spec_from_file_location("reference", parsed.reference)
        spec.loader.exec_module(reference := module_from_spec(spec))
        for name, make in SOURCES.items():
            number, equal, largest = deviation(make(), reference, draws)
            print(f"{name}: same order in {equal} of {number} draws, scores within {largest:.1e}")
        return
    every: dict[tuple[str, str], list[tuple[bool, bool]]] = defaultdict(list)
    of_sources: list[list[Mapping[str, float]]] = []
    for name, make in SOURCES.items():
        source = make()
        run = segiou.score([*source.truths], [*source.preds], labels=CLASSES, ignore=VOID)
        figures, errors = tables(source, draws)
        print(f"\n{name}: {len(source.truths)} images, mean IoU {run.report().mean_iou:.3f}")
        for rate, rows in figures.items():
            show(f"{rate:.0%} wrong", rows)
        rows = [row for several in figures.values() for row in several]
        show("all", rows)
        of_sources.append(rows)
        for key, found in errors.items():
            every[key] += found
    print("\nall sources")
    show("all", [row for rows in of_sources for row in rows])
    show_sources(of_sources)
    print("\nfound in the first 50 regions; in the first 100 up to 0.3 % of an image")
    for (kind, size), found in sorted(every.items()):
        first, small = np.mean(found, 0)
        print(f"  {kind:18} {size:7} {len(found):4}  {first:.2f}  {small:.2f}")


if __name__ == "__main__":
    main()
