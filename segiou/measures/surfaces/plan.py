"""The built-in measure of surfaces: distances per case, scores and their table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from segiou._support.files import printable
from segiou._support.numbers import NUMBER, cell
from segiou._support.text import Json, did_you_mean, listed
from segiou.counting.encoding import Encoding
from segiou.measures.mask_pair import MaskPair
from segiou.measures.parts import Field, Layout, Parts
from segiou.measures.plan import Counted, Plan
from segiou.measures.score import Quantity, Score, mean_first
from segiou.measures.score_table import CaseScores, ScoreTable
from segiou.measures.score_values import ScoreValues
from segiou.measures.surfaces.measuring import measure_surfaces
from segiou.measures.surfaces.rows import STATES, SurfaceRows, flat_name, row_type
from segiou.metrics.ratio import Floats
from segiou.regions.conventions import CONVENTIONS, DISTANCES, SHARES
from segiou.regions.label_codes import LabelCodes, ignored_code
from segiou.regions.tolerance import Length, length_text

if TYPE_CHECKING:
    from segiou.measures.surfaces.options import SurfaceOptions

_ABOUT = (
    "Cases in which each structure was found, missed or a false positive, and the distance from "
    "predicted to true surface."
)
_WORDS = {"hausdorff": "HD", "average_surface_distance": "ASSD"}
#: Titles of the scores that have a tolerance or width.
_TITLES = {
    "surface_dice": "surface Dice",
    "boundary_precision": "boundary precision",
    "boundary_recall": "boundary recall",
    "boundary_f1": "boundary F1",
    "boundary_iou": "Boundary IoU",
}
#: Those that only the summary has.
_PARTS_OF_F1 = ("boundary_precision", "boundary_recall")
#: Those that are scores at the first tolerance.
_SCORES = ("surface_dice", "boundary_f1")


@dataclass(frozen=True)
class SurfacePlan(Plan):
    """Plan of the surfaces measure."""

    measure: SurfaceOptions

    def __post_init__(self) -> None:
        usual = CONVENTIONS[self.options.convention].tolerances_of
        individual = self.options.tolerances_of
        if unknown := individual.keys() - self.structures.keys() - usual.keys():
            name = str(min(unknown, key=str))
            msg = (
                f"unknown structure {name!r} in tolerances; choose from "
                f"{', '.join(self.structures)}{did_you_mean(name, self.structures)}"
            )
            raise ValueError(msg)
        known: dict[Any, Any] = {
            name: limits for name, limits in individual.items() if name in self.structures
        }
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
        usual = CONVENTIONS[self.options.convention].spacing if self.masks.volumes else None
        return self.options.spacing or self.masks.spacing or usual

    @property
    def unit(self) -> str:
        """Unit of the distances: ``"mm"``, ``"px"``, or empty if it is that of the spacing."""
        spacing = self.options.spacing or self.masks.spacing
        return self.options.unit or self.masks.unit or ("px" if spacing is None else "")

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

    @property
    def counted_structures(self) -> tuple[tuple[int, ...], ...]:
        """The structures."""
        return tuple(self.structures.values())

    @property
    def layout(self) -> Layout:
        """One row per case with the numbers of each structure; rows do not add up."""
        width = row_type(self.options).itemsize // np.dtype(np.float64).itemsize
        shape = len(self.structures), width
        return {"cases": Field(shape, rows=True, floats=True, single=True)}

    def count(self, pair: MaskPair) -> Parts:
        """Measure a case."""
        truth, pred, values, ignore = self._labels(pair)
        structures: dict[int | str, list[int]] = {
            name: [value for c in members for value in values[c]]
            for name, members in self.structures.items()
        }
        rows = measure_surfaces(
            truth,
            pred,
            structures,
            ignore=ignore,
            spacing=self.spacing or pair.spacing,
            options=self.options,
        )
        tally: Any = pair.tally
        counts = tally.group_counts([*self.structures.values()])
        pixels = np.stack([counts.tp, counts.fp, counts.fn], axis=-1)
        rows.numbers["pixels"] = pixels.reshape(-1, 3)
        shape = self.layout["cases"].shape
        return Parts.of(self.layout, cases=rows.numbers.view(np.float64).reshape(shape))

    def _labels(self, pair: MaskPair) -> tuple[Any, Any, Sequence[tuple[int, ...]], Any]:
        """Truth, prediction, the values of each class in them, and ignored values."""
        classes = self.classes
        if classes.pred_labels == classes.labels and pair.mask is None:
            return pair.truth, pair.pred, classes.labels.class_values, classes.ignore
        codes = LabelCodes(Encoding.of_classes(classes))
        truth, pred = codes.encode(pair.truth, pair.pred, pair.mask, batch=True)
        values = [(c,) for c in range(classes.num_classes)]
        return truth, pred, values, (ignored_code(truth.dtype),)

    def check(self, parts: Parts) -> None:
        """Reject impossible rows."""
        numbers = self._numbers(parts)
        is_found = numbers["state"] == STATES.index("found")
        always = ("state", "diagonal", "sizes", "within", "bands", "pixels")
        used = [numbers[name] for name in always]
        used += [numbers[name][is_found] for name in ("hausdorff", "average", "percentiles")]
        if (
            not all((np.isfinite(part) & (part >= 0)).all() for part in used)
            or any((numbers[name] % 1).any() for name in ("state", "bands", "pixels"))
            or (numbers["state"] >= len(STATES)).any()
            or (is_found & ~numbers["sizes"].any(-1)).any()
        ):
            msg = "invalid surface rows"
            raise ValueError(msg)

    def _numbers(self, parts: Parts) -> NDArray[np.void]:
        """The numbers of each case and structure, (N, R)."""
        cases = np.ascontiguousarray(parts["cases"])
        return np.asarray(cases.view(row_type(self.options))[..., 0])

    def rows(self, parts: Parts, cases: Sequence[str] | None = None) -> SurfaceRows:
        """The rows of cases, as returned by :func:`segiou.measures.surfaces.measure_surfaces`.

        Parameters
        ----------
        parts : Parts
            Parts of N cases.
        cases : sequence of str, optional
            Ids of the cases.
        """
        numbers, labels = self._numbers(parts), tuple(self.structures)
        ids = [""] * len(numbers) if cases is None else cases
        of_rows = tuple(case for case in ids for _ in labels)
        return SurfaceRows(self.options, of_rows, labels * len(numbers), numbers.ravel())

    def counts_of(self, run: Any) -> SurfaceRows:
        """The distances, one row per case and structure."""
        return self.rows(run.measured[self.key], run.ids)

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
        columns = self.rows(parts).values()
        return {
            name: column.reshape(len(parts["cases"]), len(self.structures))
            for name, column in columns.items()
        }

    def columns(self, parts: Parts) -> dict[str, NDArray[Any]]:
        """Columns of a table of cases; the IoU of classes is already in it."""
        values, classes = self.values(parts), self.classes.labels.class_names
        none = np.zeros((0, len(self.structures)))
        return {
            f"{measure}:{name}": values.get(measure, none)[:, i]
            for i, name in enumerate(self.structures)
            for measure in self._measures(name)
            if measure != "iou" or name not in classes
        }

    @cached_property
    def image_columns(self) -> tuple[Quantity, ...]:
        """Columns with titles: distances, and shares at each tolerance or width."""
        titles = {"dice": "Dice", "iou": "IoU"}
        columns = []
        for column in super().image_columns:
            name = column.name.partition(":")[0]
            start, _, length = name.rpartition("_")
            title = titles.get(name) or column.title.removeprefix("median ")
            if start in _TITLES:
                title = f"{_TITLES[start]} {self._length_text(length)}"
            columns.append(replace(column, title=title))
        return tuple(columns)

    def _length_text(self, length: Length) -> str:
        text = length_text(length)
        return text if text.endswith("%") else f"{text} {self.unit}".rstrip()

    @cached_property
    def scores(self) -> Mapping[str, Score]:
        """Mean shares at the first tolerance, and medians of distances over the cases."""
        names, scores = tuple(self.structures), {}
        options: Any = {"seen": self._seen, "rule": "cases"}
        every = np.ones(len(names), dtype=bool)
        for name in _SCORES if self.options.tolerances else ():
            shares = partial(self._shares, name)
            scores[name] = Score.of_cases(name, _TITLES[name], names, shares, seen=self._seen)
        for name in self._distances:
            title = f"median {_WORDS.get(name, name.replace('hausdorff_', 'HD'))}"
            numbers = partial(self._case_distances, name)
            options |= {
                "unit": self.unit or "units",
                "better": "lower",
                "alone": partial(self._alone, name),
                "median_of": partial(self._case_distances, name),
                "each": partial(self._each, name),
            }
            scores[name] = Score.of_names(name, title, names, every, numbers, _whole, **options)
        return scores

    @property
    def _distances(self) -> list[str]:
        percentiles = [f"hausdorff_{p:g}" for p in self.options.percentiles]
        return ["hausdorff", *percentiles, "average_surface_distance"]

    def _seen(self, parts: Parts) -> NDArray[np.bool_]:
        return np.isin(parts["cases"][..., 0], [1, 2])  # found or missed

    def _shares(self, name: str, parts: Parts) -> Floats:
        """A share at the first tolerance of each case and structure, (N, R)."""
        shares = self.rows(parts).shares(name)[:, 0]
        return np.asarray(shares.reshape(len(parts["cases"]), len(self.structures)))

    def _alone(self, name: str, parts: Parts) -> Floats:
        """Mean distance of each case; the diagonal where it is infinite."""
        values = self._distances_of(name, parts)
        finite = np.where(np.isfinite(values), values, self._numbers(parts)["diagonal"])
        return np.asarray(finite.mean(-1))

    def _case_distances(self, name: str, parts: Parts) -> Floats:
        """Distance of each case: infinite for a missed or false positive structure."""
        state = parts["cases"][..., 0]
        values = np.where(state == 1, self._distances_of(name, parts), np.inf)
        return np.where(state > 0, values, np.nan)

    def _distances_of(self, name: str, parts: Parts) -> Floats:
        return self.rows(parts).distances()[name].reshape(len(parts["cases"]), len(self.structures))

    def _each(self, name: str, parts: Parts) -> Floats:
        """Mean distance of each case, then its structures."""
        return mean_first(self._case_distances(name, parts), np.ones(len(self.structures), bool))

    def table(self, counted: Counted) -> ScoreTable:
        """States of each structure and its scores over the cases."""
        rows = self.rows(counted.total, counted.ids())
        summary: Any = rows.summary()
        columns = self._columns(summary, counted)
        plan, case_rows = self.described(), self._case_rows(rows)
        names = [f"hausdorff_{percentile:g}" for percentile in self.options.percentiles]
        first = (*names, "hausdorff")[0]
        title = first.replace("hausdorff_", "HD")
        return ScoreTable(
            key="surfaces",
            title="Surface distances",
            about=_ABOUT,
            rows=tuple(self.structures) if summary else (),
            columns=tuple(columns),
            means=("mean",),
            note=f"{surface_note(plan, self.options)}; found, missed and false positive of the "
            "mean are totals",
            of="structure",
            empty=(
                *(not any(c.values[i] for c in columns[:3]) for i in range(len(summary))),
                False,
            ),
            data={
                "surfaces": tuple(summary),
                "surface_cases": case_rows,
                "surface_plan": plan,
            },
            cases=CaseScores(case_rows, first, title, self.unit, "dice"),
        )

    def _case_rows(self, rows: SurfaceRows) -> tuple[dict[str, Json], ...]:
        """Case, label, state and scores of each row."""
        values = {name: column.tolist() for name, column in rows.values().items()}
        about = zip(rows.cases, rows.labels, rows.states, strict=True)
        measures = {name: self._measures(name) for name in self.structures}
        return tuple(
            {"case": case, "label": label, "state": state}
            | {name: values[name][index] for name in measures[str(label)]}
            for index, (case, label, state) in enumerate(about)
        )

    def _columns(self, summary: Any, counted: Counted) -> list[ScoreValues]:
        """States, then the mean, median and mean of found cases of every measure."""
        columns = []
        for state in ("found", "missed", "false_positive"):
            head, cases = state.replace("_", " "), [row[state] for row in summary]
            names = (row["label"] for row in summary)
            column = ScoreValues.of_counts(f"surfaces_{state}", head, names, cases, [sum(cases)])
            columns.append(column)
        measures = {n: None for row in summary for n, value in row.items() if type(value) is dict}
        kinds = ("mean", "median", "mean_of_found")
        columns += [
            self._column(name, kind, summary, counted)
            for name in measures
            for kind in (kinds[:1] if name.startswith(_PARTS_OF_F1) else kinds)
        ]
        return columns

    def _column(self, name: str, kind: str, summary: Any, counted: Counted) -> ScoreValues:
        """The mean, median or mean of found cases of a measure."""
        head, score = self._shown.get((name, kind), ""), self._score_of(name, kind)
        values = None if score is None else counted.values_of(score)
        column = ScoreValues(
            f"{name}:{kind}",
            head,
            {row["label"]: row.get(name, {}).get(kind, np.nan) for row in summary},
            (np.nan,) if values is None else values.means,
            intervals=None if values is None else values.intervals,
            texts=self._own_tolerance_texts(name, summary) if head else {},
        )
        if name.startswith(DISTANCES):
            return replace(column, unit=self.unit or NUMBER, better="lower")
        return column

    def _score_of(self, name: str, kind: str) -> Score | None:
        """The score that a column has: shares at the first tolerance, and medians."""
        limits = self.options.tolerances[:1]
        first = {flat_name(score, limit): score for score in _SCORES for limit in limits}
        score = self.scores.get(first.get(name, name))
        return score if kind == ("mean" if name in first else "median") else None

    def _own_tolerance_texts(self, name: str, summary: Any) -> dict[str, str]:
        """Shares of structures with their own tolerance, not that of the column, as text."""
        places = {
            flat_name(score, limit): (score, index)
            for score in SHARES
            for index, limit in enumerate(self.options.tolerances)
        }
        if name not in places or not self.options.tolerances_of:
            return {}
        share, index = places[name]
        texts = {}
        for row in summary:
            limit = self.options.tolerances_at(row["label"])[index]
            score = row[flat_name(share, limit)]["mean"]
            if name not in row:
                texts[row["label"]] = f"{cell(score)} at {self._length_text(limit)}"
        return texts

    @cached_property
    def _shown(self) -> dict[Any, str]:
        """Headers of the columns shown in text."""
        options = self.options
        # The name of the column of the report's own table, if it is the same number.
        is_same = self.masks.volumes and _empty_values(options, "dice") == _AS_IN_REPORTS
        headers: dict[Any, str] = {
            ("dice", "mean"): "Dice, mean over cases" if is_same else "Dice mean"
        }
        for p in options.percentiles[:1]:
            headers |= {(f"hausdorff_{p:g}", "median"): f"HD{p:g} median"}
            headers |= {(f"hausdorff_{p:g}", "mean_of_found"): f"HD{p:g} mean"}
        headers |= {("average_surface_distance", "mean_of_found"): "ASSD mean"}
        shown: dict[str, tuple[Length, ...]] = {
            "boundary_f1": () if self.masks.volumes else options.tolerances[:1],
            "surface_dice": options.tolerances,
            "boundary_iou": options.widths,
        }
        for name, lengths in shown.items():
            titles = {n: f"{_TITLES[name]} {self._length_text(n)}" for n in lengths}
            headers |= {(flat_name(name, n), "mean"): title for n, title in titles.items()}
        return headers

    def _measures(self, label: int | str) -> list[str]:
        """Names of the scores of a structure in tables of cases."""
        return [
            flat_name(name, length)
            for name, length in self.options.scores_of(label)
            if name not in _PARTS_OF_F1
        ]


def _whole(values: Floats) -> Floats:
    """The values themselves, because medians need those of all cases."""
    return values[..., 0]


#: Names of the states with an empty mask.
_EMPTY: dict[Any, str] = {
    "missed": "a missed structure",
    "false_positive": "a false positive",
    "absent": "a structure absent from both",
}
#: Values of empty masks in a report's own Dice over cases; None is skipped.
_AS_IN_REPORTS = {"missed": 0.0, "false_positive": 0.0, "absent": None}


def _empty_values(options: SurfaceOptions, measure: str) -> dict[str, float | None]:
    """The value of a measure in each state of an empty mask; None if it is skipped."""
    values = {state: float(options.filling_rule(measure, state)) for state in _EMPTY}
    return {state: None if math.isnan(value) else value for state, value in values.items()}


def surface_note(plan: Mapping[str, Any], rules: SurfaceOptions) -> str:
    """One line on how surfaces were measured and how missed structures count."""
    from segiou.masks.formats.volumes import spacing_text

    options = plan["options"]
    unit = {"px": "pixels", "": "units of the spacing"}.get(plan["unit"], plan["unit"])
    if plan["spacing"]:
        unit += f", spacing {spacing_text(plan['spacing'])} (overrides the files)"
    if not options.get("border", True):
        unit += ", no surface at the border"
    individual = [
        f"{label} {', '.join(map(length_text, limits))}"
        for label, limits in options["tolerances_of"]
    ]
    counted = _counted_empty(rules)
    return (
        f"surfaces: convention {options['convention']}, distances in {unit}. Medians cover all "
        "cases; a missed or false-positive structure counts as infinitely far. Distance means "
        "cover found structures only, so missing more structures can improve them. Dice, surface "
        f"Dice and boundary F1 are means over the cases, in which {counted}"
        f"{f'; individual tolerances: {printable(listed(individual))}' if individual else ''}"
    )


def _counted_empty(options: SurfaceOptions) -> str:
    """Sentence part on the Dice and surface Dice of empty masks."""

    def words(measure: str) -> str:
        texts = [
            f"{_EMPTY[state]} {'is skipped' if value is None else f'counts as {value:g}'}"
            for state, value in _empty_values(options, measure).items()
            if state != "absent" or value is not None
        ]
        return ", ".join(texts)

    dice, surface_dice = words("dice"), words("surface_dice")
    if dice != surface_dice:
        return f"for Dice {dice}; for surface Dice {surface_dice}"
    if dice == "a missed structure counts as 0, a false positive counts as 0":
        return "a missed or false-positive structure counts as 0"
    return dice
