"""The configuration of Sphinx for the site. `__main__.py` collects the sources and runs Sphinx."""

import octavo

project = "Octavo"
version = release = octavo.__version__
html_title = f"Octavo {release}"
extensions = ["myst_parser", "sphinx.ext.autodoc", "docstrings"]
smartquotes = False  # so that code can be copied from a page
highlight_language = "none"  # for blocks without a language: tables, trees, the output of programs

myst_heading_anchors = 4  # makes links such as log.md#open-it lead to headings, as they do on GitHub

autodoc_default_options = {
    "members": True,
    "undoc-members": True,  # for fields without a comment
    "inherited-members": True,  # docstrings.py leaves out members that come from outside Octavo
    "member-order": "bysource",
}
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
autoclass_content = "both"  # the docstrings of the class and of __init__, which says what it raises
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 100
add_module_names = False
toc_object_entries_show_parents = "hide"

html_theme = "furo"  # contains its scripts and styles, and uses the fonts of the reader's system: needs no network
html_copy_source = False
html_show_copyright = False
