"""The pictures of an image: its masks read as class indices, its file found, both encoded."""

from __future__ import annotations

import base64
import io
import math
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from segiou._support.text import listed
from segiou.counting.encoding import Encoding
from segiou.labels.class_options import ClassOptions
from segiou.labels.label_set import LabelSet
from segiou.masks.adjusted import ADJUSTMENTS, AdjustedSource, adjusted
from segiou.masks.class_files import ClassMasks
from segiou.masks.read import (
    VOLUME_SUFFIXES,
    MaskError,
    RawMask,
    from_bytes,
    open_mask,
    to_labels,
    with_background,
)
from segiou.masks.sources import LocalFolder, Source
from segiou.masks.windows import resized
from segiou.measures.mask_pair import ScoredPrediction
from segiou.measures.measure import Plan
from segiou.report.page import Color

if TYPE_CHECKING:
    from segiou.instances.object_files import ObjectOptions
    from segiou.instances.object_masks import ObjectMask
    from segiou.masks.volumes import Volume

Indices = NDArray[np.uint16]
Shape = tuple[int, ...]
Outcomes = tuple[list[list[int]], list[list[int]]]

#: Voxels along each axis of a volume, at most.
_VOXELS = 160
#: Objects of an image are drawn where there are fewer.
_MOST_OBJECTS = 1 << 16
#: Widths in decreasing order, tried until the pictures of an image fit its part of the page.
_WIDTHS = (400, 320, 256, 208, 160, 128, 96, 64)
_QUALITY = 80
#: Classes of an image whose scores are drawn, at most, widths tried for these drawings, and their
#: characters in a separate file.
_SCORED = 8
_SCORES_WIDTHS = (480, 320, 208, 160)
_SCORES_BESIDE = 100_000


def fitted(
    masks: Masks, colors: Sequence[Color], image: Path | None, room: int | None
) -> dict[str, Any]:
    """Encode the pictures of an image in ``room`` characters, or the smallest, as data URIs."""
    largest = max(masks.arrays[0].shape)
    shapes = [reduced(masks.arrays[0].shape, width) for width in (largest, *_WIDTHS)]
    for shape in dict.fromkeys(shapes):
        found = _encoded(masks, colors, image, shape)
        pictures = (*found["masks"], *found["objects"], found["image"] or "")
        if room is None or sum(map(len, pictures)) <= room:
            break
    return found


def score_maps(masks: Masks, found: Mapping[str, Any], room: int | None) -> dict[str, Any]:
    """Scores in hundredths for the script, in ``room`` characters, beside pictures in ``found``.

    Images are shrunk up to a limit, then only the classes that fit are drawn.
    """
    if not masks.scored:
        return {}
    shape = (found["depth"], found["height"], found["width"])[-len(masks.full) :]
    most = _SCORES_BESIDE if room is None else room
    sizes = [shape] if len(shape) == 3 else [reduced(shape, width) for width in _SCORES_WIDTHS]
    for size in dict.fromkeys(sizes):
        maps = [
            # Run lengths alone take a quarter of the time, and no more bytes.
            [
                grey_png(_sheet(resized(one, size)), optimize=False, compress_type=zlib.Z_RLE)
                for one in planes
            ]
            for planes in masks.scores
        ]
        ends = np.cumsum([sum(map(len, several)) for several in zip_longest(*maps, fillvalue="")])
        fit = int((ends <= most).sum())
        if fit == len(ends):
            break
    return {"scored": masks.scored[:fit], "maps": [of_pred[:fit] for of_pred in maps]}


def _encoded(
    masks: Masks, colors: Sequence[Color], image: Path | None, shape: Shape
) -> dict[str, Any]:
    """Pictures of one size for the script; planes of a volume are side by side."""
    sheets = [_sheet(resized(mask, shape)) for mask in (*masks.arrays, *masks.objects)]
    sides = len(masks.arrays)
    found: dict[str, Any] = {
        "width": shape[-1],
        "height": shape[-2],
        "full": masks.full,
        "masks": [mask_png(sheet, colors) for sheet in sheets[:sides]],
        "image": None,
        "depth": 1,
        "columns": 1,
        "spacing": (1.0, 1.0, 1.0),
        "objects": [mask_png(sheet, _as_colors(int(sheet.max()))) for sheet in sheets[sides:]],
        "outcomes": masks.outcomes,
        "problem": "",
    }
    if len(shape) == 3:
        # As a volume shrinks, its voxels grow.
        spacing = [s * n / m for s, n, m in zip(masks.spacing, masks.full, shape, strict=True)]
        return found | {"depth": shape[0], "columns": _columns(shape[0]), "spacing": spacing[::-1]}
    if image is not None:
        try:
            photo = read_image(image, (shape[-1], shape[-2]))
            found["image"] = _data_uri(photo, "jpeg", quality=_QUALITY, progressive=True)
        except PictureError as error:
            found["problem"] = str(error)
    return found


