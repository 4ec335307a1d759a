"""Ranks the regions, or the images, whose truth differs from the predictions in unusual ways."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou._support.arguments import (
    check_flag,
    check_integer,
    check_kind,
    check_number,
    check_path,
    names_options,
    read_several,
)
from segiou._support.csv_text import csv_name
from segiou._support.files import printable
from segiou._support.table_files import read_rows
from segiou._support.text import did_you_mean
from segiou.inference.paired_runs import check_runs, names_of, same_images
from segiou.inference.scored_runs import has_volumes, unit_of_pixels
from segiou.inference.units import Groups, group_names, groups_of
from segiou.metrics.ratio import Floats, ratio
from segiou.runs.run import Run
from segiou.runs.tables import unusual
from segiou.suspects.result import VERDICTS, ClassPair, ImageScore, Region, Reviewed, Suspects

Ints = NDArray[np.int64]
_Key = tuple[str, ...]

#: Key of the measure that keeps regions.
KEY = "suspects"
#: Further regions of an image below its first.
_FURTHER = 2
#: Scores are compared to this many decimals, so that the order does not depend on rounding.
_DECIMALS = 9
#: Overlap of boxes from which another run confirms a region, and the factor without.
_OVERLAP, _ALONE = 0.5, 0.1


@names_options
def find_suspects(
    *runs: Run,
    first: int = 100,
    all_regions: bool = False,
    max_extent: float = 1.0,
    min_size: int = 0,
    label: str | None = None,
    omit: str | Iterable[str] = (),
    groups: Groups | None = None,
    reviewed: str | Path | None = None,
    random_sample: int | None = None,
    seed: int = 0,
) -> Suspects:
    """Rank regions or images by how suspicious their truth masks are.

    A region is a connected set of pixels with one label and a different prediction.
    Its score, share · √(extent · whole) · margin², is high if most pixels that are
    confused in this way are in this region, if it is large, and if it is a whole
    object. A high rank does not show that a label is wrong, because unusual errors of
    the model rank equally high.

    Parameters
    ----------
    *runs : Run
        The first run is ranked: its regions, if it has the measure ``suspects``, or
        its images, by their confusion matrices. Regions that no other run has rank
        lower.
    first : int
        Maximum number of entries.
    all_regions : bool
        Whether each region is an entry, instead of each image with its first region.
    max_extent : float
        Largest share of an image that a region may cover: small errors need a list of
        their own.
    min_size : int
        Fewest pixels of a region.
    label : str, optional
        List only regions with this class of the truth.
    omit : str or iterable of str
        Classes, or pairs ``"LABEL:PREDICTION"``, that are not listed.
    groups : str, mapping, callable or sequence, optional
        Groups of images, such as the frames of a video, see
        :func:`segiou.confidence_intervals`: those of one group do not count as seen
        elsewhere.
    reviewed : str or path, optional
        Table with the columns image, label, suggestion, box and verdict (``wrong``,
        ``right`` or ``unclear``), as :meth:`Suspects.to_csv` writes it. Reviewed
        regions come last, except in a random sample.
    random_sample : int, optional
        List this many of the ``first`` entries, sampled at random. Only then does the
        share of wrong masks have an interval.
    seed : int
        Random seed of the sample.

    Returns
    -------
    Suspects

    Raises
    ------
    TypeError
        If an argument has the wrong type.
    ValueError
        If runs are of different images, a class is unknown, or the table cannot be read.

    Examples
    --------
    >>> import numpy as np, segiou
    >>> truth = np.zeros((4, 8, 8), int)
    >>> pred = truth.copy()
    >>> pred[2, 1:5, 1:5] = 1
    >>> run = segiou.score(truth, pred, labels=2, measures=["suspects"])
    >>> found = segiou.find_suspects(run)
    >>> found.regions[0].image, found.regions[0].box
    ('2', ((1, 5), (1, 5)))
    """
    first, seed = check_integer("first", first, 1), check_integer("seed", seed, 0)
    max_extent = check_number("max_extent", max_extent, 0, 1)
    min_size = check_integer("min_size", min_size, 0)
    check_flag("all_regions", all_regions)
    if reviewed is not None:
        check_path("reviewed", reviewed)
    if random_sample is not None:
        random_sample = check_integer("random_sample", random_sample, 1)
        if random_sample > first:
            msg = (
                f"random_sample must be at most first, {first}, got {random_sample}; increase "
                "first (--first), or take fewer"
            )
            raise ValueError(msg)
    run, names = _checked(runs)
    pairs = _Pairs.of(run)
    rows = _rows_of_pairs(pairs) if run.plan(KEY) is None else _rows_of_regions(run)
    ranked = _ranked(rows, pairs, _units(run, groups))
    confirmed = _confirmed(runs, names, ranked)
    listed = ~_hidden(run, label, omit)[ranked.label, ranked.suggestion]
    listed &= (ranked.extent <= max_extent) & (ranked.size >= min_size)
    alone = np.array([len(runs) > 1 and not others for others in confirmed], bool)
    ranked = replace(ranked, score=ranked.score * np.where(alone, _ALONE, 1.0))
    order = ranked.order
    order = order[listed[order]]
    verdicts = _verdicts(reviewed)
    regions = _Regions(run, ranked, confirmed)
    regions.verdicts.update(_placed(verdicts, regions))
    # A sample must not depend on the verdicts on it.
    sinks = random_sample is None and bool(regions.verdicts)
    entries = _entries(regions, order, first, all_regions=all_regions, sinks=sinks)
    chosen = _chosen(entries, first, random_sample, seed)
    heads = [entry[0] for entry in chosen]
    return Suspects(
        names=names,
        regions=tuple(chain.from_iterable(chosen)),
        images=_images(run, pairs, ranked, order),
        pairs=_class_pairs(heads),
        kept=None if run.plan(KEY) is None else len(rows.image),
        reviewed=_reviewed(
            [region.verdict for region in heads]
            if random_sample is not None
            else [verdict for at, verdict in regions.verdicts.items() if listed[at]],
            is_sample=random_sample is not None,
            unmatched=len(verdicts) - len(regions.verdicts),
        ),
        random_sample=random_sample,
        unit=unit_of_pixels(run),
    )


class _Sums:
    """Sums of values by key."""

    def __init__(self, keys: Ints, values: Ints) -> None:
        self.keys, places = np.unique(keys, return_inverse=True)
        self.sums = np.bincount(places, values, len(self.keys)).astype(np.int64)

    def at(self, keys: Ints) -> Ints:
        """The sum of each key; 0 for one without values."""
        if not len(self.keys):
            return np.zeros(len(keys), np.int64)
        at = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[at] == keys, self.sums[at], 0)


@dataclass(frozen=True, eq=False)
class _Pairs:
    """Pixels of each image with a class of the truth and a predicted class, (P,)."""

    image: Ints
    label: Ints
    suggestion: Ints
    pixels: Ints
    #: Their sum in each image, (N,).
    valid: Ints
    num_classes: int

    @classmethod
    def of(cls, run: Run) -> _Pairs:
        """The pairs of a run, without undeclared predictions."""
        number, start = run.options.num_classes, 0
        parts: list[tuple[Ints, Ints, Ints]] = [(np.zeros(0, np.int64),) * 3]
        for block in run._images.blocks(files=False):
            images = start + np.repeat(np.arange(len(block)), block.sizes)
            parts.append((images, block.cells, block.values))
            start += len(block)
        image, cell, pixels = map(np.concatenate, zip(*parts, strict=True))
        label, suggestion = np.divmod(cell, number + 1)
        known = suggestion < number
        valid = np.bincount(image[known], pixels[known], start).astype(np.int64)
        return cls(image[known], label[known], suggestion[known], pixels[known], valid, number)

    @property
    def key(self) -> Ints:
        """A number for each pair of classes."""
        return self.label * self.num_classes + self.suggestion


@dataclass(frozen=True, eq=False)
class _Rows:
    """Regions of all images, or pairs of classes of images, (R,)."""

    image: Ints
    label: Ints
    suggestion: Ints
    size: Ints
    whole: Floats
    margin: Floats
    #: Begin and end along each axis, (R, 2 · axes); without columns for pairs of classes.
    box: Ints


@dataclass(frozen=True, eq=False)
class _Ranked(_Rows):
    """The same with what their scores are made of."""

    extent: Floats
    share: Floats
    elsewhere: Ints
    score: Floats

    @property
    def order(self) -> NDArray[np.intp]:
        """Positions, the most suspicious first."""
        score = np.round(self.score, _DECIMALS)
        return np.lexsort((*self.box.T[::-1], self.image, -self.size, -score))


def _checked(runs: Sequence[Run]) -> tuple[Run, tuple[str, ...]]:
    """The first run and the names of all; an error unless all are of the same images."""
    if not runs:
        msg = "find_suspects expects a run, got no argument"
        raise TypeError(msg)
    check_runs("find_suspects", runs)
    names = tuple(names_of(runs, None))
    if len(runs) == 1:
        return runs[0], names
    same_images(runs, names, None)
    for run, name in zip(runs, names, strict=True):
        if run.plan(KEY) is None:
            fix = "score all runs with measures=['suspects'] (--suspects)"
            msg = f"{name} has no regions, so they cannot be confirmed; {fix}"
            raise ValueError(msg)
    return runs[0], names


def _units(run: Run, groups: Groups | None) -> Ints:
    """The unit of each image, (N,)."""
    chosen = groups_of(run.ids, groups)
    if chosen is None:
        return np.arange(len(run))
    names = group_names(chosen, run.ids)
    numbers = {name: i for i, name in enumerate(dict.fromkeys(names))}
    return np.array([numbers[name] for name in names], np.int64)


def _hidden(run: Run, label: str | None, omit: str | Iterable[str]) -> NDArray[np.bool_]:
    """Pairs of classes that are not listed, (C, C)."""
    names = run.class_names
    hidden = np.zeros((len(names), len(names)), bool)
    if label is not None:
        hidden[:] = True
        hidden[_class("label", label, names)] = False
    for text in [omit] if isinstance(omit, str) else read_several("omit", omit, "class names"):
        check_kind("a class of omit", text, str, "a name, or two names as in 'road:car'")
        if text in names:
            hidden[names.index(text)] = hidden[:, names.index(text)] = True
            continue
        # Names of classes may contain colons.
        splits = [(text[:i], text[i + 1 :]) for i, sign in enumerate(text) if sign == ":"]
        pair = next((pair for pair in splits if set(pair) <= {*names}), None)
        if pair is None:
            _class("omit", text, names)
        else:
            hidden[names.index(pair[0]), names.index(pair[1])] = True
    return hidden


def _class(what: str, name: str, names: Sequence[str]) -> int:
    check_kind(what, name, str, "the name of a class")
    if name not in names:
        hint = did_you_mean(name, names)
        msg = f"{what}: unknown class {name!r}; choose from {', '.join(names)}{hint}"
        raise ValueError(msg)
    return names.index(name)


def _rows_of_regions(run: Run) -> _Rows:
    """The regions that were kept."""
    plan: Any = run.plan(KEY)
    parts = run.parts(KEY)
    regions, margin = plan.regions_of(parts)
    box = regions[:, 5:]
    if not has_volumes(run.provenance) and (box[:, 1] <= 1).all():
        box = box[:, 2:]  # images have one plane
    sizes = regions[:, 2]
    whole = ratio(sizes, regions[:, 3:5].min(1, initial=1 << 62))
    owner = parts.owner("regions").astype(np.int64)
    return _Rows(
        image=owner,
        label=regions[:, 0],
        suggestion=regions[:, 1],
        size=sizes,
        whole=whole,
        margin=margin,
        box=box,
    )


def _rows_of_pairs(pairs: _Pairs) -> _Rows:
    """All pixels of two classes in an image as one region, without a place."""
    at = np.flatnonzero(pairs.label != pairs.suggestion)
    ones = np.ones(len(at))
    chosen = (pairs.image[at], pairs.label[at], pairs.suggestion[at], pairs.pixels[at])
    return _Rows(*chosen, ones, ones, np.zeros((len(at), 0), np.int64))


def _ranked(rows: _Rows, pairs: _Pairs, units: Ints) -> _Ranked:
    """Score regions: share · √(extent · whole) · margin²."""
    number = int(units.max(initial=0)) + 1
    key = rows.label * pairs.num_classes + rows.suggestion
    everywhere = _Sums(pairs.key, pairs.pixels).at(key)
    in_unit = _Sums(pairs.key * number + units[pairs.image], pairs.pixels)
    others = everywhere - in_unit.at(key * number + units[rows.image])
    share = ratio(rows.size, rows.size + others)
    extent = ratio(rows.size, pairs.valid[rows.image])
    score = unusual(share, extent * rows.whole) * rows.margin**2
    elsewhere = _seen_elsewhere(rows, key, units)
    return _Ranked(**vars(rows), extent=extent, share=share, elsewhere=elsewhere, score=score)


def _seen_elsewhere(rows: _Rows, key: Ints, units: Ints) -> Ints:
    """Images of other units with a region of the same classes that is at least as large."""
    if not len(key):
        return key
    number, most = len(units), int(rows.size.max()) + 1
    codes, inverse = np.unique(key * number + rows.image, return_inverse=True)
    largest = np.zeros(len(codes), np.int64)
    np.maximum.at(largest, inverse, rows.size)
    # Images with the pair, and their pairs and units, by small numbers that do not overflow.
    kind = np.unique(codes // number, return_inverse=True)[1]
    inside = np.unique(kind * number + units[codes % number], return_inverse=True)[1]

    def count_at_least(group: Ints) -> Ints:
        """Images of the group of each row with a region of at least its size."""
        sizes = np.sort(group * most + largest)
        ends = np.searchsorted(sizes, (group[inverse] + 1) * most)
        return ends - np.searchsorted(sizes, group[inverse] * most + rows.size)

    return count_at_least(kind) - count_at_least(inside)


def _confirmed(runs: Sequence[Run], names: Sequence[str], ranked: _Ranked) -> list[tuple[str, ...]]:
    """The other runs that have a region of the same classes in the place of each."""
    confirmed: list[tuple[str, ...]] = [()] * len(ranked.image)
    for run, name in zip(runs[1:], names[1:], strict=True):
        other = _rows_of_regions(run)
        number_of = {id: i for i, id in enumerate(runs[0].ids)}
        numbers = np.array([number_of[id] for id in run.ids], np.int64)
        by_key: dict[tuple[int, ...], list[int]] = {}
        for at, key in enumerate(_keys(other, numbers)):
            by_key.setdefault(key, []).append(at)
        for at, key in enumerate(_keys(ranked, np.arange(len(number_of)))):
            candidates = by_key.get(key, [])
            if candidates and _overlap(ranked.box[at], other.box[candidates]).max() >= _OVERLAP:
                confirmed[at] = (*confirmed[at], name)
    return confirmed


def _keys(rows: _Rows, numbers: Ints) -> Iterable[tuple[int, ...]]:
    """Image, label and prediction of each region."""
    several = numbers[rows.image], rows.label, rows.suggestion
    return zip(*(each.tolist() for each in several), strict=True)


def _overlap(box: Ints, others: Ints) -> Floats:
    """IoU of a box and of others, (K,)."""
    begins, ends = np.maximum(box[::2], others[:, ::2]), np.minimum(box[1::2], others[:, 1::2])
    shared = np.maximum(ends - begins, 0).prod(1)
    sizes = (others[:, 1::2] - others[:, ::2]).prod(1)
    return ratio(shared, (box[1::2] - box[::2]).prod() + sizes - shared)


@dataclass(frozen=True, eq=False)
class _Regions:
    """Makes the regions that are listed."""

    run: Run
    ranked: _Ranked
    confirmed: Sequence[tuple[str, ...]]
    #: Verdicts by position.
    verdicts: dict[int, str] = field(default_factory=dict)

    def at(self, at: int) -> Region:
        """The region at a position, without its rank."""
        ranked, names = self.ranked, self.run.class_names
        ends = ranked.box[at].tolist()
        return Region(
            rank=0,
            image=self.run.ids[int(ranked.image[at])],
            label=names[int(ranked.label[at])],
            suggestion=names[int(ranked.suggestion[at])],
            pixels=int(ranked.size[at]),
            extent=float(ranked.extent[at]),
            share=float(ranked.share[at]),
            whole=float(ranked.whole[at]),
            margin=float(ranked.margin[at]),
            score=float(ranked.score[at]),
            seen_elsewhere=int(ranked.elsewhere[at]),
            box=tuple(zip(ends[::2], ends[1::2], strict=True)),
            confirmed_by=self.confirmed[at],
            verdict=self.verdicts.get(at, ""),
        )


def _entries(
    regions: _Regions, order: NDArray[np.intp], first: int, *, all_regions: bool, sinks: bool
) -> list[list[Region]]:
    """Regions by image, or one by one; with `sinks`, those with a verdict come last."""
    several: dict[int, list[int]] = {}
    owners = order if all_regions else regions.ranked.image[order]
    for at, owner in zip(order.tolist(), owners.tolist(), strict=True):
        places = several.setdefault(owner, [])
        if len(places) <= _FURTHER:
            places.append(at)
    # Only then the order depends on regions after the first ones.
    chosen = several.values() if sinks else islice(several.values(), min(first, len(several)))
    entries = [[*map(regions.at, places)] for places in chosen]
    return sorted(entries, key=lambda entry: sinks and entry[0].verdict != "")


def _chosen(
    entries: list[list[Region]], first: int, sample: int | None, seed: int
) -> list[list[Region]]:
    """The first entries, or a random sample of them, with their ranks."""
    ranked = [
        [region._replace(rank=rank) for region in entry]
        for rank, entry in enumerate(entries[:first], 1)
    ]
    if sample is None:
        return ranked
    places = np.random.default_rng(seed).choice(len(ranked), min(sample, len(ranked)), False)
    return [ranked[at] for at in sorted(places.tolist())]


def _images(
    run: Run, pairs: _Pairs, ranked: _Ranked, order: NDArray[np.intp]
) -> tuple[ImageScore, ...]:
    """The score of each image and its notes, in the order of the run."""
    scores = np.zeros(len(run))
    np.maximum.at(scores, ranked.image[order], ranked.score[order])
    notes = _notes(pairs, run.class_names)
    return tuple(
        ImageScore(id, score, tuple(notes.get(i, ())))
        for i, (id, score) in enumerate(zip(run.ids, scores.tolist(), strict=True))
    )


def _notes(pairs: _Pairs, names: Sequence[str]) -> dict[int, list[str]]:
    """What is remarkable in an image: exchanged classes, one class that fills the truth."""
    number = pairs.num_classes
    key = pairs.image * number + pairs.label
    labelled = _Sums(key, pairs.pixels).at(key)
    mostly = (2 * pairs.pixels > labelled) & (pairs.label != pairs.suggestion)
    several = (pairs.image[mostly], pairs.label[mostly], pairs.suggestion[mostly])
    taken = {*zip(*(each.tolist() for each in several), strict=True)}
    notes: dict[int, list[str]] = {}
    for image, a, b in sorted(taken):
        if a < b and (image, b, a) in taken:
            notes.setdefault(image, []).append(f"labels {names[a]} and {names[b]} look exchanged")
    fills = (labelled == pairs.valid[pairs.image]) & (pairs.label != pairs.suggestion)
    alone = zip(pairs.image[fills].tolist(), pairs.label[fills].tolist(), strict=True)
    for image, label in sorted({*alone}):
        notes.setdefault(image, []).append(f"truth is {names[label]} alone")
    return notes


def _verdicts(path: str | Path | None) -> dict[_Key, str]:
    """The verdict on each region of a table."""
    if path is None:
        return {}
    columns = ("image", "label", "suggestion", "box", "verdict")
    verdicts: dict[_Key, str] = {}
    for number, row in enumerate(read_rows(Path(path).expanduser(), columns), 1):
        verdict = row["verdict"].strip().lower()
        if verdict not in ("", *VERDICTS):
            msg = f"{path}: row {number}: unknown verdict {verdict!r}; use {', '.join(VERDICTS)}"
            raise ValueError(msg)
        if verdict:
            verdicts[_written(row["image"], row["label"], row["suggestion"], row["box"])] = verdict
    return verdicts


def _written(*key: str) -> tuple[str, ...]:
    """What identifies a region, as CSV files and pages write it."""
    return tuple(" ".join(csv_name(printable(text, blanks=True)).split()) for text in key)


def _placed(verdicts: Mapping[_Key, str], regions: _Regions) -> dict[int, str]:
    """The verdicts by the positions of their regions, without those of other regions."""
    images = {key[0] for key in verdicts}
    numbers = [i for i, id in enumerate(regions.run.ids) if _written(id)[0] in images]
    places = np.flatnonzero(np.isin(regions.ranked.image, numbers)).tolist()
    keys = ((at, _written(*regions.at(at).key)) for at in places)
    return {at: verdicts[key] for at, key in keys if key in verdicts}


def _class_pairs(heads: Sequence[Region]) -> tuple[ClassPair, ...]:
    groups: dict[tuple[str, str], list[Region]] = {}
    for region in heads:
        groups.setdefault((region.label, region.suggestion), []).append(region)
    pairs = [
        ClassPair(*key, len(group), len({r.image for r in group}), sum(r.pixels for r in group))
        for key, group in groups.items()
    ]
    return tuple(sorted(pairs, key=lambda pair: (-pair.regions, -pair.pixels)))


def _reviewed(verdicts: Sequence[str], *, is_sample: bool, unmatched: int) -> Reviewed:
    """Numbers of verdicts; of a sample that is decided, with the interval at 95 %."""
    numbers = Counter(verdicts)
    wrong, right, unclear = (numbers[verdict] for verdict in VERDICTS)
    if not is_sample or numbers[""] or not wrong + right:
        return Reviewed(wrong, right, unclear, unmatched=unmatched)
    from scipy.stats import beta  # type: ignore[import-untyped]

    low = float(beta.ppf(0.025, wrong, right + 1)) if wrong else 0.0
    high = float(beta.ppf(0.975, wrong + 1, right)) if right else 1.0
    return Reviewed(wrong, right, unclear, low, high, unmatched)
