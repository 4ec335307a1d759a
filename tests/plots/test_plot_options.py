"""Options of plots, styles of the user, and threads."""

import threading
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO

import numpy as np
import pytest

import segiou
from segiou import plots
from segiou.plots.style import no_pyplot

pytest.importorskip("matplotlib")

import matplotlib
from matplotlib import pyplot
from matplotlib.figure import Figure

TRUTH = np.random.default_rng(0).choice(3, (8, 8, 8), p=[0.7, 0.25, 0.05])
NAMES = ["road", "car", "pole"]


def scored(rate, **options):
    rng = np.random.default_rng(1)
    pred = np.where(rng.random(TRUTH.shape) < rate, rng.integers(0, 3, TRUTH.shape), TRUTH)
    return segiou.score(TRUTH, pred, labels=NAMES, **options)


@pytest.fixture(scope="module")
def run():
    return scored(0.3)


@pytest.fixture(scope="module")
def comparison(run):
    return segiou.compare(run, scored(0.1), names=("old", "new"), resamples=50, permutations=50)


def histogram():
    counts = segiou.ScoreHistogram(labels=NAMES)
    scores = np.eye(3)[TRUTH] * 0.6 + 0.1
    return counts.update(TRUTH, np.moveaxis(scores / scores.sum(-1, keepdims=True), -1, 1))


LIMITED = ("class_bars", "accuracy_vs_iou", "class_boxes", "comparison_forest", "model_bars")


@pytest.mark.parametrize("kind", [*LIMITED, "pr_curve"])
@pytest.mark.parametrize(
    ("limit", "error", "text"),
    [
        (0, ValueError, "limit must be at least 1, got 0"),
        (-1, ValueError, "limit must be at least 1, got -1"),
        (2.5, TypeError, "limit must be an integer, not float"),
        (True, TypeError, "limit must be an integer, not bool"),
    ],
)
def test_limits_are_positive_integers(run, comparison, kind, limit, error, text):
    sources = {"comparison_forest": comparison, "model_bars": comparison, "pr_curve": histogram()}
    with pytest.raises(error, match=text):
        getattr(plots, kind)(sources.get(kind, run), limit=limit)
    assert not pyplot.get_fignums()


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"figsize": (0, 0)}, ValueError, "figsize must be at least 0.1, got 0"),
        ({"figsize": (3,)}, ValueError, r"figsize must be \(width, height\) in inches, got \(3,\)"),
        ({"figsize": 3}, TypeError, r"figsize must be \(width, height\) in inches, not int"),
        ({"figsize": "big"}, TypeError, "figsize must be .* not str"),
        ({"ax": np.array([None])}, TypeError, r"ax must be axes .* such as axes\[0\], not ndarray"),
        ({"ax": 3}, TypeError, "ax must be axes of matplotlib"),
        ({"color": "rde"}, ValueError, "color: expected a colour of matplotlib, .* got 'rde'"),
        ({"color": ["red", "blue"]}, ValueError, "color: expected a colour of matplotlib"),
        ({"metric": None}, TypeError, "metric must be the name of a score, not NoneType"),
        ({"metric": 3}, TypeError, "metric must be the name of a score, not int"),
        ({"intervals": {"road": 1}}, TypeError, "intervals must be a result of run.intervals"),
    ],
)
def test_wrong_options_are_named(run, options, error, text):
    with pytest.raises(error, match=text):
        plots.class_bars(run, **options)


@pytest.mark.parametrize("kind", ["confusion_matrix", "model_bars", "pr_curve", "roc_curve"])
def test_colour_maps_are_checked(run, comparison, kind):
    source = {"confusion_matrix": run, "model_bars": comparison}.get(kind) or histogram()
    draw = getattr(plots, kind)
    with pytest.raises(ValueError, match="unknown cmap 'virids'; did you mean viridis"):
        draw(source, cmap="virids")
    with pytest.raises(TypeError, match=r"cmap must be the name of a colour map.*, not int"):
        draw(source, cmap=3)
    assert not pyplot.get_fignums()
    for cmap in ("magma", matplotlib.colormaps["magma"]):
        draw(source, cmap=cmap)
    pyplot.close("all")


@pytest.mark.parametrize("projection", ["polar", "3d", "hammer"])
def test_axes_are_straight_and_flat(run, projection):
    ax = Figure().add_subplot(projection=projection)
    for kind in ("class_bars", "confusion_matrix"):
        with pytest.raises(ValueError, match=f"axes x and y, got projection {projection!r}"):
            run.plot(kind, ax=ax)
    assert not (ax.patches or ax.images)


