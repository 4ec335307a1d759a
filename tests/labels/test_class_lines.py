"""Label files with one class per line or row, with numbers and colours, as tools write them."""

import pytest

import segiou

ITK_SNAP = """\
################################################
# ITK-SnAP Label Description File
# IDX   -R-  -G-  -B-  -A--  VIS MSH  LABEL
################################################
    0     0    0    0        0  0  0    "Clear Label"
    1   255    0    0        1  1  1    "left ventricle"
    4     0  255    0      0.5  1  0    "myocardium"
"""
FREESURFER = """\
#$Id: FreeSurferColorLUT.txt
#No. Label Name:                            R   G   B   A

0   Unknown                                 0   0   0   0
2   Left-Cerebral-White-Matter              70  130 180 0
17  Left-Hippocampus                        220 216 20  0
53  Right-Hippocampus                       220 216 20  0
"""
RUGD = "0 void 0 0 0\n1 dirt 108 64 20\n2 rock bed 255 229 204\n"
CAMVID = "64 128 64\tAnimal\n192 0 128\tArchway\n0 128 192\tBicyclist\n"
NAME_FIRST = "sky 128 128 128\nroad marking 192 0 64\n"


def classes(labels):
    return [(c.name, c.values, c.colors) for c in labels.classes]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            ITK_SNAP,
            [
                ("Clear Label", (0,), ((0, 0, 0),)),
                ("left ventricle", (1,), ((255, 0, 0),)),
                ("myocardium", (4,), ((0, 255, 0),)),
            ],
        ),
        (
            FREESURFER,
            [
                ("Unknown", (0,), ((0, 0, 0),)),
                ("Left-Cerebral-White-Matter", (2,), ((70, 130, 180),)),
                ("Left-Hippocampus", (17,), ()),  # two classes have this colour
                ("Right-Hippocampus", (53,), ()),
            ],
        ),
        (
            RUGD,
            [
                ("void", (0,), ((0, 0, 0),)),
                ("dirt", (1,), ((108, 64, 20),)),
                ("rock bed", (2,), ((255, 229, 204),)),
            ],
        ),
        (
            CAMVID,
            [
                ("Animal", (0,), ((64, 128, 64),)),
                ("Archway", (1,), ((192, 0, 128),)),
                ("Bicyclist", (2,), ((0, 128, 192),)),
            ],
        ),
        (
            NAME_FIRST,
            [
                ("sky", (0,), ((128, 128, 128),)),
                ("road marking", (1,), ((192, 0, 64),)),
            ],
        ),
        ("0 road\n2 car\n", [("road", (0,), ()), ("car", (2,), ())]),
        ("road\ncar 2\n", [("road", (0,), ()), ("car 2", (1,), ())]),
    ],
    ids=["itk-snap", "freesurfer", "rugd", "camvid", "name-first", "numbered", "names"],
)
def test_lines_of_tools(tmp_path, text, expected):
    path = tmp_path / "labels.txt"
    path.write_text(text)
    assert classes(segiou.load_labels(path)) == expected


def test_lines_of_mixed_forms_are_named(tmp_path):
    path = tmp_path / "labels.txt"
    path.write_text("0 void 0 0 0\ndirt\n")
    with pytest.raises(ValueError, match=r"line 1: '0 void 0 0 0' .*expected one name per line"):
        segiou.load_labels(path)


def test_goose_table(tmp_path):
    path = tmp_path / "goose_label_mapping.csv"
    path.write_text(
        "class_name,label_key,has_instance,hex\nundefined,0,0,#000000\ncar,12,1,#ffff00\n"
    )
    assert classes(segiou.load_labels(path)) == [
        ("undefined", (0,), ((0, 0, 0),)),
        ("car", (12,), ((255, 255, 0),)),
    ]


