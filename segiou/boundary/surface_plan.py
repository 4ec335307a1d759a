"""The built-in measure of surfaces: distances per case, scores and their table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segiou import metrics
from segiou._support.files import printable
from segiou._support.text import Json, did_you_mean, listed, percent
from segiou.boundary.label_codes import LabelCodes, ignored_code
from segiou.boundary.surface_cases import flat_scores, summarize_surfaces
from segiou.boundary.surface_options import CONVENTIONS, DISTANCES, LONE, State, SurfaceOptions
from segiou.boundary.surfaces import SurfaceRow, measure_surfaces
from segiou.counting.counts import Counts
from segiou.counting.encoding import Encoding
from segiou.measures.mask_pair import MaskPair
from segiou.measures.measure import Counted, ImageColumn, Plan
from segiou.measures.parts import Field, Layout, Parts
from segiou.measures.score import Score, with_mean
from segiou.measures.score_table import Column, ScoreTable
from segiou.metrics.ratio import Floats

_STATES: tuple[State, ...] = ("absent", "found", "missed", "false_positive")
_WORDS = {"hausdorff": "HD", "average_surface_distance": "ASSD"}


@dataclass(frozen=True)
class SurfacePlan(Plan):
    """Plan of the surfaces measure."""

    measure: SurfaceOptions

    def __post_init__(self) -> None:
        usual = CONVENTIONS[self.options.convention].tolerances_of
        own = self.options.tolerances_of
        if unknown := own.keys() - self.structures.keys() - usual.keys():
            name = str(min(unknown, key=str))
            msg = (
                f"unknown structure {name!r} in tolerances; choose from "
                f"{', '.join(self.structures)}{did_you_mean(name, self.structures)}"
            )
            raise ValueError(msg)
        known: dict[Any, Any] = {name: v for name, v in own.items() if name in self.structures}
        object.__setattr__(self, "measure", replace(self.options, tolerances_of=known))

    @property
    def options(self) -> SurfaceOptions:
        """Options of the measurement."""
        return self.measure

    @cached_property
    def structures(self) -> Mapping[str, tuple[int, ...]]:
        """Included classes and groups, as class indices; in volumes, class 0 has no surface."""
        classes = self.classes
        values = classes.labels.class_values
        left_out = {c for c, v in enumerate(values) if v == (0,) and self.masks.volumes}
        left_out.update(classes.exclude)
        chosen: dict[str, tuple[int, ...]] = {
            name: (c,) for c, name in enumerate(classes.labels.class_names) if c not in left_out
        }
        # A region of a single class may share its name, as in BraTS.
        for name, members in classes.groups:
            chosen[name if chosen.get(name, members) == members else f"{name} (region)"] = members
        return chosen

    @property
    def spacing(self) -> tuple[float, ...] | None:
        """Size of a pixel or voxel that overrides the files."""
        given = self.options.spacing or self.masks.spacing
        usual = CONVENTIONS[self.options.convention].spacing if self.masks.volumes else None
        return given or usual

    @property
    def unit(self) -> str:
        """Unit of the distances: ``"mm"``, ``"px"``, or empty if it is that of the spacing."""
        given = self.options.spacing or self.masks.spacing
        return self.options.unit or self.masks.unit or ("px" if given is None else "")

    def way(self) -> Mapping[str, Json]:
        """Options that must be equal when models are compared."""
        plain: Any = self.described()
        return {**plain.pop("options"), **plain}

    def described(self) -> dict[str, Json]:
        """Options, structures, spacing and unit as plain values."""
        structures = {name: list(members) for name, members in self.structures.items()}
        options = {k: v for k, v in self.options.to_dict().items() if k not in ("unit", "spacing")}
        spacing = None if self.spacing is None else list(self.spacing)
        return {
            "options": options,
            "structures": structures,
            "spacing": spacing,
            "unit": self.unit,
        }

    @cached_property
    def _fields(self) -> dict[str, slice]:
        """Slices of the numbers in the row of a structure."""
        o = self.options
        own = [len(self._tolerances(label)) for label in self.structures]
        sizes = {"state": 1, "diagonal": 1, "sizes": 2, "hausdorff": 1, "average": 1}
        sizes |= {"within": 2 * max(own, default=0), "percentiles": len(o.percentiles)}
        sizes |= {"bands": 3 * len(o.widths), "pixels": 3}
        stops = np.cumsum([*sizes.values()]).tolist()
        return {name: slice(b - sizes[name], b) for name, b in zip(sizes, stops, strict=True)}

    @property
    def layout(self) -> Layout:
        """One row per case with the numbers of each structure; rows do not add up."""
        width = self._fields["pixels"].stop
        return {"cases": Field((len(self.structures), width), rows=True, floats=True)}

    def count(self, pair: MaskPair) -> Parts:
        """Measure a case."""
        classes, truth, pred = self.classes, pair.truth, pair.pred
        values, ignore = classes.labels.class_values, classes.ignore
        if classes.pred_labels != classes.labels or pair.mask is not None:
            codes = LabelCodes(Encoding.of_classes(classes))
            truth, pred = codes.encode(truth, pred, pair.mask, batch=True)
            values = tuple((c,) for c in range(classes.num_classes))
            ignore = (ignored_code(truth.dtype),)
        structures: dict[int | str, list[int]] = {
            name: [value for c in members for value in values[c]]
            for name, members in self.structures.items()
        }
        how: Any = {"spacing": self.spacing or pair.spacing, "options": self.options}
        rows = measure_surfaces(truth, pred, structures, ignore=ignore, **how)
        tally: Any = pair.tally
        counts = tally.group_counts([*self.structures.values()])
        array = np.full((1, *self.layout["cases"].shape), np.nan)
        for line, row in zip(array[0], rows, strict=True):
            own: dict[str, Any] = {
                **{n: np.ravel(getattr(row, n)) for n in self._fields if hasattr(row, n)},
                "state": [_STATES.index(row.state)],
            }
            for name, numbers in own.items():
                line[self._fields[name]][: len(numbers)] = numbers
        array[0, :, self._fields["pixels"]] = np.stack([counts.tp, counts.fp, counts.fn], axis=-1)
        return Parts.of(self.layout, cases=array)

    def check(self, parts: Parts) -> None:
        """Reject impossible rows."""
        rows, f = parts["cases"], self._fields
        is_found = rows[..., 0] == _STATES.index("found")
        used = np.zeros(rows.shape, dtype=bool)
        used[..., :4] = used[..., f["bands"]] = used[..., f["pixels"]] = True
        for name in ("hausdorff", "average", "percentiles"):
            used[..., f[name]] = is_found[..., None]
        for i, label in enumerate(self.structures):
            start = f["within"].start
            used[:, i, start : start + 2 * len(self._tolerances(label))] = True
        whole = rows[..., [0, *range(f["bands"].start, f["pixels"].stop)]]
        if (
            parts.owner("cases").tolist() != [*range(len(parts))]
            or not np.isfinite(rows[used]).all()
            or (rows[used] < 0).any()
            or (whole % 1).any()
            or (rows[..., 0] >= len(_STATES)).any()
            or (is_found & ~rows[..., f["sizes"]].any(-1)).any()
        ):
            msg = "invalid surface rows"
            raise ValueError(msg)

    def rows(self, parts: Parts, cases: Sequence[str]) -> list[SurfaceRow]:
        """The rows of cases, as returned by :func:`segiou.boundary.measure_surfaces`.

        Parameters
        ----------
        parts : Parts
            Parts of N cases.
        cases : sequence of str
            Ids of the cases.

        Raises
        ------
        ValueError
            If the parts cannot have been counted.
        """
        found, f = [], self._fields
        for case, array in zip(cases, parts["cases"], strict=True):
            for label, line in zip(self.structures, array, strict=True):
                limits, state = self._tolerances(label), _STATES[int(line[0])]
                numbers = {name: line[where].tolist() for name, where in f.items()}
                within = numbers["within"][: 2 * len(limits)]
                bands = line[f["bands"]].reshape(-1, 3).astype(np.int64)
                row = SurfaceRow(
                    label,
                    case,
                    state,
                    numbers["diagonal"][0],
                    tuple(numbers["sizes"]),
                    limits,
                    tuple(zip(within[::2], within[1::2], strict=True)),
                    bands=tuple(map(tuple, bands.tolist())),
                )
                if state == "found":
                    (hausdorff,), (average,) = numbers["hausdorff"], numbers["average"]
                    percentiles = tuple(numbers["percentiles"])
                    row = replace(
                        row, hausdorff=hausdorff, average=average, percentiles=percentiles
                    )
                found.append(row)
        return found

    def counts_of(self, run: Any) -> tuple[SurfaceRow, ...]:
        """The distances, one row per case and structure."""
        return tuple(self.rows(run.measured[self.key], run.ids))

    def _tolerances(self, label: str) -> tuple[float, ...]:
        return self.options.tolerances_of.get(label, self.options.tolerances)

    def overlaps(self, parts: Parts) -> list[dict[str, float]]:
        """IoU and Dice of each structure in each case, with the rules for empty masks.

        Parameters
        ----------
        parts : Parts
            Parts of N cases.

        Returns
        -------
        list of dict
            ``"iou"`` and ``"dice"`` of every structure of the first case, then of the next.
        """
        pixels = parts["cases"][..., self._fields["pixels"]].reshape(-1, 3).T.astype(np.int64)
        counts = Counts.trusted(*pixels, np.zeros_like(pixels[0]))
        lone = [counts.truth + counts.pred == 0, counts.truth == 0, counts.pred == 0]
        found = {}
        for name, values in (("iou", metrics.iou(counts)), ("dice", metrics.dice(counts))):
            rules = [self.options.filling(name, state, np.nan) for state in LONE]
            found[name] = np.select(lone, rules, values).tolist()
        return [{"iou": i, "dice": d} for i, d in zip(*found.values(), strict=True)]

    def values(self, parts: Parts) -> dict[str, Floats]:
        """Every measure of each case and structure, (N, R).

        Parameters
        ----------
        parts : Parts
            Parts of N cases.

        Returns
        -------
        dict of str to ndarray, shape (N, R)
            Values by name of the measure.
        """
        rows = self.rows(parts, [""] * len(parts["cases"]))
        both = zip(rows, self.overlaps(parts), strict=True)
        flat = [{**overlap, **flat_scores(row.values(self.options))} for row, overlap in both]
        names = dict.fromkeys(chain.from_iterable(flat))
        shape = -1, len(self.structures)
        return {n: np.reshape([one.get(n, np.nan) for one in flat], shape) for n in names}

    def columns(self, parts: Parts) -> dict[str, NDArray[Any]]:
        """Columns of a table of cases; the IoU of classes is already in it."""
        values, classes = self.values(parts), self.classes.labels.class_names
        none = np.zeros((0, len(self.structures)))
        return {
            f"{measure}:{name}": values.get(measure, none)[:, i]
            for i, name in enumerate(self.structures)
            for measure in (*["iou"] * (name not in classes), *self._measures(name))
        }

    @cached_property
    def image_columns(self) -> tuple[ImageColumn, ...]:
        """Columns with titles: distances, and shares at each tolerance or width."""
        titles = {"dice": "Dice", "iou": "IoU"}
        named = {"surface_dice": "surface Dice", "boundary_iou": "Boundary IoU"}
        found = []
        for column in super().image_columns:
            name = column.name.partition(":")[0]
            start, _, length = name.rpartition("_")
            title = titles.get(name) or column.title.removeprefix("median ")
            if start in named:
                title = f"{named[start]} {length} {self.unit}".rstrip()
            found.append(column._replace(title=title))
        return tuple(found)

    @cached_property
    def scores(self) -> Mapping[str, Score]:
        """Mean surface Dice at the first tolerance, and medians of distances over the cases."""
        names, found = tuple(self.structures), {}
        how: Any = {"seen": self._seen, "rule": "cases"}
        every = np.ones(len(names), dtype=bool)
        if self.options.tolerances:
            found["surface_dice"] = Score.of_cases(
                "surface_dice", "surface Dice", names, self._dice, seen=self._seen
            )
        for name in self._distances:
            title = f"median {_WORDS.get(name, name.replace('hausdorff_', 'HD'))}"
            numbers = partial(self._of_cases, name)
            how |= {
                "unit": self.unit or "units",
                "better": "lower",
                "alone": partial(self._alone, name),
                "median_of": partial(self._of_cases, name),
                "each": partial(self._each, name),
            }
            found[name] = Score.of_names(name, title, names, every, numbers, _whole, **how)
        return found

    @property
    def _distances(self) -> list[str]:
        percentiles = [f"hausdorff_{p:g}" for p in self.options.percentiles]
        return ["hausdorff", *percentiles, "average_surface_distance"]

    def _seen(self, parts: Parts) -> NDArray[np.bool_]:
        return np.isin(parts["cases"][..., 0], [1, 2])  # found or missed

    def _dice(self, parts: Parts) -> Floats:
        rows = self.rows(parts, [""] * len(parts["cases"]))
        dice = [next(iter(row.values(self.options)["surface_dice"].values())) for row in rows]
        return np.reshape(dice, (-1, len(self.structures)))

    def _alone(self, name: str, parts: Parts) -> Floats:
        """Mean distance of each case; the diagonal where it is infinite."""
        values = np.atleast_2d(self.values(parts)[name]) if len(parts) else np.zeros((0, 1))
        diagonals = parts["cases"][..., self._fields["diagonal"].start]
        finite = np.where(np.isfinite(values), values, diagonals)
        return np.asarray(finite.mean(-1))

    def _of_cases(self, name: str, parts: Parts) -> Floats:
        """Distance of each case: infinite for a missed or false positive structure."""
        state = parts["cases"][..., 0]
        none = np.full(state.shape, np.nan)
        values = np.where(state == 1, self.values(parts).get(name, none), np.inf)
        return np.where(state > 0, values, np.nan)

    def _each(self, name: str, parts: Parts) -> Floats:
        """Mean distance of each case, then its structures."""
        return with_mean(self._of_cases(name, parts), np.ones(len(self.structures), bool))

    def table(self, found: Counted) -> ScoreTable:
        """States of each structure and its scores over the cases."""
        rows, overlaps = self.rows(found.total, found.ids()), self.overlaps(found.total)
        summary: Any = summarize_surfaces(rows, self.options, overlaps)
        _bound(summary, found.intervals.get("surface_dice"))
        columns = self._columns(summary, found)
        about = (
            "Cases in which each structure was found, missed or a false positive, and the distance "
            "from predicted to true surface."
        )
        cases = tuple(
            {"case": r.case, "label": r.label, "state": r.state, **o, **flat_scores(own)}
            for r, o in zip(rows, overlaps, strict=True)
            for own in [r.values(self.options)]
        )
        plan = self.described()
        return ScoreTable(
            "surfaces",
            "Surface distances",
            about,
            tuple(self.structures) if summary else (),
            tuple(columns),
            ("mean",),
            f"{surface_note(plan)}; found, missed and false positive of the mean are totals",
            "structure",
            (*(not any(c.values[i] for c in columns[:3]) for i in range(len(summary))), False),
            data={"surfaces": tuple(summary), "surface_cases": cases, "surface_plan": plan},
        )

    def _columns(self, summary: Any, found: Counted) -> list[Column]:
        """States, then the mean, median and mean of found cases of every measure."""
        columns = []
        for state in ("found", "missed", "false_positive"):
            head, own = state.replace("_", " "), [row[state] for row in summary]
            columns.append(Column.of_counts(f"surfaces_{state}", head, own, [sum(own)]))
        measures = {n: None for row in summary for n, value in row.items() if type(value) is dict}
        for name, kind in product(measures, ("mean", "median", "mean_of_found")):
            is_distance = name.startswith(DISTANCES)
            head = self._shown.get((name, kind), "")
            values = [row.get(name, {}).get(kind, np.nan) for row in summary]
            score = self._score_of(name, kind)
            whole = np.nan if score is None else score.values(found.total)[0]
            column = Column(
                f"{name}:{kind}",
                head,
                tuple(values),
                (float(whole),),
                texts=self._at_own(name, summary) if head else (),
            )
            if score is not None and score.name in found.intervals:
                column = column.with_limits(found.intervals[score.name], score.names)
            if is_distance:
                column = column._replace(kind="distance", unit=self.unit, better="lower")
            columns.append(column)
        # A former name, without a header.
        return [*columns, columns[2]._replace(name="surfaces_invented", title="")]

    def _score_of(self, name: str, kind: str) -> Score | None:
        """The score that a column has: surface Dice at the first tolerance, and medians."""
        first = [f"surface_dice_{limit:g}" for limit in self.options.tolerances[:1]]
        score = "surface_dice" if name in first else name
        return self.scores.get(score) if kind == ("mean" if name in first else "median") else None

    def _at_own(self, name: str, summary: Any) -> tuple[str, ...]:
        """Surface Dice of structures with their own tolerance, not that of the column, as text."""
        common = [f"surface_dice_{t:g}" for t in self.options.tolerances]
        if name not in common or not self.options.tolerances_of:
            return ()
        texts = []
        for row in summary:
            own = self._tolerances(row["label"])[common.index(name)]
            at = f" at {own:g} {self.unit}".rstrip()
            score = row[f"surface_dice_{own:g}"]["mean"]
            texts.append("" if name in row else f"{percent(score, '–')}{at}")
        return tuple(texts)

    @cached_property
    def _shown(self) -> dict[Any, str]:
        """Headers of the columns shown in text."""
        unit, o = f" {self.unit}".rstrip(), self.options
        found: dict[Any, str] = {("dice", "mean"): "Dice mean"}
        for p in o.percentiles[:1]:
            found |= {(f"hausdorff_{p:g}", "median"): f"HD{p:g} median"}
            found |= {(f"hausdorff_{p:g}", "mean_of_found"): f"HD{p:g} mean"}
        found |= {("average_surface_distance", "mean_of_found"): "ASSD mean"}
        for measure, title, lengths in (
            ("surface_dice", "surface Dice", o.tolerances),
            ("boundary_iou", "Boundary IoU", o.widths),
        ):
            found |= {(f"{measure}_{n:g}", "mean"): f"{title} {n:g}{unit}" for n in lengths}
        return found

    def _measures(self, name: str) -> list[str]:
        bands = ((0, 0, 0),) * len(self.options.widths)
        nothing = SurfaceRow(name, "", "absent", 0, (0, 0), self._tolerances(name), (), bands=bands)
        return ["dice", *flat_scores(nothing.values(self.options))]


def _bound(summary: Any, bounds: Any) -> None:
    """Add the interval of the surface Dice of each structure to its summary."""
    by_name = {} if bounds is None else {one.name: one for one in bounds.classes}
    for row in summary if by_name else ():
        first = next(part for name, part in row.items() if name.startswith("surface_dice"))
        one = by_name[row["label"]]
        first |= {"low": one.low, "high": one.high, "level": bounds.level}


def _whole(values: Floats) -> Floats:
    """The values themselves, because medians need those of all cases."""
    return values[..., 0]


#: Names of the states with an empty mask.
_EMPTY: dict[Any, str] = {
    "missed": "a missed structure",
    "false_positive": "a false positive",
    "absent": "a structure absent from both",
}


def surface_note(plan: Mapping[str, Any]) -> str:
    """One line on how surfaces were measured and how missed structures count."""
    from segiou.masks.volumes import spacing_text

    options = plan["options"]
    unit = {"px": "pixels", "": "units of the spacing"}.get(plan["unit"], plan["unit"])
    if plan["spacing"]:
        unit += f", spacing {spacing_text(plan['spacing'])} (overrides the files)"
    own = [
        f"{label} {', '.join(f'{limit:g}' for limit in limits)}"
        for label, limits in options["tolerances_of"]
    ]
    counted = _counted_empty(SurfaceOptions.from_dict(options))
    return (
        f"surfaces: convention {options['convention']}, distances in {unit}. Medians cover all "
        "cases; a missed or false-positive structure counts as infinitely far. Distance means "
        "cover found structures only, so missing more structures can improve them. Dice and "
        f"surface Dice are means over the cases, in which {counted}"
        f"{f'; individual tolerances: {printable(listed(own))}' if own else ''}"
    )


def _counted_empty(options: SurfaceOptions) -> str:
    """Sentence part on the Dice and surface Dice of empty masks."""

    def words(measure: str) -> str:
        rules = {state: options.filling(measure, state, math.nan) for state in _EMPTY}
        texts = [
            f"{_EMPTY[state]} {'is skipped' if math.isnan(value) else f'counts as {value:g}'}"
            for state, value in rules.items()
            if state != "absent" or not math.isnan(value)
        ]
        return ", ".join(texts)

    dice, surface_dice = words("dice"), words("surface_dice")
    if dice != surface_dice:
        return f"for Dice {dice}; for surface Dice {surface_dice}"
    if dice == "a missed structure counts as 0, a false positive counts as 0":
        return "a missed or false-positive structure counts as 0"
    return dice
