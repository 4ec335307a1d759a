"""Exact, fast and explained scores for semantic segmentation."""

__version__ = "0.1.0"
