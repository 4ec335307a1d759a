"""Label sets from files of other tools."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

from segiou._support.files import read_json, read_text
from segiou._support.optional import import_extra
from segiou._support.table_files import read_rows
from segiou.labels.label_set import (
    MOST_VALUE,
    ONE_CLASS,
    VOID_VALUES,
    LabelClass,
    LabelSet,
    background_of,
)

#: Default ignored value of MMSegmentation and Hugging Face.
_IGNORED = 255
_FORMS = (
    "'labels' (nnU-Net's dataset.json), 'categories' (COCO), 'id2label' (Hugging Face's "
    "config.json), 'classes' (MMSegmentation's METAINFO, Supervisely's meta.json) or a list of "
    "'labels' with names (Mapillary's config.json); for masks "
    "and drawn shapes, run segiou inspect FILE --propose LABELS.toml"
)
#: A line with the value and the name of a class.
_NUMBERED = re.compile(r"(\d{1,9})[\s,;]+(\D.*)")
#: Column headers of names, values and colours.
_COLUMNS = (
    ("name", "class", "class_name", "label"),
    ("pixel_value", "value", "id", "index"),
    *(("r", "red"), ("g", "green"), ("b", "blue")),
)
#: Targets of Ultralytics that ignore a value.
_DROPPED = ("ignore_label", None, _IGNORED)
#: Column usages of GDAL's attribute tables, by number.
_USES = {"1": "count", "2": "name", "3": "least", "4": "most", "5": "value"}
_USES |= {"6": "red", "7": "green", "8": "blue"}


def read_label_file(path: Path) -> LabelSet:
    """Read a label set from a TOML file, or from a file of another tool."""
    if (read := READERS.get(path.suffix.lower())) is None:
        return LabelSet.from_toml(path)
    try:
        return read(path)
    except (TypeError, ValueError) as error:
        text = str(error).removeprefix(f"{path}: ")
        msg = f"{path}: {text}"
        raise ValueError(msg) from error


def _of_json(path: Path) -> LabelSet:
    content = read_json(path)
    if isinstance(content, list) and content and all(isinstance(entry, dict) for entry in content):
        return _of_coco(content, path, False)
    description = content if isinstance(content, dict) else {}
    if (labels := description.get("labels")) and isinstance(labels, dict):
        return _of_nnunet(labels, path, description.get("name"))
    if isinstance(labels, list) and labels and all(isinstance(entry, dict) for entry in labels):
        return _of_mapillary(labels, path)
    if isinstance(categories := description.get("categories"), list):
        annotations = description.get("annotations")
        first = annotations[:1] if isinstance(annotations, list) else []
        return _of_coco(categories, path, any("segmentation" in entry for entry in first))
    if isinstance(names := description.get("id2label"), dict):
        ignore = description.get("semantic_loss_ignore_index", _IGNORED)
        return of_id2label(names, _title(path), ignore)
    if isinstance(classes := description.get("classes"), list):
        if any(isinstance(entry, dict) for entry in classes):
            return _of_supervisely(classes, path)
        return _of_metainfo(classes, description.get("palette"), path)
    if description and all(key.isdecimal() for key in description):
        return of_id2label(description, _title(path))
    msg = f"is not a label file; expected {_FORMS}"
    raise ValueError(msg)


#: Name, value, and colour (or None) of a class.
Row = tuple[str, int, Any]


def _label_set(name: str, rows: Sequence[Row], source: str, ignore: int | None = None) -> LabelSet:
    """The label set of these classes; ``ignore`` is dropped if it is the value of a class."""
    classes = tuple(
        LabelClass(name, (value,), () if color is None else (color,)) for name, value, color in rows
    )
    ignored = () if ignore is None or any(ignore in c.values for c in classes) else (ignore,)
    return LabelSet(name, classes, ignore=ignored, source=source)


def _of_coco(categories: Sequence[Any], path: Path, of_objects: bool) -> LabelSet:
    """COCO's categories, with a background class for object annotations."""
    rows: list[Row] = []
    for i, entry in enumerate(categories):
        id, name = (entry.get(key) if isinstance(entry, dict) else None for key in ("id", "name"))
        if type(id) is not int or not isinstance(name, str):
            msg = f"category {i} must have an integer 'id' and a 'name', got {entry!r:.80}"
            raise ValueError(msg)
        color = entry.get("color")
        rows.append((name, id, color if isinstance(color, list) else None))
    names, values = {row[0] for row in rows}, {row[1] for row in rows}
    free = next(value for value in VOID_VALUES if value not in values)
    covers = any("isthing" in entry for entry in categories) or not of_objects
    if covers or background_of(names):
        return _label_set(path.stem, rows, "COCO categories", free)
    return _label_set(path.stem, [("background", free, None), *rows], "COCO categories")


