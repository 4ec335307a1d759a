"""Tables of text, Markdown, LaTeX and HTML, read back as cells."""

import re
from html.parser import HTMLParser


def plain(text):
    """A cell without what only one format has: signs of per cent, escapes and kinds of blanks."""
    text = re.sub(r"\\textbf\{(.*?)\}", r"\1", text).removeprefix("**").removesuffix("**")
    text = text.replace("{*}", "*").replace("$-$", "−").replace("--", "–").replace("\\,", " ")
    text = text.replace("$\\pm$", "±").replace("\\textless{}", "<").replace("\\textgreater{}", ">")
    text = text.replace("\\textbar{}", "|").replace("&gt;", ">").replace("&amp;", "&")
    text = text.replace("$^2$", "²").replace("$\\infty$", "∞").replace("&lt;", "<")
    text = text.replace("$\\times$", "×").replace("$\\cdot$", "·").replace("~", " ")
    text = re.sub(r"\\([\\|\[\]`*%&_#])", r"\1", text)
    return " ".join(re.sub(r" %(?= |$)| \(%\)", "", " ".join(text.split())).split())


def of_markdown(text):
    """Tables as rows of heading and cell."""
    tables, lines = [], text.split("\n")
    for at, line in enumerate(lines):
        if re.fullmatch(r"\|( :?--:? \|)+", line):
            rows = []
            for row in lines[at + 1 :]:
                if not row.startswith("| "):
                    break
                rows.append(row)
            tables.append([_split(row, r"(?<!\\)\|") for row in [lines[at - 1], *rows]])
    return [_by_head(table) for table in tables]


def _split(row, sign):
    return [plain(cell.strip()) for cell in re.split(sign, row.strip().strip("|"))]


def _by_head(table):
    return [[*zip(table[0], row, strict=True)] for row in table[1:]]


def of_latex(text):
    """Tables as rows of heading and cell; intervals are in the cell of their score.

    The means of classes are in the lines above the table in other formats.
    """
    tables = []
    for inside in re.findall(r"\\begin\{tabular\}\{[lr]+\}(.*?)\\end\{tabular\}", text, re.DOTALL):
        lines = [line.strip() for line in inside.splitlines() if line.strip().endswith(" \\\\")]
        rows = [_split(line.removesuffix("\\\\"), r"(?<!\\)&") for line in lines]
        tables.append([[one for cell in row for one in _divided(*cell)] for row in _by_head(rows)])
    return tables


def _divided(head, cell):
    score, comma, method = head.rpartition(", ")
    if "interval" not in method or not comma:
        return [(head, cell)]
    value, _, limits = cell.partition(" (")
    return [(score, value), (head, limits.removesuffix(")"))]


class _Tables(HTMLParser):
    """The cells of the tables of a page."""

    def __init__(self):
        super().__init__()
        self.tables, self._open = [], False

    def handle_starttag(self, tag, attributes):
        if tag == "table":
            self.tables.append([])
        elif tag == "tr" and self.tables:
            self.tables[-1].append([])
        elif tag in ("td", "th") and self.tables:
            self.tables[-1][-1].append("")
            self._open = True

    def handle_endtag(self, tag):
        self._open = self._open and tag not in ("td", "th")

    def handle_data(self, data):
        if self._open:
            self.tables[-1][-1][-1] += data


def of_html(text):
    parser = _Tables()
    parser.feed(text)
    return [[[plain(cell) for cell in row] for row in table] for table in parser.tables]


def of_text(text):
    """Lines as cells that are not empty."""
    return [filled(re.split(r" {2,}", line.strip())) for line in text.split("\n")]


def filled(cells):
    shown = [plain(cell) for cell in cells]
    return [cell for cell in shown if cell and not re.fullmatch("[█▏▎▍▌▋▊▉ ]+", cell)]


def lines_of(table):
    """The heading of a table and its rows, as texts."""
    return [[head for head, _ in table[0]], *([cell for _, cell in row] for row in table)]


def by_column(tables):
    """Rows as headings and cells; LaTeX has no sign for an undefined interval."""
    shown = [[[c for c in row if c[1] not in ("", "–")] for row in table] for table in tables]
    return [[sorted(row) for row in table] for table in shown]
