"""Helpers of all packages, with nothing in them of segmentation."""

__version__ = "0.1.0"
