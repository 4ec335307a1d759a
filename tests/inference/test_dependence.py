"""Images that are not independent: found in names and scores, said, and resampled in blocks."""

import json

import numpy as np
import pytest
from hypothesis import given, strategies as st

from segiou import Counts, compare, confidence_intervals, score
from segiou.counting import ConfusionCounts
from segiou.inference import Dependence, group_by_pattern, permutation_test, statistic, units_of
from segiou.inference.dependence import dependence_of, design_of
from segiou.inference.scored_runs import scored_images
from segiou.inference.sequences import Sequences, sequences_in_names


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
    found = sequences_in_names(tuple(ids))[0]
    assert found.names == names
    assert [own.tolist() for own in found.members] == members
    assert pattern in (None, found.pattern)


@pytest.mark.parametrize("ids", [["cat", "dog", "cow"], ["a", "b1", "b2"]])
def test_names_without_numbers_show_no_sequences(ids):
    assert sequences_in_names(tuple(ids)) == ()


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


def test_the_error_of_a_correlation_is_that_of_pairs_of_neighbours():
    # 18 of 20 pairs agree: (18 - 2) / 40 is less than 1.96 / √20, but more than 1.96 / √40.
    values = np.array([1.0, 1.0, -1.0, -1.0] * 9 + [1.0, -1.0] * 2)
    members = tuple(np.arange(i, i + 2) for i in range(0, 40, 2))
    found = dependence_of(values, Sequences(tuple(map(str, range(20))), members))
    assert found.correlations[0] == pytest.approx(0.4)
    assert not found.correlated


def test_design_effect_of_what_goes_together_and_of_what_does_not():
    long = dependence_of(serial(0.6, 20_000), one_sequence(20_000))
    assert long.correlated
    assert long.design_effect == pytest.approx(4, rel=0.2)  # (1 + ρ) / (1 − ρ)
    assert long.effective_images == pytest.approx(5000, rel=0.2)
    chance = dependence_of(serial(0, 2000), one_sequence(2000))
    assert not chance.correlated
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
    assert scored_images(counts, "iou").of_images() == pytest.approx([6 / 8, (2 / 4 + 2 / 4) / 2])
    assert scored_images(counts, "pixel_accuracy").of_images() == pytest.approx([6 / 8, 4 / 6])


# -- units -----------------------------------------------------------------------------------


def named(number, *prefixes):
    """Frames at steps of 5, which no numbering of independent images has."""
    return [f"{p}_{5 * i:03d}" for p in prefixes for i in range(number)]


def units_along(counts, ids, **options):
    images = scored_images(counts, "iou", None)
    return design_of(ids, images.images.number, lambda: [images.of_images()], **options)


def test_three_sequences_in_the_names_are_the_units():
    found = units_along(frames(60, correlation=0), named(20, "one", "two", "three")).units
    assert (found.kind, found.names) == ("sequence", ("one", "two", "three"))
    assert found.index.tolist() == [0] * 20 + [1] * 20 + [2] * 20


def test_two_sequences_are_divided_in_proportion_to_their_images():
    ids = [*named(60, "one"), *named(20, "two")]
    design = units_along(frames(80, correlation=0), ids)
    sizes = np.bincount(design.units.index)
    assert design.units.kind == "batch" and sizes.sum() == 80
    (of_two,) = (i for i, end in enumerate(np.cumsum(sizes), 1) if end == 60)
    assert of_two == pytest.approx(0.75 * len(sizes), abs=0.5)
    assert np.ptp(sizes) <= 1
    assert design.units.names[0].startswith("one_000 to one_0")


def test_correlated_images_are_divided_into_fewer_and_longer_batches():
    numbers = [
        len(units_along(frames(400, correlation=r), named(400, "frame")).units) for r in (0, 0.95)
    ]
    assert 4 <= numbers[1] < numbers[0] <= 20


