"""Findings as parts of a document, and the renderers that turn them into text, LaTeX or HTML."""
