"""Colour masks → labels: each pixel gets the value of the class with its exact colour.

Palettes of index images can contradict the reading of their indices as values. Images of grey
values are those of thresholds and maps of scores.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from segiou._support.text import plural
from segiou.labels.label_set import Color, LabelSet, hex_color
from segiou.masks.raw_mask import SOFT_EDGES, MaskError, RawMask
from segiou.masks.windows import chunks_of, window_slices

ReadPalette = Literal["indices", "colors"]
READINGS = get_args(ReadPalette)
#: Formats of images with palettes.
PALETTE_SUFFIXES = (".png", ".gif", ".bmp", ".tif", ".tiff")
_FIX = (
    "if the colours are right, pass read_palette='colors' (--read-palette colors); if the indices "
    "are right, read_palette='indices' (--read-palette indices)"
)
#: The problem of a photograph in place of a mask, and its fix.
IS_A_PHOTO = "is a photograph, not a mask; pass the folder of the masks"
#: Beginning of the problem of colours without a label set that has any.
NO_COLORS = "is a colour image"
#: Colours of a photograph, and share of equal neighbours in a mask.
_MANY_COLORS, _LEAST_EQUAL = 256, 0.5
_UNKNOWN = np.uint16(0xFFFF)
#: Pixels that are mapped at once.
_PIECE_PIXELS = 1 << 18
#: Pixels of large files whose indices are read at once.
_WINDOW_PIXELS = 1 << 22


def labels_of_colors(
    raw: RawMask, labels: LabelSet | None, path: str | Path
) -> NDArray[np.integer[Any]]:
    """Map each pixel to the first value of the class with its colour."""
    colors: NDArray[Any] = raw.values
    if labels is None or not labels.has_colors:
        if not (packed(colors) % 0x10101).any():
            return np.asarray(packed(colors) & 255).astype(np.uint8)
        lack = "no label set maps its colours"
        lack = lack if labels is None else f"label set {labels.name!r} has no colours"
        _check_kind(colors, path)
        problem = f"{NO_COLORS} (mode {raw.mode}), but {lack}; pass a label set with colours, or "
        problem += "write one with segiou inspect DIR --propose FILE"
        problem += _coco_hint(labels)
        raise MaskError(path, problem)
    table, values = _color_table(labels)
    mapped: NDArray[np.integer[Any]] = np.empty(colors.shape[:2], values.dtype)
    # In pieces, because codes need four times the memory of labels.
    rows = max(1, _PIECE_PIXELS // max(1, colors.shape[1]))
    for top in range(0, colors.shape[0], rows):
        codes = table[packed(colors[top : top + rows])]
        if (codes == _UNKNOWN).any():
            if _are_values(colors, labels):
                return np.asarray(packed(colors) & 255).astype(np.uint8)
            _check_kind(colors, path)
            unknown = colors[table[packed(colors)] == _UNKNOWN]
            raise MaskError(path, _unknown_text(unknown, labels))
        values.take(codes, out=mapped[top : top + rows])
    return mapped


def _are_values(colors: NDArray[Any], labels: LabelSet) -> bool:
    """Whether the grey of every pixel is a declared value, and the set has no grey for another."""
    greys = packed(colors)
    if (greys % 0x10101).any():
        return False
    contradicts = any(
        red == green == blue and red not in values
        for (red, green, blue), (_, values) in _owners(labels).items()
    )
    declared = labels.declared_values.union(labels.ignore)
    return not contradicts and declared.issuperset(np.unique(greys & 255).tolist())


def _check_kind(colors: NDArray[Any], path: str | Path) -> None:
    """Raise a MaskError for masks of ADE20K's full release, and for photographs."""
    if _OF_ADE.search(str(path)) and not ((packed(colors) & 255) % 10).any():
        raise MaskError(path, _ADE_CLASSES)
    if is_photo(colors):
        raise MaskError(path, IS_A_PHOTO)


def is_photo(colors: NDArray[Any]) -> bool:
    """Whether an image has many colours, and few neighbours are equal, unlike in masks."""
    whole = packed(colors)
    equal = float((whole[:, 1:] == whole[:, :-1]).mean()) if whole.shape[1] > 1 else 1.0
    return equal < _LEAST_EQUAL and np.unique(whole).size > _MANY_COLORS


