"""Label sets from the files of other tools."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from segiou._support.files import read_json, read_text
from segiou.labels.label_set import MOST_VALUE, LabelClass, LabelSet

#: What MMSegmentation and Hugging Face ignore where nothing else is said.
_IGNORED = 255
_FORMS = (
    "'labels' (nnU-Net's dataset.json), 'categories' (COCO), 'id2label' (Hugging Face's "
    "config.json) or 'classes' (MMSegmentation's METAINFO, Supervisely's meta.json); of masks "
    "and drawn shapes, segiou inspect FILE --propose LABELS.toml makes one"
)
_RASTERS = (".tif", ".tiff", ".img", ".vrt")
#: What a column of GDAL's attribute table is used for, by number.
_USES = {"1": "count", "2": "name", "3": "least", "4": "most", "5": "value"}
_USES |= {"6": "red", "7": "green", "8": "blue"}


def read_label_file(path: Path) -> LabelSet:
    """Read a label set from a TOML file, or from a file of another tool.

    Raises
    ------
    ValueError
        If it is of no form that is known, or its classes do not fit together.
    """
    kind = path.suffix.lower()
    if kind not in (".json", ".txt", ".xml", *_RASTERS):
        return LabelSet.from_toml(path)
    try:
        if kind == ".json":
            return _of_json(read_json(path), path)
        return _of_labelmap(path) if kind == ".txt" else _of_gdal(path)
    except (TypeError, ValueError) as error:
        text = str(error).removeprefix(f"{path}: ")
        msg = f"{path}: {text}"
        raise ValueError(msg) from error


def _of_json(found: Any, path: Path) -> LabelSet:
    if isinstance(found, list) and found and all(isinstance(entry, dict) for entry in found):
        return _of_coco(found, path, False)
    description = found if isinstance(found, dict) else {}
    if (labels := description.get("labels")) and isinstance(labels, dict):
        return _of_nnunet(labels, path, description.get("name"))
    if isinstance(categories := description.get("categories"), list):
        annotations = description.get("annotations")
        first = annotations[:1] if isinstance(annotations, list) else []
        return _of_coco(categories, path, any("segmentation" in entry for entry in first))
    if isinstance(names := description.get("id2label"), dict):
        ignore = description.get("semantic_loss_ignore_index", _IGNORED)
        return _of_id2label(names, path, ignore)
    if isinstance(classes := description.get("classes"), list):
        if any(isinstance(entry, dict) for entry in classes):
            return _of_supervisely(classes, path)
        return _of_metainfo(classes, description.get("palette"), path)
    if description and all(key.isdecimal() for key in description):
        return _of_id2label(description, path, _IGNORED)
    msg = f"is no label file; a JSON file needs {_FORMS}"
    raise ValueError(msg)


def _of_coco(categories: Sequence[Any], path: Path, of_objects: bool) -> LabelSet:
    """COCO's categories; the background that annotations of objects leave out is a class."""
    classes = []
    for i, entry in enumerate(categories):
        id, name = (entry.get(key) if isinstance(entry, dict) else None for key in ("id", "name"))
        if type(id) is not int or not isinstance(name, str):
            msg = f"category {i} must have an 'id', an integer, and a 'name', not {entry!r:.80}"
            raise ValueError(msg)
        color = entry.get("color")
        colors: Any = (color,) if isinstance(color, list) else ()
        classes.append(LabelClass(name, (id,), colors))
    free = next(v for v in (0, 255, 65535, -1) if all((v,) != c.values for c in classes))
    covers = any("isthing" in entry for entry in categories) or not of_objects
    if covers or "background" in {c.name for c in classes}:
        return LabelSet(path.stem, tuple(classes), ignore=(free,), source="COCO categories")
    background = LabelClass("background", (free,))
    return LabelSet(path.stem, (background, *classes), source="COCO categories")


