"""Measures that segiou does not know reach every output once they are installed."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.stats import t as student_t

import segiou
from segiou.cli.main import main
from segiou.measures import Field, Measure, Parts, Plan, Score, measure_keys, measure_of
from segiou.report import write_comparison_html
from segiou.scoring import Evaluator

BOTH = ("--midline", "--midline-dilate", "1", "--offsets", "--offsets-scale", "2")


@pytest.fixture
def score(command, folders, plugins):
    """Score a folder of predictions with both measures."""

    def run(*arguments, pred="good"):
        places = folders / "truth", folders / pred, "--labels", folders / "set.toml"
        return command("score", *places, *BOTH, "--quiet", *arguments)

    return run


def run_of(folders, pred="good", **options):
    from segiou_midline import CentrelineDice
    from segiou_offsets import Offsets

    measures = [CentrelineDice(1), Offsets(2.0)]
    places = folders / "truth", folders / pred
    return segiou.score_folder(*places, labels=folders / "set.toml", measures=measures, **options)


def test_measures_are_found_by_their_entry_points(plugins):
    assert {"midline", "offsets"} <= {*measure_keys()}
    assert measure_of("offsets").noun == "offsets"


def test_scores_by_hand(folders, plugins):
    # The bar is 1, 2 and 0 pixels off, in units of 2 pixels, and missed once.
    report = run_of(folders).report()
    assert report.score("offset", "bar") == pytest.approx((0.5 + 1 + 0) / 3)
    assert report.score("presence", "bar") == pytest.approx(2 * 3 / (4 + 3))
    assert report.score("offset", "road") == 0
    assert report.score("midline", "road") == 1
    assert (report.better("offset"), report.score_unit("offset")) == ("lower", "px")
    assert report.better("presence") == "higher"


def test_the_table_of_the_terminal(score):
    code, out, _ = score()
    assert code == 0
    words = " ".join(out.split())
    assert re.search(r"class clDice", words)
    assert re.search(r"class offset,? px presence", words)
    assert re.search(r"bar 0\.50 85\.71 %", words)
    assert "dilate=1" in words
    assert "scale=2.0" in words


def test_markdown_csv_and_json(score):
    _, markdown, _ = score("--format", "markdown")
    assert re.search(r"\| bar \| 0\.50 \| 85\.71 % \|", markdown)
    _, text, _ = score("--format", "csv")
    rows = {row["name"]: row for row in csv.DictReader(io.StringIO(text))}
    assert float(rows["bar"]["offset"]) == pytest.approx(0.5)
    assert float(rows["bar"]["presence"]) == pytest.approx(6 / 7)
    _, text, _ = score("--format", "json")
    found = json.loads(text)
    assert found["offsets"]["scores"] == ["offset", "presence"]
    offset = found["scores"]["offset"]
    assert [*offset["rows"]] == ["sky", "road", "bar"]
    assert offset["rows"]["bar"]["value"] == pytest.approx(0.5)
    assert offset["unit"] == "px"
    assert found["scores"]["midline"]["value"] <= 1


def test_rows_of_images(score, folders, plugins, tmp_path):
    score("--per-image", tmp_path / "images.csv")
    with (tmp_path / "images.csv").open(newline="") as file:
        rows = {row["id"]: row for row in csv.DictReader(file)}
    assert [rows[i]["offset:bar"] for i in "abcd"] == ["0.5", "1.0", "0.0", ""]
    run = run_of(folders)
    assert run.rows()[1]["offset:bar"] == 1
    pandas = pytest.importorskip("pandas")
    assert run.to_pandas()["offset:bar"].tolist()[:3] == [0.5, 1, 0]
    assert run.report().to_pandas().loc["bar", "offset"] == pytest.approx(0.5)
    pytest.importorskip("pyarrow")
    table = pandas.read_parquet(run.to_parquet(tmp_path / "rows.parquet"))
    assert table["offset:bar"].tolist()[:3] == [0.5, 1, 0]


def test_notebook_and_page(score, folders, plugins, tmp_path):
    report = run_of(folders).report()
    assert "Centre offsets" in report._repr_html_()
    score("--html", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "Centre offsets" in page
    assert 'id="offsets"' in page
    # Beside it a table of images by class, that leads to the pictures.
    table = page[page.index('id="cases-offsets-offset"') :]
    table = table[: table.index("</table>")]
    assert "bar" in table
    first, *_ = re.findall(r'href="#image=(\w)"', table)
    assert first == "b"
    assert "1.00" in table


def test_run_files_resume_shards_and_merge(score, folders, plugins, command, tmp_path):
    whole = run_of(folders)
    assert score("--run", tmp_path / "r.sqlite")[0] == 0
    opened = segiou.Run.open(tmp_path / "r.sqlite")
    assert opened.parts("offsets") == whole.parts("offsets")
    assert score("--run", tmp_path / "r.sqlite")[0] == 0  # nothing to do
    for i in (1, 2):
        score("--run", tmp_path / f"{i}.sqlite", "--shard", f"{i}/2")
    assert command("merge", tmp_path / "1.sqlite", tmp_path / "2.sqlite", "-o",
                   tmp_path / "all.sqlite")[0] == 0  # fmt: skip
    merged = segiou.Run.open(tmp_path / "all.sqlite")
    assert merged.report().scores(names=["offset", "midline"]) == pytest.approx(
        whole.report().scores(names=["offset", "midline"]), nan_ok=True
    )
    assert whole.select(["a", "c"]).report().score("offset", "bar") == pytest.approx(0.25)
    groups = whole.groups("[ab]|.")
    assert groups["a"].report().score("offset", "bar") == pytest.approx(0.5)


def test_other_options_are_named_before_a_merge(folders, plugins):
    from segiou_offsets import Offsets

    other = segiou.score_folder(
        folders / "truth", folders / "good", labels=folders / "set.toml", measures=[Offsets(3.0)]
    )
    own = segiou.score_folder(
        folders / "truth", folders / "good", labels=folders / "set.toml", measures=[Offsets(2.0)]
    )
    with pytest.raises(ValueError, match=r"scale 2\.0 here and 3\.0 there"):
        own.merge(other)
    with pytest.raises(ValueError, match=r"scale 2\.0.*scale 3\.0"):
        segiou.compare(own, other, metric="offset")


def test_intervals_and_comparisons(folders, plugins, command, tmp_path):
    good, bad = run_of(folders), run_of(folders, "bad")
    found = good.intervals("offset", groups="none")
    mean = found.overall
    assert mean.value == pytest.approx(good.report().score("offset"))
    # On the log scale, with arms by the plain sum of squares, whatever those of its classes are.
    shrink = np.sqrt((mean.units - 1) / mean.units)
    reach = student_t.ppf(0.975, mean.freedom) * mean.standard_error / shrink / mean.value
    arms = np.expm1([-reach, reach]) * mean.value * shrink
    assert np.subtract([mean.low, mean.high], mean.value) == pytest.approx(arms)
    both = segiou.compare(good, bad, metric="offset", names=("good", "bad"), groups="none")
    assert (both.better, both.score_unit) == ("lower", "px")
    assert both.ranking[0].name == "good"
    text = str(both)
    assert "px" in text
    assert "100.00 %" not in text.replace("100.00 % interval", "")
    for name in ("good", "bad"):
        run_of(folders, name).save(tmp_path / f"{name}.sqlite")
    files = tmp_path / "good.sqlite", tmp_path / "bad.sqlite"
    code, out, _ = command("compare", *files, "--metric", "offset", "--html", tmp_path / "c.html")
    assert code == 0
    assert "px" in out
    assert "px" in (tmp_path / "c.html").read_text()


def test_compare_scores_what_a_metric_needs(folders, plugins, command):
    places = folders / "good", folders / "bad", "--truth", folders / "truth"
    labels = "--labels", folders / "set.toml"
    code, out, _ = command("compare", *places, *labels, "--metric", "presence", "--quiet")
    assert code == 0
    assert "presence" in out


def test_thresholds(score):
    assert score("--fail-under", "presence:bar=0.8")[0] == 0
    code, _, noted = score("--fail-under", "presence:bar=0.9")
    assert code == 1
    assert "85.71 %" in noted
    assert score("--fail-over", "offset=1")[0] == 0
    code, _, noted = score("--fail-over", "offset:bar=0.25")
    assert code == 1
    assert "0.50 px" in noted
    code, _, noted = score("--fail-under", "offset=1")
    assert code == 2
    assert "--fail-over" in noted
    assert score("--fail-over", "presence=1")[0] == 2
    code, _, noted = score("--fail-over", "offset:tree=1")
    assert code == 2
    assert "sky, road, bar" in noted


def test_images_are_ranked(score, folders, plugins):
    run = run_of(folders)
    assert [row["id"] for row in run.worst(2, by="offset:bar")] == ["b", "a"]
    assert [row["id"] for row in run.worst(1, by="presence:bar")] == ["d"]
    code, out, _ = score("--worst", "1", "--worst-by", "offset:bar")
    assert code == 0
    assert "1.00 px" in out


def test_scores_for_trackers(folders, plugins):
    found = run_of(folders).report().scores("val/", names=["offset", "mean_iou"])
    assert found["val/offset/bar"] == pytest.approx(0.5)
    assert {"val/offset", "val/mean_iou"} <= found.keys()


def test_loops(folders, plugins):
    from segiou_offsets import Offsets

    run = run_of(folders)
    evaluator = Evaluator(["sky", "road", "bar"], measures=[Offsets(2.0), "midline"])
    for row in run.rows():
        truth, pred = (segiou.read_mask(row[side]) for side in ("truth", "pred"))
        evaluator.update(truth, pred, ids=[row["id"]])
    assert evaluator.scores()["offset"] == pytest.approx(run.report().score("offset"))
    half = Evaluator(["sky", "road", "bar"], measures=[Offsets(2.0), "midline"])
    saved = json.loads(json.dumps(evaluator.state_dict()))
    assert half.load_state_dict(saved).scores() == pytest.approx(evaluator.scores(), nan_ok=True)
    assert evaluator.run().parts("offsets") == run.parts("offsets")


def test_help_lists_their_options(plugins, capsys):
    with pytest.raises(SystemExit):
        main(["score", "--help-all"])
    assert "--offsets-scale SCALE" in capsys.readouterr().out


def test_what_is_wrong_is_said(command, folders, plugins):
    places = folders / "truth", folders / "good", "--labels", folders / "set.toml"
    code, _, noted = command("score", *places, "--midline", "--midline-dilate", "many")
    assert code == 2
    assert "--midline-dilate many" in noted
    code, _, noted = command("score", *places, "--midline", "--midline-dilate", "-1")
    assert code == 2
    assert "dilate" in noted
    with pytest.raises(ValueError, match="offsets"):
        segiou.score([[0]], [[0]], labels=1, measures=["offset"])
    plain = segiou.score([[0, 1]], [[0, 1]], labels=2)
    with pytest.raises(ValueError, match="offset"):
        plain.intervals("offset")
    with pytest.raises(ValueError, match="offset was not measured; score with --offsets"):
        plain.report().score("offset")


@dataclass(frozen=True)
class Excess(Measure):
    """Difference in the number of pixels per image."""

    key = "excess"

    def plan(self, classes, masks):
        return ExcessPlan(self, classes, masks)


class ExcessPlan(Plan):
    @property
    def layout(self):
        return {"sizes": Field((self.classes.num_classes, 3))}

    def count(self, pair):
        both = [np.bincount(side.ravel(), minlength=4) for side in pair.indices]
        return Parts.of(self.layout, sizes=np.stack([*both, np.ones(4, int)], -1))

    @property
    def scores(self):
        def excess(sums):
            return np.abs(sums[..., 0] - sums[..., 1]) / np.maximum(sums[..., 2], 1)

        how = {"unit": "number", "better": "lower"}
        own = lambda parts: parts["sizes"]  # noqa: E731
        return {"excess": Score.of_classes("excess", "excess", self.classes, own, excess, **how)}


def test_models_that_differ_hugely_in_a_number_are_ranked(tmp_path):
    """Intervals of such numbers are so long that their squares overflow."""

    def run(name, *sizes):
        def images(rows):
            filled = ([*row, 3000 - sum(row)] for row in rows)
            return [np.repeat(range(4), row)[None].astype(np.uint8) for row in filled]

        truth = [[216, 200, 176], [208, 184, 216], [120, 160, 168], [216, 240, 136]]
        how = {"labels": 4, "exclude": 3, "measures": [Excess()], "name": name}
        return segiou.score(images(truth), images(sizes), **how)

    close = run("a", [240, 176, 256], [208, 208, 160], [176, 192, 192], [184, 168, 208])
    far = run("b", [624, 1176, 696], [608, 1168, 688], [440, 1232, 824], [752, 1296, 624])
    between = run("c", [848, 512, 496], [832, 480, 544], [800, 448, 560], [768, 496, 432])
    with np.errstate(over="raise", invalid="raise"):
        found = segiou.compare(close, far, between, metric="excess")
    assert [row.name for row in found.ranking] == ["a", "c", "b"]
    found = segiou.compare(close, far, metric="excess")
    path = write_comparison_html(tmp_path / "page.html", found, close, far)
    page = re.sub("(?s)<(script|style).*?</(script|style)>", "", path.read_text("utf-8"))
    assert "Median difference" in page
    words = " ".join(re.findall(">([^<]*)<", page)).replace("bold number", "")
    assert "number" not in words
