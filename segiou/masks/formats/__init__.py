"""Formats of mask files, one file each: images, TIFF, volumes, NumPy, drawn shapes."""