def _of_id2label(names: Mapping[str, Any], path: Path, ignore: Any) -> LabelSet:
    for value, name in names.items():
        if not re.fullmatch("[0-9]{1,9}", value) or not isinstance(name, str):
            msg = f"id2label must have names by number, not {value!r:.40}: {name!r:.40}"
            raise ValueError(msg)
    classes = [LabelClass(name, (int(value),)) for value, name in names.items()]
    classes.sort(key=lambda one: one.values)
    given = (ignore,) if type(ignore) is int else ()
    ignored = tuple(value for value in given if all((value,) != c.values for c in classes))
    name = path.resolve().parent.name or path.stem
    return LabelSet(name, tuple(classes), ignore=ignored, source="Hugging Face id2label")


def _of_metainfo(names: Sequence[Any], palette: Any, path: Path) -> LabelSet:
    if palette is not None and (not isinstance(palette, list) or len(palette) != len(names)):
        msg = f"'palette' must have a colour for each of the {len(names)} classes"
        raise ValueError(msg)
    colors: list[Any] = [(color,) for color in palette] if palette else [()] * len(names)
    classes = tuple(
        LabelClass(n, (i,), c) for i, (n, c) in enumerate(zip(names, colors, strict=True))
    )
    ignore = (_IGNORED,) if len(classes) <= _IGNORED else ()
    return LabelSet(path.stem, classes, ignore=ignore, source="MMSegmentation METAINFO")


def _of_supervisely(classes: Sequence[Any], path: Path) -> LabelSet:
    """Classes of a project of Supervisely, which have no values: 1, 2, … after the background."""
    for i, entry in enumerate(classes):
        if not isinstance(entry, dict) or not isinstance(entry.get("title"), str):
            msg = f"class {i} must have a 'title', not {entry!r:.80}"
            raise ValueError(msg)
    named = {entry["title"]: entry.get("color") for entry in classes}
    every = [{"name": "background", "values": [0]}] * ("background" not in named)
    colors = Counter(named.values())
    for title, color in named.items():
        known = [color] if color and colors[color] == 1 else []
        every.append({"name": title, "values": [len(every)], "colors": known})
    description = {"name": path.resolve().parent.name, "classes": every}
    return LabelSet.from_dict({**description, "source": f"Supervisely, {path.name}"})


def _of_labelmap(path: Path) -> LabelSet:
    """CVAT's and Datumaro's labelmap.txt: a line is ``name:red,green,blue:parts:actions``."""
    classes: list[LabelClass] = []
    for number, line in enumerate(map(str.strip, read_text(path).splitlines()), 1):
        if not line or line.startswith("#"):
            continue
        fields = line.rsplit(":", 3)
        parts = fields[1].split(",") if len(fields) == 4 else ["?"]
        if parts != [""] and not (len(parts) == 3 and all(p.strip().isdecimal() for p in parts)):
            msg = f"line {number} is {line!r:.80}, and not name:red,green,blue:parts:actions"
            raise ValueError(msg)
        colors: Any = (tuple(int(p[:9]) for p in parts),) if parts != [""] else ()
        classes.append(LabelClass(fields[0], (len(classes),), colors))
    return LabelSet(path.resolve().parent.name or path.stem, tuple(classes), source="labelmap.txt")


def _of_gdal(path: Path) -> LabelSet:
    """Names and colours of a raster as GDAL keeps them, in its TIFF or beside it."""
    from xml.etree import ElementTree

    kind = path.suffix.lower()
    is_tiff = kind in (".tif", ".tiff")
    text, colors, nodata = _of_tiff(path) if is_tiff else ("", [], None)
    xml = path if kind in (".xml", ".vrt") else Path(f"{path}.aux.xml")
    texts = [read_text(xml), text] if xml.is_file() or not is_tiff else [text]
    root = ElementTree.Element("all")
    root.extend([_xml_of(text) for text in texts if text])
    entries = root.iterfind(".//ColorTable/Entry")
    colors = colors or [tuple(int(entry.get(f"c{i}", 0)) for i in (1, 2, 3)) for entry in entries]
    names = [entry.text or "" for entry in root.iterfind(".//CategoryNames/Category")]
    # A table has 256 colours; those that nobody has set are black.
    set_values = [v for v, rgb in enumerate(colors) if v != nodata and (any(rgb) or v == 0)]
    classes = (
        list(_of_attributes(root))
        or list(_colored(dict(enumerate(names)), colors))
        or list(_colored({value: f"value {value}" for value in set_values}, colors))
    )
    if not classes:
        msg = "names no classes: it has no category names, attribute table with names or colours"
        raise ValueError(msg)
    ignored = () if nodata is None or any(nodata in c.values for c in classes) else (nodata,)
    name = path.name.split(".")[0]
    return LabelSet(name, tuple(classes), ignore=ignored, source=f"GDAL, {path.name}")


