"""Class maps as COCO's panoptic files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
from PIL import Image

from segiou.labels import LabelSet
from segiou.regions import label_components

VOID = 255


def write_coco(
    folder: Path,
    masks: Mapping[str, Path],
    labels: LabelSet,
    *,
    things: Iterable[str],
    crowd: int | None = None,
) -> Path:
    """Write the components of things, one segment of each other class, and the annotations."""
    folder.mkdir(parents=True)
    numbers = [labels.index(thing) for thing in things]
    annotations = []
    for name, path in masks.items():
        values = np.asarray(Image.open(path)).astype(np.int64)
        is_thing = np.isin(values, numbers)
        parts = label_components(np.where(is_thing, values + 1, 0), min_size=4)
        ids = np.where(is_thing, np.where(parts > 0, 1000 + parts, 0), values + 1)
        ids[values == VOID] = 0
        pixels = np.stack([ids % 256, ids // 256, ids * 0], axis=-1).astype(np.uint8)
        Image.fromarray(pixels).save(folder / f"{name}.png")
        segments = [
            {
                "id": int(number),
                "category_id": int(values[ids == number][0]) + 1,
                "area": int((ids == number).sum()),
                "iscrowd": int(crowd is not None and number == 1000 + crowd),
            }
            for number in np.unique(ids[ids > 0])
        ]
        entry = {"image_id": name, "file_name": f"{name}.png", "segments_info": segments}
        annotations.append(entry)
    categories = [
        {"id": i + 1, "name": name, "isthing": int(i in numbers)}
        for i, name in enumerate(labels.class_names)
    ]
    images = [{"id": name, "file_name": f"{name}.jpg"} for name in masks]
    found = {"images": images, "annotations": annotations, "categories": categories}
    folder.with_suffix(".json").write_text(json.dumps(found))
    return folder
