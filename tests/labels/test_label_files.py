"""Label files of other tools."""

import json

import numpy as np
import pytest
import tifffile
from mask_files import required

import segiou
from segiou.cli.main import main


def of(tmp_path, description):
    path = tmp_path / "dataset.json"
    path.write_text(json.dumps(description))
    return segiou.load_labels(path)


def test_labels_of_nnunet(tmp_path):
    found = of(tmp_path, {"name": "spleen", "labels": {"background": 0, "spleen": 1, "ignore": 7}})
    assert (found.name, found.class_names, found.ignore) == (
        "spleen",
        ("background", "spleen"),
        (7,),
    )
    assert dict(found.groups) == {}


def test_the_first_version_of_nnunet_names_values(tmp_path):
    found = of(tmp_path, {"labels": {"0": "background", "1": "liver", "2": "cancer"}})
    assert [(c.name, c.values) for c in found.classes] == [
        ("background", (0,)),
        ("liver", (1,)),
        ("cancer", (2,)),
    ]
    with pytest.raises(ValueError, match="label '0' must have an integer"):
        of(tmp_path, {"labels": {"0": "background", "1": "liver", "2": "liver"}})


def test_regions_of_nnunet_overlap(tmp_path):
    labels = {"background": 0, "whole": [1, 2, 3], "core": [2, 3], "enhancing": [3]}
    found = of(tmp_path, {"labels": labels, "regions_class_order": [1, 2, 3]})
    assert found.class_names == ("background", "label 1", "label 2", "label 3")
    assert [c.values for c in found.classes] == [(0,), (1,), (2,), (3,)]
    assert dict(found.groups) == {
        "whole": ("label 1", "label 2", "label 3"),
        "core": ("label 2", "label 3"),
        "enhancing": ("label 3",),
    }
    matrix = segiou.ConfusionMatrix(found).update([0, 1, 2, 3], [0, 1, 3, 0])
    assert {g["name"]: g["iou"] for g in matrix.report().to_dict()["groups"]} == {
        "whole": 2 / 3,
        "core": 1 / 2,
        "enhancing": 0.0,
    }


def test_a_list_of_one_value_is_a_label_where_nothing_is_a_region(tmp_path):
    found = of(tmp_path, {"labels": {"background": 0, "lung": [1], "lesion": 2}})
    assert (found.class_names, dict(found.groups)) == (("background", "lung", "lesion"), {})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is not valid JSON"),
        ("[" * 100_000, "is not valid JSON"),
        ("[1]", "is not a label file; expected 'labels'"),
        ('{"labels": {}}', "is not a label file"),
        ('{"labels": {"a": "1"}}', "label 'a' must have an integer or a list of integers, got '1'"),
        ('{"labels": {"a": [true]}}', "label 'a' must have an integer"),
        ('{"labels": {"a": []}}', "label 'a' must have an integer"),
    ],
)
def test_other_json_is_refused(tmp_path, content, message):
    path = tmp_path / "dataset.json"
    path.write_text(content)
    with pytest.raises(ValueError, match=message):
        segiou.load_labels(path)


def named(tmp_path, name, content):
    path = tmp_path / name
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def load(tmp_path, name, content):
    return segiou.load_labels(named(tmp_path, name, content))


OBJECT = {"segmentation": []}
SKY, SEA = {"id": 1, "name": "sky"}, {"id": 5, "name": "sea"}


@pytest.mark.parametrize(
    ("content", "names", "values", "ignore"),
    [
        # Objects leave a background; panoptic categories and stuff cover the image.
        (
            {"categories": [SKY, SEA], "annotations": [OBJECT]},
            ("background", "sky", "sea"),
            (0, 1, 5),
            (),
        ),
        ({"categories": [SKY, SEA]}, ("sky", "sea"), (1, 5), (0,)),
        ([SKY | {"isthing": 1}], ("sky",), (1,), (0,)),
        ([{"id": 0, "name": "sky"}], ("sky",), (0,), (255,)),
        (
            {"categories": [{"id": 0, "name": "background"}], "annotations": [OBJECT]},
            ("background",),
            (0,),
            (255,),
        ),
        # Other names of the class of everything else.
        (
            {"categories": [{"id": 1, "name": "Background"}, SEA], "annotations": [OBJECT]},
            ("Background", "sea"),
            (1, 5),
            (0,),
        ),
    ],
)
def test_categories_of_coco(tmp_path, content, names, values, ignore):
    found = load(tmp_path, "coco.json", content)
    assert (found.name, found.class_names, found.ignore) == ("coco", names, ignore)
    assert found.class_values == tuple((value,) for value in values)


