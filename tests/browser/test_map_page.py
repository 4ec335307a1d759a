"""The page of a map's accuracy on screens of every width."""

import pytest

from segiou.cli.main import main

pytestmark = [pytest.mark.gate, pytest.mark.needs("maps")]


@pytest.mark.parametrize(("width", "water"), [(400, "water"), (1280, "inland water and wetlands")])
def test_bars_and_their_axis_have_room_beside_the_intervals(new_page, tmp_path, width, water):
    sample, areas, path = (tmp_path / name for name in ("sample.csv", "areas.csv", "page.html"))
    units = ["forest,forest"] * 20 + [f"{water},forest"] * 3 + [f"{water},{water}"] * 20
    sample.write_text("\n".join(["map,reference", *units]), encoding="utf-8")
    areas.write_text(f"map,area\nforest,500000\n{water},12345.6\n", encoding="utf-8")
    given = ["map-accuracy", sample, "--areas", areas, "-q", "--html", path]
    assert main([str(one) for one in given]) == 0
    page = new_page(viewport={"width": width, "height": 800})
    page.goto(path.as_uri())
    tracks = [track.bounding_box() for track in page.locator("svg.track").all()]
    assert len(tracks) == 6
    assert min(track["width"] for track in tracks) > 100
    for axis in page.locator("svg.axis").all():
        labels = [text.bounding_box() for text in axis.locator("text").all()]
        shown = [box for box in labels if box and box["width"]]
        ends = [box["x"] + box["width"] for box in shown]
        assert all(end < box["x"] for end, box in zip(ends, shown[1:], strict=False))


def test_long_names_and_intervals_fit_on_paper(new_page, tmp_path):
    sample, areas, path = (tmp_path / name for name in ("sample.csv", "areas.csv", "page.html"))
    long = "deforestation_and_degradation_of_every_kind"
    units = ["forest,forest"] * 20 + [f"{long},forest"] * 3 + [f"{long},{long}"] * 20
    sample.write_text("\n".join(["map,reference", *units]), encoding="utf-8")
    areas.write_text(f"map,area\nforest,5000000\n{long},12345.6\n", encoding="utf-8")
    given = ["map-accuracy", sample, "--areas", areas, "-q", "--html", path]
    assert main([str(one) for one in given]) == 0
    page = new_page(viewport={"width": 718, "height": 900})  # A4 without margins
    page.goto(path.as_uri())
    page.emulate_media(media="print")
    assert page.evaluate("document.documentElement.scrollWidth") <= 718
    numbers = page.locator(".tracks td.number").all()
    pictures = [one.bounding_box() for one in page.locator("svg.track").all()]
    assert min(picture["width"] for picture in pictures) > 100
    for picture, number in zip(pictures, numbers, strict=True):
        assert picture["x"] + picture["width"] <= number.bounding_box()["x"] + 1
