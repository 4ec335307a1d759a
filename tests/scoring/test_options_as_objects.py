"""Options have the same names and defaults in their class, in score_folder and in the command."""

import inspect
import re
from dataclasses import FrozenInstanceError, fields
from importlib.resources import files

import pytest

import segiou
from segiou.cli.options import build_parser, names_by_heading
from segiou.inference.resampling import PairedResampling, Resampling
from segiou.masks.reading import Reading
from segiou.measures.registry import own_keys
from segiou.scoring.pair_options import PairOptions


def test_options_of_pairs_are_those_of_the_command_and_of_score_folder():
    keywords = inspect.signature(segiou.score_folder).parameters
    by_heading = names_by_heading("score")
    assert {*PairOptions.names()} == {*by_heading["pairing"], "on_error"}
    for one in fields(PairOptions):
        assert keywords[one.name].default == one.default


def test_options_of_resampling_are_those_of_commands_and_functions():
    for kind, function in [
        (Resampling, segiou.confidence_intervals),
        (PairedResampling, segiou.compare),
    ]:
        keywords = inspect.signature(function).parameters
        assert {one.name: keywords[one.name].default for one in fields(kind)} == {
            one.name: one.default for one in fields(kind)
        }
    by_heading = {*names_by_heading("compare")["intervals"]}
    assert {*Resampling.names()} - {"groups"} == by_heading - {"group_by"}
    with pytest.raises(ValueError, match="resamples must be at least 2, got 1"):
        Resampling(resamples=1)
    with pytest.raises(ValueError, match="method must be 'jackknife', 'percentile' or 'bca'"):
        Resampling(method="permutation")
    with pytest.raises(ValueError, match="permutations must be at least 1"):
        PairedResampling(permutations=0)


def test_pair_options_are_checked_and_recorded(tmp_path):
    (tmp_path / "val.txt").write_text("a 1\nb 1\n")
    chosen = PairOptions.of({"ids": tmp_path / "val.txt", "missing": "skip", "labels": 3})
    assert chosen.listed == ("a", "b")
    assert chosen.recorded == {"ids": str(tmp_path / "val.txt"), "missing": "skip"}
    given = PairOptions.of({"ids": iter("ab"), "truth_suffix": ""})
    assert (given.listed, given.recorded) == (("a", "b"), {"truth_suffix": ""})
    with pytest.raises(ValueError, match="pairs names the pairs, so key would have no effect"):
        PairOptions(pairs="a.csv", key="x")
    with pytest.raises(ValueError, match="missing must be 'error' or 'skip'"):
        PairOptions.of({"missing": "stop"})
    with pytest.raises(ValueError, match="duplicate id a"):
        PairOptions.of({"ids": ["a", "a"]})
    with pytest.raises(TypeError, match="key must be text"):
        PairOptions.of({"key": 1})


def test_options_of_reading_are_those_of_the_command_and_of_score_folder():
    keywords = inspect.signature(segiou.score_folder).parameters
    default = build_parser("score").get_default
    by_heading = names_by_heading("score")["reading"]
    assert {*Reading.names()} == {*by_heading} - {"on_error", "spacing"}
    for one in fields(Reading):
        assert keywords[one.name].default == one.default == (default(one.name) or one.default)


def test_each_kind_of_scores_declares_its_options_in_its_folder():
    assert {*own_keys()} <= names_by_heading("score").keys()
    table = (files("segiou.cli") / "options.txt").read_text("utf-8")
    for key in own_keys():
        headings = (files(f"segiou.measures.{key}") / "options.txt").read_text("utf-8")
        assert headings.split(":")[0].split(", ")[0] == key
        assert not re.search(rf"(?m)^  --{key}\b", table)


@pytest.mark.parametrize(
    ("given", "error", "text"),
    [
        ({"allow_lossy": "no"}, TypeError, "allow_lossy must be True or False, not str"),
        ({"allow_lossy": 0}, TypeError, "allow_lossy must be True or False, not int"),
        ({"geometry": "fix"}, ValueError, "geometry must be 'check', 'ignore' or 'reorient'"),
        ({"geometry": None}, TypeError, "geometry must be 'check', 'ignore' or 'reorient'"),
        ({"truth_threshold": 0}, ValueError, "truth_threshold must be above 0"),
        ({"array_key": "a,b,c"}, ValueError, "expected one name, or one each for truth and pred"),
        (
            {"class_files": "{id}"},
            ValueError,
            "must contain {id}, and {class} or {object}, once, got '{id}'",
        ),
        ({"class_files": 1}, TypeError, "class_files must be a pattern"),
        ({"roi": 1}, TypeError, "roi must be a path or a URL"),
    ],
)
def test_each_option_of_reading_is_checked(given, error, text):
    with pytest.raises(error) as raised:
        Reading.of({**given, "another argument": 1})
    assert text in str(raised.value)


def test_reading_is_frozen_and_knows_what_was_chosen():
    reading = Reading.of({"array_key": "gts,segs", "geometry": "check", "pred_threshold": 0.5})
    assert reading.chosen == {"pred_threshold": 0.5, "array_key": "gts,segs"}
    assert [reading.key_of(side) for side in (0, 1)] == ["gts", "segs"]
    assert [reading.threshold_of(side) for side in (0, 1)] == [None, 0.5]
    assert [Reading(array_key="a").key_of(side) for side in (0, 1)] == ["a", "a"]
    with pytest.raises(FrozenInstanceError):
        reading.geometry = "ignore"  # type: ignore[misc]