@pytest.mark.parametrize("name", [0, ["road"], np.array(["road", "car"])])
def test_a_class_is_a_name(run, name):
    with pytest.raises(TypeError, match="class_name must be the name of a class"):
        plots.prevalence_curve(run, name)
    with pytest.raises(TypeError, match="class_name must be the name of a class"):
        plots.reliability(histogram(), name)


def test_pairs_and_names_are_checked(comparison):
    assert plots.comparison_forest(comparison, pair=-1).get_xlabel().endswith("new better →")
    few = plots.comparison_forest(comparison, limit=1).get_xlabel()
    assert few.endswith("new better →\n(1 most different of 3 classes)")
    with pytest.raises(ValueError, match=r"choose from 0 \(new vs old\), got 1"):
        plots.comparison_forest(comparison, pair=1)
    with pytest.raises(TypeError, match="pair must be an integer, not str"):
        plots.comparison_forest(comparison, pair="new")
    with pytest.raises(TypeError, match="names must be a sequence of names"):
        plots.model_bars(comparison, names=[1, 2])


def test_normalize_and_bins_are_checked(run):
    with pytest.raises(ValueError, match="normalize must be 'truth', 'pred' or None, got"):
        plots.confusion_matrix(run, normalize=["truth"])
    with pytest.raises(ValueError, match="bins must be at most 1000, got 1000000000"):
        plots.image_distribution(run, bins=10**9)
    with pytest.raises(TypeError, match="bins must be an integer, not str"):
        plots.image_distribution(run, bins="auto")
    with pytest.raises(ValueError, match="dpi must be at least 20, got 1"):
        plots.save_plots(run, "never", dpi=1)


def test_a_run_of_one_class_is_saved(tmp_path):
    run = segiou.score([np.zeros((4, 4), int)] * 2, [np.eye(4, dtype=int)] * 2, labels=["a", "b"])
    files = plots.save_plots(run, tmp_path)
    assert "class_bars" in {file.stem for file in files}
    assert "prevalence_curve" not in {file.stem for file in files}
    with pytest.raises(ValueError, match="class 'a' is the only one in the truth"):
        plots.prevalence_curve(run)
    with pytest.raises(ValueError, match="class 'b' is not in the truth"):
        plots.prevalence_curve(run, "b")


def test_the_curve_of_a_frequent_class_reaches_its_share(run):
    axes = plots.prevalence_curve(run, "road")
    share = run.report().classes[0].share
    shares, ious = axes.lines[1].get_data()
    assert share > 0.5
    assert shares[-1] == pytest.approx(share)
    assert ious[-1] == pytest.approx(run.report().classes[0].iou)


@pytest.mark.parametrize("cmap", ["viridis", "Blues", "Greys", "magma_r", "RdBu"])
def test_numbers_of_a_matrix_stand_out_on_any_colour_map(run, cmap):
    axes = plots.confusion_matrix(run, cmap=cmap)
    cells = axes.images[0]
    for text in axes.texts:
        p, t = text.get_position()
        light = np.array(cells.to_rgba(cells.get_array()[t, p])[:3])
        light = np.where(light <= 0.04045, light / 12.92, ((light + 0.055) / 1.055) ** 2.4)
        cell = light @ [0.2126, 0.7152, 0.0722]
        contrast = 1.05 / (cell + 0.05) if text.get_color() == "white" else (cell + 0.05) / 0.05
        assert contrast >= 4.5  # WCAG AA


def test_counts_of_a_volume_are_voxels(tmp_path):
    nibabel = pytest.importorskip("nibabel")
    for side in ("truth", "pred"):
        (tmp_path / side).mkdir()
        volume = nibabel.Nifti1Image(np.eye(4, dtype=np.uint8)[..., None].repeat(2, 2), np.eye(4))
        nibabel.save(volume, tmp_path / side / "case.nii.gz")
    run = segiou.score_folder(tmp_path / "truth", tmp_path / "pred", labels=["a", "b"])
    figure = plots.confusion_matrix(run, normalize=None).figure
    assert figure.axes[1].get_ylabel() == "voxels"


def legend_of(axes):
    return [text.get_text().partition(" (")[0] for text in axes.get_legend().get_texts()]


def test_all_named_classes_have_a_curve():
    names = [f"c{k}" for k in range(9)]
    truth = np.arange(90).reshape(9, 10) % 9
    counts = segiou.ScoreHistogram(labels=names)
    counts.update(truth[None], np.moveaxis(np.eye(9)[truth] * 0.5 + 0.5 / 9, -1, 0)[None])
    for draw in (plots.pr_curve, plots.roc_curve):
        axes = draw(counts, names[:8])
        assert legend_of(axes) == names[:8]
        assert "of 9" not in axes.get_xlabel()
        assert legend_of(draw(counts, ["c2", "c2"])) == ["c2"]
        assert draw(counts).get_xlabel().endswith("(dot: best IoU)\n(6 lowest of 9 classes)")
        with pytest.raises(ValueError, match="class_names is empty"):
            draw(counts, [])