def _title(path: Path) -> str:
    """Name of the label set of a file with a general name: that of its folder."""
    return path.resolve().parent.name or path.stem


def of_id2label(names: Mapping[Any, Any], title: str, ignore: Any = _IGNORED) -> LabelSet:
    """The label set of a mapping from numbers, or their text, to names."""
    rows: list[Row] = []
    for value, name in names.items():
        if not re.fullmatch("[0-9]{1,9}", str(value)) or not isinstance(name, str):
            msg = f"id2label must map numbers to names, got {value!r:.40}: {name!r:.40}"
            raise ValueError(msg)
        rows.append((name, int(value), None))
    ignored = ignore if type(ignore) is int else None
    return _label_set(title, sorted(rows, key=itemgetter(1)), "Hugging Face id2label", ignored)


def _of_metainfo(names: Sequence[Any], palette: Any, path: Path) -> LabelSet:
    if palette is not None and (not isinstance(palette, list) or len(palette) != len(names)):
        msg = f"'palette' must have one colour per class ({len(names)})"
        raise ValueError(msg)
    rows = list(zip(names, range(len(names)), palette or [None] * len(names), strict=True))
    return _label_set(path.stem, rows, "MMSegmentation METAINFO", _IGNORED)


def _check_named(entries: Sequence[Any], key: str, what: str) -> None:
    for i, entry in enumerate(entries):
        if not isinstance(entry, dict) or not isinstance(entry.get(key), str):
            msg = f"{what} {i} must have a {key!r}, got {entry!r:.80}"
            raise ValueError(msg)


def _of_supervisely(classes: Sequence[Any], path: Path) -> LabelSet:
    """Classes of a Supervisely project, numbered 1, 2, … after the background."""
    _check_named(classes, "title", "class")
    colors = {entry["title"]: entry.get("color") or None for entry in classes}
    count = Counter(colors.values())
    known = {title: color if count[color] == 1 else None for title, color in colors.items()}
    background = {} if background_of(known) else {"background": None}
    rows = [(title, i, color) for i, (title, color) in enumerate((background | known).items())]
    return _label_set(path.resolve().parent.name, rows, f"Supervisely, {path.name}")


def _of_mapillary(labels: Sequence[Any], path: Path) -> LabelSet:
    """config.json of Mapillary Vistas; labels that are not evaluated are ignored."""
    _check_named(labels, "name", "label")
    readable = [entry.get("readable") for entry in labels]
    distinct = all(isinstance(n, str) for n in readable) and len({*readable}) == len(labels)
    classes, ignored, colors = [], [], []
    for i, entry in enumerate(labels):
        color = [entry["color"]] if isinstance(entry.get("color"), list) else []
        if entry.get("evaluate") is False:
            ignored.append(i)
            colors += color
        else:
            name = entry["readable" if distinct else "name"]
            classes.append(LabelClass(name, (i,), tuple(color)))
    options: Any = {"ignore": ignored, "ignore_colors": colors, "source": f"Mapillary, {path.name}"}
    return LabelSet(_title(path), tuple(classes), **options)


def _of_text(path: Path) -> LabelSet:
    """Names of classes, one per line, or the labelmap.txt of CVAT and Datumaro."""
    lines = [(n, line.strip()) for n, line in enumerate(read_text(path).splitlines(), 1)]
    lines = [(n, line) for n, line in lines if line and not line.startswith("#")]
    if any(":" in line for _, line in lines):
        return _of_labelmap(lines, path)
    names = [line for _, line in lines]
    numbered = [_NUMBERED.fullmatch(name) for name in names]
    rows = [(m[2], int(m[1]), None) for m in numbered if m]
    if len(rows) < len(names):
        # LabelMe's labels.txt begins with the ignored label.
        names = names[names[:1] == ["__ignore__"] :]
        rows = [(name, value, None) for value, name in enumerate(names)]
    if not rows:
        msg = "has no class names; expected one per line"
        raise ValueError(msg)
    ignored = _IGNORED if "__ignore__" in [line for _, line in lines[:1]] else None
    return _label_set(_title(path), rows, path.name, ignored)


def _of_labelmap(lines: Sequence[tuple[int, str]], path: Path) -> LabelSet:
    """Lines ``name:red,green,blue:parts:actions``."""
    rows: list[Row] = []
    for number, line in lines:
        fields = line.rsplit(":", 3)
        parts = fields[1].split(",") if len(fields) == 4 else ["?"]
        if parts != [""] and not (len(parts) == 3 and all(p.strip().isdecimal() for p in parts)):
            msg = f"line {number}: expected name:red,green,blue:parts:actions, got {line!r:.80}"
            raise ValueError(msg)
        color = None if parts == [""] else tuple(int(part[:9]) for part in parts)
        rows.append((fields[0], len(rows), color))
    return _label_set(_title(path), rows, "labelmap.txt")


