"""A corpus of hostile files: mutations of sound masks, seeded, without end.

Every case is a file name, its bytes, and what is known about an honest answer:
the labels that the sound file holds, and whether the format has checksums, so
that no change of pixels may pass.
"""

from __future__ import annotations

import io
import random
import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import tifffile
from PIL import Image

EXTREMES = (0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)


@dataclass(frozen=True)
class Sound:
    """A sound file."""

    name: str
    data: bytes
    labels: np.ndarray
    checked: bool


@dataclass(frozen=True)
class Case:
    """A hostile file.

    ``checked``: whether a change of pixels cannot go unnoticed, because the
    format has checksums and they were not forged.
    """

    name: str
    data: bytes
    sound: Sound
    how: str
    checked: bool


def labels() -> np.ndarray:
    coarse = np.arange(12, dtype=np.uint8).reshape(3, 4) % 5
    return np.kron(coarse, np.ones((7, 9), dtype=np.uint8))


def saved(image: Image.Image, kind: str, **options: object) -> bytes:
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def interlaced(values: np.ndarray) -> bytes:
    """A grey PNG in seven passes."""

    def chunk(name: bytes, data: bytes) -> bytes:
        checksum = struct.pack(">I", zlib.crc32(name + data))
        return struct.pack(">I", len(data)) + name + data + checksum

    starts = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2))
    passes = [values[y::down, x::across] for x, y, across, down in (*starts, (0, 1, 1, 2))]
    rows = b"".join(b"\0" + row.tobytes() for part in passes for row in part)
    header = struct.pack(">IIBBBBB", values.shape[1], values.shape[0], 8, 0, 0, 0, 1)
    body = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