def _of_tiff(path: Path) -> tuple[str, list[Any], int | None]:
    """What GDAL has written into a TIFF: metadata as XML, the colour table, the no-data value."""
    import tifffile

    try:
        with tifffile.TiffFile(path) as file:
            page: Any = file.pages.first
            colors = [] if page.colormap is None else (page.colormap.T >> 8).tolist()
            nodata = float(page.tags.valueof(42113) or "nan")
            text = page.tags.valueof(42112) or ""
    except Exception as error:
        msg = f"cannot be read as a TIFF: {error}"
        raise ValueError(msg) from error
    known = int(nodata) if nodata.is_integer() and abs(nodata) < MOST_VALUE else None
    return str(text), [tuple(rgb) for rgb in colors], known


def _colored(names: Mapping[int, str], colors: Sequence[tuple[int, ...]]) -> Iterator[LabelClass]:
    """Classes by value with the colours of a table, each colour once."""
    used: set[tuple[int, ...]] = set()
    for value, name in names.items():
        if name:
            own: Any = set(colors[value : value + 1]) - used
            used |= own
            yield LabelClass(name, (value,), tuple(own))


def _xml_of(text: str) -> Any:
    from xml.etree import ElementTree

    if "<!" in text.replace("<!--", ""):
        msg = "its XML declares entities, which GDAL never does"
        raise ValueError(msg)
    try:
        return ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        msg = f"is no XML: {error}"
        raise ValueError(msg) from error


def _of_attributes(root: Any) -> Iterator[LabelClass]:
    """Classes of a raster's attribute table; the row is the value where no column gives it."""
    table = root.find(".//GDALRasterAttributeTable")
    if table is None:
        return
    columns = [_USES.get(field.findtext("Usage", ""), "") for field in table.iterfind("FieldDefn")]
    if "name" not in columns:
        return
    for row in table.iterfind("Row"):
        cells = dict(zip(columns, [cell.text or "" for cell in row.iterfind("F")], strict=False))
        value = cells.get("value") or cells.get("least") or row.get("index", "")
        try:
            rgb: Any = [int(cells[part]) for part in ("red", "green", "blue") if cells.get(part)]
            known = LabelClass(cells["name"], (int(float(value)),), (tuple(rgb),) if rgb else ())
        except (ValueError, KeyError, OverflowError) as error:
            msg = f"row {row.get('index')} of its attribute table: {error}"
            raise ValueError(msg) from error
        if known.name:
            yield known


def _of_nnunet(labels: Mapping[str, Any], path: Path, title: Any) -> LabelSet:
    """Labels of nnU-Net: names with a value, or with several, which are regions.

    Values that occur in regions only become classes named after their number.
    """
    values = {label: _label_values(label, given) for label, given in labels.items()}
    ignored = values.pop("ignore", ())
    single = {found[0]: label for label, found in values.items() if len(found) == 1}
    every = sorted({value for found in values.values() for value in found})
    names = {value: single.get(value, f"label {value}") for value in every}
    has_regions = any(isinstance(given, list) for given in labels.values())
    groups = {
        label: tuple(names[value] for value in found)
        for label, found in values.items()
        if has_regions and found != (0,)
    }
    classes = tuple(LabelClass(names[value], (value,)) for value in every)
    name, source = str(title or path.resolve().parent.name), f"nnU-Net, {path.name}"
    return LabelSet(name, classes, ignore=ignored, groups=groups, source=source)


def _label_values(label: str, given: Any) -> tuple[int, ...]:
    several = given if isinstance(given, list) else [given]
    if not several or not all(isinstance(v, int) and not isinstance(v, bool) for v in several):
        msg = f"label {label!r} must have an integer, or a list of them, not {given!r}"
        raise ValueError(msg)
    return tuple(several)
