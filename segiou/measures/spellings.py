"""Spellings of the names of scores: synonyms, and names of means."""

from __future__ import annotations

from collections.abc import Iterable

#: Names of the same scores in other fields, with the heading that the field gives them.
ALIASES: dict[str, tuple[str, str]] = {
    "jaccard": ("iou", "Jaccard index"),
    "miou": ("iou", "mIoU"),
    "f1": ("dice", "F1"),
    "dsc": ("dice", "DSC"),
    "mdice": ("dice", "mDice"),
    "ppv": ("precision", "PPV"),
    "users_accuracy": ("precision", "user's accuracy"),
    "sensitivity": ("recall", "sensitivity"),
    "producers_accuracy": ("recall", "producer's accuracy"),
    "accuracy": ("recall", "accuracy"),
    "macc": ("recall", "mAcc"),
    "mean_accuracy": ("recall", "mean accuracy"),
    "pa": ("pixel_accuracy", "PA"),
    "acc": ("pixel_accuracy", "pixel accuracy"),
    "overall_accuracy": ("pixel_accuracy", "overall accuracy"),
    "oa": ("pixel_accuracy", "OA"),
    "fwiou": ("frequency_weighted_iou", "FWIoU"),
    "kappa": ("cohen_kappa", "kappa"),
    "mcc": ("matthews_correlation", "MCC"),
    "biou": ("boundary_iou", "BIoU"),
    "hd95": ("hausdorff_95", "HD95"),
    "hd": ("hausdorff", "HD"),
    "assd": ("average_surface_distance", "ASSD"),
    "nsd": ("surface_dice", "NSD"),
    "bf": ("boundary_f1", "BF"),
}
#: Other names that mean the whole only, as ``mean_…`` do: a class of them is a mistake.
_WHOLE = ("miou", "mdice", "macc")


def is_whole(text: str) -> bool:
    """Whether a name is that of the mean only, such as ``mean_iou`` or ``Mean IoU``."""
    plain = plain_name(text)
    return plain.startswith("mean_") or plain in _WHOLE


def plain_name(text: str) -> str:
    """A name in lower case, with underscores between words."""
    return text.strip().lower().replace("-", "_").replace(" ", "_")


def spellings(spelling: str) -> Iterable[str]:
    """The name in lower case, without ``mean_``, and the name of which it is a synonym."""
    plain = plain_name(spelling)
    yield spelling.strip()
    for name in (plain, plain.removeprefix("mean_")):
        yield name
        if name in ALIASES:
            yield ALIASES[name][0]
