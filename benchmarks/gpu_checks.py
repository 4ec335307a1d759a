"""Checks of counting CUDA tensors, run by ``benchmarks/gpu_hooks.py``; a failed check raises."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from segiou import ConfusionMatrix
from segiou.counting.device_counts import DeviceValuesError

DTYPES = ("bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64")
CLASSES = 19


def same(host: ConfusionMatrix, device: ConfusionMatrix, what: str) -> None:
    if host != device:
        msg = f"{what}: the device's counts differ\n{host.matrix - device.matrix}"
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
        plane = scores[:, 0].detach()
        plane[0, 0] = 1 / 3  # rounded to its type, as the threshold is
        for threshold in (0.5, 1 / 3):
            host = ConfusionMatrix(2).update(truth.cpu() > 3, plane.cpu(), threshold=threshold)
            there = ConfusionMatrix(2).update(truth > 3, plane, threshold=threshold)
            same(host, there, f"threshold {threshold} of {dtype}")


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
        # The first batch copies the look-up tables; later ones must not wait.
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


def failures(device: str) -> dict[str, str]:
    """Run all checks, print the result of each and return the failures."""
    checks: dict[str, Callable[[], None]] = {
        "dtypes": lambda: check_dtypes(device),
        "sizes and strides": lambda: check_sizes_and_strides(device),
        "scores": lambda: check_scores(device),
        "errors": lambda: check_errors(device),
        "no synchronisation": lambda: check_no_synchronisation(device, deterministic=False),
        "deterministic": lambda: check_no_synchronisation(device, deterministic=True),
        "memory": lambda: check_memory(device),
    }
    found = {}
    for name, check in checks.items():
        try:
            check()
            print(f"ok      {name}", flush=True)
        except Exception as error:  # noqa: BLE001
            torch.use_deterministic_algorithms(False)
            found[name] = f"{type(error).__name__}: {error}"
            print(f"FAILED  {name}: {found[name]}", flush=True)
    return found
