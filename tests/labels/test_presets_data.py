"""The preset label sets, read as plain TOML and held against facts typed in from their sources.

Nothing here is computed from the files that it checks: counts, ids and colours are
those of the benchmarks' own documents, or follow from a published formula.
"""

import re

import pytest
from presets import (
    FOLDER,
    PRESETS,
    Named,
    colors_of,
    decimal,
    entry_of,
    groups_of,
    names_of,
    values_of,
)

COUNTS = Named(
    "COUNTS in test_presets_data.py, which repeats the numbers of the sources,",
    {
        "ade20k": 150,
        "ade20k-index": 150,
        "binary": 2,
        "brats": 4,
        "brats2023": 4,
        "brats2024-gli": 5,
        "brats2024-ped": 5,
        "camvid": 11,
        "camvid-32": 31,
        "cityscapes": 19,
        "cityscapes-train": 19,
        "coco-panoptic": 133,
        "coco-stuff": 171,
        "coco-stuff-index": 171,
        "deepglobe": 6,
        "flare22": 14,
        "goose": 63,
        "isaid": 16,
        "isprs": 6,
        "isprs-index": 6,
        "kits23": 4,
        "loveda": 7,
        "loveda-index": 7,
        "mapillary-vistas": 65,
        "nyu40": 40,
        "nuscenes": 16,
        "nuscenes-challenge": 16,
        "oxford-pets": 2,
        "pascal-context": 59,
        "pascal-context-official": 59,
        "rellis": 19,
        "scannet20": 20,
        "semantickitti": 19,
        "totalsegmentator": 118,
        "totalsegmentator-mr": 51,
        "uavid": 8,
        "voc2012": 21,
    },
)

IGNORED = Named(
    "IGNORED in test_presets_data.py, which repeats the values of the sources,",
    {
        "ade20k": [0],
        "ade20k-index": [255],
        "binary": [],
        "brats": [],
        "brats2023": [],
        "brats2024-gli": [],
        "brats2024-ped": [],
        "camvid": [11],
        "camvid-32": [30],
        "cityscapes": [-1, 0, 1, 2, 3, 4, 5, 6, 9, 10, 14, 15, 16, 18, 29, 30],
        "cityscapes-train": [-1, 255],
        "coco-panoptic": [255],
        "coco-stuff": [255],
        "coco-stuff-index": [255],
        "deepglobe": [6],
        "flare22": [],
        "goose": [0],
        "isaid": [255],
        "isprs": [0],
        "isprs-index": [255],
        "kits23": [],
        "loveda": [0],
        "loveda-index": [255],
        "mapillary-vistas": [65],
        "nyu40": [0],
        "nuscenes": [0, 1, 5, 7, 8, 10, 11, 13, 19, 20, 29, 31],
        "nuscenes-challenge": [0],
        "oxford-pets": [3],
        "pascal-context": [0],
        "pascal-context-official": [0],
        "rellis": [0],
        "scannet20": [0, 13, 15, *range(17, 24), 25, 26, 27, *range(29, 33), 35, 37, 38, 40],
        "semantickitti": [0, 1, 52, 99],
        "totalsegmentator": [],
        "totalsegmentator-mr": [],
        "uavid": [],
        "voc2012": [255],
    },
)