def sound_files() -> list[Sound]:
    """Small masks in every format that is read."""
    values = labels()
    grey = Image.fromarray(values)
    palette = grey.copy()
    palette.putpalette([i for k in range(256) for i in (k, 255 - k, k // 2)])
    wide = Image.fromarray(values.astype(np.uint16))
    bits = Image.fromarray(values > 1)
    text = b"P2 36 21 4\n" + b"\n".join(b" ".join(b"%d" % v for v in row) for row in values)
    files = [
        ("grey.png", saved(grey, "PNG"), values, True),
        ("palette.png", saved(palette, "PNG"), values, True),
        ("wide.png", saved(wide, "PNG"), values, True),
        ("bits.png", saved(bits, "PNG"), (values > 1).astype(np.uint8), True),
        ("grey.bmp", saved(grey, "BMP"), values, False),
        ("grey.pgm", saved(grey, "PPM"), values, False),
        ("dark.pgm", b"P5\n# labels\n36 21\n7\n" + values.tobytes(), values, False),
        ("wide.pgm", b"P5 36 21 999\n" + values.astype(">u2").tobytes(), values, False),
        ("text.pgm", text, values, False),
        ("passes.png", interlaced(values), values, True),
    ]
    for name, options in (
        ("open.tif", {}),
        ("strips.tif", {"rowsperstrip": 4, "compression": "zlib"}),
        ("tiles.tif", {"tile": (16, 16), "compression": "zlib"}),
        ("big.tif", {"bigtiff": True, "byteorder": ">"}),
    ):
        out = io.BytesIO()
        tifffile.imwrite(out, values, **options)
        files.append((name, out.getvalue(), values, False))
    for name, array in (("a.npy", values), ("f.npy", np.asfortranarray(values.astype("<i4")))):
        out = io.BytesIO()
        np.save(out, array)
        files.append((name, out.getvalue(), values, False))
    out = io.BytesIO()
    np.savez_compressed(out, values)
    files.append(("a.npz", out.getvalue(), values, True))
    return [Sound(*file) for file in files]


def flip_bits(data: bytearray, chance: random.Random) -> bytearray:
    for _ in range(chance.choice((1, 1, 2, 8))):
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    return data


def truncate(data: bytearray, chance: random.Random) -> bytearray:
    return data[: chance.randrange(len(data))]


def cut_out(data: bytearray, chance: random.Random) -> bytearray:
    start = chance.randrange(len(data))
    del data[start : start + chance.choice((1, 4, 16, 200))]
    return data


def double(data: bytearray, chance: random.Random) -> bytearray:
    start = chance.randrange(len(data))
    part = data[start : start + chance.choice((1, 4, 16, 200))]
    return data[:start] + part + data[start:]


def blank(data: bytearray, chance: random.Random) -> bytearray:
    start = chance.randrange(len(data))
    length = len(data[start : start + chance.choice((4, 16, 200))])
    data[start : start + length] = bytes([chance.choice((0, 255))]) * length
    return data


def noise(data: bytearray, chance: random.Random) -> bytearray:
    start = chance.randrange(len(data))
    return data[:start] + chance.randbytes(chance.choice((1, 8, 64))) + data[start:]


def extreme(data: bytearray, chance: random.Random) -> bytearray:
    """Overwrite a number: lengths, offsets and dimensions are such."""
    kind = chance.choice(("<H", ">H", "<I", ">I"))
    size = struct.calcsize(kind)
    if len(data) <= size:
        return data
    value = chance.choice(EXTREMES) & ((1 << 8 * size) - 1)
    # Headers are where it hurts.
    near = chance.random() < 0.5
    at = chance.randrange(min(len(data) - size, 200 if near else len(data)))
    struct.pack_into(kind, data, at, value)
    return data


def appended(data: bytearray, chance: random.Random) -> bytearray:
    return data + chance.randbytes(chance.choice((1, 100, 5000)))


MUTATIONS: tuple[Callable[[bytearray, random.Random], bytearray], ...] = (
    *(flip_bits, flip_bits, truncate, cut_out, double, blank, noise, extreme, extreme, appended),
)


def forged_png(data: bytes, chance: random.Random) -> bytes:
    """Other dimensions, depth or kind, with the right checksum."""
    header = bytearray(data[16:29])
    field = chance.randrange(5)
    if field < 2:
        struct.pack_into(">I", header, 4 * field, chance.choice((*EXTREMES, 35, 37, 1 << 20)))
    else:
        header[6 + field] = chance.randrange(256) if chance.random() < 0.3 else chance.randrange(17)
    crc = struct.pack(">I", zlib.crc32(b"IHDR" + header))
    return data[:16] + bytes(header) + crc + data[33:]


def forged_npy(data: bytes, chance: random.Random) -> bytes:
    """Another shape or type, of the same length of header."""
    stop = data.index(b"\n")
    text = data[10:stop].decode("latin-1")
    shape = chance.choice(
        ("(-1, 36)", "(99999999999, 9)", "(21, 37)", "(21,)", "(0, 36)", "(2**40,)", "(1e3, 2)")
    )
    kind = chance.choice(("'|O'", "'<f8'", "'|V8'", "'<U9'", "'|i1'", "[('a', 'O')]"))
    forged = (
        text.replace("(21, 36)", shape)
        if chance.random() < 0.6
        else (text.replace("'|u1'", kind).replace("'<i4'", kind))
    )
    if chance.random() < 0.1:
        forged = "__import__('os').system('touch /tmp/segiou-was-here')"
    body = forged.strip().encode("latin-1").ljust(stop - 10)
    return data[:8] + struct.pack("<H", len(body) + 1) + body + data[stop:]


def mutated(sound: Sound, chance: random.Random) -> tuple[bytes, str, bool]:
    if sound.name.endswith(".png") and chance.random() < 0.15:
        return forged_png(sound.data, chance), "forged header", False
    if sound.name.endswith(".npy") and chance.random() < 0.3:
        return forged_npy(sound.data, chance), "forged header", False
    data = bytearray(sound.data)
    how = []
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        mutation = chance.choice(MUTATIONS)
        how.append(mutation.__name__)
        data = mutation(data, chance) if data else data
    return bytes(data), " + ".join(how), sound.checked


def cases(count: int, seed: int = 0) -> Iterator[Case]:
    """So many hostile files, the same for the same seed."""
    chance = random.Random(seed)
    sounds = sound_files()
    for i in range(count):
        sound = sounds[i % len(sounds)]
        data, how, checked = mutated(sound, chance)
        name = f"{i:06d}-{sound.name}"
        if chance.random() < 0.1:
            name = (
                f"{name[: name.rindex('.')]}.{chance.choice(('png', 'tif', 'npy', 'npz', 'gif'))}"
            )
        yield Case(name, data, sound, how, checked)
