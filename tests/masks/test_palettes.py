"""Palettes that contradict the indices of palette images."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings, strategies as st
from PIL import Image

import segiou
from segiou import MaskError, read_mask
from segiou.cli.main import main
from segiou.labels import LabelClass, LabelSet
from segiou.masks.colors import contradiction
from segiou.scoring import inspect_folder

COLORS = [(0, 0, 0), (128, 0, 0), (0, 128, 0), (128, 128, 0)]
NAMED = LabelSet("four", tuple(LabelClass(n, (i,), (COLORS[i],)) for i, n in enumerate("abcd")))
VALUES = np.random.default_rng(0).choice(4, (20, 30), p=[0.1, 0.2, 0.3, 0.4]).astype(np.uint8)


def save(path, indices, palette):
    path.parent.mkdir(parents=True, exist_ok=True)
    image = Image.fromarray(np.asarray(indices, np.uint8))
    image.putpalette([channel for color in palette for channel in color])
    image.save(path)


@pytest.mark.few(7)
@pytest.mark.filterwarnings("ignore:classes overlap others")  # as the indices of the others do
@pytest.mark.parametrize("ending", ["png", "gif", "bmp", "tif"])
@pytest.mark.parametrize("order", [*permutations(range(4))][1:8])
def test_reordered_palettes_are_errors_and_read_by_colour(tmp_path, order, ending):
    """The same colours in another order, as Pillow's adaptive palettes have."""
    truth, pred = tmp_path / "truth", tmp_path / "pred"
    save(truth / "x.png", VALUES, COLORS)
    save(pred / f"x.{ending}", np.argsort(order)[VALUES], [COLORS[i] for i in order])
    with pytest.raises(segiou.DataError, match=r"the colour of class .*--read-palette colors"):
        segiou.score_folder(truth, pred, labels=NAMED)
    right = segiou.score_folder(truth, pred, labels=NAMED, read_palette="colors")
    assert right.report().mean_iou == 1
    kept = segiou.score_folder(truth, pred, labels=NAMED, read_palette="indices")
    assert kept.report().pixel_accuracy == (np.argsort(order)[VALUES] == VALUES).mean()


def test_every_route_of_pillow_to_palettes(tmp_path):
    image = Image.fromarray(np.array(COLORS, np.uint8)[VALUES])
    save(tmp_path / "truth" / "x.png", VALUES, COLORS)
    adaptive = image.convert("P", palette=Image.Palette.ADAPTIVE, colors=4)
    for name, one in {"quantize": image.quantize(4), "adaptive": adaptive, "gif": image}.items():
        path = tmp_path / name / ("x.gif" if name == "gif" else "x.png")
        path.parent.mkdir()
        one.save(path)
        run = segiou.score_folder(
            tmp_path / "truth", path.parent, labels=NAMED, read_palette="colors"
        )
        assert run.report().mean_iou == 1, name


def test_one_index_with_two_colours(tmp_path):
    save(tmp_path / "truth" / "a.png", [[0, 1]], COLORS)
    save(tmp_path / "truth" / "b.png", [[0, 1]], COLORS)
    save(tmp_path / "pred" / "a.png", [[0, 1]], [(9, 9, 8), (8, 9, 9)])
    save(tmp_path / "pred" / "b.png", [[0, 1]], [(9, 9, 8), (7, 9, 9)])
    with pytest.raises(segiou.DataError, match=r"#070909 for index 1, but #080909 in .*a\.png"):
        segiou.score_folder(tmp_path / "truth", tmp_path / "pred", labels=4)
    run = segiou.score_folder(
        tmp_path / "truth", tmp_path / "pred", labels=4, read_palette="indices"
    )
    assert run.report().mean_iou == 1
    assert "for index 1, but" in str(inspect_folder(tmp_path / "pred"))


