"""Images that are not independent: found in names and scores, said, and resampled in blocks."""

import json

import numpy as np
import pytest

from segiou import compare, score
from segiou.analysis.comparing import permutation_test
from segiou.analysis.dependence import (
    Blocks,
    Dependence,
    Sequences,
    dependence_of,
    design_of,
    sequences_in_names,
)
from segiou.analysis.intervals import bootstrap
from segiou.analysis.statistics import image_scores, scored_images, statistic
from segiou.analysis.units import units_of
from segiou.counting.counts import ConfusionCounts, Counts


def one_sequence(number):
    return Sequences(("",), (np.arange(number),))


def serial(correlation, number, seed=None):
    """AR(1): each value a share of the one before it, plus chance."""
    rng = np.random.default_rng(number if seed is None else seed)
    chance, found = rng.normal(size=number), np.zeros(number)
    for t in range(1, number):
        found[t] = correlation * found[t - 1] + chance[t]
    return found


def frames(number=60, seed=0, correlation=0.9, shift=0):
    """Counts of two classes, where frame after frame gets harder and easier."""
    rng = np.random.default_rng(seed)
    ease = 1 + 0.5 * serial(correlation, number, seed)
    truth = rng.integers(300, 500, (number, 2))
    hit = rng.binomial(truth, 1 / (1 + np.exp(-ease - shift))[:, None])
    table = np.zeros((number, 2, 3), np.int64)
    for c in range(2):
        table[:, c, c] = hit[:, c]
        table[:, c, 1 - c] = truth[:, c] - hit[:, c]
    return ConfusionCounts(table).counts


@pytest.mark.parametrize(
    ("ids", "names", "members", "pattern"),
    [
        (
            ["0001TP_10", "0001TP_9", "Seq05VD_f2", "Seq05VD_f1"],
            ("0001TP", "Seq05VD"),
            [[1, 0], [3, 2]],
            "^[^_]+",
        ),
        (
            ["bonn_00_000294_leftImg8bit", "bonn_00_000576_leftImg8bit",
             "ulm_01_000019_leftImg8bit", "ulm_02_000019_leftImg8bit"],
            ("bonn", "ulm"), [[0, 1], [2, 3]], "^[^_]+",
        ),
        (["p1/s9", "p2/s1", "p1/s10", "p2/s2"], ("p1", "p2"), [[0, 2], [1, 3]], "^[^/]+"),
        (["0", "1", "10", "2"], ("",), [[0, 1, 3, 2]], None),
        (["c1-a7", "c1-b2", "c1-a6", "c1-b1"], ("c1-a", "c1-b"), [[2, 0], [3, 1]], None),
    ],
)  # fmt: skip
def test_sequences_are_found_in_names(ids, names, members, pattern):
    found = sequences_in_names(tuple(ids))
    assert found.names == names
    assert [own.tolist() for own in found.members] == members
    assert pattern in (None, found.pattern)


@pytest.mark.parametrize("ids", [["cat", "dog", "cow"], ["a", "b1", "b2"]])
def test_names_without_numbers_show_no_sequences(ids):
    assert sequences_in_names(tuple(ids)) is None


# What arch 8.0.0 gives: optimal_block_length(serial(ρ, n)).
ARCH = {(0.3, 60): 2.0696, (0.3, 1000): 8.5065, (0.6, 200): 6.9620, (0.9, 60): 6.2536,
        (0.9, 200): 18.5371, (0.9, 1000): 42.2486}  # fmt: skip


@pytest.mark.parametrize(("correlation", "number"), sorted(ARCH))
def test_block_length_is_that_of_arch(correlation, number):
    values = serial(correlation, number)
    found = dependence_of(values, one_sequence(number))
    assert found.block_length == pytest.approx(ARCH[correlation, number], abs=2e-3)


def test_block_length_against_arch_itself():
    optimal = pytest.importorskip("arch.bootstrap").optimal_block_length
    for seed in range(20):
        values = serial(0.7, 150, seed)
        theirs = optimal(values).to_numpy()[0, 0]
        assert dependence_of(values, one_sequence(150)).block_length == pytest.approx(theirs)


def test_correlations_by_hand():
    # Deviations 1, 1, -1, -1, … : at lag 1 half of the neighbours agree, at lag 2 none does.
    values = np.array([1.0, 1.0, -1.0, -1.0] * 10)
    found = dependence_of(values, one_sequence(40))
    assert found.correlations[0] == pytest.approx(1 / 40)
    assert found.correlations[1] == pytest.approx(-38 / 40)
    # Across the border of two sequences nothing is a neighbour.
    halves = Sequences(("a", "b"), (np.arange(2), np.arange(2, 4)))
    apart = dependence_of(np.array([1.0, 1.0, -1.0, -1.0]), halves)
    assert apart.correlations[0] == pytest.approx(2 / 4)


