"""``segiou labelsets``."""

from __future__ import annotations

import argparse

from segiou.cli.terminal import write
from segiou.labels import labelset_names, load_labels

__all__ = ["run"]


def run(parsed: argparse.Namespace) -> int:
    """List the presets, or print one set as TOML."""
    if parsed.name:
        write(load_labels(parsed.name).to_toml())
        return 0
    sets = [load_labels(name) for name in labelset_names()]
    width = max(len(labels.name) for labels in sets)
    for labels in sets:
        count = f"{labels.num_classes:>3} classes"
        write(f"{labels.name:<{width}}  {count}  {labels.title}\n")
    write("\nsegiou labelsets NAME prints one as TOML, to edit and give as --labels FILE.toml\n")
    return 0
