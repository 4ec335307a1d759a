"""Random pairs of volumes, measured by segiou and by the tools themselves.

    python tests/importable/volume_peers.py [--cases 600] [--sources DIR]

medpy, MONAI and surface-distance are imported. DIR holds checkouts of what no package index has, or
what cannot be installed beside the rest: MetricsReloaded, nnUNet, kits23, FLARE, TotalSegmentator.
Their functions are taken from the files as they lie. The last line is JSON: for each tool how many
pairs and numbers were compared, how many numbers are equal, and how many differ for which reason.
"""

from __future__ import annotations

import argparse
import ast
import json
import math
import re
import sys
import tempfile
import warnings
from collections import Counter, defaultdict
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import segiou
from segiou.measures.surfaces import surface_scores

TOLERANCES = (0.0, 1.0, 2.5)
KINDS = ("smooth", "alike", "noise", "voxel", "border", "no truth", "no pred", "neither")


def masks(number, ndim=3, seed=0):
    """Kind, truth, prediction and spacing: smooth, noisy, of one voxel, at the border, empty."""
    from scipy.ndimage import gaussian_filter

    rng = np.random.default_rng([ndim, seed])
    for i in range(number):
        kind = KINDS[i % 8] if i % 16 < 8 or i % 8 < 5 else KINDS[i % 5]
        shape = tuple(rng.integers(1, 14, ndim))
        noise = rng.random((2, *shape))
        if kind == "alike":
            noise[1] = 0.6 * noise[0] + 0.4 * noise[1]
        if kind != "noise":
            noise = np.stack([gaussian_filter(side, 1 + i % 2) for side in noise])
        truth, pred = noise > np.quantile(noise, rng.choice([0.3, 0.7, 0.95]))
        if kind == "voxel":
            truth[...] = False
            truth[tuple(rng.integers(shape))] = True
        elif kind == "border":
            truth[0], pred[..., -1] = True, True
        elif kind in ("no truth", "neither"):
            truth[...] = False
        if kind in ("no pred", "neither"):
            pred[...] = False
        yield kind, truth, pred, tuple(rng.choice([0.5, 1.0, 0.7, 3.0], ndim).tolist())


