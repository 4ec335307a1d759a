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
import runpy
import subprocess
import sys
import tempfile
import venv
from collections.abc import Callable
from dataclasses import replace
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


def smp(t: np.ndarray, p: np.ndarray) -> Numbers:
    """Mean IoU over all pixels and over images."""
    import torch
    from segmentation_models_pytorch.metrics import get_stats, iou_score

    pair = torch.tensor(p.astype(int)), torch.tensor(t.astype(int))
    counts = get_stats(*pair, mode="multiclass", num_classes=CLASSES)
    return {how: float(iou_score(*counts, reduction=how)) for how in ("macro", "macro-imagewise")}


def ignite(t: np.ndarray, p: np.ndarray) -> Numbers:
    """Mean IoU."""
    import torch
    from ignite.metrics import ConfusionMatrix, mIoU

    matrix = ConfusionMatrix(CLASSES)
    mean = mIoU(matrix)
    one_hot = torch.tensor(np.eye(CLASSES)[p]).moveaxis(-1, 1)
    matrix.update((one_hot, torch.tensor(t.astype(int))))
    return {"mean_iou": float(mean.compute())}


def ultralytics(t: np.ndarray, p: np.ndarray) -> Numbers:
    """Mean IoU of all classes, of three (predictions of the others are dropped), and of one."""
    import torch
    from ultralytics.utils.metrics import SemanticMetrics

    found = {}
    for number, truth, pred in ((CLASSES, t, p), (3, t, p), (1, t == 1, p == 1)):
        metrics = SemanticMetrics({c: str(c) for c in range(number)})
        metrics.update_stats(torch.tensor(pred.astype(int)), torch.tensor(truth.astype(int)))
        metrics.process()
        found[f"mean_iou_{number}"] = float(metrics.results_dict["metrics/mIoU"])
    return found


def nuscenes(t: np.ndarray, p: np.ndarray) -> Numbers:
    """Mean IoU of lidarseg, whose file needs no data set."""
    from importlib.metadata import files
    from types import ModuleType

    for name in ("", ".utils", ".nuscenes", ".utils.data_classes", ".utils.splits"):
        module: Any = ModuleType(name)
        sys.modules[f"nuscenes{name}"] = module
        module.NuScenes = module.create_splits_scenes = module.LidarPointCloud = object
    path = next(f for f in files("nuscenes-devkit") or () if f.match("eval/lidarseg/utils.py"))
    matrix = runpy.run_path(str(path.locate()))["ConfusionMatrix"](CLASSES + 1, ignore_idx=0)
    matrix.update(t.ravel() + 1, p.ravel() + 1)
    return {"mean_iou": float(matrix.get_mean_iou())}


def miseval(t: np.ndarray, p: np.ndarray) -> Numbers:
    """Dice and IoU; an absent class has Dice 1 and IoU 0."""
    from miseval import evaluate

    how: Any = {"multi_class": True, "n_classes": CLASSES}
    dice, iou = (np.ravel(evaluate(t, p, metric=name, **how)).tolist() for name in ("DSC", "IoU"))
    return {"dice": dice[:4], "iou": iou[:4], "absent": [dice[4], iou[4]]}


def pymia(t: np.ndarray, p: np.ndarray) -> Numbers:
    """Dice of two classes."""
    from pymia.evaluation import metric

    found = []
    for c in (1, 3):
        dice = metric.DiceCoefficient()
        dice.confusion_matrix = metric.ConfusionMatrix(p == c, t == c)
        found.append(float(dice.calculate()))
    return {"dice": found}


def cellseg_metrics(t: np.ndarray, p: np.ndarray) -> Numbers:
    """IoU of one image; an absent class is -1."""
    from cellseg_metrics.functional import iou_multiclass

    found = np.ravel(iou_multiclass(t[0].astype(int), p[0].astype(int), CLASSES)).tolist()
    return {"iou": found[:4], "absent": found[4]}


def seg_metrics(t: np.ndarray, p: np.ndarray) -> Numbers:
    """Dice and distances of three classes; HD95 is 0 for a class that the truth lacks."""
    from seg_metrics.seg_metrics import write_metrics

    names = ["dice", "hd95", "msd"]
    found = write_metrics(labels=[1, 2, 3], gdth_img=t, pred_img=p, metrics=names, TPTNFPFN=False)
    one = found[0] if isinstance(found, list) else found
    return {name: np.ravel(one[name]).tolist() for name in names}