def _of_table(path: Path) -> LabelSet:
    """A CSV file of classes, such as Roboflow's _classes.csv and class_dict.csv."""
    table = read_rows(path, [])
    columns = {str(head).strip().lower().replace(" ", "_"): head for head in (table or [{}])[0]}
    name, value, *rgb = (
        next((columns[key] for key in keys if key in columns), None) for keys in _COLUMNS
    )
    if name is None or (value is None and None in rgb):
        heads = ", ".join(map(repr, columns)) or "none"
        msg = f"expected columns name and value, or name, r, g and b; found {heads}"
        raise ValueError(msg)
    rows: list[Row] = []
    for number, row in enumerate(table):
        try:
            color = None if None in rgb else tuple(int(row[head]) for head in rgb if head)
            class_value = number if value is None else int(row[value])
        except (TypeError, ValueError) as error:
            msg = f"row {number + 2}: expected integers, got {[*row.values()]!r:.80}"
            raise ValueError(msg) from error
        rows.append((row[name].strip(), class_value, color))
    return _label_set(_title(path), rows, path.name)


def _of_yolo(path: Path) -> LabelSet:
    """data.yaml of Ultralytics: the classes of its masks, or of its polygons and the background."""
    yaml = import_extra("yaml", f"{path}: reading YAML needs PyYAML", "yaml")
    try:
        data = yaml.safe_load(read_text(path))
    except yaml.YAMLError as error:
        msg = f"is not valid YAML: {error}"
        raise ValueError(msg) from error
    listed = data.get("names") if isinstance(data, dict) else None
    named = dict(enumerate(listed)) if isinstance(listed, list) else listed
    if not isinstance(named, dict) or not named or sorted(named) != [*range(len(named))]:
        msg = f"expected 'names', a list or a mapping from 0, 1, …, got {listed!r:.80}"
        raise ValueError(msg)
    names = [str(named[i]) for i in range(len(named))]
    mapping = data.get("label_mapping") or {}
    source = f"Ultralytics, {path.name}"
    if len(names) == 1:
        names, source = ["background", *names], f"{ONE_CLASS}, {path.name}"
    elif not (mapping or data.get("masks_dir") or background_of(names)):
        names.append("background")  # of pixels outside all polygons
    classes, ignored = _mapped(mapping, len(names), data.get("ignore", _IGNORED))
    several = tuple(LabelClass(n, tuple(v)) for n, v in zip(names, classes, strict=True))
    return LabelSet(_title(path), several, ignore=tuple(ignored), source=source)


def _mapped(mapping: Any, number: int, ignore: Any) -> tuple[list[list[int]], list[int]]:
    """Mask values of each class and ignored ones; unmapped values keep their own class."""
    if not isinstance(mapping, dict):
        msg = f"'label_mapping' must map values to classes, got {mapping!r:.80}"
        raise ValueError(msg)
    ignored = [ignore] if type(ignore) is int else [*(ignore or ())]
    targets: dict[Any, Any] = {
        int(v): _IGNORED if t in _DROPPED else int(t) for v, t in mapping.items()
    }
    unmapped = [value for value in range(number) if value not in targets]
    for value, target in targets.items():
        if target == _IGNORED:
            ignored.append(value)
        elif not 0 <= target < number:
            msg = f"'label_mapping' maps {value} to {target}, which is not one of {number} classes"
            raise ValueError(msg)
    targets |= dict(zip(unmapped, unmapped, strict=True))
    classes = [[v for v, target in targets.items() if target == c] for c in range(number)]
    taken = {value for values in classes for value in values}
    if empty := [c for c, values in enumerate(classes) if not values]:
        msg = f"'label_mapping' leaves class {empty[0]} without a value"
        raise ValueError(msg)
    return classes, [value for value in dict.fromkeys(ignored) if value not in taken]


def _of_gdal(path: Path) -> LabelSet:
    """Names and colours of a raster, which GDAL stores in the TIFF or next to it."""
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
    names = enumerate(entry.text or "" for entry in root.iterfind(".//CategoryNames/Category"))
    # A table has 256 colours; unset ones are black.
    set_values = [v for v, rgb in enumerate(colors) if v != nodata and (any(rgb) or v == 0)]
    rows = (
        list(_of_attributes(root))
        or _colored([(value, name) for value, name in names if name], colors)
        or _colored([(value, f"value {value}") for value in set_values], colors)
    )
    if not rows:
        msg = "has no classes: expected category names, an attribute table with names, or colours"
        raise ValueError(msg)
    return _label_set(path.name.split(".")[0], rows, f"GDAL, {path.name}", nodata)