@pytest.fixture(scope="module")
def volumes():
    truth = np.zeros((4, 6, 6, 6), int)
    for k, volume in enumerate(truth):
        volume[1 : 3 + k % 3, 1:4, 1:4] = 1
        volume[5, 5, : 1 + k] = 2
    pred = truth.copy()
    pred[:, 5, 5, 0] = 0
    names = ["background", "liver", "tumour"]
    options = {"surfaces": True, "spacing": (1, 1, 1), "measures": ["volume"]}
    return segiou.score([*truth], [*pred], labels=names, **options)


def test_equal_volumes_are_on_one_line(volumes):
    axes = plots.bland_altman(volumes, "liver")
    assert axes.get_ylim() == (-1, 1)
    assert len(axes.texts) == 1
    assert len(plots.bland_altman(volumes, "tumour").texts) in (1, 3)
    with pytest.raises(ValueError, match="unknown structure 'spleen'; choose from liver, tumour"):
        plots.bland_altman(volumes, "spleen")
    with pytest.raises(TypeError, match="structure must be the name of a structure"):
        plots.bland_altman(volumes, 1)


def test_distances_have_the_titles_of_tables(volumes):
    assert plots.distance_boxes(volumes).get_xlabel() == "HD95, units"
    assert plots.distance_boxes(volumes, measure="dice").get_xlabel() == "Dice"
    with pytest.raises(ValueError, match="'nope' was not measured; choose from iou, dice, haus"):
        plots.distance_boxes(volumes, measure="nope")
    with pytest.raises(TypeError, match="measure must be the name of a surface measure"):
        plots.distance_boxes(volumes, measure=3)


@pytest.mark.parametrize("theme", ["dark_background", "ggplot", "seaborn-v0_8-dark"])
def test_themes_of_the_user_change_fonts_only(run, theme):
    def shown():
        figures = (
            plots.class_bars(run),
            plots.confusion_matrix(run),
            plots.image_distribution(run),
        )
        files = [BytesIO() for _ in figures]
        for axes, file in zip(figures, files, strict=True):
            axes.figure.savefig(file, format="png", dpi=50)
        return [file.getvalue() for file in files]

    plain = shown()
    fonts = {"font.family": ["DejaVu Sans"]}
    with pyplot.style.context([theme, fonts, {"axes.grid": True, "text.usetex": True}]):
        before = dict(matplotlib.rcParams)
        assert shown() == plain
        assert dict(matplotlib.rcParams) == before
    with pyplot.rc_context({"font.family": ["DejaVu Serif"]}):
        text = plots.class_bars(run).get_yticklabels()[0]
        assert text.get_fontfamily() == ["DejaVu Serif"]


#: Kinds with lines, texts, colour bars and legends of their own.
IN_AXES = {
    "class_bars": lambda run, ax: plots.class_bars(run, ax=ax, intervals=run.intervals()),
    "confusion_matrix": lambda run, ax: plots.confusion_matrix(run, ax=ax),
    "accuracy_vs_iou": lambda run, ax: plots.accuracy_vs_iou(run, ax=ax),
    "image_distribution": lambda run, ax: plots.image_distribution(run, ax=ax, title="images"),
    "class_boxes": lambda run, ax: plots.class_boxes(run, ax=ax),
    "forest": lambda run, ax: plots.comparison_forest(segiou.compare(run, scored(0.1)), ax=ax),
    "thresholds": lambda run, ax: plots.thresholds(histogram(), class_name="car", ax=ax),
    "overlay": lambda run, ax: plots.overlay(TRUTH[0], TRUTH[1], 1, ax=ax),
}


@pytest.mark.gate
@pytest.mark.parametrize("background", ["#000000", "#ffffff"])
@pytest.mark.parametrize("kind", IN_AXES)
def test_axes_of_another_theme_keep_everything_visible(run, kind, background):
    theme = "dark_background" if background == "#000000" else "default"
    other = {"#000000": "default", "#ffffff": "dark_background"}[background]
    with pyplot.style.context(theme):
        figure, axes = pyplot.subplots()
    with pyplot.style.context(other):
        before = dict(matplotlib.rcParams)
        IN_AXES[kind](run, axes)
        assert dict(matplotlib.rcParams) == before
    figure.draw_without_rendering()
    legend = axes.get_legend()
    artists = figure.findobj(lambda artist: artist.get_visible())
    colors = {
        artist: artist.get_color()
        for artist in artists
        if isinstance(artist, matplotlib.text.Text | matplotlib.lines.Line2D)
        # Numbers of cells contrast with their colours.
        and not (kind == "confusion_matrix" and artist in axes.texts)
    }
    assert colors
    if legend is not None and legend.get_frame_on():
        colors[legend] = legend.get_frame().get_facecolor()
        assert matplotlib.colors.to_hex(colors.pop(legend)) == background
    far = {a: abs(brightness(c) - brightness(background)) for a, c in colors.items()}
    is_text = {artist: isinstance(artist, matplotlib.text.Text) for artist in far}
    # Grids and our own colours are darker or lighter than texts.
    assert [
        artist for artist, size in far.items() if size < (0.7 if is_text[artist] else 0.1)
    ] == []
    pyplot.close(figure)


