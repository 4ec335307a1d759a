"""Figures that a test opened are closed: pyplot warns if there are many."""

import sys

import pytest


@pytest.fixture(autouse=True)
def figures_are_closed():
    yield
    if pyplot := sys.modules.get("matplotlib.pyplot"):
        pyplot.close("all")