def test_colors_of_panoptic_categories(tmp_path):
    found = load(tmp_path, "coco.json", [SKY | {"color": [220, 20, 60], "isthing": 0}])
    assert found.classes[0].colors == ((220, 20, 60),)


def test_id2label_of_hugging_face(tmp_path):
    names = {"10": "sea", "2": "sky"}
    found = load(tmp_path, "config.json", {"id2label": names})
    assert (found.class_names, found.class_values) == (("sky", "sea"), ((2,), (10,)))
    assert found.ignore == (255,)
    content = {"id2label": names, "semantic_loss_ignore_index": 0}
    assert load(tmp_path, "config.json", content).ignore == (0,)
    assert load(tmp_path, "id2label.json", names).class_names == ("sky", "sea")


def test_metainfo_of_mmsegmentation(tmp_path):
    found = load(tmp_path, "m.json", {"classes": ["sky", "sea"], "palette": [[1, 2, 3], [4, 5, 6]]})
    assert [(c.name, c.values, c.colors) for c in found.classes] == [
        ("sky", (0,), ((1, 2, 3),)),
        ("sea", (1,), ((4, 5, 6),)),
    ]
    assert found.ignore == (255,)


def test_labelmap_of_cvat(tmp_path):
    text = "# label:color_rgb:parts:actions\nbackground:0,0,0::\ncar:red:10,0,128::\nsea:::\n"
    found = load(tmp_path, "labelmap.txt", text)
    assert [(c.name, c.values, c.colors) for c in found.classes] == [
        ("background", (0,), ((0, 0, 0),)),
        ("car:red", (1,), ((10, 0, 128),)),
        ("sea", (2,), ()),
    ]


TABLE = """<PAMDataset><PAMRasterBand band="1"><GDALRasterAttributeTable tableType="thematic">
<FieldDefn index="0"><Name>Value</Name><Type>0</Type><Usage>5</Usage></FieldDefn>
<FieldDefn index="1"><Name>Class</Name><Type>2</Type><Usage>2</Usage></FieldDefn>
<FieldDefn index="2"><Name>R</Name><Type>0</Type><Usage>6</Usage></FieldDefn>
<FieldDefn index="3"><Name>G</Name><Type>0</Type><Usage>7</Usage></FieldDefn>
<FieldDefn index="4"><Name>B</Name><Type>0</Type><Usage>8</Usage></FieldDefn>
<Row index="0"><F>11</F><F>Water</F><F>70</F><F>107</F><F>159</F></Row>
<Row index="1"><F>12</F><F></F><F>0</F><F>0</F><F>0</F></Row>
</GDALRasterAttributeTable></PAMRasterBand></PAMDataset>"""


def test_names_of_gdal(tmp_path):
    named(tmp_path, "nlcd.tif.aux.xml", TABLE)
    tifffile.imwrite(tmp_path / "nlcd.tif", np.zeros((2, 2), np.uint8))
    found = segiou.load_labels(tmp_path / "nlcd.tif")
    assert (found.name, found.class_names) == ("nlcd", ("Water",))
    assert (found.classes[0].values, found.classes[0].colors) == ((11,), ((70, 107, 159),))
    names = "<P><CategoryNames><Category>sky</Category><Category/></CategoryNames></P>"
    assert load(tmp_path, "a.aux.xml", names).class_names == ("sky",)