def packed(colors: NDArray[Any]) -> NDArray[np.uint32]:
    """Colours (…, 3) as integers red + 256 green + 65536 blue, the ids of COCO's panoptic files."""
    if colors.dtype == np.uint32:
        return colors
    wide = colors.astype(np.uint32)
    return np.asarray(wide[..., 0] | wide[..., 1] << 8 | wide[..., 2] << 16)


@lru_cache(maxsize=4)
def _color_table(labels: LabelSet) -> tuple[NDArray[np.uint16], NDArray[Any]]:
    """Codes of all 2^24 colours, and the value of each code."""
    table = np.full(1 << 24, _UNKNOWN, dtype=np.uint16)
    entries = [(entry.values[0], entry.colors) for entry in labels.classes if entry.values]
    if labels.ignore_colors:
        entries.append((labels.ignore[0], labels.ignore_colors))
    for code, (_, colors) in enumerate(entries):
        for red, green, blue in colors:
            table[red | green << 8 | blue << 16] = code
    values = [value for value, _ in entries]
    kinds = [np.iinfo(dtype) for dtype in (np.uint8, np.int64, np.uint64)]
    fits = [k.dtype for k in kinds if k.min <= min(values) and max(values) <= k.max]
    return table, np.array(values, dtype=fits[0] if fits else object)


def count_colors(colors: NDArray[Any]) -> dict[str, int]:
    """Pixels of each colour, most frequent first, as ``"#rrggbb"``."""
    distinct, counts = np.unique(packed(colors).ravel(), return_counts=True)
    names = [int(color).to_bytes(3, "little").hex() for color in distinct]
    order = sorted(range(len(names)), key=lambda i: (-counts[i], names[i]))
    return {f"#{names[i]}": int(counts[i]) for i in order}


#: Masks of ADE20K's full release, and their conversion.
_OF_ADE = re.compile(r"ADE_\w+_seg\.png$")
_ADE_CLASSES = (
    "has the classes of ADE20K's full release (red // 10 * 256 + green) and objects (blue); save "
    'the classes alone: mkdir classes; python -c "import numpy, pathlib, PIL.Image as I; '
    "[I.fromarray((a[..., 0] // 10 * 256 + a[..., 1]).astype('uint16')).save(f'classes/{p.name}') "
    "for p in pathlib.Path('FOLDER').rglob('*_seg.png') for a in [numpy.uint16(I.open(p))]]\"; "
    "then pass classes in place of FOLDER, with --labels 3689 --ignore 0 --exclude 0"
)


def _coco_hint(labels: LabelSet | None) -> str:
    """A hint for COCO categories, whose PNG files of segments contain ids."""
    is_coco = labels is not None and labels.source == "COCO categories"
    hint = "; for the segment ids of COCO, pass objects='coco' (segiou score --objects coco)"
    return hint if is_coco else ""


def _unknown_text(unknown: NDArray[Any], labels: LabelSet) -> str:
    pixels = count_colors(unknown)
    shown = ", ".join(f"{color} ({plural(n, 'pixel')})" for color, n in list(pixels.items())[:8])
    more = f" and {len(pixels) - 8} more" if len(pixels) > 8 else ""
    values = labels.declared_values.union(labels.ignore)
    greys = {f"#{value:02x}{value:02x}{value:02x}" for value in values if 0 <= value < 256}
    if greys.issuperset(pixels):
        hint = "its channels are equal, so save it as single-channel PNG"
    elif labels.num_classes == 2 and all(color[1:] == 3 * color[1:3] for color in pixels):
        hint = SOFT_EDGES
    elif len(pixels) > 64:
        hint = (
            "many similar colours: probably resized with interpolation or saved with lossy "
            "compression"
        )
    else:
        hint = f"add them to a class or to ignore_colors{_coco_hint(labels)}"
    return f"has colours not in label set {labels.name!r}: {shown}{more}; {hint}"


def check_palette(raw: RawMask, path: str | Path, labels: LabelSet) -> None:
    """Raise a MaskError if the palette of a mask contradicts its indices."""
    suspects = _suspects(raw.palette, labels)
    is_array = isinstance(raw.values, np.ndarray)
    if not suspects or (is_array and int(raw.values.max(initial=0)) < min(suspects)):
        return
    if problem := contradiction(raw.palette, used_indices(raw), labels):
        raise MaskError(path, problem)