def test_a_given_length_makes_batches_of_it_within_groups():
    counts = frames(40)
    found = confidence_intervals(counts, groups=[0] * 15 + [1] * 25, blocks=5)
    assert (found.unit, found.units, found.block_length) == ("batch", 8, 5.0)
    assert found.dependence.sequences == {"0": 15, "1": 25}
    assert found.units_text == "8 batches of neighbouring images"


def voc_names(per_year):
    rng = np.random.default_rng(0)
    years = (sorted(rng.choice(9999, per_year, replace=False).tolist()) for _ in range(5))
    return [f"{2007 + i}_{number:06d}" for i, own in enumerate(years) for number in own]


def test_irregular_numbers_are_sequences_only_if_the_scores_agree():
    # The years of PASCAL VOC are no videos, unless images of a year score alike.
    ids = voc_names(40)
    alone = units_along(frames(200, correlation=0), ids)
    assert (alone.units.kind, alone.dependence) == ("image", None)
    assert alone.independence.startswith("Scores are unrelated to the order")
    alike = units_along(frames(200, correlation=0.97), ids)
    assert (alike.units.kind, len(alike.units)) == ("sequence", 5)


@pytest.mark.parametrize("name", ["part_{:03d}", "sub-{:02d}_T1w", "{:04d}", "scans/case{:d}"])
@pytest.mark.parametrize("number", [12, 24, 60, 120])
def test_consecutive_numbers_are_no_frames(name, number):
    # Each score is followed by a lower and then a higher one: neighbours are not correlated.
    ids = [name.format(1 + i) for i in range(number)]
    found = design_of(ids, number, lambda: [np.resize([0.5, 0.9, 0.6, 0.8], number)])
    assert (found.units.kind, found.dependence, found.caution()) == ("image", None, None)
    assert found.independence.startswith("Scores are unrelated to the order of the file names")
    assert found.related == ""


def test_consecutive_numbers_are_frames_if_neighbours_score_alike():
    ids = [f"part_{i:03d}" for i in range(60)]
    design = design_of(ids, 60, lambda: [np.sin(np.arange(60) / 5)])
    assert design.units.kind == "batch"
    assert str(design.caution()).startswith(
        "only 60 images of one sequence, so the interval is a rough guide. "
        "Use --group-by none if the images are independent."
    )


def test_files_of_three_sites_are_images_and_the_sentence_has_the_pattern():
    rng = np.random.default_rng(3)
    ids = [f"site{site}_{i:03d}" for site in "ABC" for i in range(20)]
    truth = rng.integers(0, 2, (60, 1, 50))
    pred = np.where(rng.random(truth.shape) < 0.2, 1 - truth, truth)
    run = score(list(truth), list(pred), labels=2, ids=ids)
    found = run.intervals()
    assert (found.unit, found.units, found.caution()) == ("image", 60, None)
    assert found.interval_method()[1:] == [
        "Scores are unrelated to the order of the file names, so the images are treated as "
        "independent.",
        "If images with the same prefix are related, use --group-by '^[^_]+'.",
    ]
    assert run.intervals(groups="^[^_]+").units == 3
    pair = compare(run, score(list(truth), list(truth[:, :, ::-1]), labels=2, ids=ids))
    assert "--group-by '^[^_]+'" in " ".join(pair.limitations())
    assert "groups='^[^_]+'" in pair._repr_html_().replace("&#x27;", "'")


def test_frames_of_two_equal_models_are_frames_also_in_their_difference():
    scene, rng = np.sin(np.arange(60) / 5), np.random.default_rng(0)
    cases = [scene + rng.normal(size=60) / 20 for _ in range(2)]
    design = design_of([f"frame_{i:03d}" for i in range(60)], 60, lambda: cases)
    assert design.units.kind == "batch"