def test_colours_and_names_of_gdals_own_files(tmp_path):
    rasterio = required("rasterio", "SEGIOU_REQUIRE_EXTRAS")
    path = tmp_path / "cover.tif"
    options = {"driver": "GTiff", "height": 2, "width": 2, "count": 1, "dtype": "uint8"}
    options["transform"] = rasterio.Affine(10, 0, 500000, 0, -10, 4600000)
    with rasterio.open(path, "w", **options, nodata=255) as file:
        file.write(np.array([[0, 1], [4, 255]], np.uint8), 1)
        colors = {1: (10, 20, 30, 255), 4: (200, 100, 0, 255), 5: (10, 20, 30, 255)}
        file.write_colormap(1, {0: (0, 0, 0, 255), **colors, 255: (255, 255, 255, 255)})
    found = segiou.load_labels(path)
    assert found.class_names == ("value 0", "value 1", "value 4", "value 5")
    assert [one.colors for one in found.classes] == [
        ((0, 0, 0),),
        ((10, 20, 30),),
        ((200, 100, 0),),
        (),
    ]
    assert found.ignore == (255,)
    names = "".join(f"<Category>{name}</Category>" for name in ("", "water", "", "", "wood"))
    sidecar = f"<PAMDataset><PAMRasterBand><CategoryNames>{names}</CategoryNames></PAMRasterBand>"
    named(tmp_path, "cover.tif.aux.xml", f"{sidecar}</PAMDataset>")
    found = segiou.load_labels(path)
    assert [(one.name, one.values, one.colors) for one in found.classes] == [
        ("water", (1,), ((10, 20, 30),)),
        ("wood", (4,), ((200, 100, 0),)),
    ]


def test_attribute_table_inside_a_tiff(tmp_path):
    path = tmp_path / "a.tif"
    metadata = f"<GDALMetadata>{TABLE}</GDALMetadata>"
    tags = [(42112, "s", 0, metadata, True)]
    tifffile.imwrite(path, np.zeros((2, 2), np.uint8), extratags=tags)
    assert segiou.load_labels(path).class_names == ("Water",)
    tifffile.imwrite(path, np.zeros((2, 2), np.uint8))
    with pytest.raises(ValueError, match="has no classes"):
        segiou.load_labels(path)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.json", [{"id": 1}], "category 0 must have an integer 'id'"),
        ("a.json", [{"id": True, "name": "a"}], "category 0 must have an integer 'id'"),
        ("a.json", [SKY, SKY], "'sky' maps to both"),
        ("a.json", [SKY | {"color": [300, 0, 0]}], "expected a colour of three numbers"),
        ("a.json", {"id2label": {"x": "sky"}}, "numbers to names, got 'x'"),
        ("a.json", {"id2label": {"1": 3}}, "numbers to names, got '1'"),
        ("a.json", {"classes": ["a"], "palette": []}, "one colour per class"),
        ("a.json", {"classes": ["a", 3]}, "must be text"),
        ("a.json", {"classes": [{"title": 3}]}, "class 0 must have a 'title'"),
        ("a.json", {"classes": ["a"], "palette": [7]}, "expected a colour of three numbers"),
        ("a.txt", "car:1", "line 1: expected name:red"),
        ("a.txt", "car:1,2::", "line 1"),
        ("a.txt", "car:300,0,0::", "expected a colour of three numbers"),
        ("a.txt", "", "has no class names"),
        ("a.csv", "name\ncar", "expected columns name and value"),
        ("a.csv", "name,value\ncar,x", "row 2: expected integers"),
        ("a.yaml", "names: {1: car}", "or 'names', a list"),
        ("a.yaml", "names: [a, b]\nlabel_mapping: {5: 2}", "maps 5 to 2, which is not one of 2"),
        ("a.yaml", "names: [a", "is not valid YAML"),
        ("a.json", {"labels": [{"color": [0, 0, 0]}]}, "label 0 must have a 'name'"),
        ("a.tif", "", "cannot be read as a TIFF"),
        ("a.img", "", "a.img.aux.xml: does not exist"),
        ("a.xml", "<a>", "is not XML"),
        ("a.xml", "<a/>", "has no classes"),
        ("a.xml", '<!DOCTYPE a [<!ENTITY b "c">]><a/>', "declares entities"),
        ("a.xml", TABLE.replace("11", "1e999"), "row 0 of its attribute table"),
    ],
)
def test_label_files_with_faults_are_named(tmp_path, name, content, message):
    path = named(tmp_path, name, content)
    with pytest.raises(ValueError, match=message) as caught:
        segiou.load_labels(path)
    assert str(caught.value).startswith(str(path))