def test_greys_that_are_other_values(tmp_path):
    """Pillow writes only the values that occur into a GIF: 0, 3, 7 get the indices 0, 1, 2."""
    values = np.array([[0, 3, 7, 7]], np.uint8)
    Image.fromarray(values).save(tmp_path / "truth.png")
    save(tmp_path / "pred.png", [[0, 1, 2, 2]], [(v, v, v) for v in (0, 3, 7)])
    places = tmp_path / "truth.png", tmp_path / "pred.png"
    with pytest.raises(segiou.DataError, match="index 1 has #030303, the grey of value 3"):
        segiou.score_folder(*places, labels=8)
    run = segiou.score_folder(*places, labels=8, read_palette="colors")
    assert run.report().mean_iou == 1
    assert "the grey of value 3" in str(inspect_folder(tmp_path / "pred.png"))
    assert read_mask(places[1], read_palette="colors").tolist() == values.tolist()


@given(st.permutations([*range(4)]), st.sets(st.integers(0, 3), min_size=2))
def test_a_palette_is_a_contradiction_if_a_used_colour_is_that_of_another_class(order, used):
    palette = bytes(channel for i in order for channel in COLORS[i])
    is_wrong = any(order[i] != i for i in used)
    assert bool(contradiction(palette, used, NAMED)) == is_wrong


@pytest.mark.parametrize(
    "palette",
    [
        [(i, i, i) for i in range(256)],
        COLORS,
        [(250 - i, i, 9) for i in range(200)],
        [(0, 0, 0), (255, 255, 255)],
        [(0, 0, 0)],
    ],
)
def test_palettes_that_say_nothing_are_silent(tmp_path, palette):
    indices = np.arange(4)[None] % len(palette)
    save(tmp_path / "t.png", indices, palette)
    for labels in (NAMED, LabelSet.from_names([*"abcd"])):
        assert read_mask(tmp_path / "t.png", labels).tolist() == indices.tolist()


def test_two_values_of_one_class_are_no_contradiction(tmp_path):
    save(tmp_path / "t.png", [[0, 1]], [(0, 0, 0), (255, 255, 255)])
    binary = segiou.load_labels("binary")  # 1 and 255 are its foreground
    assert read_mask(tmp_path / "t.png", binary).tolist() == [[0, 1]]


def test_the_command_and_other_routes(tmp_path, capsys):
    turned = [COLORS[i] for i in (0, 2, 1, 3)]
    for side, palette in (("truth", COLORS), ("pred", turned), ("other", turned)):
        for name in "ab":
            indices = VALUES if palette is COLORS else np.array([0, 2, 1, 3])[VALUES]
            save(tmp_path / side / f"{name}.png", indices, palette)
    (tmp_path / "l.toml").write_text(NAMED.to_toml())
    truth, pred, other = (str(tmp_path / side) for side in ("truth", "pred", "other"))
    labels = ["--labels", str(tmp_path / "l.toml")]
    for words in (["score", truth, pred], ["compare", pred, other, "--truth", truth]):
        assert main([*words, *labels]) == 3
        assert "the colour of class" in capsys.readouterr().err
        assert main([*words, *labels, "--read-palette", "colors"]) == 0
        assert main(["inspect", pred, *labels]) == 0
    assert "the colour of class" in " ".join(capsys.readouterr().out.split())
    page = tmp_path / "page.html"
    assert (
        main(["score", truth, pred, *labels, "--read-palette", "colors", "--html", str(page)]) == 0
    )
    assert "No pictures: " not in page.read_text()
    with pytest.raises(MaskError, match="read_palette='colors'"):
        read_mask(tmp_path / "pred" / "a.png", NAMED)
    assert (read_mask(tmp_path / "pred" / "a.png", NAMED, read_palette="colors") == VALUES).all()


