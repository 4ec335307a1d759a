"""segiou map-accuracy: a table of a sample and the areas of a map."""

from __future__ import annotations

import csv
import json
from io import StringIO

import numpy as np
import pytest
import tifffile

from segiou.cli.main import main

NAMES = ("loss", "gain", "forest", "other")
MATRIX = [[66, 0, 5, 4], [0, 55, 8, 12], [1, 0, 153, 11], [2, 1, 9, 313]]
AREAS = "class,area\nloss,18000\ngain,13500\nforest,288000\nother,580500\n"


def sample_text(matrix=MATRIX, names=NAMES):
    rows = ["map,reference"]
    for name, counts in zip(names, matrix, strict=True):
        rows += [
            f"{name},{other}"
            for other, count in zip(names, counts, strict=True)
            for _ in range(count)
        ]
    return "\n".join(rows) + "\n"


@pytest.fixture
def files(tmp_path):
    sample, areas = tmp_path / "sample.csv", tmp_path / "areas.csv"
    sample.write_text(sample_text())
    areas.write_text(AREAS)
    return sample, areas


def run(*words):
    return main(["map-accuracy", *map(str, words)])


def output(capsys, *words):
    assert run(*words) == 0
    return capsys.readouterr().out


def test_areas_beyond_any_map_are_rejected(files, capsys):
    files[1].write_text(AREAS.replace("18000", "1e308"))
    assert run(files[0], "--areas", files[1]) == 3
    assert f"{files[1]}: areas['loss'] is 1e+308; expected 0 or a num" in capsys.readouterr().err


def test_a_kappa_without_an_error_and_classes_in_strata(files, capsys, monkeypatch):
    files[0].write_text("map,reference,stratum\nforest,forest,1\nwater,water,2\n")
    files[1].write_text("class,area\n1,3\n2,1\n")
    text = output(capsys, files[0], "--areas", files[1], "--strata", "stratum")
    assert text.startswith("Overall accuracy 100.00 % (2 sample units); kappa 1.0000\n")
    assert "strata 1 and 2 each have one sample unit" in text
    assert text.index("\nforest") < text.index("\nwater")
    monkeypatch.setenv("COLUMNS", "80")
    lines = sample_text([[2, 1], [1, 2]], ("a", "b"))
    files[0].write_text(lines)
    files[1].write_text("class,area\na,3\nb,1\n")
    assert "±\n" not in output(capsys, files[0], "--areas", files[1])


def test_too_many_classes_are_rejected_before_memory_is_used(files, capsys):
    names = [f"c{i}" for i in range(2000)]
    files[0].write_text("map,reference\n" + "".join(f"{n},{n}\n" for n in names))
    files[1].write_text("class,area\n" + "".join(f"{n},1\n" for n in names))
    assert run(files[0], "--areas", files[1]) == 3
    assert "2000 classes in 2000 strata are too many" in capsys.readouterr().err


def test_a_level_is_an_error_of_the_option(files, capsys):
    for level in ("0", "1"):
        assert run(files[0], "--areas", files[1], "--level", level) == 2
        assert "segiou: --level must be between 0 and 1" in capsys.readouterr().err


@pytest.mark.parametrize("place", ["nan", "inf", "x"])
def test_coordinates_that_are_not_numbers_are_named(files, capsys, tmp_path, place):
    files[0].write_text(f"x,y,reference\n1,2,loss\n{place},2,loss\n")
    write = tmp_path / "map.tif"
    tifffile.imwrite(write, np.zeros((4, 4), np.uint8))
    assert run(files[0], "--areas", write, "--coordinates", "x,y", "--unit", "pixels") == 3
    assert f"row 2: coordinates ({place}, 2) are not numbers" in capsys.readouterr().err


def test_an_endless_sample_ends(files, capsys, monkeypatch):
    monkeypatch.setattr("segiou._support.files._MOST_TEXT", 1 << 20)
    assert run("/dev/zero", "--areas", files[1]) == 3
    assert "/dev/zero: is too large; the limit for text" in capsys.readouterr().err


def test_notes_of_a_page_keep_names_as_they_are(files, tmp_path):
    files[1].write_text(f"{AREAS}ice,0\n")
    assert run(files[0], "--areas", files[1], "--html", tmp_path / "page.html", "-q") == 0
    page = (tmp_path / "page.html").read_text("utf-8")
    reason = "The map lacks ice: ice, user&#39;s accuracy"
    assert reason in " ".join(page.replace("\N{NO-BREAK SPACE}", " ").split())


def test_notes_are_escaped_in_markdown(files, capsys):
    files[0].write_text(sample_text(names=("[a](http://x.y)", *NAMES[1:])))
    files[1].write_text(AREAS.replace("loss", "[a](http://x.y)") + "<b>,0\n")
    text = output(capsys, files[0], "--areas", files[1], "--format", "markdown")
    assert "\\[a\\](http\\://x.y)" in text and "the map lacks &lt;b>" in text
    assert "[a](http:" not in text


