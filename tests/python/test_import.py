"""What `import torch_xla` does and does not do, and what it says when it cannot."""

import pathlib

import pytest
import torch

from torch_xla import _binding
from torch_xla._binding import library_directory
from torch_xla.experimental import plugins


def test_starts_no_runtime_and_no_thread(program):
    output = program.run_code(
        """
import os, pathlib, sys
import torch
before = len(os.listdir("/proc/self/task"))
import torch_xla
print("threads", len(os.listdir("/proc/self/task")) - before)
print("started", torch_xla._XLAC._xla_runtime_is_initialized())
print("engine", "libpjrt" in pathlib.Path("/proc/self/maps").read_text())
""",
        anew=True,
    )
    assert output.stdout.splitlines() == ["threads 0", "started False", "engine False"]
    assert output.stderr == ""


def test_is_quick(program):
    output = program.run_code(
        """
import sys, time
import torch
start = time.process_time()
import torch_xla
print(time.process_time() - start, "torch._dynamo" in sys.modules or "sympy" in sys.modules)
""",
        anew=True,
    )
    seconds, torchs_compiler = output.stdout.split()
    assert float(seconds) < 0.5
    assert torchs_compiler == "False"


def test_may_be_reloaded(program):
    output = program.run_code(
        """
import importlib
import torch
import torch_xla
importlib.reload(torch_xla)
module = torch.compile(torch.nn.Linear(3, 2).to("xla"))
print(module(torch.ones(4, 3, device="xla")).shape)
"""
    )
    assert output.stdout.splitlines() == ["torch.Size([4, 2])"]


def test_submodules_are_attributes(program):
    program.run_code(
        """
import torch_xla
torch_xla.runtime, torch_xla.core.xla_model, torch_xla._XLAC, torch_xla.tpu
torch_xla.distributed.parallel_loader, torch_xla.distributed.xla_multiprocessing
torch_xla.debug.metrics, torch_xla.utils.utils, torch_xla.experimental.plugins, torch_xla.amp
import torch_xla._XLAC
"""
    )


def test_world_is_known_without_a_runtime(program):
    output = program.run_code(
        """
import torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.runtime as xr
print(xr.device_type(), xr.world_size(), xr.global_ordinal(), xr.local_ordinal(), xr.host_index())
print(xm.xrt_world_size(), xm.get_ordinal(), torch_xla.tpu.num_available_devices())
print(torch_xla._XLAC._xla_runtime_is_initialized())
"""
    )
    assert output.stdout.splitlines() == ["CPU 1 0 0 0", "1 0 0", "False"]


@pytest.mark.parametrize("version", ["2.10.1", "2.16.0", "3.0.0a1"])
def test_refuses_a_torch_of_another_time(version):
    with pytest.raises(
        ImportError, match=f"torch_xla supports torch 2.11 to 2.15, and torch {version}"
    ):
        _binding.check_torch(version)


@pytest.mark.parametrize("version", ["2.11.0", "2.13.0+cpu", "2.15.1.dev20260901"])
def test_accepts_a_torch_of_its_time(version):
    assert _binding.check_torch(version)[0] == 2


def _extension(directory: pathlib.Path, minor: str) -> pathlib.Path:
    import importlib.machinery

    folder = directory / f"torch{minor}"
    folder.mkdir()
    file = folder / f"_XLAC{importlib.machinery.EXTENSION_SUFFIXES[0]}"
    file.touch()
    return file


def test_takes_the_newest_extension_that_torch_is_not_older_than(tmp_path):
    files = {minor: _extension(tmp_path, minor) for minor in ("2.11", "2.13", "2.15")}
    assert _binding.find_extension(tmp_path, (2, 14)) == files["2.13"]
    assert _binding.find_extension(tmp_path, (2, 15)) == files["2.15"]


def test_says_that_torch_is_older_than_the_build(tmp_path):
    _extension(tmp_path, "2.13")
    with pytest.raises(ImportError, match=r"built for torch 2\.13, and torch 2\.12 is installed"):
        _binding.find_extension(tmp_path, (2, 12))


def test_says_that_nothing_is_built(tmp_path):
    with pytest.raises(ImportError, match="make build"):
        _binding.find_extension(tmp_path, (2, 13))


def test_says_that_an_extension_does_not_load(program):
    _extension(program.folder, "2.13")
    result = program.run_code(
        "import torch_xla", check=False, TORCH_XLA_LIBRARY_DIR=str(program.folder)
    )
    assert result.returncode == 1
    assert "ImportError: The extension of torch_xla at" in result.stderr


# A library, but no plugin.
NO_PLUGIN = str(pathlib.Path(torch.__file__).parent / "lib" / "libc10.so")

