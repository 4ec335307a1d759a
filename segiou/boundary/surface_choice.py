"""Choosing surface options: from a convention, boundary options or the command line, and back."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from segiou._support.arguments import check_choice
from segiou._support.text import digits
from segiou.boundary.boundary_options import BoundaryOptions, Tolerance
from segiou.boundary.surface_options import CONVENTIONS, DISTANCES, SurfaceOptions
from segiou.labels.class_options import ClassOptions
from segiou.measures.measure import Masks, Measure, Plan


@dataclass(frozen=True)
class SurfaceConvention(Measure):
    """Surface distances by a convention, with the tolerances of the boundaries.

    Attributes
    ----------
    convention : str
        A key of ``CONVENTIONS``; empty for that of the protocol, or segiou's.
    """

    key: ClassVar[str] = "surfaces"

    convention: str = ""

    def __post_init__(self) -> None:
        if self.convention:
            check_choice("convention", self.convention, tuple(CONVENTIONS))

    def resolved(self, measures: Sequence[Measure], masks: Masks, protocol: str) -> SurfaceOptions:
        """Options of the convention, with the tolerances of the boundaries."""
        tolerances = _boundary_of(measures).tolerances
        if shares := [str(t) for t in tolerances if t.unit == "diagonal"]:
            msg = (
                f"tolerance {shares[0]}: surface tolerances cannot be relative to the diagonal; "
                "use pixels, or mm such as '2mm'"
            )
            raise ValueError(msg)
        is_usual = tolerances == BoundaryOptions().tolerances
        given = () if is_usual else tuple(one.value for one in tolerances)
        options = _of_convention(self.convention, protocol, given, usual=is_usual)
        return options.resolved(measures, masks, protocol)

    def plan(self, classes: ClassOptions, masks: Masks) -> Plan:
        """The plan of the options."""
        return self.resolved((), masks, "segiou").plan(classes, masks)


def _of_convention(
    convention: str, protocol: str | None, tolerances: Sequence[float], *, usual: bool, **own: Any
) -> SurfaceOptions:
    """Options of a convention, by default that of the protocol.

    Without tolerances, ``usual`` takes those of boundaries, unless a challenge defines its own.
    """
    name = convention or (protocol if protocol in CONVENTIONS else "segiou")
    if usual and not tolerances and not CONVENTIONS[name].is_challenge:
        tolerances = [one.value for one in BoundaryOptions().tolerances]
    return SurfaceOptions.of(name, tolerances=tolerances, **own)


def _boundary_of(measures: Sequence[Measure]) -> BoundaryOptions:
    found = (one for one in measures if isinstance(one, BoundaryOptions))
    return next(found, BoundaryOptions((), tolerances=(), contours=()))


def resolved_boundary(
    options: BoundaryOptions, measures: Sequence[Measure], masks: Masks, protocol: str
) -> Measure | None:
    """Boundaries of images; of volumes the surfaces."""
    if not masks.volumes:
        return options if options.widths or options.contours else None
    if options.widths not in ((), BoundaryOptions().widths):
        msg = (
            f"widths {', '.join(map(str, options.widths))}: Boundary IoU of volumes needs widths "
            "in mm; pass --boundary=2mm (Python: surfaces=SurfaceOptions(widths=...))"
        )
        raise ValueError(msg)
    if any(one.key == SurfaceConvention.key for one in measures):
        return None
    return SurfaceConvention().resolved(measures, masks, protocol)


def with_units(
    options: SurfaceOptions, measures: Sequence[Measure], masks: Masks
) -> SurfaceOptions:
    """The options with the unit of their distances, and a spacing that boundaries have."""
    boundary = _boundary_of(measures)
    spacing = options.spacing or masks.spacing
    if spacing is None and boundary.spacing != BoundaryOptions().spacing:
        spacing = boundary.spacing
        options = replace(options, spacing=spacing)
    in_mm = any(tolerance.unit == "mm" for tolerance in boundary.tolerances)
    if in_mm and spacing is None and not masks.volumes:
        msg = "tolerances in mm require the pixel size in mm; pass spacing=(H, W) (--spacing H,W)"
        raise ValueError(msg)
    return replace(options, unit="mm") if in_mm and not masks.unit else options


def _asked(given: Mapping[str, Any]) -> tuple[list[str], list[float], dict[str, list[Tolerance]]]:
    """Widths in pixels, widths in mm, and tolerances by structure, "" for the common ones."""
    texts = [text for text in (given.get("boundary") or "").split(",") if text]
    in_mm = [Tolerance.of(text).value for text in texts if text.endswith("mm")]
    of: dict[str, list[Tolerance]] = {"": []}
    for text in (given.get("boundary_tolerance") or "").split(","):
        if text:
            name, _, value = text.rpartition("=")
            of.setdefault(name.strip(), []).append(Tolerance.of(value))
    return [text for text in texts if not text.endswith("mm")], in_mm, of


def asked_boundary(given: Mapping[str, Any]) -> BoundaryOptions | None:
    """Boundary options from the command line."""
    widths, in_mm, of = _asked(given)
    every = [tolerance for several in of.values() for tolerance in several]
    if not widths and not in_mm and not every:
        return None
    options: dict[str, Any] = {"widths": widths} if widths else {}
    if in_mm or every:
        options["tolerances"] = of[""] or [Tolerance(1, every[0].unit if every else "mm")]
    if not widths and _asks_for_surfaces(given, in_mm, of):
        # The tolerances are those of the surfaces; boundaries are not measured.
        options |= {"widths": (), "trimaps": False, "contours": ()}
    spacing = given.get("spacing")
    if spacing is not None and len(spacing) == 2:
        options["spacing"] = spacing
    return BoundaryOptions(**options)


def _asks_for_surfaces(given: Mapping[str, Any], in_mm: list[float], of: Mapping[str, Any]) -> bool:
    return bool(given.get("surface") or given.get("empty") or in_mm or of.keys() > {""})


def asked_surfaces(given: Mapping[str, Any]) -> Measure | None:
    """Surface options from the command line: a convention, or options that go beyond one."""
    _, in_mm, of = _asked(given)
    if not _asks_for_surfaces(given, in_mm, of):
        return None
    if not (given.get("empty") or in_mm or of.keys() > {""}):
        return SurfaceConvention(given["surface"])
    if len({tolerance.unit for several in of.values() for tolerance in several}) > 1:
        text = given["boundary_tolerance"]
        msg = f"--boundary-tolerance {text}: use the same unit for all tolerances"
        raise ValueError(msg)
    values = {name: [one.value for one in several] for name, several in of.items()}
    common = values.pop("")
    return _of_convention(
        given.get("surface") or "",
        given.get("protocol"),
        common,
        usual=given.get("boundary") is not None and not values,
        tolerances_of=values,
        empty=dict(rule for text in given.get("empty") or () for rule in _rules(text)),
        widths=in_mm,
    )


def _rules(text: str) -> list[tuple[str, tuple[float | str, ...]]]:
    """Values of measures for empty masks, from the command line."""
    name, _, values = text.partition("=")
    try:
        rule = tuple(v if v == "diagonal" else float(v) for v in values.split(","))
    except ValueError:
        msg = (
            f"--empty {text}: expected MEASURE=BOTH,TRUTH,PRED, where values are numbers, nan, inf "
            "or diagonal, e.g. hausdorff_95=nan,diagonal,diagonal"
        )
        raise ValueError(msg) from None
    measure = "hausdorff_percentile" if name.startswith("hausdorff_") else name
    return [(m, rule) for m in (DISTANCES if name == "distances" else [measure])]


def surface_words(options: SurfaceOptions, unit: str, *, has_boundary: bool) -> list[str]:
    """Options of the command line that ask for these surfaces."""
    words = [f"--surface={options.convention}"]
    if options.widths:
        words.append(f"--boundary={','.join(f'{digits(width)}mm' for width in options.widths)}")
    if not has_boundary:
        of = {"": options.tolerances} | {f"{n}=": own for n, own in options.tolerances_of.items()}
        unit = unit.removesuffix("px")
        limits = [f"{name}{digits(limit)}{unit}" for name, own in of.items() for limit in own]
        words.append(f"--boundary-tolerance={','.join(limits)}")
    for measure, values in options.empty.items():
        words.append(f"--empty={measure}={','.join(map(str, values))}")
    return words


def surface_code(options: SurfaceOptions) -> str:
    """Python that makes the options again, without defaults."""
    # NaN and infinity have no literals.
    rules = re.sub(r"\b(nan|inf)\b", r'float("\1")', repr(dict(options.empty)))
    parts = [repr(options.tolerances), f"convention={options.convention!r}"]
    parts += [f"tolerances_of={dict(options.tolerances_of)!r}"] if options.tolerances_of else []
    parts += [f"empty={rules}"] if options.empty else []
    parts += [f"widths={options.widths!r}"] if options.widths else []
    return f"SurfaceOptions({', '.join(parts)})"
