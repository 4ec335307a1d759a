"""Every measure there is, by its key: segiou's own, and those that other packages add."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from segiou._support.arguments import check_kind, read_several
from segiou._support.optional import find_plugin, plugin_names
from segiou._support.text import did_you_mean

if TYPE_CHECKING:
    from segiou.labels.class_options import ClassOptions
    from segiou.measures.measure import Measure, Plan

_OWN = {
    "lesions": ("segiou.instances.lesion_plan", "LesionMeasure"),
    "boundary": ("segiou.boundary.boundary_options", "BoundaryOptions"),
    "objects": ("segiou.instances.object_files", "ObjectOptions"),
    "surfaces": ("segiou.boundary.surface_plan", "SurfaceMeasure"),
}
#: Names of the scores of segiou's own, for which no module is loaded.
_NAMES = {
    "lesions": ("lesion_f1", "lesion_dice", "lesion_hd95"),
    "boundary": ("boundary_iou",),
    "objects": ("pq", "sq", "rq"),
    "surfaces": ("surface_dice", "hausdorff_95", "hausdorff", "average_surface_distance"),
}


def measure_keys() -> tuple[str, ...]:
    """Keys of all measures."""
    return (*_OWN, *plugin_names("measures"))


def measure_of(key: str) -> type[Measure]:
    """The measure of a key; raises ValueError where there is none."""
    if key in _OWN:
        module, name = _OWN[key]
        own: type[Measure] = getattr(import_module(module), name)
        return own
    found: type[Measure] | None = find_plugin("measures", key, type)
    if found is None:
        hint = did_you_mean(key, measure_keys())
        msg = f"there is no measure {key!r}{hint}; is its package installed?"
        raise ValueError(msg)
    return found


def read_measures(given: Any) -> tuple[Measure, ...]:
    """The measures that a caller chooses: measures, or the keys of usual ones."""
    from segiou.measures.measure import Measure

    wanted = "measures or their keys, such as 'boundary'"
    found = []
    for one in read_several("measures", given, wanted):
        if isinstance(one, str):
            one = measure_of(one).of(True)
        check_kind("each of measures", one, Measure, wanted)
        found.append(one)
    return tuple(found)


def plan_of(key: str, data: Mapping[str, Any], classes: ClassOptions) -> Plan:
    """The plan that :meth:`Plan.to_dict` described."""
    return measure_of(key).plan_from(data, classes)


def measure_of_score(name: Any) -> str | None:
    """The key of the measure that is found under the name of one of its scores."""
    found = (key for key in measure_keys() if name in score_names(key))
    return next(found, None) if isinstance(name, str) else None


def score_names(key: str) -> tuple[str, ...]:
    """Names of the scores of a measure: its key, unless it says others."""
    return _NAMES[key] if key in _NAMES else getattr(measure_of(key), "score_names", (key,))