def used_indices(raw: RawMask) -> list[int]:
    """The indices that occur in a mask with a palette."""
    used: set[int] = set()
    for window in window_slices(raw.values.shape, chunks_of(raw.values), _WINDOW_PIXELS):
        used.update(np.flatnonzero(np.bincount(raw.values[window].ravel())).tolist())
    return sorted(used)


def contradiction(palette: bytes, used: Iterable[int], labels: LabelSet) -> str:
    """The problem and its fix if colours of used indices are those of other values; else empty."""
    colors, owners = colors_of(palette, used), _owners(labels)
    is_grey = all(len({*rgb}) == 1 for rgb in colors.values())
    # Palettes of other label sets have a few colours of this one by chance, most by design.
    is_of_set = 2 * sum(rgb in owners for rgb in colors.values()) >= len(colors)
    # A colour of several indices, such as the black that pads palettes, tells nothing.
    often = Counter(colors.values())
    for index in sorted(
        _suspects(palette, labels) & {i for i, c in colors.items() if often[c] == 1}
    ):
        color = colors[index]
        if color in owners and is_of_set and index not in owners[color][1]:
            what = f"the colour of {owners[color][0]} in {labels.name!r}"
        elif is_grey and color not in owners:
            what = f"the grey of value {color[0]}"
        else:
            continue
        return f"has a palette in which index {index} has {hex_color(color)}, {what}; {_FIX}"
    return ""


