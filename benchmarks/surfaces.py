"""Surface distances of volumes: segiou compared with other tools and the exact answer.

``python -m benchmarks.surfaces [mesh spine knee shifted noise shell]`` checks that all agree, and
prints the factors quoted in the documentation.
"""

import ctypes
import sys
import time
import warnings
from functools import partial, wraps
from pathlib import Path

import numpy as np

from segiou.measures.surfaces import surface_scores

VOLUMES = Path(__file__).resolve().parents[2] / "shared" / "data" / "volumes"
SHIFT = 60


def read_pair(truth, pred):
    import nibabel

    image = nibabel.load(VOLUMES / truth)
    values = [np.asarray(nibabel.load(VOLUMES / name).dataobj) for name in (truth, pred)]
    return (*values, tuple(map(float, image.header.get_zooms())))


def mesh():
    """Concentric balls of radius 25 and 40."""
    return read_pair(*(f"mesh/example_3d_{side}_mask.nii.gz" for side in ("ref", "pred")))


def spine():
    """Fourteen labels, flat voxels."""
    return read_pair("spine/ref.nii.gz", "spine/pred.nii.gz")


def knee(shift=0):
    """A synthetic knee: two bones with two thin layers between them and wavy outlines."""
    shape = 384, 384, 160

    def made(offset, waves):
        x, y, z = (a.astype(np.float32) for a in np.ogrid[tuple(map(slice, shape))])
        x, y, z = x - offset[0], y - offset[1], z - offset[2]
        wavy = waves * (np.sin(x / 9) + np.sin(y / 7) + np.sin(z / 5))
        labels = np.zeros(shape, np.uint8, order="F")
        depths = []
        for at, radius in ((120, (110, 80, 60)), (300, (75, 80, 60))):
            offsets = (x - at) / radius[0], (y - 190) / radius[1], (z - 80) / radius[2]
            depths.append((np.sqrt(sum(o * o for o in offsets)) - 1) * radius[1] + wavy)
        labels[(depths[0] < 6) & (x > 150)] = 2
        labels[(depths[1] < 5) & (x < 290)] = 4
        labels[depths[0] < 0] = 1
        labels[depths[1] < 0] = 3
        return labels

    return made((0, 0, 0), 0.0), made((1.3, shift - 1.7, 0.6), 0.7), (0.36, 0.36, 0.7)


def shifted():
    """The same with one mask moved by 60 voxels."""
    return knee(SHIFT)


def noise():
    """Ten labels of pure noise."""
    pair = np.random.default_rng(0).integers(0, 11, (2, 128, 128, 128)).astype(np.uint8)
    return *pair, (1.0, 1.0, 1.0)


def shell():
    """A noise ball in a shell, both labels 1: the worst case of a cell search."""
    radius = np.sqrt(sum((a - 50.0) ** 2 for a in np.ogrid[:101, :101, :101]))
    random = np.random.default_rng(0).random(radius.shape) < 0.5
    return (radius > 47).astype(np.uint8), ((radius < 30) & random).astype(np.uint8), (1.0,) * 3


DATA = {f.__name__: f for f in (mesh, spine, knee, shifted, noise, shell)}


def cropped(truth, pred):
    """Both masks of a label in their bounding box plus one voxel."""
    either = truth | pred
    box = []
    for axis in range(3):
        found = np.flatnonzero(either.any(tuple({0, 1, 2} - {axis})))
        box.append(slice(max(0, found[0] - 1), found[-1] + 2))
    return tuple(np.pad(mask[tuple(box)], 1) for mask in (truth, pred))


def label_by_label(measure):
    """Apply a tool for two masks to each label."""

    @wraps(measure)
    def measure_all(truth, pred, spacing):
        labels = sorted({*np.unique(truth), *np.unique(pred)} - {0})
        return {int(c): measure(*cropped(truth == c, pred == c), spacing) for c in labels}

    return measure_all


@label_by_label
def medpy(truth, pred, spacing):
    from medpy.metric import binary

    functions = binary.hd, binary.hd95, binary.assd
    return [f(pred, truth, voxelspacing=spacing) for f in functions]