def test_cityscapes_is_grouped_by_city():
    rng = np.random.default_rng(0)
    frankfurt = [f"frankfurt_{s:06d}_{n:06d}" for s in (0, 1) for n in rng.integers(0, 9**5, 40)]
    single = [f"{city}_{s:06d}_000019" for city in ("lindau", "munster") for s in range(60)]
    found = sequences_in_names((*frankfurt, *single))
    assert found[0].names == ("frankfurt", "lindau", "munster")
    assert [len(own) for own in found[0].members] == [80, 60, 60]


@pytest.mark.parametrize("name", ["{0:08x}-{1:08x}", "cju{0:x}k", "image {0:x}"])
def test_random_names_show_no_order(name):
    rng = np.random.default_rng(0)
    ids = [name.format(*rng.integers(2**28, 2**31, 2).tolist()) for _ in range(60)]
    found = confidence_intervals(frames(60, correlation=0), ids=ids)
    assert (found.unit, found.caution()) == ("image", None)
    assert found.interval_method()[1].endswith("so the images are treated as independent.")


def test_positions_are_no_names():
    found = units_along(frames(60, correlation=0), [str(i) for i in range(60)])
    assert found.units.kind == "image"


def test_few_images_of_a_sequence_cannot_be_judged():
    found = confidence_intervals(frames(30), ids=named(30, "frame"))
    assert (found.unit, found.dependence.sequences) == ("image", {"frame": 30})
    caution = str(found.caution())
    assert caution.startswith("dependence cannot be judged from 30 images of one sequence. Use")
    assert "--group-by none" in caution
    assert "groups=&#x27;none&#x27;" in found._repr_html_()  # a notebook has no options
    rough = confidence_intervals(frames(60), ids=named(60, "frame"))
    assert rough.caution().text.startswith("only 60 images of one sequence")
    assert confidence_intervals(frames(120), ids=named(120, "frame")).caution() is None


def test_unequal_groups_are_a_caution():
    counts = frames(40)
    half = confidence_intervals(counts, groups=[0] * 22 + [1 + i % 6 for i in range(18)])
    assert half.caution().text.startswith("the largest group has 55.00 % of the images")
    assert confidence_intervals(counts, groups=[i % 8 for i in range(40)]).caution() is None


def test_two_groups_have_no_interval():
    counts = frames(40)
    few = confidence_intervals(counts, groups=[i % 2 for i in range(40)])
    assert np.isnan([few.overall.low, few.overall.high]).all()
    assert few.sentences()[0].endswith("on 2 groups (no interval).")
    assert "at least 3 groups" in few.sentences()[1]
    three = confidence_intervals(counts, groups=[i % 3 for i in range(40)])
    assert three.overall.low < three.overall.value < three.overall.high


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"blocks": 0.5}, ValueError, "blocks must be at least 1"),
        ({"blocks": "long"}, ValueError, "blocks must be 'auto' or a number"),
        ({"blocks": True}, TypeError, "blocks must be a number"),
        ({"blocks": 4, "groups": "none"}, ValueError, "pass only one of them"),
        ({"blocks": 99}, ValueError, "at least 2 batches, got 1"),
        ({"blocks": 4, "groups": ["a"]}, ValueError, "40 images, 1 groups"),
        ({"ids": range(40)}, TypeError, "an id must be text, not int"),
        ({"ids": ["a"]}, ValueError, "40 images, 1 ids"),
    ],
)
def test_refusals(options, error, message):
    with pytest.raises(error, match=message):
        confidence_intervals(frames(40), **options)


def test_names_are_printed_on_their_line():
    found = confidence_intervals(frames(40), ids=named(20, "a\x1b[2J\n", "b"))
    assert r"a\x1b[2J\n 20" in " ".join(found.interval_method())
    assert all(said.isprintable() for said in found.sentences())


