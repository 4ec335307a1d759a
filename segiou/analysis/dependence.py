"""Dependence between images, inferred from names and scores, and the units it implies."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from os.path import commonprefix
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from segiou._support.arguments import check_number, refuse_kind
from segiou._support.files import printable
from segiou._support.text import Json, listed, plain, roughly, see
from segiou.analysis.statistics import ScoredImages
from segiou.analysis.units import (
    FEW_UNITS,
    INDEPENDENT,
    Groups,
    Units,
    group_by_pattern,
    groups_of,
    one_per_image,
    units_of,
)
from segiou.metrics.ratio import Floats

#: Lags whose correlations are reported.
_LAGS = 5
#: A correlation is significant from this many standard errors above 0 on.
_SURE = 1.96
#: A smaller variance is due to rounding.
_ROUNDING = 1e-24
#: Simple expressions for the groups, tried before the general one.
_PLAIN_PATTERNS = (r"^[^_]+", r"^[^/]+", r"^[^-]+")

Members = tuple[NDArray[np.intp], ...]


@dataclass(frozen=True, eq=False)
class Sequences:
    """Sequences of images, ordered by the numbers in their names."""

    names: tuple[str, ...]
    members: Members
    """Indices of the images of each sequence, in order."""
    pattern: str = ""
    """The regular expression that finds the name of the sequence in an id."""

    @property
    def images(self) -> int:
        """Number of images."""
        return sum(len(own) for own in self.members)


@dataclass(frozen=True, slots=True)
class Dependence:
    """Dependence between images, estimated from names and scores.

    Attributes
    ----------
    sequences : mapping of str to int
        Name of each sequence, and how many images it has.
    pattern : str
        Regular expression that finds the name of the sequence in an id; empty
        if the sequences were not found in the ids.
    correlations : tuple of float
        Autocorrelation of the scores at lags 1, 2, … within sequences.
    design_effect : float
        Variance of a mean over the images relative to independent images:
        1 + 2 Σ ρ_k.
    block_length : float
        Expected block length of a stationary bootstrap along the sequences
        (D. Politis and H. White, 2004).
    correlated : bool
        Whether neighbouring scores are significantly correlated.
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
    def few_sequences(self) -> bool:
        """Whether there are several sequences, but too few to generalise to others."""
        return 1 < len(self.sequences) < FEW_UNITS

    @property
    def effective_images(self) -> float:
        """Effective sample size."""
        return self.images / max(self.design_effect, 1.0)

    @property
    def noteworthy(self) -> bool:
        """Whether intervals and p that assume independent images need a caution."""
        return self.correlated or (self.few_sequences and self.images >= FEW_UNITS)

    def to_dict(self) -> dict[str, Json]:
        """Plain values, unrounded; None where undefined."""
        found: dict[str, Any] = plain(self)
        return found | {"images": self.images, "effective_images": self.effective_images}

    @property
    def where(self) -> str:
        """The sequences in words."""
        number = len(self.sequences)
        return "this sequence" if number == 1 else f"these {number} sequences"

    def caution(self, *, p: bool) -> Caution:
        """What it does to intervals (and to p) over images, and the option that accounts for it."""
        number = f"only {len(self.sequences)} sequences"
        if not self.correlated:
            nothing = f"{number}, so the result does not generalise to other sequences"
            return Caution(nothing)
        causes = "neighbouring images are correlated"
        if self.few_sequences:
            causes = f"{number} and correlated neighbouring images"
        wider = math.sqrt(max(self.design_effect, 1.0))
        factor = f"about {wider:.1f} times" if wider >= 1.05 else "slightly"
        effect = f"the interval is {factor} too narrow{' and p too small' if p else ''}"
        return Caution(f"{causes}, so {effect}", self._option())

    def sentences(self) -> list[str]:
        """Where the images come from, and how strongly neighbours are correlated."""
        said, scores = [], "In file-name order, neighbouring scores"
        if len(self.sequences) > 1:
            sizes = listed(
                [f"{name} {size}" for name, size in self.sequences.items()], 4, last=", "
            )
            number = f"{len(self.sequences)} sequences"
            said = [f"File names suggest {number} ({printable(sizes)})."]
            scores = "Neighbouring scores"
        if not self.correlated:
            return [*said, f"{scores} are not significantly correlated."]
        covered = roughly(math.erf(_SURE / math.sqrt(max(self.design_effect, 1.0)) / math.sqrt(2)))
        return [
            *said,
            f"{scores} have correlation {self.correlations[0]:.2f} (design effect "
            f"{self.design_effect:.2f}), so {self.images} images carry as much information as "
            f"about {self.effective_images:.0f} independent ones, and a 95 % interval contains "
            f"the true value in {covered} of cases.",
        ]

    def _option(self) -> str:
        if len(self.sequences) < FEW_UNITS:
            return "--blocks auto"
        return f"--group-by {shlex.quote(self.pattern)}"


