"""Compare, rank, gates, slices and every output have one verdict on every data set."""

import csv
import html
import math
import re

import numpy as np
import pytest

from segiou import compare, rank, score, slices
from segiou.cli.thresholds import not_worse
from segiou.report import render_comparison

IMAGES = (2, 3, 5, 6, 8, 12, 20, 30)


def runs_of(seed):
    """Two models of random quality; some sets have rare classes or equal differences."""
    rng = np.random.default_rng(seed)
    number, classes = IMAGES[seed % len(IMAGES)], int(rng.integers(2, 5))
    shares = 1.0 / np.arange(1, classes + 1) ** 2
    truths = rng.choice(classes, (number, 8, 8), p=shares / shares.sum())
    wrong = rng.uniform(0.05, 0.4)
    easy = rng.uniform(0.5, 1.5, (number, 1, 1))
    miss = rng.random(truths.shape) < wrong * easy
    other = (truths + rng.integers(1, classes, truths.shape)) % classes
    first = np.where(miss, other, truths)
    kind = seed % 5
    if kind == 0:  # independent errors of about the same number
        again = rng.random(truths.shape) < (wrong + rng.uniform(-0.1, 0.1)) * easy
        second = np.where(again, other, truths)
    elif kind == 1:  # identical
        second = first
    else:  # most errors in common
        fixed = miss & (rng.random(truths.shape) < rng.choice([0.02, 0.1, 0.3]))
        broken = rng.random(truths.shape) < rng.choice([0.0, 0.02, 0.05])
        second = np.where(broken, other, np.where(fixed, truths, first))
    if kind == 2:  # all images differ by the same amount
        truths, first, second = (np.repeat(x[:1], number, 0) for x in (truths, first, second))
    ids = [f"{'xy'[i % 3 == 0]}_{int(rng.integers(1000))}_{i}" for i in range(number)]
    labels = [f"c{i}" for i in range(classes)]
    return [
        score(dict(zip(ids, truths, strict=True)), dict(zip(ids, p, strict=True)), labels=labels,
              name=name)
        for name, p in (("first", first), ("second", second))
    ]  # fmt: skip


#: Every verdict of a comparison, without its scores.
VERDICTS = re.compile(
    r"(?:first|second) scores higher than (?:first|second)|No significant difference between|"
    r"Not enough \w+ to compare|(?:first|second) and (?:first|second) (?:have the|are identical)"
)


def plain(markup):
    """The text of HTML."""
    return html.unescape(re.sub("<[^>]*>", " ", markup))


def check(seed):
    a, b = runs_of(seed)
    found = compare(a, b, groups="none")
    (pair,) = found.pairs
    overall, kind = pair.overall, found.outcome(pair).kind
    p, delta, has_interval = overall.p, overall.delta, not math.isnan(overall.low)
    assert kind in ("better", "similar", "too few", "equal", "identical")
    assert (kind == "better") == overall.differs(0.95) == (p < 0.05)
    assert p >= 2.0 ** (1 - len(a.ids)) or (has_interval and 3 <= len(a.ids) < 6)
    for row in (overall, *pair.classes):
        if not math.isnan(row.low):
            assert (row.low > 0 or row.high < 0) == (row.p < 0.05)
    # The models exchanged.
    (turned,) = compare(b, a, groups="none").pairs
    assert turned.overall.p == pytest.approx(p)
    assert turned.overall.low == pytest.approx(-overall.high, abs=1e-9, nan_ok=True)

    gate = not_worse(found)
    worse = delta < 0 and p / 2 < 0.05
    assert (gate.state == "failed") == worse == (not gate.passed)
    if kind == "better":
        assert gate.state == ("failed" if delta < 0 else "passed")
    for margin in (0.02, 0.2):
        certain = not_worse(found, margin, confident=True)
        # A margin asks for more than no margin to fail, and for less to pass.
        assert certain.state != "failed" or worse
        assert certain.state == "passed" or gate.state != "passed"

    ranked = rank([a, b], by="iou", groups="none", draws=0)
    if kind not in ("too few", "identical", "equal"):
        assert ranked.false_claim == p / 2
        sets = {model.name: (model.rank_low, model.rank_high) for model in ranked.models}
        assert (sets["first"] != sets["second"]) == (kind == "better")
        if kind == "better":
            assert ranked.models[0].name == found.outcome(pair).first

    data = found.to_dict()["pairs"][0]
    assert data["overall"]["p"] == p
    assert data["overall"]["low"] == (overall.low if has_interval else None)
    verdict, *more = found.pair_sentences(pair)
    assert {verdict, *more} <= {*found.to_dict()["sentences"]}
    documents = {
        "text": found.to_text(),
        "Markdown": found.to_markdown(),
        "LaTeX": re.sub("^% ", "", found.to_latex(), flags=re.MULTILINE),
        "notebook": plain(found._repr_html_()),
        "page": plain(render_comparison(found, a, b, examples=0)),
    }
    for kind, document in documents.items():
        shown = " ".join(document.split())
        assert " ".join(verdict.split()) in shown, kind
        # The page has the evidence in a row of its own.
        assert kind == "page" or all(" ".join(line.split()) in shown for line in more), kind
        verdicts = [" ".join(each.split()) for each in VERDICTS.findall(shown)]
        assert {*verdicts} == {*VERDICTS.findall(" ".join(verdict.split()))}, kind
    (row, *_) = csv.DictReader(found.to_csv().splitlines())
    assert float(row["p"]) == p and (row["low"] == "") == (not has_interval)
    shown = plain(ranked._repr_html_())
    assert all(sentence in shown for sentence in ranked.sentences())

    sliced = slices(a, b, by=r"^(?P<part>[xy])", groups="none")
    first_line = sliced.to_text(1000).partition("\n")[0]
    assert first_line in plain(sliced._repr_html_())
    for part in sliced:
        ids = [id for id in a.ids if id.startswith(part.value)]
        if part.units < 3 or math.isnan(part.score):
            continue
        (same,) = compare(a.select(ids), b.select(ids), groups="none").pairs
        if part.classes == sum(not math.isnan(row.delta) for row in same.classes):
            assert part.score == pytest.approx(same.overall.delta, abs=1e-9)
            assert part.low == pytest.approx(same.overall.low, abs=1e-9, nan_ok=True)
            assert part.p == pytest.approx(same.overall.p)


@pytest.mark.few(3)
@pytest.mark.parametrize("seed", range(10))
def test_one_verdict(seed):
    check(seed)


@pytest.mark.gate
@pytest.mark.parametrize("start", range(10, 60, 10))
def test_one_verdict_on_many_data_sets(start):
    for seed in range(start, start + 10):
        check(seed)
