"""The presets as wholes against the class files of their data sets.

Each digest was computed from the file named beside it, not from the preset: SHA-256 of one line
per class with its values, its name and, where the file has colours, its colour.
"""

import hashlib

import pytest
from presets import PRESETS, decimal, entry_of, groups_of, values_of

DIGESTS = {
    "cityscapes": "383456585d06f53f",  # cityscapesScripts, labels.py: id, name, color
    "cityscapes-train": "b6aa01975482d5c6",  # the same: trainId
    "coco-stuff": "39e686fcb1a9ef57",  # nightrome/cocostuff, labels.txt, without unused ids
    "coco-stuff-index": "3286a7810d542890",
    "coco-panoptic": "19455c3c763c0f18",  # panopticapi, panoptic_coco_categories.json
    "semantickitti": "7a64b91a234c2883",  # semantic-kitti-api, config/semantic-kitti.yaml
    "rellis": "96a000f67c487785",  # unmannedlab/RELLIS-3D, rellis.yaml
    "mapillary-vistas": "b8055f3931af2475",  # NVlabs/SegFormer, mmseg/datasets/mapillary.py
    "voc2012": "dcc2f8cac690d843",  # the same, mmseg/datasets/voc.py
    "totalsegmentator": "eb92c9bcec33cdb6",  # totalsegmentator/map_to_binary.py, 'total'
    "totalsegmentator-mr": "0086df6cbe9aaf8e",  # the same, 'total_mr'
    "nuscenes": "29bd59db9d81c656",  # nuscenes-devkit, eval/lidarseg/utils.py and color_map.py
    "nuscenes-challenge": "7af9fbdbfe2789da",
}
WITHOUT_COLORS = ("coco-stuff", "totalsegmentator")
#: CSAILVision/sceneparsing, color150.mat, without the two classes of one colour.
ADE20K_COLORS = "d9adc6b0b66db72e"
#: className of classMapping40.mat, which spells refridgerator.
NYU40 = (
    "wall,floor,cabinet,bed,chair,sofa,table,door,window,bookshelf,picture,counter,blinds,desk,"
    "shelves,curtain,dresser,pillow,mirror,floor mat,clothes,ceiling,books,refrigerator,"
    "television,paper,towel,shower curtain,box,whiteboard,person,night stand,toilet,sink,lamp,"
    "bathtub,bag,otherstructure,otherfurniture,otherprop"
)
#: ScanNet, BenchmarkScripts: VALID_CLASS_IDS and create_color_palette.
SCANNET = {
    1: (174, 199, 232),
    2: (152, 223, 138),
    3: (31, 119, 180),
    4: (255, 187, 120),
    5: (188, 189, 34),
    6: (140, 86, 75),
    7: (255, 152, 150),
    8: (214, 39, 40),
    9: (197, 176, 213),
    10: (148, 103, 189),
    11: (196, 156, 148),
    12: (23, 190, 207),
    14: (247, 182, 210),
    16: (219, 219, 141),
    24: (255, 127, 14),
    28: (158, 218, 229),
    33: (44, 160, 44),
    34: (112, 128, 144),
    36: (227, 119, 194),
    39: (82, 84, 163),
}
#: 59_labels.txt of PASCAL-Context; FCN calls 11 diningtable, 28 clothes and 52 bedcloth.
CONTEXT = (
    "aeroplane,bicycle,bird,boat,bottle,bus,car,cat,chair,cow,table,dog,horse,motorbike,person,"
    "pottedplant,sheep,sofa,train,tvmonitor,bag,bed,bench,book,building,cabinet,ceiling,cloth,"
    "computer,cup,door,fence,floor,flower,food,grass,ground,keyboard,light,mountain,mouse,curtain,"
    "platform,sign,plate,road,rock,shelves,sidewalk,sky,snow,bedclothes,track,tree,truck,wall,"
    "water,window,wood"
)
#: Colours in the order of the classes.
PALETTES = {
    # Junjue-Wang/LoveDA, Semantic_Segmentation/data/loveda.py
    "loveda": "ffffff ff0000 ffff00 0000ff 9f81b7 00ff00 ffc380",
    # The contest's page, as public code quotes it: impervious surfaces, building, low vegetation,
    # tree, car, clutter
    "isprs": "ffffff 0000ff 00ffff 00ff00 ffff00 ff0000",
    # The data set's page, as public code quotes it: urban, agriculture, rangeland, forest, water,
    # barren
    "deepglobe": "00ffff ffff00 ff00ff 00ff00 0000ff ffffff",
    # CAPTAIN-WHU/iSAID_Devkit, cityscapesscripts/helpers/labels.py
    "isaid": (
        "000000 00003f 003f3f 003f00 003f7f 003fbf 003fff 007f3f 007f7f 00007f 0000bf 0000ff "
        "00bf7f 007fbf 007fff 00649b"
    ),
    # YeLyuUT/UAVidToolKit, colorTransformer.py
    "uavid": "000000 800000 804080 c000c0 008000 808000 404000 400080",
}
#: Names by value: evaluation code of the challenges, and the mapping of GOOSE.
NAMES = {
    # JunMa11/FLARE, FLARE22_DSC_NSD_Eval.py (abbreviated there: RK, IVC, RAG, LAG, LK)
    "flare22": (
        "background,liver,right kidney,spleen,pancreas,aorta,inferior vena cava,"
        "right adrenal gland,left adrenal gland,gallbladder,esophagus,stomach,duodenum,left kidney"
    ),
    # neheller/kits23, kits23/configuration/labels.py
    "kits23": "background,kidney,tumor,cyst",
    # rachitsaluja/BraTS-2024-Metrics, metrics_GLI.py (NETC, SNFH, ET, RC), metrics_PED.py
    "brats2024-gli": (
        "background,non-enhancing tumor core,surrounding non-enhancing FLAIR hyperintensity,"
        "enhancing tumor,resection cavity"
    ),
    "brats2024-ped": "background,enhancing tumor,non-enhancing tumor,cystic component,edema",
}
#: Values of the regions that the challenges score.
REGIONS = {
    # The same file as for the names; neheller/kits21 has the same regions
    "kits23": {"kidney_and_mass": {1, 2, 3}, "mass": {2, 3}, "tumor": {2}},
    # med.upenn.edu/cbica/brats2019/tasks.html: 1 for NCR & NET, 2 for ED, 4 for ET
    "brats": {"whole tumor": {1, 2, 4}, "tumor core": {1, 4}, "enhancing tumor": {4}},
    # rachitsaluja/BraTS-2023-Metrics, metrics.py
    "brats2023": {"whole tumor": {1, 2, 3}, "tumor core": {1, 3}, "enhancing tumor": {3}},
    # rachitsaluja/BraTS-2024-Metrics, metrics_GLI.py, metrics_MET.py and metrics_PED.py
    "brats2024-gli": {"whole tumor": {1, 2, 3}, "tumor core": {1, 3}},
    "brats2024-ped": {"whole tumor": {1, 2, 3, 4}, "tumor core": {1, 2, 3}},
}
#: goose_label_mapping.csv as public code copies it, in the order of label_key from 1.
GOOSE = (
    "traffic_cone,snow,cobble,obstacle,leaves,street_light,bikeway,ego_vehicle,"
    "pedestrian_crossing,road_block,road_marking,car,bicycle,person,bus,forest,bush,moss,"
    "traffic_light,motorcycle,sidewalk,curb,asphalt,gravel,boom_barrier,rail_track,tree_crown,"
    "tree_trunk,debris,crops,soil,rider,animal,truck,on_rails,caravan,trailer,building,wall,rock,"
    "fence,guard_rail,bridge,tunnel,pole,traffic_sign,misc_sign,barrier_tape,kick_scooter,"
    "low_grass,high_grass,scenery_vegetation,sky,water,wire,outlier,heavy_machinery,container,"
    "hedge,barrel,pipe,tree_root,military_vehicle"
)
#: FraunhoferIOSB/goose_dataset, common/goose_colormap.json, without the two classes of one colour.
GOOSE_COLORS = "60ee799477606b76"
#: label_colors.txt of CamVid as public code copies it, in alphabetical order without Void.
CAMVID_32 = (
    "408040 c00080 0080c0 008040 800000 400080 4000c0 c08040 c0c080 404080 8000c0 c00040 808040 "
    "c000c0 804040 40c080 404000 804080 8080c0 0000c0 c08080 808080 4080c0 000040 004040 c04080 "
    "808000 c080c0 400040 c0c000 40c000"
)


