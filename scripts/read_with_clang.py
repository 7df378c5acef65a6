"""What clang-include-cleaner and clang-tidy say of files of src/ and tools/. scripts/lint calls it.

    python scripts/read_with_clang.py BUILD FILE...    status 1 if they say anything

BUILD is a folder with a compile_commands.json that has each source by itself. To read torch's headers, and to look for what
is wrong in them, takes half a minute of processor time for a source of src/aten, however short it is. So several of these
sources are read as one where that gives the same findings, and elsewhere the headers are precompiled.
"""

import concurrent.futures
import json
import os
import pathlib
import shlex
import subprocess
import sys

import check_names

ROOT = pathlib.Path(__file__).parents[1]
GLUE = ROOT / "src/aten"
ORDINARY = GLUE / "op.cc"  # compiled as most sources of its folder are
SOURCES_OF_A_BATCH = 8  # fewer than may have changed, so that there is work for each processor
# Of the project, LLVM and the standard library. C's and torch's are not judged: names come from headers there that nobody
# includes. Nor is <compare>, which a defaulted <=> wants without naming it.
INCLUDE_CLEANER = [
    *("clang-include-cleaner-19", "--insert=false", "--print=changes", "--extra-arg=-w"),
    *("--ignore-headers=/compare", r"--only-headers=/src/.*,/tools/.*,/c\+\+/.*,/llvm/.*"),
]
# They look at a source itself, not at what it includes.
CHECKS_OF_A_SOURCE = ("misc-unused-alias-decls", "misc-unused-using-decls")
# None of ours: an include that is not used is not seen if what was precompiled includes it, too.
TORCH_HEADERS = ("ATen/ATen.h", "torch/library.h")
GCC_ONLY = ("--param", "-fpch-preprocess")

Commands = dict[pathlib.Path, list[str]]


def compilations(build: pathlib.Path) -> Commands:
    """The arguments of each source, without its name and its object's."""
    entries = json.loads((build / "compile_commands.json").read_text())
    return {
        pathlib.Path(entry["file"]): shlex.split(entry["command"].partition(" -o ")[0])
        for entry in entries
    }


def precompile_torch(build: pathlib.Path, commands: Commands) -> list[str]:
    """What clang's tools are told to take the headers from there."""
    header, precompiled = build / "torch.h", build / "torch.pch"
    header.write_text("".join(f"#include <{name}>\n" for name in TORCH_HEADERS))
    arguments = [a for a in commands[ORDINARY][1:] if not a.startswith(GCC_ONLY)]
    compiler = ["clang++-19", *arguments, "-w", "-x", "c++-header", header, "-o", precompiled]
    subprocess.run(compiler, cwd=build, check=True)
    return [f"--extra-arg={a}" for a in ("-Xclang", "-include-pch", "-Xclang", precompiled)]


def write_batches(folder: pathlib.Path, sources: list[pathlib.Path], arguments: list[str]) -> list:
    """Files that include some sources each, which are compiled alike."""
    folder.mkdir(exist_ok=True)
    entries = []
    for first in range(0, len(sources), SOURCES_OF_A_BATCH):
        batch = folder / f"{len(entries)}.cc"
        included = sources[first : first + SOURCES_OF_A_BATCH]
        batch.write_text("".join(f'#include "{source}"\n' for source in included))
        command = shlex.join([*arguments, "-c", str(batch)])
        entries.append({"directory": str(folder), "file": str(batch), "command": command})
    (folder / "compile_commands.json").write_text(json.dumps(entries))
    return [entry["file"] for entry in entries]


def tidy(build: pathlib.Path, file: pathlib.Path | str, *options: str) -> list[str]:
    return ["clang-tidy-19", "-p", str(build), "--quiet", *options, str(file)]


def readings(build: pathlib.Path, files: list[pathlib.Path]) -> list[list[str]]:
    """The commands, those that take longest first."""
    commands = compilations(build)
    # A header's arguments are those of the source of its name, if there is one.
    glue = [
        file
        for file in files
        if file.is_relative_to(GLUE)
        and commands.get(file.with_suffix(".cc")) == commands[ORDINARY]
        and not check_names.is_alone(file)
    ]
    glue = glue if len(glue) > 2 else []  # else precompiling takes longer
    sources = [file for file in glue if file in commands]
    others = [file for file in files if file in commands and file not in glue]
    precompiled = precompile_torch(build, commands) if glue else []
    batches = write_batches(build / "batches", sources, commands[ORDINARY])
    of_a_batch = "--checks=" + ",".join(f"-{check}" for check in CHECKS_OF_A_SOURCE)
    of_a_source = ["--checks=" + ",".join(("-*", *CHECKS_OF_A_SOURCE)), *precompiled]
    return [
        *(tidy(build / "batches", batch, of_a_batch) for batch in batches),
        *(tidy(build, file) for file in others),
        *(tidy(build, file, *of_a_source) for file in sources),
        *(
            [*INCLUDE_CLEANER, *(precompiled if file in glue else []), "-p", str(build), str(file)]
            for file in files
        ),
    ]


def says_nothing(command: list[str]) -> bool:
    """Runs it, and shows what it says."""
    ran = subprocess.run(command, capture_output=True, text=True)
    lines = (ran.stdout + ran.stderr).splitlines()
    said = [
        line for line in lines if not line.endswith(("warning generated.", "warnings generated."))
    ]
    if not said and ran.returncode == 0:
        return True
    if command[0] == INCLUDE_CLEANER[0]:
        said.insert(0, f"{command[-1]} includes and does not use:")
    print("\n".join(said), flush=True)
    return False


def main() -> int:
    files = [ROOT / file for file in sys.argv[2:]]
    commands = readings(pathlib.Path(sys.argv[1]).resolve(), files)
    jobs = int(os.environ.get("JOBS") or os.cpu_count() or 1)
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        return 0 if all(list(pool.map(says_nothing, commands))) else 1


if __name__ == "__main__":
    sys.exit(main())
