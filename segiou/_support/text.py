"""Text formatting: plurals, percentages, JSON-ready values."""

from __future__ import annotations

import csv
import math
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from itertools import chain
from types import SimpleNamespace
from typing import Any, NamedTuple, TypeAlias

from segiou._support.files import printable
from segiou._support.numbers import is_digits

#: Values that JSON can represent; a tuple counts as a list.
Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"


#: Blanks inside a number, and before its per cent sign.
_IN_NUMBER = re.compile(r"(?<=\d) (?=\d{3}(?!\d))|(?<=\d) (?=%)")


def percent(value: float, undefined: str = "undefined") -> str:
    """Write a ratio in per cent with two decimals; only 0 and 1 are shown as 0 and 100 %.

    >>> percent(0.46791), percent(0.999996), percent(0.00001), percent(1.0)
    ('46.79 %', '>99.99 %', '<0.01 %', '100.00 %')
    >>> percent(float("nan")), percent(float("nan"), "–")
    ('undefined', '–')
    """
    if math.isnan(value):
        return undefined
    if 0.99995 <= value < 1:
        return ">99.99 %"
    return f"{points(value)} %"


def points(value: float) -> str:
    """Write a difference of ratios in percentage points with two decimals and a true minus.

    >>> points(0.0081), points(-0.25), points(-0.0), points(0.00001), points(float("nan"))
    ('0.81', '−25.00', '0.00', '<0.01', 'undefined')
    """
    if math.isnan(value):
        return "undefined"
    if 0 < abs(value) < 0.00005:
        return "<0.01" if value > 0 else ">−0.01"
    # Adding 0.0 removes the sign of -0.0.
    return f"{100 * value + 0.0:.2f}".replace("-", "−")


def signed_points(value: float, undefined: str = "–") -> str:
    """Write a difference of ratios in percentage points with its sign and a true minus.

    >>> signed_points(0.0081), signed_points(-0.25), signed_points(0.00001)
    ('+0.81', '−25.00', '0.00')
    """
    if math.isnan(value):
        return undefined
    return f"{100 * value:+.2f}".replace("-", "−") if abs(value) >= 0.00005 else "0.00"


#: Unit of scores that are plain numbers, such as a mean number of components.
NUMBER = "number"


def unit_text(unit: str) -> str:
    """A unit beside a number; empty for ratios and plain numbers."""
    return "" if unit == NUMBER else unit


def with_unit(title: str, unit: str) -> str:
    """A title with the unit of its numbers, such as ``HD95, mm``; the title alone for ratios."""
    return ", ".join(filter(None, (title, unit_text(unit))))


def shown(value: float, unit: str = "", undefined: str = "–") -> str:
    """Write a score: a ratio in per cent, anything else in its unit.

    >>> shown(0.46791), shown(12.3456, "mm"), shown(float("inf"), "mm"), shown(float("nan"))
    ('46.79 %', '12.35 mm', '∞ mm', '–')
    >>> shown(2.5, NUMBER)
    '2.50'
    """
    if not unit or math.isnan(value):
        return percent(value, undefined)
    return f"{_number(value)} {unit_text(unit)}".rstrip()


def shown_change(value: float, unit: str = "", undefined: str = "–") -> str:
    """Write a difference of scores without its unit: in points, or in the unit of the scores.

    >>> shown_change(-0.07285), shown_change(1.526, "mm"), shown_change(float("nan"), "mm")
    ('−7.29', '+1.53', '–')
    """
    if not unit or math.isnan(value):
        return signed_points(value, undefined)
    return _number(value, "+") if abs(value) >= 0.005 else "0.00"


def shown_range(low: float, high: float, unit: str = "") -> str:
    """Write the limits of a score, with the unit once.

    >>> shown_range(0.41, 0.499), shown_range(1.2, 3.4, "mm"), shown_range(float("nan"), 1.0)
    ('41.00 to 49.90 %', '1.20 to 3.40 mm', '–')
    """
    if math.isnan(low):
        return "–"
    first = _number(low) if unit else points(low)
    return f"{first} to {shown(high, unit)}"


def change_range(low: float, high: float, unit: str = "") -> str:
    """Write the limits of a difference of scores, without the unit.

    >>> change_range(-0.0125, 0.03), change_range(0.5, 1.25, "mm")
    ('−1.25 to +3.00', '+0.50 to +1.25')
    """
    return f"{shown_change(low, unit)} to {shown_change(high, unit)}"


