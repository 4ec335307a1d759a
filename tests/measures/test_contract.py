"""What holds for every measure: segiou's own, and those of other packages."""

from __future__ import annotations

import json
import pickle
import random
from pathlib import Path

import numpy as np
import pytest

import segiou
from segiou.cli.options import names_by_heading
from segiou.labels import ClassOptions
from segiou.masks.formats.georeference import Raster
from segiou.measures import MaskPair, Masks, Parts, measure_of
from segiou.measures.area import AreaOptions
from segiou.measures.registry import own_keys, own_scores, plans_of
from segiou.measures.scores import ScoreOptions
from segiou.runs import Header

#: Kinds that need ids of objects, or one or two classes.
OTHERS = {"cells", "partitions", "clicks", "referring", "saliency"}
KEYS = (
    *(
        pytest.param(key, marks=pytest.mark.needs(f"measures.{key}"))
        for key in sorted({*own_keys()} - OTHERS)
    ),
    *("midline", "offsets"),
)
CLASSES = ClassOptions.of(4, ignore=255)
#: Pixels of 100 m².
RASTER = Raster(affine=(10.0, 0.0, 0.0, 0.0, -10.0, 0.0), crs="EPSG:32632", metres=1.0)


def masks(number):
    rng = np.random.default_rng(5)
    truth = np.zeros((number, 14, 16), np.uint8)
    for image in truth:
        row, column = rng.integers(1, 6, 2)
        image[row : row + 5, column : column + 6] = 1
        image[10:13, 2:9] = rng.integers(2, 4)
    pred = np.roll(truth, 1, axis=1)
    truth[:, 0, 0] = 255
    return truth, pred


def scores_of(pred):
    """Scores with these labels, (4, ...)."""
    return np.moveaxis(0.1 + 0.6 * np.eye(4)[pred], -1, 0)


@pytest.fixture(params=KEYS)
def plan(request, plugins):
    measure = measure_of(request.param).of(True)
    (planned,) = plans_of([measure], CLASSES, Masks())
    return planned


def pair_of(truth, pred):
    tally = segiou.ConfusionMatrix.from_options(CLASSES).count(truth, pred)
    beside = {"tally": tally, "scores": scores_of(pred), "raster": RASTER}
    return MaskPair(truth, pred, CLASSES, **beside)


def counted(plan, truth, pred):
    return plan.count(pair_of(truth, pred))


@pytest.fixture
def parts(plan):
    return [counted(plan, t, p) for t, p in zip(*masks(5), strict=True)]


def test_parts_add_up_in_any_order(plan, parts):
    joined = Parts.joined(plan.layout, parts)
    assert len(joined) == 5
    assert (
        joined.total
        == Parts.joined(plan.layout, [joined.take([0, 1]), joined.take([2, 3, 4])]).total
    )
    assert (parts[0] + parts[1]) + parts[2] == parts[0] + (parts[1] + parts[2])
    nothing = Parts.joined(plan.layout, [])
    assert (nothing + parts[0]) == parts[0].total
    for score in plan.scores.values():
        backwards = joined.take([4, 3, 2, 1, 0])
        np.testing.assert_allclose(score.values(joined), score.values(backwards))


def test_parts_are_bytes_and_lists(plan, parts):
    joined = Parts.joined(plan.layout, parts)
    assert Parts.unpack(plan.layout, joined.pack()) == joined
    for part in parts:
        assert Parts.from_dict(plan.layout, part.to_dict()) == part
        plan.check(part)


