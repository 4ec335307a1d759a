"""Label sets from files of other tools."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

from segiou._support.files import is_file, read_json, read_text
from segiou._support.numbers import integer_in, is_digits, number_in
from segiou._support.optional import import_extra
from segiou._support.table_files import read_rows
from segiou.labels.class_lines import IGNORED, Row, folder_title, label_set_of, read_lines
from segiou.labels.label_set import (
    MOST_VALUE,
    ONE_CLASS,
    VOID_VALUES,
    LabelClass,
    LabelSet,
    background_of,
)

_FORMS = (
    "'labels' (nnU-Net's dataset.json), 'categories' (COCO), 'id2label' (Hugging Face's "
    "config.json), 'classes' (MMSegmentation's METAINFO, Supervisely's meta.json) or a list of "
    "'labels' with names (Mapillary's config.json); for masks "
    "and drawn shapes, run segiou inspect FILE --propose LABELS.toml"
)
#: Column headers of names, values and colours.
_COLUMNS = (
    ("name", "class", "class_name", "label"),
    ("pixel_value", "value", "id", "index", "label_key"),
    *(("r", "red"), ("g", "green"), ("b", "blue")),
    ("hex",),
)
#: ScanNet's table: each of its objects has a number and a class of NYU40.
_SCANNET = ("id", "nyu40id", "nyu40class")
#: Targets of Ultralytics that ignore a value.
_DROPPED = ("ignore_label", None, IGNORED)
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


def _json_labels(path: Path) -> LabelSet:
    content = read_json(path)
    if isinstance(content, list) and content and all(isinstance(entry, dict) for entry in content):
        return _coco_labels(content, path, False)
    description = content if isinstance(content, dict) else {}
    if (labels := description.get("labels")) and isinstance(labels, dict):
        return _nnunet_labels(labels, path, description.get("name"))
    if isinstance(labels, list) and labels and all(isinstance(entry, dict) for entry in labels):
        return _mapillary_labels(labels, path)
    if isinstance(categories := description.get("categories"), list):
        annotations = description.get("annotations")
        first = annotations[:1] if isinstance(annotations, list) else []
        return _coco_labels(categories, path, any("segmentation" in entry for entry in first))
    if isinstance(names := description.get("id2label"), dict):
        ignore = description.get("semantic_loss_ignore_index", IGNORED)
        return id2label_labels(names, folder_title(path), ignore)
    if isinstance(classes := description.get("classes"), list):
        if any(isinstance(entry, dict) for entry in classes):
            return _supervisely_labels(classes, path)
        return _metainfo_labels(classes, description.get("palette"), path)
    if description and all(is_digits(key) for key in description):
        return id2label_labels(description, folder_title(path))
    msg = f"is not a label file; expected {_FORMS}"
    raise ValueError(msg)


def _coco_labels(categories: Sequence[Any], path: Path, of_objects: bool) -> LabelSet:
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
        return label_set_of(path.stem, rows, "COCO categories", free)
    return label_set_of(path.stem, [("background", free, None), *rows], "COCO categories")


def id2label_labels(names: Mapping[Any, Any], title: str, ignore: Any = IGNORED) -> LabelSet:
    """The label set of a mapping from numbers, or their text, to names."""
    rows: list[Row] = []
    for value, name in names.items():
        if not re.fullmatch("[0-9]{1,9}", str(value)) or not isinstance(name, str):
            msg = f"id2label must map numbers to names, got {value!r:.40}: {name!r:.40}"
            raise ValueError(msg)
        rows.append((name, int(value), None))
    ignored = ignore if type(ignore) is int else None
    return label_set_of(title, sorted(rows, key=itemgetter(1)), "Hugging Face id2label", ignored)


def _metainfo_labels(names: Sequence[Any], palette: Any, path: Path) -> LabelSet:
    if palette is not None and (not isinstance(palette, list) or len(palette) != len(names)):
        msg = f"'palette' must have one colour per class ({len(names)})"
        raise ValueError(msg)
    rows = list(zip(names, range(len(names)), palette or [None] * len(names), strict=True))
    return label_set_of(path.stem, rows, "MMSegmentation METAINFO", IGNORED)


def _check_named(entries: Sequence[Any], key: str, what: str) -> None:
    for i, entry in enumerate(entries):
        if not isinstance(entry, dict) or not isinstance(entry.get(key), str):
            msg = f"{what} {i} must have a {key!r}, got {entry!r:.80}"
            raise ValueError(msg)


def _supervisely_labels(classes: Sequence[Any], path: Path) -> LabelSet:
    """Classes of a Supervisely project, numbered 1, 2, … after the background."""
    _check_named(classes, "title", "class")
    known = {entry["title"]: entry.get("color") or None for entry in classes}
    background = {} if background_of(known) else {"background": None}
    rows = [(title, i, color) for i, (title, color) in enumerate((background | known).items())]
    return label_set_of(path.resolve().parent.name, rows, f"Supervisely, {path.name}")


def _mapillary_labels(labels: Sequence[Any], path: Path) -> LabelSet:
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
    return LabelSet(folder_title(path), tuple(classes), **options)


def _table_labels(path: Path) -> LabelSet:
    """A CSV or TSV file of classes, such as Roboflow's, GOOSE's, and ScanNet's."""
    table = read_rows(path, [])
    columns = {str(head).strip().lower().replace(" ", "_"): head for head in (table or [{}])[0]}
    if all(key in columns for key in _SCANNET):
        return _scannet_labels(table, path)
    name, value, *rgb, code = (
        next((columns[key] for key in keys if key in columns), None) for keys in _COLUMNS
    )
    if name is None or (value is None and code is None and None in rgb):
        heads = ", ".join(map(repr, columns)) or "none"
        msg = f"expected columns name and value, name, r, g and b, or name and hex; found {heads}"
        raise ValueError(msg)
    rows: list[Row] = []
    for number, row in enumerate(table):
        try:
            color: Any = None if None in rgb else tuple(integer_in(row[h]) for h in rgb if h)
            color = color if code is None else row[code].strip()
            class_value = number if value is None else integer_in(row[value])
        except (TypeError, ValueError) as error:
            msg = f"row {number + 2}: expected integers, got {[*row.values()]!r:.80}"
            raise ValueError(msg) from error
        rows.append((row[name].strip(), class_value, color))
    return label_set_of(folder_title(path), rows, path.name, is_of_colors=value is None)