def change(value: float, unit: str = "") -> str:
    """Write a difference of scores with its unit.

    >>> change(-0.07285), change(1.526, "mm")
    ('−7.29 points', '+1.53 mm')
    """
    return f"{shown_change(value, unit)} {unit_text(unit or 'points')}".rstrip()


def _number(value: float, sign: str = "") -> str:
    return f"{value:{sign}.2f}".replace("-", "−").replace("inf", "∞")


def count(value: int) -> str:
    r"""Write an integer in groups of three, kept together on a line.

    >>> count(1234567).replace("\N{NARROW NO-BREAK SPACE}", "_")
    '1_234_567'
    """
    return f"{value:,}".replace(",", "\N{NARROW NO-BREAK SPACE}")


def capital(sentence: str) -> str:
    """Begin a sentence with a capital; the rest stays, and so do names of scores.

    >>> capital("mean IoU is 1"), capital("hausdorff_95:liver")
    ('Mean IoU is 1', 'hausdorff_95:liver')
    """
    first = sentence.partition(" ")[0]
    return sentence if "_" in first else sentence[:1].upper() + sentence[1:]


def see(page: str) -> str:
    """Refer to a page of the documentation, which is installed with the package.

    >>> see("intervals")
    'See segiou help intervals.'
    """
    return f"See segiou help {page}."


def p_text(value: float) -> str:
    """Write a p-value; one below the resolution of the permutations is not written as 0.

    >>> p_text(0.00001), p_text(0.0123), p_text(0.53)
    ('<0.0001', '0.0123', '0.53')
    """
    if math.isnan(value):
        return "–"
    if value < 0.00005:
        return "<0.0001"
    return f"{value:.4f}" if value < 0.1 else f"{value:.2f}"


def p_equals(value: float) -> str:
    """Write a p-value in a sentence.

    >>> p_equals(0.00001), p_equals(0.0123)
    ('p < 0.0001', 'p = 0.0123')
    """
    return f"p = {p_text(value)}".replace("= <", "< ")


def roughly(share: float) -> str:
    """Write a share that was estimated by simulation, without spurious digits.

    >>> roughly(0.786), roughly(0.999), roughly(0.0)
    ('about 79 %', 'over 99 %', 'under 1 %')
    """
    if share < 0.01:
        return "under 1 %"
    return "over 99 %" if share > 0.99 else f"about {100 * share:.0f} %"


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
    """What a pixel and an image are called."""

    pixel: str
    image: str


def nouns(unit: str) -> Nouns:
    """What a pixel and an image are called if this is the unit of the pixels.

    >>> nouns("pixels"), nouns("voxels").image
    (Nouns(pixel='pixel', image='image'), 'case')
    """
    return Nouns("voxel", "case") if unit == "voxels" else Nouns("pixel", "image")


def plural(number: int, one: str, many: str | None = None) -> str:
    """Put a number before a noun in its singular or plural form.

    >>> plural(1, "class", "classes"), plural(30000, "image")
    ('1 class', '30 000 images')
    """
    return f"{grouped(number)} {one if number == 1 else many or one + 's'}"


def grouped(number: int, blank: str = " ") -> str:
    """Write an integer in groups of three digits, from five digits on.

    >>> grouped(4210), grouped(30067200), grouped(-12345)
    ('4210', '30 067 200', '−12 345')
    """
    text = f"{number:,}" if abs(number) >= 10_000 else str(number)
    return text.replace(",", blank).replace("-", "−")


def short_count(value: float) -> str:
    """Write a count in at most four characters.

    >>> short_count(7), short_count(1234), short_count(98_765_432)
    ('7', '1.2k', '99M')
    """
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= limit:
            scaled = value / limit
            return f"{scaled:.1f}{unit}" if scaled < 9.95 else f"{scaled:.0f}{unit}"
    return f"{value:.0f}"


def digits(number: float) -> str:
    """Write a number with all its digits, so that it can be read back.

    >>> digits(2.0), digits(0.1234567)
    ('2', '0.1234567')
    """
    return repr(float(number)).removesuffix(".0")