@label_by_label
def monai(truth, pred, spacing):
    import torch
    from monai.metrics import compute_hausdorff_distance

    given = [torch.from_numpy(side)[None, None] for side in (pred, truth)]
    options = {"include_background": True, "percentile": 95, "spacing": list(spacing)}
    return [float(compute_hausdorff_distance(*given, **options))]


@label_by_label
def surface_distance(truth, pred, spacing):
    import surface_distance as peer

    found = peer.compute_surface_distances(truth, pred, spacing)
    hausdorff = [peer.compute_robust_hausdorff(found, p) for p in (100, 95)]
    average = sum(peer.compute_average_surface_distance(found)) / 2
    return [*hausdorff, average, peer.compute_surface_dice_at_tolerance(found, 1.0)]


@label_by_label
def scipy_trees(truth, pred, spacing):
    """The 95th percentile of all distances between border voxels, with k-d trees."""
    from scipy.ndimage import binary_erosion
    from scipy.spatial import cKDTree

    points = [np.argwhere(m & ~binary_erosion(m)) * spacing for m in (truth, pred)]
    there = cKDTree(points[1]).query(points[0])[0]
    back = cKDTree(points[0]).query(points[1])[0]
    return [np.percentile(np.concatenate([there, back]), 95)]


@label_by_label
def scipy_transforms(truth, pred, spacing):
    """Only two distance transforms of existing masks."""
    from scipy.ndimage import distance_transform_edt

    for mask in (truth, pred):
        distance_transform_edt(~mask, sampling=spacing)
    return []


CONVENTIONS = "medpy", "monai", "surface-distance", "segiou"


def segiou(convention):
    def measure(truth, pred, spacing):
        scores = surface_scores(truth, pred, spacing=spacing, convention=convention)
        return {
            label: [*list(found.values())[:3], found["surface_dice"][1.0]]
            for label, found in scores.items()
        }

    return measure


def picked(values, *places):
    return {label: [row[i] for i in places] for label, row in values.items()}


#: Tool -> segiou's convention, and the metrics that the tool computes.
PEERS = {
    medpy: ("medpy", (0, 1, 2)),
    monai: ("monai", (1,)),
    surface_distance: ("surface-distance", (0, 1, 2, 3)),
    scipy_trees: ("medpy", (1,)),
    scipy_transforms: ("medpy", ()),
}


def check(ours, theirs, places, name):
    """MONAI interpolates in float32."""
    assert list(ours) == list(theirs), name
    for label, row in picked(ours, *places).items():
        np.testing.assert_allclose(row, theirs[label], rtol=2e-5, err_msg=f"{name} {label}")


def seconds(function, rounds):
    """The minimum processor time and the last result; other jobs only add time."""
    times = []
    for _ in range(rounds):
        start = time.process_time()
        found = function()
        times.append(time.process_time() - start)
    return min(times), found


def peak_bytes(function):
    """Growth of this process's memory (Linux)."""

    def status(key):
        lines = Path("/proc/self/status").read_text().splitlines()
        return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(key))

    ctypes.CDLL(None).malloc_trim(0)  # what was freed does not hide what is taken
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    before = status("VmRSS")
    function()
    return status("VmHWM") - before


def main(names):
    import torch

    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    for function in (*PEERS, *map(segiou, CONVENTIONS)):  # imports, and what a process needs once
        function(*(np.ones((3, 3, 3), np.uint8),) * 2, (1.0, 1.0, 1.0))
    for name in names or DATA:
        pair = DATA[name]()
        print(f"{name}: {DATA[name].__doc__} {pair[0].shape}, one thread", flush=True)
        own = {}
        for convention in CONVENTIONS:
            measure = partial(segiou(convention), *pair)
            memory = peak_bytes(measure) / pair[0].size
            own[convention] = seconds(measure, 9)
            taken = own[convention][0] * 1000
            print(f"  segiou {convention:17} {taken:9.1f} ms {memory:6.2f} bytes per voxel")
        for peer, (convention, places) in PEERS.items():
            taken, found = seconds(partial(peer, *pair), 3)
            if places:
                check(own[convention][1], found, places, peer.__name__)
            factor = taken / own[convention][0]
            print(f"  {peer.__name__:24} {taken * 1000:9.0f} ms {factor:7.1f} x", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
