"""Images side by side: what each picture shows, and the command that writes them."""

import itertools

import numpy as np
import pytest
from mask_files import write_pairs
from PIL import Image

import segiou
from segiou import plots
from segiou.cli.main import main
from segiou.labels import LabelClass, LabelSet
from segiou.report import save_errors

pytest.importorskip("matplotlib")

from matplotlib import pyplot
from matplotlib.figure import Figure

ROAD, CAR, POLE = (0, 0, 255), (255, 0, 0), (0, 255, 0)
CORRECT = (232, 232, 232)
LABELS = LabelSet(
    "streets",
    [
        LabelClass(n, (i,), (c,))
        for i, (n, c) in enumerate(zip(("road", "car", "pole"), (ROAD, CAR, POLE), strict=True))
    ],
    ignore=(9,),
)
TRUTH = np.zeros((4, 6), np.uint8)
TRUTH[1:3, 1:3] = 1
MASKS = {"a": TRUTH, "b": TRUTH.T.copy(), "c": TRUTH}


def predictions(*wrong):
    """Masks of which these have this number of wrong pixels of car."""
    preds = {id: mask.copy() for id, mask in MASKS.items()}
    for id, number in wrong:
        places = np.argwhere(preds[id] == 1)[:number]
        preds[id][tuple(places.T)] = 0
    return preds


@pytest.fixture
def runs(tmp_path):
    preds = predictions(("b", 1)), predictions(("b", 1), ("c", 3))
    for name, pred in zip("AB", preds, strict=True):
        write_pairs(tmp_path / name, MASKS, pred)
    return [
        segiou.score_folder(tmp_path / n / "truth", tmp_path / n / "pred", labels=LABELS, name=n)
        for n in "AB"
    ]


def titles(figure):
    return [ax.get_title() for ax in figure.axes if ax.get_title()]