@pytest.mark.parametrize(("how", "first"), [("colors", 1), ("indices", 0)])
def test_raters_settle_a_contradiction_as_score_does(tmp_path, capsys, how, first):
    """The indices of one rater's palette are exchanged; the colours are those of the other."""
    labels = segiou.LabelSet.from_dict(
        {
            "name": "two",
            "classes": [
                {"name": "a", "values": [0], "colors": ["#ff0000"]},
                {"name": "b", "values": [1], "colors": ["#00ff00"]},
            ],
        }
    )
    colors = np.array([[255, 0, 0], [0, 255, 0]], np.uint8)
    for rater, order in (("anna", [0, 1]), ("ben", [1, 0])):
        (tmp_path / rater).mkdir()
        for case in "xy":
            image = Image.fromarray(np.array([order * 2], np.uint8), "P")
            image.putpalette(colors[order].tobytes())
            image.save(tmp_path / rater / f"{case}.png")
    raters = {name: tmp_path / name for name in ("anna", "ben")}
    with pytest.raises(segiou.DataError, match="--read-palette colors"):
        segiou.compare_raters(raters, labels=labels)
    found = segiou.compare_raters(raters, labels=labels, read_palette=how)
    assert found.matrix("dice", "a")[0][1] == first
    with pytest.raises(ValueError, match="read_palette"):
        segiou.compare_raters(raters, labels=labels, read_palette="both")
    path = tmp_path / "two.toml"
    path.write_text(labels.to_toml())
    places = [str(one) for one in raters.values()]
    command = ["raters", *places, "--labels", str(path), "--read-palette", how]
    assert main([*command, "--format", "json"]) == 0
    capsys.readouterr()


PLAIN = LabelSet.from_names([*"abcd"])
ENDINGS = st.sampled_from(["png", "bmp", "tif"])  # Pillow drops unused colours of a GIF


@pytest.mark.gate
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example([1, 0, 2, 3], {0, 2, 3}, "png", "tif")  # TIFF pads the palette with black
@given(st.permutations([*range(4)]), st.sets(st.integers(0, 3), min_size=3), ENDINGS, ENDINGS)
def test_palettes_of_two_sides_contradict_each_other(tmp_path, order, used, first, second):
    """Law: without colours in the label set, one colour has one index, in files of any kind."""
    values = np.array([sorted(used)] * 2)
    truth, pred = tmp_path / f"t.{first}", tmp_path / f"p.{second}"
    save(truth, values, COLORS)
    save(pred, np.argsort(order)[values], [COLORS[i] for i in order])
    if any(order.index(i) != i for i in used):
        with pytest.raises(segiou.DataError, match=r"has a palette .*--read-palette indices"):
            segiou.score_folder(truth, pred, labels=4)
        options = {"labels": NAMED, "read_palette": "colors"}
        assert segiou.score_folder(truth, pred, **options).report().mean_iou == 1
    else:
        assert segiou.score_folder(truth, pred, labels=4).report().mean_iou == 1
    swapped = {"labels": 4, "pred_labels": {order.index(i): "0123"[i] for i in range(4)}}
    assert segiou.score_folder(truth, pred, **swapped).report().mean_iou == 1


GREYS = [(i, i, i) for i in range(256)]
RANDOM = [(250 - i, i, 9) for i in range(200)]


@pytest.mark.parametrize("other", [GREYS, RANDOM, COLORS])
def test_palettes_of_another_scheme_say_nothing(tmp_path, other):
    for name, palette in (("truth", COLORS), ("pred", other)):
        for case in "ab":
            save(tmp_path / name / f"{case}.png", VALUES[:, :10], palette)
    folders = {name: tmp_path / name for name in ("truth", "pred")}
    assert segiou.score_folder(*folders.values(), labels=4).report().mean_iou == 1
    assert segiou.compare_raters(folders, labels=4).agreement.value == 1
    assert not inspect_folder(folders["truth"], pred=folders["pred"]).pred.suspicions


