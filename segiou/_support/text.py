"""Words: plurals, lists and names in sentences; and values as plain data."""

from __future__ import annotations

import math
import re
import textwrap
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple, TypeAlias

from segiou._support.files import printable
from segiou._support.numbers import grouped, is_digits

#: Values that JSON can represent; a tuple counts as a list.
Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"


#: Blanks inside a number, before its per cent sign, and after ±.
_IN_NUMBER = re.compile(r"(?<=\d) (?=\d{3}(?!\d))|(?<=\d) (?=%)|(?<=±) ")


def capital(sentence: str) -> str:
    """Begin a sentence with a capital; the rest stays, and so do names of scores.

    >>> capital("mean IoU is 1"), capital("hausdorff_95:liver"), capital("mIoU per image")
    ('Mean IoU is 1', 'hausdorff_95:liver', 'mIoU per image')
    """
    first = sentence.partition(" ")[0]
    is_name = "_" in first or first[1:] != first[1:].lower()
    return sentence if is_name else sentence[:1].upper() + sentence[1:]


def see(page: str) -> str:
    """Refer to a page of the documentation, which is installed with the package.

    >>> see("intervals")
    'See segiou help intervals.'
    """
    return f"See segiou help {page}."


#: Most names with a common reason.
_REASONED = 8


def listed(names: Sequence[str], limit: int = 6, *, last: str = " and ") -> str:
    """Join names with commas and "and"; the rest of a long list is counted.

    >>> listed(["pole", "sign", "fence"]), listed(list("abcdef"), 2)
    ('pole, sign and fence', 'a, b and 4 more')
    """
    shown = list(names) if len(names) <= limit else [*names[:limit], f"{len(names) - limit} more"]
    if len(shown) < 2:
        return "".join(shown)
    last = last if len(names) <= limit else " and "
    return f"{', '.join(shown[:-1])}{last}{shown[-1]}"


def by_reason(reasons: Mapping[str, str]) -> str:
    """Names with their common reasons; more than eight names are counted.

    >>> by_reason({"sky": "absent", "void": "excluded", "sign": "absent"})
    'sky, sign (absent); void (excluded)'
    """
    names: dict[str, list[str]] = {}
    for name, why in reasons.items():
        names.setdefault(why, []).append(printable(name))
    return "; ".join(
        f"{f'{len(some)} classes' if len(some) > _REASONED else ', '.join(some)} ({why})"
        for why, some in names.items()
    )


def option_text(value: Any) -> str:
    """The value of an option in a list of options: "none" if it is empty.

    >>> option_text(("labels", 3)), option_text((("a", ("b", "c")), ("d", ("e",)))), option_text(())
    ('labels,3', 'a:b,c;d:e', 'none')
    """
    if value in (None, "", (), [], {}):
        return "none"
    if not isinstance(value, (tuple, list)):
        return str(value)
    nested = any(isinstance(part, (tuple, list)) for part in value)
    return (";" if nested else ",").join(map(_part_text, value))


def _part_text(value: Any) -> str:
    if isinstance(value, (tuple, list)):
        return ":".join(map(option_text, value))
    return str(value)


def called(name: str) -> str:
    r"""Write the name of a class; numbers get the prefix "class", control characters are escaped.

    >>> called("3"), called("road"), called("a\x1b[2J")
    ('class 3', 'road', 'a\\x1b[2J')
    """
    return f"class {name}" if is_digits(name) else printable(name)


def classes(names: Sequence[str]) -> str:
    """Join the names of classes.

    >>> classes(["0", "7"]), classes(["road", "car"])
    ('class 0 and class 7', 'road and car')
    """
    return listed([called(name) for name in names])


def encodable(name: str) -> str:
    r"""Escape characters that UTF-8 cannot encode, as in file names that are not UTF-8.

    >>> encodable("é\udcff.png")
    'é\\udcff.png'
    """
    return name.encode("utf-8", "backslashreplace").decode()


#: Name and password of a URL, and values of its query that are passwords or signatures.
_USER = re.compile(r"(?<=://)[^/?#\s]*@")
_SECRET = re.compile(
    r"(?i)([?&][^=&\s]*(?:sig|token|secret|key|passw|credential)[^=&\s]*)=[^&#\s]*"
)


def without_credentials(text: str) -> str:
    """Remove passwords, keys and signatures from the URLs in a text.

    >>> without_credentials("https://ann:pw@host/truth?version=2&token=abc")
    'https://host/truth?version=2&token=***'
    """
    return _SECRET.sub(r"\1=***", _USER.sub("", text))


class Nouns(NamedTuple):
    """Names of a pixel and an image, such as voxel and case."""

    pixel: str
    image: str


def nouns(unit: str) -> Nouns:
    """What a pixel and an image are called if this is the unit of the pixels.

    >>> nouns("pixels"), nouns("voxels").image
    (Nouns(pixel='pixel', image='image'), 'case')
    """
    return Nouns("voxel", "case") if unit == "voxels" else Nouns("pixel", "image")


def plural(
    number: int, noun: str, many: str | None = None, *, write: Callable[[int], str] = grouped
) -> str:
    """Put a number before a noun in its singular or plural form.

    >>> plural(1, "class", "classes"), plural(30000, "image")
    ('1 class', '30 000 images')
    """
    return f"{write(number)} {noun if number == 1 else many or noun + 's'}"