def segauge(t: np.ndarray, p: np.ndarray) -> Numbers:
    """Dice of a volume, and of two empty ones."""
    from segauge.core import Case, evaluate

    size = (3.0, 1.0, 1.0)
    cases = [Case(str(c), pred=p == c, gt=t == c, spacing=size) for c in (1, 4)]
    first, empty = (row["dice"] for row in evaluate(cases, detection=False).rows)
    return {"dice_1": first, "empty": empty}


def panoptica(t: np.ndarray, p: np.ndarray) -> Numbers:
    """Objects of class 1 of a volume; distances of the whole ignore the spacing."""
    import panoptica as own

    evaluator = own.Panoptica_Evaluator(
        expected_input=own.InputType.SEMANTIC,
        instance_approximator=own.ConnectedComponentsInstanceApproximator(),
        instance_matcher=own.NaiveThresholdMatching(),
        instance_metrics=[own.Metric.DSC, own.Metric.IOU],
        global_metrics=[own.Metric.DSC, own.Metric.HD95],
    )
    sides = ((side == 1).astype(np.uint8) for side in (p, t))
    found = evaluator.evaluate(*sides, voxelspacing=(3.0, 1.0, 1.0), verbose=False)
    row = next(iter(found.values()))
    names = ("tp", "fp", "fn", "rq", "sq", "global_bin_dsc", "global_bin_hd95")
    return {name: float(getattr(row, name)) for name in names}


def brats_evaluation(t: np.ndarray, p: np.ndarray) -> Numbers:
    """Region 1 of BraTS 2026, in voxels of 1 mm."""
    from importlib.metadata import files

    from panoptica import Panoptica_Evaluator

    config = next(f for f in files("brats-evaluation") or () if f.match("config_MenRT.yaml"))
    evaluator = Panoptica_Evaluator.load_from_config(str(config.locate()))
    sides = ((side == 1).astype(np.uint8) for side in (p, t))
    row = evaluator.evaluate(*sides, voxelspacing=(1.0, 1.0, 1.0), verbose=False)["gtv"]
    names = ("tp", "fp", "fn", "rq", "sq_dsc", "sq_hd95", "sq_nsd", "global_bin_dsc")
    return {name: float(getattr(row, name)) for name in (*names, "global_bin_nsd")}


def grey(p: np.ndarray) -> np.ndarray:
    """A map of scores of class 1 of the first image."""
    noise = np.add.outer(11 * np.arange(p.shape[1]), 7 * np.arange(p.shape[2])) % 97
    return ((p[0] == 1) * 150 + noise).astype(np.uint8)


def pysodmetrics(t: np.ndarray, p: np.ndarray) -> Numbers:
    """Scores of a grey map."""
    import py_sod_metrics as own

    tools = [own.MAE(), own.Smeasure(), own.Emeasure(), own.WeightedFmeasure(), own.Fmeasure()]
    found: dict[str, Any] = {}
    for tool in tools:
        tool.step(grey(p), (t[0] == 1).astype(np.uint8) * 255)
        found |= tool.get_results()
    curves = [float(found[name]["curve"].max()) for name in ("em", "fm")]
    return {"mae_s_wf": [float(found[name]) for name in ("mae", "sm", "wfm")], "curves": curves}


def stardist(t: np.ndarray, p: np.ndarray) -> Numbers:
    """Objects of the first image, whose ids are the classes."""
    from stardist.matching import matching

    found = [matching(t[0], p[0], thresh=at) for at in (0.5, 0.75)]
    return {"ap": [float(one.accuracy) for one in found], "f1": float(found[0].f1)}


def hotcoco(t: np.ndarray, p: np.ndarray) -> Numbers:
    """The matrix; class 4 of the truth is ignored."""
    from hotcoco.metrics import pixel_confusion

    return {"matrix": np.asarray(pixel_confusion(t, p, CLASSES, ignore_index=4)).tolist()}


def vernier(t: np.ndarray, p: np.ndarray) -> Numbers:
    """The matrix."""
    from vernier.semantic import Dataset, Evaluator, Predictions

    truth, pred = (dict(enumerate(side)) for side in (t, p))
    known = Dataset.from_arrays(truth, CLASSES, 255)
    found = Evaluator().evaluate(known, Predictions.from_arrays(pred))
    counts = np.asarray(found.confusion_matrix.counts())
    return {"matrix": counts.reshape(CLASSES, CLASSES).tolist()}


def pymeshmetrics(t: np.ndarray, p: np.ndarray) -> Numbers:
    """Overlap of class 1, and distances of meshes, which are not those of pixels."""
    from meshmetrics import compute_metrics

    found = compute_metrics(t[0] == 1, p[0] == 1, spacing=(1.0, 1.0))
    return {name: float(found[name]) for name in ("DSC", "IoU", "HD_95", "ASSD")}


