"""Object ids compared with other tools: ``python -m benchmarks.objects [--rounds N]``.

Id pairs with ``np.unique``; folders of object ids with reading their files; connected components
with scikit-image and cc3d; panoptic quality of two id maps with torchmetrics. The results are
checked. Processor time, medians of alternating rounds.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from scipy import ndimage

import segiou
from benchmarks import inputs
from benchmarks.counting import table
from benchmarks.reading import seconds
from segiou.counting import count_id_pairs
from segiou.masks.formats.image_files import Scratch, read_png
from segiou.measures.objects import PanopticCounts
from segiou.regions import label_components
from segiou.regions.components import components

Ids = NDArray[Any]


def blobs(seed: int) -> Ids:
    """Numbered components of a smooth random volume."""
    smooth = ndimage.gaussian_filter(np.random.default_rng(seed).random((64, 256, 256)), 4)
    return label_components(smooth > np.quantile(smooth, 0.8))


def id_maps() -> Iterator[tuple[str, Ids, Ids]]:
    rng = np.random.default_rng(0)
    for task in (inputs.camvid(), inputs.davis()):
        name = f"{task.name.split(',')[0]}, components"
        yield name, *(label_components(s[0].astype(int) + 1) for s in (task.truths, task.preds))
    yield "ellipses, 1024 × 2048", *inputs.segments(rng, 1024, 2048)[1]
    for truth, pred in pairwise(map(blobs, range(2))):
        yield "3-D components", truth, pred
    for ids in (60, 1000, 1 << 20):
        yield f"noise, {ids} × {ids} ids", *rng.integers(0, ids, (2, 1024, 2048), np.uint32)


def unique(truth: Ids, pred: Ids) -> tuple[Ids, Ids, Ids]:
    """Both ids as one number, one sort: the fastest NumPy version, as in panopticapi."""
    both = truth.astype(np.uint64) << np.uint64(32) | pred.astype(np.uint64)
    found, pixels = np.unique(both, return_counts=True)
    return found >> np.uint64(32), found & np.uint64(2**32 - 1), pixels


def pair_table(rounds: int) -> str:
    rows = []
    for name, truth, pred in id_maps():
        for ours, theirs in zip(count_id_pairs(truth, pred), unique(truth, pred), strict=True):
            np.testing.assert_array_equal(ours, theirs)
        runs = {f.__name__: partial(f, truth, pred) for f in (count_id_pairs, unique)}
        times = [1e9 * taken / truth.size for taken in seconds(runs, rounds).values()]
        rows.append([name, *(f"{t:.2f}" for t in times), f"{times[1] / times[0]:.1f}"])
    return table(["ns per pixel", "count_id_pairs", "np.unique", "× np.unique"], rows)


#: Label sets of the folders of object ids, and a class of each eighth of the segments.
SETS = {
    "cityscapes": ("cityscapes", [7, 8, 11, 21, 23, 24, 26, 33]),
    "kitti": ("semantickitti", [10, 11, 30, 40, 48, 50, 70, 71]),
    "components": (8, [*range(8)]),
}


def write_segments(root: Path, source: str, pairs: int) -> list[Path]:
    """Pairs of files of 1024 × 2048 pixels."""
    rng, files = np.random.default_rng(0), []
    for number in range(pairs):
        for side, ids in zip(("truth", "pred"), inputs.segments(rng, 1024, 2048)[1], strict=True):
            (root / side).mkdir(exist_ok=True)
            numbers = np.unique(ids, return_inverse=True)[1].reshape(ids.shape)
            classes = np.array(SETS[source][1])[numbers % 8]
            path = root / side / f"{number}.{'label' if source == 'kitti' else 'png'}"
            if source == "kitti":
                (classes | numbers << 16).astype("<u4").tofile(path)
            elif source == "cityscapes":
                values = np.where(classes >= 24, 1000 * classes + numbers, classes)
                Image.fromarray(values.astype(np.uint16)).save(path)
            else:
                Image.fromarray(classes.astype(np.uint8)).save(path)
            files.append(path)
    return files


def folder_table(rounds: int, pairs: int = 16, copies: int = 8) -> str:
    """Whole folders of object ids compared with only reading and decoding their files."""
    scratch, rows = Scratch(), []

    def read(files: list[Path]) -> None:
        for file in files:
            data = file.read_bytes()
            if file.suffix == ".png":
                read_png(data, scratch=scratch)

    for source, (labels, _) in SETS.items():
        with tempfile.TemporaryDirectory() as root:
            files = write_segments(Path(root), source, pairs)
            for file, copy in product([*files], range(1, copies)):
                files.append(file.with_stem(f"{file.stem}_{copy}"))
                files[-1].hardlink_to(file)
            folders = Path(root) / "truth", Path(root) / "pred"
            how = {"labels": labels, "objects": source, "unassigned": "count", "workers": 1}
            runs = {
                "all": partial(segiou.score_folder, *folders, **how),
                "reading": partial(read, files),
            }
            each = [2000 * taken / len(files) for taken in seconds(runs, rounds).values()]
        rows.append([source, *(f"{t:.2f}" for t in (*each, each[0] - each[1]))])
    return table(["ms per image, 1024 × 2048", "folder", "reading", "difference"], rows)


def same_parts(ours: Ids, theirs: Ids) -> bool:
    pairs = count_id_pairs(ours, theirs)
    return all(len(pairs[0]) == len(np.unique(side)) for side in pairs[:2])


def component_table(rounds: int) -> str:
    """Components of all labels of a mask."""
    finders: dict[str, Callable[[Ids], Any]] = {
        "segiou": lambda labels: components(labels, (), None, 0),
        "scikit-image": lambda labels: skimage.label(labels, background=-1),
    }
    from skimage import measure as skimage

    if find_spec("cc3d"):
        import cc3d

        finders["cc3d"] = lambda labels: cc3d.connected_components(labels + np.uint8(1))
    street = Image.fromarray(inputs.camvid().truths[0]).resize((2048, 1024), Image.Resampling(0))
    masks = {"street mask": np.array(street), "noise, 19 classes": inputs.noise(19).truths[0]}
    volume = blobs(0)
    masks |= {"volume of blobs": (volume > 0).astype(np.uint8)}
    rows = []
    for name, labels in masks.items():
        for find in [*finders.values()][1:]:
            if not same_parts(finders["segiou"](labels).id_map, find(labels)):
                msg = f"different components of {name}"
                raise AssertionError(msg)
        runs = {finder: partial(find, labels) for finder, find in finders.items()}
        rows.append([name, *(f"{1000 * taken:.2f}" for taken in seconds(runs, rounds).values())])
    return table(["ms per map", *finders], rows)


def panoptic_quality(truth: Ids, pred: Ids, rounds: int) -> str:
    """With torchmetrics' PanopticQuality on the same segments."""
    import torch
    from torchmetrics.detection import PanopticQuality

    zeros = np.zeros(truth.shape, np.uint8)
    sides = [torch.from_numpy(np.stack([zeros, s], -1).astype(int))[None] for s in (pred, truth)]
    counts, peer = PanopticCounts(1), PanopticQuality(things={0}, stuffs={1})
    runs = {
        "segiou": lambda: counts.update(zeros, truth, zeros, pred),
        "torchmetrics": lambda: peer.update(*sides),
    }
    ours, theirs = seconds(runs, rounds).values()
    np.testing.assert_allclose(counts.panoptic_quality()["pq"], float(peer.compute()), rtol=1e-6)
    return f"PQ: {1e3 * ours:.1f} ms, torchmetrics takes {theirs / ours:.0f} times as long"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    print(pair_table(rounds))
    print(folder_table(rounds))
    print(component_table(rounds))
    print(panoptic_quality(*next(id_maps())[1:], min(rounds, 3)))


if __name__ == "__main__":
    main()
