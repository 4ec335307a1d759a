"""One score, one name, one value: every route to a score gives the same number.

The names, the runs and the routes are listed here, not taken from segiou's tables of them.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from dataclasses import replace
from functools import cached_property
from html import unescape
from html.parser import HTMLParser

import numpy as np
import pytest
from deletable import kind_of_scores
from segiou_offsets import Offsets

import segiou
from segiou.cli.main import main
from segiou.metrics import METRICS

PIXELS = ("iou", "dice", "precision", "recall", "specificity", "balanced_accuracy")
PIXELS += ("volumetric_similarity",)
OVERALL = ("pixel_accuracy", "frequency_weighted_iou", "cohen_kappa", "matthews_correlation")
OBJECTS = ("pq", "sq", "rq")
DISTANCES = ("hausdorff_95", "hausdorff", "average_surface_distance")
#: Headings of columns for people.
TITLES = {
    "iou": "IoU",
    "dice": "Dice",
    "precision": "precision",
    "recall": "recall",
    "boundary_iou": "Boundary IoU.*",
    "pq": "PQ",
    "sq": "SQ",
    "rq": "RQ",
    "surface_dice": "surface Dice .*",
    "hausdorff_95": "HD95 median.*",
    "hausdorff": "HD median.*",
    "average_surface_distance": "ASSD median.*",
    "offset": "offset.*",
}


def flat(number, *, seed=0, size=40):
    """Images with four classes and an ignored row, and two models; a class is missing in places."""
    rng = np.random.default_rng(seed)
    truths = np.zeros((number, size, size), np.uint8)
    models = [np.zeros_like(truths), np.zeros_like(truths)]
    for i, truth in enumerate(truths):
        truth[size // 2 :] = 1
        for y, x in rng.integers(4, size - 12, (3, 2)):
            truth[y : y + 8, x : x + 8] = 2
        if i % 2 and i != 1:
            truth[4:9, 24:30] = 3
        for m, preds in enumerate(models):
            shift = rng.integers(0, 3 + m), rng.integers(0, 2 + 2 * m)
            preds[i] = np.roll(truth, shift, (0, 1))
            if i % 3 == m:
                preds[i][preds[i] == 3] = 0
            if i == 2 + m:
                preds[i][32:36, 32:36] = 3
        truth[0, :6] = 255
    return truths, *models


def solid(number, *, seed=3):
    """Volumes of two structures; one is missing in a truth, and one in each prediction."""
    rng = np.random.default_rng(seed)
    truths = np.zeros((number, 6, 22, 22), np.uint8)
    models = [np.zeros_like(truths), np.zeros_like(truths)]
    for i, truth in enumerate(truths):
        truth[1:5, 3:16, 3:16] = 1
        if i != 1:
            truth[2:4, 6 : 10 + i % 3, 6:12] = 2
        for m, preds in enumerate(models):
            preds[i] = np.roll(truth, int(rng.integers(0, 3 + 2 * m)) + i, 2)
            if i == 3 + m:
                preds[i][preds[i] == 2] = 1
            if i == 1 and m:
                preds[i][2:4, 6:9, 6:9] = 2
    return truths, *models


FLAT = {"sky": 0, "road": 1, "car": 2, "sign": 3}
SOLID = {"background": 0, "liver": 1, "tumor": 2}
REGIONS = replace(
    segiou.load_labels(SOLID), groups={"whole": ("liver", "tumor"), "core": ("tumor",)}
)
#: Masks, options, classes, names of the scores of measures, and a protocol.
IMAGES = {"labels": FLAT, "ignore": 255, "boundary": True, "objects": True, "measures": [Offsets()]}
VOLUMES = {"labels": SOLID, "surfaces": True, "objects": True}
OF_IMAGES = ("boundary_iou", *OBJECTS, "offset")
OF_VOLUMES = ("surface_dice", *DISTANCES, *OBJECTS)
SCENARIOS = {
    "regions": (solid, 5, VOLUMES | {"labels": REGIONS}, OF_VOLUMES, None),
    "even": (flat, 6, IMAGES, OF_IMAGES, None),
    "odd, excluded": (flat, 7, IMAGES | {"exclude": "sky"}, OF_IMAGES, None),
    "nnunet": (flat, 6, IMAGES, OF_IMAGES, "nnunet"),
    "monai": (flat, 6, IMAGES, OF_IMAGES, "monai"),
    "ade20k": (flat, 6, IMAGES, OF_IMAGES, "ade20k"),
    "torchmetrics": (flat, 6, IMAGES, OF_IMAGES, "torchmetrics-segmentation"),
    "even volumes": (solid, 6, VOLUMES, OF_VOLUMES, None),
    "odd volumes": (solid, 5, VOLUMES, OF_VOLUMES, None),
    "excluded": (solid, 6, VOLUMES | {"exclude": "background"}, OF_VOLUMES, "totalsegmentator"),
}
#: One run in plain pytest; the others in the gate.
OTHERS = [pytest.param(name, marks=pytest.mark.gate) for name in ("odd, excluded", "nnunet")]
FEW = ["even volumes", *OTHERS]


class Outputs:
    """A run, another of the same images, and every output, made once."""

    def __init__(self, scenario, folder):
        self.scenario = scenario
        make, number, options, self.measured, self.protocol = SCENARIOS[scenario]
        truths, one, two = make(number)
        ids = [f"im{i}" for i in range(number)]
        self.run = segiou.score(truths, one, ids=ids, name="one", **options)
        self.other = segiou.score(truths, two, ids=ids, name="two", **options)
        self.path = folder / "run.sqlite"
        self.run.save(self.path)
        self.report = self.run.report(self.protocol)
        self.rows = tuple(self.report.scores_by_name["iou"].rows)
        self.single = [
            segiou.score(truths[i : i + 1], one[i : i + 1], ids=ids[i : i + 1], **options)
            for i in range(number)
        ]

    @cached_property
    def json(self):
        return json.loads(self.report.to_json())

    @cached_property
    def csv(self):
        return {row["name"]: row for row in csv.DictReader(io.StringIO(self.report.to_csv()))}

    @cached_property
    def pandas(self):
        return self.report.to_pandas()

    @cached_property
    def tables(self):
        """Tables for people, by output."""
        return {
            "Markdown": markdown_tables(self.report.to_markdown()),
            "text": text_tables(self.report.to_text(width=400)),
            "page": html_tables(self.report.to_html(run=self.run)),
            "notebook": html_tables(self.report._repr_html_()),
        }

    def names(self, rows):
        bases = (*PIXELS, *self.measured)
        yield from (*bases, *OVERALL)
        yield from (f"{base}:{row}" for base in bases for row in rows)


def markdown_tables(text):
    found, before = [], ""
    for line in text.splitlines():
        if line[:1] == "|" and before[:1] != "|":
            found.append([])
        if line[:1] == "|":
            cells = line.strip("|").split("|")
            found[-1].append([cell.strip().replace("\\", "") for cell in cells])
        before = line
    return found


def text_tables(text):
    """Tables with their headings, as printed where there is room."""
    found, lines = [], text.splitlines()
    for i, line in enumerate(lines):
        if line and not line.strip("─"):
            found.append([re.split(r" {2,}", lines[i - 1].strip())])
            rest = (re.split(r" {2,}", other.strip()) for other in lines[i + 1 :])
            for cells in rest:
                if cells != [""] and len(cells) < len(found[-1][0]):
                    break
                found[-1] += [cells] if cells != [""] else []
    return found


def html_tables(page):
    parser = Tables()
    parser.feed(page)
    return [table for table in parser.tables if len(table) > 1]


class Tables(HTMLParser):
    """The cells of tables, without what is small print."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.tables, self.cell, self.skipped = [], None, []

    def handle_starttag(self, tag, attrs):
        if tag == "table":
            self.tables.append([])
        elif tag == "tr" and self.tables:
            self.tables[-1].append([])
        elif tag in ("th", "td") and self.tables and self.tables[-1]:
            self.cell, self.skipped = "", []
        elif self.cell is not None and tag in ("small", "svg"):
            self.skipped.append(tag)

    def handle_endtag(self, tag):
        if tag in ("th", "td") and self.cell is not None:
            self.tables[-1][-1].append(" ".join(self.cell.split()))
            self.cell = None
        elif self.skipped and self.skipped[-1] == tag:
            self.skipped.pop()

    def handle_data(self, data):
        if self.cell is not None and not self.skipped:
            self.cell += data


