"""Ids of images: their order, and what groups are read from them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from itertools import pairwise

from segiou._arguments import check_kind, read_several
from segiou.runs.columns import Columns
from segiou.runs.database import id_order
from segiou.runs.image import ImageCount

__all__ = ["ordered", "searcher"]


def ordered(images: Iterable[ImageCount] | Columns) -> Columns:
    """Images in the order of their ids.

    Raises
    ------
    TypeError
        If they are something else.
    ValueError
        If two images have one id.
    """
    if isinstance(images, Columns):
        columns = images
    else:
        several = read_several("images", images, "ImageCounts, one an image, such as run.images")
        for image in several:
            check_kind("each of images", image, ImageCount, "an ImageCount")
        columns = Columns.of(sorted(several, key=lambda image: id_order(image.id)))
    order = [id_order(id) for id in columns.ids]
    for i, (first, second) in enumerate(pairwise(order)):
        if first == second:
            msg = (
                f"two images have the id {columns.ids[i]!r}; "
                "ids tell images apart: make them unique"
            )
            raise ValueError(msg)
        if first > second:
            return ordered(columns.take(sorted(range(len(order)), key=order.__getitem__)))
    return columns


def searcher(key: str) -> Callable[[str], str]:
    """A function that finds the name of an id's group.

    Raises
    ------
    ValueError
        If the expression is none; the function does, if it finds nothing.
    """
    try:
        pattern = re.compile(key)
    except re.error as error:
        msg = f"key {key!r} is no regular expression: {error}"
        raise ValueError(msg) from error

    def name_of(id: str) -> str:
        match = pattern.search(id)
        if match is None:
            msg = f"key {key!r} is not found in the id {id!r}; every image needs a group"
            raise ValueError(msg)
        found = match.groupdict().get("key") or (
            match.group(1) if pattern.groups else match.group(0)
        )
        return str(found)

    return name_of
