"""Mask files in, label arrays out."""
