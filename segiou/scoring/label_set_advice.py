"""Advice to choose a label set: suggestions without one, and a warning about a wrong one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from segiou._support.text import listed
from segiou.labels.label_set import LabelSet
from segiou.labels.loading import labelset_names, load_labels
from segiou.masks.sources.class_files import IN_FOLDERS, class_layout, folder_names
from segiou.masks.sources.folders import Source
from segiou.masks.sources.opening import open_source
from segiou.scoring.file_values import read_values
from segiou.scoring.inspection import Inspection, inspect_folder, summary_of
from segiou.scoring.label_set_match import GOOD, LISTED, LabelSetMatch, match_of
from segiou.scoring.suspicions import MAY_BE_IDS, OF_IDS
from segiou.scoring.trials import SAMPLE, sampled

#: If a set has at least this many classes and all occur, the match is not a coincidence.
_CERTAIN = 5


def _layout_of(truth: str | Path) -> tuple[str, tuple[str, ...]] | None:
    """Pattern and classes of a folder with one file per class; None for others."""
    try:
        return class_layout(open_source(truth).find())
    except ValueError:  # no masks
        return None


def label_set_question(truth: str | Path, command: str) -> str:
    """Suggest label sets for the masks of a folder, the best match as a full command."""
    needed = "--labels is required to score masks"
    if layout := _layout_of(truth):
        pattern, names = layout
        return (
            f"{truth} has one file per class ({listed(list(names), 8)}). Score them with:\n"
            f"  {command} --class-files '{pattern}'"
        )
    try:
        inspection = inspect_folder(truth, most=SAMPLE)
    except ValueError:  # no masks
        inspection = None
    if inspection is None or not (inspection.proposal or inspection.fitting):
        return (
            f"{needed}: a preset, a TOML file or a number of classes; segiou inspect {truth} "
            "lists the values in the masks"
        )
    option, why, others = _best_option(inspection)
    return "\n".join(
        (
            f"{needed}. Best match for the masks in {truth}:",
            f"  {command} {option}  # {why}",
            *_alternatives(inspection, truth, command, others),
        )
    )


def _best_option(inspection: Inspection) -> tuple[str, str, Sequence[LabelSetMatch]]:
    """The option of the best match, the reason for it, and the other label sets that fit."""
    if not inspection.proposal:
        return inspection.fitting[0].option, inspection.fitting[0].occurring, inspection.fitting[1:]
    why = "no preset fits well"
    if inspection.has_ids:
        why = f"or --labels {max(inspection.values) + 1}: {inspection.suspicions[0]}"
    return inspection.proposal, why, inspection.fitting


def _alternatives(
    inspection: Inspection, truth: str | Path, command: str, others: Sequence[LabelSetMatch]
) -> Iterator[str]:
    """Lines about other meanings of the masks than the best match."""
    if len(inspection.values) < 3 and (names := folder_names(open_source(truth).find())):
        yield f"If the folders are classes ({listed(list(names), 8)}):"
        yield f"  {command} --class-files '{IN_FOLDERS}'"
    if MAY_BE_IDS in inspection.suspicions:
        yield "If the values are ids of objects:"
        yield f"  {command} {OF_IDS}"
    if others:
        names_of_others = ", ".join(fit.name for fit in others[: LISTED - 1])
        yield f"Other label sets with these values: {names_of_others}"
    if number := _consecutive(inspection.values):
        ignored = " --ignore 255" if 255 in inspection.values and number < 255 else ""
        yield f"Classes without names: --labels {number}{ignored}"


def _consecutive(values: Iterable[int]) -> int:
    """Number of classes if the values are 0, 1, 2, … and perhaps 255; else 0."""
    known = sorted(value for value in values if value != 255)
    return len(known) if known == list(range(len(known))) else 0


def better_label_set(
    labels: LabelSet,
    truth: Source,
    paths: Sequence[str],
    predicted: Iterable[int] = (),
    *,
    certain: bool,
) -> str:
    """Suggest a label set that fits the masks better; empty if this one may be right.

    It declares the values that are undeclared in predictions. If ``certain``, every class of the
    other set must occur.
    """
    contents = [read_values(truth, path) for path in sampled(paths, SAMPLE)]
    inspection = summary_of("", contents, None)
    mine = match_of(labels, inspection.values, inspection.colors)
    best = next(iter(inspection.fitting), None)
    if best is not None and not load_labels(best.name).declared_values.issuperset(predicted):
        return ""
    if best is None or best.quality < GOOD:
        better = inspection.proposal if mine.quality < GOOD and not certain else ""
    else:
        full = not certain or best.classes_seen == best.num_classes >= _CERTAIN
        fits = best.quality >= GOOD and mine.quality < 0.75 * best.quality
        better = str(best) if full and fits else ""
    if not better:
        return ""
    return f"{_described(labels, mine)}; better match: {better}"


def _described(labels: LabelSet, match: LabelSetMatch) -> str:
    values = sorted(labels.declared_values)
    is_known = labels.name in labelset_names() or bool(labels.source)
    if not is_known and values == [*range(len(values))]:
        return f"the labels are 0 to {len(values) - 1}"
    name = f" {labels.name!r}" if is_known else ""
    return f"label set{name} looks wrong ({match.occurring})"
