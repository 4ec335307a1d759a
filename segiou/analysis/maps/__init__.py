"""Accuracy and areas of a map from a reference sample."""
