"""Checks of a measure for its author: the laws of the contract, and every output."""

from segiou._support import lazy_face

__getattr__, __dir__ = lazy_face(__name__)