class Caution(NamedTuple):
    """What limits an interval or a test, and the option that removes the limit."""

    text: str
    option: str = ""
    rest: str = ""
    """Ends the sentence about the option."""

    def __str__(self) -> str:
        use = f" Use {self.option}{self.rest}." if self.option else ""
        return f"{printable(self.text)}.{use} {see('intervals')}"


@lru_cache(maxsize=1)  # the same images are asked again for every metric
def sequences_in_names(ids: tuple[str, ...]) -> Sequences | None:
    """Sequences suggested by the names (a common prefix, then numbers), if any."""
    # The last number is tried as the position in a sequence, then the last two, and so on, until
    # sequences have two images on average. All names end with this text, from its first non-digit:
    same = commonprefix([id[::-1] for id in ids])  # noqa: RUF071  (texts, no paths)
    ending = same[::-1].lstrip("0123456789")
    start = "(?s)^(.*?)" if any("\n" in id for id in ids) else "^(.*?)"
    for numbers in (1, 2, 3):
        place = r"\d+" + r"\D+\d+" * (numbers - 1)
        pattern = rf"{start}{place}\D*{re.escape(ending)}$"
        try:
            names = group_by_pattern(ids, pattern)
        except ValueError:
            return None
        if len(ids) >= 2 * len(set(names)):
            return _plainest(ids, names) or sequences_of(ids, names, pattern)
    return None


def sequences_of(ids: Sequence[str], names: Sequence[Any], pattern: str = "") -> Sequences:
    """Sequences with given names, each sorted by the numbers in its ids."""
    members: dict[Any, list[int]] = {}
    for i, name in enumerate(names):
        members.setdefault(name, []).append(i)

    def order(i: int) -> list[tuple[int, str]]:
        """Sort key of an id: numbers by value."""
        parts = re.split(r"(\d+)", ids[i])
        return [(int(part), "") if k % 2 else (-1, part) for k, part in enumerate(parts)]

    ordered = (np.array(sorted(own, key=order), dtype=np.intp) for own in members.values())
    return Sequences(tuple(map(str, members)), tuple(ordered), pattern)


def _plainest(ids: Sequence[str], names: Sequence[str]) -> Sequences | None:
    """The same sequences found by a simple expression, if there is one."""
    for pattern in _PLAIN_PATTERNS:
        with suppress(ValueError):
            found = group_by_pattern(ids, pattern)
            if len(set(zip(found, names, strict=True))) == len(set(found)) == len(set(names)):
                return sequences_of(ids, found, pattern)
    return None


