"""Spellings of the names of scores: synonyms, and names of means."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Alias(NamedTuple):
    """A score by its name in another field, its heading there and the key of its measure."""

    score: str
    title: str
    measure: str = ""


#: Names of the same scores in other fields.
ALIASES: dict[str, Alias] = {
    "jaccard": Alias("iou", "Jaccard index"),
    "miou": Alias("iou", "mIoU"),
    "f1": Alias("dice", "F1"),
    "dsc": Alias("dice", "DSC"),
    "mdice": Alias("dice", "mDice"),
    "ppv": Alias("precision", "PPV"),
    "users_accuracy": Alias("precision", "user's accuracy"),
    "sensitivity": Alias("recall", "sensitivity"),
    "producers_accuracy": Alias("recall", "producer's accuracy"),
    "accuracy": Alias("recall", "accuracy"),
    "macc": Alias("recall", "mAcc"),
    "mean_accuracy": Alias("recall", "mean accuracy"),
    "pa": Alias("pixel_accuracy", "PA"),
    "acc": Alias("pixel_accuracy", "pixel accuracy"),
    "overall_accuracy": Alias("pixel_accuracy", "overall accuracy"),
    "oa": Alias("pixel_accuracy", "OA"),
    "fwiou": Alias("frequency_weighted_iou", "FWIoU"),
    "kappa": Alias("cohen_kappa", "kappa"),
    "mcc": Alias("matthews_correlation", "MCC"),
    "biou": Alias("boundary_iou", "BIoU", "boundary"),
    "hd95": Alias("hausdorff_95", "HD95", "surfaces"),
    "hd": Alias("hausdorff", "HD", "surfaces"),
    "assd": Alias("average_surface_distance", "ASSD", "surfaces"),
    "nsd": Alias("surface_dice", "NSD", "surfaces"),
    "bf": Alias("boundary_f1", "BF", "surfaces"),
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
            yield ALIASES[name].score
