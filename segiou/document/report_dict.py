"""Keys and types of a report as plain data, as type checkers see them."""

from typing import Any, NotRequired, TypedDict


class ClassDict(TypedDict):
    """Scores and pixels of a class or a group; None is undefined."""

    name: str
    iou: float | None
    dice: float | None
    precision: float | None
    recall: float | None
    specificity: float | None
    balanced_accuracy: float | None
    volumetric_similarity: float | None
    tp: int
    fp: int
    fn: int
    share: float | None


class ValueDict(TypedDict):
    """A value with the limits of its interval, if it has one; ``"inf"`` is infinite."""

    value: float | str | None
    low: NotRequired[float | str | None]
    high: NotRequired[float | str | None]


class ScoreDict(ValueDict):
    """A score: its overall value and its name, the number of classes in a mean, and the rows."""

    title: str
    unit: str
    better: str | None
    overall: str
    classes: int | None
    rows: dict[str, ValueDict]


class StepDict(TypedDict):
    """An error and the gain of fixing it, as in :class:`segiou.analysis.NextStep`."""

    kind: str
    truth: str | None
    pred: str | None
    gain: float
    low: float | None
    high: float | None
    tied: bool
    pixels: int
    share: float | None
    images: list[str]


#: The scores of always predicting the most frequent class.
MajorityDict = TypedDict(
    "MajorityDict", {"class": str | None, "pixel_accuracy": float | None, "mean_iou": float | None}
)


class MeasuresDict(TypedDict):
    """What segiou's own measures found; None where they were not measured."""

    area: dict[str, Any] | None
    boundary: list[dict[str, Any]] | None
    boundary_options: dict[str, Any] | None
    case_means: dict[str, Any] | None
    components: dict[str, Any] | None
    lesions: dict[str, Any] | None
    objects: dict[str, Any] | None
    partitions: dict[str, Any] | None
    referring: dict[str, Any] | None
    score_histograms: dict[str, Any] | None
    surface_cases: list[dict[str, Any]] | None
    surface_plan: dict[str, Any] | None
    surfaces: list[dict[str, Any]] | None
    topology: dict[str, Any] | None


class ReportDict(MeasuresDict):
    """A report as plain data; measures of other packages add further keys."""

    format: str
    format_version: int
    segiou_version: str
    backend: str
    compiled: dict[str, bool]
    title: str
    protocol: str
    rule: str
    pairs: int
    left_out: int
    pixels: int
    ignored: int
    mean_iou: float | None
    mean_iou_classes: int
    num_classes: int
    skipped: dict[str, str]
    never_predicted: list[str]
    mean_dice: float | None
    pixel_accuracy: float | None
    mean_accuracy: float | None
    gap: float | None
    frequency_weighted_iou: float | None
    cohen_kappa: float | None
    majority: MajorityDict
    fine_grained: dict[str, Any] | None
    next_steps: list[StepDict]
    threshold_gains: list[dict[str, Any]]
    image_cautions: list[dict[str, Any]]
    scores: dict[str, ScoreDict]
    classes: list[ClassDict]
    groups: list[ClassDict]
    matrix: list[list[int]] | None
    matrix_cells: NotRequired[list[list[int]]]
    unassigned: list[int]
    ignored_predictions: int
    intervals: dict[str, Any] | None
    worst_images: dict[str, Any] | None
    provenance: dict[str, Any]