def did_you_mean(typed: str, known: Iterable[str]) -> str:
    """Suggest the name that was probably meant, for the end of a message.

    >>> did_you_mean("camvd", ["camvid", "ade20k"]), did_you_mean("x", ["camvid"])
    ('; did you mean camvid?', '')
    >>> did_you_mean("mIoU", ["mean_iou", "iou:CLASS"])
    '; did you mean mean_iou?'
    """
    from difflib import get_close_matches

    names = {name.lower(): name for name in known}
    low = typed.lower()
    long_enough = [name for name in names if len(low) > 2 and name[:1] == low[:1]]
    near = [name for name in long_enough if name.startswith(low)]
    near = near or get_close_matches(low, names, n=1, cutoff=0.75)
    near = near or sorted((n for n in long_enough if _is_abbreviated(low, n)), key=len)
    near = near or get_close_matches(low, names, n=1, cutoff=0.7)
    return f"; did you mean {names[near[0]]}?" if near else ""


def _is_abbreviated(short: str, name: str) -> bool:
    """Whether a name contains the letters of an abbreviation in their order."""
    letters = iter(name)
    return all(letter in letters for letter in short)


def unbroken(text: str) -> str:
    r"""Put no-break spaces into numbers and before per cent signs.

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


#: Spreadsheets treat a cell that begins with one of these as a formula.
_FORMULA = tuple("=+-@\t\r\n")


def csv_text(rows: Iterable[Iterable[Any]]) -> str:
    r"""Write rows as CSV, safe for any name and free of spreadsheet formulas.

    Text that begins with =, +, -, @, a tab or a line end is prefixed with an
    apostrophe, which :func:`csv_name` removes. Numbers stay numbers.

    >>> csv_text([["a\rb", "=1+1", -0.5, None]])
    '"a\rb",\'=1+1,-0.5,\n'
    """
    lines: list[str] = []
    # The writer quotes cells that contain either character of its line end; lines end in \n here.
    file = SimpleNamespace(write=lambda line: lines.append(f"{line[:-2]}\n"))
    writer = csv.writer(file, lineterminator="\r\n")
    for row in rows:
        writer.writerow(map(_csv_cell, row))
    return "".join(lines)


def csv_of(rows: Iterable[Mapping[str, Any]]) -> str:
    r"""Write rows by column as CSV; cells that a row lacks and undefined numbers are empty.

    >>> csv_of([{"name": "road", "iou": 0.5}, {"name": "night", "gap": float("nan")}])
    'name,iou,gap\nroad,0.5,\nnight,,\n'
    """
    several = [*rows]
    heads = [*dict.fromkeys(chain.from_iterable(several))]
    return csv_text([heads, *(plain([row.get(head) for head in heads]) for row in several)])


def number_of(value: Any) -> float:
    """A number as a float; NaN is one object, so that equal results compare equal.

    >>> number_of(float("nan")) is math.nan
    True
    """
    return math.nan if value != value else float(value)


def records(**columns: Any) -> Iterator[dict[str, Any]]:
    """Rows of columns of equal length; NaN is one object, so that equal results compare equal.

    >>> [*records(name=("road", "car"), iou=[0.5, 1.0])]
    [{'name': 'road', 'iou': 0.5}, {'name': 'car', 'iou': 1.0}]
    """
    lists = (c.tolist() if hasattr(c, "tolist") else c for c in columns.values())
    for row in zip(*lists, strict=True):
        cells = (math.nan if cell != cell else cell for cell in row)
        yield dict(zip(columns, cells, strict=True))


def _csv_cell(cell: Any) -> Any:
    if not isinstance(cell, str):
        return cell
    shown = printable(cell, blanks=True)
    return f"'{shown}" if cell.startswith(_FORMULA) and cell != "-inf" else shown


def csv_name(cell: str) -> str:
    """Read a name back from a cell of :func:`csv_text`.

    >>> csv_name("'=1+1"), csv_name("'tis")
    ('=1+1', "'tis")
    """
    return cell[1:] if cell[:1] == "'" and cell[1:].startswith(_FORMULA) else cell


def cell(value: float) -> str:
    """A ratio in a table."""
    return percent(value, "–")


def tone_of(value: float) -> str:
    """Colour for a score."""
    if value != value:
        return ""
    return "red" if value < 1 / 3 else "yellow" if value < 2 / 3 else "green"
