"""Unknown options raise a TypeError that names ours, in every public function."""

from __future__ import annotations

import inspect
from importlib import import_module
from importlib.util import find_spec

import pytest

import segiou
from segiou._support import homes_of
from segiou.inference import power
from segiou.scoring import Evaluator, inspect_folder

#: Folders that can be deleted, and functions in them.
DELETABLE = {"segiou.maps": "map_accuracy", "segiou.planning": "sample_sizes"}
PRESENT = {home: name for home, name in DELETABLE.items() if find_spec(home)}
OTHERS = [Evaluator, inspect_folder, power]
OTHERS += [getattr(import_module(home), name) for home, name in PRESENT.items()]


def functions():
    """Public functions and classes of segiou that have options, and entry points of packages."""
    public = (getattr(segiou, name) for name, home in homes_of("segiou").items() if "." in home)
    for one in (*filter(callable, public), *OTHERS):
        kinds = {p.kind for p in inspect.signature(one).parameters.values()}
        # bootstrap passes its options to confidence_intervals.
        if inspect.Parameter.KEYWORD_ONLY in kinds and one is not segiou.bootstrap:
            yield one


@pytest.mark.parametrize("function", [*functions()], ids=lambda one: one.__name__)
def test_unknown_options_are_named(function):
    name, known = function.__name__, inspect.signature(function).parameters
    for option in ("ignore_index", "num_classes", "qqq"):
        # Before missing arguments are.
        with pytest.raises(TypeError, match=rf"^{name} has no option '{option}'; ") as caught:
            function(**{option: 1})
        if option == "ignore_index" and {"ignore", "options"} & {*known}:
            assert str(caught.value).endswith("did you mean ignore?")
        if option == "num_classes" and "labels" in known:
            assert str(caught.value).endswith(
                "pass the number of classes, or their names, as labels"
            )


def test_a_function_without_labels_does_not_advise_them():
    with pytest.raises(TypeError, match="compare has no option 'measures'; choose from metric, "):
        segiou.compare(measures=["boundary"])


def test_options_are_those_of_the_signature():
    assert [*inspect.signature(segiou.ConfusionMatrix).parameters] == [
        *("labels", "pred_labels", "ignore", "exclude", "unassigned")
    ]