def number_of(text):
    """A cell as a number; None if it is none."""
    text = text.replace("\u202f", " ").replace("\u00a0", " ").replace("−", "-").replace("**", "")
    if text.strip() in ("–", "-", ""):
        return math.nan
    if text.strip().startswith("∞"):
        return math.inf
    found = re.match(r"\s*(-?\d[\d.]*)( ?%)?", text)
    return None if found is None else float(found[1]) / (100 if found[2] else 1)


def shown(tables, base, row):
    """The value of a score in tables for people; None if it is in none."""
    for heads, *lines in tables:
        places = [i for i, h in enumerate(heads) if re.fullmatch(TITLES.get(base, "\0"), h, re.I)]
        for line in lines:
            if places and line[0].strip("*` ") == (row or "mean") and len(line) > places[0]:
                return number_of(line[places[0]])
    return None


def limits_shown(tables, base, row):
    """The limits of an interval in tables for people; None if they are in none."""
    title = f"{TITLES.get(base, chr(0))}, 95 % interval"
    for heads, *lines in tables:
        heads = [head.replace("\u00a0", " ") for head in heads]
        places = [i for i, head in enumerate(heads) if re.fullmatch(title, head, re.I)]
        for line in lines:
            if places and line[0].strip("*` ") == row:
                cell = re.sub("[*<>]|.%", "", unescape(line[places[0]]).replace("\u00a0", " "))
                return [number_of(end) for end in (cell.split(" to ") if "–" not in cell else "––")]
    return None