def test_design_effect_of_what_goes_together_and_of_what_does_not():
    long = dependence_of(serial(0.6, 20_000), one_sequence(20_000))
    assert long.correlated
    assert long.design_effect == pytest.approx(4, rel=0.2)  # (1 + ρ) / (1 − ρ)
    assert long.effective_images == pytest.approx(5000, rel=0.2)
    chance = dependence_of(serial(0, 2000), one_sequence(2000))
    assert not chance.noteworthy
    assert chance.design_effect == pytest.approx(1, abs=0.2)
    against = dependence_of(serial(-0.6, 500), one_sequence(500))
    assert (against.block_length, against.correlated) == (1.0, False)


def test_what_does_not_vary_or_is_undefined_correlates_with_nothing():
    for values in (np.full(30, 0.1) * 3, np.full(30, np.nan)):
        found = dependence_of(values, one_sequence(30))
        assert (found.design_effect, found.block_length, found.correlated) == (1.0, 1.0, False)
    some = serial(0.9, 60)
    some[7] = np.nan
    assert dependence_of(some, one_sequence(60)).correlated


def test_image_scores_are_means_over_the_classes_in_the_truth():
    counts = Counts([[6, 0], [2, 2]], [[0, 2], [0, 2]], [[2, 0], [2, 0]], [[0, 6], [2, 2]])
    assert image_scores(counts, "iou") == pytest.approx([6 / 8, (2 / 4 + 2 / 4) / 2])
    assert image_scores(counts, "pixel_accuracy") == pytest.approx([6 / 8, 4 / 6])


# -- blocks ----------------------------------------------------------------------------------


def test_stationary_bootstrap_draws_runs_of_the_mean_length_within_sequences():
    sequences = Sequences(("a", "b"), (np.arange(40)[::-1], np.arange(40, 1040)))
    weights = Blocks(sequences, 5.0).draw(0)(1000)
    assert weights.shape == (1000, 1040)
    assert (weights[:, :40].sum(1) == 40).all()
    assert (weights[:, 40:].sum(1) == 1000).all()
    assert weights.mean(0) == pytest.approx(np.ones(1040), abs=0.4)
    # Neighbours are drawn together: the chance that a run goes on is 1 − 1/L.
    deviations = weights[:, 40:] - 1.0
    along = (deviations[:, 1:] * deviations[:, :-1]).mean() / (deviations**2).mean()
    assert along == pytest.approx(1 - 1 / 5, abs=0.01)
    # Images of different sequences are not.
    across = (weights[:, 39] - 1.0) * (weights[:, 40] - 1.0)
    assert abs(across.mean()) < 5 * across.std() / np.sqrt(1000)


def test_blocks_of_one_image_are_images():
    weights = Blocks(one_sequence(5), 1.0).draw(0)(20_000)
    assert weights.var(0) == pytest.approx(np.full(5, 5 * 0.2 * 0.8), rel=0.05)


def test_batches_do_not_change_blocks():
    whole = Blocks(one_sequence(30), 4.0).draw(3)(10)
    draw = Blocks(one_sequence(30), 4.0).draw(3)
    assert np.array_equal(np.concatenate([draw(3), draw(7)]), whole)


def test_blocks_that_are_swapped_are_stretches():
    sequences = Sequences(("a", "b"), (np.array([2, 0, 1]), np.array([3, 4])))
    units = Blocks(sequences, 2.0).units(list("vwxyz"))
    assert (units.kind, units.names) == ("block", ("x to v", "w to w", "y to z"))
    assert units.index.tolist() == [0, 1, 0, 2, 2]


def test_flips_of_blocks_are_all_looked_at_where_they_are_few():
    a, b = frames(12, seed=1), frames(12, seed=2, shift=0.3)
    units = Blocks(one_sequence(12), 4.0).units([str(i) for i in range(12)])
    found = permutation_test(*(statistic(c, units=units) for c in (a, b)), 100, 0)
    assert (found.permutations, found.exact) == (8, True)
    assert found.p[0] * 8 == pytest.approx(round(found.p[0] * 8))


