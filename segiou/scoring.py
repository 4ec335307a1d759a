"""Pairs → a run, in parallel: the one place where files are read and counted."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from segiou.classes import ClassOptions, Labels
from segiou.confusion import ConfusionMatrix
from segiou.counting import Encoding, UndeclaredValuesError
from segiou.counting.pairs import Unassigned
from segiou.pairing import Pair, Pairing, find_masks, pair_folders
from segiou.protocols import Protocol, load_protocol
from segiou.readers import MaskError, read_mask
from segiou.run import ImageCount, Problem, Run

__all__ = ["DataError", "PairScorer", "score", "score_folder", "score_pairs"]

Progress = Callable[[int, int], None]


class DataError(ValueError):
    """Problems of a data set, all of them.

    Attributes
    ----------
    problems : tuple of Problem
    """

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        count = len(self.problems)
        head = "1 problem" if count == 1 else f"{count} problems"
        super().__init__(f"{head}:\n" + "\n".join(f"  {p}" for p in self.problems))

    def __reduce__(self) -> tuple[Any, ...]:
        return (DataError, (self.problems,))


@dataclass(frozen=True)
class PairScorer:
    """Reads and counts one pair of files; small, so that it can be sent to workers.

    Attributes
    ----------
    options : ClassOptions
    allow_lossy : bool
        Whether JPEG masks are taken.
    resize_pred : {"nearest"}, optional
        Resize predictions, never truth, to the truth's size.
    """

    options: ClassOptions
    allow_lossy: bool = False
    resize_pred: Literal["nearest"] | None = None

    def __call__(self, pairs: Sequence[Pair]) -> list[ImageCount | list[Problem]]:
        """Score a batch; a pair that cannot be scored gives its problems."""
        encoding = self.options.encoding()
        return [self._score(pair, encoding) for pair in pairs]

    def _score(self, pair: Pair, encoding: Encoding) -> ImageCount | list[Problem]:
        problems = []
        arrays = []
        for path, labels in (
            (pair.truth, self.options.labels),
            (pair.pred, self.options.pred_labels),
        ):
            try:
                arrays.append(read_mask(path, labels, allow_lossy=self.allow_lossy))
            except MaskError as error:
                problems.append(Problem(error.path, error.problem))
        if problems:
            return problems
        truth, pred = arrays
        if truth.shape != pred.shape:
            if self.resize_pred is None or truth.ndim != pred.ndim:
                return [Problem(pair.pred, _size_text(pair, truth.shape, pred.shape))]
            pred = resized_nearest(pred, truth.shape)
        try:
            count = encoding.count(truth, pred)
        except UndeclaredValuesError as error:
            path = pair.truth if error.side == "truth" else pair.pred
            return [Problem(path, undeclared_text(error, self.options.num_classes))]
        return ImageCount.of(pair.id, count, truth=pair.truth, pred=pair.pred)


def resized_nearest(array: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """Resize a label array by taking the nearest pixel centre along each axis."""
    for axis, (old, new) in enumerate(zip(array.shape, shape, strict=True)):
        nearest = ((2 * np.arange(new) + 1) * old) // (2 * new)
        array = array.take(nearest, axis=axis)
    return array


def _size_text(pair: Pair, truth: tuple[int, ...], pred: tuple[int, ...]) -> str:
    def size(shape: tuple[int, ...]) -> str:
        return f"{shape[1]} × {shape[0]}" if len(shape) == 2 else f"shape {shape}"

    return (
        f"is {size(pred)} pixels, but its truth {pair.truth} is {size(truth)}; predict at the "
        "truth's size, or resize predictions: resize_pred='nearest' (--resize-pred nearest)"
    )


def undeclared_text(error: UndeclaredValuesError, num_classes: int) -> str:
    """What undeclared values in a file most likely mean, and the options that take them."""
    values = error.values
    ranked = sorted(values.items(), key=lambda item: -item[1])
    shown = ", ".join(f"{value} ({count} px)" for value, count in ranked[:6])
    more = f" and {len(ranked) - 6} more values" if len(ranked) > 6 else ""
    text = f"has values that are no class: {shown}{more}"
    if len(values) > max(8, num_classes):
        return (
            f"{text}; so many values look like a mask that was resized with interpolation or "
            "saved with loss: make it again with nearest neighbour, as PNG"
        )
    if set(values) == {255} and num_classes <= 2:
        text += "; a 0/255 mask? labels='binary' (--labels binary) reads both"
    if error.side == "truth":
        options = " ".join(f"--ignore {value}" for value, _ in ranked[:6])
        return f"{text}; add them to the label set, or drop their pixels: {options}"
    return (
        f"{text}, on pixels that are not ignored; add them to the label set, or count them as "
        "missed: unassigned='count' (--unassigned count)"
    )


def score_pairs(
    pairs: Iterable[Pair],
    scorer: PairScorer,
    *,
    workers: int | None = None,
    executor: Executor | None = None,
    batch: int = 8,
    total: int = 0,
    progress: Progress | None = None,
) -> Iterator[ImageCount | list[Problem]]:
    """Score pairs as they finish, with a bounded number under way.

    Parameters
    ----------
    pairs : iterable of Pair
    scorer : PairScorer
    workers : int, optional
        Threads; as many as processors by default.
    executor : concurrent.futures.Executor, optional
        Used instead of threads, and left open.
    batch : int
        Pairs a task.
    total : int
        Number of pairs, for ``progress``.
    progress : callable, optional
        Called with pairs done and total.
    """
    own = executor is None
    workers = workers or os.cpu_count() or 1
    pool = executor or ThreadPoolExecutor(workers, thread_name_prefix="segiou")
    queue = iter(pairs)
    running: set[Future[list[ImageCount | list[Problem]]]] = set()
    done = 0
    try:
        while True:
            while len(running) < 4 * workers and (chunk := list(islice(queue, batch))):
                running.add(pool.submit(scorer, chunk))
            if not running:
                return
            finished, running = wait(running, return_when=FIRST_COMPLETED)
            for future in finished:
                for result in future.result():
                    done += 1
                    if progress is not None:
                        progress(done, total)
                    yield result
    finally:
        for future in running:
            future.cancel()
        if own:
            pool.shutdown(wait=True, cancel_futures=True)


def score_folder(
    truth: str | Path,
    pred: str | Path,
    *,
    labels: Labels,
    pred_labels: Labels | None = None,
    ignore: int | str | Iterable[int | str] = (),
    exclude: int | str | Iterable[int | str] = (),
    unassigned: Unassigned = "error",
    protocol: Protocol | str = "segiou",
    truth_suffix: str | None = None,
    pred_suffix: str | None = None,
    key: str | None = None,
    missing: Literal["error", "skip"] = "error",
    extra: Literal["error", "skip"] = "error",
    on_error: Literal["stop", "skip"] = "stop",
    allow_lossy: bool = False,
    resize_pred: Literal["nearest"] | None = None,
    workers: int | None = None,
    executor: Executor | None = None,
    progress: Progress | None = None,
    name: str = "",
) -> Run:
    """Score a folder of predicted masks against a folder of true ones.

    Parameters
    ----------
    truth, pred : str or path
        Two folders, or two files.
    labels, pred_labels, ignore, exclude, unassigned
        As :class:`segiou.ConfusionMatrix`.
    protocol : Protocol or str
        By which rule the run's reports are made.
    truth_suffix, pred_suffix, key
        As :func:`segiou.pairing.pair_folders`.
    missing, extra : {"error", "skip"}
        What truth without a prediction, or the other way round, is.
    on_error : {"stop", "skip"}
        Whether a pair that cannot be scored stops the run, when all pairs were
        tried, or is left out and listed in ``Run.skipped``.
    allow_lossy, resize_pred
        As :class:`PairScorer`.
    workers, executor, progress
        As :func:`score_pairs`.
    name : str
        What is scored; by default the prediction's folder.

    Returns
    -------
    Run

    Raises
    ------
    DataError
        With everything that is wrong with the files.
    ValueError
        If classes or options do not fit together.
    """
    options = ClassOptions.of(
        labels, pred_labels=pred_labels, ignore=ignore, exclude=exclude, unassigned=unassigned
    )
    options.warn_of_ignored_classes(stacklevel=3)
    rule = load_protocol(protocol)
    pairing = pair_paths(truth, pred, truth_suffix=truth_suffix, pred_suffix=pred_suffix, key=key)
    problems = pairing_problems(pairing, missing, extra)
    scorer = PairScorer(options, allow_lossy, resize_pred)
    images, skipped = [], []
    for result in score_pairs(
        pairing.pairs,
        scorer,
        workers=workers,
        executor=executor,
        total=len(pairing.pairs),
        progress=progress,
    ):
        if isinstance(result, ImageCount):
            images.append(result)
        else:
            skipped += result
    skipped.sort(key=lambda p: p.where)
    if on_error == "stop":
        problems += skipped
    if not images and not problems:
        problems = skipped or [Problem(str(pred), "no pair could be scored")]
    if problems:
        raise DataError(problems)
    left_out = tuple(skipped) + _left_out(pairing, missing, extra)
    provenance = {"truth": str(truth), "pred": str(pred), "pairing": pairing.rule}
    return Run(options, tuple(images), left_out, name or str(pred), rule, provenance)


def pair_paths(
    truth: str | Path,
    pred: str | Path,
    *,
    truth_suffix: str | None = None,
    pred_suffix: str | None = None,
    key: str | None = None,
) -> Pairing:
    """Pair two folders, or two files.

    Raises
    ------
    DataError
        If a folder is missing, unreadable or empty, both are one, or a file
        stands against a folder.
    """
    paths = [Path(p).expanduser() for p in (truth, pred)]
    if all(p.exists() for p in paths) and paths[0].samefile(paths[1]):
        text = "truth and prediction are the same; give two different folders"
        raise DataError([Problem(str(truth), text)])
    if all(p.is_file() for p in paths):
        pair = Pair(paths[0].stem, str(paths[0]), str(paths[1]))
        return Pairing((pair,), (), (), (), "two files")
    files, problems = [], []
    for path in paths:
        try:
            files.append(find_masks(path))
        except ValueError as error:
            where, _, text = str(error).partition(": ")
            problems.append(Problem(where, text))
    if problems:
        raise DataError(problems)
    return pair_folders(*files, truth_suffix=truth_suffix, pred_suffix=pred_suffix, key=key)


def pairing_problems(
    pairing: Pairing, missing: Literal["error", "skip"], extra: Literal["error", "skip"]
) -> list[Problem]:
    """What is wrong with a pairing."""
    problems = [
        Problem(paths[0], f"shares the key {key!r} with {', '.join(paths[1:])}; keep one of them")
        for key, paths in pairing.duplicates
    ]
    if missing == "error":
        text = "has no prediction; make it, or leave it out: missing='skip' (--missing skip)"
        problems += [Problem(path, text) for path in pairing.missing]
    if extra == "error":
        text = "has no truth; remove it, or leave it out: extra='skip' (--extra skip)"
        problems += [Problem(path, text) for path in pairing.extra]
    if not pairing.pairs:
        text = (
            f"no file goes with any other (by {pairing.rule}); say what the names differ in: "
            "truth_suffix, pred_suffix or key (--truth-suffix, --pred-suffix, --key)"
        )
        problems.insert(0, Problem("pairing", text))
    return problems


def _left_out(pairing: Pairing, missing: str, extra: str) -> tuple[Problem, ...]:
    left = [Problem(path, "has no prediction") for path in pairing.missing if missing == "skip"]
    left += [Problem(path, "has no truth") for path in pairing.extra if extra == "skip"]
    return tuple(left)


def score(
    truth: Any,
    pred: Any,
    *,
    labels: Labels,
    ids: Sequence[str] | None = None,
    argmax: int | None = None,
    threshold: float | None = None,
    mask: Any = None,
    protocol: Protocol | str = "segiou",
    name: str = "",
    **options: Any,
) -> Run:
    """Score arrays: a batch of label images, keeping the counts of each.

    Parameters
    ----------
    truth, pred : sequence of array_like
        One label image (or scores, with a rule) an entry; the first axis of an
        array counts the images. A single 2-D array of truth is one image.
    labels
        As :class:`segiou.ConfusionMatrix`.
    ids : sequence of str, optional
        Names of the images; their numbers by default.
    argmax, threshold : optional
        Rule for scores; ``argmax`` is the class axis of one image's scores.
    mask : sequence of array_like of bool, optional
        Valid pixels of each image.
    protocol, name
        As :func:`score_folder`.
    **options
        Others of :class:`segiou.ConfusionMatrix`.

    Returns
    -------
    Run

    Raises
    ------
    ValueError
        If there are not as many predictions as truths, or a pair cannot be
        counted; the message names the image.

    Examples
    --------
    >>> run = score([[0, 1], [1, 1]], [[0, 1], [0, 1]], labels=["no", "yes"])
    >>> round(run.report().mean_iou, 4)
    0.5833
    """
    matrix = ConfusionMatrix(labels, **options)
    truths, preds, masks = _as_images(truth, pred, mask)
    names = [str(i) for i in range(len(truths))] if ids is None else [str(i) for i in ids]
    for what, items in (("predictions", preds), ("masks", masks), ("ids", names)):
        if len(items) != len(truths):
            msg = f"there are {len(truths)} truth images but {len(items)} {what}"
            raise ValueError(msg)
    images = []
    for image, t, p, m in zip(names, truths, preds, masks, strict=True):
        try:
            count = matrix.count(t, p, mask=m, argmax=argmax, threshold=threshold)
        except (ValueError, TypeError) as error:
            error.add_note(f"in image {image!r}")
            raise
        images.append(ImageCount.of(image, count))
    return Run(matrix.options, tuple(images), name=name, protocol=load_protocol(protocol))


def _as_images(truth: Any, pred: Any, mask: Any) -> tuple[list[Any], list[Any], list[Any]]:
    single = _is_one_image(truth)
    truths, preds = ([truth], [pred]) if single else (list(truth), list(pred))
    if mask is None:
        return truths, preds, [None] * len(truths)
    return truths, preds, [mask] if single else list(mask)


def _is_one_image(truth: Any) -> bool:
    if isinstance(truth, (list, tuple)):
        first = truth[0] if truth else None
        return isinstance(first, (list, tuple)) and not (
            first and isinstance(first[0], (list, tuple, np.ndarray))
        )
    return len(np.shape(truth)) <= 2