def _as_colors(most: int) -> list[Color]:
    """Numbers up to the largest as colours."""
    return [(0, number >> 8, number & 255) for number in range(most + 1)]


def _columns(depth: int) -> int:
    return math.ceil(math.sqrt(depth))


def _sheet(array: NDArray[Any]) -> NDArray[Any]:
    """The planes of a volume in a grid; an image unchanged."""
    if array.ndim == 2:
        return array
    depth, height, width = array.shape
    columns = _columns(depth)
    rows = -(-depth // columns)
    sheet = np.zeros((rows * columns, height, width), array.dtype)
    sheet[:depth] = array
    planes = sheet.reshape(rows, columns, height, width).swapaxes(1, 2)
    return planes.reshape(rows * height, columns * width)


def mask_png(indices: NDArray[np.uint16], colors: Sequence[Color]) -> str:
    """Encode indices as a PNG data URI in their colours, exactly."""
    if len(colors) <= 256:
        image = Image.fromarray(indices.astype(np.uint8))
        image.putpalette([channel for color in colors for channel in color])
    else:
        table = np.array(colors, dtype=np.uint8)
        image = Image.fromarray(table[indices])
    return _data_uri(image, "png")


def grey_png(values: NDArray[np.uint8], **options: Any) -> str:
    """Encode a grey picture as a PNG data URI."""
    return _data_uri(Image.fromarray(values), "png", **options)


def _data_uri(image: Image.Image, kind: str, **options: Any) -> str:
    out = io.BytesIO()
    image.save(out, kind, **{"optimize": True, **options})
    return f"data:image/{kind};base64,{base64.b64encode(out.getvalue()).decode()}"


Reader = Callable[[str], bytes | RawMask]

_IMAGE_ENDINGS = frozenset(
    (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".tif", ".tiff", ".ppm", ".jp2", ".gif")
)


@dataclass(frozen=True, slots=True)
class ScoreReader:
    """Reads predictions of scores as they were counted."""

    plan: Plan
    source: Source
    read: Reader | None

    @classmethod
    def of(cls, run: Any, read: Reader | None = None) -> ScoreReader | None:
        """The reader of a run's predictions if they are scores."""
        plan = next((plan for plan in run.plans if plan.reads_predictions), None)
        if plan is None:
            return None
        place = LocalFolder(run.provenance.get("pred", ""))
        return cls(plan, plan.measure.predictions(place, run.options), read)

    def __call__(self, truth: Shape, path: str) -> ScoredPrediction:
        """The prediction at a path, by the shape of its truth."""
        data = self.source.read(path)[0] if self.read is None else self.read(path)
        return self.plan.read_prediction(data, path, truth)

    def hundredths(self, found: ScoredPrediction, shape: Shape) -> NDArray[np.uint8] | None:
        """The scores of all classes at another size, (C, *shape); None if none are shown."""

        def small(plane: NDArray[Any]) -> NDArray[Any]:
            if found.volume is not None:
                plane = _upright(replace(found.volume, values=plane))[0]
            return resized(plane, shape)

        is_one = found.scores.ndim == found.labels.ndim
        scores = small(found.scores) if is_one else np.stack([*map(small, found.scores)])
        shares = self.plan.class_scores(scores, shape)
        if shares is None:
            return None
        # Ignored pixels may have any score.
        whole = np.rint(100 * np.nan_to_num(shares).clip(0, 1))
        return np.asarray(whole, np.uint8)


def adjusted_reader(run: Any, read: Reader | None) -> Reader | None:
    """The reader of a run's files with the options that changed them as they were counted."""
    how = {name: run.provenance.get(name) for name in ADJUSTMENTS}
    pattern = run.provenance.get("class_files")
    if pattern is None and not any(how.values()):
        return read
    places: list[Any] = [LocalFolder(run.provenance.get(side, "")) for side in ("truth", "pred")]
    if pattern is not None:
        labels = run.options.labels, run.options.pred_labels
        places = [ClassMasks.of(p, pattern, own) for p, own in zip(places, labels, strict=True)]
    truth, pred = adjusted(places[0], places[1], how)
    suffix = run.provenance.get("pred_suffix")

    def is_pred(path: str) -> bool:
        return bool(suffix) and (path.endswith(suffix) or Path(path).stem.endswith(suffix))

    def content(path: str) -> bytes | RawMask:
        inside = max(places, key=lambda place: path.startswith(place.root) * len(place.root))
        if places[0].root == places[1].root and is_pred(path):
            inside = places[1]
        source = truth if inside is places[0] else pred
        if isinstance(inside, ClassMasks):
            data: bytes | RawMask = inside.read(path)[0]
        else:
            data = Path(path).read_bytes() if read is None else read(path)
        return source.adjusted(data, path) if isinstance(source, AdjustedSource) else data

    return content


class PictureError(ValueError):
    """A picture that cannot be shown; its message is for readers of the page."""


@dataclass(frozen=True, slots=True, eq=False)
class Masks:
    """The masks of one image, as large as a page can show them."""

    #: Truth, then predictions: class indices; C where the truth is ignored, C + 1 for no class.
    arrays: tuple[Indices, ...]
    #: Shape of the truth itself.
    full: Shape
    #: Distance between the planes, rows and columns of a volume.
    spacing: tuple[float, ...] = (1.0, 1.0, 1.0)
    #: Numbers of the objects of each array, from 1; none where they were not scored.
    objects: tuple[Indices, ...] = ()
    #: For each prediction, outcomes of the true and of the predicted objects.
    outcomes: tuple[Outcomes, ...] = ()
    #: The classes with the most wrong pixels, if predictions are scores.
    scored: tuple[int, ...] = ()
    #: Their scores for each prediction, in hundredths; empty if it has none.
    scores: tuple[NDArray[np.uint8], ...] = ()


def read_indices(
    truth: str,
    preds: Sequence[tuple[str, ClassOptions]],
    read: Reader | None = None,
    largest: int = 480,
    objects: ObjectOptions | None = None,
    readers: Sequence[ScoreReader | None] = (),
) -> Masks:
    """Read masks as class indices, predictions at the truth's size."""
    first = preds[0][1]
    sides = [(truth, first.labels, Encoding.of_classes(first).truth)]
    sides += [(path, own.pred_labels, Encoding.of_classes(own).pred) for path, own in preds]
    # One by one and reduced immediately, because masks may be huge.
    arrays: list[Indices] = []
    scores: list[NDArray[np.uint8] | None] = []
    whole: list[Any] = []
    full: Shape = ()
    spacing: tuple[float, ...] = ()
    outside: int | None = None
    has_region = False
    decided = [None, *readers, *[None] * len(sides)]
    for (path, labels, codes), reader in zip(sides, decided, strict=False):
        if truth.lower().endswith(VOLUME_SUFFIXES) > path.lower().endswith(VOLUME_SUFFIXES):
            msg = f"{path} is an array beside a volume; save it as NIfTI to see it"
            raise PictureError(msg)
        own = read if reader is None else partial(reader, full)
        values, size, ids, free, scored, valid = _values(path, labels, own, objects, outside)
        if not arrays:
            full, spacing, outside = values.shape, size, free
            shape = reduced(full, largest if len(full) == 2 else _VOXELS)
        if values.ndim != len(shape):
            msg = f"{path} has shape {values.shape}, but the truth {full}"
            raise PictureError(msg)
        coded = codes.codes_of(resized(values, shape))
        # Undeclared is one past ignored in the truth and takes ignored's place in
        # the prediction, which knows no ignoring.
        coded[coded == codes.undeclared] = first.num_classes + 1
        has_region |= valid is not None
        if valid is not None:
            coded[~resized(valid, shape)] = first.num_classes
        arrays.append(coded)
        if reader is not None and scored is not None:
            width = min(largest, _SCORES_WIDTHS[0])
            size_of_scores = reduced(full, width) if len(full) == 2 else shape
            scores.append(reader.hundredths(scored, size_of_scores))
        elif len(arrays) > 1:
            scores.append(None)
        if objects is not None:
            whole.append(resized(values, full) if ids is None else ids.resized(full))
    found = _with_scores(Masks(tuple(arrays), full, spacing), scores, first.num_classes)
    # Objects of the whole image would differ from those that were counted in a region.
    return found if objects is None or has_region else _with_objects(found, objects, whole, preds)


def _with_scores(masks: Masks, scores: Sequence[NDArray[np.uint8] | None], classes: int) -> Masks:
    """The same with the scores of the classes that have the most wrong pixels."""
    if all(of_pred is None for of_pred in scores):
        return masks
    truth, *preds = masks.arrays
    pixels, wrong = np.zeros((2, classes + 2), np.int64)
    for pred in preds:
        valid = truth != classes
        for side in (truth, pred):
            pixels += np.bincount(side[valid], minlength=classes + 2)
            wrong += np.bincount(side[valid & (truth != pred)], minlength=classes + 2)
    # The smaller of two classes with the same errors comes first.
    order = [c for c in np.lexsort((pixels, -wrong)).tolist() if pixels[c] and c < classes]
    chosen = order[:_SCORED]
    none = np.empty((0,), np.uint8)
    drawn = tuple(none if of_pred is None else of_pred[chosen] for of_pred in scores)
    return replace(masks, scored=tuple(chosen), scores=drawn)


def _with_objects(
    masks: Masks, objects: ObjectOptions, whole: Sequence[Any], preds: Sequence[tuple[Any, Any]]
) -> Masks:
    """The same with the objects of each side, and what became of them."""
    from segiou.instances.object_files import draw_objects

    truth, *others = whole
    shape = masks.arrays[0].shape
    drawn = [
        draw_objects(objects, options, truth, pred, shape, masks.spacing)
        for pred, (_, options) in zip(others, preds, strict=True)
    ]
    numbers = [drawn[0][0][0], *(found for _, (found, _) in drawn)]
    if max(int(array.max()) for array in numbers) >= _MOST_OBJECTS:
        return masks
    return replace(
        masks,
        objects=tuple(array.astype(np.uint16) for array in numbers),
        outcomes=tuple((of_truth, of_pred) for (_, of_truth), (_, of_pred) in drawn),
    )


def reduced(shape: Shape, largest: int) -> Shape:
    """Reduce a shape to a width, and a height of half as much again; each axis of a volume.

    >>> reduced((1024, 2048), 480), reduced((3000, 100), 480), reduced((17, 512, 512), 160)
    ((240, 480), (720, 24), (17, 160, 160))
    """
    if len(shape) == 3:
        return tuple(min(n, largest) for n in shape)
    scale = min(1.0, largest / shape[1], 1.5 * largest / shape[0])
    return tuple(max(1, round(n * scale)) for n in shape)


def _values(
    path: str,
    labels: LabelSet,
    read: Callable[[str], bytes | RawMask | ScoredPrediction] | None,
    objects: ObjectOptions | None,
    outside: int | None,
) -> tuple[NDArray[Any], tuple[float, ...], ObjectMask | None, int | None, Any, Any]:
    """Labels of a file, spacing, ids of objects, label outside segments, scores, region.

    The planes of a volume are axial, from top to bottom. ``outside`` is that label in the truth.
    """
    if not path:
        raise PictureError("scored from arrays, so there are no image files")
    scored = None
    try:
        content = None if read is None else read(path)
        if isinstance(content, ScoredPrediction):
            scored = content
            content = RawMask(scored.labels, "scores", "scores", volume=scored.volume)
        raw = open_mask(path) if content is None else from_bytes(content, path)
        found = None if objects is None else objects.read(raw, path, labels)
        ids = found and found.whole()
        values: Any = to_labels(raw, path, labels, allow_lossy=True) if ids is None else ids.classes
        values = with_background(values, raw.background, outside, path)
    except (MaskError, OSError) as error:
        raise PictureError(str(error)) from error
    spacing = (1.0, 1.0, 1.0) if raw.volume is None else raw.volume.spacing
    valid = raw.valid
    if raw.volume is not None and values.ndim == 3:
        values, spacing = _upright(raw.volume)
        valid = None if valid is None else _upright(replace(raw.volume, values=valid))[0]
    if values.ndim not in (2, 3) or not values.size:
        msg = f"{path} has shape {values.shape}, which cannot be drawn as a picture"
        raise PictureError(msg)
    return values, spacing, ids, raw.outside(labels), scored, valid


def _upright(volume: Volume) -> tuple[NDArray[Any], tuple[float, ...]]:
    """Values and spacing of a volume in the radiological orientation."""
    from segiou.masks.volumes import reorient

    # To the right, to the front, to the top.
    turned = reorient(volume, replace(volume, affine=np.eye(4)))
    return turned.values.T[::-1, ::-1, ::-1], turned.spacing[::-1]


@dataclass(frozen=True, slots=True)
class ImageMatch:
    """Which files of a folder belong to the images of a run.

    Attributes
    ----------
    folder : str
    files : mapping of str to Path
        By id of the image.
    missing : tuple of str
        Ids of images that have no file, or more than one.
    others : tuple of str
        Files that belong to no image, by their path in the folder.
    """

    folder: str
    files: Mapping[str, Path]
    missing: tuple[str, ...]
    others: tuple[str, ...]

    @property
    def no_photo(self) -> str:
        """Note for an image without a file."""
        total = len(self.files) + len(self.missing)
        return f"No photo for this image ({len(self.files)} of {total} photos were found)."

    def sentences(self) -> list[str]:
        """Found and missing files, with examples; empty if no file is missing."""
        if not self.missing:
            return []
        total = len(self.files) + len(self.missing)
        found = [f"Found photos for {len(self.files)} of {total} images in {self.folder}"]
        if self.files:
            id, path = next(iter(self.files.items()))
            found.append(f"e.g. {path.name} for {id}")
        missing = f"{len(self.missing)} missing, e.g. {self.missing[0]}"
        others = f"; other files there: {listed(self.others, 3)}" if self.others else ""
        return [
            f"{', '.join(found)}; {missing}{others}.",
            "Photos are matched by name: a_1.jpg and a_1_left.png both match image a_1.",
        ]


def match_images(folder: str | Path, ids: Iterable[str]) -> ImageMatch:
    """Find the files that belong to the images of a run, by name.

    A file matches an id if its path in the folder, without extension, is the id;
    or if it is the only file of that name in any folder; or the only one whose
    name is the id followed by a character that is not alphanumeric.

    Parameters
    ----------
    folder : str or path
        Searched with its subfolders.
    ids : iterable of str
        Ids as in :attr:`segiou.Run.ids`.

    Raises
    ------
    FileNotFoundError
        If the folder does not exist.
    """
    root = Path(folder).expanduser()
    if not root.is_dir():
        msg = f"{root} is not a folder. Pass the folder of the images"
        raise FileNotFoundError(msg)
    files = sorted(p for p in root.rglob("*") if p.suffix.lower() in _IMAGE_ENDINGS)
    by_key: dict[str, list[Path]] = defaultdict(list)
    by_name: dict[str, list[Path]] = defaultdict(list)
    by_beginning: dict[str, list[Path]] = defaultdict(list)
    for path in files:
        by_key[path.relative_to(root).with_suffix("").as_posix()].append(path)
        by_name[path.stem].append(path)
        for end in (i for i, letter in enumerate(path.stem) if not letter.isalnum()):
            by_beginning[path.stem[:end]].append(path)
    found, missing = {}, []
    for id in ids:
        name = id.rpartition("/")[2]
        candidates = by_key.get(id) or by_name.get(name) or by_beginning.get(name) or []
        if len(candidates) == 1:
            found[id] = candidates[0]
        else:
            missing.append(id)
    used = set(found.values())
    others = (path.relative_to(root).as_posix() for path in files if path not in used)
    return ImageMatch(str(folder), found, tuple(missing), tuple(others))


def read_image(path: Path, size: tuple[int, int]) -> Image.Image:
    """Read an image at a size (width, height)."""
    try:
        with Image.open(path) as image:
            # JPEG decodes at an eighth, a quarter or a half for almost nothing.
            image.draft("RGB", size)
            return image.convert("RGB").resize(size, Image.Resampling.LANCZOS)
    except (Image.DecompressionBombError, OSError, SyntaxError, ValueError) as error:
        msg = f"{path} cannot be shown: {error}"
        raise PictureError(msg) from error