SHARED = [("snow", (2,), ()), ("bush", (17,), ((128, 150, 147),)), ("hedge", (59,), ())]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (  # GOOSE, whose snow and hedge have one colour
            "goose_label_mapping.csv",
            "class_name,label_key,hex\nsnow,2,#d157a0\nbush,17,#809693\nhedge,59,#D157A0\n",
        ),
        ("a.csv", "name,value,r,g,b\nsnow,2,9,9,9\nbush,17,128,150,147\nhedge,59,9,9,9\n"),
        (
            "coco.json",
            '[{"id": 2, "name": "snow", "color": [9, 9, 9]}, {"id": 17, "name": "bush", '
            '"color": [128, 150, 147]}, {"id": 59, "name": "hedge", "color": [9, 9, 9]}]',
        ),
    ],
)
def test_a_color_of_several_classes_with_values_is_not_used(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text)
    assert classes(segiou.load_labels(path)) == SHARED


def test_the_palette_of_metainfo_may_repeat_a_color(tmp_path):
    path = tmp_path / "ade.json"
    path.write_text('{"classes": ["road", "sky"], "palette": [[140, 140, 140], [140, 140, 140]]}')
    assert classes(segiou.load_labels(path)) == [("road", (0,), ()), ("sky", (1,), ())]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("class_dict.csv", "name,r,g,b\nroad,0,0,0\nvoid,0,0,0\n"),
        ("labelmap.txt", "road:0,0,0::\nvoid:0,0,0::\n"),
        ("label_colors.txt", "0 0 0 road\n0 0 0 void\n"),
    ],
)
def test_classes_without_values_need_different_colors(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(ValueError, match=r"class 0 \('road'\) and class 1 \('void'\)"):
        segiou.load_labels(path)


def test_scannet_table(tmp_path):
    path = tmp_path / "scannetv2-labels.combined.tsv"
    rows = ("id\traw_category\tnyu40id\tnyu40class", "1\twall\t1\twall", "2\tchair\t5\tchair")
    path.write_text("\n".join([*rows, "9\toffice chair\t5\tchair", "11\tthing\t\t"]) + "\n")
    labels = segiou.load_labels(path)
    assert classes(labels) == [("wall", (1,), ()), ("chair", (2, 9), ())]
    assert labels.ignore == (0,)


KITTI = """\
labels:
  0: "unlabeled"
  1: "outlier"
  10: "car"
  40: "road"
  252: "moving-car"
color_map:
  10: [245, 150, 100]
learning_map: {0: 0, 1: 0, 10: 1, 40: 2, 252: 1}
learning_map_inv: {0: 0, 1: 10, 2: 40}
learning_ignore: {0: True, 1: False, 2: False}
"""


def test_semantickitti_yaml(tmp_path):
    pytest.importorskip("yaml")
    path = tmp_path / "semantic-kitti.yaml"
    path.write_text(KITTI)
    labels = segiou.load_labels(path)
    assert classes(labels) == [("car", (10, 252), ()), ("road", (40,), ())]
    assert labels.ignore == (0, 1)


def test_yaml_of_labels_without_a_learning_map(tmp_path):
    pytest.importorskip("yaml")
    path = tmp_path / "labels.yaml"
    path.write_text("labels: {0: void, 3: grass}\n")
    assert classes(segiou.load_labels(path)) == [("void", (0,), ()), ("grass", (3,), ())]


def test_learning_map_of_a_class_without_a_name(tmp_path):
    pytest.importorskip("yaml")
    path = tmp_path / "labels.yaml"
    path.write_text("labels: {0: void}\nlearning_map: {0: 0, 3: 1}\n")
    with pytest.raises(ValueError, match="'learning_map' has class 1, which has no name"):
        segiou.load_labels(path)


def test_names_with_commas_number_the_classes():
    assert classes(segiou.load_labels("road, car,person")) == [
        ("road", (0,), ()),
        ("car", (1,), ()),
        ("person", (2,), ()),
    ]
    with pytest.raises(ValueError, match="unknown label set 'road,,car'"):
        segiou.load_labels("road,,car")
