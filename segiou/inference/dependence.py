"""Dependence of images, by their names and scores, and the resulting units."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal, NamedTuple

import numpy as np

from segiou._support.arguments import check_number, refuse_kind
from segiou._support.files import printable
from segiou._support.numbers import percent
from segiou._support.text import Json, listed, plain, plural, see
from segiou.inference.sequences import Members, Sequences, sequences_in_names, sequences_of
from segiou.inference.units import (
    FEW_UNITS,
    INDEPENDENT,
    Groups,
    Units,
    group_names,
    groups_of,
    plural_of,
    units_of,
)
from segiou.metrics.ratio import Floats

#: Lags whose correlations are reported.
_LAGS = 5
#: A correlation this many standard errors above 0 is reported as one.
_CORRELATED = 1.96
#: Probability that independent images with irregular numbers are treated as sequences.
_CHANCE = 0.01
#: The same for consecutive numbers, which any numbered images have.
_CHANCE_IF_CONSECUTIVE = 0.1
#: A smaller variance is due to rounding.
_ROUNDING = 1e-24
#: Fewest images of one or two sequences that are divided into batches.
_LEAST_IN_BATCHES = 40
#: Fewer images of one or two sequences are too few to judge their dependence well.
_LEAST_IN_ONE = 100
_SO_INDEPENDENT = "so the {images} are treated as independent."
#: How independence is declared, on the command line and in Python.
DECLARED = "--group-by none", "groups='none'"
#: Fewest and most batches.
_BATCHES = (4, 20)
#: Fewest batches of a difference: 4 give p ≥ 2/2⁴, so nothing would be significant.
_LEAST_OF_DIFFERENCE = 6

#: Images per batch, or ``"auto"``: by the correlation of neighbouring scores.
BlockLength = float | Literal["auto"]


@dataclass(frozen=True, slots=True)
class Dependence:
    """Correlation of the scores of neighbouring images.

    Attributes
    ----------
    sequences : mapping of str to int
        Name of each sequence and its number of images; a single image has its id.
    pattern : str
        The regular expression that finds the name of the sequence in an id;
        empty if the sequences were not found in the ids.
    correlations : tuple of float
        Autocorrelations: of scores of images 1, 2, … places apart in a sequence.
    design_effect : float
        Variance of a mean over the images, relative to that over independent
        ones: 1 + 2 Σ ρ_k.
    block_length : float
        Images after which the correlation is gone, by D. Politis and H. White
        (2004).
    correlated : bool
        Whether neighbours are significantly correlated.
    """

    sequences: dict[str, int]
    pattern: str
    correlations: tuple[float, ...]
    design_effect: float
    block_length: float
    correlated: bool

    @property
    def images(self) -> int:
        """Number of images."""
        return sum(self.sequences.values())

    @property
    def single(self) -> int:
        """Number of images that are alone in their sequence."""
        return sum(size == 1 for size in self.sequences.values())

    @property
    def effective_images(self) -> float:
        """Effective sample size: independent images that carry as much information."""
        return self.images / max(self.design_effect, 1.0)

    def to_dict(self) -> dict[str, Json]:
        """Plain values, unrounded; None if undefined."""
        data: dict[str, Any] = plain(self)
        return data | {"images": self.images, "effective_images": self.effective_images}

    def sentences(self, image: str = "image") -> list[str]:
        """Origin of the images, and how strongly neighbours are correlated.

        Parameters
        ----------
        image : str
            Noun for an image, such as ``"case"``.
        """
        said, scores = [], "In file-name order, neighbouring scores"
        if len(self.sequences) > 1:
            several = {name: size for name, size in self.sequences.items() if size > 1}
            shown = several or self.sequences
            sizes = listed([f"{name} {size}" for name, size in shown.items()], 4, last=", ")
            number = plural(len(shown), "sequence")
            rest = (
                f" and {plural(self.single, f'single {image}')}" if several and self.single else ""
            )
            said = [f"File names suggest {number} ({printable(sizes)}){rest}."]
            scores = "Neighbouring scores"
        if not self.correlated:
            return [*said, f"{scores} are not significantly correlated."]
        return [
            *said,
            f"{scores} have correlation {self.correlations[0]:.2f} (design effect "
            f"{self.design_effect:.2f}), so {self.images} {image}s carry as much information as "
            f"about {self.effective_images:.0f} independent ones.",
        ]


class Caution(NamedTuple):
    """Limit of an interval or a test, and the option that removes it."""

    text: str
    image: str = ""
    """What an image is called, if declaring images independent removes the limit."""
    is_python: bool = False
    """Whether the argument is named, not the option of the command line."""

    def __str__(self) -> str:
        independent = f" Use {DECLARED[self.is_python]} if the {self.image}s are independent."
        return f"{printable(self.text)}.{independent if self.image else ''} {see('intervals')}"

    @property
    def in_python(self) -> Caution:
        """The same with the argument."""
        return self._replace(is_python=True)


def dependence_of(values: Floats, sequences: Sequences) -> Dependence:
    """Correlation of neighbours by a score of each image, (N,); it may be undefined for some."""
    defined, number = int((~np.isnan(values)).sum()), sequences.images
    centre = float(np.nanmean(values)) if defined else 0.0
    correlations = _autocorrelations(values, sequences.members, centre)
    return Dependence(
        sequences=dict(zip(sequences.names, map(len, sequences.members), strict=True)),
        pattern=sequences.pattern,
        correlations=tuple(correlations[:_LAGS].tolist()),
        design_effect=max(0.0, 1 + 2 * float(_windowed(correlations, number).sum())),
        block_length=_block_length(_autocorrelations(values, sequences.members), number),
        correlated=defined > 2 and bool(correlations[0] > _CORRELATED * _error(sequences)),
    )


def _error(sequences: Sequences) -> float:
    """Standard error of a correlation of neighbours that are independent."""
    return 1 / math.sqrt(max(sequences.images - len(sequences), 1))


def _autocorrelations(values: Floats, members: Members, centre: float | None = None) -> Floats:
    """Correlations ρ_1, ρ_2, … along sequences, about a centre or about the mean of each sequence.

    They are 0 where nothing varies but for rounding, and after those that the window covers.
    """
    series = [*_deviations(values, members, centre)]
    number = sum(map(len, members))
    correlations = np.zeros(math.ceil(math.sqrt(number)) + _negligible(number))
    variance = _products(series, 0) / number
    done = 0 if variance >= _ROUNDING else len(correlations)
    while done < len(correlations):
        lags = range(done, min(2 * done or 16, len(correlations)))
        correlations[lags] = [_products(series, 1 + lag) / number / variance for lag in lags]
        done = lags.stop
        if 2 * (1 + _negligible_from(correlations[:done], number)) <= done:
            break
    return correlations


def _deviations(values: Floats, members: Members, centre: float | None) -> Iterator[Floats]:
    """Deviations along sequences, of equal length as columns (L, S); 0 where undefined."""
    sizes = np.array([*map(len, members)])
    order, starts = np.concatenate(members), sizes.cumsum() - sizes
    for size in np.unique(sizes):
        series = values[order[np.arange(size)[:, None] + starts[sizes == size]]]
        series = series[:, ~np.isnan(series).all(0)]
        yield np.nan_to_num(series - (np.nanmean(series, 0) if centre is None else centre))


def _products(series: Sequence[Floats], lag: int) -> float:
    """Sum of the products of deviations at this distance."""
    parts = ((part[lag:], part[: len(part) - lag]) for part in series if lag < len(part))
    return sum(float(np.einsum("ij,ij", after, before)) for after, before in parts)


def _negligible(number: int) -> int:
    """Number of consecutive negligible correlations after which all are taken as negligible."""
    return max(5, int(math.log10(number)))


def _negligible_from(correlations: Floats, number: int) -> int:
    """Place from which correlations are negligible; their number if there is none."""
    run, most = _negligible(number), len(correlations)
    small = np.abs(correlations) < 2 * math.sqrt(math.log10(number) / number)
    return next((k for k in range(most - run) if small[k : k + run].all()), most)


def _windowed(correlations: Floats, number: int) -> Floats:
    """Correlations ρ_1, ρ_2, … under the flat-top window of Politis and White."""
    most = len(correlations)
    width = min(2 * (1 + _negligible_from(correlations, number)), most)
    window = np.clip(2 * (1 - np.arange(1, most + 1) / width), 0, 1)
    return np.asarray(window * correlations)


def _block_length(correlations: Floats, number: int) -> float:
    """Block length of D. N. Politis and H. White, Econometric Reviews 23 (2004), 53-70.

    As corrected by A. Patton, D. Politis and H. White, Econometric Reviews 28 (2009), 372-375.
    It is 1 for images whose scores are uncorrelated or negatively correlated.
    """
    windowed = _windowed(correlations, number)
    effect = 1 + 2 * float(windowed.sum())
    if effect <= 1:
        return 1.0
    moment = 2 * float((np.arange(1, len(windowed) + 1) * windowed).sum())
    length = (moment**2 / effect**2 * number) ** (1 / 3)
    longest = math.ceil(min(3 * math.sqrt(number), number / 3))
    return float(min(max(length, 1.0), longest))


@dataclass(frozen=True, eq=False)
class Design:
    """The units of a test set: images, groups, sequences, or batches along sequences.

    ``dependence`` is None if groups are given, the images are declared independent, or their
    names show no order.
    """

    units: Units
    images: Units
    dependence: Dependence | None = None
    independence: str = ""
    """Why images, as ``{images}``, are treated as independent, if they are."""
    related: str = ""
    """The regular expression that would group them by their names, if it finds groups."""

    def caution(self, image: str = "image") -> Caution | None:
        """The first caution about the units that applies; images have this noun."""
        kind, number = self.units.kind, len(self.units)
        if self.units.too_few:
            units = plural_of(kind, image)
            return Caution(f"an interval needs at least 3 {units}, and there are {number}")
        if kind in ("group", "sequence") and (largest := self._unequal()):
            return Caution(
                f"the largest {kind} has {percent(largest)} of the {image}s, so the interval is "
                "probably too narrow",
                image if kind == "sequence" else "",
            )
        if self.dependence is None or kind == "sequence":
            return None
        number = len(self.dependence.sequences) - self.dependence.single
        origin = "one sequence" if number == 1 else f"{number} sequences"
        images = self.dependence.images
        if kind == "image":
            return Caution(
                f"dependence cannot be judged from {images} {image}s of {origin}",
                image,
            )
        if kind == "batch" and images < _LEAST_IN_ONE:
            return Caution(
                f"only {images} {image}s of {origin}, so the interval is a rough guide",
                image if self.dependence.pattern else "",
            )
        return None

    def _unequal(self) -> float:
        """Share of the largest unit if sizes are too unequal, else 0."""
        sizes = np.bincount(self.units.index, minlength=len(self.units))
        kish = sizes.sum() ** 2 / (sizes**2).sum()
        largest = float(sizes.max() / sizes.sum())
        return largest if largest > 0.5 or kish < len(sizes) / 2 else 0.0


def design_of(
    ids: Sequence[str] | None,
    number: int,
    scores: Callable[[], Sequence[Floats]],
    groups: Groups | None = None,
    blocks: BlockLength | None = None,
) -> Design:
    """Find the units from image names and the scores of a model, or differences of models.

    Passed groups are the units, or else sequences in the names; one or two sequences are divided
    into batches of neighbours (R. Ibragimov and U. Müller, J. Bus. Econ. Statist. 28 (2010)).
    """
    check_blocks(groups, blocks)
    independent = isinstance(groups, str) and groups == INDEPENDENT
    if isinstance(groups, str) and ids is None and not independent:
        raise refuse_kind("groups", groups, "a sequence, because the images have no ids")
    images = units_of(number, None, ids)
    groups = groups_of(ids or (), groups)
    named = None if groups is None else group_names(groups, images.names)
    if independent:
        return Design(images, images, None, "The {images} were declared independent.")
    unknown = ids is None or number < FEW_UNITS
    if blocks is None and (named is not None or unknown):
        return Design(units_of(number, named, ids), images)
    if named is not None:
        candidates: tuple[Sequences, ...] = (sequences_of(images.names, named),)
    else:
        candidates = sequences_in_names(images.names) if ids is not None else ()
        if blocks is not None:
            candidates += (Sequences(("",), (np.arange(number),)),)
    if not candidates:
        return Design(images, images, None, f"File names show no order, {_SO_INDEPENDENT}")
    return _along(scores(), images, candidates, blocks)


def _along(
    scores: Sequence[Floats],
    images: Units,
    candidates: Sequence[Sequences],
    blocks: BlockLength | None,
) -> Design:
    """The units along the first sequences that are accepted."""
    differences = [b - a for a, b in combinations(scores, 2)]
    series = differences or scores
    # An order in time shows in the scores of each model also if models differ without it.
    evidence = [*scores, *differences]
    tried = (_accepted(evidence, s, images.names, blocks) for s in candidates)
    sequences = next((accepted for accepted in tried if accepted is not None), None)
    if sequences is None:
        unrelated = "Scores are unrelated to the order of the file names"
        related = next((s.pattern for s in candidates if s.several > 2), "")
        return Design(images, images, None, f"{unrelated}, {_SO_INDEPENDENT}", related)
    each = [dependence_of(values, sequences) for values in series]
    strongest = max(each, key=lambda estimate: estimate.design_effect)
    if blocks is None and sequences.several > 2:
        return Design(_whole(sequences), images, strongest)
    if blocks is None and sequences.images < _LEAST_IN_BATCHES:
        return Design(images, images, strongest)
    if blocks is None or blocks == "auto":
        least = _LEAST_OF_DIFFERENCE if len(scores) > 1 else _BATCHES[0]
        numbers = _batches(sequences, max(estimate.block_length for estimate in each), least)
    else:
        numbers = [max(1, round(len(m) / blocks)) for m in sequences.members]
    return Design(_divided(sequences, numbers, images.names), images, strongest)


def _accepted(
    series: Sequence[Floats],
    sequences: Sequences,
    ids: Sequence[str],
    blocks: BlockLength | None,
) -> Sequences | None:
    """Sequences that are given, have a step of frames, or are supported by the scores.

    Images of others are single. With batches, consecutive numbers are frames.
    """
    if not sequences.pattern:
        return sequences
    several = [i for i, members in enumerate(sequences.members) if len(members) > 1]
    single = []
    doubtful = {None: _CHANCE} | ({1: _CHANCE_IF_CONSECUTIVE} if blocks is None else {})
    for step, chance in doubtful.items():
        places = [i for i in several if sequences.common_steps[i] == step]
        if places and not _supported(series, sequences, places, chance):
            single += places
    if len(single) == len(several):
        return None
    return sequences.split_singles(single, ids) if single else sequences


def _supported(
    series: Sequence[Floats], sequences: Sequences, places: Sequence[int], chance: float
) -> bool:
    """Whether scores vary along or between some sequences by more than chance."""
    from statistics import NormalDist

    images, part = sequences.only(places)
    certain = NormalDist().inv_cdf(1 - chance / (2 * len(series)))
    return any(
        dependence_of(values, part).correlations[0] > certain * _error(part)
        or _sequence_variation(values, part) > certain
        for values in (values[images] for values in series)
    )


def _sequence_variation(values: Floats, sequences: Sequences) -> float:
    """Variation of the means of sequences, as a standard normal deviate of the F test."""
    from scipy.special import fdtrc, ndtri  # type: ignore[import-untyped, unused-ignore]

    parts = [values[m][~np.isnan(values[m])] for m in sequences.members]
    parts = [part for part in parts if len(part)]
    number = sum(map(len, parts))
    groups, rest = len(parts) - 1, number - len(parts)
    if groups < 1 or rest < 1:
        return 0.0
    centre = np.concatenate(parts).mean()
    between = sum(len(part) * (part.mean() - centre) ** 2 for part in parts) / groups
    within = sum(((part - part.mean()) ** 2).sum() for part in parts) / rest
    if within < _ROUNDING:
        return math.inf if between >= _ROUNDING else 0.0
    return float(-ndtri(fdtrc(groups, rest, between / within)))


def _whole(sequences: Sequences) -> Units:
    """Each sequence as a unit."""
    index = np.empty(sequences.images, np.intp)
    for place, images in enumerate(sequences.members):
        index[images] = place
    return Units("sequence", sequences.names, index)


def _batches(sequences: Sequences, length: float, least: int) -> list[int]:
    """Numbers of batches in each sequence: as many as are nearly independent, at most 20.

    Single images are not counted among the 20.
    """
    several = [i for i, images in enumerate(sequences.members) if len(images) > 1]
    sizes = [len(sequences.members[i]) for i in several]
    number = sum(sizes)
    total = min(max(int(number / (4 * length)), least, 2 * len(sizes)), _BATCHES[1])
    total = max(total, len(sizes))
    exact = {i: total * size / number for i, size in zip(several, sizes, strict=True)}
    numbers = [max(1, math.floor(exact.get(i, 1))) for i in range(len(sequences))]
    more = total - sum(numbers[i] for i in several)
    # The rest goes to the largest remainders.
    for i in sorted(several, key=lambda i: numbers[i] - exact[i])[: max(more, 0)]:
        numbers[i] += 1
    return numbers


def _divided(sequences: Sequences, numbers: Sequence[int], ids: Sequence[str]) -> Units:
    """Batches of neighbours of nearly equal length within each sequence."""
    index = np.empty(sequences.images, np.intp)
    names: list[str] = []
    for images, number in zip(sequences.members, numbers, strict=True):
        for part in np.array_split(images, min(number, len(images))):
            index[part] = len(names)
            names.append(f"{ids[part[0]]} to {ids[part[-1]]}")
    return Units("batch", tuple(names), index)


def check_blocks(groups: Groups | None, blocks: BlockLength | None) -> None:
    """Reject an invalid block length, and blocks of images declared independent."""
    if blocks is None:
        return
    if not isinstance(blocks, str):
        check_number("blocks", blocks, 1)
    elif blocks != "auto":
        msg = f"blocks must be 'auto' or a number of images, got {blocks!r}"
        raise ValueError(msg)
    if isinstance(groups, str) and groups == INDEPENDENT:
        msg = "groups='none' (independent images) contradicts blocks; pass only one of them"
        raise ValueError(msg)
