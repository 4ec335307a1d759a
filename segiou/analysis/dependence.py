"""Images that are not independent, by their names and scores, and what is drawn because of it."""

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
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from segiou._support.arguments import check_number, refuse_kind
from segiou._support.files import printable
from segiou._support.text import Json, listed, plain, roughly
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
#: A correlation this many standard errors above 0 is no chance.
_SURE = 1.96
#: A variance below this is of rounding.
_ROUNDING = 1e-24
#: Ways to write the groups that are tried before the general expression.
_PLAIN_PATTERNS = (r"^[^_]+", r"^[^/]+", r"^[^-]+")

Members = tuple[NDArray[np.intp], ...]


@dataclass(frozen=True, eq=False)
class Sequences:
    """Images in their order: of one sequence each, by the numbers in the names."""

    names: tuple[str, ...]
    members: Members
    """Indices of the images of each sequence, in order."""
    pattern: str = ""
    """The regular expression that finds the name of the sequence in an id."""

    @property
    def images(self) -> int:
        """How many images there are."""
        return sum(len(own) for own in self.members)


@dataclass(frozen=True, slots=True)
class Dependence:
    """How far images are from independent, as far as names and scores show it.

    Attributes
    ----------
    sequences : mapping of str to int
        Name of each sequence, and how many images it has.
    pattern : str
        The regular expression that finds the name of the sequence in an id;
        empty where the sequences were not found in the ids.
    correlations : tuple of float
        Of the scores of images that are 1, 2, … places apart in a sequence.
    design_effect : float
        How many times larger the variance of a mean over the images is than it
        would be over independent ones: 1 + 2 Σ ρ_k.
    block_length : float
        Expected length of the blocks of a stationary bootstrap along the
        sequences, by D. Politis and H. White (2004).
    correlated : bool
        Whether neighbours score more alike than chance would have it.
    """

    sequences: dict[str, int]
    pattern: str
    correlations: tuple[float, ...]
    design_effect: float
    block_length: float
    correlated: bool

    @property
    def images(self) -> int:
        """How many images there are."""
        return sum(self.sequences.values())

    @property
    def few_sequences(self) -> bool:
        """Whether there are several sequences, but too few to stand for others."""
        return 1 < len(self.sequences) < FEW_UNITS

    @property
    def effective_images(self) -> float:
        """Independent images that tell as much."""
        return self.images / max(self.design_effect, 1.0)

    @property
    def noteworthy(self) -> bool:
        """Whether to say so beside intervals and p that take images for independent."""
        return self.correlated or (self.few_sequences and self.images >= FEW_UNITS)

    def to_dict(self) -> dict[str, Json]:
        """Plain values, unrounded; None where undefined."""
        found: dict[str, Any] = plain(self)
        return found | {"images": self.images, "effective_images": self.effective_images}

    @property
    def doubts(self) -> list[str]:
        """Why an interval over the images is less sure, in a few words each."""
        few = [f"from only {len(self.sequences)} sequences"] if self.few_sequences else []
        return few + (["neighbours score alike"] if self.correlated else [])

    def sentences(self, *, p: bool = False) -> list[str]:
        """Say what it does to intervals, why, and what to do.

        Parameters
        ----------
        p : bool, default False
            Whether a p is shown, too.

        Returns
        -------
        list of str
        """
        return [printable(said) for said in (self._meaning(p=p), self._reason(), self._remedy())]

    @property
    def where(self) -> str:
        """The sequences in words."""
        number = len(self.sequences)
        return "this sequence" if number == 1 else f"these {number} sequences"

    def _meaning(self, *, p: bool) -> str:
        nothing = f"intervals{' and p' if p else ''} say nothing about other sequences"
        if not self.correlated:
            return f"The {nothing}."
        wider = math.sqrt(max(self.design_effect, 1.0))
        covered = roughly(math.erf(_SURE / wider / math.sqrt(2)))
        return (
            f"The intervals are about {wider:.1f} times too narrow, since neighbouring images "
            f"score alike: those of 95 % hold the true value in {covered} of cases"
            f"{', and p is too small' if p else ''}."
            f"{f' The {nothing}.' if self.few_sequences else ''}"
        )

    def _reason(self) -> str:
        start = "In the order of their names, the scores of neighbours correlate by "
        if len(self.sequences) > 1:
            sizes = listed([f"{name} {size}" for name, size in self.sequences.items()], 4)
            start = (
                f"By their names, the {self.images} images come from "
                f"{'only ' if self.few_sequences else ''}{len(self.sequences)} sequences "
                f"({sizes}). The scores of neighbours correlate by "
            )
        return (
            f"{start}{self.correlations[0]:.2f} (design effect {self.design_effect:.2f}): the "
            f"{self.images} images tell as much as about {self.effective_images:.0f} independent "
            "ones."
        )

    def _remedy(self) -> str:
        if len(self.sequences) < FEW_UNITS:
            fix = 'To take neighbours into account: --blocks auto (Python: blocks="auto")'
        else:
            pattern = shlex.quote(self.pattern)
            fix = f"To draw whole sequences: --group-by {pattern} (Python: groups={pattern})"
        return f'{fix}; if the images are independent: --group-by none (Python: groups="none").'


@lru_cache(maxsize=1)  # the same images are asked again for every metric
def sequences_in_names(ids: tuple[str, ...]) -> Sequences | None:
    """Sequences that the names show: a common beginning, then numbers; None where there are none.

    Tries the last number in the names as the place in a sequence, then the last two, and so
    on, until a sequence has two images on average.
    """
    # The text that all names end with, from its first character that is no digit.
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
    """Sequences of given names, each in the order of the numbers in its ids."""
    members: dict[Any, list[int]] = {}
    for i, name in enumerate(names):
        members.setdefault(name, []).append(i)

    def order(i: int) -> list[tuple[int, str]]:
        """What ids are sorted by: texts as they are, numbers by value."""
        parts = re.split(r"(\d+)", ids[i])
        return [(int(part), "") if k % 2 else (-1, part) for k, part in enumerate(parts)]

    ordered = (np.array(sorted(own, key=order), dtype=np.intp) for own in members.values())
    return Sequences(tuple(map(str, members)), tuple(ordered), pattern)


