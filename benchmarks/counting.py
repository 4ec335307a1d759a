"""Speed of counting label pairs: ``python -m benchmarks.counting [--rounds N] [--quick]``.

All tools alternate within each round and ratios are computed within a round, so load on the
machine affects all of them equally. Medians of processor time over the rounds are shown. One
thread; reading is the fastest of three NumPy reductions over the same bytes.
"""

from __future__ import annotations

import argparse
import platform
from collections.abc import Iterable
from dataclasses import replace
from statistics import median
from time import process_time

import numpy as np

from benchmarks import inputs, peers
from benchmarks.inputs import Task
from benchmarks.peers import Contestant
from segiou.counting import _kernel

IDIOM = "bincount"
OURS = "segiou"
WARM_UP = 3

Times = dict[str, list[float]]


def seconds(count: Contestant, task: Task, many: int) -> float:
    # Untimed first, so that no tool is affected by the cache contents of the previous one:
    # a victim cache needs several passes to fill.
    for _ in range(1 + WARM_UP * (many > 1)):
        count(task)
    start = process_time()
    for _ in range(many):
        count(task)
    return (process_time() - start) / many


def check(task: Task, contestants: dict[str, Contestant]) -> None:
    answers = peers.expected(task)
    for name, count in contestants.items():
        if name not in peers.READERS and not peers.is_right(count(task), answers):
            msg = f"{name} miscounts {task.name}"
            raise AssertionError(msg)


def race(task: Task, contestants: dict[str, Contestant], rounds: int) -> Times:
    """Seconds per tool and round, after a warm-up round."""
    check(task, contestants)
    times: Times = {name: [] for name in contestants}
    repeats = max(2, 1_500_000 // task.pixels)
    for number in range(rounds + 1):
        for name in contestants:
            # Slow tools are not repeated.
            many = 1 if name == IDIOM else repeats
            taken = seconds(contestants[name], task, many)
            if number:
                times[name].append(taken)
    return times


def ratio(times: Times, slow: str, fast: str) -> float:
    return median(s / f for s, f in zip(times[slow], times[fast], strict=True))


def read_share(times: Times, name: str) -> float:
    """Speed relative to the fastest way of only reading, in the same round."""
    reads = zip(*(times[reader] for reader in peers.READERS), strict=True)
    return median(min(r) / own for r, own in zip(reads, times[name], strict=True))


def per_pixel(task: Task, times: Times, name: str) -> float:
    return median(times[name]) / task.pixels * 1e9


def table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    lines = ["| " + " | ".join(row) + " |" for row in [header, *rows]]
    lines.insert(1, "|" + "---|" * lines[0].count(" | ") + "---|")
    return "\n".join(lines) + "\n"


def ours_and_floor(task: Task) -> dict[str, Contestant]:
    backends = {f"kernel {name}": peers.kernel(task, name) for name in _kernel.BACKENDS}
    return {OURS: peers.segiou(task), **backends, **peers.READERS}


def main_table(tasks: Iterable[Task], rounds: int) -> str:
    rows = []
    for task in tasks:
        contestants = ours_and_floor(task) | {IDIOM: peers.each(peers.bincount(task.num_classes))}
        times = race(task, contestants, rounds)
        for name in contestants:
            if name not in (IDIOM, *peers.READERS):
                rows.append(
                    [
                        task.name if name == OURS else "",
                        name,
                        f"{per_pixel(task, times, name):.3f}",
                        f"{ratio(times, IDIOM, name):.1f}",
                        f"{read_share(times, name):.2f}",
                    ]
                )
        rows.append(["", "np.bincount", f"{per_pixel(task, times, IDIOM):.3f}", "1", ""])
    return table(["input", "counted by", "ns per pixel", "× the idiom", "of read speed"], rows)


def peer_table(task: Task, rounds: int) -> str:
    contestants = {OURS: peers.segiou(task), IDIOM: peers.each(peers.bincount(task.num_classes))}
    contestants |= peers.peers(task.num_classes)
    times = race(task, contestants, rounds)
    rows = [
        [name, f"{per_pixel(task, times, name):.2f}", f"{ratio(times, name, OURS):.0f}"]
        for name in contestants
    ]
    return table(["same pairs", "ns per pixel", "× the time of segiou"], rows)


def compiled_table(rounds: int) -> str:
    """The packages that count by compiled code of their own, beside reading the same arrays."""
    camvid = inputs.camvid()
    types = "uint8", "uint16", "int32", "int64"
    tasks = [task.cast(dtype) for task in (camvid, inputs.noise(19)) for dtype in types]
    tasks += [inputs.noise(150).cast(dtype) for dtype in types]
    rows, others = [], ("hotcoco", "vernier")
    for task in tasks:
        found = peers.peers(task.num_classes)
        compiled = {name: found[name] for name in others if name in found}
        times = race(task, {OURS: peers.segiou(task), **compiled, **peers.READERS}, rounds)
        row = [task.name, f"{per_pixel(task, times, OURS):.2f}"]
        row += [f"{1 / read_share(times, OURS):.1f}", f"{ratio(times, OURS, 'sum'):.1f}"]
        row += [f"{ratio(times, name, OURS):.1f}" if name in found else "" for name in others]
        rows.append(row)
    return table(
        ["input", "ns per pixel", "× reading", "× sum", *(f"× {name}" for name in others)], rows
    )


def growth_table(tasks: Iterable[tuple[str, Task]], rounds: int) -> str:
    rows = []
    for label, task in tasks:
        best = f"kernel {_kernel.BACKENDS[0]}"
        times = race(
            task, {OURS: peers.segiou(task), best: peers.kernel(task, _kernel.BACKENDS[0])}, rounds
        )
        rows.append([label, *(f"{per_pixel(task, times, name):.3f}" for name in times)])
    return table(["ns per pixel", OURS, "kernel"], rows)


def growing(camvid: Task) -> Iterable[tuple[str, Task]]:
    for classes in (19, 64, 150, 256):
        yield f"camvid regions, {classes} classes", inputs.spread(camvid, classes)
    for classes in (2, 19, 64, 150, 256):
        yield f"noise, {classes} classes", inputs.noise(classes)
    for height in (60, 240, 960, 3840):
        yield f"noise, 19 classes, {height} × 2048", inputs.noise(19, height)


def wide(camvid: Task) -> Iterable[Task]:
    """Eight bytes per label: all frames, read from memory, and a part that fits in cache."""
    yield camvid.cast("int64")
    frame = camvid.first(1).cast("int64")
    yield replace(frame, name=f"one frame of {frame.name}")
    yield replace(
        frame,
        name=f"a third of a frame of {frame.name}",
        truths=[frame.truths[0][:120]],
        preds=[frame.preds[0][:120]],
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15, help="rounds per table")
    parser.add_argument("--quick", action="store_true", help="a few frames and rounds only")
    options = parser.parse_args()
    rounds = 3 if options.quick else options.rounds
    camvid = inputs.camvid()
    camvid = camvid.first(12) if options.quick else camvid
    print(f"{platform.machine()}, kernel {_kernel.BACKENDS[0]}, NumPy {np.__version__}\n")
    tasks = [camvid, inputs.davis(), inputs.noise(19), inputs.noise(150), *wide(camvid)]
    print(main_table(tasks, rounds))
    print(peer_table(camvid.first(12), max(3, rounds // 5)))
    print(compiled_table(rounds))
    print(growth_table(growing(camvid.first(12)), rounds))


if __name__ == "__main__":
    main()
