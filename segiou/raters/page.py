"""Agreement of raters as an HTML page with the disagreement map of each case."""

from __future__ import annotations

import heapq
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from segiou._support.text import nouns, plural
from segiou.document.parts import Facts, Table
from segiou.raters.result import RaterAgreement, notes, verdicts
from segiou.raters.votes import Votes
from segiou.report.pages.page import feature_page
from segiou.report.pages.pictures import grey_png

#: Most maps of a page, and the most pixels of their longer side.
_MAPS, _LARGEST = 60, 320


class CaseMap(NamedTuple):
    """The disagreement map of a case.

    Attributes
    ----------
    share : float
        Mean share of experts who differ from the majority.
    id : str
        The case.
    picture : str
        PNG as a data URI; white where the vote is split evenly.
    slice : str
        Which slice of a volume it is; empty for images.
    """

    share: float
    id: str
    picture: str
    slice: str


class CaseMaps:
    """Collects the disagreement maps of the cases in which the experts disagree most.

    Parameters
    ----------
    experts : int
        Number of experts; later raters are models.
    """

    def __init__(self, experts: int) -> None:
        self.experts: int = experts
        self.cases: int = 0
        self._most: list[CaseMap] = []

    def add(self, id: str, votes: Votes, inverse: NDArray[np.int64]) -> None:
        """Draw the map of a case from its votes and the pattern of each pixel."""
        expert_votes = votes.expert_votes(self.experts)
        table = expert_votes.table(1 + int(expert_votes.patterns.max(initial=0)))
        total = table.sum(1)
        share = np.where(total > 0, 1 - table.max(1) / np.maximum(total, 1), 0.0)
        image, text = _shown(share[inverse])
        step = -(-max(image.shape) // _LARGEST)
        grey = np.rint(np.minimum(2 * image[::step, ::step], 1) * 255).astype(np.uint8)
        mean = float(share @ expert_votes.pixels / expert_votes.pixels.sum())
        heapq.heappush(self._most, CaseMap(mean, id, grey_png(grey), text))
        self.cases += 1
        if len(self._most) > _MAPS:
            heapq.heappop(self._most)

    @property
    def shown(self) -> list[CaseMap]:
        """The maps, the largest disagreement first."""
        return sorted(self._most, reverse=True)

    @property
    def note(self) -> str:
        """Selection of the shown cases."""
        if self.cases <= _MAPS:
            return ""
        cases = plural(_MAPS, "case")
        return f"The {cases} with the largest disagreement of {self.cases} are shown."


def _shown(share: NDArray[Any]) -> tuple[NDArray[Any], str]:
    """The image, or the slice of a volume with the largest disagreement."""
    if share.ndim == 2:
        return share, ""
    slices = np.moveaxis(share, int(np.argmin(share.shape)), 0)
    at = int(slices.sum(axis=(1, 2)).argmax())
    return slices[at], f"slice {at + 1} of {len(slices)}"


def raters_html(agreement: RaterAgreement, maps: CaseMaps) -> str:
    """The page: verdicts, agreement, pairs, and maps."""
    parts = [*agreement._parts()]
    context = {
        "agreement": agreement,
        "verdicts": verdicts(agreement),
        "notes": notes(agreement),
        "facts": next(part for part in parts if isinstance(part, Facts)).rows,
        "tables": [part for part in parts if isinstance(part, Table)],
        "maps": maps,
        "pixel": nouns(agreement._pixel_unit).pixel,
    }
    names, unit = agreement.class_names, agreement._pixel_unit
    return feature_page("segiou.raters:page.html", context, names, unit)
