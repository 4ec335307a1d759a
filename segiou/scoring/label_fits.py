"""Options that fit the values of masks, with the mean IoU of each.

Undeclared values, and classes that overlap others more than themselves, come from truth and
predictions with different numberings. The pixels of each pair of values are counted once, and every
option is tried on these counts. The printed ones are then scored as if they were passed.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from segiou._support.numbers import percent
from segiou._support.text import plural
from segiou.labels.class_options import ClassOptions
from segiou.labels.label_set import LabelClass, LabelSet
from segiou.labels.loading import labelset_names, load_labels, presets_with
from segiou.masks.sources.pairing import Pair
from segiou.scoring.file_values import FileContent, greys_to_values, read_values
from segiou.scoring.inspection import summary_of
from segiou.scoring.label_set_match import spaced
from segiou.scoring.overlaps import MOST_VALUES, ious, mean_iou
from segiou.scoring.pair import PairScorer
from segiou.scoring.problems import may_be_ids, one_class_text
from segiou.scoring.trials import SAMPLE, mean_lines, sampled, scored

#: Most classes for which each in turn is assumed to be missing from the predictions.
_MOST_LEFT_OUT = 64
#: Factor by which another numbering must raise the mean IoU.
_FACTOR = 1.5
#: The same if values are undeclared: one class of four that is numbered differently is a third.
_UNDECLARED = 1.25
#: Options that are printed.
_SHOWN = 3
#: Share of the classes of a preset that must occur to try its numberings.
_MOST_OCCUR = 0.75
#: Values that conventionally mark unlabelled pixels.
_VOID = {-1, 255, 65535}

Values = Sequence[Sequence[int]]


class _Fit(NamedTuple):
    """Options as printed, as arguments, and their mean IoU."""

    text: str
    arguments: dict[str, Any]
    mean_iou: float

    @property
    def is_named(self) -> bool:
        """Whether the classes of the truth have the names of a label set."""
        return load_labels(self.arguments["labels"]).name != "custom"


class _Numbering(NamedTuple):
    """The option for the predictions, as an argument, and the values of each class."""

    option: str
    given: Any
    values: Values
    #: Factor by which it must fit better than those before; rare classes overlap by chance.
    least: float


@dataclass(frozen=True)
class _Pixels:
    """Pixels of each pair of a truth value and a predicted value, (V, V)."""

    values: NDArray[np.object_]
    pairs: NDArray[np.int64]
    truths: Sequence[FileContent]

    def occurring(self, axis: int) -> set[int]:
        """The values in the truth (0) or the predictions (1)."""
        return {*self.values[self.pairs.sum(1 - axis) > 0].tolist()}

    def rows(self, classes: Values, ignored: Iterable[int]) -> NDArray[np.int64]:
        """Pixels of each class and predicted value, (C, V)."""
        kept = _owners(self.values, classes, {*ignored})
        return np.asarray(_one_hot(kept, len(classes)).T @ self.pairs)

    def matrix(self, rows: NDArray[np.int64], classes: Values) -> NDArray[np.int64]:
        """The confusion matrix if these are the values of the classes in predictions, (C, C)."""
        return np.asarray(rows @ _one_hot(_owners(self.values, classes), len(classes)))


def _owners(values: Iterable[int], classes: Values, ignored: Iterable[int] = ()) -> list[int]:
    owner = {value: c for c, several in enumerate(classes) for value in several}
    return [-1 if value in ignored else owner.get(value, -1) for value in values]


def _one_hot(codes: Sequence[int], number: int) -> NDArray[np.int64]:
    return np.asarray(np.array(codes)[:, None] == np.arange(number), np.int64)


def color_fits_text(scorer: PairScorer, pairs: Sequence[Pair], command: str = "") -> str:
    """The options that fit colour masks: presets with all of their colours; empty without any."""
    sample = sampled(pairs, SAMPLE)
    files = [read_values(scorer.truth_source, pair.truth) for pair in sample]
    files += [read_values(scorer.pred_source, pair.pred) for pair in sample]
    contents = (content for content in files if isinstance(content, FileContent))
    pixels = (content.pixels for content in contents if content.what == "colors")
    each = (bytes.fromhex(name[1:]) for name in chain.from_iterable(pixels))
    colors = {(red, green, blue) for red, green, blue in each}
    options = scorer.header.options
    for preset in presets_with(colors):
        others = ClassOptions.of(preset, ignore=options.ignore, unassigned=options.unassigned)
        header = replace(scorer.header, options=others)
        also = _joined(command, f"--labels {preset.name}")
        if text := fits_text(replace(scorer, header=header), pairs, command=also):
            return text
    return ""


def fits_text(
    scorer: PairScorer, pairs: Sequence[Pair], least: float | None = None, *, command: str = ""
) -> str:
    """The options that fit the masks, best first; empty if none is better than the given ones.

    If all values are declared, ``least`` is the mean IoU that others must exceed. ``command`` has
    the options of the scorer itself that were not given.
    """
    sample = sampled(pairs, SAMPLE)
    pixels = _pixels_of_pairs(scorer, sample)
    if pixels is None:
        return ""
    given = _fit_of_options(scorer.header.options, pixels)
    better = _better(given, [*_fits(scorer.header.options, pixels)], least or 0.0)
    scored_fits = (_with_mean_iou(scorer, fit, sample) for fit in better[:_SHOWN])
    tried = [fit for fit in scored_fits if fit is not None]
    if not (tried or command):
        return ""
    images = plural(len(sample), "image") + f" of {len(pairs)}" * (len(sample) < len(pairs))
    lead = f"Options that fit, with their mean IoU ({images}; none was applied, check the classes)"
    other = _with_mean_iou(scorer, given, sample) or given
    if least is not None:
        lead = (
            f"classes overlap others more than themselves (mean IoU {percent(other.mean_iou)}), as "
            f"if truth and predictions were numbered differently. {lead}"
        )
    else:
        tried.append(other)
    tried = [fit for fit in tried if not np.isnan(fit.mean_iou)]  # of ignored pixels alone
    if not tried:
        return ""
    rows = sorted(tried, key=lambda fit: (-round(fit.mean_iou, 9), len(fit.text)))
    lines = mean_lines((_joined(command, fit.text), fit.mean_iou) for fit in rows)
    return "\n".join([f"{lead}:", *lines])


def ids_text(scorer: PairScorer, pairs: Sequence[Pair]) -> str:
    """The options that read ids of objects as one class, on each side that has them."""
    options, sample = scorer.header.options, sampled(pairs, SAMPLE)
    sides = {"truth": scorer.truth_source, "pred": scorer.pred_source}
    sides_of_ids = []
    for index, (side, source) in enumerate(sides.items()):
        read = (read_values(source, pair.sides[index]) for pair in sample)
        pixels = (content.pixels for content in read if isinstance(content, FileContent))
        declared = options.labels.declared_values.union(options.ignore)
        values = {*chain.from_iterable(pixels)} - declared
        sides_of_ids += [side] * may_be_ids([*values], options)
    return one_class_text(sides_of_ids)


def _joined(command: str, options: str) -> str:
    """Options after those of a command, instead of its labels if they have others."""
    for name in re.findall(r"--(?:pred-)?labels(?=[ =])", options):
        command = re.sub(rf"(?<!\S){name}[ =]('[^']*'|\S)+\s?", "", command)
    return f"{command.strip()} {options}".strip()


def _better(given: _Fit, fits: Sequence[_Fit], least: float) -> list[_Fit]:
    """The other numberings that fit much better than the given one, best first."""
    plain = [given.mean_iou, *(fit.mean_iou for fit in fits if "pred-labels" not in fit.text)]
    best = max((fit.mean_iou for fit in fits), default=0.0)
    factor = _FACTOR if least else _UNDECLARED
    least = max(factor * np.nanmax([0.0, *plain]), best / 2, least)
    # Unnamed classes with the same mean are the same classes with other values.
    distinct = {(round(fit.mean_iou, 9), fit.is_named): fit for fit in reversed(fits)}
    kept = [fit for fit in fits if fit in distinct.values() and fit.mean_iou > least]
    return sorted(kept, key=lambda fit: -fit.mean_iou)


def _with_mean_iou(scorer: PairScorer, fit: _Fit, pairs: Sequence[Pair]) -> _Fit | None:
    """The options with the mean IoU that scoring gives; None if they do not fit."""
    run = scored(scorer, ClassOptions.of(**fit.arguments), pairs)
    return None if run is None else fit._replace(mean_iou=run.report().mean_iou)


def _pixels_of_pairs(scorer: PairScorer, pairs: Sequence[Pair]) -> _Pixels | None:
    """The pixels of pairs of values; None if files have other problems, names or many values."""
    options = scorer.header.options
    sides = options.labels, options.pred_labels
    values = {v for labels in sides for v in labels.declared_values}.union(options.ignore)
    read = [read_values(scorer.truth_source, pair.truth) for pair in pairs]
    truths = greys_to_values(read, sides[0])
    read = [read_values(scorer.pred_source, pair.pred) for pair in pairs]
    preds = greys_to_values(read, sides[1])
    for content in (*truths, *preds):
        if not isinstance(content, FileContent) or content.what == "names":
            return None
        values.update(content.pixels if content.what == "values" else ())
    several = sorted(values)
    if len(several) > MOST_VALUES:
        return None
    wide = ClassOptions(_class_per_value(several, sides[0]), _class_per_value(several, sides[1]))
    if (run := scored(scorer, wide, pairs)) is None:
        return None
    kept = [truth for truth in truths if isinstance(truth, FileContent)]
    return _Pixels(np.array(several, object), run._tally.table[:, :-1], kept)


def _class_per_value(values: Iterable[int], labels: LabelSet) -> LabelSet:
    """A class for each value, with the colours that a label set reads as the value."""
    colors = {label.values[0]: label.colors for label in labels.classes}
    if labels.ignore_colors:
        colors[labels.ignore[0]] = labels.ignore_colors
    return LabelSet("values", tuple(LabelClass(str(v), (v,), colors.get(v, ())) for v in values))


def _fit_of_options(options: ClassOptions, pixels: _Pixels) -> _Fit:
    """The given options, with undeclared values ignored and counted as missed."""
    known = options.labels.declared_values.union(options.ignore)
    ignored = sorted(pixels.occurring(0) - known)
    classes = _values_of(options.labels, options.pred_labels)
    rows = pixels.rows(options.labels.class_values, (*options.ignore, *ignored))
    matrix = pixels.matrix(rows, classes)
    text = [_option("--ignore", ",".join(map(str, ignored)))] if ignored else []
    arguments = _arguments(options, options.labels, options.pred_labels, ignored)
    if matrix.sum() < rows.sum() and options.unassigned == "error":
        arguments["unassigned"] = "count"
        text.append("--unassigned count")
    mean = mean_iou(matrix, rows.sum(1), options.include)
    return _Fit(" ".join(text), arguments, mean)


def _arguments(
    options: ClassOptions, labels: Any, pred_labels: Any, ignored: Iterable[int]
) -> dict[str, Any]:
    """Arguments of :meth:`ClassOptions.of` with other labels and more ignored values."""
    passed = [value for value in options.ignore if value not in options.labels.ignore]
    return {
        "labels": labels,
        "pred_labels": pred_labels,
        "ignore": [*passed, *ignored],
        "exclude": options.exclude,
        "unassigned": options.unassigned,
    }


def _fits(options: ClassOptions, pixels: _Pixels) -> Iterator[_Fit]:
    """Options that fit: for each label set of the truth, the best known numbering, and the best."""
    names = options.labels.class_names
    for option, given in _truths(options.labels, pixels):
        labels = load_labels(given)
        ignored = {*labels.ignore, *_arguments(options, given, None, ())["ignore"]}
        unknown = pixels.occurring(0) - labels.declared_values - ignored
        void = _VOID | ({0} if min(labels.declared_values) == 1 else set())
        same = all(labels.class_names[c : c + 1] == names[c : c + 1] for c in options.exclude)
        if not (same and unknown <= void):
            continue
        arguments = _arguments(options, given, None, sorted(unknown))
        rows = pixels.rows(labels.class_values, ignored | unknown)
        ignore = _option("--ignore", ",".join(map(str, sorted(unknown)))) if unknown else ""
        # Predictions with such values have no class there.
        void = _VOID & ignored
        kept, fits = ClassOptions.of(**arguments).include, [_Fit("", {}, 0.0)]
        for numbering in _numberings(options, labels, rows, pixels):
            matrix = pixels.matrix(rows, numbering.values)
            mean = mean_iou(matrix, rows.sum(1), kept)
            is_whole = matrix.sum() == rows.sum() or options.unassigned == "count"
            is_free = void.isdisjoint(chain.from_iterable(numbering.values))
            if is_whole and is_free and mean > numbering.least * fits[-1].mean_iou:
                text = " ".join(filter(None, (option, numbering.option, ignore)))
                fits.append(_Fit(text, arguments | {"pred_labels": numbering.given}, mean))
        yield from fits[1:][-2:]


def _truths(labels: LabelSet, pixels: _Pixels) -> Iterator[tuple[str, Any]]:
    """Label sets that the truth may have, with the option for each."""
    yield "", labels
    for name in _same_classes(labels):
        yield f"--labels {name}", name
    for text in _renumbered(labels, pixels.occurring(0)):
        yield _option("--labels", text), text
    for fit in summary_of("", pixels.truths, None).fitting if _are_values(labels) else ():
        most_occur = fit.classes_seen >= _MOST_OCCUR * fit.num_classes
        if most_occur and any(_same_classes(load_labels(fit.name))):
            yield fit.option, fit.name


def _same_classes(labels: LabelSet) -> Iterator[str]:
    """Presets with the classes of a label set, which number them differently."""
    for name in labelset_names():
        if name != labels.name and {*load_labels(name).class_names} == {*labels.class_names}:
            yield name


def _renumbered(labels: LabelSet, seen: set[int]) -> Iterator[str]:
    """The classes as text, beginning at another value; unnamed if they cannot be typed."""
    pairs = [(label.name, value) for label in labels.classes for value in label.values]
    is_typed = labels.name == "custom" and not (labels.source or labels.ignore or labels.groups)
    if is_typed and not _are_values(labels):
        # Names whose values are those of the truth have the right ones.
        if not seen - _VOID <= labels.declared_values and not any(
            "," in name or name != name.strip() for name, _ in pairs
        ):
            for step in (1, -1):
                yield ",".join(f"{name}={value + step}" for name, value in pairs)
        return
    last = max(seen - _VOID, default=0)
    if _are_values(labels) and last > 2 * max(labels.num_classes, len(seen)):  # with gaps
        yield ",".join(map(str, spaced(seen) or sorted(seen - _VOID)))
    elif 1 < last < MOST_VALUES and (_are_values(labels) or seen >= {*range(1, last + 1)}):
        yield f"1-{last}"
        yield str(last + 1)


def _are_values(labels: LabelSet) -> bool:
    """Whether the classes were typed without names."""
    return labels.name == "custom" and all(
        [c.name] == [*map(str, c.values)] for c in labels.classes
    )


def _numberings(
    options: ClassOptions, labels: LabelSet, rows: NDArray[np.int64], pixels: _Pixels
) -> Iterator[_Numbering]:
    """Numberings that predictions of these classes may have, the likeliest first."""
    is_given = options.pred_labels != options.labels
    if labels is options.labels or not is_given:
        pred = options.pred_labels if is_given else labels
        yield _Numbering("", pred, _values_of(labels, pred), 1.0)
    for name in _same_classes(labels):
        values = _values_of(labels, load_labels(name))
        yield _Numbering(f"--pred-labels {name}", name, values, 1.0)
    # A data set that was recognised by its values has one of its own numberings.
    is_guess = _are_values(options.labels) and labels.name != "custom"
    if is_guess or labels.num_classes < 2:
        return
    for several in _lists(labels):
        yield _listed(several)
    if several := _by_overlap(labels.num_classes, rows, pixels):
        yield _listed(several, least=_UNDECLARED)


def _listed(several: Sequence[int | None], least: float = 1.0) -> _Numbering:
    """The numbering with one value per class."""
    text = _spans(several)
    values = [() if value is None else (value,) for value in several]
    return _Numbering(_option("--pred-labels", text), text, values, least)


def _lists(labels: LabelSet) -> Iterator[list[int | None]]:
    """Values of the classes: their order from 0 or 1, shifted, or without one."""
    number = labels.num_classes
    yield [*range(number)]
    yield [*range(1, number + 1)]
    if all(len(values) == 1 for values in labels.class_values):
        for step in (0, 1, -1):
            shifted = [values[0] + step for values in labels.class_values]
            yield [value if value >= 0 else None for value in shifted]
    for missing in range(number) if 2 < number <= _MOST_LEFT_OUT else ():
        yield [None if c == missing else c - (c > missing) for c in range(number)]


def _by_overlap(number: int, rows: NDArray[np.int64], pixels: _Pixels) -> list[int | None]:
    """The predicted value that overlaps each class most; none if there are more of them."""
    from scipy.optimize import linear_sum_assignment  # type: ignore[import-untyped, unused-ignore]

    columns = np.flatnonzero(rows.sum(0))
    overlapping = rows[:, columns]
    overlaps = ious(overlapping, rows.sum(1)[:, None], overlapping.sum(0))
    classes, best = linear_sum_assignment(overlaps, maximize=True)
    if len(classes) < len(columns):
        return []
    chosen = dict(zip(classes.tolist(), pixels.values[columns[best]].tolist(), strict=True))
    return [chosen.get(c) for c in range(number)]


def _values_of(labels: LabelSet, pred_labels: LabelSet) -> Values:
    """Values in predictions of the classes of the truth."""
    by_name = {label.name: label.values for label in pred_labels.classes}
    return [by_name.get(name, ()) for name in labels.class_names]


def _spans(values: Sequence[int | None]) -> str:
    """Values as text: ``none,0-5``."""
    parts: list[list[int]] = []
    for value in values:
        if value is not None and parts and parts[-1] and value == parts[-1][-1] + 1:
            parts[-1].append(value)
        else:
            parts.append([] if value is None else [value])
    texts = (f"{p[0]}-{p[-1]}" if len(p) > 1 else "".join(map(str, p)) for p in parts)
    return ",".join(text or "none" for text in texts)


def _option(name: str, text: str) -> str:
    """An option with a value that a shell passes unchanged."""
    return f"{name}={text}" if text.startswith("-") else f"{name} {shlex.quote(text)}"
