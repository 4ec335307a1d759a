"""Distances between surfaces in a run: what is measured in each case, and its rows as text."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from segiou import metrics
from segiou._support.arguments import check_integer, check_kind
from segiou._support.text import Json, did_you_mean
from segiou.boundary.boundary_options import read_spacing
from segiou.boundary.codes import LabelCodes, ignored_code
from segiou.boundary.surface_cases import case_counts, flat_scores
from segiou.boundary.surfaces import CONVENTIONS, LONE, SurfaceOptions, SurfaceRow, measure_surfaces
from segiou.counting.counts import Cells, CellTally, Counts
from segiou.counting.encoding import Encoding
from segiou.labels.class_options import ClassOptions
from segiou.runs.image_counts import Columns, ImageCount

#: What of a row is the same in all cases, or the name of the case.
_KNOWN = ("label", "case", "tolerances")


@dataclass(frozen=True)
class SurfacePlan:
    """What is measured between the surfaces of every case of a run.

    Attributes
    ----------
    options : SurfaceOptions
    structures : mapping of str to tuple of int
        Classes and regions that are measured, each as indices of classes.
    unit : str
        Of the distances: ``"mm"`` of volumes, ``"px"`` of images; empty where
        only the spacing knows.
    spacing : tuple of float, optional
        Size of a pixel or voxel along each axis, in place of what the files say.
    """

    options: SurfaceOptions
    structures: Mapping[str, tuple[int, ...]]
    unit: str = "px"
    spacing: tuple[float, ...] | None = None

    @classmethod
    def of(
        cls,
        options: SurfaceOptions,
        classes: ClassOptions,
        *,
        volumes: bool,
        in_mm: bool = False,
        spacing: Any = None,
    ) -> SurfacePlan:
        """Every class that means include, and every group of classes.

        In volumes a class whose only value is 0 has no surface.

        Parameters
        ----------
        options : SurfaceOptions
            What is measured.
        classes : ClassOptions
            The classes, and what is ignored.
        volumes : bool
            Whether the cases are volumes.
        in_mm : bool, default False
            Whether the distances are in mm; in pixels, or units of the spacing, by default.
        spacing : array_like, optional
            Size of a pixel or voxel, in place of what files say.
        """
        check_kind("surfaces", options, SurfaceOptions, "True, a convention or SurfaceOptions")
        values = classes.labels.class_values
        left_out = {c for c, v in enumerate(values) if v == (0,) and volumes}
        left_out.update(classes.exclude)
        chosen: dict[str, tuple[int, ...]] = {
            name: (c,) for c, name in enumerate(classes.labels.class_names) if c not in left_out
        }
        # A region of one class may have its name, as one of BraTS has.
        for name, members in classes.groups:
            chosen[name if chosen.get(name, members) == members else f"{name} (region)"] = members
        usual = CONVENTIONS[options.convention]
        own: dict[int | str, tuple[float, ...]] = {
            name: v for name, v in options.tolerances_of.items() if name in chosen
        }
        if unknown := options.tolerances_of.keys() - chosen - usual.tolerances_of.keys():
            name = str(min(unknown, key=str))
            msg = (
                f"a tolerance of {name!r}: there is no such structure, but "
                f"{', '.join(chosen)}{did_you_mean(name, chosen)}"
            )
            raise ValueError(msg)
        unit = "mm" if in_mm else "px" if spacing is None else ""
        if spacing is not None:
            spacing = read_spacing(spacing)
        elif volumes:
            spacing = usual.spacing
        return cls(replace(options, tolerances_of=own), chosen, unit, spacing)

    def difference(self, other: SurfacePlan) -> str:
        """Say in what other plans differ; empty if they do not.

        Parameters
        ----------
        other : SurfacePlan
            What to compare with.

        Returns
        -------
        str
        """
        mine, theirs = ({**p.to_dict(), **p.options.to_dict()} for p in (self, other))
        return "; ".join(
            f"surface {name} is {mine[name]} here and {theirs[name]} there"
            for name in mine
            if name != "options" and mine[name] != theirs[name]
        )

    def to_dict(self) -> dict[str, Json]:
        """Plain values, for JSON; :meth:`from_dict` reads them."""
        structures = {name: list(members) for name, members in self.structures.items()}
        spacing = None if self.spacing is None else list(self.spacing)
        own = {"options": self.options.to_dict(), "structures": structures, "spacing": spacing}
        return {**vars(self), **own}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> SurfacePlan:
        """Read what :meth:`to_dict` gave.

        Parameters
        ----------
        data : mapping
            What :meth:`to_dict` gave.
        """
        structures = {
            name: tuple(check_integer("a class", c, 0) for c in members)
            for name, members in data["structures"].items()
        }
        spacing = None if data["spacing"] is None else read_spacing(data["spacing"])
        options = SurfaceOptions.from_dict(data["options"])
        return cls(options, structures, str(data["unit"]), spacing)

    def measure(
        self,
        classes: ClassOptions,
        truth: Any,
        pred: Any,
        *,
        mask: Any = None,
        spacing: Sequence[float] | None = None,
    ) -> str:
        """The rows of one case, as text; ``spacing`` is that of its file.

        Parameters
        ----------
        classes : ClassOptions
            The classes, and what is ignored.
        truth : array_like
            Label map or volume of the truth.
        pred : array_like
            The same of the prediction.
        mask : array_like, optional
            True where a pixel counts; all by default.
        spacing : sequence of float, optional
            Spacing of the file.

        Returns
        -------
        str
        """
        values, ignore = classes.labels.class_values, classes.ignore
        if classes.pred_labels != classes.labels or mask is not None:
            codes = LabelCodes(Encoding.of_classes(classes))
            truth, pred = codes.encode(truth, pred, mask, batch=True)
            values = tuple((c,) for c in range(classes.num_classes))
            ignore = (ignored_code(truth.dtype),)
        structures: dict[int | str, list[int]] = {
            name: [value for c in members for value in values[c]]
            for name, members in self.structures.items()
        }
        rows = measure_surfaces(
            truth,
            pred,
            structures,
            ignore=ignore,
            spacing=self.spacing or spacing,
            options=self.options,
        )
        kept = [{k: v for k, v in row.to_dict().items() if k not in _KNOWN} for row in rows]
        return json.dumps(kept, allow_nan=False, separators=(",", ":"))

    def rows(self, text: str, case: str) -> list[SurfaceRow]:
        """The rows of one case.

        Parameters
        ----------
        text : str
            What :meth:`measure` gave.
        case : str
            Id of the case.

        Returns
        -------
        list of SurfaceRow

        Raises
        ------
        ValueError
            If the text is not what :meth:`measure` gave.
        """
        try:
            rows = []
            for label, entry in zip(self.structures, json.loads(text), strict=True):
                about = {"label": label, "case": case, "tolerances": self._tolerances(label)}
                rows.append(SurfaceRow.from_dict({**entry, **about}, self.options))
        except (AttributeError, LookupError, TypeError, RecursionError, ValueError) as error:
            msg = f"its surfaces are no rows: {type(error).__name__}: {error}"
            raise ValueError(msg) from error
        return rows

    def _tolerances(self, label: str) -> tuple[float, ...]:
        return self.options.tolerances_of.get(label, self.options.tolerances)

    def dice(self, rows: Sequence[SurfaceRow]) -> Counts | None:
        """Surface Dice at the first tolerance of each case and structure, (N, R), if any.

        Parameters
        ----------
        rows : sequence of SurfaceRow
            Rows of cases.

        Returns
        -------
        Counts or None
        """
        if not self.options.tolerances:
            return None
        shape = -1, len(self.structures)
        dice = [next(iter(row.values(self.options)["surface_dice"].values())) for row in rows]
        in_truth = [row.state in ("found", "missed") for row in rows]
        return case_counts(np.reshape(dice, shape), np.reshape(in_truth, shape))

    def overlaps(self, image: ImageCount, num_classes: int) -> list[dict[str, float]]:
        """IoU and Dice of each structure in a case, with what counts where a mask is empty.

        Parameters
        ----------
        image : ImageCount
            The case.
        num_classes : int
            C.

        Returns
        -------
        list of dict
            ``"iou"`` and ``"dice"`` of each structure.
        """
        cells = Cells(image.cells, image.values, image.ignored)
        counts = CellTally(num_classes, cells).group_counts([*self.structures.values()])
        lone = [counts.truth + counts.pred == 0, counts.truth == 0, counts.pred == 0]
        found = {}
        for name, values in (("iou", metrics.iou(counts)), ("dice", metrics.dice(counts))):
            rules = [self.options.filling(name, state, np.nan) for state in LONE]
            found[name] = np.select(lone, rules, values).tolist()
        return [{"iou": i, "dice": d} for i, d in zip(*found.values(), strict=True)]

    def columns(self, block: Columns, class_names: Sequence[str]) -> dict[str, list[float]]:
        """Columns of a table of cases; the IoU of classes stands there already.

        Parameters
        ----------
        block : Columns
            The cases.
        class_names : sequence of str
            Names of the classes.

        Returns
        -------
        dict
        """
        data: dict[str, list[float]] = {
            f"{measure}:{name}": []
            for name in self.structures
            for measure in (*["iou"] * (name not in class_names), *self._measures(name))
        }
        for image in block:
            rows = self.rows(image.surfaces or "", image.id)
            overlaps = self.overlaps(image, len(class_names))
            for row, overlap in zip(rows, overlaps, strict=True):
                found = {**overlap, **flat_scores(row.values(self.options))}
                for measure, value in found.items():
                    if (name := f"{measure}:{row.label}") in data:
                        data[name].append(value)
        return data

    def _measures(self, name: str) -> list[str]:
        bands = ((0, 0, 0),) * len(self.options.widths)
        nothing = SurfaceRow(name, "", "absent", 0, (0, 0), self._tolerances(name), (), bands=bands)
        return ["dice", *flat_scores(nothing.values(self.options))]