#: Options of other tools, and those that mean the same here.
_OF_OTHERS = {
    **dict.fromkeys(("classes", "num_classes", "n_classes", "nc", "class_names"), "labels"),
    **dict.fromkeys(("threads", "jobs", "n_jobs", "num_workers"), "workers"),
    **dict.fromkeys(("output_format", "json", "csv"), "format"),
    **dict.fromkeys(("report", "html_report"), "html"),
}


def did_you_mean(typed: str, known: Iterable[str]) -> str:
    """Suggest the name that was probably meant, for the end of a message.

    >>> did_you_mean("camvd", ["camvid", "ade20k"]), did_you_mean("x", ["camvid"])
    ('; did you mean camvid?', '')
    >>> did_you_mean("mIoU", ["mean_iou", "iou:CLASS"])
    '; did you mean mean_iou?'
    >>> did_you_mean("ignore_index", ["name", "ignore"]), did_you_mean("--nc", ["--labels"])
    ('; did you mean ignore?', '; did you mean --labels?')
    >>> did_you_mean("--report", ["--html", "--sort"])
    '; did you mean --html?'
    """
    from difflib import get_close_matches

    names = {name.lower(): name for name in known}
    low = str(typed).lower()  # keys of mappings may be of any kind
    long_enough = [name for name in names if len(low) > 2 and name[:1] == low[:1]]
    dashes = low[: len(low) - len(low.lstrip("-"))]
    same = dashes + _OF_OTHERS.get(low.lstrip("-").replace("-", "_"), "-")
    near = [name for name in names if name == same or low.startswith((f"{name}_", f"{name}-"))]
    near = near or [name for name in long_enough if name.startswith(low)]
    near = near or get_close_matches(low, names, n=1, cutoff=0.75)
    near = near or sorted((n for n in long_enough if _is_abbreviated(low, n)), key=len)
    near = near or get_close_matches(low, names, n=1, cutoff=0.7)
    return f"; did you mean {names[near[0]]}?" if near else ""


def _is_abbreviated(short: str, name: str) -> bool:
    """Whether a name contains the letters of an abbreviation in their order."""
    letters = iter(name)
    return all(letter in letters for letter in short)


def unbroken(text: str) -> str:
    r"""Put no-break spaces into numbers, before per cent signs and after ±.

    >>> unbroken("worst 10 % of 10 000").split(" ")
    ['worst', '10\xa0%', 'of', '10\xa0000']
    """
    return _IN_NUMBER.sub("\N{NO-BREAK SPACE}", text)


def wrapped(line: str, width: int) -> str:
    r"""Wrap a line at blanks, never inside a word; further lines keep its indent.

    >>> wrapped("  a worst 10 % of them/all", 12)
    '  a worst\n  10 % of\n  them/all'
    """
    indent = " " * (len(line) - len(line.lstrip(" ")))
    lines = textwrap.wrap(
        unbroken(line),
        width,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n".join(lines).replace("\N{NO-BREAK SPACE}", " ")


def composed(name: str) -> str:
    """The name in Unicode's composed form; macOS writes ``ü`` as two characters.

    >>> composed("u\N{COMBINING DIAERESIS}") == "\N{LATIN SMALL LETTER U WITH DIAERESIS}"
    True
    """
    return name if name.isascii() else unicodedata.normalize("NFC", name)


def plain(value: Any) -> Any:
    """Convert dataclasses, arrays and numbers to JSON types.

    NaN becomes None, and infinity, for which JSON has no number, "inf". Private fields are left
    out.

    >>> import numpy as np
    >>> plain({"iou": np.array([0.5, np.nan]), "n": np.int64(3), "hd": math.inf})
    {'iou': [0.5, None], 'n': 3, 'hd': 'inf'}
    """
    if type(value) is float:
        return value if math.isfinite(value) else None if math.isnan(value) else str(value)
    if type(value) in (str, int, bool):
        return value
    if is_dataclass(value) and not isinstance(value, type):
        names = (f.name for f in fields(value) if not f.name.startswith("_"))
        return {name: plain(getattr(value, name)) for name in names}
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if hasattr(value, "dtype"):
        # Integers need no conversion, so a large confusion matrix is not visited cell by cell.
        return value.tolist() if value.dtype.kind in "iub" else plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


class Plain:
    """A dataclass with plain values."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Json]:
        """Plain values, unrounded; None if undefined."""
        return dict(plain(self))


def without_numpy(value: Any) -> Any:
    """Convert the arrays and numbers of NumPy in nested data to those of Python.

    >>> import numpy as np
    >>> without_numpy({"limit": np.int8(3), "classes": (np.array(["car"]), np.True_)})
    {'limit': 3, 'classes': [['car'], True]}
    """
    if isinstance(value, dict):
        return {without_numpy(key): without_numpy(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [without_numpy(item) for item in value]
    return value.tolist() if hasattr(value, "dtype") else value


def records(**columns: Any) -> Iterator[dict[str, Any]]:
    """Rows of columns of equal length; NaN is one object, so that equal results compare equal.

    >>> [*records(name=("road", "car"), iou=[0.5, 1.0])]
    [{'name': 'road', 'iou': 0.5}, {'name': 'car', 'iou': 1.0}]
    """
    lists = (c.tolist() if hasattr(c, "tolist") else c for c in columns.values())
    for row in zip(*lists, strict=True):
        cells = (math.nan if cell != cell else cell for cell in row)
        yield dict(zip(columns, cells, strict=True))
