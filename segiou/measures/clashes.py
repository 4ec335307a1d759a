"""Names of measures and scores that are taken, and measures that take them."""

from __future__ import annotations

from collections.abc import Iterable
from re import findall
from typing import TYPE_CHECKING

from segiou.measures.guard import is_own, package_of

if TYPE_CHECKING:
    from segiou.measures.measure import Measure
    from segiou.measures.plan import Plan

#: Options of the command line and keys of the JSON report; no measure may have such a key.
RESERVED = frozenset(
    findall(
        r"\w+",
        """
        allow_lossy backend baseline blocks boundary_options boundary_tolerance classes cohen_kappa
        common compiled dask detail empty examples exclude extra fail_if_worse fail_over fail_under
        fine_grained format format_version frequency_weighted_iou gap geometry group_by groups help
        help_all html ids ignore ignored images intervals junit key labels left_out level majority
        matrix matrix_cells mean_accuracy mean_dice mean_iou mean_iou_classes method min_size
        missing name names never_predicted next_steps no_open num_classes on_error output pairs
        per_image pixel_accuracy pixels plots pred pred_labels pred_suffix problems processes
        protocol provenance quiet resamples resize_pred reverse rule run seed segiou_version shard
        skipped sort spacing surface surface_cases surface_plan things thresholds title truth
        truth_suffix unassigned version workers worst worst_by worst_images
        """,
    )
)
#: Columns of tables of classes and images.
_COLUMNS = frozenset(
    findall(
        r"\w+",
        """
        aacc acc_gap class class_name false_positive_classes fn fp gap group id influence low high
        mean objects_missed objects_false_positive row share structure tn tp value weight
        """,
    )
)


def check_key(kind: type[Measure]) -> None:
    """Raise ValueError if a measure of another package has a key that is taken."""
    from segiou.measures.registry import measure_of, own_keys

    if is_own(kind):
        return
    key = getattr(kind, "key", None)
    if not isinstance(key, str) or not key.isidentifier():
        msg = f"{kind.__module__}.{kind.__qualname__}: key must be a Python name, got {key!r}"
        raise ValueError(msg)
    package = package_of(kind)
    if key in own_keys() and not issubclass(kind, measure_of(key)):
        msg = f"the measure {key!r} is defined by segiou and {package}; rename it in {package}"
        raise ValueError(msg)
    if key not in own_keys() and (key in RESERVED or is_taken(key)):
        msg = f"the key {key!r} of a measure of {package} is a name of segiou; rename it there"
        raise ValueError(msg)


def is_taken(score: str) -> bool:
    """Whether segiou has a score, column or option of this name."""
    from segiou.measures.registry import own_scores
    from segiou.measures.score_names import ALIASES, spellings
    from segiou.metrics import overall
    from segiou.metrics.pixel_scores import CASE_SCORES, PIXEL_SCORES

    taken = {*PIXEL_SCORES, *CASE_SCORES, *ALIASES, *_COLUMNS, *own_scores()}
    several = set(spellings(score))
    return bool(several & taken or several & RESERVED or several & overall.__dict__.keys())


def check_scores(plans: Iterable[Plan]) -> None:
    """Raise ValueError for a score whose name is taken, or reads as that of a mean only."""
    from segiou.measures.score_names import is_whole

    owners: dict[str, str] = {}
    for plan in plans:
        kind = type(plan.measure)
        package = package_of(kind)
        for name in () if is_own(kind) else plan.scores:
            other = owners.setdefault(name, package)
            other = "segiou" if is_taken(name) else other
            if other != package:
                msg = f"score {name!r} is defined by {other} and {package}; rename it in {package}"
                raise ValueError(msg)
            if is_whole(name):
                msg = (
                    f"score {name!r} of {package} has the name of a mean, so its classes cannot be "
                    "read; remove 'mean' from the name there"
                )
                raise ValueError(msg)