def test_interval_over_blocks_is_wider_where_neighbours_score_alike():
    counts = frames(200)
    images, blocks = (bootstrap(counts, blocks=b, resamples=2000) for b in (None, "auto"))
    assert (blocks.unit, images.unit) == ("block", "image")
    assert blocks.block_length > 3
    assert blocks.overall.value == images.overall.value
    ratio = blocks.overall.standard_error / images.overall.standard_error
    assert ratio == pytest.approx(np.sqrt(blocks.dependence.design_effect), rel=0.35)
    given = bootstrap(counts, blocks=8, resamples=500)
    assert (given.block_length, given.units) == (8.0, 25)
    assert given.resampled == "25 blocks of images, 8.0 images on average"


def test_blocks_within_groups():
    counts = frames(40)
    found = bootstrap(counts, groups=[0] * 15 + [1] * 25, blocks=5, resamples=200)
    assert (found.unit, found.units, found.dependence.sequences) == ("block", 8, {"0": 15, "1": 25})
    assert bootstrap(counts, blocks=5, resamples=50, method="bca").overall.low > 0


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"blocks": 0.5}, ValueError, "blocks must be at least 1"),
        ({"blocks": "long"}, ValueError, "blocks must be 'auto' or a number"),
        ({"blocks": True}, TypeError, "blocks must be a number"),
        ({"blocks": 4, "groups": "none"}, ValueError, "pass only one of them"),
        ({"blocks": 99}, ValueError, "1 block to resample"),
        ({"blocks": 4, "groups": ["a"]}, ValueError, "40 images, 1 groups"),
        ({"ids": range(40)}, TypeError, "an id must be text, not int"),
        ({"ids": ["a"]}, ValueError, "40 images, 1 ids"),
    ],
)
def test_refusals(options, error, message):
    with pytest.raises(error, match=message):
        bootstrap(frames(40), resamples=10, **options)


# -- what is said ----------------------------------------------------------------------------


def named(number, *prefixes):
    return [f"{p}_{i:03d}" for p in prefixes for i in range(number)]


def test_frames_of_two_drives_are_no_sample_of_drives():
    counts, ids = frames(40, correlation=0), named(20, "one", "two")
    found = bootstrap(counts, ids=ids, resamples=200)
    assert found.unsafe
    assert str(found.caution()) == (
        "only 2 sequences, so the result does not generalise to other sequences. "
        "See docs/intervals.md."
    )
    assert "File names suggest 2 sequences (one 20, two 20)." in found.interval_method()


def test_correlated_neighbours_are_found_in_one_sequence():
    found = bootstrap(frames(100), ids=named(100, "frame"), resamples=200)
    wider = np.sqrt(found.dependence.design_effect)
    said = str(found.caution())
    assert said.startswith("neighbouring images are correlated, so the interval is about ")
    assert f"about {wider:.1f} times too narrow. Use --blocks auto." in said
    assert "too narrow and p too small" in str(found.dependence.caution(p=True))
    (line,) = found.dependence.sentences()
    assert f"correlation {found.dependence.correlations[0]:.2f}" in line
    assert f"(design effect {found.dependence.design_effect:.2f})" in line
    chance = bootstrap(frames(100, correlation=0), ids=named(100, "frame"), resamples=200)
    assert (chance.unsafe, chance.dependence.noteworthy) == (False, False)
    assert "independent" not in " ".join(chance.sentences())


def test_many_sequences_are_to_be_resampled_whole():
    rng = np.random.default_rng(0)
    ease = np.repeat(rng.normal(size=20), 5)
    hit = rng.binomial(1000, 1 / (1 + np.exp(-ease)))
    counts = Counts(*(x[:, None] for x in (hit, 0 * hit, 1000 - hit, 0 * hit)))
    ids = [f"p{patient:02d}/{slice}" for patient in range(20) for slice in range(5)]
    found = bootstrap(counts, ids=ids, resamples=100)
    assert "Use --group-by '^[^/]+'." in str(found.caution())
    grouped = bootstrap(counts, ids=ids, groups=found.dependence.pattern, resamples=100)
    assert (grouped.units, grouped.unsafe, grouped.dependence) == (20, False, None)
    assert grouped.overall.standard_error > 1.5 * found.overall.standard_error


def test_names_are_printed_on_their_line():
    found = bootstrap(frames(40), ids=named(20, "a\x1b[2J\n", "b"), resamples=50)
    assert r"a\x1b[2J\n 20" in " ".join(found.interval_method())
    assert all(said.isprintable() for said in found.sentences())


@pytest.mark.parametrize(
    "options", [{"groups": "none"}, {"groups": [i % 12 for i in range(40)]}, {"blocks": "auto"}]
)
def test_what_settles_it_silences_the_note(options):
    found = bootstrap(frames(40), ids=named(20, "a", "b"), resamples=100, **options)
    assert not found.unsafe