def _scannet_labels(table: Sequence[Mapping[str, str]], path: Path) -> LabelSet:
    """Classes of NYU40 with the numbers of their objects, which ScanNet's label images have."""
    values: dict[str, list[int]] = {}
    for number, row in enumerate(table):
        try:
            if row["nyu40class"].strip():
                values.setdefault(row["nyu40class"].strip(), []).append(integer_in(row["id"]))
        except ValueError as error:
            msg = f"row {number + 2}: expected an integer id, got {row['id']!r:.80}"
            raise ValueError(msg) from error
    classes = tuple(LabelClass(name, tuple(several)) for name, several in values.items())
    notes = "Label images with raw ids; for NYU40 ids, use the preset nyu40 or scannet20."
    return LabelSet(
        folder_title(path), classes, ignore=(0,), source=f"ScanNet, {path.name}", notes=notes
    )


def _yaml_labels(path: Path) -> LabelSet:
    """SemanticKITTI's and RELLIS' description of labels, or data.yaml of Ultralytics."""
    yaml = import_extra("yaml", f"{path}: reading YAML needs PyYAML", "yaml")
    try:
        data = yaml.safe_load(read_text(path))
    except yaml.YAMLError as error:
        msg = f"is not valid YAML: {error}"
        raise ValueError(msg) from error
    if isinstance(data, dict) and isinstance(data.get("labels"), dict):
        return _kitti_labels(data, path)
    return _yolo_labels(data, path)


def _kitti_labels(data: Mapping[str, Any], path: Path) -> LabelSet:
    """Numbers and names, and the classes that they are evaluated as if there is a learning map."""
    names = {value: name for value, name in data["labels"].items() if type(value) is int}
    learned = data.get("learning_map") or {value: value for value in names}
    ignored = {c for c, ignore in (data.get("learning_ignore") or {}).items() if ignore}
    values: dict[int, list[int]] = {}
    for value, target in learned.items():
        values.setdefault(target, []).append(value)
    shown = data.get("learning_map_inv") or {c: several[0] for c, several in values.items()}
    if unknown := [c for c in values if shown.get(c) not in names]:
        msg = f"'learning_map' has class {unknown[0]!r}, which has no name in 'labels'"
        raise ValueError(msg)
    classes = tuple(
        LabelClass(str(names[shown[c]]), tuple(several))
        for c, several in sorted(values.items())
        if c not in ignored
    )
    several = tuple(value for c in ignored for value in values.get(c, ()))
    source = f"{path.name}, labels" + (" and learning_map" if "learning_map" in data else "")
    return LabelSet(path.stem, classes, ignore=several, source=source)