def routes(out, name):
    """Values of a score by every route that must know it."""
    base, _, row = name.partition(":")
    how = {"groups": "none", "protocol": out.protocol}
    few = {"resamples": 20, **how}
    entry = out.json["scores"][base]
    if not row:
        trackers = f"mean_{base}" if base in PIXELS else base
        yield "trackers", out.report.scores(names=[trackers])[trackers]
    else:
        entry = entry["rows"][row]
        yield "trackers", out.report.scores(names=[name])[f"{base}/{row}"]
        yield "CSV", number(out.csv[row][base])
        yield "pandas", number(out.pandas.loc[row, base])
    yield "JSON", number(entry["value"])
    if row in REGIONS.groups and base in PIXELS:
        return  # counts of images do not have the regions
    pair = segiou.compare(out.run, out.other, metric=name, permutations=20, **few).pairs[0]
    ranking = segiou.rank([out.run, out.other], by=name, draws=0, **how)
    yield "intervals", out.run.intervals(name, **few).overall.value
    yield "compare", pair.overall.a
    yield "rank", next(model.value for model in ranking.models if model.name == "one")


def number(plain):
    """A number of JSON, CSV or pandas: missing is undefined."""
    return math.nan if plain in (None, "") else float(plain)


def same(a, b, tolerance=1e-14):
    if math.isnan(a) or math.isnan(b):
        return math.isnan(a) and math.isnan(b)
    return a == b or abs(a - b) <= tolerance * max(1, abs(b))


def disagreements(out, rows):
    """Names with another value by some route than by :meth:`segiou.Report.score`."""
    for name in out.names(rows):
        base, _, row = name.partition(":")
        if row and row not in out.report.scores_by_name[base].rows:
            continue
        value = out.report.score(name)
        for route, other in routes(out, name):
            if not same(other, value):
                yield name, value, route, other
        for kind, tables in out.tables.items():
            cell = shown(tables, base, row)
            digits = 5.1e-3 if base in (*DISTANCES, "offset") else 6e-5
            if cell is not None and not same(cell, value, digits):
                yield name, value, kind, cell


def of_images(out):
    """Columns of ``--per-image`` with another value than a run of the image alone has."""
    for row, alone in zip(out.run.rows(), out.single, strict=True):
        report = alone.report("segiou")
        for name in row:
            base = name.partition(":")[0]
            measured = base in out.measured and ":" in name
            if name == "pixel_accuracy" or base == "iou" or measured:
                value = report.score(name)
                if not same(float(row[name]), value):
                    yield row["id"], name, row[name], value