def _plainest(ids: Sequence[str], names: Sequence[str]) -> Sequences | None:
    """The same sequences by a plain expression, where there is one."""
    for pattern in _PLAIN_PATTERNS:
        with suppress(ValueError):
            found = group_by_pattern(ids, pattern)
            if len(set(zip(found, names, strict=True))) == len(set(found)) == len(set(names)):
                return sequences_of(ids, found, pattern)
    return None


def dependence_of(values: Floats, sequences: Sequences) -> Dependence:
    """How alike neighbours score, by a score of each image, (N,); it may be undefined for some."""
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
    """Correlations ρ_1, ρ_2, … along sequences, about a centre or about the mean of each sequence.

    They are 0 where nothing varies but for rounding.
    """
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
    """How many correlations in a row must be negligible for all later ones to be."""
    return max(5, int(math.log10(number)))


def _windowed(correlations: Floats, number: int) -> Floats:
    """Correlations ρ_1, ρ_2, … under the flat-top window of Politis and White; 0 from where on."""
    run, most = _negligible(number), len(correlations)
    small = np.abs(correlations) < 2 * math.sqrt(math.log10(number) / number)
    starts = (k for k in range(most - run) if small[k : k + run].all())
    width = min(2 * (1 + next(starts, most)), most)
    window = np.clip(2 * (1 - np.arange(1, most + 1) / width), 0, 1)
    return np.asarray(window * correlations)


def _block_length(correlations: Floats, number: int) -> float:
    """Block length of D. N. Politis and H. White, Econometric Reviews 23 (2004), 53-70.

    As corrected by A. Patton, D. Politis and H. White, Econometric Reviews 28 (2009), 372-375.
    Of images whose scores do not go together, or only in opposite directions, it is 1.
    """
    windowed = _windowed(correlations, number)
    effect = 1 + 2 * float(windowed.sum())
    if effect <= 1:
        return 1.0
    moment = 2 * float((np.arange(1, len(windowed) + 1) * windowed).sum())
    length = (moment**2 / effect**2 * number) ** (1 / 3)
    longest = math.ceil(min(3 * math.sqrt(number), number / 3))
    return float(min(max(length, 1.0), longest))


#: Length of the blocks, or ``"auto"``: by how far the scores of neighbours go together.
BlockLength = float | Literal["auto"]
#: Draws weights (B, N) of images for B resamples.
Draw = Callable[[int], NDArray[np.int64]]


@dataclass(frozen=True, eq=False)
class Blocks:
    """Stretches of a mean length along sequences, drawn and swapped together."""

    sequences: Sequences
    length: float

    def units(self, ids: Sequence[str]) -> Units:
        """Blocks of equal length, the last of a sequence maybe shorter: what is swapped."""
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
        """Draw weights by the stationary bootstrap, along each sequence by itself.

        D. N. Politis and J. P. Romano, J. Amer. Statist. Assoc. 89 (1994), 1303-1313: from a
        place drawn at random go on to the next, the first after the last, and with chance
        1 / length start again.
        """
        # One stream for places and one for ends, so that batches do not change the numbers.
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
    """Draws how often each unit is in each resample, (B, U): Multinomial(U, 1/U), U draws each."""
    rng = np.random.default_rng(seed)
    return lambda resamples: times_drawn(rng.integers(0, units, (resamples, units)), units)


def times_drawn(drawn: NDArray[np.intp], units: int) -> NDArray[np.int64]:
    """How often each unit stands in each row (B, U); the array is used up."""
    drawn += np.arange(len(drawn))[:, None] * units
    found = np.bincount(drawn.ravel(), minlength=len(drawn) * units)
    return found.reshape(len(drawn), units)


@dataclass(frozen=True, eq=False)
class Design:
    """The units of a test set, and what their independence rests on.

    ``units`` are swapped, left out and counted. They are drawn, too, unless there are blocks:
    then ``images`` are. ``dependence`` is None where groups are given, or the images are said
    to be independent.
    """

    units: Units
    images: Units
    blocks: Blocks | None = None
    dependence: Dependence | None = None

    @property
    def block_length(self) -> float | None:
        """Mean length of the blocks, if there are any."""
        return None if self.blocks is None else self.blocks.length


def design_of(
    scored: Sequence[ScoredImages[Any]], groups: Groups | None, blocks: BlockLength | None
) -> Design:
    """Find what is drawn, and how far it is from independent by the scores of one or more models.

    Of several, it is their differences on each image that matter.
    """
    ids, num_images = scored[0].ids, scored[0].num_images
    check_blocks(groups, blocks)
    independent = isinstance(groups, str) and groups == INDEPENDENT
    if isinstance(groups, str) and ids is None and not independent:
        raise refuse_kind("groups", groups, "a sequence where images have no ids to search")
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
    """Refuse blocks that are no length, or blocks of images that are said to be independent."""
    if blocks is None:
        return
    if blocks != "auto":
        if isinstance(blocks, str):
            msg = f"blocks must be 'auto' or a number of images, got {blocks!r}"
            raise ValueError(msg)
        check_number("blocks", blocks, 1)
    if isinstance(groups, str) and groups == INDEPENDENT:
        msg = (
            "groups 'none' says that the images are independent, and blocks that they are not; "
            "leave one of them out"
        )
        raise ValueError(msg)
