from __future__ import annotations

import pickle
import tomllib

import pytest

from segiou.labels import LabelClass, LabelSet, labelset_names, load_labels


def test_every_preset_is_written_as_it_is_read():
    assert {"camvid", "cityscapes", "cityscapes-train", "voc2012", "ade20k", "binary"} <= set(
        labelset_names()
    )
    for name in labelset_names():
        labels = load_labels(name)
        again = LabelSet.from_dict(tomllib.loads(labels.to_toml()))
        assert again == labels
        assert labels.name == name


def test_a_users_file_has_short_forms(tmp_path):
    path = tmp_path / "cells.toml"
    path.write_text(
        """
        ignore = 255
        classes = ["background", { name = "cell", values = [1, 2], colors = "#ff0000" },
                   { name = "edge", values = 7, colors = [[0, 255, 0], "0000ff"] }]
        [groups]
        any = ["cell", "edge"]
        """
    )
    labels = load_labels(path)
    assert labels.name == "cells"
    assert labels.class_values == ((0,), (1, 2), (7,))
    assert labels.classes[2].colors == ((0, 255, 0), (0, 0, 255))
    assert labels.ignore == (255,)
    assert dict(labels.groups) == {"any": ("cell", "edge")}


def test_names_and_numbers_make_sets():
    assert load_labels(3).class_names == ("0", "1", "2")
    assert load_labels(["a", "b"]).class_values == ((0,), (1,))
    named = load_labels({"b": 1, "a": 0, "c": [26, 27]})
    assert (named.class_names, named.class_values) == (("b", "a", "c"), ((1,), (0,), (26, 27)))


def test_a_set_survives_pickling_and_hashes():
    labels = load_labels("cityscapes")
    assert pickle.loads(pickle.dumps(labels)) == labels
    assert hash(labels) == hash(load_labels("cityscapes"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("classes = []", '"classes" must be a list of classes'),
        ("ignore = 1", '"classes" must be a list'),
        (
            'classes = ["a"]\nignored = 3',
            "unknown key 'ignored'; choose from classes, groups, ignore",
        ),
        ('classes = [{ name = "a", value = 3 }]', "class 0 .'a'.: unknown key 'value'"),
        ("classes = [{ values = 3 }]", "class 0 must have a name"),
        ('classes = [{ name = "a", values = [] }]', "has no values"),
        (
            'classes = [{ name = "a", values = [1.5] }]',
            "values of class 'a' must be an integer, not float .1.5.",
        ),
        ('classes = [{ name = "a", values = true }]', "must be an integer, not bool .True."),
        ('classes = [{ name = "a", colors = ["red"] }]', "expected a colour of three numbers"),
        (
            'classes = [{ name = "a", colors = [[1, 2, 300]] }]',
            "expected a colour of three numbers",
        ),
        ('classes = ["a", "a"]', "class name 'a' maps to both class 0"),
        ('classes = ["a", { name = "b", values = 0 }]', "value 0 maps to both"),
        ('classes = ["a"]\nignore = 0', "value 0 maps to both class 0 .'a'. and 'ignore'"),
        ('classes = ["a"]\n[groups]\ng = ["b"]', "unknown classes .* in group 'g'"),
        (
            'classes = ["a"]\nignore_colors = ["#000000"]',
            "ignore_colors requires a value in ignore",
        ),
        ("classes = [", "is not a TOML file"),
        (f'classes = [{{ name = "a", values = {2**64} }}]', "values of class 'a' must be at most"),
        (f'classes = ["a"]\nignore = [{-(2**63) - 1}]', "ignore must be at least -9223372036854"),
        (f"classes = {'9' * 5000}", "is not a TOML file: Exceeds the limit"),
        (f"classes = {'[' * 100_000}", "is nested too deeply for a label set"),
        (f"classes = {'{a=' * 100_000}", "is nested too deeply for a label set"),
        (f"classes = {'[' * 200}{']' * 200}", "class 0 must have a name"),
        ('classes = ["a"]\nignore = "255"', "ignore must be an integer, not str .'255'."),
        ('classes = ["a"]\ntitle = 3', "title must be text, not int .3."),
        (
            'classes = ["a", "b"]\n[groups]\na = ["a", "b"]',
            r"group 'a' has the name of a class, but its members are \['a', 'b'\]; rename",
        ),
        ('classes = ["a"]\n[groups]\ng = "a"', "group 'g' must be a list of class names, not str"),
    ],
)
def test_a_bad_file_is_refused_with_the_place(tmp_path, text, message):
    path = tmp_path / "bad.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=message) as caught:
        load_labels(path)
    assert str(caught.value).startswith(str(path))


