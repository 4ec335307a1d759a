"""HTML pages of reports and comparisons, the explorer, and their pictures."""