def test_json_has_the_figures():
    found = confidence_intervals(frames(40), ids=named(20, "a", "b"))
    told = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert (told["method"], told["resamples"], told["seed"]) == ("jackknife", None, None)
    assert told["overall"]["freedom"] > 0 and told["overall"]["undefined_share"] is None
    told = told["dependence"]
    assert told["sequences"] == {"a": 20, "b": 20}
    assert (told["images"], told["pattern"]) == (40, "^[^_]+")
    assert told["effective_images"] == pytest.approx(40 / max(1, told["design_effect"]))
    assert len(told["correlations"]) == 5
    assert found.to_dict()["cautions"] == found.cautions()


# -- comparisons -----------------------------------------------------------------------------


def two_runs(ids):
    """Two models on the same images, the second better by a little everywhere."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, (len(ids), 1, 60))
    preds = [np.where(rng.random(truth.shape) < wrong, 1 - truth, truth) for wrong in (0.3, 0.1)]
    return [score(list(truth), list(p), labels=2, ids=ids) for p in preds]


def test_comparison_reports_its_units():
    runs = two_runs(named(15, "one", "two"))
    few = {"permutations": 2000, "names": ("a", "b")}
    plain = compare(*runs, **few)
    assert "cannot be judged from 30 images of 2" in plain.pair_sentences(plain.pairs[0])[2]
    said = " ".join(plain.sentences())
    assert "2 sequences (one 15, two 15)" in said
    assert plain.to_dict()["dependence"]["sequences"] == {"one": 15, "two": 15}

    stated = compare(*runs, groups="none", **few)
    assert "Independence: the images were declared independent." in stated.sentences()
    assert (stated.pairs, stated.dependence) == (plain.pairs, None)

    blocks = compare(*runs, blocks=3, **few)
    assert (blocks.unit, blocks.units, blocks.pairs[0].exact) == ("batch", 10, True)
    assert blocks.pairs[0].permutations == 2**10
    said = " ".join(blocks.sentences())
    assert blocks.outcome(blocks.pairs[0]) == ("better", "b", "a")
    assert "(10 batches of neighbouring images)" in said
    assert "Scope: other parts of these sequences" in said

    groups = compare(*runs, groups="^[^_]+", **few)
    assert groups.pairs[0].overall.p == 0.5
    assert np.isnan(groups.pairs[0].overall.low)
    assert "no interval, p = 0.50" in groups.pair_sentences(groups.pairs[0])[1]


def test_permutations_of_batches_are_all_looked_at_if_they_are_few():
    a, b = frames(12, seed=1), frames(12, seed=2, shift=0.3)
    units = units_along(a, None, blocks=4).units
    found = permutation_test(*(statistic(c, units=units) for c in (a, b)), 100, 0)
    assert (found.permutations, found.exact) == (8, True)
    assert found.p[0] * 8 == pytest.approx(round(found.p[0] * 8))


def test_camvid_frames_are_of_two_drives(camvid_tables):
    counts = ConfusionCounts(camvid_tables["base"]).counts
    found = confidence_intervals(counts, ids=camvid_tables["ids"])
    assert found.dependence.sequences == {"0001TP": 16, "Seq05VD": 43}
    assert found.unit == "batch"
    assert found.overall.low < 0.4679 < found.overall.high
    drives = confidence_intervals(counts, ids=camvid_tables["ids"], groups="^[^_]+")
    assert np.isnan(drives.overall.low)


def test_bare_counts_have_no_names():
    found = units_along(frames(12), None)
    assert (found.units.kind, found.dependence) == ("image", None)
    assert isinstance(units_along(frames(12), named(6, "a", "b")).dependence, Dependence)


def test_ten_images_are_the_fewest_whose_names_are_read():
    found = confidence_intervals(frames(9), ids=named(3, "a", "b", "c"))
    assert (found.dependence, found.unit) == (None, "image")
    assert units_of(3).too_few is False


# -- sequences and single images -----------------------------------------------------------------

#: Numbers of sixteen photos of a camera, from 1 to 32 apart.
STILLS = [2850, 2851, 2857, 2870, 2873, 2905, 2909, 2910, 2922, 2931, 2938, 2955, 2957, 2968,
          2970, 2991]  # fmt: skip
STILL_IDS = [f"IMG_{number}" for number in STILLS]
VIDEO_IDS = [f"{video}_{30 * k:05d}" for video in ("bay", "dock", "pier", "quay") for k in range(6)]


def test_stills_with_irregular_numbers_beside_videos_are_single_images():
    design = units_along(frames(40, correlation=0), [*VIDEO_IDS, *STILL_IDS])
    assert design.units.kind == "sequence"
    assert design.units.names == ("bay", "dock", "pier", "quay", *STILL_IDS)
    assert design.units.index.tolist() == [k // 6 for k in range(24)] + list(range(4, 20))
    assert design.dependence.sentences()[0] == (
        "File names suggest 4 sequences (bay 6, dock 6, pier 6, quay 6) and 16 single images."
    )


def test_stills_are_a_sequence_if_their_scores_are_correlated():
    # The scores of the stills rise along their numbers; a rise has a correlation of 0.82.
    flat, rise = np.tile([0.4, 0.6, 0.5, 0.6, 0.4, 0.5], 4), np.linspace(0, 1, 16)
    ids = [*VIDEO_IDS, *STILL_IDS]
    design = design_of(ids, 40, lambda: [np.concatenate([flat, rise])])
    assert design.units.names == ("bay", "dock", "pier", "quay", "IMG")
    # Lower scores of all stills are no order among them.
    design = design_of(ids, 40, lambda: [np.concatenate([flat, flat[:16] - 0.4])])
    assert len(design.units) == 20


def test_videos_of_three_frames_are_judged_together():
    ids = [f"{video}_{k}" for video in ("bay", "dock", "pier", "quay") for k in range(1, 4)]
    found = sequences_in_names((*ids, *STILL_IDS))[0]
    assert found.common_steps == (1, 1, 1, 1, None)
    odd = ["bay_1", "bay_5", "dock_2", "dock_3", "pier_1", "pier_9", "quay_3", "quay_7"]
    # The steps are 4, 1, 8 and 4.
    assert sequences_in_names(tuple(odd))[0].common_steps == (None,) * 4


@pytest.mark.parametrize(
    "videos",
    [
        [range(8), range(8, 13), range(13, 16)],  # the last has two steps only
        [range(8), range(5), range(40, 42)],
        [range(0, 80, 10), range(0, 50, 10), [0, 20, 30]],  # frame 10 is missing
        [[0, 10, 20], [0, 10, 20], [0, 10, 20], [0, 10, 30]],
    ],
)
def test_short_videos_have_the_step_of_others(videos):
    ids = [f"s{i}_{n:05d}" for i, numbers in enumerate(videos) for n in numbers]
    found = sequences_in_names(tuple(ids))[0]
    assert None not in found.common_steps
    values = np.random.default_rng(1).random(len(ids)) / 10
    values += [i for i, numbers in enumerate(videos) for _ in numbers]
    design = design_of(ids, len(ids), lambda: [values])
    assert (design.units.kind, len(design.units)) == ("sequence", len(videos))


@pytest.mark.parametrize("numbers", [[2850, 2857], [3, 7, 9], [5, 6, 13], [4, 6]])
def test_short_irregular_numbers_beside_videos_are_no_video(numbers):
    ids = [f"s{i}_{n:05d}" for i in range(3) for n in range(8)]
    ids += [f"photo_{n:05d}" for n in numbers]
    found = sequences_in_names(tuple(ids))[0]
    assert found.common_steps == (1, 1, 1, None)


def test_a_video_beside_single_images_is_divided_into_batches():
    video = [f"bay_{30 * k:05d}" for k in range(60)]
    design = units_along(frames(76, correlation=0), [*video, *STILL_IDS])
    sizes = np.bincount(design.units.index)
    assert design.units.kind == "batch"
    assert sizes[-16:].tolist() == [1] * 16 and 4 <= len(sizes) - 16 <= 20
    assert "one sequence" in str(design.caution())


def test_the_units_of_a_comparison_name_sequences_and_single_images():
    found = compare(*two_runs([*VIDEO_IDS, *STILL_IDS]), names=("a", "b"), permutations=2000)
    assert (found.unit, found.units) == ("sequence", 20)
    assert found.units_text == "4 sequences and 16 single images"
    assert found.pairs[0].overall.differs(0.95)
    assert found.outcome(found.pairs[0]) == ("better", "b", "a")


def test_one_model_corrects_three_percent_of_the_errors_of_the_other():
    # The errors of 60 frames vary along the sequence, and both models share them.
    rng = np.random.default_rng(4)
    truth = rng.integers(0, 2, (60, 1, 2000))
    wrong = rng.random(truth.shape) < (0.3 + 0.2 * np.sin(np.arange(60) / 8))[:, None, None]
    fixed = wrong & (rng.random(truth.shape) >= 0.03)
    runs = [
        score(list(truth), list(np.where(w, 1 - truth, truth)), labels=2, ids=named(60, "frame"))
        for w in (wrong, fixed)
    ]
    found = compare(*runs, names=("base", "better"), permutations=2000)
    overall = found.pairs[0].overall
    assert (found.unit, found.units >= 6) == ("batch", True)
    assert 0 < overall.low < overall.delta < overall.high < 2 * overall.delta
    assert overall.differs(0.95)
    assert found.outcome(found.pairs[0]) == ("better", "better", "base")


def test_groups_are_the_same_for_intervals_and_parts_of_a_run():
    masks = [[[0, 1]], [[1, 1]], [[0, 0]], [[0, 1]]]
    run = score(masks, masks, labels=2, ids=list("abcd"))
    groups = {"a": 1, "b": "1", "c": 2.0, "d": 3}
    assert {name: part.ids for name, part in run.groups(groups).items()} == {
        "1": ("a", "b"),
        "2": ("c",),
        "3": ("d",),
    }
    assert run.intervals(groups=groups).units == 3
    assert units_of(4, [1, "1", 2.0, 3]).names == ("1", "2", "3")


@pytest.mark.parametrize("missing", [None, float("nan"), np.float32("nan"), "", " "])
def test_every_image_needs_a_group(missing):
    masks = [[[0, 1]], [[1, 1]], [[0, 0]], [[0, 1]]]
    run = score(masks, masks, labels=2, ids=list("abcd"))
    groups = {"a": "x", "b": missing, "c": "y", "d": "z"}
    for passed in (groups, groups.get, [*groups.values()]):
        for use in (run.groups, lambda groups: run.intervals(groups=groups)):
            with pytest.raises(ValueError, match="no group for b; every id needs one"):
                use(passed)
    with pytest.raises(ValueError, match="no group for 1; every id"):
        units_of(4, [*groups.values()])


@given(
    st.sampled_from(["", "a_", "seq", "x-", "d/", "é", "9_", "a\n"]),
    st.sampled_from(["", ".png", "_v2", "_leftImg8bit", "7", "_a7b9"]),
    st.sets(
        st.tuples(
            st.sampled_from(["", "b", "c_"]),
            st.lists(st.integers(0, 130), min_size=1, max_size=3).map(tuple),
            st.sampled_from("_-/"),
        ).map(lambda drawn: drawn[0] + drawn[2].join(map(str, drawn[1]))),
        min_size=2,
        max_size=14,
    ),
)
def test_patterns_find_the_sequences_that_they_name(start, end, middles):
    ids = tuple(start + middle + end for middle in middles)
    for found in sequences_in_names(ids):
        groups = np.array(group_by_pattern(ids, found.pattern))
        assert sorted(np.concatenate(found.members).tolist()) == [*range(len(ids))]
        for name, members in zip(found.names, found.members, strict=True):
            assert sorted(members.tolist()) == np.flatnonzero(groups == name).tolist()
