"""Labels from scores: segiou compared with NumPy's and torch's argmax and with only reading.

``python -m benchmarks.scores [--classes N …]`` prints nanoseconds per pixel, the fastest of
alternating rounds on one thread; all results are checked.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
import torch

from segiou.counting import reference
from segiou.counting.scores import scores_to_labels

CLASSES = (2, 11, 19, 150)
DTYPES = ("float32", "float16", "bfloat16")
#: Larger than every cache: 2^25 scores, in images of 512 x 1024.
SCORES, IMAGE = 1 << 25, (512, 1024)
ROUNDS = 9


def batch(classes: int, dtype: str, layout: str):
    """Scores of a batch as a torch tensor, their class axis, and the expected labels."""
    generator = torch.Generator().manual_seed(0)
    images = max(1, SCORES // (classes * IMAGE[0] * IMAGE[1]))
    scores = torch.randn((images, classes, *IMAGE), generator=generator)
    scores = scores.to(getattr(torch, dtype))
    if layout == "NHWC":
        scores = scores.permute(0, 2, 3, 1).contiguous()
    axis = 1 if layout == "NCHW" else -1
    return scores, axis, np.argmax(scores.float().numpy(), axis)


def contestants(scores, axis: int) -> dict[str, Callable[[], object]]:
    """Functions by name; all but the reader return labels."""
    bits = scores.view(torch.int16 if scores.itemsize == 2 else torch.int32).numpy()
    words = bits.reshape(-1).view(np.uint64)
    plain = scores.float().numpy() if scores.dtype == torch.bfloat16 else scores.numpy()
    known = scores.numpy() if scores.dtype != torch.bfloat16 else bits.view([("bfloat16", "u2")])
    planes = np.moveaxis(known, axis, 0)
    labels = np.empty(planes.shape[1:], np.min_scalar_type(len(planes) - 1))

    def in_numpy():
        assert reference.decide_into(planes, None, labels) == 0
        return labels

    return {
        "just reading": lambda: np.bitwise_or.reduce(words),
        "segiou": lambda: scores_to_labels(scores, argmax=axis),
        "segiou's NumPy path": in_numpy,
        "np.argmax": lambda: plain.argmax(axis),
        "torch.argmax": lambda: scores.argmax(axis).numpy(),
    }


NAMES = ("just reading", "segiou", "segiou's NumPy path", "np.argmax", "torch.argmax")


def fastest(runs: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Seconds, in alternating rounds; slow tools run fewer."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    for turn in range(ROUNDS):
        for name, run in runs.items():
            if turn > 2 and min(times[name]) > 0.5:
                continue
            start = time.perf_counter()
            run()
            times[name].append(time.perf_counter() - start)
    return {name: min(taken) for name, taken in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--classes", type=int, nargs="+", default=CLASSES)
    torch.set_num_threads(1)
    for classes in parser.parse_args().classes:
        for dtype in DTYPES:
            for layout in ("NCHW", "NHWC"):
                scores, axis, answer = batch(classes, dtype, layout)
                runs = contestants(scores, axis)
                for name in NAMES[1:]:
                    assert np.array_equal(runs[name](), answer), name
                times = {k: 1e9 * t / answer.size for k, t in fastest(runs).items()}
                shown = "  ".join(f"{name} {times[name]:.2f}" for name in NAMES)
                ratio = times["segiou"] / times["just reading"]
                print(
                    f"{classes:3} {dtype:8} {layout}  {shown}  ({ratio:.1f} × reading)", flush=True
                )


if __name__ == "__main__":
    main()
