"""What a notebook shows of reports, matrices, runs and comparisons."""

from html.parser import HTMLParser

import numpy as np
import pytest

import segiou
from segiou.accumulators.channel_counts import ChannelCounts
from segiou.analysis.comparison.compare_runs import compare

HOSTILE = "<script>alert(1)</script>"
TRUTH = np.random.default_rng(0).integers(0, 3, (4, 5, 5))


class Fragment(HTMLParser):
    """Keeps what was opened, and fails on what is closed in the wrong order."""

    VOID = frozenset({"br", "hr", "img"})

    def __init__(self, text):
        super().__init__()
        self.open, self.seen, self.styles, self.words = [], [], [], []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        self.styles += [value for name, value in attrs if name == "style"]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


@pytest.fixture(scope="module")
def run():
    pred = np.where(np.random.default_rng(1).random(TRUTH.shape) < 0.3, 0, TRUTH)
    return segiou.score(TRUTH, pred, labels=["road", "car", HOSTILE], name="val")


def shown(run):
    other = segiou.score(TRUTH, TRUTH, labels=["road", "car", HOSTILE], name="<i>best</i>")
    found = compare(run, other, resamples=50, permutations=50)
    return {"report": run.report(), "matrix": run.total(), "run": run, "comparison": found}


@pytest.mark.parametrize("what", ["report", "matrix", "run", "comparison"])
def test_tables_are_well_formed_and_take_the_themes_colors(run, what):
    fragment = Fragment(shown(run)[what]._repr_html_())
    assert "table" in fragment.seen
    assert not {"script", "style", "i"} & set(fragment.seen)
    assert HOSTILE in fragment.words
    for style in fragment.styles:
        # No colour of text, and no ground but bars and cells of middling tone.
        colors = [part for part in style.split(";") if part.strip().startswith("color:")]
        assert set(colors) <= {"color:inherit"}


@pytest.mark.parametrize("what", ["report", "run", "comparison"])
def test_text_is_there_for_those_who_show_no_html(run, what):
    assert HOSTILE in str(shown(run)[what])


def test_numbers_of_the_table(run):
    words = Fragment(run._repr_html_()).words
    report = run.report()
    assert report.verdict in words
    for row in report.classes:
        assert f"{100 * row.iou:.2f} %" in words
    matrix = report.matrix
    assert f"{100 * matrix[0, 0] / matrix[0].sum():.0f}" in words


def test_long_tables_leave_out_what_does_not_occur():
    matrix = segiou.ConfusionMatrix(150).update([0, 1], [0, 1])
    words = Fragment(matrix._repr_html_()).words
    assert "148 absent classes not shown" in words
    assert "Confusion matrix" not in " ".join(words)


def test_overlapping_channels_are_shown_without_a_matrix():
    channels = ChannelCounts(["edema", "tumour"])
    channels.update([[[1, 1, 0]], [[0, 1, 0]]], [[[1, 0, 0]], [[0, 1, 1]]], axis=0)
    text = " ".join(Fragment(channels.report()._repr_html_()).words)
    assert "50.00 %" in text
    assert "Confusion matrix" not in text


def test_nothing_counted_is_shown_too():
    assert "–" in " ".join(Fragment(segiou.ConfusionMatrix(2)._repr_html_()).words)


def test_dollars_in_names_are_no_formulas():
    report = segiou.score(TRUTH, TRUTH, labels=["$a_b$", "US$ 5", "c"]).report()
    # MathJax leaves elements of these classes alone, as in tables of pandas.
    opened = report._repr_html_().partition(">")[0]
    assert "tex2jax_ignore" in opened and "mathjax_ignore" in opened
