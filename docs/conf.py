"""The site: ``make docs`` builds it offline, warnings as errors."""

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_extensions"))
os.environ.setdefault("OMP_NUM_THREADS", "1")

from reluflow import __version__  # noqa: E402

project = "reluflow"
author = "The reluflow authors"
copyright = author
version = release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",
    "sphinx.ext.viewcode",
    "numpydoc",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "command_pages",
    "plain_bars",
    "ledger_pages",
    "internal_links",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build", "**/README.rst", "tutorials/*", "gallery/*", "papers/README.md"]
myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath", "substitution"]
myst_heading_anchors = 3
suppress_warnings = ["config.cache"]  # functions in the gallery's settings cannot be pickled
nitpicky = False

autosummary_generate = True
# pages whose names differ in case alone would be one file on some machines
autosummary_filename_map = {
    f"reluflow.{name}": f"reluflow.{name}-class"
    for name in ("KKT", "Drift", "Phases", "Ridge", "Stationarity")
}
smartquotes_action = "q"  # the dashes of options stay
templates_path = ["_templates"]
autodoc_typehints = "none"  # numpydoc sections have them in words
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

sphinx_gallery_conf = {
    "examples_dirs": ["tutorials", "gallery"],
    "gallery_dirs": ["_made/tutorials", "_made/gallery"],
    "filename_pattern": r"/(plot|tutorial)_",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "write_computation_times": False,  # its page would load scripts from elsewhere
    "abort_on_example_error": True,
    "plot_gallery": "True",
    "capture_repr": ("_repr_html_",),  # not "<Axes: ...>" below a picture
    "doc_module": ("reluflow",),
    "backreferences_dir": "_made/backreferences",
    "copyfile_regex": r".*\.csv",
}

html_theme = "pydata_sphinx_theme"
html_title = "reluflow"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_sidebars = {"index": [], "start": []}
html_context = {"default_mode": "auto"}
html_theme_options = {
    "logo": {"text": "reluflow"},
    "header_links_before_dropdown": 7,
    "show_prev_next": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
