"""Volumes in the viewer of a page: three planes through the largest error, and sliders."""

import numpy as np
import pytest

import segiou
from segiou.report import write_html

nibabel = pytest.importorskip("nibabel")

#: Voxels to the right, to the front and to the top, 1 x 1 x 4 mm; one error is larger.
SHAPE = (8, 6, 4)


@pytest.fixture(scope="module")
def volume_url(tmp_path_factory):
    folder = tmp_path_factory.mktemp("volumes")
    truth = np.zeros(SHAPE, np.uint8)
    truth[2:6, 1:5, 1:3] = 1
    pred = truth.copy()
    pred[2:4, 1:4, 2] = 0  # six voxels of the upper plane
    pred[5, 1, 1] = 0  # one of the lower
    for name, values in (("truth", truth), ("pred", pred)):
        (folder / name).mkdir()
        image = nibabel.Nifti1Image(values, np.diag([1.0, 1.0, 4.0, 1.0]))
        nibabel.save(image, folder / name / "patient.nii.gz")
    labels = segiou.LabelSet.from_names(["air", "organ"])
    run = segiou.score_folder(folder / "truth", folder / "pred", labels=labels)
    return write_html(folder / "report.html", run.report(), run=run).as_uri()


def differing(page, plane):
    """Pixels of a plane's difference that are not paper: rows and columns."""
    return page.evaluate(
        """(title) => {
            const canvas = [...document.querySelectorAll("#viewer-panels figure")]
                .map((node) => node.querySelector("canvas"))
                .find((node) => node.getAttribute("aria-label").startsWith(title));
            const { width, height } = canvas;
            const { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
            return [...Array(width * height).keys()]
                .filter((i) => data[4 * i] !== 238)
                .map((i) => [Math.floor(i / width), i % width]);
        }""",
        f"{plane}: difference",
    )


def test_planes_go_through_the_largest_error(page, volume_url, until):
    page.goto(f"{volume_url}#t=organ&p=air")
    until(page, "document.querySelectorAll('#viewer-panels canvas').length === 9")
    assert "organ voxels labelled air" in page.locator("#viewer-facts").inner_text()
    # From the top the second plane of four; the front row is above and the right on the left.
    sliders = page.locator("#viewer-slices input")
    places = [int(slider.input_value()) for slider in sliders.all()]
    assert places[0] == 2
    assert differing(page, "axial") == [[y, x] for y in (2, 3, 4) for x in (4, 5)]
    assert differing(page, "coronal") == [[1, 4], [1, 5]]
    assert differing(page, "sagittal") == [[1, 2], [1, 3], [1, 4]]
    planes = page.locator("#viewer-slices")
    assert "2 of 4" in planes.inner_text() and "5 of 8" in planes.inner_text()
    sliders.first.fill("3")
    assert "3 of 4" in planes.inner_text()
    assert differing(page, "axial") == [[4, 2]]
    sliders.first.press("ArrowRight")
    assert differing(page, "axial") == []
    # A voxel is four times as high as it is wide, so four planes are as high as 16 columns.
    ratio = page.evaluate(
        "[1, 0].map((k) => document.querySelectorAll('#viewer-panels canvas')[k])"
        ".map((canvas) => canvas.clientWidth / canvas.clientHeight)"
    )
    assert ratio == pytest.approx([8 / 16, 8 / 6], rel=0.03)


def test_planes_are_flipped_together_and_axe_finds_nothing(
    page, volume_url, until, accessibility_faults
):
    page.goto(volume_url)
    until(page, "document.querySelectorAll('#viewer-panels canvas').length === 9")
    page.locator("#viewer-panels").focus()
    shown = page.locator("#viewer-panels figure:visible figcaption")
    page.keyboard.press("f")
    assert shown.all_inner_texts() == ["axial: truth", "coronal", "sagittal"]
    page.keyboard.press("f")
    assert shown.first.inner_text() == "axial: prediction"
    assert "IoU" in page.locator("#viewer-facts").inner_text()
    assert accessibility_faults(page) == []


@pytest.mark.needs("measures.surfaces")
def test_a_single_slice_has_the_sides_of_a_volume_too(page, tmp_path, until):
    truth = np.zeros((5, 4, 1), np.uint8)
    truth[1:3, 1:3] = 1
    for name, values in (("truth", truth), ("pred", 0 * truth)):
        (tmp_path / name).mkdir()
        nibabel.save(nibabel.Nifti1Image(values, np.diag([1, 2, 1, 1])), tmp_path / name / "a.nii")
    run = segiou.score_folder(tmp_path / "truth", tmp_path / "pred", labels=2, surfaces="medpy")
    page.goto(write_html(tmp_path / "report.html", run.report(), run=run).as_uri())
    until(page, "document.querySelectorAll('#viewer-panels canvas').length === 3")
    shown = page.locator("#viewer-size").inner_text()
    assert shown.startswith("5 × 4 × 1 voxels. ") and "right is on the left" in shown
    assert page.locator("#viewer-text").inner_text() == "Dice and HD95 in mm: class 1 missed"
    # The other planes are a row of voxels, and there is no other axial one to slide to.
    captions = page.locator("#viewer-panels figcaption").all_inner_texts()
    assert captions == ["axial: truth", "axial: prediction", "axial: difference"]
    assert page.locator("#viewer-slices input").count() == 0
    ratio = page.evaluate(
        "(canvas => canvas.clientWidth / canvas.clientHeight)"
        "(document.querySelector('#viewer-panels canvas'))"
    )
    assert ratio == pytest.approx(5 / 8, rel=0.03)


@pytest.mark.parametrize("axes", ["zyx", "xyz"])
def test_arrays_of_volumes_are_shown_in_the_order_of_their_axes(page, tmp_path, until, axes):
    truth = np.zeros((2, 5, 4), np.uint8)
    truth[1, 1:3, 1:3] = 1
    for name, values in (("truth", truth), ("pred", 0 * truth)):
        (tmp_path / name).mkdir()
        plane = values[1:]
        for image, array in (("a", values), ("b", plane)):
            np.save(tmp_path / name / f"{image}.npy", array if axes == "zyx" else array.T)
    how = {"labels": ["air", "organ"], "array_axes": axes}
    run = segiou.score_folder(tmp_path / "truth", tmp_path / "pred", **how)
    url = write_html(tmp_path / "report.html", run.report(), run=run).as_uri()
    for image, planes in (("a", 3), ("b", 1)):
        page.goto(f"{url}#t=organ&p=air&image={image}")
        until(page, f"document.querySelectorAll('#viewer-panels canvas').length === {3 * planes}")
        size = f"4 × 5 × {2 if image == 'a' else 1} voxels"
        until(page, f"document.getElementById('viewer-size').textContent === '{size}'")
        assert differing(page, "axial") == [[1, 1], [1, 2], [2, 1], [2, 2]]
