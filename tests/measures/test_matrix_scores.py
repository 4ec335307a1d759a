"""Functions of the confusion matrix reach every output, also those of matched clusters."""

import csv
import io
import json
from html import unescape

import numpy as np
import pytest

import segiou
from segiou.cli.main import main
from segiou.measures.change import ChangeOptions
from segiou.measures.class_sets import ClassSetOptions
from segiou.measures.cost import CostOptions
from segiou.measures.few_shot import FewShotOptions

#: Each score, with its title in tables and one of its rows.
SCORES = {
    "sek": ("SeK", ""),
    "f_scd": ("F_scd", ""),
    "scd_miou": ("mIoU of change and no change", ""),
    "scd_score": ("SCD score", ""),
    "set_iou": ("mIoU", "novel"),
    "expected_cost": ("expected cost", "bus"),
    "fb_iou": ("FB-IoU", "foreground"),
}
OPTIONS = {
    "labels": ["none", "car", "bus", "tree"],
    "measures": [
        ChangeOptions(),
        ClassSetOptions({"novel": ["bus"], "base": ["car", "tree"]}),
        CostOptions({("car", "bus"): 3}),
        FewShotOptions(),
    ],
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A run of clusters and one of classes of the same images, from their files."""
    rng = np.random.default_rng(3)
    truths = rng.integers(0, 4, (7, 9, 11))
    truths[:, :4] = 0
    preds = [np.where(rng.random(truths.shape) < share, 0, truths) for share in (0.2, 0.4)]
    clusters = np.array([7, 2, 9, 4])[preds[0]]
    clusters[rng.random(truths.shape) < 0.05] = 5
    folder = tmp_path_factory.mktemp("runs")
    matched = segiou.score(truths, clusters, match="hungarian", name="matched", **OPTIONS)
    plain = segiou.score(truths, preds[1], name="plain", **OPTIONS)
    return [segiou.Run.open(run.save(folder / f"{run.name}.segiou")) for run in (matched, plain)]


@pytest.fixture(scope="module")
def report(runs):
    return runs[0].report(intervals=[runs[0].intervals(name) for name in ("iou", *SCORES)])


@pytest.fixture
def command(capsys):
    def run(*arguments):
        code = main([str(one) for one in arguments])
        found = capsys.readouterr()
        return code, " ".join(found.out.split()), " ".join(found.err.split())

    return run


@pytest.mark.needs("planning")
@pytest.mark.few(3)
@pytest.mark.parametrize("name", SCORES)
def test_in_data(name, runs, report):
    title, row = SCORES[name]
    value, interval = report.score(name), runs[0].intervals(name).overall
    assert interval.low < value < interval.high
    found = json.loads(report.to_json())["scores"][name]
    assert (found["title"], found["value"]) == (title, value)
    assert (found["low"], found["high"]) == (interval.low, interval.high)
    assert report.scores(names=[name])[name] == value
    lines = {line["name"]: line for line in csv.DictReader(io.StringIO(report.to_csv()))}
    assert float(lines[found["overall"]][name]) == value
    assert float(lines[found["overall"]][f"{name}_low"]) == interval.low
    if row:
        assert float(lines[row][name]) == report.score(name, row) == found["rows"][row]["value"]
    images = [line[name] for line in runs[0].rows()]
    assert len(images) == 7
    assert not np.isnan(np.array(images, float)).all()
    assert runs[0].sample_sizes(0.02, name).units > 1
    halves = [{"id": str(i), "half": "ab"[i % 2]} for i in range(7)]
    assert len(runs[0].slices(halves, metric=name).to_dict()["slices"]) == 2


@pytest.mark.few(3)
@pytest.mark.parametrize("name", SCORES)
def test_in_tables_and_pages(name, runs, report):
    title = SCORES[name][0]
    shown = runs[0].score_plans[name].scores[name].shown(report.score(name)).removesuffix(" %")
    page = unescape(report.to_html(run=runs[0]))
    latex = report.to_latex().replace("\\_", "_").replace("\\%", "%")
    for text in (report.to_text(), report.to_markdown(), report._repr_html_(), latex, page):
        words = " ".join(text.split())
        assert shown in words
        assert all(word in words for word in title.split())
        assert "matched by hungarian" in words


@pytest.mark.few(2)
@pytest.mark.parametrize("name", SCORES)
def test_in_comparisons_and_gates(name, runs, command):
    found = segiou.compare(*runs, metric=name)
    values = {run.name: run.report().score(name) for run in runs}
    pair = found.pairs[0]
    assert (pair.overall.a, pair.overall.b) == (values[pair.a], values[pair.b])
    assert pair.overall.low < pair.overall.delta < pair.overall.high
    paths = [run.path for run in runs]
    code, out, _ = command("compare", *paths, "--metric", name)
    assert code == 0
    assert runs[0].score_plans[name].scores[name].overall_title in out
    code, out, _ = command("compare", *paths, "--metric", name, "--table=intervals")
    assert code == 0
    option = "--fail-over" if name == "expected_cost" else "--fail-under"
    below, above = values["matched"] * 0.9, min(1, values["matched"] * 1.1)
    passes, fails = (above, below) if name == "expected_cost" else (below, above)
    assert command("report", paths[0], option, f"{name}={passes}")[0] == 0
    code, _, noted = command("report", paths[0], option, f"{name}={fails}")
    assert code == 1
    assert f"threshold failed: {name} is" in noted
