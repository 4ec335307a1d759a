"""Compiled routines in several threads at once, on the same inputs, each with its own results."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest
from deletable import kind_of_scores
from PIL import Image

from segiou._support.optional import compiled_parts
from segiou.counting import count_channels, count_id_pairs, count_pairs, scores_to_labels
from segiou.masks import LocalFolder, read_mask
from segiou.masks.formats.image_files import Scratch
from segiou.measures.boundary import boundary_counts

THREADS, ROUNDS = 8, 5
RNG = np.random.default_rng(0)
TRUTH = np.kron(RNG.integers(0, 5, (12, 16)), np.ones((8, 8), int)).astype(np.uint8)
PRED = np.roll(TRUTH, 3, axis=1).astype(np.int32)
SCORES = RNG.random((5, *TRUTH.shape)).astype(np.float32)
NOISE = SCORES > 0.5


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("masks") / "mask.png"
    Image.fromarray(TRUTH).save(path)
    os.utime(path, (1e9, 1e9))  # a file that just changed is read with more care
    return str(path)


WORK = {
    "pairs": lambda path: count_pairs(TRUTH, PRED, 5).tolist(),
    "pairs without runs": lambda path: count_pairs(NOISE[0], NOISE[1], 2).tolist(),
    "many classes": lambda path: count_pairs(PRED * 100, PRED, 500)[400].tolist(),
    "id pairs": lambda path: repr(count_id_pairs(PRED, TRUTH)),
    "channels": lambda path: repr(count_channels(NOISE, NOISE[::-1], axis=0)),
    "scores": lambda path: scores_to_labels(SCORES, argmax=0).tolist(),
    "boundaries": lambda path: boundary_counts(TRUTH, PRED, 5).table.tolist(),
    "surfaces": lambda path: str(kind_of_scores("surfaces").surface_scores(TRUTH, PRED)),
    "png": lambda path: read_mask(path).tolist(),
    "small files": lambda path: repr(LocalFolder("").read_small(path, Scratch())),
}


@pytest.mark.few(4)
@pytest.mark.parametrize("name", WORK)
def test_every_thread_gets_what_one_gets(name, path):
    work, together = WORK[name], Barrier(THREADS)
    expected = work(path)

    def repeat(_):
        together.wait()
        return [work(path) for _ in range(ROUNDS)]

    with ThreadPoolExecutor(THREADS) as pool:
        for found in pool.map(repeat, range(THREADS)):
            assert found == [expected] * ROUNDS


IMPORTS_OF_UPDATES = """
import sys
import numpy as np
import segiou
truth, scores = np.zeros((1, 8, 8), np.uint8), np.full((1, 2, 8, 8), 0.5, np.float32)
plain = segiou.ConfusionMatrix(2)
histogram, regions = segiou.ScoreHistogram(2), segiou.ScoreHistogram(2, regions=True)
channels = segiou.ChannelCounts(2)
before = {*sys.modules}
plain.update(truth, truth).update(truth, scores, argmax=1).update(truth, truth, mask=truth == 0)
channels.update(scores > 0.2, scores > 0.3, axis=1)
histogram.update(truth, scores).update(truth, scores, 1, "softmax")
if compiled:  # if not, SciPy finds the regions
    regions.update(truth, scores)
print(*({*sys.modules} - before))
"""


def test_an_update_imports_nothing():
    """A process forked while another thread imports waits for that import without end."""
    code = f"compiled = {compiled_parts()['components']}\n{IMPORTS_OF_UPDATES}"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
