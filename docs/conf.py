"""The documentation site; docs/contributing.md explains how to build it."""

import os
import sys
from importlib.util import find_spec
from pathlib import Path

import segiou

os.environ.setdefault("KERAS_BACKEND", "torch")
sys.path.insert(0, str(Path(__file__).parent))
from _reference import write_reference

project = "segiou"
author = "the segiou developers"
copyright = "the segiou developers"
version = release = segiou.__version__

extensions = [
    "sphinx.ext.autodoc",
    "numpydoc",
    "myst_nb",
    "sphinx_copybutton",
]
source_suffix = {".md": "myst-nb", ".ipynb": "myst-nb", ".rst": "restructuredtext"}
exclude_patterns = ["_build", "_static", "jupyter_execute"]
# Examples contain "…" for omitted code.
suppress_warnings = ["mystnb.unknown_mime_type", "misc.highlighting_failure"]

autodoc_member_order = "bysource"
toc_object_entries_show_parents = "hide"
# The API pages of the hooks do not need the frameworks.
FRAMEWORKS = (
    *("accelerate", "flax", "ignite", "jax", "lightning"),
    *("torch", "torchmetrics", "transformers"),
)
autodoc_mock_imports = [name for name in FRAMEWORKS if find_spec(name) is None]
numpydoc_show_class_members = False

myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 4
# Notebooks are executed, so their outputs match this version.
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_in_temp = True
nb_execution_timeout = 120
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_theme = "pydata_sphinx_theme"
html_title = "segiou"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_extra_path = ["llms.txt"]
# Without it, the theme's script reports an invalid mode to the console of each page.
html_context = {"default_mode": "auto"}
html_show_sourcelink = False
html_theme_options = {
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "show_prev_next": True,
    "show_toc_level": 2,
    "collapse_navigation": True,
    "navigation_depth": 3,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}

write_reference(Path(__file__).parent / "_generated")
