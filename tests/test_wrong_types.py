"""What is no input is refused in words, not by an accident further in."""

from __future__ import annotations

import pytest

import segiou

RUN = segiou.score([[[0, 1]], [[0, 0]]], [[[0, 1]], [[0, 1]]], labels=2)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: segiou.bootstrap(RUN), "such as cm.counts or run.counts, not Run"),
        (lambda: segiou.compare(RUN, "b.sqlite"), "not str; open a run file with segiou.Run.open"),
        (lambda: RUN.merge(None), "merge takes runs, not NoneType"),
        (lambda: segiou.load_labels(None), "class names or their number, not NoneType"),
        (lambda: segiou.ConfusionMatrix(True), "class names or their number, not bool"),
        (lambda: RUN.select("0"), "ids must be a sequence of ids, not str"),
        (lambda: RUN.groups(None), "a regular expression or a function, not NoneType"),
    ],
)
def test_wrong_kinds(call, text):
    with pytest.raises(TypeError, match=text):
        call()
