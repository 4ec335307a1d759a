"""The regions and images to review first: numbers, sentences and table."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from segiou._support.numbers import count, percent, shown_range
from segiou._support.text import Json, Nouns, capital, listed, nouns, plain, plural
from segiou.document.findings import Finding
from segiou.document.parts import GAP, Column, Line, Part, Table

#: A reviewer's answers.
VERDICTS = ("wrong", "right", "unclear")
Box = tuple[tuple[int, int], ...]


class Region(NamedTuple):
    """Connected pixels of one class of the truth that are predicted as another.

    Attributes
    ----------
    rank : int
        Place of its entry in the list, from 1; further regions of an image share its place.
    image : str
        The image.
    label, suggestion : str
        Class of the truth, and predicted class.
    pixels : int
        Pixels, or voxels.
    extent : float
        Its share of the pixels of the image that have both classes.
    share : float
        Its share of all pixels with this label and prediction, outside other images of its unit.
    whole : float
        Its share of the object of the truth, or of the prediction, that contains it; the larger
        of both.
    margin : float
        Mean of p(suggestion) − p(label), at least 0; 1 without class scores.
    score : float
        share · √(extent · whole) · margin²; comparable within one list only.
    seen_elsewhere : int
        Images of other units with a region of these classes that is at least as large.
    box : tuple of (int, int)
        Begin and end along each axis; empty if regions were not kept.
    confirmed_by : tuple of str
        Other runs with such a region in this place.
    verdict : {"", "wrong", "right", "unclear"}
        The answer of a review.
    """

    rank: int
    image: str
    label: str
    suggestion: str
    pixels: int
    extent: float
    share: float
    whole: float
    margin: float
    score: float
    seen_elsewhere: int
    box: Box
    confirmed_by: tuple[str, ...] = ()
    verdict: str = ""

    @property
    def box_text(self) -> str:
        """Begin and end along each axis, such as ``87:228 341:428``."""
        return " ".join(f"{begin}:{end}" for begin, end in self.box)

    @property
    def places(self) -> str:
        """First and last place along each axis, such as ``rows 87–227, columns 341–427``."""
        # The axes of volumes have other meanings in every file.
        axes = ("rows", "columns") if len(self.box) == 2 else ("axis 1", "axis 2", "axis 3")
        ends = (f"{begin}–{end - 1}" for begin, end in self.box)
        return ", ".join(f"{axis} {text}" for axis, text in zip(axes, ends, strict=True))

    @property
    def key(self) -> tuple[str, str, str, str]:
        """Identifier in the table of a review."""
        return (self.image, self.label, self.suggestion, self.box_text)

    def to_dict(self) -> dict[str, Json]:
        """Plain values, unrounded."""
        return {**plain(self._asdict()), "box": [list(ends) for ends in self.box]}


class ImageScore(NamedTuple):
    """An image: the score of its first region, and what is remarkable in it.

    Attributes
    ----------
    id : str
    score : float
        0 without a region.
    notes : tuple of str
    """

    id: str
    score: float
    notes: tuple[str, ...] = ()


class ClassPair(NamedTuple):
    """Two classes that are confused in several regions, perhaps by another annotation rule.

    Attributes
    ----------
    label, suggestion : str
        Class of the truth, and predicted class.
    regions, images, pixels : int
        Number of entries, of their images, and their pixels.
    """

    label: str
    suggestion: str
    regions: int
    images: int
    pixels: int


class Reviewed(NamedTuple):
    """Verdicts on the regions that the options select, or on those of a random sample.

    Attributes
    ----------
    wrong, right, unclear : int
        Numbers of regions.
    low, high : float
        Clopper–Pearson interval of the share of wrong ones; NaN unless the list is a random
        sample of which every region has a verdict.
    unmatched : int
        Number of verdicts on regions that the run does not have.
    """

    wrong: int
    right: int
    unclear: int
    low: float = math.nan
    high: float = math.nan
    unmatched: int = 0

    @property
    def share(self) -> float:
        """Share of the wrong among the right and wrong ones."""
        decided = self.wrong + self.right
        return self.wrong / decided if decided else math.nan


@dataclass(frozen=True, eq=False)
class Suspects(Finding):
    """Regions and images to review first, from :func:`segiou.find_suspects`.

    Attributes
    ----------
    names : tuple of str
        The run, and the others that confirm its regions.
    regions : tuple of Region
        The entries, most suspicious first, with up to two further regions of each image.
    images : tuple of ImageScore
        All images in the order of the run.
    pairs : tuple of ClassPair
        The classes of the entries, most frequent first.
    kept : int, optional
        Number of regions of all images; None if only confusion matrices are known.
    reviewed : Reviewed
        Numbers of verdicts.
    random_sample : int, optional
        Number of entries drawn at random from the first ones.
    unit : {"pixels", "voxels"}
        What is counted.
    """

    names: tuple[str, ...]
    regions: tuple[Region, ...]
    images: tuple[ImageScore, ...]
    pairs: tuple[ClassPair, ...]
    kept: int | None
    reviewed: Reviewed
    random_sample: int | None = None
    unit: str = "pixels"

    @property
    def nouns(self) -> Nouns:
        """Names of a pixel and an image, such as voxel and case."""
        return nouns(self.unit)

    @property
    def entries(self) -> list[Region]:
        """The first region of each entry."""
        firsts: dict[int, Region] = {}
        for region in self.regions:
            firsts.setdefault(region.rank, region)
        return [*firsts.values()]

    def rows(self) -> Iterator[dict[str, Json]]:
        """One row per region: its numbers, with the box as text."""
        for region in self.regions:
            yield {
                **region._asdict(),
                "box": region.box_text,
                "confirmed_by": " ".join(region.confirmed_by),
            }

    def to_dict(self) -> dict[str, Json]:
        """Plain values, unrounded; None if undefined."""
        return {
            "runs": list(self.names),
            "regions_kept": self.kept,
            "random_sample": self.random_sample,
            "regions": [region.to_dict() for region in self.regions],
            "images": [plain(image._asdict()) for image in self.images],
            "pairs": [plain(pair._asdict()) for pair in self.pairs],
            "reviewed": plain(self.reviewed._asdict()),
        }

    def __repr__(self) -> str:
        return f"<Suspects: {len(self.entries)} of {plural(len(self.images), self.nouns.image)}>"

    def _parts(self) -> Iterable[Part]:
        yield Line(title(self), "bold")
        if not self.regions:
            yield Line(nothing(self))
            return
        yield GAP
        yield Table(_columns(self), notes(self))


def title(result: Suspects) -> str:
    """The number of entries, and of what."""
    heads = result.entries
    images, image = len({region.image for region in heads}), result.nouns.image
    what = f"{count(len(heads))} of {plural(len(result.images), image)}"
    if images < len(heads):
        what = f"{plural(len(heads), 'region')} in {plural(images, image)}"
    if result.random_sample:
        what = f"a random sample, {what}"
    if result.kept is None:
        return f"Review these {image}s first: {what}"
    return f"Review these regions first: {what} ({plural(result.kept, 'region')} stored)"


def nothing(result: Suspects) -> str:
    """Why the list is empty."""
    if result.kept == 0:
        least = "27 voxels" if result.unit == "voxels" else "9 pixels"
        return f"No region of {least} or more differs from the prediction."
    if result.kept is None:
        return "Predictions agree with the truth in all images, or the options exclude the others."
    return "No region is left with these options."


def notes(result: Suspects) -> list[str]:
    """What the numbers mean, and what they cannot show."""
    several = (
        *_about_pairs(result),
        *_about_images(result),
        *_about_regions(result),
        _share_wrong(result),
        *_about_verdicts(result),
        "predictions must be out of sample: a model that was trained on these masks repeats their "
        "errors, which then look right",
        *_about_models(result),
    )
    return [f"{capital(note)}." for note in several]


def about_errors(result: Suspects) -> str:
    """The share of wrong masks among those with a verdict, as a sentence."""
    return f"{capital(_share_wrong(result))}."


def _share_wrong(result: Suspects) -> str:
    done = result.reviewed
    decided = done.wrong + done.right
    if not decided + done.unclear:
        return (
            "the number of wrong masks is unknown until some are reviewed (--reviewed), because "
            "errors of the model and of the truth look alike"
        )
    unclear = f", {done.unclear} unclear" if done.unclear else ""
    were = "was" if decided == 1 else "were"
    text = f"{done.wrong} of {plural(decided, 'reviewed region')} {were} wrong{unclear}"
    if math.isnan(done.low):
        return f"{text}; later ones are wrong less often, so estimate the rate with --random-sample"
    return f"{text}: {percent(done.share)} ({shown_range(done.low, done.high)}) of those sampled"


def _about_verdicts(result: Suspects) -> Iterator[str]:
    if number := result.reviewed.unmatched:
        yield (
            f"not counted: {plural(number, 'verdict')} on regions that this run does not have, "
            "because regions differ between models"
        )


def _about_pairs(result: Suspects) -> Iterator[str]:
    if several := [pair for pair in result.pairs if pair.regions > 1][:3]:
        shown = (
            f"{pair.label} → {pair.suggestion} {plural(pair.regions, 'region')} in "
            f"{plural(pair.images, result.nouns.image)}"
            for pair in several
        )
        yield f"most frequent pairs: {'; '.join(shown)}"


def _about_images(result: Suspects) -> Iterator[str]:
    by_note: dict[str, list[str]] = {}
    for image in result.images:
        for note in image.notes:
            by_note.setdefault(note, []).append(image.id)
    for note, ids in list(by_note.items())[:5]:
        yield f"{note} in {listed(ids, 3)}"


def _about_regions(result: Suspects) -> Iterator[str]:
    if result.kept is None:
        yield (
            f"{result.nouns.image}s are ranked by their confusion matrices, because the run has no "
            "regions; score with --suspects for boxes and pictures"
        )
    if len(result.images) == 1:
        yield f"entries are ordered by size, because there is only one {result.nouns.image}"


def _about_models(result: Suspects) -> Iterator[str]:
    if len(result.names) > 1:
        yield (
            "models that were trained on the same masks share their errors, so their agreement "
            "is weak evidence"
        )


def _columns(result: Suspects) -> list[Column]:
    """The table: entries with a number, further regions of an image below it without."""
    firsts = {id(region) for region in result.entries}
    rows = result.regions

    def first_only(values: Iterable[str]) -> list[str]:
        return [text if id(row) in firsts else "" for row, text in zip(rows, values, strict=True)]

    axes = "axes 1, 2, 3" if any(len(row.box) == 3 for row in rows) else "rows, columns"
    boxes = [", ".join(f"{begin}–{end - 1}" for begin, end in row.box) for row in rows]
    seen = [count(row.seen_elsewhere) for row in rows]
    confirmed = [", ".join(row.confirmed_by) for row in rows]
    return [
        Column("#", first_only(str(row.rank) for row in rows), 9),
        Column(
            result.nouns.image, first_only(row.image for row in rows), 10, is_text=True, is_id=True
        ),
        Column("label", [row.label for row in rows], 8, is_text=True),
        Column("predicted", [row.suggestion for row in rows], 8, is_text=True),
        Column(result.unit, [count(row.pixels) for row in rows], 3),
        Column(f"of {result.nouns.image}", [percent(row.extent) for row in rows], 5),
        Column("share", [percent(row.share) for row in rows], 4),
        Column("seen elsewhere", seen, 2),
        Column(f"box ({axes})", boxes, 7),
        Column("also in", confirmed, 6, is_text=True),
        Column("verdict", [row.verdict for row in rows], 6, is_text=True),
    ]