def brightness(color):
    return float(np.dot(matplotlib.colors.to_rgb(color), [0.3, 0.6, 0.1]))


def test_threads_leave_the_settings_of_matplotlib(run):
    before = dict(matplotlib.rcParams)
    start = threading.Barrier(4)

    def draw():
        start.wait()
        with no_pyplot():
            for _ in range(4):
                plots.class_bars(run).figure.savefig(BytesIO(), format="svg")

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(draw) for _ in range(4)]:
            done.result()
    assert dict(matplotlib.rcParams) == before


SQUARE = np.array([[0, 1, 1], [2, 0, 1]])


def test_an_overlay_ignores_one_value_or_several():
    for ignore in (2, [2], {2}, np.array([2])):
        legend = plots.overlay(SQUARE, SQUARE * 0 + 2, 2, ignore=ignore).get_legend()
        texts = [text.get_text() for text in legend.get_texts()]
        assert texts == ["TP 0 px", "FN 0 px", "FP 5 px"]
    for wrong in (None, "2", [2.5]):
        with pytest.raises(TypeError, match="ignore must be an integer"):
            plots.overlay(SQUARE, SQUARE, 1, ignore=wrong)


@pytest.mark.parametrize(
    ("image", "grey"),
    [
        (np.full((2, 3, 1), 51, np.uint8), 0.2),
        (np.full((2, 3), 13107, np.uint16), 0.2),
        (np.full((2, 3, 3), 51, np.int64), 0.2),
        (np.full((2, 3, 4), 0.2, np.float32), 0.2),
        (np.ones((2, 3), bool), 1),
    ],
)
def test_photos_of_an_overlay_are_scaled_by_their_type(image, grey):
    shown = plots.overlay(SQUARE, SQUARE, 1, image=image).images[0].get_array()
    np.testing.assert_allclose(shown, 0.25 + 0.75 * grey, atol=1e-6)


@pytest.mark.parametrize(
    ("image", "text"),
    [
        (np.zeros((2, 3, 2)), r"shape \(H, W\) or \(H, W, 1, 3 or 4\), got \(2, 3, 2\)"),
        ("photo.png", r"shape \(H, W\) .* got \(\)"),
        (np.full((2, 3), 200.0), r"from 0 to 1 \(float64\), got 200 to 200; scale it"),
        (np.full((2, 3), np.nan), r"from 0 to 1 \(float64\), got nan"),
        (np.full((2, 3), -1), r"from 0 to 255 \(int64\), got -1 to -1"),
    ],
)
def test_wrong_photos_of_an_overlay_are_named(image, text):
    with pytest.raises(ValueError, match=text):
        plots.overlay(SQUARE, SQUARE, 1, image=image)


def test_an_overlay_without_pixels_is_refused():
    with pytest.raises(ValueError, match="no pixels"):
        plots.overlay(SQUARE[:0], SQUARE[:0], 1)


def test_names_with_slashes_are_whole():
    runs = scored(0.1), scored(0.4)
    names = "w/o CRF", "w/ CRF"
    found = segiou.compare(*runs, names=names, resamples=50, permutations=50)
    assert "← w/o CRF better    w/ CRF better →" in plots.comparison_forest(found).get_xlabel()
    for shown in (found._repr_html_(), found.to_html(), str(found)):
        assert "w/o CRF scores higher than w/ CRF: mean IoU" in " ".join(shown.split())


def test_dots_of_many_models_are_within_their_ranks(run):
    ranking = segiou.rank([run] + [scored(0.3 + 0.02 * k) for k in range(11)], draws=20)
    axes = plots.rank_stability(ranking)
    axes.figure.draw_without_rendering()
    room = axes.get_window_extent().width / axes.figure.dpi * 72 / 12
    sizes = [part.get_sizes() for part in axes.collections if hasattr(part, "get_sizes")]
    assert np.sqrt(np.concatenate(sizes).max()) < room