def ours(t: np.ndarray, p: np.ndarray) -> dict[str, Numbers]:
    """The numbers that segiou expects of each tool."""
    import segiou
    from segiou.measures.cells import cell_scores
    from segiou.measures.lesions import LESION_PROTOCOLS, lesion_scores
    from segiou.measures.partitions import partition_scores
    from segiou.measures.saliency import saliency_scores
    from segiou.measures.surfaces import surface_scores

    run = segiou.score(list(t), list(p), labels=CLASSES, measures=["components"])
    mean, dice = (lambda name: run.report(name).mean_iou), run.total().dice()
    ultralytics: Any = {"unassigned": "count", "protocol": "ultralytics"}
    one_image = segiou.ConfusionMatrix(CLASSES).update(t[0], p[0])
    map_ = saliency_scores(t[0] == 1, grey(p))
    cells = cell_scores(t[0], p[0])
    matrix = run.total().matrix.tolist()
    three = segiou.score(list(t), list(p), labels=3, **ultralytics)
    one = segiou.score(list(t == 1), list(p == 1), labels=2, exclude=0, **ultralytics)
    lesions = lesion_scores(t == 1, p == 1, spacing=(3, 1, 1), protocol="panoptica")["1"]
    menrt = replace(LESION_PROTOCOLS["brats2026-menrt"], published=True)
    gtv = lesion_scores(t == 1, p == 1, spacing=1, protocol=menrt)["gtv"]
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
        "segmentation-models-pytorch": {
            "macro": mean("smp"),
            "macro-imagewise": mean("smp-imagewise"),
        },
        "pytorch-ignite": {"mean_iou": mean("ignite")},
        "ultralytics": {
            "mean_iou_5": mean("ultralytics"),
            "mean_iou_3": three.report().mean_iou,
            "mean_iou_1": one.report().mean_iou,
        },
        "nuscenes-devkit": {"mean_iou": mean("nuscenes")},
        "miseval": {"dice": dice[:4].tolist(), "iou": run.total().iou()[:4].tolist()},
        "pymia": {"dice": dice[[1, 3]].tolist()},
        "cellseg-metrics": {"iou": one_image.iou()[:4].tolist()},
        "seg-metrics": {"dice": dice[1:4].tolist()},
        "segauge": {"dice_1": dice[1]},
        "panoptica": {
            **{name: lesions[name] for name in ("tp", "fp", "fn")},
            **{"rq": lesions["f1"], "sq": lesions["iou"], "global_bin_dsc": dice[1]},
        },
        "brats-evaluation": {
            **{name: gtv[name] for name in ("tp", "fp", "fn")},
            **{"rq": gtv["f1"], "sq_dsc": gtv["dice"], "sq_hd95": gtv["hausdorff_95"]},
            **{"sq_nsd": gtv["surface_dice"], "global_bin_dsc": gtv["overall_dice"]},
            "global_bin_nsd": gtv["overall_surface_dice"],
        },
        "pysodmetrics": {
            "mae_s_wf": [map_["mae"], map_["s_measure"], map_["weighted_f_measure"]],
            "curves": [map_["e_measure_max"], map_["f_measure_max"]],
        },
        "stardist": {
            "ap": [cells["stardist_ap50"], cells["stardist_ap75"]],
            "f1": cells["stardist_f1"],
        },
        "hotcoco": {"matrix": matrix},
        "vernier": {"matrix": matrix},
        "pymeshmetrics": {"DSC": one_image.dice()[1], "IoU": one_image.iou()[1]},
    }


#: Each tool: its numbers, and packages that it does not install itself (or options of pip).
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
    "segmentation-models-pytorch": (smp, ()),
    "pytorch-ignite": (ignite, ()),
    "ultralytics": (ultralytics, ()),
    "nuscenes-devkit": (nuscenes, ("--no-deps", "numpy", "tqdm")),
    "miseval": (miseval, ()),
    "pymia": (pymia, ()),
    "cellseg-metrics": (cellseg_metrics, ()),
    "seg-metrics": (seg_metrics, ()),
    "segauge": (segauge, ()),
    "panoptica": (panoptica, ()),
    "brats-evaluation": (brats_evaluation, ()),
    "pysodmetrics": (pysodmetrics, ()),
    "stardist": (stardist, ()),
    "hotcoco": (hotcoco, ()),
    "vernier": (vernier, ()),
    "pymeshmetrics": (pymeshmetrics, ()),
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