def legend(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


def picture(ax):
    return [
        [tuple(pixel) for pixel in row] for row in np.asarray(ax.images[0].get_array()).tolist()
    ]


def width(path):
    with Image.open(path) as image:
        return image.size[0]


def test_a_row_has_truth_predictions_and_errors(runs):
    figure = plots.panel(runs, ["c", "a"])
    assert pyplot.gcf() is figure
    assert titles(figure) == ["truth", "A", "B", "errors of A", "errors of B"]
    assert len(figure.axes) == 10
    truth, a, b, errors_a, errors_b = map(picture, figure.axes[:5])
    assert truth == a
    assert truth[1] == [ROAD, CAR, CAR, ROAD, ROAD, ROAD]
    assert b[1:3] == [[ROAD] * 6, [ROAD, ROAD, CAR, ROAD, ROAD, ROAD]]
    assert errors_a == [[CORRECT] * 6] * 4
    assert errors_b[1] == [CORRECT, ROAD, ROAD, CORRECT, CORRECT, CORRECT]
    assert legend(figure) == ["road", "car", "correct"], "pole does not occur"
    assert titles(plots.panel(runs[0], ["a"])) == ["truth", "prediction", "errors"]
    assert titles(plots.panel(runs[0], ["a"], errors=False, names=["net"])) == ["truth", "net"]


def test_the_worst_images_of_all_models(runs):
    def rows(*args, **options):
        figure = plots.panel(*args, errors=False, **options)
        shapes = [ax.images[0].get_array().shape[:2] for ax in figure.axes]
        return shapes[:: len(titles(figure))]

    # Wrong pixels of cars: b 1 + 1, c 0 + 3.
    assert rows(runs, 2) == [(4, 6), (6, 4)]
    assert rows(runs, of="car") == [(4, 6), (6, 4)]
    assert rows(runs[0], of="car:road") == [(6, 4)]
    with pytest.raises(ValueError, match="such errors do not occur"):
        plots.panel(runs, of="pole")


def test_errors_of_a_class_have_three_colours(runs):
    figure = plots.panel(runs[1], ["c"], of="car")
    shown = picture(figure.axes[2])
    assert shown[1][:3] == [CORRECT, (109, 157, 224), (109, 157, 224)]
    assert shown[2][1:3] == [(109, 157, 224), (42, 165, 139)]
    outcomes = ["true positive", "false negative", "false positive"]
    assert legend(figure) == ["road", "car", *outcomes, "other"]


def test_photos_are_the_first_column(runs, tmp_path):
    photos = tmp_path / "photos"
    photos.mkdir()
    Image.new("RGB", (6, 4), (10, 20, 30)).save(photos / "c.png")
    figure = plots.panel(runs[1], ["c", "a"], images=photos)
    assert titles(figure) == ["image", "truth", "prediction", "errors"]
    assert picture(figure.axes[0])[0][0] == (10, 20, 30)
    grey = 128 + round(0.299 * 10 + 0.587 * 20 + 0.114 * 30) // 2
    assert picture(figure.axes[3])[0][0] == (grey,) * 3
    assert [text.get_text() for text in figure.axes[4].texts] == ["no photo"]
    (tmp_path / "none").mkdir()
    with pytest.warns(UserWarning, match="Found photos for 0 of 1 images"):
        assert "image" not in titles(plots.panel(runs[1], ["c"], images=tmp_path / "none"))


@pytest.mark.parametrize(("pictures", "inches"), [(1, 3.3), (2, 7), (6, 7)])
def test_everything_is_in_the_figure(runs, pictures, inches):
    names = [f"a model with a name, {i}" for i in range(pictures)]
    figure = plots.panel([runs[0]] * pictures, ["a", "b"], names=names, title="Some streets")
    assert figure.get_figwidth() == inches
    figure.draw_without_rendering()
    box = figure.get_tightbbox()
    assert box.x0 >= 0
    assert box.y0 >= 0
    assert box.x1 <= inches + 1e-9
    assert box.y1 <= figure.get_figheight()
    texts = [ax.title.get_window_extent() for ax in figure.axes if ax.get_title()]
    assert not any(one.overlaps(other) for one, other in itertools.pairwise(texts))
    sizes = {
        (round(ax.bbox.width / ax.bbox.height, 6), ax.images[0].get_array().shape[:2])
        for ax in figure.axes
    }
    assert sizes == {(1.5, (4, 6)), (round(4 / 6, 6), (6, 4))}


def test_planes_of_volumes_have_their_proportions(tmp_path):
    nibabel = pytest.importorskip("nibabel")
    truth = np.zeros((4, 6, 3), np.uint8)
    pred = truth.copy()
    pred[1:3, 2, 1] = 1
    for side, values in (("truth", truth), ("pred", pred)):
        (tmp_path / side).mkdir()
        volume = nibabel.Nifti1Image(values, np.diag([1.0, 2.0, 5.0, 1]))
        volume.to_filename(tmp_path / side / "case.nii.gz")
    run = segiou.score_folder(tmp_path / "truth", tmp_path / "pred", labels=["background", "car"])
    figure = plots.panel(run)
    box = figure.axes[0].bbox
    assert box.height / box.width == pytest.approx(6 * 2 / 4)
    shown = np.asarray(figure.axes[2].images[0].get_array()).reshape(-1, 3)
    assert (shown == (248, 180, 106)).all(1).sum() == 2, "the plane with the false positives"


@pytest.mark.parametrize("affine", [(1, 1, 1), (-1, -1, 1), (1, -1, -1)])
@pytest.mark.parametrize("name", ["case.nii.gz", "case_0000.nii.gz"])
def test_scans_of_volumes_are_the_plane_of_the_masks(tmp_path, affine, name):
    nibabel = pytest.importorskip("nibabel", reason="volumes are NIfTI files")
    truth = np.zeros((8, 10, 6), np.uint8)
    truth[2:6, 2:7, 1:5] = 1
    pred = truth.copy()
    pred[2:6, 2:7, 3] = 0
    # Bright where the masks of plane 3 have the structure, so only this plane and side fits.
    scan = np.where((truth == 1) & (np.arange(6) == 3), 900.5, -1000.25).astype(np.float32)
    scan[0, 0, 3] = 400
    for folder, values in (("truth", truth), ("pred", pred), ("scans", scan)):
        (tmp_path / folder).mkdir()
        image = nibabel.Nifti1Image(values, np.diag([*affine, 1]))
        nibabel.save(image, tmp_path / folder / (name if folder == "scans" else "case.nii.gz"))
    if "_" in name:  # a second channel
        nibabel.save(image, tmp_path / "scans" / "case_0001.nii.gz")
    run = segiou.score_folder(tmp_path / "truth", tmp_path / "pred", labels=2)
    figure = plots.panel(run, ["case"], images=tmp_path / "scans")
    assert titles(figure) == ["image", "truth", "prediction", "errors"]
    photo, mask = (np.asarray(ax.images[0].get_array()) for ax in figure.axes[:2])
    background = mask[-1, -1]
    inside = (mask != background).any(-1)
    assert (photo[inside] == 255).all() and inside.sum() == 20
    assert (photo[~inside] == 0).sum() == 3 * (80 - 20 - 1)
    files = save_errors(tmp_path / "errors", run, images=tmp_path / "scans")
    assert len(files) == 4
    nibabel.save(nibabel.Nifti1Image(scan[:5], np.eye(4)), tmp_path / "scans" / name)
    with pytest.raises(ValueError, match=r"case.*has shape \(6, 10, 5\), but its masks"):
        plots.panel(run, ["case"], images=tmp_path / "scans")


def test_what_cannot_be_drawn_is_refused(runs):
    with pytest.raises(ValueError, match="unknown image 'z'"):
        plots.panel(runs, ["z"])
    with pytest.raises(ValueError, match="unknown class 'bus'"):
        plots.panel(runs, of="bus")
    with pytest.raises(ValueError, match="scored from arrays"):
        plots.panel(segiou.score([[[0, 1]]], [[[1, 1]]], labels=2))
    with pytest.raises(ValueError, match="different classes"):
        plots.panel([runs[0], segiou.score([[[0, 1]]], [[[1, 1]]], labels=2)], ["a"])
    with pytest.raises(ValueError, match="runs is empty"):
        plots.panel([])
    with pytest.raises(ValueError, match="ids is empty"):
        plots.panel(runs, [])
    with pytest.raises(ValueError, match="width"):
        plots.panel(runs, width=0)
    for wrong in ({"runs": 3}, {"runs": [3]}, {"ids": [1]}, {"of": 1}, {"images": 3}):
        with pytest.raises(TypeError, match=f"^{next(iter(wrong))} must be "):
            plots.panel(**({"runs": runs} | wrong))
    assert pyplot.get_fignums() == []


@pytest.fixture
def files(runs, tmp_path):
    paths = [tmp_path / f"{run.name}.sqlite" for run in runs]
    for run, path in zip(runs, paths, strict=True):
        run.save(path)
    return [str(path) for path in paths]


@pytest.fixture
def drawn(monkeypatch):
    """The titles and shapes of figures as they are saved."""
    kept = []
    save = Figure.savefig

    def saved(figure, *args, **options):
        kept.append((titles(figure), [ax.images[0].get_array().shape[0] for ax in figure.axes]))
        return save(figure, *args, **options)

    monkeypatch.setattr(Figure, "savefig", saved)
    return kept


def test_the_commands_write_one_figure(files, tmp_path, drawn, capsys):
    pdf, png, svg = (str(tmp_path / f"panel.{end}") for end in ("pdf", "png", "svg"))
    assert main(["compare", *files, "--panel", pdf, "--ids", "b,a", "--names", "x,y"]) == 0
    assert main(["compare", *files, "--panel", png, "--errors-of", "car", "--table"]) == 0
    assert main(["report", files[1], "--panel", svg, "--worst", "1"]) == 0
    assert f"wrote {svg}" in capsys.readouterr().err
    assert [drawing[0] for drawing in drawn] == [
        ["truth", "x", "y", "errors of x", "errors of y"],
        ["truth", "A", "B", "errors of A", "errors of B"],
        ["truth", "prediction", "errors"],
    ]
    assert [drawing[1] for drawing in drawn] == [[6] * 5 + [4] * 5, [4] * 5 + [6] * 5, [4] * 3]
    assert (tmp_path / "panel.pdf").read_bytes().startswith(b"%PDF")
    assert width(png) == 2100  # a page at 300 points per inch
    assert ">prediction</text>" in (tmp_path / "panel.svg").read_text()
    (tmp_path / "ids.txt").write_text("b\n")
    options = ["--panel", png, "--ids", str(tmp_path / "ids.txt"), "--panel-width", "3.3"]
    assert main(["report", files[0], *options]) == 0
    assert width(png) == 990
    assert pyplot.get_fignums() == []


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--panel", "x.jpg"], "x.jpg: unknown extension; use .pdf, .png or .svg"),
        (["--ids", "a"], "--ids has no effect without --panel"),
        (["--errors-of", "car"], "--errors-of has no effect without --panel"),
        (["--panel-width", "3"], "--panel-width has no effect without --panel"),
        (["--panel", "x.png", "--panel-width", "0"], "from 1 to 100 inches, got '0'"),
        (["--panel", "x.png", "--ids", "a,z"], "unknown image 'z'"),
        (["--images", "."], "--images has no effect without --html"),
    ],
)
def test_options_of_a_panel_are_checked(files, options, problem, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    try:
        code = main(["compare", *files, *options])
    except SystemExit as stopped:
        code = stopped.code
    assert code == 2
    assert problem in " ".join(capsys.readouterr().err.split())
