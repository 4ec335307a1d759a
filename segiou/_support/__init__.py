"""Helpers that know nothing of the field."""

__version__ = "0.1.0"