def dependence_of(values: Floats, sequences: Sequences) -> Dependence:
    """Dependence estimated from per-image scores (N,), which may contain NaN."""
    defined, number = int((~np.isnan(values)).sum()), sequences.images
    centre = float(np.nanmean(values)) if defined else 0.0
    correlations = _autocorrelations(values, sequences.members, centre)
    pairs = max(number - len(sequences.members), 1)
    return Dependence(
        sequences={
            name: len(own) for name, own in zip(sequences.names, sequences.members, strict=True)
        },
        pattern=sequences.pattern,
        correlations=tuple(correlations[:_LAGS].tolist()),
        design_effect=max(0.0, 1 + 2 * float(_windowed(correlations, number).sum())),
        block_length=_block_length(_autocorrelations(values, sequences.members), number),
        correlated=defined >= FEW_UNITS and bool(correlations[0] > _SURE / math.sqrt(pairs)),
    )


def _autocorrelations(values: Floats, members: Members, centre: float | None = None) -> Floats:
    """Autocorrelations about a centre or each sequence's mean; 0 if only rounding varies."""
    number = sum(map(len, members))
    total = np.zeros(math.ceil(math.sqrt(number)) + _negligible(number) + 1)
    for own in members:
        series = values[own]
        if np.isnan(series).all():
            continue
        deviations = np.nan_to_num(series - (np.nanmean(series) if centre is None else centre))
        for lag in range(min(len(total), len(own))):
            total[lag] += deviations[lag:] @ deviations[: len(own) - lag]
    variance, *covariances = total / number
    return np.array(covariances) / variance if variance >= _ROUNDING else 0 * total[1:]


def _negligible(number: int) -> int:
    """Number of consecutive negligible correlations after which all later ones are ignored."""
    return max(5, int(math.log10(number)))


def _windowed(correlations: Floats, number: int) -> Floats:
    """Correlations ρ_1, ρ_2, … tapered by the flat-top window of Politis and White."""
    run, most = _negligible(number), len(correlations)
    small = np.abs(correlations) < 2 * math.sqrt(math.log10(number) / number)
    starts = (k for k in range(most - run) if small[k : k + run].all())
    width = min(2 * (1 + next(starts, most)), most)
    window = np.clip(2 * (1 - np.arange(1, most + 1) / width), 0, 1)
    return np.asarray(window * correlations)


def _block_length(correlations: Floats, number: int) -> float:
    """Block length of Politis and White; 1 without positive correlation."""
    # D. N. Politis and H. White, Econometric Reviews 23 (2004), 53-70, as corrected by A. Patton,
    # D. Politis and H. White, Econometric Reviews 28 (2009), 372-375.
    windowed = _windowed(correlations, number)
    effect = 1 + 2 * float(windowed.sum())
    if effect <= 1:
        return 1.0
    moment = 2 * float((np.arange(1, len(windowed) + 1) * windowed).sum())
    length = (moment**2 / effect**2 * number) ** (1 / 3)
    longest = math.ceil(min(3 * math.sqrt(number), number / 3))
    return float(min(max(length, 1.0), longest))


#: Mean block length, or ``"auto"``: estimated from the correlation of neighbouring scores.
BlockLength = float | Literal["auto"]
#: Draws image weights (B, N) for B resamples.
Draw = Callable[[int], NDArray[np.int64]]


@dataclass(frozen=True, eq=False)
class Blocks:
    """Blocks of neighbouring images with a given mean length."""

    sequences: Sequences
    length: float

    def units(self, ids: Sequence[str]) -> Units:
        """Blocks of equal length for permutation; the last of a sequence may be shorter."""
        size = max(1, round(self.length))
        index = np.empty(self.sequences.images, np.intp)
        names: list[str] = []
        for own in self.sequences.members:
            for start in range(0, len(own), size):
                part = own[start : start + size]
                index[part] = len(names)
                names.append(f"{ids[part[0]]} to {ids[part[-1]]}")
        return Units("block", tuple(names), index)

    def draw(self, seed: int) -> Draw:
        """Draw weights by the stationary bootstrap within each sequence."""
        # D. N. Politis and J. P. Romano, J. Amer. Statist. Assoc. 89 (1994), 1303-1313: start at a
        # random place, continue to the next (circularly), restart with probability 1 / length.
        # Separate streams for starts and restarts make the numbers independent of batch sizes.
        places, ends = (np.random.default_rng([seed, stream]) for stream in (3, 4))
        order = np.concatenate(self.sequences.members)
        sizes = np.array([len(own) for own in self.sequences.members])
        first = np.repeat(np.cumsum(sizes) - sizes, sizes)
        size = np.repeat(sizes, sizes)
        number = len(order)
        place = np.arange(number)

        def weights(resamples: int) -> NDArray[np.int64]:
            start = (places.random((resamples, number)) * size).astype(np.intp)
            new = (ends.random((resamples, number)) * self.length < 1) | (place == first)
            last = np.maximum.accumulate(np.where(new, place, 0), axis=1)
            drawn = np.take_along_axis(start, last, axis=1) + place - last
            return times_drawn(order[first + drawn % size], number)

        return weights