FIRST_TENSOR = """
import torch, torch_xla
try:
    torch.ones(2, device="xla")
except RuntimeError as error:
    print("RuntimeError:", error)
print(torch.ones(2) + 1)
"""


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        (
            {"PJRT_DEVICE": "LIBRARY", "PJRT_LIBRARY_PATH": "/nowhere/plugin.so"},
            "/nowhere/plugin.so",
        ),
        ({"PJRT_DEVICE": "LIBRARY", "PJRT_LIBRARY_PATH": ""}, "PJRT_LIBRARY_PATH"),
        ({"PJRT_DEVICE": "LIBRARY", "PJRT_LIBRARY_PATH": NO_PLUGIN}, "GetPjrtApi"),
        ({"PJRT_DEVICE": "LIBRARY", "PJRT_LIBRARY_PATH": __file__}, "test_import.py"),
        ({"PJRT_DEVICE": "WARP"}, "WARP"),
        ({"PJRT_DEVICE": "TPU"}, "libtpu"),
        ({"PJRT_DEVICE": "CUDA"}, "jax-cuda13-pjrt"),
        ({"CPU_NUM_DEVICES": "four"}, "CPU_NUM_DEVICES is 'four'"),
    ],
    ids=[
        "missing",
        "no path",
        "not a plugin",
        "not a library",
        "unknown",
        "no TPU",
        "no CUDA",
        "no number",
    ],
)
def test_says_why_an_engine_does_not_start(program, variables, message):
    output = program.run_code(FIRST_TENSOR, **variables).stdout.strip()
    assert output.startswith("RuntimeError: ") and message in output.splitlines()[0]
    assert output.endswith("tensor([2., 2.])")


@pytest.mark.parametrize(
    ("variables", "options"),
    [
        ({}, {}),
        ({"PJRT_ALLOCATOR_PREALLOCATE": "false"}, {"preallocate": False}),
        (
            {"PJRT_ALLOCATOR_PREALLOCATE": "1", "PJRT_ALLOCATOR_FRACTION": "0.25"},
            {"preallocate": True, "memory_fraction": 0.25},
        ),
        ({"PJRT_ALLOCATOR_CUDA_ASYNC": "true"}, {"allocator": "cuda_async"}),
        ({"PJRT_ALLOCATOR_CUDA_ASYNC": "0"}, {}),
    ],
)
def test_memory_of_gpus_is_the_users_choice(monkeypatch, variables, options):
    for name in ("PREALLOCATE", "FRACTION", "CUDA_ASYNC"):
        monkeypatch.delenv(f"PJRT_ALLOCATOR_{name}", raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert plugins.CudaPlugin().client_create_options() == options


@pytest.mark.parametrize("plugin", [None, object(), plugins.CpuPlugin])
def test_what_is_no_plugin(plugin):
    with pytest.raises(TypeError, match="is no DevicePlugin"):
        plugins.register_plugin("WRONG", plugin)
    assert "WRONG" not in plugins.plugins()


def test_entry_points_register_plugins(program):
    package = program.folder / "vendor-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: vendor\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text(
        "[torch_xla.plugins]\nwarp = vendor:WarpPlugin\nbroken = vendor:Missing\n"
    )
    library = library_directory() / plugins.CPU_PLUGIN
    (program.folder / "vendor.py").write_text(
        f"""
from torch_xla.experimental.plugins import DevicePlugin
class WarpPlugin(DevicePlugin):
    def library_path(self):
        return {str(library)!r}
    def client_create_options(self):
        return {{}}
"""
    )
    result = program.run_code(
        """
import sys; sys.path.insert(0, ".")
import torch, torch_xla
from torch_xla.experimental import plugins
print(sorted(plugins.plugins()))
print((torch.ones(2, device="xla") + 1).cpu())
""",
        PJRT_DEVICE="WARP",
    )
    names, sum_ = result.stdout.splitlines()
    assert names == "['CPU', 'CUDA', 'LIBRARY', 'REMOTE', 'TPU', 'WARP']"
    assert sum_ == "tensor([2., 2.])"
    assert "broken" in result.stderr


def test_the_first_start_of_the_client_is_told_again(program):
    """By the function that PyTorch/XLA has for it; what starts the runtime otherwise sees the variable as it is by then."""
    program.run_code(
        """
import os
import pytest, torch, torch_xla
for device in ("NONE_SUCH", "CPU"):
    os.environ["PJRT_DEVICE"] = device
    with pytest.raises(RuntimeError, match="No PjRtPlugin registered for: NONE_SUCH"):
        torch_xla._XLAC._init_computation_client()
assert (torch.ones(2, device="xla") + 1).tolist() == [2, 2]
torch_xla._XLAC._init_computation_client()
""",
        PJRT_DEVICE="NONE_SUCH",
    )
