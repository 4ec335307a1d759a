"""Headers of NRRD and MetaImage files.

SimpleITK only parses the header: it decompresses slowly, and returns uninitialised memory for data
that it cannot decompress.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from segiou._support.files import os_problem
from segiou._support.optional import import_extra
from segiou.masks.raw_mask import MaskError

#: Whitespace that SimpleITK skips in headers.
_SPACE = " \t\r"
#: Bytes of the longest field of NRRD and MetaImage.
_LONGEST_FIELD = 500
#: MetaImage fields of voxels and geometry, and their number of values as a power of that of axes.
_GEOMETRY = {
    **dict.fromkeys(("NDims", "ElementType", "ElementNumberOfChannels"), 0),
    **dict.fromkeys(
        ("DimSize", "ElementSpacing", "ElementSize", "Offset", "Position", "Origin"), 1
    ),
    **dict.fromkeys(("TransformMatrix", "Rotation", "Orientation"), 2),
}
#: MetaImage fields that describe the data.
_DATA = {"BinaryData", "BinaryDataByteOrderMSB", "ElementByteOrderMSB", "HeaderSize"}
_DATA |= {"CompressedData", "CompressedDataSize", "ElementDataFile"}


class Segment(NamedTuple):
    """A segment of 3D Slicer: voxels with a value in a layer."""

    name: str
    value: int
    layer: int


class ItkParts(NamedTuple):
    """The header of a volume and its data, decompressed by zlib unless ``wbits`` is None."""

    image_io: str
    head: bytes
    is_big: bool
    content: bytes
    wbits: int | None
    segments: tuple[Segment, ...] = ()
    #: Number of layers, which are the first axis of the data; 0 without such an axis.
    layers: int = 0


#: Fields of NRRD with one value per axis.
_PER_AXIS = ("sizes", "space directions", "kinds", "spacings", "thicknesses")


def nrrd_parts(data: bytes, path: str | Path) -> ItkParts:
    """The parts of an NRRD file."""
    # The header of a detached file may end without an empty line.
    is_detached = str(path).lower().endswith(".nhdr")
    data += b"\n\n" if is_detached else b""
    header, start = _header_fields(data, data.find(b"\n") + 1, ":", "", path)
    fields = {name.lower(): value for name, value in header.items()}
    for line in data[:start].split(b"\n"):
        # SimpleITK crashes on longer lines, except comments and key-value pairs.
        if len(line) > _LONGEST_FIELD and not re.match(rb"#|[^:]*:=", line):
            raise MaskError(path, f"is corrupt: its header has a line of {len(line)} bytes")
    head, content = data[:start], data[start:]
    if names := [fields.pop(name) for name in ("data file", "datafile") if name in fields]:
        content = _read_neighbour(Path(path), names[0])
        head = re.sub(rb"(?im)^data ?file:[^\n]*\n", b"", head)
    if skipped := fields.keys() & {"line skip", "byte skip"}:
        problem = f"has {min(skipped)!r} in its header; save header and data as one plain file"
        raise MaskError(path, problem)
    segments = _segments(header, path)
    layers = 0
    if fields.get("kinds", "").split()[:1] == ["list"] and fields.get("dimension", "").isdigit():
        head, layers = _single_layer(head, fields, segments, path)
    placed = f"{fields.get('spacings', '')} {fields.get('space directions', '')}".lower()
    if unknown := re.search("nan|none", placed):
        problem = f"has an axis without a spacing ({unknown[0]}); save it with spacings"
        raise MaskError(path, problem)
    packing = fields.get("encoding", "").lower()
    if packing not in ("raw", "gz", "gzip"):
        problem = f"uses the encoding {packing!r}; save it with raw or gzip encoding"
        raise MaskError(path, problem)
    is_big = fields.get("endian", "").lower() == "big"
    wbits = None if packing == "raw" else 31
    return ItkParts(
        image_io="NrrdImageIO",
        head=head,
        is_big=is_big,
        content=content,
        wbits=wbits,
        segments=segments,
        layers=layers,
    )


def _segments(fields: Mapping[str, str], path: str | Path) -> tuple[Segment, ...]:
    """The segments that 3D Slicer writes as key-value pairs."""
    segments: dict[str, Segment] = {}
    for key in fields:
        if not re.fullmatch(r"Segment\d+_LabelValue", key):
            continue
        prefix = key.removesuffix("LabelValue")
        name, value, layer = (
            fields.get(f"{prefix}{what}", "").removeprefix("=").strip()
            for what in ("Name", "LabelValue", "Layer")
        )
        if name and re.fullmatch(r"\d{1,9}", value, re.A):
            number = int(layer) if re.fullmatch(r"\d{1,9}", layer, re.A) else 0
            segment = Segment(name, int(value), number)
            if segments.setdefault(name, segment) != segment:
                problem = f"has two segments named {name!r}; rename one of them"
                raise MaskError(path, problem)
    return tuple(segments.values())


def _single_layer(
    head: bytes, fields: dict[str, str], segments: Sequence[Segment], path: str | Path
) -> tuple[bytes, int]:
    """The header of one layer, of which 3D Slicer writes several if segments overlap."""
    sizes, axes = fields.get("sizes", "").split(), int(fields["dimension"])
    layers = int(sizes[0]) if sizes and sizes[0].isdigit() else 0
    if len(sizes) != axes or not layers or any(segment.layer >= layers for segment in segments):
        raise MaskError(path, f"is corrupt: its layers are not those of sizes {sizes}")
    fields["dimension"] = str(axes - 1)
    for name in _PER_AXIS:
        if name in fields:
            fields[name] = " ".join(fields[name].split()[1:])
    for name in ("dimension", *_PER_AXIS):
        if name in fields:
            line = rf"(?im)^({re.escape(name)}):[^\n]*$".encode()
            head = re.sub(line, rf"\1: {fields[name]}".encode("latin-1"), head)
    others = rb"(?im)^(?:center(?:ing)?s|units|labels|axis ?mins|axis ?maxs):[^\n]*\n"
    return re.sub(others, b"", head), layers


def metaimage_parts(data: bytes, path: str | Path) -> ItkParts:
    """The parts of a MetaImage file."""
    fields, start = _header_fields(data, 0, "=", "ElementDataFile", path)
    for field in fields:  # MetaIO also ends a name at a colon
        if field.partition(":")[0] in (_DATA | {*_GEOMETRY}) - {field}:
            raise MaskError(path, f"is corrupt: its header has the field {field[:40]!r}")
    geometry = _geometry_header(fields, path)
    name = fields["ElementDataFile"]
    content = (
        data[start:] if name in ("LOCAL", "Local", "local") else _read_neighbour(Path(path), name)
    )
    true = "T", "t", "1"  # first character
    if not fields.get("BinaryData", "True").startswith(true):
        raise MaskError(path, "stores its values as text; save it with BinaryData = True")
    if (skipped := fields.get("HeaderSize", "0")) not in ("0", "-1"):
        problem = f"skips {skipped[:20]} bytes before its data (HeaderSize); save it again"
        raise MaskError(path, problem)
    msb = fields.get("BinaryDataByteOrderMSB", fields.get("ElementByteOrderMSB", "False"))
    is_packed = fields.get("CompressedData", "False").startswith(true)
    size = fields.get("CompressedDataSize", "")
    if is_packed and size not in ("", str(len(content))):
        problem = f"is corrupt: it declares {size[:20]} compressed bytes, found {len(content)}"
        raise MaskError(path, problem)
    wbits = 47 if is_packed else None
    return ItkParts("MetaImageIO", geometry, msb.startswith(true), content, wbits)


def _geometry_header(fields: dict[str, str], path: str | Path) -> bytes:
    """A MetaImage header with geometry fields only; others may crash SimpleITK."""
    axes = int(fields["NDims"]) if fields.get("NDims", "") in set("12345") else 0
    kept = {name: fields[name] for name in _GEOMETRY if name in fields}
    for name, value in kept.items():
        is_text = len(value) <= _LONGEST_FIELD and re.fullmatch(r"[!-~ \t]*", value)
        if not (axes and is_text and len(value.split()) == axes ** _GEOMETRY[name]):
            raise MaskError(path, f"is corrupt: its header has {name} = {value[:40]!r}")
    kept["ElementDataFile"] = "LOCAL"
    return "".join(f"{name} = {value}\n" for name, value in kept.items()).encode("latin-1")


def _header_fields(
    data: bytes, at: int, mark: str, last: str, path: str | Path
) -> tuple[dict[str, str], int]:
    """The fields of a header from an offset on, and the offset of its end."""
    fields: dict[str, str] = {}
    while last not in fields:
        end = data.find(b"\n", at, at + (1 << 16))
        if end < 0:
            raise MaskError(path, "is corrupt: its header has no end")
        line = data[at:end].decode("latin-1").strip(_SPACE)
        name, separator, value = line.partition(mark)
        if line and not separator and line[0] != "#":
            problem = f"is corrupt: its header has a line without {mark!r}: {line[:40]!r}"
            raise MaskError(path, problem)
        name = name.strip(_SPACE)
        if "\0" in name:  # where MetaIO would end it
            raise MaskError(path, f"is corrupt: its header has the field {name[:40]!r}")
        if mark == "=" and name in fields:
            raise MaskError(path, f"is corrupt: its header has {name[:40]!r} twice")
        fields[name] = value.strip(_SPACE)
        at = end + 1
    return fields, at


def _read_neighbour(path: Path, name: str) -> bytes:
    if Path(name).name != name or name in ("", "LIST") or "\0" in name:
        raise MaskError(path, f"has its data in {name!r}; expected one file in the same folder")
    try:
        return path.with_name(name).read_bytes()
    except OSError as error:
        raise MaskError(path, f"has its data in {name!r}, which {os_problem(error)}") from error


@lru_cache(maxsize=16)
def itk_header(
    image_io: str, head: bytes
) -> tuple[tuple[int, ...], int, np.dtype[Any], NDArray[np.float64], tuple[float, ...]]:
    """Shape, values per voxel, their type, affine and spacing, from a header."""
    itk = needed_library("SimpleITK")
    reader = itk.ImageFileReader()
    reader.SetImageIO(image_io)
    with TemporaryDirectory(prefix="segiou-") as folder:
        # SimpleITK cannot read from memory.
        file = Path(folder) / ("volume.nrrd" if image_io == "NrrdImageIO" else "volume.mha")
        file.write_bytes(head)
        reader.SetFileName(str(file))
        reader.ReadImageInformation()
    dtype = itk.GetArrayViewFromImage(itk.Image([1, 1], reader.GetPixelID())).dtype
    axes = reader.GetDimension()
    direction = np.array(reader.GetDirection()).reshape(axes, axes)
    used = min(axes, 3)
    affine = np.eye(4)
    affine[:used, :used] = (direction * np.array(reader.GetSpacing()))[:used, :used]
    affine[:used, 3] = np.array(reader.GetOrigin())[:used]
    # ITK uses LPS, NIfTI RAS.
    affine = np.asarray(np.diag([-1.0, -1.0, 1.0, 1.0]) @ affine)
    shape, components = tuple(map(int, reader.GetSize())), reader.GetNumberOfComponents()
    return shape, components, dtype, affine, tuple(reader.GetSpacing())


def needed_library(name: str) -> Any:
    """A library for volumes; ImportError if it is not installed."""
    return import_extra(name, f"volumes need {name}", "volumes")