def test_independent_images_give_the_numbers_of_today():
    counts, ids = frames(40), named(20, "a", "b")
    plain, stated, named_ones = (
        bootstrap(counts, resamples=200, **o) for o in ({}, {"groups": "none"}, {"ids": ids})
    )
    assert plain == stated
    assert (plain.overall, plain.classes) == (named_ones.overall, named_ones.classes)


def test_json_has_the_figures():
    found = bootstrap(frames(40), ids=named(20, "a", "b"), resamples=100)
    told = json.loads(json.dumps(found.to_dict(), allow_nan=False))["dependence"]
    assert told["sequences"] == {"a": 20, "b": 20}
    assert (told["images"], told["pattern"]) == (40, "^[^_]+")
    assert told["effective_images"] == pytest.approx(40 / max(1, told["design_effect"]))
    assert len(told["correlations"]) == 5
    assert found.to_dict()["cautions"] == found.cautions()


def test_a_handful_of_groups_has_no_interval():
    counts = frames(40)
    few = bootstrap(counts, groups=[i % 9 for i in range(40)], resamples=100)
    assert np.isnan([few.overall.low, few.overall.high, few.overall.standard_error]).all()
    assert few.overall.value == bootstrap(counts, resamples=100).overall.value
    assert few.sentences()[0].endswith("on 9 groups (no interval).")
    assert "at least 10 groups" in few.sentences()[1]
    ten = bootstrap(counts, groups=[i % 10 for i in range(40)], resamples=100)
    assert ten.overall.low < ten.overall.value < ten.overall.high


def two_runs(ids):
    """Two models on the same images, the second better by a little everywhere."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, (len(ids), 1, 60))
    preds = [np.where(rng.random(truth.shape) < wrong, 1 - truth, truth) for wrong in (0.3, 0.1)]
    return [score(list(truth), list(p), labels=2, ids=ids) for p in preds]


def test_comparison_says_what_it_takes_for_independent():
    runs = two_runs(named(15, "one", "two"))
    few = {"resamples": 200, "permutations": 2000, "names": ("a", "b")}
    plain = compare(*runs, **few)
    assert "only 2 sequences" in plain.pair_sentences(plain.pairs[0])[2]
    said = " ".join(plain.sentences())
    assert "2 sequences (one 15, two 15)" in said
    assert "(assuming independence)" in said and "--group-by none" in said
    assert plain.to_dict()["dependence"]["sequences"] == {"one": 15, "two": 15}

    stated = compare(*runs, groups="none", **few)
    assert "Independence: images are assumed to be independent." in stated.sentences()
    assert (stated.pairs, stated.dependence) == (plain.pairs, None)

    blocks = compare(*runs, blocks=3, **few)
    assert (blocks.unit, blocks.units, blocks.pairs[0].exact) == ("block", 10, True)
    assert blocks.pairs[0].permutations == 2**10
    said = " ".join(blocks.sentences())
    assert "b scores higher than a" in said and "(10 blocks of images)" in said
    assert "Scope: other parts of these 2 sequences" in said

    groups = compare(*runs, groups="^[^_]+", **few)
    assert groups.pairs[0].overall.p == 0.5
    assert np.isnan(groups.pairs[0].overall.low)
    assert "no interval, p = 0.50" in groups.pair_sentences(groups.pairs[0])[1]


def test_camvid_frames_are_of_two_drives(camvid_tables):
    counts = ConfusionCounts(camvid_tables["base"]).counts
    found = bootstrap(counts, ids=camvid_tables["ids"], resamples=200)
    assert found.dependence.sequences == {"0001TP": 16, "Seq05VD": 43}
    assert found.unsafe
    drives = bootstrap(counts, ids=camvid_tables["ids"], groups="^[^_]+", resamples=200)
    assert np.isnan(drives.overall.low)
    blocks = bootstrap(counts, ids=camvid_tables["ids"], blocks="auto", resamples=200)
    assert blocks.overall.low < 0.4679 < blocks.overall.high


def test_design_of_bare_counts_knows_nothing_of_names():
    found = design_of([scored_images(frames(12), "iou", None)], None, None)
    assert (found.units.kind, found.blocks, found.dependence) == ("image", None, None)
    images = scored_images(frames(12), "iou", None, named(6, "a", "b"))
    assert isinstance(design_of([images], None, None).dependence, Dependence)


def test_few_images_say_nothing_of_dependence():
    assert bootstrap(frames(9), ids=named(3, "a", "b", "c"), resamples=20).dependence is None
    assert units_of(3).few_groups is False
