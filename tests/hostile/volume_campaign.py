"""Read mutated volumes, and compare every one that is accepted with what its library reads.

    python tests/hostile/volume_campaign.py [--cases 6000] [--seed 0]

Headers and streams of NIfTI-1 and -2 (packed and not), NRRD and MetaImage. Memory is limited.
The last line is JSON: cases, read, refused, and everything that went wrong.
"""

from __future__ import annotations

import argparse
import gzip
import json
import logging
import os
import random
import re
import resource
import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path

import nibabel
import numpy as np
import SimpleITK as itk

from segiou.masks import MaskError, Volume, open_windowed, read_volume

MEGABYTES = 3000
LABELS = np.random.default_rng(0).integers(0, 7, (9, 8, 7)).astype("i2")
AFFINE = np.array([[0, 0, 2.0, 5], [-0.5, 0, 0, 7], [0, -0.75, 0, -3], [0, 0, 0, 1]])
#: By the code of the unit: nibabel knows no names of those with a damaged unit of time.
#: What may stand in the place of a word of a header.
WORDS = [b"-1", b"0", b"1", b"T", b"nan", b"1e400", b"32768", b"1 1", b"x" * 1200, b""]
MILLIMETRES = {1: 1000.0, 3: 0.001}


def sound_files(folder: Path) -> list[tuple[str, bytes]]:
    """One file of each format, by its ending; of a packed NIfTI what is in it."""
    files = []
    for kind in (nibabel.Nifti1Image, nibabel.Nifti2Image):
        path = folder / f"{kind.__name__}.nii"
        kind(LABELS, AFFINE).to_filename(path)
        files += [(ending, path.read_bytes()) for ending in (".nii", ".nii.gz")]
    image = itk.ReadImage(str(path.with_name("Nifti1Image.nii")))
    for ending in (".nrrd", ".mha"):
        for packed in (False, True):
            path = folder / f"sound{ending}"
            itk.WriteImage(image, str(path), useCompression=packed)
            files.append((ending, path.read_bytes()))
    return files


def mutated(rng: random.Random, data: bytes, head: int) -> bytes:
    """Bytes with one to four of them changed, mostly in the header, or cut, or with more."""
    found = bytearray(data)
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        most = head if rng.random() < 0.8 else len(found)
        at = rng.randrange(max(1, min(most, len(found))))
        how = rng.random()
        if how < 0.75:
            found[at] = rng.randrange(256) if how < 0.6 else found[at] ^ 1 << rng.randrange(8)
        elif how < 0.85:
            del found[max(1, at) :]
        elif how < 0.93:
            found[at:at] = rng.randbytes(rng.randrange(1, 9))
        else:
            del found[at : at + rng.randrange(1, 5)]
        found = found or bytearray(b"x")
    return bytes(found)


def case(rng: random.Random, ending: str, data: bytes) -> bytes:
    """A mutated file; a packed one has mutated content, or a mutated stream."""
    if ending in (".nrrd", ".mha") and rng.random() < 0.5:
        word = rng.choice([*re.finditer(rb"[^\s:=]+", data[:300])])
        return data[: word.start()] + rng.choice(WORDS) + data[word.end() :]
    if ending != ".nii.gz":
        return mutated(rng, data, 540)
    if rng.random() < 0.3:
        return mutated(rng, gzip.compress(data, 1, mtime=0), 1 << 30)
    return gzip.compress(mutated(rng, data, 540), 1, mtime=0)


def of_library(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Values and affine as nibabel or SimpleITK give them."""
    if path.name.endswith((".nii", ".nii.gz")):
        image = nibabel.load(path)
        scale = MILLIMETRES.get(int(image.header["xyzt_units"]) % 8, 1.0)
        return np.asanyarray(image.dataobj), np.diag([scale] * 3 + [1.0]) @ image.affine
    reader = "NrrdImageIO" if path.suffix == ".nrrd" else "MetaImageIO"
    image = itk.ReadImage(str(path), imageIO=reader)
    axes, used = image.GetDimension(), min(image.GetDimension(), 3)
    affine = np.eye(4)
    direction = np.array(image.GetDirection()).reshape(axes, axes)
    affine[:used, :used] = (direction * image.GetSpacing())[:used, :used]
    affine[:used, 3] = image.GetOrigin()[:used]
    return itk.GetArrayFromImage(image).T, np.diag([-1.0, -1.0, 1.0, 1.0]) @ affine


def difference(path: Path, volume: Volume) -> str:
    """What is wrong with a volume that was accepted; empty if nothing is."""
    try:
        values, affine = of_library(path)
    except (nibabel.filebasedimages.ImageFileError, RuntimeError) as error:
        return "" if is_what_was_written(volume) else f"the library refuses it: {error}"
    if not np.array_equal(values.reshape(volume.values.shape), volume.values):
        # Of MetaImage data that cannot be unpacked the library gives what lay in memory.
        return "" if is_what_was_written(volume) else "other values"
    return "" if np.allclose(affine, volume.affine) else "another affine"


def is_what_was_written(volume: Volume) -> bool:
    """Whether the damage left the values alone."""
    return np.array_equal(volume.values, LABELS)


def through_windows(path: Path, volume: Volume | None) -> str:
    """Whether a file gives the same read window by window."""
    try:
        big = open_windowed(path, least=1)
        if big is None:
            return "" if volume is None else "not read by windows"
        with big.values as voxels:
            part = voxels[tuple(slice(0, length) for length in voxels.shape)]
    except MaskError:
        return "" if volume is None else "refused by windows"
    if volume is None:
        return "accepted by windows only"
    return "" if np.array_equal(part, volume.values) else "other values by windows"


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", type=int, default=6000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (MEGABYTES << 20, MEGABYTES << 20))
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    # The libraries write what they think of damaged files where nobody asked.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    rng = random.Random(options.seed)
    outcomes: Counter[str] = Counter()
    wrong: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        files = sound_files(Path(name))
        for number in range(options.cases):
            ending, data = rng.choice(files)
            path = Path(name) / f"case{ending}"
            path.write_bytes(case(rng, ending, data))
            volume = None
            try:
                volume = read_volume(path)
                why = difference(path, volume)
            except MaskError:
                why = ""
            except Exception as error:  # noqa: BLE001 - whatever it is, it is wrong
                why = f"{type(error).__name__}: {error}"
            outcomes["refused" if volume is None else "read"] += 1
            if ending == ".nii":
                why = why or through_windows(path, volume)
            if why:
                wrong.append(f"{number} ({ending}): {why}")
            del volume  # before its file, which it may map, is written again
    # Not ru_maxrss, which begins at what the starting process has.
    status = Path("/proc/self/status").read_text(encoding="ascii")
    peak = int(status.split("VmHWM:")[1].split()[0]) / 1024
    summary = {"cases": options.cases, **outcomes, "wrong": wrong[:40], "num_wrong": len(wrong)}
    print(json.dumps({**summary, "peak_mb": round(peak)}))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
