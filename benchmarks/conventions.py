"""Compares the newest release of each tool with segiou's protocol of its name, and with the past.

    python -m benchmarks.conventions                 # every tool in a fresh environment
    python -m benchmarks.conventions scikit-learn    # some of them
    python -m benchmarks.conventions --here          # the installed versions
    python -m benchmarks.conventions --write         # accept the numbers

Each tool scores the same three images; conventions.json has the numbers of the last accepted
release. Exits with 1 if a number has moved, differs from segiou's, or could not be computed. A
number without a counterpart in segiou is only compared with the past.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import venv
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

STORED = Path(__file__).with_suffix(".json")
CLASSES = 5
Numbers = dict[str, Any]


def images() -> tuple[np.ndarray, np.ndarray]:
    """Three images: class 3 is only predicted, 4 is absent; image 1 misses class 1, 2 lacks 2."""
    k, y, x = np.mgrid[:3, :24, :32]
    truth = np.where((y - 12) ** 2 + (x - 8 - k) ** 2 < 30, 1, np.where(x > 22 + k, 2, 0))
    truth[2][truth[2] == 2] = 0
    pred = np.roll(truth, 1, 2)
    pred[(7 * x + 11 * y + 5 * k) % 29 == 0] = 3
    pred[1][pred[1] == 1] = 0
    return truth.astype(np.uint8), pred.astype(np.uint8)


def scikit_learn(t: np.ndarray, p: np.ndarray) -> Numbers:
    """Scores of flat labels."""
    from sklearn.metrics import f1_score, jaccard_score

    how: Any = {"average": "macro", "labels": range(CLASSES), "zero_division": 0}
    mean = jaccard_score(t.ravel(), p.ravel(), **how)
    return {"mean_iou": mean, "dice_1": f1_score(t.ravel() == 1, p.ravel() == 1)}


def scikit_image(t: np.ndarray, p: np.ndarray) -> Numbers:
    """Partitions; precision and recall are in reverse order."""
    from skimage.metrics import adapted_rand_error, variation_of_information

    error, recall, precision = adapted_rand_error(t[0].astype(int), p[0].astype(int))
    voi = variation_of_information(t[0].astype(int), p[0].astype(int), ignore_labels=(0,))
    return {"rand": [error, precision, recall], "voi": voi.tolist()}


def simpleitk(t: np.ndarray, p: np.ndarray) -> Numbers:
    """Overlap of labels; false positives without truth are the largest double."""
    import SimpleITK

    found = SimpleITK.LabelOverlapMeasuresImageFilter()
    found.Execute(*map(SimpleITK.GetImageFromArray, (t, p)))
    dice = [found.GetDiceCoefficient(c) for c in (1, 2, 3)]
    return {"dice": dice, "false_positive_3": found.GetFalsePositiveError(3)}


def keras(t: np.ndarray, p: np.ndarray) -> Numbers:
    """Mean IoU in float32."""
    os.environ["KERAS_BACKEND"] = "numpy"
    from keras.metrics import MeanIoU

    metric = MeanIoU(CLASSES)
    metric.update_state(t, p)
    return {"mean_iou": float(metric.result())}


def medpy(t: np.ndarray, p: np.ndarray) -> Numbers:
    """Surfaces, and two empty masks, which depend on NumPy."""
    from medpy.metric import binary

    surfaces = [float(of(p[0] == 1, t[0] == 1)) for of in (binary.hd95, binary.assd)]
    empty = float(binary.dc(p == 4, t == 4))
    return {"dice_1": float(binary.dc(p == 1, t == 1)), "surfaces": surfaces, "empty": empty}


def cityscapes(t: np.ndarray, p: np.ndarray) -> Numbers:
    """IoU of classes of the Cityscapes data set."""
    import cityscapesscripts.evaluation.evalPixelLevelSemanticLabeling as own

    ids = np.array([7, 8, 11, 26, 24])
    matrix = own.generateMatrix(own.args)
    np.add.at(matrix, (ids[t.ravel()], ids[p.ravel()]), 1)
    ious = {i: own.getIouScoreForLabel(int(i), matrix, own.args) for i in ids}
    by_name = {own.id2label[int(i)].name: float(iou) for i, iou in ious.items()}
    mean = float(own.getScoreAverage(by_name, own.args))
    return {"mean_iou": mean, "iou": [*by_name.values()]}


def valor_lite(t: np.ndarray, p: np.ndarray) -> Numbers:
    """Mean IoU without the background."""
    from valor_lite.semantic_segmentation import Loader, Segmentation

    loader, names = Loader.in_memory(), ["a", "b", "c", "d"]
    pairs = enumerate(zip(t, p, strict=True))
    several = [
        Segmentation(uid=str(i), groundtruths=a, predictions=b, labels=names) for i, (a, b) in pairs
    ]
    loader.add_data(several)
    found = loader.finalize().compute_precision_recall_iou()
    (mean,) = next(v for k, v in found.items() if getattr(k, "value", k) == "mIOU")
    return {"mean_iou": mean.to_dict()["value"]}


def torchmetrics(t: np.ndarray, p: np.ndarray) -> Numbers:
    """Mean IoU over all pixels and over images."""
    import torch
    from torchmetrics.classification import MulticlassJaccardIndex
    from torchmetrics.segmentation import MeanIoU

    pair = torch.tensor(p.astype(int)), torch.tensor(t.astype(int))
    mean, images = MulticlassJaccardIndex(CLASSES), MeanIoU(CLASSES, input_format="index")
    return {"mean_iou": float(mean(*pair)), "per_image": float(images(*pair))}


def monai(t: np.ndarray, p: np.ndarray) -> Numbers:
    """Mean IoU over images, and Dice per component of class 1."""
    import torch
    from monai.metrics import DiceMetric, MeanIoU

    pred, true = (torch.tensor(np.eye(CLASSES)[side]).moveaxis(-1, 1) for side in (p, t))
    dice = DiceMetric(per_component=True)
    dice(*(torch.stack([side[:, 1] == 0, side[:, 1] == 1], 1).float() for side in (pred, true)))
    mean = MeanIoU()
    mean(pred, true)
    return {"mean_iou": float(mean.aggregate()), "component_dice": float(dice.aggregate())}


def ours(t: np.ndarray, p: np.ndarray) -> dict[str, Numbers]:
    """The numbers that segiou expects of each tool."""
    import segiou
    from segiou.boundary import surface_scores
    from segiou.instances import partition_scores

    run = segiou.score(list(t), list(p), labels=CLASSES, measures=["components"])
    mean, dice = (lambda name: run.report(name).mean_iou), run.total().dice()
    parts = [*partition_scores(t[0], p[0]).values()]
    surface = surface_scores(t[0] == 1, p[0] == 1, convention="medpy")[1]
    foreground = segiou.ConfusionMatrix(CLASSES, exclude=0).update(t, p)
    component = run.report().score("component_dice_cases", "1")
    return {
        "scikit-learn": {"mean_iou": mean("sklearn"), "dice_1": dice[1]},
        "scikit-image": {"rand": parts[:3], "voi": parts[3:]},
        "SimpleITK": {"dice": dice[1:4].tolist()},
        "keras": {"mean_iou": mean("keras")},
        "medpy": {
            "dice_1": dice[1],
            "surfaces": [surface["hausdorff_95"], surface["average_surface_distance"]],
        },
        "cityscapesScripts": {"mean_iou": mean("cityscapes"), "iou": run.total().iou().tolist()},
        "valor-lite": {"mean_iou": foreground.mean_iou("sklearn")},
        "torchmetrics": {
            "mean_iou": mean("torchmetrics"),
            "per_image": mean("torchmetrics-segmentation"),
        },
        "monai": {"mean_iou": mean("monai"), "component_dice": component},
    }


#: Each tool: its numbers, and packages that it does not install itself.
TOOLS: dict[str, tuple[Callable[..., Numbers], tuple[str, ...]]] = {
    "scikit-learn": (scikit_learn, ()),
    "scikit-image": (scikit_image, ()),
    "SimpleITK": (simpleitk, ("numpy",)),
    "keras": (keras, ("jax",)),
    "medpy": (medpy, ()),
    "cityscapesScripts": (cityscapes, ()),
    "valor-lite": (valor_lite, ()),
    "torchmetrics": (torchmetrics, ("torch",)),
    "monai": (monai, ("torch", "scipy", "scikit-image")),
}


def same(a: Any, b: Any) -> bool:
    """Whether numbers, or lists or dictionaries of them, are equal to 10⁻⁶."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[name], b[name]) for name in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    if a is None or b is None:
        return a is b
    return (math.isnan(a) and math.isnan(b)) or math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-9)


