"""What the preset label sets promise as wholes: orders, encodings, palettes and groups.

Pairs of presets are two encodings of the same classes, so they must agree; groups and
orders are those of the benchmarks, typed in or derived from a published formula.
"""

from itertools import chain

import pytest
from presets import PRESETS, colors_of, decimal, entry_of, groups_of, names_of, values_of

CITYSCAPES_CATEGORIES = {
    "flat": ["road", "sidewalk"],
    "construction": ["building", "wall", "fence"],
    "object": ["pole", "traffic light", "traffic sign"],
    "nature": ["vegetation", "terrain"],
    "sky": ["sky"],
    "human": ["person", "rider"],
    "vehicle": ["car", "truck", "bus", "train", "motorcycle", "bicycle"],
}

# Things of COCO that were never segmented, so that their ids stay unused.
COCO_GAPS = [12, 26, 29, 30, 45, 66, 68, 69, 71, 83, 91]


def members_of(name: str) -> list[str]:
    return sorted(chain.from_iterable(groups_of(name).values()))


def test_the_regions_of_brats_are_the_same_in_both_encodings() -> None:
    assert groups_of("brats") == groups_of("brats2023")
    assert (values_of("brats"), values_of("brats2023")) == ([0, 1, 2, 4], [0, 1, 2, 3])


def test_structures_of_totalsegmentator_are_numbered_without_gaps() -> None:
    for name in ("totalsegmentator", "totalsegmentator-mr"):
        assert values_of(name) == list(range(len(values_of(name))))
    ribs = [name for name in names_of("totalsegmentator") if name.startswith("rib_")]
    assert ribs == [f"rib_{side}_{n}" for side in ("left", "right") for n in range(1, 13)]


def test_camvid_classes_in_order() -> None:
    order = "sky building pole road pavement tree sign fence car pedestrian bicyclist"
    assert names_of("camvid") == order.split()
    assert values_of("camvid") == list(range(11))
    assert PRESETS["camvid"]["ignore_colors"] == ["#000000"]


def test_camvid_reads_the_colors_of_all_32_classes_in_their_groups() -> None:
    groups = groups_of("camvid-32")
    assert list(groups) == names_of("camvid")
    assert members_of("camvid-32") == sorted(names_of("camvid-32"))
    for group, members in groups.items():
        original = {entry_of("camvid-32", member)["colors"][0] for member in members}
        # SegNet draws pavement in a colour of its own; all others are CamVid's.
        own = {"#3c28de"} if group == "pavement" else set()
        assert set(entry_of("camvid", group)["colors"]) == original | own
    assert PRESETS["camvid-32"]["ignore_colors"] == PRESETS["camvid"]["ignore_colors"]


def test_camvid_32_values_are_the_alphabetical_positions() -> None:
    names = sorted([*names_of("camvid-32"), "Void"], key=str.lower)
    assert [names.index(entry["name"]) for entry in PRESETS["camvid-32"]["classes"]] == values_of(
        "camvid-32"
    )
    assert names.index("Void") == 30


def test_cityscapes_encodings_hold_the_same_classes() -> None:
    ids, train = PRESETS["cityscapes"], PRESETS["cityscapes-train"]
    assert names_of("cityscapes") == names_of("cityscapes-train")
    assert colors_of("cityscapes") == colors_of("cityscapes-train")
    assert ids["ignore_colors"] == train["ignore_colors"]
    assert values_of("cityscapes-train") == list(range(19))
    assert sorted(values_of("cityscapes") + ids["ignore"]) == list(range(-1, 34))


@pytest.mark.parametrize("name", ["cityscapes", "cityscapes-train"])
def test_cityscapes_groups_are_the_categories(name: str) -> None:
    assert groups_of(name) == CITYSCAPES_CATEGORIES


