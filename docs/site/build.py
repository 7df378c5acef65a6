"""Makes the documentation's site: `make docs`, or build.py FOLDER.

The pages are README.md, CONTRIBUTING.md and docs/, where they stand, and a reference that is made from the package's
docstrings. What a page needs is in the folder: open FOLDER/html/index.html. A link that leads nowhere is an error.
"""

import inspect
import pathlib
import re
import shutil
import sys
from collections.abc import Iterable

import public_names
from sphinx.cmd.build import build_main

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Pages, and what they link to.
STAGED = ("README.md", "CONTRIBUTING.md", "LICENSE", "THIRD_PARTY_NOTICES.md", "docs", "examples")
FROM_NETWORK = re.compile(
    r"""<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)=["']?(?:https?:)?//"""
    r"""|(?:@import\s*|url\(\s*)["']?(?:https?:)?//"""
)
FIRST_PAGE = '<!doctype html>\n<meta charset="utf-8">\n<meta http-equiv="refresh" content="0; url=README.html">\n'


def stage(source: pathlib.Path) -> None:
    """Makes the folder that Sphinx reads: the documents, and the pages of the reference."""
    shutil.rmtree(source, ignore_errors=True)
    reference = source / "reference"
    reference.mkdir(parents=True)
    for name in STAGED:
        if (ROOT / name).is_dir():
            shutil.copytree(
                ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__")
            )
        else:
            shutil.copy2(ROOT / name, source / name)
    pages = public_names.pages()
    for name, found in pages.items():
        (reference / f"{name}.rst").write_text(module_page(name, found))
    (reference / "index.rst").write_text(index_page(pages))


def heading(text: str) -> str:
    """A page's title."""
    return f"{text}\n{'=' * len(text)}\n\n"


def module_page(name: str, found: dict) -> str:
    """The page of a module: its own docstring, then those of its names."""
    page = heading(name) + f".. automodule:: {name}\n   :no-members:\n\n"
    for key, value in found.items():
        if inspect.isclass(value):
            page += f".. autoclass:: {name}.{key}\n   :members: {', '.join(public_names.methods(value))}\n\n"
        else:
            page += f".. autofunction:: {name}.{key}\n\n"
    return page


def index_page(pages: Iterable[str]) -> str:
    """The list of modules, with the first sentence of each."""
    page = heading("Reference") + ".. list-table::\n   :widths: 40 60\n\n"
    for name in pages:
        doc = inspect.getdoc(sys.modules[name]) or ""
        first = " ".join(doc.split("\n\n")[0].split())
        page += f"   * - :doc:`{name} <{name}>`\n     - {first}\n"
    return page + "\n.. toctree::\n   :hidden:\n\n" + "".join(f"   {name}\n" for name in pages)


def needs_network(html: pathlib.Path) -> list[str]:
    """The pages and style sheets that load something from elsewhere."""
    files = [*html.rglob("*.html"), *html.rglob("*.css")]
    return [str(file) for file in files if FROM_NETWORK.search(file.read_text())]


def main(folder: pathlib.Path) -> int:
    """The program; returns its exit status."""
    source, html = folder / "source", folder / "html"
    stage(source)
    configuration = str(pathlib.Path(__file__).parent)
    status = build_main(["-q", "-W", "--keep-going", "-c", configuration, str(source), str(html)])
    (html / "index.html").write_text(FIRST_PAGE)
    if online := needs_network(html):
        print("These pages load something from the network:", *online, sep="\n", file=sys.stderr)
        status = 1
    print(f"{html}/index.html")
    return status


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