@pytest.fixture(scope="module")
def outputs(tmp_path_factory):
    made = {}

    def of(scenario):
        if SCENARIOS[scenario][0] is solid:
            kind_of_scores("surfaces")
        if scenario not in made:
            made[scenario] = Outputs(scenario, tmp_path_factory.mktemp("one_value"))
        return made[scenario]

    return of


@pytest.fixture
def command(capsys):
    def run(*arguments):
        capsys.readouterr()
        code = main([str(one) for one in arguments])
        return code, capsys.readouterr().out

    return run


def test_every_metric_is_listed():
    assert sorted(PIXELS) == sorted(METRICS)


@pytest.mark.gate
@pytest.mark.parametrize("scenario", FEW)
def test_every_route_gives_one_value(scenario, outputs):
    out = outputs(scenario)
    assert [*disagreements(out, out.rows[-1:])] == []


@pytest.mark.gate
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_every_route_gives_one_value_of_every_class(scenario, outputs):
    out = outputs(scenario)
    assert [*disagreements(out, out.rows)] == []


@pytest.mark.gate
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_values_of_images_are_those_of_runs_of_one_image(scenario, outputs, command, tmp_path):
    out = outputs(scenario)
    assert [*of_images(out)] == []
    if scenario in ("even volumes", "regions"):
        command("report", out.path, "--per-image", tmp_path / "images.csv", "--quiet")
        assert (tmp_path / "images.csv").read_text(encoding="utf-8") == out.run.to_csv()


@pytest.mark.parametrize("scenario", FEW)
def test_every_interval_contains_its_value(scenario, outputs):
    out = outputs(scenario)
    how = {"groups": "none", "protocol": out.protocol, "resamples": 200}
    for base in (*PIXELS, *OVERALL, *out.measured):
        found = out.run.intervals(base, **how)
        for one in (found.overall, *found.classes):
            assert math.isnan(one.low) or one.low <= one.value <= one.high, (base, one)


@pytest.mark.gate
@pytest.mark.parametrize("scenario", ["even volumes", "even"])
def test_every_output_has_the_same_intervals(scenario, outputs, tmp_path, command):
    out = outputs(scenario)
    argv = ("report", out.path, "--intervals", "--group-by", "none", "--resamples", 100, "--quiet")
    page = tmp_path / "page.html"
    scores = json.loads(command(*argv, "--format", "json", "--html", page)[1])["scores"]
    lines = csv.DictReader(io.StringIO(command(*argv, "--format", "csv")[1]))
    rows = {line["name"]: line for line in lines}
    tables = {"Markdown": markdown_tables(command(*argv, "--format", "markdown")[1])}
    tables["page"] = html_tables(page.read_text(encoding="utf-8"))
    assert "low" in scores["pixel_accuracy"] and "low" in scores["recall"]
    for base in ("iou", "recall", "pixel_accuracy", *out.measured):
        if base == "offset":  # which the command does not know
            continue
        found = {"mean": scores[base], **scores[base]["rows"]}
        for row, one in found.items():
            ends = [number(one["low"]), number(one["high"])]
            line = rows[one.get("overall", row)]  # CSV names the overall value: mean, overall, …
            assert ends == [number(line[f"{base}_{end}"]) for end in ("low", "high")]
            for output, own in tables.items():
                cell = limits_shown(own, base, row)
                unit = 1 if base in (*DISTANCES, "offset") else 100
                assert cell is None or cell == pytest.approx(
                    [unit * end for end in ends], abs=1.01e-2, nan_ok=True
                ), (output, base, row)
    names = ("surface_dice", "hausdorff_95") if scenario == "even volumes" else ("boundary_iou",)
    for base in ("pq", *names):
        for own in tables.values():
            assert limits_shown(own, base, "mean")


@pytest.mark.parametrize(("shift", "passed"), [(-1e-6, True), (1e-6, False)])
def test_thresholds_at_the_value(shift, passed, outputs, command):
    out = outputs("odd, excluded")
    names = ("iou", "dice:car", "pq", "boundary_iou", "pq:car")
    values = [out.report.score(name) for name in names]
    argv = ["report", out.path, "--group-by", "none", "--format", "json"]
    for name, value in zip(names, values, strict=True):
        argv += ["--require", f"{name}={value + shift:.17g}"]
    code, text = command(*argv)
    outcomes = json.loads(text)["thresholds"]
    assert (code, [one["passed"] for one in outcomes]) == (int(not passed), [passed] * len(names))
    assert [one["value"] for one in outcomes] == pytest.approx(values, rel=1e-12)