def state_of(found: Numbers, stored: Numbers, expected: Numbers) -> str:
    """``same``, or what is wrong."""
    if not same({name: found.get(name) for name in expected}, expected):
        return "DIFFERS"
    return "same" if same(found, stored) else "MOVED"


def found_by(name: str, python: str) -> tuple[str, Numbers]:
    """Versions and numbers of a tool; a RuntimeError if it fails."""
    command = [python, "-W", "ignore", __file__, "--only", name]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or not lines:
        raise RuntimeError((done.stderr.strip().splitlines() or ["no result"])[-1])
    found = json.loads(lines[-1])
    return found["version"], found["numbers"]


def fresh(folder: str, name: str) -> str:
    """The interpreter of a new environment with the newest release."""
    venv.create(folder, with_pip=True)
    python = str(Path(folder) / ("Scripts" if os.name == "nt" else "bin") / "python")
    install = [python, "-m", "pip", "install", "-q", name, *TOOLS[name][1]]
    subprocess.run(install, check=True)
    return python


def main() -> int:
    """Print a line for each tool."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tools", nargs="*", help="tools to run; all by default")
    parser.add_argument("--here", action="store_true", help="use this environment")
    parser.add_argument("--write", action="store_true", help="accept the numbers")
    parser.add_argument("--only", choices=TOOLS, help=argparse.SUPPRESS)
    parsed = parser.parse_args()
    pair = images()
    if parsed.only:
        used = f"{version(parsed.only)}, numpy {np.__version__}"
        print(json.dumps({"version": used, "numbers": TOOLS[parsed.only][0](*pair)}))
        return 0
    stored, expected = json.loads(STORED.read_text()), ours(*pair)
    wrong = 0
    for name in parsed.tools or TOOLS:
        with tempfile.TemporaryDirectory() as folder:
            try:
                python = sys.executable if parsed.here else fresh(folder, name)
                used, numbers = found_by(name, python)
            except (RuntimeError, subprocess.CalledProcessError) as error:
                used, numbers, state = "", {}, f"FAILED: {error}"
            else:
                state = state_of(numbers, stored.get(name, {}).get("numbers", {}), expected[name])
        wrong += state != "same"
        if state == "same":
            print(f"{name:28} {used:24} same", flush=True)
        else:
            last = json.dumps({"now": numbers, "stored": stored.get(name), "ours": expected[name]})
            print(f"{name:28} {used:24} {state}\n  {last}", flush=True)
        if parsed.write and numbers:
            stored[name] = {"version": used, "numbers": numbers}
    if parsed.write:
        STORED.write_text(json.dumps(stored, indent=1) + "\n")
    return int(wrong > 0 and not parsed.write)


if __name__ == "__main__":
    sys.exit(main())