def test_voc_palette_follows_its_bit_formula() -> None:
    def palette(index: int) -> tuple[int, ...]:
        # Bit 3k + channel of the index becomes bit 7 - k of that channel.
        return tuple(
            sum((index >> (3 * k + channel) & 1) << (7 - k) for k in range(8))
            for channel in range(3)
        )

    assert [decimal(color) for color in colors_of("voc2012")] == [palette(i) for i in range(21)]
    assert [decimal(color) for color in PRESETS["voc2012"]["ignore_colors"]] == [palette(255)]
    assert palette(255) == (224, 224, 192)


def test_voc_groups_cover_the_twenty_objects_once() -> None:
    assert members_of("voc2012") == sorted(names_of("voc2012")[1:])
    assert list(map(len, groups_of("voc2012").values())) == [1, 6, 7, 6]


def test_ade20k_encodings_differ_by_one() -> None:
    assert names_of("ade20k") == names_of("ade20k-index")
    assert values_of("ade20k") == list(range(1, 151))
    assert values_of("ade20k-index") == list(range(150))


@pytest.mark.parametrize("name", ["ade20k", "ade20k-index"])
def test_ade20k_leaves_out_the_color_that_two_classes_share(name: str) -> None:
    bare = [entry["name"] for entry in PRESETS[name]["classes"] if "colors" not in entry]
    assert bare == ["road", "skyscraper"]
    assert "#8c8c8c" not in colors_of(name)


def test_coco_stuff_values_are_coco_ids_less_one() -> None:
    coco_ids = [i for i in range(1, 183) if i not in COCO_GAPS]
    assert values_of("coco-stuff") == [i - 1 for i in coco_ids]
    assert values_of("coco-stuff-index") == list(range(171))
    assert names_of("coco-stuff") == names_of("coco-stuff-index")
    assert names_of("coco-stuff")[:80] == names_of("coco-panoptic")[:80]


@pytest.mark.parametrize("name", ["coco-stuff", "coco-stuff-index", "coco-panoptic"])
def test_coco_groups_are_12_things_and_15_stuffs_and_cover_all(name: str) -> None:
    groups = groups_of(name)
    assert members_of(name) == sorted(names_of(name))
    things = set(names_of(name)[:80])
    of_things = [group for group, members in groups.items() if set(members) <= things]
    of_stuff = [group for group, members in groups.items() if not set(members) & things]
    assert (len(of_things), len(of_stuff)) == (12, 15)
    assert set(groups["wall"]) >= {"wall-brick", "wall-stone", "wall-tile", "wall-wood"}
    assert groups["electronic"] == ["tv", "laptop", "mouse", "remote", "keyboard", "cell phone"]


def test_pascal_context_orders() -> None:
    names = names_of("pascal-context")
    assert names == sorted(names)
    official = names_of("pascal-context-official")
    assert sorted(official) == names
    # 59_labels.txt begins with the VOC classes, one of them under another name.
    voc = [{"diningtable": "table"}.get(name, name) for name in names_of("voc2012")[1:]]
    assert official[:20] == voc
    assert values_of("pascal-context") == values_of("pascal-context-official") == [*range(1, 60)]


def test_mapillary_vistas_is_every_value_up_to_the_ignored_one() -> None:
    assert values_of("mapillary-vistas") == list(range(65))
    assert len(colors_of("mapillary-vistas")) == 65
    assert members_of("mapillary-vistas") == sorted(names_of("mapillary-vistas"))


def test_scannet_classes_are_nyu40_classes() -> None:
    for entry in PRESETS["scannet20"]["classes"]:
        assert entry_of("nyu40", entry["name"])["values"] == entry["values"]
    assert sorted(values_of("scannet20") + PRESETS["scannet20"]["ignore"]) == list(range(41))


def test_brats_regions_are_nested() -> None:
    groups = {group: set(members) for group, members in groups_of("brats").items()}
    assert groups["enhancing tumor"] < groups["tumor core"] < groups["whole tumor"]
    assert groups["whole tumor"] == set(names_of("brats")) - {"background"}