def label_maps(number, labels, seed=0):
    """Truth, prediction and spacing, with some of the labels."""
    rng = np.random.default_rng([9, seed])
    for _ in range(number):
        shape = tuple(rng.integers(2, 12, 3))
        there = [0, *(label for label in labels if rng.random() < 0.7)]
        truth = rng.choice(there, shape).astype(np.uint8)
        truth[: shape[0] // 2] = rng.choice(there)
        wrong = rng.random(shape) < rng.choice([0.05, 0.3])
        pred = np.where(wrong, rng.choice([0, *labels], shape), truth).astype(np.uint8)
        if rng.random() < 0.5:
            pred[pred == rng.choice(labels)] = 0
        yield truth, pred, tuple(rng.choice([0.5, 1.0, 0.7, 3.0], 3).tolist())


def ours(truth, pred, spacing, convention):
    """The scores of a mask by one name each."""
    settings = {"labels": [1], "spacing": spacing, "tolerances": TOLERANCES}
    found = surface_scores(truth, pred, convention=convention, **settings)[1]
    dice = found.pop("surface_dice")
    return found | {f"surface_dice_{limit:g}": share for limit, share in dice.items()}


def medpy(truth, pred, spacing):
    peer = import_module("medpy.metric.binary")
    if not (truth.any() and pred.any()):
        return None  # RuntimeError: "The first supplied array does not contain any binary object."
    return {
        "hausdorff": peer.hd(pred, truth, spacing),
        "hausdorff_95": peer.hd95(pred, truth, spacing),
        "average_surface_distance": peer.assd(pred, truth, spacing),
    }


def monai(truth, pred, spacing):
    peer, torch = import_module("monai.metrics"), import_module("torch")
    torch.set_num_threads(1)
    given = [torch.tensor(side)[None, None].float() for side in (pred, truth)]
    settings = {"include_background": True, "spacing": list(spacing)}
    found = {
        "hausdorff": peer.compute_hausdorff_distance(*given, **settings),
        "hausdorff_95": peer.compute_hausdorff_distance(*given, percentile=95, **settings),
        "average_surface_distance": peer.compute_average_surface_distance(
            *given, symmetric=True, **settings
        ),
    }
    for limit in TOLERANCES:
        found[f"surface_dice_{limit:g}"] = peer.compute_surface_dice(*given, [limit], **settings)
    return {name: float(value) for name, value in found.items()}


def surface_distance(truth, pred, spacing):
    peer = import_module("surface_distance.metrics")
    with names_of_old_numpy():
        found = peer.compute_surface_distances(truth, pred, spacing)
        # At 95 % exactly the last digit of a sum decides, there and here: any of these is equal.
        robust = [peer.compute_robust_hausdorff(found, 95 + d) for d in (0, -1e-9, 1e-9)]
        scores = {
            "hausdorff": peer.compute_robust_hausdorff(found, 100),
            "hausdorff_95": robust,
            "average_surface_distance": sum(peer.compute_average_surface_distance(found)) / 2,
        }
        for limit in TOLERANCES:
            share = peer.compute_surface_dice_at_tolerance(found, limit)
            scores[f"surface_dice_{limit:g}"] = share
    return scores


def metrics_reloaded(truth, pred, spacing):
    peer = import_module("MetricsReloaded.metrics.pairwise_measures").BinaryPairwiseMeasures
    both = pred.astype(np.int64), truth.astype(np.int64)
    measures = peer(*both, pixdim=list(spacing), dict_args={"hd_perc": 95})
    hausdorff, average, percentile, _ = measures.measured_distance()
    found = {
        "hausdorff": hausdorff,
        "hausdorff_95": percentile,
        "average_surface_distance": average,
    }
    for limit in TOLERANCES:
        measures = peer(*both, pixdim=list(spacing), dict_args={"nsd": limit})
        found[f"surface_dice_{limit:g}"] = measures.normalised_surface_distance()
    return found


@contextmanager
def names_of_old_numpy():
    """Names that NumPy 2 no longer has, and no warnings."""
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        patch.setattr(np, "In" + "f", np.inf, raising=False)
        patch.setattr(np, "Na" + "N", np.nan, raising=False)
        warnings.simplefilter("ignore")
        yield


#: Each tool of masks: our convention, its function, how exact its numbers are.
TOOLS = {
    "medpy": ("medpy", medpy, 1e-12),
    "MONAI": ("monai", monai, 1e-5),  # float32
    "surface-distance": ("surface-distance", surface_distance, 1e-12),
    "MetricsReloaded": ("metricsreloaded", metrics_reloaded, 1e-12),
}


def is_close(mine, theirs, exact=1e-12):
    if isinstance(theirs, list):
        return any(is_close(mine, value, exact) for value in theirs)
    if math.isnan(mine) or math.isnan(theirs):
        return math.isnan(mine) and math.isnan(theirs)
    return mine == theirs or abs(mine - theirs) <= exact * max(1.0, abs(theirs))


def compare(tool, number, ndim=3, seed=0):
    """Counts of what was compared, and every number that differs: kind, name, ours, theirs."""
    convention, function, exact = TOOLS[tool]
    counts, differing = Counter(), []
    for kind, truth, pred, spacing in masks(number, ndim, seed):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theirs = function(truth, pred, spacing)
        counts["pairs"] += 1
        counts["refused by the tool"] += theirs is None
        mine = ours(truth, pred, spacing, convention)
        for name, value in (theirs or {}).items():
            counts["numbers"] += 1
            if is_close(mine[name], value, exact):
                counts["equal"] += 1
            else:
                lone = truth.any() != pred.any()
                why = "of a lone mask" if lone else f"unexplained: {kind}"
                differing.append((why, name, mine[name], value))
    return counts, differing


def functions_of(path, names, **given):
    """Functions of a file, without what it imports and does beside them."""
    parsed = ast.parse(Path(path).read_text().replace("np.NaN", "np.nan"))
    wanted = [node for node in parsed.body if getattr(node, "name", "") in names]
    space = {"np": np, **given}
    # Annotations name what is not imported.
    code = ast.Module([*ast.parse("from __future__ import annotations").body, *wanted], [])
    exec(compile(code, str(path), "exec"), space)  # the tool's own code is what is to be run
    return SimpleNamespace(**{name: space[name] for name in names})


def cases_of(run):
    """Case → structure → its scores."""
    found = defaultdict(dict)
    for row in run.report().measures["surface_cases"]:
        found[row["case"]][row["label"]] = row
    return found


def one(truth, pred, labels, **settings):
    """The scores of each structure of one pair."""
    run = segiou.score([truth], [pred], labels=labels, unassigned="count", **settings)
    return cases_of(run)["0"]


def kits23(sources, number):
    """Dice and surface Dice of the three regions."""
    folder = sources / "kits23" / "kits23"
    peer = import_module("surface_distance")
    used = functions_of(folder / "evaluation" / "dice.py", ["dice"])
    masks = functions_of(
        folder / "evaluation" / "generate_bool_masks_for_hec.py",
        ["construct_HEC_from_segmentation"],
    )
    labels = {}
    exec((folder / "configuration" / "labels.py").read_text(), labels)
    metrics = functions_of(
        folder / "evaluation" / "metrics.py",
        ["compute_metrics_for_label"],
        dice=used.dice,
        compute_surface_distances=peer.compute_surface_distances,
        compute_surface_dice_at_tolerance=peer.compute_surface_dice_at_tolerance,
        construct_HEC_from_segmentation=masks.construct_HEC_from_segmentation,
        HEC_SD_TOLERANCES_MM=labels["HEC_SD_TOLERANCES_MM"],
        KITS_LABEL_TO_HEC_MAPPING=labels["KITS_LABEL_TO_HEC_MAPPING"],
    )
    means = []
    pairs = list(label_maps(number, [1, 2, 3]))
    for truth, pred, spacing in pairs:
        mine = one(truth, pred, "kits23", surfaces="kits23", spacing=spacing)
        for name, values in labels["KITS_HEC_LABEL_MAPPING"].items():
            limit = labels["HEC_SD_TOLERANCES_MM"][name]
            with names_of_old_numpy():
                theirs = metrics.compute_metrics_for_label(pred, truth, values, spacing, limit)
            yield mine[name]["dice"], theirs[0], ""
            yield mine[name][f"surface_dice_{limit:g}"], theirs[1], ""
        with names_of_old_numpy():
            each = [
                metrics.compute_metrics_for_label(pred, truth, v, spacing, 1) for v in (1, 2, 3)
            ]
        means.append([dice for dice, _ in each])
    run = segiou.score(*zip(*((t, p) for t, p, _ in pairs), strict=True), labels=4, exclude=0)
    yield run.report("kits23").mean_dice, float(np.mean(means)), ""


def totalsegmentator(sources, number):
    """Dice and surface Dice at 3 mm; that of Dice has 1e-6 more voxels below the line."""
    peer = import_module("surface_distance")
    volumes = {}
    image = lambda path: SimpleNamespace(get_fdata=lambda: volumes[str(path)])  # noqa: E731
    tool = functions_of(
        sources / "TotalSegmentator" / "resources" / "evaluate.py",
        ["dice_score", "calc_metrics"],
        nib=SimpleNamespace(load=image),
        compute_surface_distances=peer.compute_surface_distances,
        compute_surface_dice_at_tolerance=peer.compute_surface_dice_at_tolerance,
    )
    rows, pairs = [], list(label_maps(number, [1, 2, 3]))
    for truth, pred, _ in pairs:
        volumes.update({"t/a.nii.gz": truth.astype(float), "p/a.nii.gz": pred.astype(float)})
        with names_of_old_numpy():
            theirs = tool.calc_metrics("a", Path("t"), Path("p"), {v: str(v) for v in (1, 2, 3)})
        rows.append([theirs[f"dice-{v}"] for v in (1, 2, 3)])
        mine = one(truth, pred, ["0", "1", "2", "3"], surfaces="totalsegmentator")
        for v in ("1", "2", "3"):
            yield mine[v]["dice"], theirs[f"dice-{v}"], "Dice + 1e-6"
            yield mine[v]["surface_dice_3"], theirs[f"surface_dice_3-{v}"], ""
    run = segiou.score(*zip(*((t, p) for t, p, _ in pairs), strict=True), labels=4, exclude=0)
    mean = float(np.mean(np.nanmean(np.array(rows, float), axis=0)))
    yield run.report("totalsegmentator").mean_dice, mean, "Dice + 1e-6"


def flare22(sources, number):
    """Dice and surface Dice of thirteen organs, rounded to four digits."""
    nibabel = import_module("nibabel")
    folder = sources / "FLARE" / "FLARE22" / "Evaluation"
    script = (folder / "FLARE22_DSC_NSD_Eval.py").read_text()
    labels = segiou.load_labels("flare22")
    # Of aorta, vena cava and esophagus it takes some slices only, and fails where there is none.
    slices = 5, 6, 10
    pairs = list(label_maps(number, [v for v in range(1, 14) if v not in slices]))
    with tempfile.TemporaryDirectory() as place:
        for side in ("segmentation", "ground truth", "Results"):
            (Path(place) / side).mkdir()
            script = script.replace(f"'path to {side}'", repr(str(Path(place) / side)))
        for i, (truth, pred, spacing) in enumerate(pairs):
            for side, values in (("ground truth", truth), ("segmentation", pred)):
                image = nibabel.Nifti1Image(values, np.diag([*spacing, 1]))
                image.to_filename(Path(place) / side / f"{i:04}.nii.gz")
        sys.path.insert(0, str(folder))
        with names_of_old_numpy():
            exec(script.replace("print(name", "(name"), {})
        table = import_module("pandas").read_csv(next((Path(place) / "Results").iterdir()))
    names = list(labels.class_names[1:])
    heads = [head.removesuffix("_DSC") for head in table.columns if head.endswith("_DSC")]
    for i, (truth, pred, spacing) in enumerate(pairs):
        mine = one(truth, pred, "flare22", surfaces="flare22", spacing=spacing)
        for name, head in zip(names, heads, strict=True):
            dice, share = (float(table[f"{head}_{kind}"][i]) for kind in ("DSC", "NSD"))
            yield mine[name]["dice"], dice, "rounded"
            found = next(v for k, v in mine[name].items() if k.startswith("surface_dice"))
            low = mine[name]["dice"] < 0.2
            yield found, share, "surface Dice 0 where Dice < 0.2" if low else "rounded"


def nnunet(sources, number):
    """The whole summary, for labels and for regions, with an ignored label."""
    from segiou.report.formats import nnunet_summary

    files = {}
    tool = functions_of(
        sources / "nnUNet" / "nnunetv2" / "evaluation" / "evaluate_predictions.py",
        [
            *("region_or_label_to_mask", "compute_tp_fp_fn_tn", "compute_metrics"),
            *("compute_metrics_on_folder", "label_or_region_to_key"),
        ],
        default_num_processes=1,
        join=lambda *parts: "/".join(parts),
        subfiles=lambda folder, **_: sorted({name.split("/")[1] for name in files}),
        recursive_fix_for_json_export=lambda _: None,
        multiprocessing=SimpleNamespace(
            get_context=lambda _: SimpleNamespace(Pool=lambda _: Inline())
        ),
    )
    reader = SimpleNamespace(read_seg=lambda name: (files[name], {}))
    regions = {"whole": [1, 2, 3], "core": [2, 3]}
    for start, (labels, keys) in enumerate(
        [(["0", "1", "2", "3"], [1, 2, 3]), (regions, [(1, 2, 3), (2, 3)])] * 2
    ):
        pairs = list(label_maps(number // 4, [1, 2, 3, 4], start))
        files.clear()
        for i, (truth, pred, _) in enumerate(pairs):
            files[f"r/{i:04}"], files[f"p/{i:04}"] = truth, np.where(pred == 4, 0, pred)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theirs = tool.compute_metrics_on_folder("r", "p", None, reader, "", keys, 4)
        values = {"labels": {"background": 0, "a": 1, "b": 2, "c": 3, "ignore": 4}}
        if labels is regions:
            values = {"labels": {"background": 0, **regions, "c": 3, "ignore": 4}}
            values["regions_class_order"] = [1, 2, 3]
        with tempfile.TemporaryDirectory() as place:
            path = Path(place) / "dataset.json"
            path.write_text(json.dumps(values))
            given = segiou.load_labels(path)
        sides = [[files[f"{s}/{i:04}"] for i in range(len(pairs))] for s in "rp"]
        ids = [f"{i:04}" for i in range(len(pairs))]
        found = json.loads(nnunet_summary(segiou.score(*sides, labels=given, ids=ids)))
        for key in keys:
            for name in ("Dice", "IoU", "TP", "FP", "FN", "TN", "n_pred", "n_ref"):
                of_mean = found["mean"][str(key)][name], theirs["mean"][key][name]
                yield float(of_mean[0]), float(of_mean[1]), ""
                for mine, other in zip(
                    found["metric_per_case"], theirs["metric_per_case"], strict=True
                ):
                    yield mine["metrics"][str(key)][name], float(other["metrics"][key][name]), ""
        if labels is not regions:
            for name, value in theirs["foreground_mean"].items():
                yield found["foreground_mean"][name], float(value), ""


class Inline:
    """A pool that works at once."""

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def starmap(self, function, tasks):
        return [function(*task) for task in tasks]


CHALLENGES = {
    "kits23": kits23,
    "TotalSegmentator": totalsegmentator,
    "FLARE22": flare22,
    "nnU-Net": nnunet,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=600)
    parser.add_argument("--sources", type=Path)
    parsed = parser.parse_args()
    report = {}
    if parsed.sources:
        sys.path.insert(0, str(parsed.sources / "MetricsReloaded"))
    for tool in TOOLS:
        if tool == "MetricsReloaded" and not parsed.sources:
            continue
        for ndim in (2, 3):
            counts, differing = compare(tool, parsed.cases, ndim)
            reasons = Counter(f"{re.sub('_[0-9.]+$', '', n)} {why}" for why, n, *_ in differing)
            report[f"{tool} {ndim}-D"] = {**counts, "differ": dict(reasons)}
            for row in differing[:3]:
                print(tool, *row)
    for tool, function in CHALLENGES.items() if parsed.sources else ():
        counts, reasons = Counter(), Counter()
        for mine, theirs, reason in function(parsed.sources, parsed.cases):
            counts["numbers"] += 1
            exact = {"Dice + 1e-6": 1e-6, "rounded": 5.1e-5}.get(reason, 1e-12)
            equal = bool(is_close(mine, theirs, exact))
            counts["equal"] += equal
            if not equal:
                reasons[reason or "unexplained"] += 1
                if reason in ("", "rounded"):
                    print(tool, mine, theirs)
        report[tool] = {"pairs": parsed.cases, **counts, "differ": dict(reasons)}
    print(json.dumps(report))


if __name__ == "__main__":
    main()
