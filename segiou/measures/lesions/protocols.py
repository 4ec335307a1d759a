"""Protocols of lesion-wise scores: rules of challenges."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal

from segiou._support.arguments import (
    check_choice,
    check_flag,
    check_integer,
    check_kind,
    check_number,
    read_several,
)
from segiou._support.numbers import number_in
from segiou.regions.components import read_connectivity
from segiou.regions.conventions import CONVENTIONS


@dataclass(frozen=True, slots=True)
class LesionProtocol:
    """A challenge's rules to extract lesions from a class map, match and score them.

    Attributes
    ----------
    name : str
    description : str
    regions : mapping of str to tuple of int, optional
        Classes of each region whose components are lesions; by default every
        class present except 0.
    connectivity : int, optional
        As for ``label_components``.
    merge : int
        True components that touch after this many dilations are one lesion.
    matching : {"any", "greatest", "iou", "dice", "id"}
        ``"any"``: a lesion is matched with every predicted object that it
        touches, and an object may match several lesions; ``"greatest"``: with
        the object that shares the most voxels; ``"iou"``: one to one, at an IoU
        of at least ``threshold``, maximising the sum of IoU; ``"dice"``: the same
        with Dice; ``"id"``: with the object of the same id.
    reach : int
        For ``"any"``: number of dilations of the lesion before matching.
    threshold : float
        Least IoU or Dice of a match, for ``"iou"`` and ``"dice"``.
    min_volume : float
        True lesions of this volume (mm³) or less count neither as found nor as
        missed.
    convention : str
        Convention of the distances; see ``segiou.measures.surfaces.surface_scores``.
    penalty : float, optional
        Distance of missed and false-positive lesions, whose Dice is 0. If None,
        means cover found lesions only.
    nothing : tuple of two floats
        Dice and distance if neither side has a lesion.
    none_found : tuple of two floats
        Without a penalty, Dice and distance if there are lesions but none was
        found.
    surface_dice : bool
        Whether surface Dice is scored too: of the lesions, and with HD95 of the
        whole region. In the convention of medpy, it is the mean of both shares of the
        surfaces within the tolerance, as in panoptica; in others, the share of both
        together.
    tolerance : float, optional
        Tolerance of surface Dice; by default the smallest spacing.
    farthest : float
        Distance of a whole region in one mask only.
    large : float, optional
        Volume (mm³) from which lesions are large. Means then cover large lesions
        and every false positive, and both bands count every false positive.
    least_dice : float
        Least Dice of lesions that count as found in the bands.
    published : bool
        Whether surfaces are measured as the published code does: the region in
        voxels with a tolerance of 0.5, and lesions with the spacing in reverse.
    label_set : str
        Preset with the values of the regions; empty if any classes have lesions.
    """

    name: str
    description: str
    regions: Mapping[str, tuple[int, ...]] | None = None
    connectivity: int | None = None
    merge: int = 0
    matching: Literal["any", "greatest", "iou", "dice", "id"] = "any"
    reach: int = 0
    threshold: float = 0.5
    min_volume: float = 0.0
    convention: str = "segiou"
    penalty: float | None = None
    nothing: tuple[float, float] = (math.nan, math.nan)
    none_found: tuple[float, float] = (math.nan, math.nan)
    surface_dice: bool = False
    tolerance: float | None = None
    farthest: float = math.inf
    large: float | None = None
    least_dice: float = 0.0
    published: bool = False
    label_set: str = ""

    def __post_init__(self) -> None:
        options: dict[str, Any] = {name: getattr(self, name) for name in self.__slots__}
        for name in ("name", "description", "label_set"):
            check_kind(name, options[name], str, "text")
        check_choice("matching", self.matching, ("any", "greatest", "iou", "dice", "id"))
        check_choice("convention", self.convention, tuple(CONVENTIONS))
        for name in ("merge", "reach"):
            object.__setattr__(self, name, check_integer(name, options[name], 0))
        for name in ("threshold", "least_dice"):
            check_number(name, options[name], 0, 1)
        for name in ("min_volume", "penalty", "large", "tolerance", "farthest"):
            if options[name] is not None or name in ("min_volume", "farthest"):
                check_number(name, options[name], 0)
        for name in ("surface_dice", "published"):
            check_flag(name, options[name])
        for name in ("nothing", "none_found"):
            several = read_several(name, options[name], "two numbers, Dice and a distance")
            if [isinstance(number, Real) and not number < 0 for number in several] != [True, True]:
                msg = f"{name} must be two numbers that are not negative, got {options[name]}"
                raise ValueError(msg)
        read_connectivity(self.connectivity)
        _check_regions(self.regions)


def _check_regions(regions: object) -> None:
    """Raise an error unless regions are mask values by name."""
    wanted = "mask values by name, such as {'ET': (3,)}"
    check_kind("regions", regions, (Mapping, type(None)), wanted)
    several: Any = regions or {}
    for name, values in several.items():
        check_kind("a name of regions", name, str, "text")
        for value in read_several(f"regions[{name!r}]", values, "a sequence of mask values"):
            check_integer(f"a value of regions[{name!r}]", value, 0)


#: Dilations and the volume (mm³) that lesions must exceed, per BraTS 2023 challenge.
_BRATS = {"gli": (3, 50), "ssa": (3, 50), "ped": (3, 50), "men": (1, 50), "met": (1, 2)}
#: Values of each region, per BraTS 2026 challenge.
_SHARED = {"et": (3,), "tc": (1, 3), "wt": (1, 2, 3)}
_BRATS_2026: dict[str, dict[str, tuple[int, ...]]] = {
    "gli": {"snfh": (2,), "et": (3,), "netc": (1,), "rc": (4,), "tc": (1, 3), "wt": (1, 2, 3)},
    "mets": {"et": (3,), "rc": (4,), "tc": (1, 3), "wt": (1, 2, 3)},
    "ped": {
        **{"et": (1,), "netc": (2,), "cc": (3,), "ed": (4,)},
        **{"tc": (1, 2, 3), "wt": (1, 2, 3, 4)},
    },
    **dict.fromkeys(("menpre", "goat"), _SHARED),
    "menrt": {"gtv": (1,)},
}
#: Presets with the values of BraTS 2026; the others are those of 2023.
_LABELS_2026 = {"gli": "brats2024-gli", "mets": "brats2024-gli", "ped": "brats2024-ped"}
_LABELS_2026["menrt"] = "binary"
#: Distance of a region in one mask only, and of lesions without a match, in BraTS 2026.
BRATS_FARTHEST = 373.0
#: Prefix of protocols for any structure, before the distance of unmatched components or SKIP.
COMPONENTS, SKIP = "components-", "skip"
#: Distances that unmatched components may have.
_NEAREST, _FARTHEST = 1e-3, 1e6


def _components_protocol(unmatched: str) -> LesionProtocol:
    """The protocol with this rule for unmatched components; ValueError for an unknown word."""
    penalty, words = None, "are skipped"
    if unmatched != SKIP:
        try:
            distance = number_in(unmatched)
        except ValueError:
            distance = math.nan
        if not _NEAREST <= distance <= _FARTHEST:
            msg = (
                f"protocol {COMPONENTS}{unmatched}: expected {COMPONENTS}{SKIP}, or a distance of "
                f"unmatched components from {_NEAREST:g} to {_FARTHEST:g}, such as {COMPONENTS}374"
            )
            raise ValueError(msg)
        unmatched, penalty = repr(distance).removesuffix(".0"), distance
        words = f"have HD95 {unmatched}, Dice 0 and surface Dice 0"
    return LesionProtocol(
        f"{COMPONENTS}{unmatched}",
        f"components, one-to-one matches of largest Dice; unmatched ones {words}",
        matching="dice",
        threshold=1e-6,
        surface_dice=True,
        penalty=penalty,
        farthest=math.inf if penalty is None else penalty,
    )


#: Protocols of lesion-wise scores by name.
LESION_PROTOCOLS = {
    protocol.name: protocol
    for protocol in (
        *(
            LesionProtocol(
                f"brats2023-{challenge}",
                f"BraTS 2023 {challenge.upper()}: lesions above {least} mm³, {dilations} dilations",
                regions={"WT": (1, 2, 3), "TC": (1, 3), "ET": (3,)},
                merge=dilations,
                reach=dilations,
                min_volume=least,
                convention="surface-distance",
                penalty=374.0,
                nothing=(1.0, 0.0),
                label_set="brats2023",
            )
            for challenge, (dilations, least) in _BRATS.items()
        ),
        *(
            LesionProtocol(
                f"brats2026-{challenge}",
                f"BraTS 2026 {challenge.upper()}: one-to-one matches of largest Dice",
                regions,
                matching="dice",
                threshold=1e-6,
                convention="medpy",
                none_found=(0.0, math.inf),
                surface_dice=True,
                penalty=BRATS_FARTHEST if challenge == "mets" else None,
                farthest=BRATS_FARTHEST,
                large=20.0 if challenge == "mets" else None,
                least_dice=0.1,
                label_set=_LABELS_2026.get(challenge, "brats2023"),
            )
            for challenge, regions in _BRATS_2026.items()
        ),
        LesionProtocol(
            "autopet",
            "autoPET: any overlap",
            {"lesion": (1,)},
            connectivity=18,
            label_set="binary",
        ),
        LesionProtocol(
            "panoptica",
            "panoptica: one-to-one matches at IoU 0.5",
            matching="iou",
            convention="medpy",
            none_found=(0.0, math.inf),
        ),
        *map(_components_protocol, (SKIP, "374")),
    )
}


def read_protocol(protocol: str | LesionProtocol) -> LesionProtocol:
    """A protocol by its name, or the protocol itself."""
    if isinstance(protocol, LesionProtocol):
        return protocol
    if isinstance(protocol, str) and protocol.startswith(COMPONENTS):
        return _components_protocol(protocol.removeprefix(COMPONENTS))
    check_choice("protocol", protocol, tuple(LESION_PROTOCOLS))
    return LESION_PROTOCOLS[protocol]