def test_one_index_of_two_sides_has_one_colour(tmp_path):
    """Three of four colours are equal, so the fourth is of the same scheme."""
    for name, palette in (("truth", COLORS), ("pred", [*COLORS[:3], (0, 0, 128)])):
        save(tmp_path / name / "a.png", VALUES, palette)
        save(tmp_path / name / "b.png", VALUES, palette)
    folders = {name: tmp_path / name for name in ("truth", "pred")}
    text = r"has a palette with #000080 for index 3, but #808000 in .*truth"
    with pytest.raises(segiou.DataError, match=text):
        segiou.score_folder(*folders.values(), labels=4)
    with pytest.raises(segiou.DataError, match=text):
        segiou.compare_raters(folders, labels=4)
    inspected = inspect_folder(folders["truth"], pred=folders["pred"])
    assert "#000080 for index 3" in " ".join(inspected.pred.suspicions)


def test_raters_have_one_colour_per_index(tmp_path):
    for case, blue in (("a", 0), ("b", 9)):
        save(tmp_path / "ann" / f"{case}.png", VALUES, [*COLORS[:3], (128, 128, blue)])
        save(tmp_path / "ben" / f"{case}.png", VALUES, COLORS)
    raters = {name: tmp_path / name for name in ("ann", "ben")}
    with pytest.raises(segiou.DataError, match=r"#808009 for index 3, but #808000 in .*a\.png"):
        segiou.compare_raters(raters, labels=4)
    assert segiou.compare_raters(raters, labels=4, read_palette="indices").agreement.value == 1


@pytest.mark.parametrize("compression", [None, "deflate", "lzw"])
@pytest.mark.parametrize("bits", [8, 16])
def test_colour_maps_of_tiff(tmp_path, compression, bits):
    tifffile = pytest.importorskip("tifffile")
    if compression == "lzw":
        pytest.importorskip("imagecodecs")
    colors = np.zeros((3, 256), np.uint16)
    colors[:, :4] = np.array([COLORS[i] for i in (0, 2, 1, 3)]).T * (257 if bits == 16 else 1)
    turned = np.array([0, 2, 1, 3], np.uint8)[VALUES]
    options = {"photometric": "palette", "colormap": colors, "compression": compression}
    tifffile.imwrite(tmp_path / "a.tif", turned, **options)
    assert (read_mask(tmp_path / "a.tif") == turned).all()
    assert (read_mask(tmp_path / "a.tif", NAMED, read_palette="colors") == VALUES).all()
    with pytest.raises(MaskError, match="index 1 has #008000, the colour of class 'c'"):
        read_mask(tmp_path / "a.tif", NAMED)


@pytest.mark.gate
def test_large_tiff_with_a_colour_map(tmp_path):
    """Large files are read in windows."""
    tifffile = pytest.importorskip("tifffile")
    colors = np.zeros((3, 256), np.uint16)
    colors[:, :4] = np.array([COLORS[i] for i in (0, 2, 1, 3)]).T * 257
    values = np.zeros((4200, 4100), np.uint8)
    values[-1, -1] = 2
    for name in ("truth", "pred"):
        tifffile.imwrite(tmp_path / f"{name}.tif", values, photometric="palette", colormap=colors)
    places = tmp_path / "truth.tif", tmp_path / "pred.tif"
    with pytest.raises(segiou.DataError, match="index 2 has #800000, the colour of class 'b'"):
        segiou.score_folder(*places, labels=NAMED)
    assert segiou.score_folder(*places, labels=4).report().pixel_accuracy == 1


THREAD = Path(__file__).parents[3] / "shared" / "data" / "threads" / "10-palette-reordered"


@pytest.mark.skipif(not THREAD.exists(), reason="the threads are not here")
def test_thread_of_reordered_palettes():
    """Without colours in the label set, the error leads to the preset with these colours."""
    places = THREAD / "SegmentationClass", THREAD / "pred"
    with pytest.raises(segiou.DataError, match=r"--labels voc2012 --read-palette colors"):
        segiou.score_folder(*places, labels=21, ignore=255)
    run = segiou.score_folder(*places, labels="voc2012", read_palette="colors")
    assert run.report().mean_iou == pytest.approx(0.8043575532170731, rel=1e-12)
