"""Speed of reading mask files: ``python -m benchmarks.reading [--rounds N] [--threads N]``.

Masks and PNG files of ids are read by segiou, Pillow and OpenCV; ``inflate`` is the lower bound,
zlib-ng's decompression of the same bytes. Folders of class masks and panoptic folders are scored by
segiou and other packages, each in one thread, beside decoding their files alone, and by two threads
of segiou. The results are checked. All tools alternate within each round, and medians of processor
times are shown. With ``--threads N``, only folders are scored, by each package with N threads,
and times are by the clock.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import tempfile
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

import segiou
from benchmarks import inputs
from benchmarks.counting import table
from segiou.masks.formats.decompression import inflater
from segiou.masks.formats.image_files import Scratch, read_png
from segiou.masks.sources.segment_files import _loaded

OURS = "segiou"
THINGS, CATEGORIES = 80, 133

Read = Callable[[bytes], Any]


def encoded(mask: NDArray[Any]) -> bytes:
    """A PNG file with Pillow's defaults."""
    file = io.BytesIO()
    Image.fromarray(mask).save(file, "PNG")
    return file.getvalue()


def as_colors(ids: NDArray[Any]) -> NDArray[np.uint8]:
    return np.stack([ids & 255, ids >> 8 & 255, ids >> 16], axis=-1).astype(np.uint8)


def files() -> dict[str, list[bytes]]:
    small, video = inputs.camvid().truths[::5], inputs.davis().truths[::3]
    large = [np.asarray(Image.fromarray(m).resize((1920, 1440), 0)) for m in small[:3]]
    rng = np.random.default_rng(0)
    sets = {"street masks, 480 × 360": small, "the same, 1920 × 1440": large}
    sets["video masks, 854 × 480"] = video
    for height, width in ((480, 640), (1024, 2048)):
        maps = [inputs.segments(rng, height, width)[1] for _ in range(3)]
        sets[f"colours of ids, {width} × {height}"] = [as_colors(ids[0]) for ids in maps]
    return {name: [encoded(mask) for mask in masks] for name, masks in sets.items()}


def pixels(data: bytes) -> bytes:
    """The deflated pixels of a file."""
    at, parts = 8, []
    while at < len(data):
        size = int.from_bytes(data[at : at + 4], "big")
        if data[at + 4 : at + 8] == b"IDAT":
            parts.append(data[at + 8 : at + 8 + size])
        at += 12 + size
    return b"".join(parts)


def pillow(data: bytes) -> NDArray[Any]:
    with Image.open(io.BytesIO(data)) as image:
        return np.asarray(image)


def opencv(data: bytes) -> NDArray[Any]:
    import cv2

    return cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_UNCHANGED)


def check(data: bytes) -> None:
    """Reject different pixels; Pillow and OpenCV give colours, segiou gives ids."""
    ours, values = read_png(data).values, pillow(data)
    if values.ndim == 3:
        ours = as_colors(ours)
    for name, theirs in (("Pillow", values), ("OpenCV", opencv(data)[..., ::-1])):
        if values.ndim == 2 and name == "OpenCV":
            theirs = theirs[..., ::-1]
        if not np.array_equal(ours, theirs):
            msg = f"segiou and {name} read different pixels"
            raise AssertionError(msg)


def inflate(stream: bytes, size: int) -> bytes:
    return inflater.decompress(stream, bufsize=size)


def repeat(many: int, read: Callable[..., Any], *given: Sequence[Any]) -> None:
    for _ in range(many):
        for each in zip(*given, strict=True):
            read(*each)


def seconds(
    contestants: Mapping[str, Callable[[], Any]],
    rounds: int,
    now: Callable[[], float] = time.process_time,
) -> dict[str, float]:
    """Median time of each by a clock, after a warm-up round."""
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for number in range(rounds + 1):
        for name, run in contestants.items():
            start = now()
            run()
            if number:
                times[name].append(now() - start)
    return {name: median(several) for name, several in times.items()}