def test_damaged_bytes_are_refused_or_read_without_harm(plan, parts):
    (packed,) = parts[0].pack()
    chance = random.Random(3)
    for _ in range(200):
        data = bytearray(packed)
        for _ in range(chance.randint(1, 3)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        data = data[: chance.randint(0, len(data))] if chance.random() < 0.3 else data
        try:
            found = Parts.unpack(plan.layout, [bytes(data)])
            plan.check(found)
        except ValueError:
            continue
        assert len(found) == 1
    for cut in range(len(packed)):
        with pytest.raises(ValueError, match=r"truncated|no cell|has no|invalid|outside"):
            Parts.unpack(plan.layout, [packed[:cut]])


@pytest.mark.few(6)
@pytest.mark.parametrize("images", [[], [0, 1]])
def test_an_image_has_a_single_row_of_a_case(plan, parts, images):
    several = Parts.joined(plan.layout, parts).take(images)
    (packed,) = several.total.pack()
    if any(field.single for field in plan.layout.values()):
        with pytest.raises(ValueError, match="must have one row per image"):
            Parts.unpack(plan.layout, [packed])
    else:
        assert Parts.unpack(plan.layout, [packed]) == several.total


def test_plans_are_sent_and_kept(plan, parts):
    _ = plan.scores, plan.image_columns
    sent = pickle.loads(pickle.dumps(plan))
    assert sent == plan
    kept = json.loads(json.dumps(plan.to_dict()))
    again = measure_of(plan.key).plan_from(kept, CLASSES)
    assert again.layout == plan.layout
    assert plan.difference(again) == ""
    header = Header(CLASSES, plans=(plan,))
    assert Header.from_dict(json.loads(json.dumps(header.to_dict()))).plans[0].layout == plan.layout


def test_several_images_are_counted_as_one_by_one(plan, parts):
    pairs = [pair_of(*pair) for pair in zip(*masks(5), strict=True)]
    assert plan.count_several(pairs) == Parts.joined(plan.layout, parts)


def test_images_without_anything(plan):
    empty = np.zeros((14, 16), np.uint8)
    for truth in (empty, np.full_like(empty, 255)):
        part = counted(plan, truth, empty)
        plan.check(part)
        for score in plan.scores.values():
            assert score.values(part).shape == (1 + len(score.names),)


def test_columns_are_those_that_are_described(plan, parts):
    columns = plan.columns(Parts.joined(plan.layout, parts))
    assert [*columns] == [column.name for column in plan.image_columns]
    assert {len(values) for values in columns.values()} == {5}


def test_scores_say_what_they_are(plan, parts):
    joined = Parts.joined(plan.layout, parts)
    assert plan.scores
    for name, score in plan.scores.items():
        assert score.name == name
        assert score.of_images(joined).shape == (5, 1 + len(score.names))
        unit = {"": "%", "number": "0.50"}.get(score.unit, score.unit)
        assert unit in score.shown(0.5)
        if score.seen is not None:
            assert score.seen(joined).shape == (5, len(score.names))
        if score.alone is not None:
            assert np.isfinite(score.alone(joined)).all()


@pytest.mark.few(4)
def test_every_output(plan, plugins):
    truth, pred = masks(5)  # an odd number, since the median of an even one lies between two bins
    scores = [scores_of(one) for one in pred]
    measure = plan.measure
    if plan.key == "area":  # arrays have no place
        measure = AreaOptions(required=False)
    run = segiou.score(truth, scores, labels=4, argmax=1, ignore=255, measures=[measure])
    report = run.report()
    table = report.tables[0]
    assert set(table.rows) <= {row for s in plan.scores.values() for row in s.names}
    for name, score in plan.scores.items():
        # Medians of tables are exact; those of sums have steps of a 64th.
        mean = score.values(run.parts(plan.key))[0]
        assert report.score(name) == pytest.approx(mean, rel=1 / 64, nan_ok=True)
        assert report.better(name) == score.better
        assert name in report.scores(names=[name])
        assert run.intervals(name, groups="none").overall.name.endswith(score.title)
    for text in (str(report), report.to_markdown(), report.to_html(run=run), report._repr_html_()):
        assert table.note.split(";")[0].split(":")[1].strip()[:12] in " ".join(text.split())
    assert report.to_csv()
    assert json.loads(report.to_json())
    assert {column.name for column in plan.image_columns} <= run.rows()[0].keys()


def test_own_measures_declare_what_reports_of_defaults_have():
    """Their names are known without a plan, and each has the options under its key as heading."""
    headings = names_by_heading("score")
    for key in own_keys():
        kind = measure_of(key)
        (plan,) = plans_of([kind.of(True)], ClassOptions.of(2), Masks())
        assert {*plan.scores} <= {name for name, own in own_scores().items() if own == key}
        assert key in headings or kind.options.startswith(f"{key}: score\n")
    folders = Path(segiou.measures.__file__).parent.glob("*/__init__.py")
    assert {*own_keys()} == {path.parent.name for path in folders}


def own_mean_scores():
    """The built-in scores that are means, by measure, with the options that add scores."""
    for key in own_keys():
        measure = ScoreOptions(regions=True) if key == "scores" else measure_of(key).of(True)
        classes = ClassOptions.of(2 if key in ("clicks", "referring", "saliency") else 4)
        (plan,) = plans_of([measure], classes, Masks())
        for score in plan.scores.values():
            if score.is_mean:
                yield pytest.param(score, id=score.name)


@pytest.mark.parametrize("score", [*own_mean_scores()])
def test_means_of_built_in_measures_have_weights(score):
    assert score.weights is not None
    assert score.include is not None


def test_weights_make_the_means_of_built_in_measures(plan, parts):
    joined = Parts.joined(plan.layout, parts)
    for score in plan.scores.values():
        if not score.is_mean or plan.key not in own_keys():
            continue
        sums = score.sums(joined).sum(0)
        if score.median_of is not None:
            cases = score.median_of(joined)
            score = score.of_medians(cases, np.arange(len(cases)), len(cases))
            sums = np.ones(len(cases), np.int64)
        overall, *classes = score.evaluate(sums)
        weights, defined = score.weights(sums), ~np.isnan(classes)
        assert not weights[~defined].any(), score.name
        if defined.any():
            assert weights.sum() == pytest.approx(1), score.name
            assert weights[defined] @ np.array(classes)[defined] == pytest.approx(overall)
