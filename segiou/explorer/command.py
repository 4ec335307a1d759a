"""The command ``explore``: the page, opened in a browser."""

from __future__ import annotations

import argparse
import tempfile
import webbrowser
from pathlib import Path

from segiou._support.files import is_device, write_whole
from segiou.cli import console
from segiou.explorer.page import explorer_page


def command(parsed: argparse.Namespace) -> int:
    """Write the interactive page about IoU and open it in a browser."""
    path = Path(parsed.output or Path(tempfile.mkdtemp(prefix="segiou-")) / "explore.html")
    page = write_whole(path, explorer_page()).resolve()
    if is_device(path):
        return 0
    console.write(console.harmless(f"{page}\n"))
    if parsed.open and not webbrowser.open(page.as_uri()):
        console.note("could not open a browser; open the file above yourself")
    return 0
