"""Check and time the counting of CUDA tensors: ``python benchmarks/gpu_hooks.py [--json FILE]``.

Needs torch with CUDA. segiou is compared with torchmetrics if it is installed, otherwise with its
formula. Failed checks raise. Times are medians in milliseconds, with a device synchronisation
before and after.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.gpu_checks import CLASSES, failures, fresh
from segiou.counting.device_operations import operations_for


def milliseconds(run, repeats: int = 15) -> float:
    for _ in range(3):
        run()
    times = []
    for _ in range(repeats):
        torch.cuda.synchronize()
        start = time.perf_counter()
        run()
        torch.cuda.synchronize()
        times.append(1e3 * (time.perf_counter() - start))
    return round(statistics.median(times), 4)


def mask_like(shape: tuple[int, ...], device: str, dtype: torch.dtype) -> torch.Tensor:
    """Labels in regions, as in real masks, with an ignored border and some noise."""
    coarse = torch.randint(0, CLASSES, (shape[0], 1, 16, 32), device=device).float()
    labels = torch.nn.functional.interpolate(coarse, size=shape[1:], mode="nearest")[:, 0]
    labels[:, :: max(1, shape[1] // 16)] = 255
    return labels.to(dtype)


def formula(truth: torch.Tensor, pred: torch.Tensor, classes: int) -> torch.Tensor:
    """The usual code: keep the valid pixels, one bincount of truth * C + pred."""
    valid = truth != 255
    index = truth[valid].long() * classes + pred[valid].long()
    return torch.bincount(index, minlength=classes * classes).reshape(classes, classes)


def peers(device: str) -> dict[str, object]:
    found: dict[str, object] = {"bincount formula": None}
    try:
        from torchmetrics.classification import MulticlassConfusionMatrix, MulticlassJaccardIndex
    except ImportError:
        return found
    kinds = {"JaccardIndex": MulticlassJaccardIndex, "ConfusionMatrix": MulticlassConfusionMatrix}
    for name, kind in kinds.items():
        for checked in (True, False):
            metric = kind(CLASSES, ignore_index=255, validate_args=checked).to(device)
            found[f"torchmetrics {name}{'' if checked else ', unchecked'}"] = metric
    return found


def time_cases(device: str) -> list[dict[str, object]]:
    cases = {}
    for dtype in (torch.uint8, torch.int64):
        truth = mask_like((8, 1024, 2048), device, dtype)
        noise = torch.rand(truth.shape, device=device) < 0.05
        pred = torch.where(noise | (truth == 255), torch.randint_like(truth, 0, CLASSES), truth)
        cases[f"labels 8x1024x2048 {dtype}"] = (truth, pred, None)
    truth = mask_like((8, 512, 1024), device, torch.int64)
    for dtype in (torch.bfloat16, torch.float32):
        scores = torch.randn((8, CLASSES, 512, 1024), device=device, dtype=dtype)
        cases[f"scores 8x19x512x1024 {dtype}"] = (truth, scores, 1)
    rows = []
    for name, (truth, pred, axis) in cases.items():
        rows.append(time_case(name, truth, pred, axis, device))
        print(json.dumps(rows[-1]), flush=True)
    return rows


def time_case(
    name: str, truth: torch.Tensor, pred: torch.Tensor, axis: int | None, device: str
) -> dict[str, object]:
    cm = fresh()
    times = {"segiou update": milliseconds(lambda: cm.update(truth, pred, argmax=axis))}
    torch.use_deterministic_algorithms(True)
    times["segiou update, deterministic"] = milliseconds(
        lambda: cm.update(truth, pred, argmax=axis)
    )
    torch.use_deterministic_algorithms(False)
    times["segiou compute"] = milliseconds(lambda: cm.update(truth, pred, argmax=axis).compute())
    start = time.perf_counter()
    for _ in range(20):
        cm.update(truth, pred, argmax=axis)
    times["segiou, host's share of an update"] = round(1e3 * (time.perf_counter() - start) / 20, 4)
    torch.cuda.synchronize()
    if axis is not None:
        times["argmax alone"] = milliseconds(lambda: pred.argmax(axis))
    for peer, metric in peers(device).items():
        if metric is None:
            times[peer] = milliseconds(
                lambda: formula(truth, pred if axis is None else pred.argmax(axis), CLASSES)
            )
        else:
            times[peer] = milliseconds(lambda metric=metric: metric.update(pred, truth))
    return {"case": name, "milliseconds": times}


def time_histograms(device: str) -> dict[str, float]:
    """Ways to compute a histogram of 16.8 million cells of a 20-class table."""
    index = (mask_like((8, 1024, 2048), device, torch.int64).clamp(max=18) * 20).int()
    length, flat = 421, index.reshape(-1)
    ops = operations_for(index)
    wide, ones = flat.long(), torch.ones_like(flat)
    zeros = torch.zeros(length, dtype=torch.int32, device=device)
    zeros64 = zeros.long()
    ways = {
        "bincount int32": lambda: torch.bincount(flat, minlength=length),
        "bincount int64": lambda: torch.bincount(wide, minlength=length),
        "histc int32": lambda: torch.histc(flat, bins=length, min=0, max=length),
        "histc int64": lambda: torch.histc(wide, bins=length, min=0, max=length),
        "histc int16": lambda: torch.histc(flat.short(), bins=length, min=0, max=length),
        "histc float32": lambda: torch.histc(flat.float(), bins=length, min=0, max=length),
        "sort int16": lambda: ops.sorted_histogram(flat, length),
        "scatter_add int32": lambda: zeros.clone().scatter_add_(0, wide, ones),
        "scatter_add int64": lambda: zeros64.clone().scatter_add_(0, wide, ones.long()),
        "index_select int32": lambda: zeros.index_select(0, flat),
        "take int64": lambda: zeros.take(wide),
        "clamp int64": lambda: wide.clamp(-1, 256),
        "amax of where": lambda: torch.where(flat == 7, wide, -5).amax(),
    }
    return {name: attempt(run) for name, run in ways.items()}


def attempt(run) -> float:
    try:
        return milliseconds(run)
    except (RuntimeError, NotImplementedError) as error:
        print(f"  not possible here: {str(error).splitlines()[0]}")
        return float("nan")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("there is no CUDA device here")
    device = "cuda"
    failed = failures(device)
    result = {
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "failures": failed,
        "cases": time_cases(device),
        "histograms": time_histograms(device),
    }
    for case in result["cases"]:
        print(f"\n{case['case']}")
        for name, ms in case["milliseconds"].items():
            print(f"  {name:44} {ms:10.3f} ms")
    print("\nhistograms of 16.8 M cells")
    for name, ms in result["histograms"].items():
        print(f"  {name:44} {ms:10.3f} ms")
    print(json.dumps(result))
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
