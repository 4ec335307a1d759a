"""From counts of images to intervals and tests: units, scores over units, jackknife, bootstrap."""
