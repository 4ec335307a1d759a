"""Check and time the counting of CUDA tensors: ``python benchmarks/gpu_hooks.py [--json FILE]``.

Needs torch with CUDA and nothing else; torchmetrics is compared with where it
is installed, else its formula, written out here. The checks raise; the times
are medians, in milliseconds, with the device waited for around each.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from segiou import ConfusionMatrix
from segiou.counting.operations import operations_for
from segiou.counting.tensors import DeviceValuesError

DTYPES = ("bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64")
CLASSES = 19


def same(host: ConfusionMatrix, device: ConfusionMatrix, what: str) -> None:
    if host != device:
        msg = f"{what}: the device counts otherwise\n{host.matrix - device.matrix}"
        raise AssertionError(msg)


def fresh(classes: int = CLASSES) -> ConfusionMatrix:
    return ConfusionMatrix(classes, ignore=255, unassigned="count")


def check_dtypes(device: str) -> None:
    rng = np.random.default_rng(0)
    for t_dtype in DTYPES:
        for p_dtype in DTYPES:
            top = [2 if d == "bool" else 120 for d in (t_dtype, p_dtype)]
            classes = 2 if t_dtype == "bool" else 120
            truth = rng.integers(0, top[0], (3, 67, 129)).astype(t_dtype)
            pred = rng.integers(0, top[1], (3, 67, 129)).astype(p_dtype)
            if t_dtype not in ("bool", "int8"):
                truth[:, ::5] = 255
            tensors = [torch.from_numpy(x).to(device) for x in (truth, pred)]
            host, there = fresh(classes).update(truth, pred), fresh(classes).update(*tensors)
            same(host, there, f"truth {t_dtype}, pred {p_dtype}")


def check_sizes_and_strides(device: str) -> None:
    rng = np.random.default_rng(1)
    for classes in (1, 2, 19, 150, 214, 300, 1000):
        truth, pred = (rng.integers(0, classes, (2, 301, 217)) for _ in range(2))
        host = ConfusionMatrix(classes).update(truth, pred)
        tensors = [torch.from_numpy(x).to(device) for x in (truth, pred)]
        same(host, ConfusionMatrix(classes).update(*tensors), f"{classes} classes")
        turned = [x.permute(2, 0, 1)[::2] for x in tensors]
        host = ConfusionMatrix(classes).update(*(x.cpu() for x in turned))
        same(host, ConfusionMatrix(classes).update(*turned), f"{classes} classes, strides")
        mixed = ConfusionMatrix(classes).update(truth, tensors[1], mask=truth > 0)
        same(ConfusionMatrix(classes).update(truth, pred, mask=truth > 0), mixed, "mask, mixed")
    empty = torch.zeros((0, 4), dtype=torch.uint8, device=device)
    same(fresh().update(np.zeros((0, 4), np.uint8), np.zeros((0, 4), np.uint8)),
         fresh().update(empty, empty), "empty")  # fmt: skip


def check_scores(device: str) -> None:
    generator = torch.Generator(device).manual_seed(2)
    truth = torch.randint(0, CLASSES, (2, 65, 129), device=device, generator=generator)
    truth[:, ::7] = 255
    for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.float64):
        scores = torch.randn((2, CLASSES, 65, 129), device=device, generator=generator).to(dtype)
        scores = (scores * 4).round()  # many ties
        host = fresh().update(truth.cpu(), scores.cpu(), argmax=1)
        same(host, fresh().update(truth, scores, argmax=1), f"argmax of {dtype}")
        last = scores.permute(0, 2, 3, 1)
        same(host, fresh().update(truth, last, argmax=-1), f"argmax of {dtype}, channels last")
        same(host, fresh().update(truth, scores.requires_grad_(), argmax=1), "gradients")
        two = ConfusionMatrix(2, ignore=()).update(truth.cpu() > 3, scores[:, 0].detach().cpu(),
                                                   threshold=0.5)  # fmt: skip
        there = ConfusionMatrix(2).update(truth > 3, scores[:, 0].detach(), threshold=0.5)
        same(two, there, f"threshold of {dtype}")


def check_errors(device: str) -> None:
    cm = ConfusionMatrix(3, ignore=255)
    cm.update(torch.tensor([0, 19, 255], device=device), torch.tensor([0, 0, 77], device=device))
    for read in (cm.mean_iou, cm.compute):
        try:
            read()
        except DeviceValuesError as error:
            assert error.largest == 19, error
        else:
            msg = "an undeclared value went unnoticed"
            raise AssertionError(msg)


def check_no_synchronisation(device: str, deterministic: bool) -> None:
    torch.use_deterministic_algorithms(deterministic)
    rng = np.random.default_rng(3)
    host, there = fresh(), fresh()
    for step in range(5):
        truth, pred = (rng.integers(0, CLASSES, (2, 128, 256)) for _ in range(2))
        scores = rng.normal(size=(2, CLASSES, 128, 256)).astype(np.float32)
        tensors = [torch.from_numpy(x).to(device) for x in (truth, pred, scores)]
        torch.cuda.synchronize()
        # The first batch moves the look-up tables; later ones must not wait.
        torch.cuda.set_sync_debug_mode("error" if step else "default")
        try:
            there.update(tensors[0], tensors[1])
            there.update(tensors[0], tensors[2], argmax=1)
        finally:
            torch.cuda.set_sync_debug_mode("default")
        host.update(truth, pred).update(truth, scores, argmax=1)
    same(host, there, f"deterministic={deterministic}")
    torch.use_deterministic_algorithms(False)


def check_memory(device: str) -> None:
    truth = torch.zeros((64, 64), dtype=torch.uint8, device=device)
    cm = fresh().update(truth, truth)
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    for _ in range(10_000):
        cm.update(truth, truth)
    assert torch.cuda.memory_allocated() == before, "memory grows with the updates"
    assert cm.pixels == 10_001 * 64 * 64


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
    """Labels in regions, as masks have them, with an ignored border and some noise."""
    coarse = torch.randint(0, CLASSES, (shape[0], 1, 16, 32), device=device).float()
    labels = torch.nn.functional.interpolate(coarse, size=shape[1:], mode="nearest")[:, 0]
    labels[:, :: max(1, shape[1] // 16)] = 255
    return labels.to(dtype)


def formula(truth: torch.Tensor, pred: torch.Tensor, classes: int) -> torch.Tensor:
    """The usual matrix: keep the valid pixels, one bincount of truth * C + pred."""
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
    """The ways to a histogram of 16.8 million cells of a 20-class table."""
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
        "sort int16": lambda: ops.by_sorting(flat, length),
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
    failures = {}
    checks = {
        "dtypes": lambda: check_dtypes(device),
        "sizes and strides": lambda: check_sizes_and_strides(device),
        "scores": lambda: check_scores(device),
        "errors": lambda: check_errors(device),
        "no synchronisation": lambda: check_no_synchronisation(device, deterministic=False),
        "deterministic": lambda: check_no_synchronisation(device, deterministic=True),
        "memory": lambda: check_memory(device),
    }
    for name, check in checks.items():
        try:
            check()
            print(f"ok      {name}", flush=True)
        except Exception as error:  # noqa: BLE001
            torch.use_deterministic_algorithms(False)
            failures[name] = f"{type(error).__name__}: {error}"
            print(f"FAILED  {name}: {failures[name]}", flush=True)
    result = {
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "failures": failures,
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
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
