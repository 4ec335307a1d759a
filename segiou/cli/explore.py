"""``segiou explore``."""

from __future__ import annotations

import argparse
import tempfile
import webbrowser
from pathlib import Path

from segiou._files import write_whole
from segiou.cli.paths import check_paths
from segiou.cli.terminal import note, write
from segiou.html.explorer import explorer_page

__all__ = ["run"]


def run(parsed: argparse.Namespace) -> int:
    """Write the page that teaches IoU, and open it in a browser."""
    check_paths(parsed)
    path = Path(parsed.output or Path(tempfile.mkdtemp(prefix="segiou-")) / "explore.html")
    written = write_whole(path, explorer_page()).resolve()
    write(f"{written}\n")
    if parsed.open and not webbrowser.open(written.as_uri()):
        note("no browser could be opened; open the file above in one")
    return 0