def reading_table(rounds: int) -> str:
    import cv2

    cv2.setNumThreads(1)
    scratch, rows = Scratch(), []
    for name, several in files().items():
        for data in several:
            check(data)
        deflated = [pixels(data) for data in several]
        sizes = [len(zlib.decompress(stream)) for stream in deflated]
        many = max(1, 20_000_000 // sum(sizes))
        readers: dict[str, Read] = {OURS: partial(read_png, scratch=scratch)}
        readers |= {"Pillow": pillow, "OpenCV": opencv}
        contestants = {
            reader: partial(repeat, many, read, several) for reader, read in readers.items()
        }
        contestants["inflate"] = partial(repeat, many, inflate, deflated, sizes)
        times = seconds(contestants, rounds)
        each = [times[reader] / many / len(several) for reader in contestants]
        rows.append([name, *(f"{1e6 * t:.0f}" for t in each), f"{each[2] / each[0]:.1f}"])
    return table(["µs per file", OURS, "Pillow", "OpenCV", "inflate", "× OpenCV"], rows)


def write_panoptic(root: Path, images: int, copies: int = 1) -> None:
    """Truth and prediction as COCO stores them: PNG files of ids, and their annotations."""
    rng = np.random.default_rng(0)
    categories = [
        {"id": i + 1, "name": f"class {i}", "isthing": int(i < THINGS)} for i in range(CATEGORIES)
    ]
    annotations: dict[str, list[Any]] = {"truth": [], "pred": []}
    for number in range(images):
        classes, sides = inputs.segments(rng, 480, 640)
        for side, ids in zip(annotations, sides, strict=True):
            (root / side).mkdir(exist_ok=True)
            name = f"{number:012}.png"
            (root / side / name).write_bytes(encoded(as_colors(ids)))
            found, areas = np.unique(ids[ids > 0], return_counts=True)
            segments = [
                {"id": id, "category_id": 1 + classes[id] % CATEGORIES, "area": area, "iscrowd": 0}
                for id, area in zip(found.tolist(), areas.tolist(), strict=True)
            ]
            entry = {"image_id": number, "file_name": name, "segments_info": segments}
            annotations[side].append(entry)
    for side, entries in annotations.items():
        for number in range(images, images * copies):
            same = entries[number - images]
            name = f"{number:012}.png"
            (root / side / name).hardlink_to(root / side / same["file_name"])
            entries.append({**same, "image_id": number, "file_name": name})
    listed = [
        {"id": n, "file_name": f"{n:012}.jpg", "height": 480, "width": 640}
        for n in range(images * copies)
    ]
    for side, entries in annotations.items():
        data = {"images": listed, "annotations": entries, "categories": categories}
        (root / f"{side}.json").write_text(json.dumps(data))


def score_panoptic(root: Path, workers: int = 1) -> segiou.Run:
    _loaded.cache_clear()  # the other packages also read their annotations in every round
    return segiou.score_folder(
        *(root / "truth", root / "pred"),
        labels=root / "truth.json",
        objects="coco",
        unassigned="count",
        workers=workers,
    )


def panopticapi(root: Path) -> Any:
    """panopticapi's own evaluation in this process, with its reading of annotations."""
    from panopticapi.evaluation import pq_compute_single_core

    truth, pred = (json.loads((root / f"{side}.json").read_text()) for side in ("truth", "pred"))
    others = {entry["image_id"]: entry for entry in pred["annotations"]}
    pairs = [(entry, others[entry["image_id"]]) for entry in truth["annotations"]]
    categories = {entry["id"]: entry for entry in truth["categories"]}
    with contextlib.redirect_stdout(io.StringIO()):
        return pq_compute_single_core(0, pairs, root / "truth", root / "pred", categories)


def hotcoco_panoptic(root: Path) -> Any:
    from hotcoco.panoptic import PanopticEval

    found = PanopticEval(
        root / "truth.json", root / "pred.json", gt_folder=root / "truth", pred_folder=root / "pred"
    )
    found.evaluate()
    return found.results()


def decode(paths: Sequence[Path], scratch: Scratch) -> None:
    """The limit: only the pixels of all files."""
    for path in paths:
        read_png(path.read_bytes(), scratch=scratch)


def score_masks(root: Path, classes: int, workers: int) -> NDArray[Any]:
    options: dict[str, Any] = {"labels": segiou.LabelSet.numbered(classes), "ignore": classes}
    run = segiou.score_folder(root / "truth", root / "pred", workers=workers, **options)
    return run.total().matrix


def hotcoco_masks(root: Path, classes: int) -> NDArray[Any]:
    from hotcoco.semantic import SemanticEval

    found = SemanticEval(classes, ignore_index=classes)
    found.update_folders(root / "truth", root / "pred")
    return found.confusion()


def vernier_masks(root: Path, classes: int) -> NDArray[Any]:
    from vernier.semantic import Dataset, Evaluator, Predictions

    truth, pred = (dict(enumerate(sorted((root / s).iterdir()))) for s in ("truth", "pred"))
    known = Dataset.from_files(truth, classes, classes)
    found = Evaluator().evaluate(known, Predictions.from_files(pred))
    return np.asarray(found.confusion_matrix.counts()).reshape(classes, classes)


def folder_times(
    contestants: dict[str, Callable[[], Any]], root: Path, rounds: int, threads: int
) -> dict[str, float]:
    """Times of scoring a folder: beside decoding its files in one thread, else by the clock."""
    if threads > 1:
        return seconds(contestants, rounds, time.perf_counter)
    decoding = partial(decode, sorted(root.glob("*/*.png")), Scratch())
    return seconds({**contestants, "decoding": decoding}, rounds)


def mask_table(rounds: int, threads: int) -> str:
    """Folders of 59 street masks, from their files to the matrix."""
    task = inputs.camvid().first(59)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for side, masks in (("truth", task.truths), ("pred", task.preds)):
            (root / side).mkdir()
            for number, mask in enumerate(masks):
                (root / side / f"{number:03}.png").write_bytes(encoded(mask))
        contestants = {OURS: partial(score_masks, root, task.num_classes, threads)}
        for name, score in (("hotcoco", hotcoco_masks), ("vernier", vernier_masks)):
            if find_spec(name):
                contestants[name] = partial(score, root, task.num_classes)
        matrices = [score() for score in contestants.values()]
        if not all(np.array_equal(matrix, matrices[0]) for matrix in matrices):
            msg = "the packages count different matrices"
            raise AssertionError(msg)
        times = folder_times(contestants, root, rounds, threads)
    return folder_rows("59 street masks, 480 × 360", times, len(task.truths))


def folder_rows(name: str, times: Mapping[str, float], images: int) -> str:
    each = [
        f"{1000 * taken / images:.2f} ({taken / times[OURS]:.1f} ×)" for taken in times.values()
    ]
    return table(["ms per image", *times], [[name, *each]])


def panoptic_table(rounds: int, threads: int, images: int = 1000) -> str:
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        write_panoptic(root, 100, images // 100)
        theirs = panopticapi(root)
        peer = [theirs[i + 1] for i in range(CATEGORIES)]
        if score_panoptic(root).counts_of("objects").detections.tolist() != [
            [s.tp, s.fp, s.fn] for s in peer
        ]:
            msg = "segiou and panopticapi count different segments"
            raise AssertionError(msg)
        contestants: dict[str, Callable[[], Any]] = {OURS: partial(score_panoptic, root, threads)}
        if threads == 1:
            contestants["panopticapi"] = partial(panopticapi, root)
        if find_spec("hotcoco"):
            contestants["hotcoco"] = partial(hotcoco_panoptic, root)
        times = folder_times(contestants, root, rounds, threads)
        gain = thread_gain(root, rounds) if threads == 1 else 0.0
    rows = folder_rows("COCO panoptic, 640 × 480", times, images)
    return f"{rows}Two threads are {gain:.2f} × as fast as one by the clock.\n" if gain else rows


def thread_gain(root: Path, rounds: int) -> float:
    """How many times as fast two threads score a folder as one does, by the clock."""
    gains = []
    for _ in range(rounds):
        times = []
        for workers in (1, 2):
            start = time.perf_counter()
            score_panoptic(root, workers)
            times.append(time.perf_counter() - start)
        gains.append(times[0] / times[1])
    return median(gains)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    rounds, threads = given.rounds, given.threads
    os.environ.setdefault("RAYON_NUM_THREADS", str(threads))
    if threads == 1:
        print(reading_table(rounds))
    print(mask_table(rounds, threads))
    print(panoptic_table(min(rounds, 5), threads))


if __name__ == "__main__":
    main()
