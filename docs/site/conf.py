"""How Sphinx makes the site from the documents; `build.py` runs it."""

import os

project = "torch_xla"
author = "The authors of torch_xla"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
root_doc = "README"
# Beside these the folder has what they link to.
include_patterns = ["*.md", "docs/**.md", "reference/**.rst"]

# The order of the pages. The documents themselves are plain Markdown, so the trees are added while they are read.
NAVIGATION = {
    "Guide": [
        "guide/start",
        "guide/training",
        "guide/inference",
        "guide/export",
        "guide/from-cuda",
    ],
    "Using it": [
        *["debugging", "performance", "shapes", "scaling", "checkpoints", "libraries"],
        "compatibility",
        *["operators", "plugins", "runtime_server", "security"],
    ],
    "Case study": ["case-study/part-1", "case-study/part-2", "case-study/part-3"],
}
TREE = "\n\n```{{toctree}}\n:hidden:\n:caption: {}\n\n{}\n```\n"

# Links to headings are those of repository browsers.
myst_heading_anchors = 4
# An example with an ellipsis is no error; nor is a type in a signature that has several namesakes.
suppress_warnings = ["misc.highlighting_failure", "ref.python"]

default_role = "code"
highlight_language = "none"
autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 80
napoleon_numpy_docstring = False
add_module_names = False

html_theme = "furo"
html_title = "torch_xla"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_copy_source = False
# Nothing that a page shows comes from the network.
html_theme_options = {"top_of_page_buttons": []}


def add_trees(app, name, source):
    """Adds the trees of pages to the first page."""
    if name != root_doc:
        return
    for caption, pages in NAVIGATION.items():
        source[0] += TREE.format(caption, "\n".join(f"docs/{page}" for page in pages))
    source[0] += TREE.format("Reference", "reference/index")
    developing = [
        "docs/architecture",
        "docs/design/symbolic-sizes",
        "CONTRIBUTING",
        *recipes(app),
        "THIRD_PARTY_NOTICES",
    ]
    source[0] += TREE.format("Developing", "\n".join(developing))


def mark_code(app, what, name, value, options, lines):
    """Says of the indented blocks of a docstring that they are code, as its readers see."""
    for at in range(len(lines) - 1, 1, -1):
        begins = lines[at].startswith("    ") and not lines[at - 1].strip()
        if begins and lines[at - 2] and not lines[at - 2].startswith(" "):
            lines[at:at] = [".. code-block:: python", ""]


def recipes(app):
    """The pages on how to add something."""
    folder = os.path.join(app.srcdir, "docs", "recipes")
    names = sorted(name.removesuffix(".md") for name in os.listdir(folder))
    return [f"docs/recipes/{name}" for name in names]


def setup(app):
    """Connects what is above."""
    app.connect("source-read", add_trees)
    app.connect("autodoc-process-docstring", mark_code)
