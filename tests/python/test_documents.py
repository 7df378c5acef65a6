"""What the documents show works: their programs run, their links lead somewhere, and public names are documented."""

import ast
import importlib.util
import inspect
import re
import shutil
import subprocess
import sys
import urllib.parse

import documents
import pytest
from documents import PAGES, ROOT

PAGES_WITH_PROGRAMS = [page for page in PAGES if documents.python_blocks(page)]


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES_WITH_PROGRAMS, ids=documents.name)
def test_programs_of_a_page_run(page, tmp_path, monkeypatch):
    """In order, each with the variables of those before it."""
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "page"}
    for block in documents.python_blocks(page):
        # The line numbers of errors are the page's.
        tree = ast.parse("\n" * (block.line - 1) + block.code, filename=documents.name(page))
        if block.not_run:
            continue
        code = compile(tree, documents.name(page), "exec")
        if block.raises:
            with pytest.raises(Exception) as raised:
                exec(code, names)
            assert raised.type.__name__ == block.raises
        else:
            exec(code, names)


@pytest.mark.parametrize("page", PAGES, ids=documents.name)
def test_links_lead_somewhere(page):
    for link in documents.links(page):
        address = urllib.parse.urlsplit(link)
        if address.scheme or address.netloc:
            assert address.scheme == "https" and "." in address.netloc, link
            continue
        target = (
            (page.parent / urllib.parse.unquote(address.path)).resolve() if address.path else page
        )
        assert target.exists(), f"{link}: there is no {target}"
        assert target.is_relative_to(ROOT), link
        if address.fragment:
            assert address.fragment in documents.anchors(target), (
                f"{link}: there is no such heading"
            )


RECIPES = [page for page in PAGES if documents.blocks(page, "diff")]


@pytest.mark.parametrize("page", RECIPES, ids=documents.name)
def test_a_recipe_applies(page, tmp_path):
    """Its patches fit the files as they are, and leave them formatted."""
    patch = "".join(documents.blocks(page, "diff"))
    changed = re.findall(r"^\+\+\+ b/(\S+)$", patch, re.MULTILINE)
    for name in (".clang-format", "pyproject.toml", *changed):
        if (ROOT / name).exists():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, tmp_path / name)

    def run(*command):
        done = subprocess.run(command, cwd=tmp_path, input=patch, text=True, capture_output=True)
        assert done.returncode == 0, done.stdout + done.stderr

    run("git", "apply", "-C1", "--ignore-whitespace", "-")
    if sources := [name for name in changed if name.endswith((".cc", ".h"))]:
        run("clang-format-19", "--dry-run", "--Werror", *sources)
    if modules := [name for name in changed if name.endswith(".py")]:
        run(sys.executable, "-m", "ruff", "format", "--check", *modules)


def test_there_are_recipes():
    assert len(RECIPES) >= 7


def test_every_page_is_reached():
    """From the first page, over links."""
    reached, waiting = set(), [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in reached or page.suffix != ".md":
            continue
        reached.add(page)
        paths = [urllib.parse.urlsplit(link) for link in documents.links(page)]
        waiting += [(page.parent / p.path).resolve() for p in paths if p.path and not p.scheme]
    assert not [documents.name(page) for page in PAGES if page not in reached]


@pytest.fixture(scope="module")
def public_names():
    """The module that lists what the reference shows."""
    path = ROOT / "docs" / "site" / "public_names.py"
    specification = importlib.util.spec_from_file_location("public_names", path)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def docstrings(public_names):
    """Of the public modules, their names, and the methods of these."""
    found = {}
    for module_name, module in public_names.modules().items():
        found[module_name] = inspect.getdoc(module)
        for name, value in public_names.names(module).items():
            found[f"{module_name}: {name}"] = inspect.getdoc(value)
            for member, method in public_names.methods(value).items():
                found[f"{module_name}: {name}.{member}"] = inspect.getdoc(method)
    return found


def test_every_public_name_is_documented(docstrings):
    assert not [name for name, text in docstrings.items() if not text]


def test_quotes_of_docstrings_end_with_a_word(docstrings):
    """Or Sphinx finds no end of them, and `make docs` fails."""
    behind_quotes = {name: (text or "").split("`")[2::2] for name, text in docstrings.items()}
    assert not [
        name for name, texts in behind_quotes.items() if any(text[:1].isalnum() for text in texts)
    ]


def test_the_reference_has_every_public_name(public_names):
    """On the page of its module, or of the package that shows it."""
    shown = {id(value) for page in public_names.pages().values() for value in page.values()}
    modules = public_names.modules()
    assert not [
        f"{module_name}.{name}"
        for module_name, module in modules.items()
        for name, value in public_names.names(module).items()
        if id(value) not in shown
    ]
    assert {"sync", "compile", "launch"} <= set(public_names.pages()["torch_xla"])
    assert not any("._" in name for name in modules)