def test_an_unknown_name_has_a_short_error():
    with pytest.raises(ValueError, match=r"unknown label set 'mine': .*segiou labelsets") as caught:
        load_labels("mine")
    assert len(str(caught.value)) < 250
    with pytest.raises(ValueError, match=r"^label file 'mine.TOML' does not exist$"):
        load_labels("mine.TOML")
    with pytest.raises(ValueError, match=r"unknown label set 'camvd': .*; did you mean camvid\?$"):
        load_labels("camvd")


def test_odd_kinds_are_refused():
    with pytest.raises(TypeError, match="not bool"):
        load_labels(True)
    with pytest.raises(TypeError, match="a sequence of strings, not str"):
        LabelSet.from_names("abc")
    with pytest.raises(TypeError, match="the name of a class must be text, not int"):
        load_labels({0: 1})
    with pytest.raises(TypeError, match="an ordered sequence of strings, not set"):
        load_labels({"a", "b"})
    with pytest.raises(ValueError, match="at least 1, got 0"):
        load_labels(0)
    with pytest.raises(ValueError, match="has no classes"):
        LabelSet("empty", ())
    with pytest.raises(ValueError, match="unknown class 'x'"):
        load_labels("camvid").index("x")


def test_hostile_names_are_quoted():
    nasty = 'a"b\\c\n\x7f</td>é'
    labels = LabelSet("x", (LabelClass(nasty, (0,)),))
    assert LabelSet.from_dict(tomllib.loads(labels.to_toml())).class_names == (nasty,)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"labels": ' * 100_000, "is not valid JSON"),
        (f'{{"labels": {{"a": {2**70}}}}}', "values of class 'a' must be at most"),
        (f'{{"labels": {{"a": {"9" * 5000}}}}}', "is not valid JSON"),
        ('{"labels": {"a": "x"}}', "label 'a' must have an integer"),
    ],
)
def test_a_bad_dataset_json_is_refused_with_its_name(tmp_path, text, message):
    path = tmp_path / "dataset.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=message) as caught:
        load_labels(path)
    assert str(caught.value).startswith(str(path))


@pytest.mark.parametrize("text", ["a" + ".a" * 100000 + " = 1", "[" + "a . " * 50000 + "a]"])
def test_keys_of_many_parts_are_refused(tmp_path, text):
    (tmp_path / "a.toml").write_text(f'notes = "a.b. c.d"\n{text}\n', encoding="utf-8")
    with pytest.raises(ValueError, match="nested too deeply"):
        load_labels(tmp_path / "a.toml")


def test_names_of_classes_are_no_books():
    with pytest.raises(ValueError, match=r"has 5000000 characters .* at most 1000"):
        LabelSet.from_names(["x" * 5_000_000, "b"])
    assert len(LabelSet.from_names(["x" * 1000, "b"]).class_names[0]) == 1000


@pytest.mark.parametrize(
    ("names", "value"), [(["", "cell"], 0), (["cell", " "], 1)], ids=["empty", "a space"]
)
def test_a_class_needs_a_name(names, value):
    with pytest.raises(ValueError, match=rf"the class of value {value} has no name; name it"):
        load_labels(names)
    with pytest.raises(ValueError, match="the class has no name; name it, or remove the class"):
        LabelClass(" ", ())


@pytest.mark.parametrize(
    "labels", [[[0], [1]], [0.0, 1.0], [True, False], [None, "a"], [b"a", b"b"], [("a",), ("b",)]]
)
def test_names_of_classes_are_text(labels):
    with pytest.raises(TypeError, match="a class name must be a string; pass values as integers"):
        load_labels(labels)
