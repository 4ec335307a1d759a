"""Scores by metadata of the images."""