def _of_tiff(path: Path) -> tuple[str, list[Any], int | None]:
    """GDAL's metadata XML, colour table and nodata value of a TIFF."""
    import tifffile

    try:
        with tifffile.TiffFile(path) as file:
            page: Any = file.pages.first
            colors = [] if page.colormap is None else (page.colormap.T >> 8).tolist()
            nodata = float(page.tags.valueof(42113) or "nan")
            text = page.tags.valueof(42112) or ""
    except Exception as error:
        text = f": {error}" if isinstance(error, (OSError, ValueError)) else ""
        msg = f"cannot be read as a TIFF{text}"
        raise ValueError(msg) from error
    known = int(nodata) if nodata.is_integer() and abs(nodata) < MOST_VALUE else None
    return str(text), [tuple(rgb) for rgb in colors], known


def _colored(names: Sequence[tuple[int, str]], colors: Sequence[tuple[int, ...]]) -> list[Row]:
    """Classes with the colours of a table; a repeated colour belongs to its first class."""
    rows = [(name, v, colors[v] if v < len(colors) else None) for v, name in names]
    first = {color: value for _, value, color in reversed(rows)}
    return [(name, v, color if first[color] == v else None) for name, v, color in rows]


def _xml_of(text: str) -> Any:
    from xml.etree import ElementTree

    if "<!" in text.replace("<!--", ""):
        msg = "its XML declares entities, which are not supported"
        raise ValueError(msg)
    try:
        return ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        msg = f"is not XML: {error}"
        raise ValueError(msg) from error


def _of_attributes(root: Any) -> Iterator[Row]:
    """Classes of a raster's attribute table; without a value column, rows number them."""
    table = root.find(".//GDALRasterAttributeTable")
    fields = [] if table is None else table.iterfind("FieldDefn")
    columns = [_USES.get(field.findtext("Usage", ""), "") for field in fields]
    for row in table.iterfind("Row") if "name" in columns else ():
        cells = dict(zip(columns, [cell.text or "" for cell in row.iterfind("F")], strict=False))
        value = cells.get("value") or cells.get("least") or row.get("index", "")
        try:
            rgb = [int(cells[part]) for part in ("red", "green", "blue") if cells.get(part)]
            if cells["name"]:
                yield cells["name"], int(float(value)), rgb or None
        except (ValueError, KeyError, OverflowError) as error:
            msg = f"row {row.get('index')} of its attribute table: {error}"
            raise ValueError(msg) from error


def _of_nnunet(labels: Mapping[str, Any], path: Path, title: Any) -> LabelSet:
    """nnU-Net labels: names with one value, or with several, which are regions.

    Values that only occur in regions become classes named after their number. As in nnU-Net, a
    list of one value is a region if another label has several values. nnU-Net v1 and the
    Medical Segmentation Decathlon map values to names instead.
    """
    if all(value.isdecimal() and isinstance(name, str) for value, name in labels.items()):
        named = {str(name): int(value) for value, name in labels.items()}
        labels = named if len(named) == len(labels) else labels
    values = {label: _label_values(label, value) for label, value in labels.items()}
    ignored = values.pop("ignore", ())
    has_regions = any(len(several) > 1 for several in values.values())
    single = {
        several[0]: label
        for label, several in values.items()
        if not (has_regions and isinstance(labels[label], list))
    }
    every = sorted({value for several in values.values() for value in several})
    names = {value: single.get(value, f"label {value}") for value in every}
    groups = {
        label: tuple(names[value] for value in several)
        for label, several in values.items()
        if has_regions and several != (0,)
    }
    classes = tuple(LabelClass(names[value], (value,)) for value in every)
    name, source = str(title or path.resolve().parent.name), f"nnU-Net, {path.name}"
    return LabelSet(name, classes, ignore=ignored, groups=groups, source=source)


def _label_values(label: str, value: Any) -> tuple[int, ...]:
    several = value if isinstance(value, list) else [value]
    if not several or not all(isinstance(v, int) and not isinstance(v, bool) for v in several):
        msg = f"label {label!r} must have an integer or a list of integers, got {value!r}"
        raise ValueError(msg)
    return tuple(several)


#: The reader of each extension; other files are TOML.
READERS: dict[str, Callable[[Path], LabelSet]] = {
    ".json": _of_json,
    **dict.fromkeys((".txt", ".names"), _of_text),
    ".csv": _of_table,
    **dict.fromkeys((".yaml", ".yml"), _of_yolo),
    **dict.fromkeys((".xml", ".tif", ".tiff", ".img", ".vrt"), _of_gdal),
}
