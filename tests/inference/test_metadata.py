"""Tables of metadata as people have them, matched with ids of images."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, strategies as st

from segiou.inference import groups_of
from segiou.inference.metadata import metadata_of
from segiou.scoring.pair_options import _read_ids

IDS = ("a_1", "a_2", "b_1", "b_2")


def coded(by, ids=IDS, **options):
    """Values of each image in the only column."""
    (column,) = metadata_of(by, ids, **options).columns
    return [column.values[code] if code >= 0 else None for code in column.codes]


FILES = {
    "meta.csv": "id,w\na_1,day\na_2,night\nb_1,day\nb_2,\n",
    "semicolons.csv": "image_id;w\na_1; day\na_2;night \nb_1;day\nb_2;NA\nother;dusk\n",
    "bom.csv": "\ufefffile,w\r\nval/a_1.png,day\r\nval/a_2.png,night\r\nval/b_1.png,day\r\n",
    "tabs.tsv": "w\tname\nday\ta_1.nii.gz\nnight\ta_2.nii.gz\nday\tb_1.nii.gz\n",
    "rows.json": json.dumps(
        [
            {"name": "a_1.jpg", "attributes": {"w": "day"}},
            {"name": "a_2.jpg", "attributes": {"w": "night"}},
            {"name": "b_1.jpg", "attributes": {"w": "day"}},
            {"name": "b_2.jpg", "attributes": {"w": "undefined"}},
        ]
    ),
    "mapping.json": json.dumps({"a_1": {"w": "day"}, "a_2": {"w": "night"}, "b_1": {"w": "day"}}),
    "lines.jsonl": '{"id": "a_1", "w": "day"}\n\n{"id": "a_2", "w": "night"}\n'
    '{"id": "b_1", "w": "day"}\n',
    "index.csv": ",w,id\n0,day,a_1\n1,night,a_2\n2,day,b_1\n",
    "named_index.csv": ",w\na_1,day\na_2,night\nb_1,day\n",
    "excel.csv": "sep=;\nid;w;x\na_1;day;1\na_2;night;1\nb_1;day;1\n",
    "trailing.csv": "id,w,\na_1,day,\na_2,night,\nb_1,day,\n",
    "twice.csv": "id,w\na_1,day\na_1,day\na_2,night\nb_1,day\n",
}


@pytest.mark.parametrize("name", FILES)
def test_files_of_every_kind(name, tmp_path):
    (tmp_path / name).write_text(FILES[name], encoding="utf-8")
    expected = ["day", "night", "day", None]
    assert coded(str(tmp_path / name)) == expected
    found = metadata_of(f"{tmp_path / name}:w", IDS)
    assert found.missing == {"w": 1}


@pytest.mark.parametrize("name", FILES)
def test_groups_and_ids_are_columns_of_the_same_files(name, tmp_path):
    (tmp_path / name).write_text(FILES[name], encoding="utf-8")
    assert groups_of(IDS[:3], f"{tmp_path / name}:w") == ("day", "night", "day")
    with pytest.raises(ValueError, match="no w of b_2; every id needs one"):
        groups_of(IDS, f"{tmp_path / name}:w")
    with pytest.raises(ValueError, match="no column 'v'"):
        groups_of((), f"{tmp_path / name}:v")
    with pytest.raises(ValueError, match=r"name the column of groups: .*:COLUMN"):
        groups_of(IDS, str(tmp_path / name))
    assert {"day", "night"} <= {*_read_ids(f"{tmp_path / name}:w")}  # also of nested rows
    with pytest.raises(ValueError, match="name the id column"):
        _read_ids(str(tmp_path / name))


def test_groups_of_patients_are_a_part_of_the_id(tmp_path):
    (tmp_path / "participants.tsv").write_text("participant_id\tsite\na\tX\nb\tY\n")
    how = r"--group-by '\^\(\[\^_\]\+\)' finds [ab] of participant_id \(Python: groups=…\)"
    with pytest.raises(ValueError, match=how):
        groups_of(IDS, f"{tmp_path / 'participants.tsv'}:site")


def test_a_table_of_images_is_metadata_again(tmp_path):
    """Names that spreadsheets would run have an apostrophe in CSV."""
    (tmp_path / "images.csv").write_text("image,drive\n'=a,1\n'tis,2\n")
    assert groups_of(["=a", "'tis"], f"{tmp_path / 'images.csv'}:drive") == ("1", "2")


def test_parquet_and_pandas(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"id": IDS, "w": ["day", "night", "day", None]})
    expected = ["day", "night", "day", None]
    assert coded(frame) == expected
    assert coded(frame.set_index("id")) == expected
    pytest.importorskip("pyarrow")
    frame.to_parquet(tmp_path / "meta.parquet")
    assert coded(str(tmp_path / "meta.parquet")) == expected


def test_patterns_and_keys():
    assert coded(r"(?P<city>[^_]+)_") == ["a", "a", "b", "b"]
    rows = [{"participant_id": "a", "site": "X"}, {"participant_id": "b", "site": "Y"}]
    assert coded(rows, key="^([^_]+)") == ["X", "X", "Y", "Y"]


def test_an_image_may_have_several_values():
    (column,) = metadata_of({"a_1": ["rain", "fog"], "a_2": "fog", "b_1": "rain"}, IDS).columns
    assert column.values == ("fog", "rain")
    assert column.inside(0).tolist() == [True, True, False, False]
    assert column.inside(1).tolist() == [True, False, True, False]


def test_numbers_are_divided_into_quartiles_or_at_edges():
    ids = tuple(f"{i:02}" for i in range(12))
    by = {id: i + 1.0 for i, id in enumerate(ids)}
    (column,) = metadata_of(by, ids).columns
    assert column.values == ("< 3.75", "3.75 to 6.5", "6.5 to 9.25", "≥ 9.25")
    assert np.bincount(column.codes).tolist() == [3, 3, 3, 3]
    (column,) = metadata_of(by, ids, bins={"slice": [5]}).columns
    assert np.bincount(column.codes).tolist() == [4, 8]
    assert column.numbers is None


def test_dates_are_divided_at_dates():
    ids = tuple(f"{i:02}" for i in range(12))
    by = {id: f"2024-{i + 1:02}-01T10:30:00Z" for i, id in enumerate(ids)}
    (column,) = metadata_of(by, ids).columns
    assert column.is_date and column.values[0] == "< 2024-03-24 16:30"
    assert np.bincount(column.codes).tolist() == [3, 3, 3, 3]
    (column,) = metadata_of(by, ids, bins={"slice": ["2024-06-01", "2024-08-01"]}).columns
    assert column.values == ("< 2024-06-01", "2024-06-01 to 2024-08-01", "≥ 2024-08-01")
    assert np.bincount(column.codes).tolist() == [5, 2, 5]
    with pytest.raises(ValueError, match="quantiles or ascending dates, got \\['x'\\]"):
        metadata_of(by, ids, bins={"slice": ["x"]})
    # Few dates are values, and a date among other text is text.
    few = {id: "2024-01-01" if i % 2 else "2024-01-02" for i, id in enumerate(ids)}
    assert metadata_of(few, ids).columns[0].values == ("2024-01-01", "2024-01-02")
    assert not metadata_of(by | {"00": "spring"}, ids).columns[0].is_date


def test_numbers_of_frames_are_no_suffixes():
    rows = [{"id": "f.0001", "w": "x"}, {"id": "f.0002", "w": "y"}]
    assert coded(rows, ("f.0001", "f.0002", "f.0003")) == ["x", "y", None]


def row(id, **values):
    return {"id": id, **values}


DAY = [row("a_1", w="day"), row("a_2", w="night")]


@pytest.mark.parametrize(
    ("by", "options", "message"),
    [
        ([], {}, "the metadata: has no rows"),
        ([row("x", w="1"), row("y", w="2")], {}, "such as a_1; the first row has id x and w 1"),
        ([row("x", w="1"), row("y", w="2")], {}, r"--slices-key REGEX \(Python: key=…\)"),
        ([row("a", w="1"), row("b", w="2")], {}, r"--slices-key '\^\(\[\^_\]\+\)' finds a of id"),
        ([*DAY, row("a_1", w="fog")], {}, r"different w: day \(row 1\) and fog \(row 3\)"),
        (DAY, {"columns": ["W2"]}, "no column 'W2'; columns: w"),
        (DAY, {"columns": ["wa"]}, "no column 'wa'"),
        ([row("a_1", w="day")], {}, r"divides the 4 ids \(w has one value \(day\)\)"),
        ([row("a_1", w="")], {}, "w is empty"),
        (DAY, {"bins": {"w": 3}}, r"has text \(day\), which cannot be divided"),
        (DAY, {"key": "("}, "the key '\\(' is not a regular expression"),
        ("no-such.csv", {}, "no-such.csv"),
        ("a_(", {}, "neither a metadata file nor a regular expression"),
        ("a_", {}, "needs named groups"),
        ("(?P<x>zzz)", {}, "matches no id, such as a_1"),
    ],
)
def test_bad_input(by, options, message):
    with pytest.raises(ValueError, match=message):
        metadata_of(by, IDS, **options)


def test_bad_kinds():
    with pytest.raises(TypeError, match="the metadata"):
        metadata_of(3, IDS)
    with pytest.raises(TypeError, match="a row of the metadata"):
        metadata_of([3], IDS)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id,w,w\na_1,1,2\n", "duplicate column 'w'"),
        ("id,w\na_1,1,2\n", "line 2 has more than 2 cells"),
        ('id,w\n"a_1,1\n', "is not valid CSV"),
        ("id,w\n", "has no rows"),
        ("", "has no rows"),
        ("3", "meta.json: the metadata must be a file"),
        ("[3]", "meta.json: a row of the metadata must be a mapping"),
        ('{"id": 1', "meta.json: is not valid JSON"),
        ('{"images": [{"a": "' + 99 * "x" + '"}]}', r"first row has slice \[\{'a': 'x{30}"),
    ],
)
def test_bad_files(text, message, tmp_path):
    name = "meta.json" if text[:1] in ("3", "[", "{") else "meta.csv"
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=message) as error:
        metadata_of(str(tmp_path / name), IDS)
    assert len(str(error.value)) < 400


def test_decimal_commas_are_those_of_semicolons(tmp_path):
    ids = tuple(f"{i:02}" for i in range(12))
    (tmp_path / "m.csv").write_text("id;x\n" + "".join(f"{id};{id},5\n" for id in ids))
    (column,) = metadata_of(str(tmp_path / "m.csv"), ids).columns
    assert column.values[0] == "< 3.25"


def test_too_many_values():
    ids = tuple(f"i{i}" for i in range(60))
    rows = [row(id, name=f"n{id}", w=id[-1] > "4") for id in ids]
    found = metadata_of(rows, ids)
    assert [column.name for column in found.columns] == ["w"]
    assert "has 60 values" in found.skipped["name"]
    with pytest.raises(ValueError, match="'name' has 60 values"):
        metadata_of(rows, ids, columns=["name"])


def test_bins_of_a_text_column_are_an_error():
    with pytest.raises(ValueError, match=r"column 'x' has text \(a\), which cannot be divided"):
        metadata_of({"i": {"x": "a", "y": 1}, "j": {"x": "b", "y": 2}}, ["i", "j"], bins={"x": 3})


@given(st.lists(st.floats(-1e15, 1e15), min_size=1, max_size=6, unique=True))
def test_bins_have_different_names(edges):
    """Law: edges have as many digits as tell them apart."""
    edges = sorted(edges)
    rows = {str(i): {"x": one} for i, one in enumerate([edges[0] - 1, *edges, edges[-1] * 2 + 1])}
    (column,) = metadata_of(rows, [*rows], bins={"x": edges}).columns
    assert len({*column.values}) == len(column.values) == len(edges) + 1


def test_days_written_as_numbers_are_different_bins():
    rows = {str(i): {"day": 20240501 + i} for i in range(31)}
    (column,) = metadata_of(rows, [*rows], bins={"day": [20240511, 20240521]}).columns
    assert column.values == ("< 20240511", "20240511 to 20240521", "≥ 20240521")


def test_times_have_the_seconds_that_tell_them_apart():
    rows = {str(i): {"time": f"2024-05-01T10:00:{i:02d}"} for i in range(60)}
    (column,) = metadata_of(
        rows, [*rows], bins={"time": ["2024-05-01T10:00:15", "2024-05-01T10:00:45"]}
    ).columns
    assert column.values[1] == "2024-05-01 10:00:15 to 2024-05-01 10:00:45"


@pytest.mark.parametrize("form", ["{}_{}", "\N{FULLWIDTH DIGIT ONE}{}{}"])
def test_names_of_digits_are_not_numbers(form):
    rows = {str(i): {"drive": form.format(i % 3, i % 4)} for i in range(12)}
    (column,) = metadata_of(rows, [*rows]).columns
    assert len(column.values) == 12 and column.numbers is None