def test_table_8_of_olofsson_2014_as_text(files, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "140")
    text = output(capsys, files[0], "--areas", files[1])
    assert "94.65 % (92.45 to 96.24 %, 640 sample units)" in text
    assert "21 158 (15 601 to 28 629)" in text
    assert "88.00 % (78.54 to 93.63 %)" in text
    assert "area, ha" in text
    # Narrow terminals have the columns in several tables.
    monkeypatch.setenv("COLUMNS", "80")
    narrow = output(capsys, files[0], "--areas", files[1])
    assert max(map(len, narrow.splitlines())) <= 80
    assert all(head in narrow for head in ("producer's", "F1", "area, ha", "mapped", "sample unit"))


def test_every_format_has_the_same_figures(files, capsys, tmp_path):
    given = files[0], "--areas", files[1]
    data = json.loads(output(capsys, *given, "--format", "json"))
    assert data["unit"] == "ha"
    assert data["overall_accuracy"]["value"] == pytest.approx(0.9465118881)
    assert [row["name"] for row in data["classes"]] == list(NAMES)
    rows = list(csv.DictReader(StringIO(output(capsys, *given, "--format", "csv"))))
    area = next(row for row in rows if (row["class"], row["score"]) == ("loss", "area"))
    assert float(area["value"]) == data["classes"][0]["area"]["value"]
    markdown = output(capsys, *given, "--format", "markdown")
    assert "| loss | 88.00 % (78.54 to 93.63 %) |" in markdown
    page = tmp_path / "page.html"
    assert run(*given, "--html", page, "-o", tmp_path / "found.json") == 0
    assert json.loads((tmp_path / "found.json").read_text()) == data
    text = page.read_text(encoding="utf-8").replace("\N{NO-BREAK SPACE}", " ")
    assert "21 158 (15 601 to 28 629)" in text
    assert str(page) in capsys.readouterr().err


def tiff(path, mask, *, epsg, corner, size, nodata=None, key=3072):
    keys = [1, 1, 0, 2, 1025, 0, 1, 1, key, 0, 1, epsg]
    tags = [
        (33550, "d", 3, (size, size, 0.0), True),
        (33922, "d", 6, (0.0, 0.0, 0.0, *corner, 0.0), True),
        (34735, "H", len(keys), keys, True),
    ]
    if nodata is not None:
        tags.append((42113, "s", 0, str(nodata), True))
    tifffile.imwrite(path, mask, extratags=tags, photometric="minisblack")
    return path


#: 100 m pixels of 1 ha: 6 of class 1, 4 of class 2 and 2 without data.
MASK = np.array([[1, 1, 1, 2], [1, 1, 2, 2], [1, 2, 9, 9]], np.uint8)


@pytest.fixture
def raster(tmp_path):
    path = tmp_path / "map.tif"
    return tiff(path, MASK, epsg=32632, corner=(500000.0, 4600300.0), size=100.0, nodata=9)


def test_areas_from_a_map(raster, tmp_path, capsys):
    sample = tmp_path / "sample.csv"
    sample.write_text("point,ground,map\na,1,1\nb,1,1\nc,2,1\nd,2,2\ne,2,2\n")
    given = sample, "--areas", raster, "--reference", "ground"
    found = json.loads(output(capsys, *given, "--format", "json"))
    assert [row["mapped_area"] for row in found["classes"]] == pytest.approx([6, 4])
    # A third of class 1 is class 2.
    assert found["classes"][1]["area"]["value"] == pytest.approx(6)
    found = json.loads(output(capsys, *given, "--format", "json", "--unit", "km2"))
    assert found["total_area"] == pytest.approx(0.1)
    # With names, a class that only the reference has.
    labels = tmp_path / "labels.toml"
    classes = [f'{{ name = "{n}", values = [{v}] }}' for v, n in ((1, "water"), (2, "land"))]
    ice = '{ name = "ice", values = [3] }'
    labels.write_text(f'name = "x"\nclasses = [{", ".join(classes)}, {ice}]\n')
    sample.write_text("ground,map\nwater,1\nice,water\n2,land\n2,2\n")
    found = json.loads(output(capsys, *given, "--labels", labels, "--format", "json"))
    assert [row["name"] for row in found["classes"]] == ["water", "land", "ice"]
    assert found["classes"][2]["users_accuracy"]["value"] is None
    assert "the map lacks ice" in found["classes"][2]["users_accuracy"]["reason"]
    assert found["classes"][2]["area"]["value"] == pytest.approx(3)


