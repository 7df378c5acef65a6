"""The built wheel (`make test-wheel`): what it needs of a system, its size, and that it trains where nothing else is.

The machines that have no compiler, LLVM, gRPC, OpenBLAS or libgfortran are made of this one: in a mount namespace, /usr/lib
holds only what the wheel's tag promises and what Python itself needs.
"""

import json
import pathlib
import re
import shutil
import subprocess
import sys
import zipfile

import auditwheel.policy
import pytest
from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile

ROOT = pathlib.Path(__file__).parents[2]
MEGABYTES = 1 << 20
LIBRARIES = pathlib.Path("/usr/lib/x86_64-linux-gnu")
# What comes with torch, where the wheel's libraries look for it.
TORCHS = {"libtorch.so", "libtorch_cpu.so", "libtorch_python.so", "libc10.so", "libgomp.so.1"}


def dynamic_entries(file: pathlib.Path) -> list:
    """The dynamic section of a library; empty for what is none."""
    with file.open("rb") as stream:
        if stream.read(4) != b"\x7fELF":
            return []
        section = ELFFile(stream).get_section_by_name(".dynamic")
        return list(section.iter_tags()) if isinstance(section, DynamicSection) else []


def needed(file: pathlib.Path) -> set[str]:
    """The names of the libraries that one needs."""
    return {tag.needed for tag in dynamic_entries(file) if tag.entry.d_tag == "DT_NEEDED"}


@pytest.fixture(scope="session")
def wheel() -> pathlib.Path:
    (file,) = (ROOT / "dist").glob("torch_xla-*.whl")
    return file


@pytest.fixture(scope="session")
def promised(wheel) -> set[str]:
    """The libraries that a system of the wheel's tag has."""
    policies = pathlib.Path(auditwheel.policy.__file__).with_name("manylinux-policy.json")
    tag = re.search(r"-(manylinux_\d+_\d+)_x86_64\.whl$", wheel.name)
    assert tag, wheel.name
    (policy,) = (p for p in json.loads(policies.read_text()) if p["name"] == tag[1])
    return {"ld-linux-x86-64.so.2", *policy["lib_whitelist"]}


@pytest.fixture(scope="session")
def environment(wheel, tmp_path_factory) -> pathlib.Path:
    """A virtual environment with the wheel, and links to the packages of the project's except for its own."""
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    parts = pathlib.Path("lib", f"python3.{sys.version_info.minor}", "site-packages")
    for entry in (pathlib.Path(sys.prefix) / parts).iterdir():
        if "torch_xla" not in entry.name and entry.suffix != ".pth":
            (folder / parts / entry.name).symlink_to(entry)
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python")]
    subprocess.run([*pip, "install", "-q", "--no-index", "--no-deps", wheel], check=True)
    return folder


def run(environment: pathlib.Path, *command: str, inside: list[str] = []) -> str:
    """Runs the environment's Python on a program, in its folder; what it prints."""
    variables = {"PATH": "/usr/bin:/bin", "HOME": str(environment), "PJRT_DEVICE": "CPU"}
    result = subprocess.run(
        [*inside, str(environment / "bin" / "python"), *command],
        cwd=environment,
        env=variables,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert result.returncode == 0, f"{result.stdout}\n{result.stderr}"
    return result.stdout


def test_takes_from_the_system_what_its_tag_promises(wheel, promised, environment):
    package = next(environment.glob("lib/python3*/site-packages/torch_xla"))
    own = {file.name for file in package.glob("lib/**/*.so*")}
    assert {"libpjrt_cpu.so", "libpjrt_remote.so", "libdnnl.so.3", "libtorch_xla.so"} <= own
    for file in package.glob("lib/**/*.so*"):
        assert needed(file) <= promised | own | TORCHS, file.name


def test_is_small(wheel):
    with zipfile.ZipFile(wheel) as archive:
        assert sum(entry.file_size for entry in archive.infolist()) <= 110 * MEGABYTES


USES_EVERYTHING = """
import os, pathlib, re, subprocess, sys
server = subprocess.Popen([sys.executable, "-m", "torch_xla.runtime_server", "--port", "0"], stdout=subprocess.PIPE)
try:
    port = re.search(rb":(\\d+)$", server.stdout.readline().strip())[1].decode()
    os.environ.update(PJRT_DEVICE="REMOTE", PJRT_REMOTE_ADDRESS=f"localhost:{port}")
    import torch, torch_xla
    matrix = torch.eye(4) * 2 + 1
    assert torch.allclose(torch.linalg.inv(matrix.to("xla")).cpu(), torch.linalg.inv(matrix))
    print(torch_xla.__file__)
    for process in "self", server.pid:
        maps = pathlib.Path(f"/proc/{process}/maps").read_text()
        print(*sorted(set(re.findall(r"/\\S+\\.so[.\\d]*", maps))))
finally:
    server.terminate()
sys.exit(server.wait(30))
"""


def test_server_and_client_load_no_library_twice_and_none_of_others(environment):
    module, client, server = run(environment, "-c", USES_EVERYTHING).splitlines()
    assert module.startswith(str(environment))
    others = r"/(usr/)?lib/.*/lib(gfortran|grpc|absl|protobuf|re2|openblas|LLVM|zstd|gomp)[^/]*"
    for loaded in client.split(), server.split():
        names = [pathlib.Path(file).name for file in loaded]
        assert "libpjrt_remote.so" in names
        assert names.count("libgomp.so.1") == 1
        assert not [file for file in loaded if re.fullmatch(others, file)]


@pytest.fixture(scope="session")
def bare_machine(promised, tmp_path_factory) -> list[str]:
    """The command before a command that runs it where /usr/lib has little; skips where that is not allowed."""
    kept = tmp_path_factory.mktemp("kept")
    python = pathlib.Path(sys.executable).resolve().parents[1]
    modules = (python / "lib" / f"python3.{sys.version_info.minor}" / "lib-dynload").glob("*.so")
    pythons = {name for file in modules for name in needed(file)}
    for name in promised | pythons | needed(pathlib.Path(sys.executable)):
        if (LIBRARIES / name).exists():
            shutil.copy(LIBRARIES / name, kept)
    nothing = tmp_path_factory.mktemp("nothing")
    hidden = [
        folder for folder in ("/usr/lib/gcc", "/usr/lib/llvm-19") if pathlib.Path(folder).is_dir()
    ]
    mounts = [f"mount --bind {nothing} {folder}" for folder in hidden]
    mounts.append(f"mount --bind {kept} {LIBRARIES}")
    unshare = ["unshare", "--mount", "--map-root-user", "sh", "-c"]
    allowed = subprocess.run([*unshare, f"mount --bind {nothing} {nothing}"], capture_output=True)
    if allowed.returncode != 0:
        pytest.skip("no mount namespaces here")
    return [*unshare, " && ".join([*mounts, 'exec "$@"']), "sh"]


def test_trains_on_a_machine_without_compilers_and_libraries(environment, bare_machine):
    program = str(ROOT / "examples" / "mnist.py")
    output = run(environment, program, "--epochs", "1", inside=bare_machine)
    accuracy = re.search(r"epoch +1: loss [\d.]+, +\d+ images/s, test accuracy ([\d.]+)", output)
    assert accuracy and float(accuracy[1]) > 0.85, output
