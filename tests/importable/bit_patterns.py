"""Floats of random bits: NaN of every sign and payload, infinities, subnormal numbers, any size."""

from __future__ import annotations

import os

import numpy as np

#: Cases of each test of random bits: many in the gate, where it runs under sanitizers as well.
CASES = 40 if os.environ.get("SEGIOU_SANITIZE") == "1" else 6
#: Bits in total, and bits of the fraction.
WIDTHS = {"float16": (16, 10), "bfloat16": (16, 7), "float32": (32, 23), "float64": (64, 52)}
BFLOAT16 = np.dtype([("bfloat16", np.uint16)])


def as_kind(bits, kind):
    return bits.view(BFLOAT16 if kind == "bfloat16" else kind)


def any_floats(rng, kind, shape):
    """Half of the numbers have random bits, the others those of an edge or of its neighbours."""
    width, fraction = WIDTHS[kind]
    found = rng.integers(0, 1 << width, shape, f"u{width // 8}")
    sign, infinity = 1 << (width - 1), (1 << (width - 1)) - (1 << fraction)
    one = (infinity >> 1) & ~((1 << fraction) - 1)
    edges = [
        0,
        1,
        1 << fraction,
        one,
        infinity,
        infinity + 1,
        sign - 1,
        infinity | 1 << fraction - 1,
    ]
    edges = np.array([edge | top for edge in edges for top in (0, sign)], found.dtype)
    chosen = rng.choice(edges, shape) + rng.integers(-1, 2, shape).astype(found.dtype)
    return as_kind(np.where(rng.random(shape) < 0.5, chosen, found), kind)


def probabilities(rng, kind, shape):
    """Numbers in [0, 1] of random bits."""
    width, fraction = WIDTHS[kind]
    one = ((1 << (width - 1)) - (1 << fraction) >> 1) & ~((1 << fraction) - 1)
    return as_kind(rng.integers(0, one + 1, shape, f"u{width // 8}"), kind)


def mixed(rng, kind, shape, share):
    """Probabilities, of which this share is any float."""
    bits = f"u{WIDTHS[kind][0] // 8}"
    kept, wild = probabilities(rng, kind, shape), any_floats(rng, kind, shape)
    return as_kind(np.where(rng.random(shape) < share, wild.view(bits), kept.view(bits)), kind)


def values_of(array):
    """The same numbers as floats that NumPy knows."""
    if array.dtype != BFLOAT16:
        return array
    return (array.view(np.uint16).astype(np.uint32) << 16).view(np.float32)


#: Views of planes (C, H, W) that lie differently in memory.
LAYOUTS = {
    "planes": lambda a: a,
    "rows": lambda a: np.moveaxis(np.ascontiguousarray(np.moveaxis(a, 0, -1)), -1, 0),
    "backwards": lambda a: a[:, ::-1, ::-1],
    "every other": lambda a: a.repeat(2, -1)[..., ::2],
}