def independent_draw(seed: int, units: int) -> Draw:
    """Multinomial(U, 1/U) weights (B, U)."""
    rng = np.random.default_rng(seed)
    return lambda resamples: times_drawn(rng.integers(0, units, (resamples, units)), units)


def times_drawn(drawn: NDArray[np.intp], units: int) -> NDArray[np.int64]:
    """Count each unit in each row, (B, U); modifies the array."""
    drawn += np.arange(len(drawn))[:, None] * units
    found = np.bincount(drawn.ravel(), minlength=len(drawn) * units)
    return found.reshape(len(drawn), units)


@dataclass(frozen=True, eq=False)
class Design:
    """The resampling units of a test set and their dependence."""

    units: Units
    """Permuted and left out; also resampled unless there are blocks."""
    images: Units
    """Resampled if there are blocks."""
    blocks: Blocks | None = None
    dependence: Dependence | None = None

    @property
    def block_length(self) -> float | None:
        """Mean block length, if there are blocks."""
        return None if self.blocks is None else self.blocks.length


def design_of(
    scored: Sequence[ScoredImages[Any]], groups: Groups | None, blocks: BlockLength | None
) -> Design:
    """Units and dependence, from the scores of one model or the differences between several."""
    ids, num_images = scored[0].ids, scored[0].num_images
    check_blocks(groups, blocks)
    independent = isinstance(groups, str) and groups == INDEPENDENT
    if isinstance(groups, str) and ids is None and not independent:
        raise refuse_kind("groups", groups, "a sequence, because the images have no ids")
    found = one_per_image("group", groups_of(ids or (), groups), num_images)
    images = units_of(num_images, None, ids)
    unknown = found is not None or independent or ids is None or num_images < FEW_UNITS
    if blocks is None and unknown:
        return Design(units_of(num_images, found, ids), images)
    if found is not None:
        sequences: Sequences | None = sequences_of(images.names, found)
    else:
        sequences = None if ids is None else sequences_in_names(images.names)
    if blocks is None and sequences is None:
        return Design(images, images)
    sequences = sequences or Sequences(("",), (np.arange(num_images),))
    scores = [one.of_images() for one in scored]
    differences = [b - a for a, b in combinations(scores, 2)]
    each = [dependence_of(values, sequences) for values in differences or scores]
    strongest = max(each, key=lambda found: found.design_effect)
    if blocks is None:
        return Design(images, images, None, strongest)
    longest = max(found.block_length for found in each)
    chosen = Blocks(sequences, longest if blocks == "auto" else float(blocks))
    return Design(chosen.units(images.names), images, chosen, strongest)


def check_blocks(groups: Groups | None, blocks: BlockLength | None) -> None:
    """Reject an invalid block length, and blocks of images declared independent."""
    if blocks is None:
        return
    if blocks != "auto":
        if isinstance(blocks, str):
            msg = f"blocks must be 'auto' or a number of images, got {blocks!r}"
            raise ValueError(msg)
        check_number("blocks", blocks, 1)
    if isinstance(groups, str) and groups == INDEPENDENT:
        msg = "groups='none' (independent images) contradicts blocks; pass only one of them"
        raise ValueError(msg)