# name of the set -> class -> file values
VALUES: dict[str, dict[str, list[int]]] = {
    "kits23": {"kidney": [1], "tumor": [2], "cyst": [3]},
    "flare22": {"liver": [1], "aorta": [5], "esophagus": [10], "left kidney": [13]},
    "ade20k": {
        "wall": [1],
        "person": [13],
        "screen door": [59],
        "television receiver": [90],
        "flag": [150],
    },
    "ade20k-index": {"wall": [0], "person": [12], "bed": [7], "bicycle": [127], "flag": [149]},
    "binary": {"background": [0], "foreground": [1, 255]},
    "brats": {"background": [0], "peritumoral edema": [2], "enhancing tumor": [4]},
    "brats2023": {"background": [0], "peritumoral edema": [2], "enhancing tumor": [3]},
    "brats2024-gli": {"enhancing tumor": [3], "resection cavity": [4]},
    "brats2024-ped": {"enhancing tumor": [1], "cystic component": [3], "edema": [4]},
    "camvid": {"sky": [0], "road": [3], "sign": [6], "car": [8], "bicyclist": [10]},
    "camvid-32": {"Animal": [0], "Car": [5], "Road": [17], "Sky": [21], "Wall": [31]},
    "cityscapes": {"road": [7], "pole": [17], "sky": [23], "bus": [28], "bicycle": [33]},
    "cityscapes-train": {"road": [0], "pole": [5], "sky": [10], "bus": [15], "bicycle": [18]},
    "coco-panoptic": {
        "person": [0],
        "toothbrush": [79],
        "banner": [80],
        "tree-merged": [116],
        "rug-merged": [132],
    },
    "coco-stuff": {
        "person": [0],
        "stop sign": [12],
        "toothbrush": [89],
        "banner": [91],
        "wood": [181],
    },
    "coco-stuff-index": {
        "person": [0],
        "stop sign": [11],
        "toothbrush": [79],
        "banner": [80],
        "wood": [170],
    },
    "goose": {"traffic_cone": [1], "car": [12], "building": [38], "military_vehicle": [63]},
    "rellis": {"dirt": [1], "grass": [3], "building": [12], "log": [15], "rubble": [34]},
    "isprs": {"impervious surface": [1], "building": [2], "tree": [4], "car": [5], "clutter": [6]},
    "isprs-index": {"impervious surface": [0], "car": [4], "clutter": [5]},
    "loveda": {"background": [1], "building": [2], "water": [4], "forest": [6]},
    "loveda-index": {"background": [0], "building": [1], "agricultural": [6]},
    "mapillary-vistas": {"Bird": [0], "Road": [13], "Sky": [27], "Car": [55], "Ego Vehicle": [64]},
    "nyu40": {"wall": [1], "chair": [5], "pillow": [18], "person": [31], "otherprop": [40]},
    "nuscenes": {"barrier": [9], "bus": [15, 16], "pedestrian": [2, 3, 4, 6], "vegetation": [30]},
    "nuscenes-challenge": {"barrier": [1], "driveable_surface": [11], "vegetation": [16]},
    "oxford-pets": {"pet": [1], "background": [2]},
    "pascal-context": {
        "aeroplane": [1],
        "bag": [2],
        "person": [37],
        "tvmonitor": [55],
        "wood": [59],
    },
    "pascal-context-official": {
        "aeroplane": [1],
        "bicycle": [2],
        "person": [15],
        "tvmonitor": [20],
        "wood": [59],
    },
    "scannet20": {"wall": [1], "desk": [14], "curtain": [16], "toilet": [33], "bathtub": [36]},
    "semantickitti": {"car": [10, 252], "road": [40, 60], "traffic-sign": [81]},
    "totalsegmentator": {
        "spleen": [1],
        "kidney_cyst_right": [24],
        "vertebrae_S1": [26],
        "vertebrae_C1": [50],
        "aorta": [52],
        "skull": [91],
        "rib_left_1": [92],
        "rib_right_12": [115],
        "costal_cartilages": [117],
    },
    "totalsegmentator-mr": {"spleen": [1], "lung_left": [10], "aorta": [23], "brain": [50]},
    "deepglobe": {"urban": [0], "forest": [3], "barren": [5]},
    "isaid": {"background": [0], "ship": [1], "large vehicle": [8], "harbor": [15]},
    "uavid": {"clutter": [0], "road": [2], "static car": [3], "moving car": [7]},
    "voc2012": {"background": [0], "aeroplane": [1], "person": [15], "tvmonitor": [20]},
}