def test_classes_at_coordinates(raster, tmp_path, capsys):
    sample = tmp_path / "points.csv"
    # The last row of the map is 4600000 to 4600100.
    points = [
        (500050, 4600250, 1),
        (500150, 4600150, 2),
        (500350, 4600250, 2),
        (500150, 4600050, 2),
    ]
    sample.write_text("x,y,reference\n" + "".join(f"{x},{y},{c}\n" for x, y, c in points))
    given = sample, "--areas", raster, "--coordinates", "x,y", "--format", "json"
    assert run(*given, "--map", "other") == 2
    assert "--map has no effect with --coordinates" in capsys.readouterr().err
    assert json.loads(output(capsys, *given))["sample"] == [[1, 0], [1, 2]]
    for point, named in (((500450, 4600250), "outside"), ((500350, 4600050), "nodata")):
        sample.write_text(f"x,y,reference\n500050,4600250,1\n{point[0]},{point[1]},1\n")
        assert run(*given) == 3
        error = capsys.readouterr().err
        assert "row 2" in error
        assert named in error


def test_pixels_of_degrees_depend_on_the_latitude(tmp_path, capsys):
    mask = np.array([[1, 1], [2, 2]], np.uint8)
    path = tmp_path / "degrees.tif"
    tiff(path, mask, epsg=4326, corner=(10.0, 61.0), size=1.0, key=2048)
    sample = tmp_path / "sample.csv"
    sample.write_text("map,reference\n1,1\n1,1\n2,2\n2,2\n")
    given = sample, "--areas", path, "--unit", "km2", "--format", "json"
    north, south = (row["mapped_area"] for row in json.loads(output(capsys, *given))["classes"])
    # The integral of both radii of curvature of WGS 84, by the midpoint rule.
    axis, square = 6378.137, 0.00669437999014
    lat = np.radians(59 + (np.arange(2000) + 0.5) / 1000)
    meridian = axis * (1 - square) / (1 - square * np.sin(lat) ** 2) ** 1.5
    normal = axis / np.sqrt(1 - square * np.sin(lat) ** 2)
    strips = meridian * normal * np.cos(lat) * np.radians(1) * np.radians(1e-3)
    expected = 2 * strips[1000:].sum(), 2 * strips[:1000].sum()
    assert (north, south) == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize(
    ("sample", "areas", "named"),
    [
        ("map,reference\nloss,loss\nloss,\n", AREAS, ["sample.csv", "row 2", "reference"]),
        ("map,reference\nloss,wolf\n", AREAS, ["sample.csv", "row 1", "'wolf'"]),
        ("map,truth\nloss,loss\n", AREAS, ["sample.csv", "'reference'", "truth"]),
        ("map,reference\n", AREAS, ["sample.csv", "no rows"]),
        (sample_text(), "class,size\nloss,3\n", ["areas.csv: has no column 'area'", "size"]),
        (sample_text(), "class,area\nloss,-3\n", ["areas.csv", "row 1", "'loss'", "-3"]),
        (sample_text(), "class,area\nloss,3\nloss,4\n", ["areas.csv", "row 2", "twice"]),
        (sample_text(), "class,area\nloss,3\n,7\n", ["areas.csv", "row 2 has no class"]),
        (sample_text(), "area\n3\n", ["areas.csv", "row 1 has no class"]),
        (sample_text(), AREAS + "ice,5\n", ["'ice'", "no sample unit", "ignore in the label set"]),
    ],
)
def test_bad_rows_are_named(files, capsys, sample, areas, named):
    files[0].write_text(sample)
    files[1].write_text(areas)
    assert run(files[0], "--areas", files[1]) == 3
    error = capsys.readouterr().err
    assert all(text in error for text in named), error
    assert error.count(named[0]) == 1


def test_the_index_of_a_data_frame_is_not_a_class(files, capsys):
    expected = output(capsys, files[0], "--areas", files[1])
    heads, *rows = AREAS.splitlines()
    indexed = [f",{heads}", *(f"{number},{row}" for number, row in enumerate(rows))]
    files[1].write_text("\n".join(indexed))
    assert output(capsys, files[0], "--areas", files[1]) == expected


def test_a_map_without_georeference_counts_pixels(tmp_path, capsys):
    path = tmp_path / "map.tif"
    tifffile.imwrite(path, MASK, photometric="minisblack")
    sample = tmp_path / "sample.csv"
    sample.write_text("map,reference\n1,1\n1,1\n2,2\n2,2\n9,9\n9,9\n")
    assert run(sample, "--areas", path) == 3
    assert "--unit pixels" in capsys.readouterr().err
    found = json.loads(output(capsys, sample, "--areas", path, "--unit", "pixels", "--format=json"))
    assert [row["mapped_area"] for row in found["classes"]] == [6, 4, 2]


def test_web_mercator_is_refused(tmp_path, capsys):
    path = tiff(tmp_path / "map.tif", MASK, epsg=3857, corner=(0.0, 0.0), size=10.0)
    sample = tmp_path / "sample.csv"
    sample.write_text("map,reference\n1,1\n")
    assert run(sample, "--areas", path) == 3
    assert "EPSG:3857" in capsys.readouterr().err