def _yolo_labels(data: Any, path: Path) -> LabelSet:
    """The classes of Ultralytics' masks, or of its polygons and the background."""
    listed = data.get("names") if isinstance(data, dict) else None
    entries = dict(enumerate(listed)) if isinstance(listed, list) else listed
    if not isinstance(entries, dict) or not entries or sorted(entries) != [*range(len(entries))]:
        expected = "'labels' (SemanticKITTI) or 'names', a list or a mapping from 0, 1, …"
        msg = f"expected {expected}, got {listed!r:.80}"
        raise ValueError(msg)
    names = [str(entries[i]) for i in range(len(entries))]
    mapping = data.get("label_mapping") or {}
    source = f"Ultralytics, {path.name}"
    if len(names) == 1:
        names, source = ["background", *names], f"{ONE_CLASS}, {path.name}"
    elif not (mapping or data.get("masks_dir") or background_of(names)):
        names.append("background")  # of pixels outside all polygons
    classes, ignored = _mapped(mapping, len(names), data.get("ignore", IGNORED))
    several = tuple(LabelClass(n, tuple(v)) for n, v in zip(names, classes, strict=True))
    return LabelSet(folder_title(path), several, ignore=tuple(ignored), source=source)


def _mapped(mapping: Any, number: int, ignore: Any) -> tuple[list[list[int]], list[int]]:
    """Mask values of each class and ignored ones; unmapped values keep their own class."""
    if not isinstance(mapping, dict):
        msg = f"'label_mapping' must map values to classes, got {mapping!r:.80}"
        raise ValueError(msg)
    ignored = [ignore] if type(ignore) is int else [*(ignore or ())]
    targets: dict[Any, Any] = {
        int(v): IGNORED if t in _DROPPED else int(t) for v, t in mapping.items()
    }
    unmapped = [value for value in range(number) if value not in targets]
    for value, target in targets.items():
        if target == IGNORED:
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


def _gdal_labels(path: Path) -> LabelSet:
    """Names and colours of a raster, which GDAL stores in the TIFF or next to it."""
    from xml.etree import ElementTree

    kind = path.suffix.lower()
    is_tiff = kind in (".tif", ".tiff")
    text, colors, nodata = _tiff_rows(path) if is_tiff else ("", [], None)
    xml = path if kind in (".xml", ".vrt") else Path(f"{path}.aux.xml")
    texts = [read_text(xml), text] if is_file(xml) or not is_tiff else [text]
    root = ElementTree.Element("all")
    root.extend([_xml_of(text) for text in texts if text])
    entries = root.iterfind(".//ColorTable/Entry")
    colors = colors or [tuple(int(entry.get(f"c{i}", 0)) for i in (1, 2, 3)) for entry in entries]
    names = enumerate(entry.text or "" for entry in root.iterfind(".//CategoryNames/Category"))
    # A table has 256 colours; unset ones are black.
    set_values = [v for v, rgb in enumerate(colors) if v != nodata and (any(rgb) or v == 0)]
    rows = (
        list(_attribute_rows(root))
        or _colored([(value, name) for value, name in names if name], colors)
        or _colored([(value, f"value {value}") for value in set_values], colors)
    )
    if not rows:
        msg = "has no classes: expected category names, an attribute table with names, or colours"
        raise ValueError(msg)
    return label_set_of(path.name.split(".")[0], rows, f"GDAL, {path.name}", nodata)


def _tiff_rows(path: Path) -> tuple[str, list[Any], int | None]:
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


def _attribute_rows(root: Any) -> Iterator[Row]:
    """Classes of a raster's attribute table; without a value column, rows number them."""
    table = root.find(".//GDALRasterAttributeTable")
    fields = [] if table is None else table.iterfind("FieldDefn")
    columns = [_USES.get(field.findtext("Usage", ""), "") for field in fields]
    for row in table.iterfind("Row") if "name" in columns else ():
        cells = dict(zip(columns, [cell.text or "" for cell in row.iterfind("F")], strict=False))
        value = cells.get("value") or cells.get("least") or row.get("index", "")
        try:
            rgb = [integer_in(cells[part]) for part in ("red", "green", "blue") if cells.get(part)]
            if cells["name"]:
                yield cells["name"], int(number_in(value)), rgb or None
        except (ValueError, KeyError, OverflowError) as error:
            msg = f"row {row.get('index')} of its attribute table: {error}"
            raise ValueError(msg) from error


def _nnunet_labels(labels: Mapping[str, Any], path: Path, title: Any) -> LabelSet:
    """nnU-Net labels: names with one value, or with several, which are regions.

    Values that only occur in regions become classes named after their number. As in nnU-Net, a
    list of one value is a region if another label has several values. nnU-Net v1 and the
    Medical Segmentation Decathlon map values to names instead.
    """
    if all(is_digits(value) and isinstance(name, str) for value, name in labels.items()):
        by_name = {str(name): int(value) for value, name in labels.items()}
        labels = by_name if len(by_name) == len(labels) else labels
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
    ".json": _json_labels,
    **dict.fromkeys((".txt", ".names", ".label", ".ctbl"), read_lines),
    **dict.fromkeys((".csv", ".tsv"), _table_labels),
    **dict.fromkeys((".yaml", ".yml"), _yaml_labels),
    **dict.fromkeys((".xml", ".tif", ".tiff", ".img", ".vrt"), _gdal_labels),
}