# name of the set -> class -> its first colour, in decimal as the sources print it
COLORS: dict[str, dict[str, tuple[int, int, int]]] = {
    "ade20k": {"wall": (120, 120, 120), "sky": (6, 230, 230), "flag": (92, 0, 255)},
    "camvid": {
        "sky": (128, 128, 128),
        "pole": (192, 192, 128),
        "pavement": (60, 40, 222),
        "sign": (192, 128, 128),
        "bicyclist": (0, 128, 192),
    },
    "camvid-32": {"Animal": (64, 128, 64), "Sidewalk": (0, 0, 192), "Tunnel": (64, 0, 64)},
    "cityscapes": {
        "road": (128, 64, 128),
        "sidewalk": (244, 35, 232),
        "traffic light": (250, 170, 30),
        "person": (220, 20, 60),
        "bicycle": (119, 11, 32),
    },
    "coco-panoptic": {"person": (220, 20, 60), "cat": (255, 77, 255), "snow": (255, 255, 255)},
    "goose": {"traffic_cone": (255, 255, 0), "car": (183, 151, 98), "pipe": (221, 0, 0)},
    "rellis": {"dirt": (108, 64, 20), "vehicle": (255, 255, 0), "rubble": (110, 22, 138)},
    "isprs": {"building": (0, 0, 255), "low vegetation": (0, 255, 255), "car": (255, 255, 0)},
    "loveda": {"barren": (159, 129, 183), "agricultural": (255, 195, 128)},
    "mapillary-vistas": {"Bike Lane": (128, 64, 255), "Water": (0, 170, 30), "Boat": (150, 0, 255)},
    "semantickitti": {"car": (100, 150, 245), "road": (255, 0, 255), "pole": (255, 240, 150)},
    "nuscenes": {"barrier": (112, 128, 144), "vegetation": (0, 175, 0)},
    "nuscenes-challenge": {"car": (255, 158, 0), "sidewalk": (75, 0, 75)},
    "scannet20": {"wall": (174, 199, 232), "otherfurniture": (82, 84, 163)},
    "deepglobe": {"urban": (0, 255, 255), "rangeland": (255, 0, 255)},
    "isaid": {"ship": (0, 0, 63), "bridge": (0, 127, 63), "harbor": (0, 100, 155)},
    "uavid": {"tree": (0, 128, 0), "human": (64, 64, 0), "moving car": (64, 0, 128)},
    "voc2012": {"person": (192, 128, 128), "tvmonitor": (0, 64, 128)},
}

every_preset = pytest.mark.parametrize("name", sorted(PRESETS))


def test_the_presets_are_those_listed_here() -> None:
    assert set(PRESETS) == set(COUNTS) == set(IGNORED) == set(VALUES)


@every_preset
def test_number_of_classes_and_ignored_values(name: str) -> None:
    assert len(PRESETS[name]["classes"]) == COUNTS[name]
    assert sorted(PRESETS[name]["ignore"]) == IGNORED[name]


@every_preset
def test_form(name: str) -> None:
    preset = PRESETS[name]
    needed = {"name", "title", "source", "notes", "ignore", "classes"}
    assert needed <= set(preset) <= {*needed, "ignore_colors", "groups"}
    assert preset["name"] == name
    assert preset["title"] and preset["source"] and preset["notes"]
    for entry in preset["classes"]:
        assert set(entry) <= {"name", "values", "colors"}
        assert entry["name"] == entry["name"].strip() != ""
        assert entry["values"] and all(type(value) is int for value in entry["values"])


@every_preset
def test_one_class_stands_on_one_line(name: str) -> None:
    text = (FOLDER / f"{name}.toml").read_text("utf-8")
    assert len(re.findall(r"^  \{ name = .* \},$", text, re.MULTILINE)) == COUNTS[name]


@every_preset
def test_names_values_and_colors_have_one_meaning(name: str) -> None:
    preset = PRESETS[name]
    names = names_of(name)
    assert len(set(names)) == len(names)
    values = values_of(name) + preset["ignore"]
    assert len(set(values)) == len(values)
    colors = colors_of(name) + preset.get("ignore_colors", [])
    assert len(set(colors)) == len(colors)
    assert all(re.fullmatch("#[0-9a-f]{6}", color) for color in colors)


@every_preset
def test_groups_name_classes_and_name_each_once(name: str) -> None:
    for members in groups_of(name).values():
        assert members
        assert set(members) <= set(names_of(name))
        assert len(set(members)) == len(members)


@pytest.mark.parametrize(
    ("name", "class_name", "values"), [(n, c, v) for n, cs in VALUES.items() for c, v in cs.items()]
)
def test_values_from_the_sources(name: str, class_name: str, values: list[int]) -> None:
    assert entry_of(name, class_name)["values"] == values


@pytest.mark.parametrize(
    ("name", "class_name", "color"), [(n, c, v) for n, cs in COLORS.items() for c, v in cs.items()]
)
def test_colors_from_the_sources(name: str, class_name: str, color: tuple[int, ...]) -> None:
    assert decimal(entry_of(name, class_name)["colors"][0]) == color


@every_preset
def test_notes_refer_to_presets_that_exist(name: str) -> None:
    for other in re.findall(r": ([a-z0-9-]+)\.(?: |$)", PRESETS[name]["notes"]):
        assert other in PRESETS
