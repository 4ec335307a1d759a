"""What a tool calls the distance between two surfaces: its conventions, by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from segiou.regions.surface_points import Both, Kind, Label, SurfacePair

#: Value of a measure if a mask is empty: a number, or the diagonal of the volume.
Filling = float | Literal["diagonal"]
#: Values if both masks, only the truth, or only the prediction are empty.
Fillings = tuple[Filling, Filling, Filling]
State = Literal["found", "missed", "false_positive", "absent"]
#: States in which a structure is absent from a mask, in the order of `Fillings`.
LONE: Final[tuple[State, ...]] = ("absent", "false_positive", "missed")

#: Tolerances where neither a caller nor a challenge sets them.
TOLERANCES: Final = (1.0, 2.0, 4.0)

_NAN, _INF = float("nan"), float("inf")
_FARTHEST: Fillings = (_NAN, _INF, _INF)
_NOTHING: Fillings = (_NAN, 0.0, 0.0)


@dataclass(frozen=True)
class Convention:
    """A tool's definition of the distance between two surfaces.

    Attributes
    ----------
    surface : {"voxels", "elements"}
        Elements of a surface: voxels of the label with a face to a different
        label, each of weight 1; or corners between voxels that differ, each
        weighted by the area of the surface there.
    percentile : {"linear", "pooled", "weighted", "summed"}
        The larger of both directions' percentiles, interpolated linearly; the
        percentile over the pooled distances of both directions; or the larger
        of both directions' smallest distances within which that share of the
        surface lies, by exact shares or with surface-distance's sums.
    average : {"pooled", "directions"}
        The mean over both surfaces pooled, or the mean of the two means.
    empty : mapping of str to (both empty, truth empty, prediction empty)
        Value of each measure if a mask is empty: a number, or "diagonal". By
        default, if one mask is empty, distances are infinite and shares 0; if
        both are empty, all measures are undefined.
    tolerances, tolerances_of, spacing
        Defaults of a challenge: common tolerances, tolerances of structures by
        name, and a voxel size that overrides the file.
    is_challenge : bool
        Whether the convention defines tolerances.
    """

    surface: Kind
    percentile: Literal["linear", "pooled", "weighted", "summed"]
    average: Literal["pooled", "directions"]
    empty: Mapping[str, Fillings] = field(default_factory=dict)
    tolerances: tuple[float, ...] = TOLERANCES
    tolerances_of: Mapping[Label, tuple[float, ...]] = field(default_factory=dict)
    spacing: tuple[float, ...] | None = None
    is_challenge: bool = False

    def filling(self, measure: str, state: State, chosen: Mapping[str, Fillings]) -> Filling:
        """Value of a measure if a mask is empty, unless other values are chosen.

        A share cannot be a length, so "diagonal" leaves it undefined.
        """
        rules = {**_EMPTY, **self.empty, **chosen}
        value = rules["surface_dice" if measure in SHARES else measure][LONE.index(state)]
        return _NAN if value == "diagonal" and measure not in DISTANCES else value

    def distances(
        self,
        pair: SurfacePair,
        structures: Mapping[Label, tuple[int, ...]] | None,
        percentiles: tuple[float, ...],
    ) -> dict[Label, Both]:
        """Distances of each structure that is present, by default of each label except 0."""
        measured = dict(pair.distances(structures))
        for label, sides in measured.items() if self.percentile == "summed" else ():
            if sides.has_tie(percentiles):
                values = (int(label),) if structures is None else structures[label]
                measured[label] = pair.each_distance(values)
        return measured


#: Distances of a pair of surfaces (the 95th percentile is "hausdorff_95"), and shares.
DISTANCES: Final = ("hausdorff", "hausdorff_percentile", "average_surface_distance")
#: Shares of surfaces within a tolerance.
SHARES: Final = ("surface_dice", "boundary_precision", "boundary_recall", "boundary_f1")
MEASURES: Final = (*DISTANCES, "surface_dice", "dice", "iou")
_EMPTY: Final = dict.fromkeys(DISTANCES, _FARTHEST) | dict.fromkeys(MEASURES[3:], _NOTHING)

_BEST: Fillings = (1.0, 0.0, 0.0)
_WEIGHTED_SUMS = Convention(
    "elements",
    "summed",
    "directions",
    dict.fromkeys(DISTANCES[:2], (_INF,) * 3) | {"average_surface_distance": (_NAN,) * 3},
)


def _challenge(rules: Fillings, tolerances: tuple[float, ...] = (1.0,), **more: Any) -> Convention:
    """surface-distance's surface Dice, with the same rules for Dice and surface Dice."""
    empty = {**_WEIGHTED_SUMS.empty, "surface_dice": rules, "dice": rules}
    return replace(_WEIGHTED_SUMS, empty=empty, tolerances=tolerances, is_challenge=True, **more)


#: Tolerances in mm of the organs of FLARE 2022 and the lesions of FLARE 2023.
_FLARE: Final = {
    **dict.fromkeys(("liver", "pancreas", "stomach"), (5.0,)),
    **dict.fromkeys(("right kidney", "spleen", "esophagus", "left kidney"), (3.0,)),
    **dict.fromkeys(("aorta", "inferior vena cava", "gallbladder", "lesion"), (2.0,)),
    **dict.fromkeys(("right adrenal gland", "left adrenal gland"), (2.0,)),
    "duodenum": (7.0,),
}
_KITS: Final = {
    "kidney_and_mass": (1.0330772532390826,),
    "mass": (1.1328796488598762,),
    "tumor": (1.1498198361434828,),
}

#: Conventions by name. medpy rejects empty masks, so they count as in segiou's convention.
CONVENTIONS: Final = {
    "segiou": Convention("elements", "weighted", "pooled"),
    "medpy": Convention("voxels", "pooled", "pooled"),
    "monai": Convention("voxels", "linear", "pooled", {"hausdorff_percentile": (_NAN,) * 3}),
    "surface-distance": _WEIGHTED_SUMS,
    "metricsreloaded": Convention(
        "voxels",
        "linear",
        "pooled",
        dict.fromkeys(DISTANCES, (0.0, _NAN, _NAN)) | {"surface_dice": _BEST},
    ),
    "totalsegmentator": _challenge((_NAN, _NAN, 0.0), (3.0,), spacing=(1.5, 1.5, 1.5)),
    "kits23": _challenge(_BEST, tolerances_of=_KITS),
    "flare22": _challenge(_BEST, tolerances_of=_FLARE),
}
