"""The site: `make docs` builds it from the pages beside this file, and from what docs/pages.py makes of the rest."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import docstrings
import pages

import gossamer

project = "Gossamer"
author = "The Gossamer developers"
copyright = f"2026, {author}"
version = release = gossamer.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["*.py", "__pycache__"]
myst_heading_anchors = 4
smartquotes = False

# The signature says what a parameter is by default; its type stands in the text where it is not plain.
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_inherit_docstrings = False
default_role = "py:obj"
python_display_short_literal_types = True
python_maximum_signature_line_length = 100
add_module_names = False
toc_object_entries_show_parents = "hide"

html_theme = "furo"
html_title = f"Gossamer {release}"
html_copy_source = False
html_show_sphinx = False


def setup(app: Any) -> None:
    """Everything that is made at build time."""
    app.connect("builder-inited", lambda app: pages.make())
    app.connect("source-read", pages.read)
    app.connect("autodoc-process-docstring", docstrings.process)
    app.connect("autodoc-skip-member", docstrings.skip)
