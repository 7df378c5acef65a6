"""Follows the recipes of docs/recipes: applies each page's patches to a copy of the tree, and runs its commands there.

    python tests/recipes.py [NAME...]        collective, pass, ...; all without names

The copy lies in build/recipes and is built there, from scratch the first time. Of a recipe that fails it prints what the
command said; the others go on. `tests/python/test_documents.py` tries in seconds whether they apply.
"""

import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).parents[1]
COPY = ROOT / "build" / "recipes"
sys.path.insert(0, str(ROOT / "tests" / "python"))

import documents  # noqa: E402 - from the folder above


def run(*command, text=None):
    """In the copy, which is no part of a repository for git: patches name its files."""
    return subprocess.run(
        command,
        cwd=COPY,
        env=os.environ | {"GIT_CEILING_DIRECTORIES": str(COPY.parent), "PYTHONPATH": str(COPY)},
        input=text,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def copy_tree():
    """Brings the copy to the state of the working tree; what has not changed keeps its time, and is not built again."""
    COPY.mkdir(parents=True, exist_ok=True)
    listed = ("git", "ls-files", "--cached", "--others", "--exclude-standard")
    files = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in files.splitlines():
        source, target = ROOT / name, COPY / name
        content = source.read_bytes()
        if not target.exists() or target.read_bytes() != content:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
            target.chmod(source.stat().st_mode)
    environment = COPY / ".venv"
    if not environment.exists():
        environment.symlink_to(ROOT / ".venv")


def follow(page):
    """What went wrong with a page's recipe, or nothing."""
    patch = "".join(documents.blocks(page, "diff"))
    applied = run("git", "apply", "-C1", "--ignore-whitespace", "-", text=patch)
    if applied.returncode:
        return applied.stdout
    trouble = None
    for commands in documents.blocks(page, "bash"):
        done = run("bash", "-euc", commands)
        if done.returncode:
            trouble = f"{commands}{done.stdout[-4000:]}"
            break
    reverted = run("git", "apply", "-R", "-C1", "--ignore-whitespace", "-", text=patch)
    return trouble or (reverted.stdout if reverted.returncode else None)


def main(names):
    pages = [page for page in documents.PAGES if documents.blocks(page, "diff")]
    pages = [page for page in pages if not names or page.stem in names]
    copy_tree()
    built = run("scripts/build", "--tests")
    if built.returncode:
        sys.exit(built.stdout[-4000:])
    failed = 0
    for page in pages:
        trouble = follow(page)
        print(f"{page.stem}: {'FAILED' if trouble else 'passed'}", flush=True)
        if trouble:
            print(trouble)
            failed += 1
    sys.exit(1 if failed or not pages else 0)


if __name__ == "__main__":
    main(sys.argv[1:])