@lru_cache(maxsize=64)
def _suspects(palette: bytes, labels: LabelSet) -> frozenset[int]:
    """Indices whose colour is that of a class with other values, or whose grey is another value."""
    owners, values = _owners(labels), labels.declared_values.union(labels.ignore)
    colors = colors_of(palette, range(len(palette) // 3))
    of_class = {i for i, rgb in colors.items() if rgb in owners and i not in owners[rgb][1]}
    greys = {i for i, (r, g, b) in colors.items() if r == g == b and 0 != r != i and r in values}
    greys -= {
        i
        for entry in labels.classes
        for i in entry.values
        if colors.get(i, (-1,))[0] in entry.values
    }
    return frozenset(of_class | greys)


@lru_cache(maxsize=64)
def _owners(labels: LabelSet) -> dict[Color, tuple[str, tuple[int, ...]]]:
    """The class of each colour, in words, and its values."""
    owners = {rgb: (f"class {c.name!r}", c.values) for c in labels.classes for rgb in c.colors}
    return owners | {rgb: ("ignored pixels", tuple(labels.ignore)) for rgb in labels.ignore_colors}


def colors_of(palette: bytes, used: Iterable[int]) -> dict[int, Color]:
    """The colours of used indices."""
    known = (i for i in used if 0 <= 3 * i < len(palette))
    return {i: (palette[3 * i], palette[3 * i + 1], palette[3 * i + 2]) for i in known}


def clash(files: Iterable[tuple[str, bytes, Iterable[int]]]) -> tuple[str, str] | None:
    """A file whose colour of an index differs from an earlier file, and the problem; or None.

    Parameters
    ----------
    files : iterable of (str, bytes, iterable of int)
        Path, palette and used indices of each.
    """
    known: dict[int, tuple[Color, str]] = {}
    for path, palette, used in files:
        for index, rgb in colors_of(palette, used).items():
            before, where = known.setdefault(index, (rgb, path))
            if before != rgb:
                return path, f"{_contradiction(index, rgb, before, where)}; {_FIX}"
    return None


def _contradiction(index: int, rgb: Color, before: Color, where: str) -> str:
    colors = f"{hex_color(rgb)} for index {index}, but {hex_color(before)} in {where}"
    return f"has a palette with {colors}"


#: Path, palette and used indices of a file.
PaletteUse = tuple[str, bytes, list[int]]


def clash_of_sides(
    first: Sequence[PaletteUse],
    second: Sequence[PaletteUse],
    labels: LabelSet,
    fix: Callable[[], str] = lambda: _FIX,
) -> tuple[str, str] | None:
    """A file of the second side whose palette contradicts the first side's, and the problem.

    Palettes with the same colours, except black, are of one scheme; others show nothing.
    """
    of_index: dict[int, tuple[Color, str]] = {}
    of_color: dict[Color, tuple[int, str]] = {}
    for path, palette, used in first:
        for index, rgb in colors_of(palette, used).items():
            of_index.setdefault(index, (rgb, path))
            if _is_unique(index, palette, used):
                of_color.setdefault(rgb, (index, path))
    known = {rgb for rgb, _ in of_index.values()}
    for path, palette, used in second:
        colors = colors_of(palette, used)
        colored = [rgb for rgb in colors.values() if any(rgb)]
        if not colored or 2 * sum(rgb in known for rgb in colored) < len(colored):
            continue
        is_unique = partial(_is_unique, palette=palette, used=used)
        for index, rgb in colors.items():
            other, where = of_color.get(rgb, (index, ""))
            if other != index and is_unique(index) and not _alike(index, other, labels):
                what = f"index {index} has {hex_color(rgb)}, the colour of index {other} in {where}"
                return path, f"has a palette in which {what}; {fix()}"
            before, where = of_index.get(index, (rgb, ""))
            if before != rgb:
                return path, f"{_contradiction(index, rgb, before, where)}; {fix()}"
    return None


def _is_unique(index: int, palette: bytes, used: Iterable[int]) -> bool:
    """Whether no other index has the colour; the black that pads palettes is not counted."""
    size = max(len(palette.rstrip(b"\0")), 3 * max(used) + 1)
    return _color_counts(palette[: size + -size % 3])[palette[3 * index : 3 * index + 3]] == 1


@lru_cache(maxsize=64)
def _color_counts(palette: bytes) -> Counter[bytes]:
    return Counter(palette[i : i + 3] for i in range(0, len(palette), 3))


def _alike(index: int, other: int, labels: LabelSet) -> bool:
    """Whether two values are of one class, or neither is of any."""
    several = [{*label.values} & {index, other} for label in labels.classes]
    return {index, other} in several or not any(several)


def fix_for(labels: LabelSet, presets: Iterable[str]) -> str:
    """The fix of a contradiction; reading colours needs a label set with colours."""
    if labels.has_colors:
        return _FIX
    name = next(iter(presets), "")
    which = f"{name!r}" if name else "…"
    python, command = f"labels={which}, read_palette='colors'", "--read-palette colors"
    command = f"--labels {name or 'SET'} {command}"
    with_colors = "" if name else ", where SET has the colours"
    return (
        f"if the colours are right, pass {python} ({command}){with_colors}; if the indices are "
        "right, read_palette='indices' (--read-palette indices)"
    )


def as_read(raw: RawMask, path: str | Path, how: ReadPalette | None) -> RawMask:
    """The mask with the colours of its palette, or with indices that are not checked."""
    if how is None or not raw.palette or raw.is_color:
        return raw
    if how == "indices":
        return raw._replace(palette=b"")
    table = np.frombuffer(raw.palette, np.uint8).reshape(-1, 3).astype(np.uint32)
    if (most := int(np.max(raw.values, initial=0))) >= len(table):
        problem = f"has index {most}, but a palette of {len(table)} colours; read its indices"
        raise MaskError(path, problem)
    colors: NDArray[Any] = (table @ np.array([1, 1 << 8, 1 << 16], np.uint32)).astype(np.uint32)
    return raw._replace(values=colors[raw.values], mode="RGB")


def grey_values(raw: RawMask, path: str, purpose: str) -> NDArray[Any]:
    """The values of a mask, those of its equal channels if it has colours."""
    if not raw.is_color:
        return np.asarray(raw.values)
    colors = packed(raw.values)
    values = (colors & 255).astype(np.uint8)
    if (colors != values * np.uint32(0x10101)).any():
        raise MaskError(path, f"is a colour image; save it as greyscale {purpose}")
    return values


def grey_scores(raw: RawMask, path: str) -> NDArray[Any]:
    """Scores in a greyscale image: bool, uint8, uint16, or float64 if it has another maximum."""
    if raw.lossy:
        raise MaskError(path, f"is a lossy {raw.kind}; save scores as PNG, TIFF or .npy")
    if raw.mode not in ("L", "I;16", "I", "I;16B"):
        problem = f"is an image of mode {raw.mode}; expected 8- or 16-bit greyscale"
        raise MaskError(path, problem)
    values = np.asarray(raw.values)
    if raw.maximum not in (None, 255, 65535):
        return values / np.float64(raw.maximum)
    return values.astype(np.uint16) if values.dtype.itemsize > 1 else values