def described(path):
    """Classes as name, values and colours, and the ignored values."""
    found = segiou.load_labels(path)
    return [(c.name, c.values, c.colors) for c in found.classes], found.ignore


@pytest.mark.parametrize(
    ("name", "content", "classes", "ignore"),
    [
        ("classes.txt", "road\n\nnear car\n", [("road", (0,), ()), ("near car", (1,), ())], ()),
        ("obj.names", "road\ncar", [("road", (0,), ()), ("car", (1,), ())], ()),
        # Positions would be one off here.
        ("ade.txt", "1 wall\n2 building", [("wall", (1,), ()), ("building", (2,), ())], ()),
        (
            "labels.txt",
            "__ignore__\n_background_\ncat",
            [("_background_", (0,), ()), ("cat", (1,), ())],
            (255,),
        ),
        (
            "_classes.csv",
            "Pixel Value, Class\n0, background\n1, cat",
            [("background", (0,), ()), ("cat", (1,), ())],
            (),
        ),
        (
            "class_dict.csv",
            "name,r,g,b\nsky,128,128,128\nroad,128,64,128",
            [("sky", (0,), ((128, 128, 128),)), ("road", (1,), ((128, 64, 128),))],
            (),
        ),
        (
            "polygons.yaml",
            "names: [road, car]",
            [("road", (0,), ()), ("car", (1,), ()), ("background", (2,), ())],
            (255,),
        ),
        (
            "one.yaml",
            "nc: 1\nnames: {0: cell}",
            [("background", (0,), ()), ("cell", (1,), ())],
            (255,),
        ),
        (
            "config.json",
            {
                "labels": [
                    {"name": "object--car", "readable": "Car", "color": [0, 0, 142]},
                    {"name": "void", "readable": "Unlabeled", "evaluate": False},
                    {"name": "nature--sky", "readable": "Sky", "evaluate": True},
                ]
            },
            [("Car", (0,), ((0, 0, 142),)), ("Sky", (2,), ())],
            (1,),
        ),
    ],
)
def test_class_files_of_exports(tmp_path, name, content, classes, ignore):
    assert described(named(tmp_path, name, content)) == (classes, ignore)


def test_values_that_ultralytics_does_not_map_stand_for_themselves(tmp_path):
    mapping = "{0: ignore_label, -1: null, 7: 0, 8: 1, 11: 2, 12: 255}"
    text = (
        f"masks_dir: masks\nnames: {{0: road, 1: sidewalk, 2: building}}\nlabel_mapping: {mapping}"
    )
    classes, ignore = described(named(tmp_path, "data.yaml", text))
    assert classes == [("road", (7,), ()), ("sidewalk", (8, 1), ()), ("building", (11, 2), ())]
    assert ignore == (255, 0, -1, 12)


@pytest.mark.parametrize("names", [{0: "wall", 2: "sky"}, {"2": "sky", "0": "wall"}])
def test_id2label_of_a_model(names):
    assert described(names) == ([("wall", (0,), ()), ("sky", (2,), ())], (255,))


def test_command_prints_a_label_file_as_toml(tmp_path, capsys):
    path = named(tmp_path, "coco.json", {"categories": [SKY]})
    assert main(["labelsets", "--from", str(path)]) == 0
    toml = named(tmp_path, "coco.toml", capsys.readouterr().out)
    assert segiou.load_labels(toml) == segiou.load_labels(path)
    assert main(["labelsets", "ade20k", "--from", str(path)]) == 2


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "name,value\nroad,1\n,2\n"),
        ("a.csv", "value,name\n1,road\n2\n"),
        ("a.json", '{"id2label": {"1": "road", "2": " "}}'),
    ],
)
def test_a_class_without_a_name_is_refused(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    with pytest.raises(ValueError, match=rf"{name}: the class of value 2 has no name; name it"):
        segiou.load_labels(tmp_path / name)