def digest(lines: list[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def colors_in_order(name: str) -> str:
    return " ".join(entry["colors"][0][1:] for entry in PRESETS[name]["classes"])


@pytest.mark.parametrize("name", DIGESTS)
def test_classes_values_and_colors_are_those_of_the_data_set(name: str) -> None:
    lines = []
    for entry in PRESETS[name]["classes"]:
        values = ",".join(map(str, sorted(entry["values"])))
        color = "" if name.startswith(WITHOUT_COLORS) else entry["colors"][0][1:]
        lines.append(f"{values} {entry['name']} {color}".strip())
    assert digest(lines) == DIGESTS[name]


def test_colors_of_ade20k() -> None:
    classes = [entry for entry in PRESETS["ade20k"]["classes"] if "colors" in entry]
    lines = [f"{entry['values'][0]} {entry['colors'][0][1:]}" for entry in classes]
    assert digest(lines) == ADE20K_COLORS
    alone = [entry["name"] for entry in PRESETS["ade20k"]["classes"] if "colors" not in entry]
    assert alone == ["road", "skyscraper"]


def test_colors_of_goose() -> None:
    preset = PRESETS["goose"]
    classes = [entry for entry in preset["classes"] if "colors" in entry]
    lines = [f"{entry['values'][0]} {entry['colors'][0][1:]}" for entry in classes]
    assert (preset["ignore"], preset["ignore_colors"]) == ([0], ["#000000"])
    assert digest(["0 000000", *lines]) == GOOSE_COLORS
    alone = [entry["name"] for entry in preset["classes"] if "colors" not in entry]
    assert alone == ["snow", "hedge"]


@pytest.mark.parametrize("name", NAMES)
def test_names_by_value(name: str) -> None:
    assert [entry["name"] for entry in PRESETS[name]["classes"]] == NAMES[name].split(",")
    assert values_of(name) == [*range(len(PRESETS[name]["classes"]))]


@pytest.mark.parametrize("name", REGIONS)
def test_values_of_the_regions_of_challenges(name: str) -> None:
    regions = {
        group: {value for member in members for value in entry_of(name, member)["values"]}
        for group, members in groups_of(name).items()
    }
    assert regions == REGIONS[name]


@pytest.mark.parametrize(
    ("name", "names"), [("nyu40", NYU40), ("pascal-context-official", CONTEXT), ("goose", GOOSE)]
)
def test_names_in_the_order_of_the_data_set(name: str, names: str) -> None:
    assert [entry["name"] for entry in PRESETS[name]["classes"]] == names.split(",")
    assert values_of(name) == [*range(1, len(names.split(",")) + 1)]


def test_pascal_context_in_alphabetical_order_has_the_same_classes() -> None:
    names = [entry["name"] for entry in PRESETS["pascal-context"]["classes"]]
    assert names == sorted(CONTEXT.split(","))
    assert values_of("pascal-context") == [*range(1, 60)]


def test_values_and_colors_of_scannet() -> None:
    classes = PRESETS["scannet20"]["classes"]
    assert {e["values"][0]: decimal(e["colors"][0]) for e in classes} == SCANNET
    known = NYU40.split(",")
    assert [e["name"] for e in classes] == [known[value - 1] for value in SCANNET]


def test_palettes_in_the_order_of_the_classes() -> None:
    for name, palette in PALETTES.items():
        assert colors_in_order(name) == palette
    for name in ("loveda", "isprs"):
        assert colors_in_order(f"{name}-index") == PALETTES[name]
    assert colors_in_order("camvid-32") == CAMVID_32
    assert decimal(entry_of("camvid", "pavement")["colors"][0]) == (60, 40, 222)