def test_infinite_distances_are_values(outputs, command):
    # The tumor is missed in one of six cases: the median is finite, the mean over cases is not.
    out = outputs("even volumes")
    both = {"one": out.run, "two": out.other}
    pair = segiou.compare(*both.values(), metric="hausdorff_95:tumor", aggregate="I").pairs[0]
    how = {"aggregate": "I", "missing": "drop", "draws": 0}
    ranking = segiou.rank(both, by="hausdorff_95:tumor", **how)
    assert pair.overall.a == math.inf
    assert {model.name: model.value for model in ranking.models}["one"] == math.inf
    code, text = command("report", out.path, "--require", "hausdorff:tumor=1", "--format", "json")
    assert code == 1
    assert json.loads(text)["thresholds"][0]["value"] == out.report.score("hausdorff:tumor")


@pytest.mark.needs("measures.surfaces")
def test_medians_of_even_numbers_of_cases_are_exact():
    # Spots that are 2, 4, 20 and 30 pixels off against 2, 5, 19 and 30: medians 12 and 12.
    def run(shifts):
        truth = np.zeros((4, 3, 3, 40), np.uint8)
        truth[:, 1, 1, 2] = 1
        pred = np.stack([np.roll(one, shift, -1) for one, shift in zip(truth, shifts, strict=True)])
        return segiou.score(
            truth, pred, labels={"b": 0, "spot": 1}, surfaces=True, spacing=(1, 1, 1)
        )

    runs = run((2, 4, 20, 30)), run((2, 5, 19, 30))
    name = "hausdorff_95:spot"
    assert [one.report().score(name) for one in runs] == [12.0, 12.0]
    pair = segiou.compare(*runs, metric=name, names=("a", "b"), groups="none").pairs[0]
    assert (pair.overall.a, pair.overall.b, pair.overall.delta) == (12.0, 12.0, 0.0)
    ranking = segiou.rank(runs, by=name, names=("a", "b"), draws=0)
    assert [model.rank for model in ranking.models] == [1.0, 1.0]
    assert runs[0].intervals(name, groups="none", resamples=50).overall.value == 12.0


def test_objects_of_volumes_have_no_background_by_any_route(outputs):
    out = outputs("even volumes")
    own = [out.report.score(f"pq:{row}") for row in ("liver", "tumor")]
    assert out.report.score("pq") == pytest.approx(np.mean(own))


def test_excluded_classes_are_in_no_mean_of_a_measure(outputs):
    out = outputs("odd, excluded")
    rows = [row["pq"] for row in out.run.rows()]
    assert len(rows) == 7
    found = out.run.intervals("pq", aggregate="C", groups="none")
    kept = [one.value for one in found.classes if one.name != "sky"]
    assert found.overall.value == pytest.approx(np.nanmean(kept))


def test_a_mean_says_how_many_classes_it_covers():
    # Class 2 is in neither side, so no distance is defined for it; class 3 is only predicted.
    truth = np.array([[[0, 0, 1, 1], [0, 0, 1, 1]]])
    pred = np.array([[[0, 0, 1, 1], [0, 0, 1, 3]]])
    run = segiou.score(truth, pred, labels=4, measures=[Offsets()])
    report = run.report()
    assert report.scores_by_name["offset"].classes == 2
    assert report.scores_by_name["iou"].classes == 3
    assert json.loads(report.to_json())["scores"]["offset"]["classes"] == 2
    for text in (report.to_text(), report.to_markdown(), report.to_html(run=run)):
        assert "fewer than the 4 classes: offset 2, presence 3" in " ".join(
            text.replace("\xa0", " ").split()
        )
    whole = segiou.score(truth, truth, labels=2, measures=[Offsets()]).report()
    assert "cover" not in whole.to_text()


def test_a_mean_covers_absent_classes_that_count_as_zero():
    objects = segiou.measures.objects.ObjectOptions(protocol="semantickitti")
    found = segiou.score([[[0, 1]]], [[[0, 1]]], labels=3, objects=objects).report()
    assert (found.score("pq"), found.scores_by_name["pq"].classes) == (2 / 3, 3)
