"""Files of annotation tools, found by their entry points in ``segiou.annotations``."""
