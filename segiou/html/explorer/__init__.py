"""An interactive page that teaches what intersection over union measures."""

from segiou.html.explorer.explorer import explorer_page

__all__ = ["explorer_page"]
