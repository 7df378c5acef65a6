"""The project's Markdown, as the tests read it: its pages, their code, headings and links.

Between blocks of code a comment may stand, which readers of the page do not see:

    <!-- python
    loader = make_loader()
    -->                                  runs there, as a block does: what the page leaves to its reader
    <!-- raises RuntimeError -->         the next block ends with this exception
    <!-- not run: needs two machines --> the next block is only parsed, for this reason
    <!-- not run: … (all) -->            so are all blocks from here to the end of the page
"""

import dataclasses
import pathlib
import re

ROOT = pathlib.Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])

_FENCED = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_COMMENT = re.compile(r"<!--(.*?)-->", re.DOTALL)
_PIECE = re.compile(f"{_COMMENT.pattern}|{_FENCED.pattern}", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"(?<!`)\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^()\s]*(?:\([^()]*\)[^()\s]*)*)\)")


@dataclasses.dataclass
class Block:
    """Python code of a page."""

    code: str
    line: int  # where it begins
    raises: str | None = None  # the name of the exception that it ends with
    not_run: str | None = None  # why it cannot run here


def name(page: pathlib.Path) -> str:
    """The page as seen from the root of the project."""
    return str(page.relative_to(ROOT))


def blocks(page: pathlib.Path, language: str) -> list[str]:
    """The code in this language."""
    return [code for kind, code in _FENCED.findall(page.read_text()) if kind == language]


def python_blocks(page: pathlib.Path) -> list[Block]:
    """The Python code, with what the comments say of it."""
    text = page.read_text()
    found = []
    mark, all_not_run = "", None
    for piece in _PIECE.finditer(text):
        comment, language, code = piece.groups()
        line = text[: piece.start()].count("\n") + 2
        if comment is not None:
            kind, _, rest = comment.partition("\n")
            if kind.strip() == "python":
                found.append(Block(rest, line))
            else:
                mark = comment.strip()
        elif language == "python":
            reason = mark.removeprefix("not run: ") if mark.startswith("not run: ") else None
            if reason and reason.endswith("(all)"):
                all_not_run = reason
            raises = mark.removeprefix("raises ") if mark.startswith("raises ") else None
            found.append(Block(code, line, raises, reason or all_not_run))
            mark = ""
    return found


def _prose(text: str) -> str:
    """A page without code and comments."""
    return _FENCED.sub("", _COMMENT.sub("", text))


def links(page: pathlib.Path) -> list[str]:
    """Where the links and pictures of a page lead."""
    return _LINK.findall(
        re.sub(r"`[^`\n]+`", lambda code: "`" + "x" * len(code[0]), _prose(page.read_text()))
    )


def anchors(page: pathlib.Path) -> set[str]:
    """The names of the headings of a page, as repository browsers and the site make them."""
    found: set[str] = set()
    for heading in re.findall(r"^#+ +(.+?) *$", _prose(page.read_text()), re.MULTILINE):
        slug = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        count = 0
        while (slug if not count else f"{slug}-{count}") in found:
            count += 1
        found.add(slug if not count else f"{slug}-{count}")
    return found
