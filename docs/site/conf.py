"""How Sphinx builds the site. Its sources are put together by `__main__.py`."""

import octavo

project = "Octavo"
version = release = octavo.__version__
html_title = f"Octavo {release}"
extensions = ["myst_parser", "sphinx.ext.autodoc", "docstrings"]
smartquotes = False  # so that what a page shows can be copied
highlight_language = "none"  # of blocks that do not say theirs: tables, trees, what a program printed

myst_heading_anchors = 4  # links such as log.md#open-it lead to headings, as in the browser of a repository

autodoc_default_options = {
    "members": True,
    "undoc-members": True,  # fields that need no comment
    "inherited-members": True,  # docstrings.py leaves out what does not come from Octavo
    "member-order": "bysource",
}
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
autoclass_content = "both"  # the docstring of the class, and that of __init__, which says what is raised
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 100
add_module_names = False
toc_object_entries_show_parents = "hide"

html_theme = "furo"  # brings its scripts and styles with it, and uses the fonts of the reader's system
html_copy_source = False
html_show_copyright = False
