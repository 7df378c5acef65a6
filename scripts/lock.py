#!/usr/bin/env python3
"""Writes requirements/*.txt, the exact files that scripts/install takes, from requirements/*.in, the packages wanted.

    scripts/lock.py          all of them, at the newest versions that fit together

pip resolves against its default index alone, and says which files it would take for this platform; their hashes are
what is written. A package whose line ends with "# alone" is taken without its dependencies. torch stands in files of its
own: torch-cuda.txt has the public build, with the libraries that it needs, and torch-cpu.txt the one for CPUs, which
other indexes or folders may offer. Where pip is not set up for these now, that one stays as it was.

Needs pip 26 or newer, so as not to load the files, which it gets into an environment for the time being.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import venv

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "requirements"
# From the first to the last, each sees what those before it have taken.
SETS = ("base", "test", "plugins", "clients", "docs", "tensorflow")
# In environments of their own, which do not see each other.
BESIDE = ("clients", "docs", "tensorflow")
TORCH = re.compile(r"torch|triton|(nvidia|cuda)-.*")
HEAD = """\
# Made by scripts/lock.py (make lock) from {}: change that, and make this again.
# The hashes are those of the files for Python 3.11 on x86_64.
"""

Locked = dict[str, tuple[str, set[str]]]


def normal(name: str) -> str:
    """The name as indexes have it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def wanted(file: pathlib.Path) -> tuple[list[str], list[str]]:
    """The requirements whose dependencies are wanted too, and those that are wanted alone."""
    lines = [line for line in file.read_text().splitlines() if line and not line.startswith("#")]
    alone = [line.removesuffix("# alone").strip() for line in lines if line.endswith("# alone")]
    return [line for line in lines if not line.endswith("# alone")], alone


def resolve(
    python: str, requirements: list[str], *options: str, default_index: bool = True
) -> Locked:
    """What pip would install: versions and hashes by name."""
    environment = dict(os.environ)
    if default_index:
        environment["PIP_CONFIG_FILE"] = os.devnull
        for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS"):
            environment.pop(name, None)
    command = [python, "-m", "pip", "install", "-q", "--dry-run", "--ignore-installed"]
    command += ["--only-binary=:all:", "--report=-", *options, *requirements]
    report = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True).stdout
    return {
        normal(item["metadata"]["name"]): (
            item["metadata"]["version"],
            {item["download_info"]["archive_info"]["hashes"]["sha256"]},
        )
        for item in json.loads(report)["install"]
    }


def read(file: pathlib.Path) -> Locked:
    """What an earlier run has written."""
    if not file.exists():
        return {}
    found = re.findall(r"^(\S+)==(\S+)((?: \\\n +--hash=sha256:\w+)+)$", file.read_text(), re.M)
    return {
        name: (version, set(re.findall(r"sha256:(\w+)", hashes))) for name, version, hashes in found
    }


def write(name: str, source: str, locked: Locked) -> None:
    """Writes one file."""
    entries = [
        f"{package}=={version}"
        + "".join(f" \\\n    --hash=sha256:{code}" for code in sorted(codes))
        for package, (version, codes) in sorted(locked.items())
    ]
    (FOLDER / f"{name}.txt").write_text(HEAD.format(source) + "\n".join(entries) + "\n")


def build_for_cpus(python: str, version: str) -> Locked:
    """torch's build for CPUs, of this version."""
    before = read(FOLDER / "torch-cpu.txt")
    if before.get("torch", ("",))[0] == f"{version}+cpu":
        return before
    return resolve(python, [f"torch=={version}+cpu"], "--no-deps", default_index=False)


def lock(python: str, constraints: pathlib.Path) -> None:
    """Writes all files."""
    taken: Locked = {}
    for name in SETS:
        together, alone = wanted(FOLDER / f"{name}.in")
        named = {normal(re.split(r"[^\w.-]", line)[0]) for line in together}
        constraints.write_text(
            "".join(f"{p}=={v}\n" for p, (v, _) in taken.items() if p not in named)
        )
        locked = resolve(python, together, f"--constraint={constraints}") if together else {}
        locked |= resolve(python, alone, "--no-deps")
        locked = {p: entry for p, entry in locked.items() if taken.get(p) != entry}
        if name == "base":
            public = {p: entry for p, entry in locked.items() if TORCH.fullmatch(p)}
            write("torch-cuda", "base.in", public)
            write("torch-cpu", "base.in", build_for_cpus(python, public["torch"][0]))
            locked = {p: entry for p, entry in locked.items() if p not in public}
            taken |= public
        write(name, f"{name}.in", locked)
        if name not in BESIDE:
            taken |= locked


def main() -> None:
    """The program."""
    if sys.version_info[:2] != (3, 11):
        sys.exit("scripts/lock.py: the files are those of Python 3.11, which must run this.")
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = os.path.join(folder, "bin", "python")
        subprocess.run([python, "-m", "pip", "install", "-q", "pip>=26"], check=True)
        lock(python, pathlib.Path(folder, "constraints.txt"))


if __name__ == "__main__":
    main()
