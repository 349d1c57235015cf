"""The site: `make docs` builds it into docs/_build/html, warnings as errors, no network needed."""

import re
import sys
from pathlib import Path

import condmeta

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

project = "condmeta"
author = "The condmeta developers"
copyright = "The condmeta developers, BSD-3-Clause"
version = release = condmeta.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "sphinx_copybutton",
    "mathml",
]
exclude_patterns = ["_build"]
templates_path = ["_templates"]

# Markdown: the pages are read on the site and as they are.
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3

# Reference: one page for each public name, methods of scikit-learn's own left out.
autosummary_generate = True
autosummary_filename_map = {"condmeta.advantage": "condmeta.advantage_function"}  # not Advantage
toc_object_entries_show_parents = "hide"
autodoc_typehints = "none"  # the docstrings say the types
numpydoc_show_class_members = False  # the template lists them
numpydoc_xref_param_type = False

# Copied code has no prompts and no output.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_exclude = ".linenos, .gp, .go"

# Gallery: every script is run, and its figures become pictures.
sphinx_gallery_conf = {
    "examples_dirs": str(HERE.parent / "examples" / "gallery"),
    "gallery_dirs": "gallery",
    "filename_pattern": r"/\w+\.py$",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "thumbnail_size": (640, 448),
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,  # that page loads scripts from elsewhere
    "min_reported_time": 1e9,
    "remove_config_comments": True,
    "copyfile_regex": "",
}

html_math_renderer = "mathml"
html_theme = "pydata_sphinx_theme"
html_title = "condmeta"
html_static_path = ["_static"]
html_extra_path = ["llms.txt"]
html_css_files = ["condmeta.css"]
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "logo": {"text": "condmeta"},
    "navigation_with_keys": False,
    "show_prev_next": True,
    "header_links_before_dropdown": 6,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars = {"**": ["sidebar-nav-bs"]}


def skip_foreign(app, what, name, member, skip, options):
    """Leave out what comes from scikit-learn and Python: it is documented there."""
    home = getattr(member, "__module__", None) or ""
    request = name.startswith("set_") and name.endswith("_request")
    foreign = callable(member) and not home.startswith("condmeta")
    return True if request or foreign else None


def tidy(app, name, source):
    """Name linked pages by their title, and end code where it ends.

    Read as they are, pages name a linked file, and doctest wants an empty line after an output.
    """
    text = re.sub(r"\[([\w-]+\.md)\]\(\1\)", r"[](\1)", source[0])
    source[0] = text.replace("\n\n```\n", "\n```\n")


def setup(app):
    """Connect the hooks."""
    app.connect("autodoc-skip-member", skip_foreign)
    app.connect("source-read", tidy)
