"""``check_measure`` finds planted faults, and nothing in measures without any."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pytest

import segiou
from segiou.checks import check_measure
from segiou.measures import Field, Measure, Parts, Plan, Score


def sizes_of(sides, number):
    return np.array([[(side == c).sum() for side in sides] for c in range(number)])


def share(sums):
    largest = sums.max(-1)
    return np.divide(sums.min(-1), largest, where=largest > 0, out=np.full(largest.shape, np.nan))


@dataclass(frozen=True)
class Sizes(Measure):
    """Smaller of two sizes as a share of the larger."""

    key = "sizes"
    options = "sizes: score\n  --sizes  score sizes"

    def plan(self, classes, masks):
        return SizePlan(self, classes, masks)


class SizePlan(Plan):
    @property
    def layout(self):
        return {"sizes": Field((self.classes.num_classes, 2))}

    def count(self, pair):
        return Parts.of(self.layout, sizes=sizes_of(pair.indices, self.classes.num_classes))

    def ratio(self, sums):
        return share(sums)

    def numbers(self, parts):
        return parts["sizes"]

    @property
    def scores(self):
        name = self.score_name
        return {name: Score.of_classes(name, "size", self.classes, self.numbers, self.ratio)}

    score_name = "size_ratio"


def planted(plan_class=None, **attributes):
    """A measure whose plan has other attributes."""
    kind = type("Planted", (plan_class or SizePlan,), {"__module__": __name__, **attributes})
    globals()["Planted"] = kind

    @dataclass(frozen=True)
    class Faulty(Sizes):
        """A measure with a fault."""

        def plan(self, classes, masks):
            return kind(self, classes, masks)

    Faulty.__qualname__ = "Faulty"
    globals()["Faulty"] = Faulty
    return Faulty()


calls = []


def remembering(self, pair):
    calls.append(1)
    return Parts.of(self.layout, sizes=sizes_of(pair.indices, 4) + len(calls))


def with_ignored(self, pair):
    return Parts.of(self.layout, sizes=sizes_of((pair.indices[0], pair.pred), 4))


def of_labels(self, pair):
    truth, pred = (np.where(pair.indices[0] < 0, 99, s) for s in (pair.truth, pair.pred))
    return Parts.of(self.layout, sizes=sizes_of((truth, pred), 4))


def at_least_two(self, pair):
    sizes = sizes_of(pair.indices, 4)
    if sizes[:, 0].max() == sizes.sum() / 2:
        msg = "only one class"
        raise IndexError(msg)
    return Parts.of(self.layout, sizes=sizes)


def of_images(self, parts):
    return np.nan_to_num(share(parts["sizes"]))[..., None].repeat(2, -1)


def first_axis(self, sums):
    return share(sums) * 0 + sums.sum(0).sum() / 1e9


def dividing(self, sums):
    return sums.min(-1) / sums.max(-1)


def zero(self, sums):
    return np.nan_to_num(share(sums))


def factor(self, sums):
    return 3 * share(sums)


FAULTS = {
    "the second time": {"count": remembering},
    "predictions of ignored pixels": {"count": with_ignored},
    "label values are taken for class indices": {"count": of_labels},
    "Images without anything: .*only one class": {"count": at_least_two},
    "do not add up": {"numbers": of_images},
    "mixes images": {"ratio": first_axis},
    "else return NaN": {"ratio": dividing},
    "of a class that no image has must be NaN": {"ratio": zero},
    "set unit='number'": {"ratio": factor},
    "'dice' is defined by segiou": {"score_name": "dice"},
    "'mean_size' .* has the name of a mean": {"score_name": "mean_size"},
    "'Mean Size' .* remove 'mean' from the name": {"score_name": "Mean Size"},
    "must return numbers of shape": {"ratio": lambda self, sums: share(sums)[..., :1]},
}


@pytest.mark.gate
@pytest.mark.parametrize("words", FAULTS)
def test_a_planted_fault_is_found(words):
    found = check_measure(planted(**FAULTS[words]))
    assert not found.passed
    assert any(re.search(words, text) for text in found.findings), found


@pytest.mark.gate
def test_other_faults_are_found():
    class Loose(Measure):
        """Without a decorator, local and unpicklable, with an option that is no plain data."""

        key = "loose"
        names: object

        def to_dict(self):
            return {"names": {1, 2}}

        def plan(self, classes, masks):
            return SizePlan(self, classes, masks)

    text = str(check_measure(Loose()))
    assert "decorate Loose with @dataclass(frozen=True)" in text
    assert "options must describe --loose" in text
    assert "Pickling of the plan" in text
    assert "Saved options: " in text


def test_a_sound_measure_passes():
    found = check_measure(Sizes())
    assert found.passed, found
    assert "14 checks, passed" in str(found)
    assert found.to_dict()["findings"] == []
    assert found.slowdown > 0


def test_only_measures_are_checked():
    with pytest.raises(TypeError, match="measure"):
        check_measure("sizes")


@dataclass(frozen=True)
class Spread(Sizes):
    """Difference of sizes: a plain number."""

    key = "spread"

    def plan(self, classes, masks):
        return SpreadPlan(self, classes, masks)


class SpreadPlan(SizePlan):
    @property
    def scores(self):
        def mean(sums):
            return np.abs(sums[..., 0] - sums[..., 1]) * 1.0

        how = {"unit": "number", "better": "lower"}
        score = Score.of_classes("spread", "spread", self.classes, self.numbers, mean, **how)
        return {"spread": score}


def test_a_number_is_shown_as_a_number():
    truth = np.array([[[0, 0, 0, 1]], [[0, 0, 1, 1]], [[0, 1, 1, 1]]])
    pred = np.array([[[0, 1, 1, 1]], [[0, 1, 1, 1]], [[0, 0, 1, 1]]])
    run = segiou.score(truth, pred, labels=["a", "b"], measures=[Spread()])
    report = run.report()
    # a: 6 and 4 pixels; b: 6 and 8.
    assert report.score("spread", "a") == 2
    text = str(report)
    assert "2.00" in text
    assert "number" not in text.partition("spread")[2].partition("\n")[0]
    assert "200.00" not in text
    found = run.intervals("spread", groups="none")
    assert "200.00" not in str(found)
    assert {row.name for row in found.classes} == {"a", "b"}
    assert all(np.isfinite([row.low, row.high]).all() for row in found.classes)
    both = segiou.compare(run, run, metric="spread", names=("x", "y"), groups="none")
    assert "200.00" not in str(both)
    assert "2.00" in str(both)
    assert "200.00" not in report.to_html(run=run).partition("spread")[2][:4000]
