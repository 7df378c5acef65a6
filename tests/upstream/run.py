"""Runs PyTorch/XLA's own tests, from a checkout that the user has, and counts what passes.

    python tests/upstream/run.py CHECKOUT [--group core debug ...] [--only REGEX] [--list-failures]

CHECKOUT is pytorch/xla at tag v2.9.0 (its folders `test` and `torch_xla/test`). Each file is a process of its own, on one
device of the CPU engine. The packages absl-py, expecttest and parameterized must be there. docs/compatibility.md says which tests
do not apply here.
"""

import argparse
import collections
import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path

HERE = Path(__file__).parent
LIMIT_SECONDS = 1800

IR = {"XLA_IR_DEBUG": "1"}
HLO = {"XLA_HLO_DEBUG": "1"}
# Where compilations are counted: each graph is compiled when it comes first.
PROGRAMS = {"TORCH_XLA_INTERPRET": "never"}

# The files of each group, with what their environment has besides; "@" in a value is a folder for the run.
Files = dict[str, list[dict[str, str]]]


def plain(*files: str) -> Files:
    """Files that run once, with nothing besides."""
    return {file: [{}] for file in files}


GROUPS: dict[str, Files] = {
    "core": plain(
        "test_operations.py",
        "test_input_output_aliases.py",
        "test_placeholder.py",
        "test_devices.py",
        "test_async_closures.py",
        "test_callback.py",
        "test_data_type.py",
        "test_autocast_xla.py",
        "test_inplace_update.py",
        "test_as_stride_use_slice.py",
        "test_operations_hlo.py",
        "test_dynamic_shapes_detector.py",
        "test_xla_graph_execution.py",
        "test_compilation_cache_utils.py",
        "test_gru.py",
        "test_grad_checkpoint.py",
        "test_mat_mul_precision_get_and_set.py",
        "test_manual_xla_registration.py",
        "test_runtime_client_initialization_error.py",
        "test_python_backend.py",
        "test_deprecation.py",
        "test_fp8.py",
        "test_profiler_session.py",
        "pjrt/test_dtypes.py",
    ),
    "debug": {
        "test_metrics.py": [PROGRAMS, PROGRAMS | {"XLA_METRICS_FILE": "@/metrics.txt"}],
        "test_hlo_metadata.py": [{}],
        "debug_tool/test_pt_xla_debug.py": [
            {"PT_XLA_DEBUG": "1", "PT_XLA_DEBUG_FILE": "@/debug.txt"},
            {"PT_XLA_DEBUG_LEVEL": "1", "PT_XLA_DEBUG_FILE": "@/debug.txt"},
            {"PT_XLA_DEBUG_LEVEL": "2", "PT_XLA_DEBUG_FILE": "@/debug.txt"},
        ],
        "test_xla_graph_execution.py": [
            {"PT_XLA_DEBUG_LEVEL": "2", "PT_XLA_DEBUG_FILE": "@/debug.txt"}
        ],
        "test_env_var_mapper.py": [IR, HLO],
        "test_user_computation_debug_cache.py": [IR | HLO],
    },
    "eager": plain(
        "eager/test_eager.py",
        "eager/test_eager_with_xla_compile.py",
        "eager/test_eager_with_torch_compile.py",
    ),
    "ops": plain("test_core_aten_ops.py", "test_ops.py"),
    "dist": plain(
        "test_torch_distributed_xla_backend.py",
        "pjrt/test_runtime.py",
        "pjrt/test_runtime_multi_cpu.py",
        "pjrt/test_ddp.py",
        "pjrt/test_mesh_service.py",
    ),
    "control": plain(
        "scan/test_scan.py",
        "scan/test_scan_layers.py",
        "test_while_loop.py",
        "test_gradient_accumulation.py",
    ),
    "dynamo": plain(
        "dynamo/test_dynamo.py",
        "dynamo/test_dynamo_aliasing.py",
        "dynamo/test_bridge.py",
        "dynamo/test_num_output.py",
    ),
}


def environment(checkout: Path, extra: dict[str, str], folder: str) -> dict[str, str]:
    """Of a test's process."""
    tests = checkout / "test"
    path = [HERE, tests, tests / "spmd", os.environ.get("PYTHONPATH", "")]
    return (
        os.environ
        | {
            "PYTHONPATH": os.pathsep.join(str(part) for part in path if str(part)),
            "PJRT_DEVICE": "CPU",
            "CPU_NUM_DEVICES": "1",
            "TORCH_TEST_DEVICES": str(tests / "pytorch_test_base.py"),
            "PYTORCH_TESTING_DEVICE_ONLY_FOR": "xla",
            "UPSTREAM_CHECKOUT": str(checkout),
            "PYTHONDONTWRITEBYTECODE": "1",
            "TMPDIR": folder,
        }
        | {name: value.replace("@", folder) for name, value in extra.items()}
    )


def outcomes(report: Path) -> dict[str, str]:
    """The tests of a report, by what became of them."""
    if not report.exists():
        return {}
    found = {}
    for case in ElementTree.parse(report).iter("testcase"):
        name = f"{case.get('classname', '').rpartition('.')[2]}.{case.get('name')}"
        kinds = {child.tag for child in case}
        if kinds & {"failure", "error"}:
            found[name] = "failed"
        else:
            found[name] = "skipped" if "skipped" in kinds else "passed"
    return found


def run(checkout: Path, file: str, extra: dict[str, str]) -> dict[str, str]:
    """The outcomes of a file's tests. A script is one test; a file that does not load, or dies, is one that failed."""
    path = checkout / "test" / file
    is_script = "TestCase" not in path.read_text() and "TestBase" not in path.read_text()
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, str(path)]
        if not is_script:
            options = ["-q", "-p", "plugin", "-p", "no:cacheprovider", f"--junitxml={report}"]
            command = [sys.executable, "-m", "pytest", *options, "--rootdir", folder, str(path)]
        try:
            done = subprocess.run(
                command,
                cwd=folder,
                env=environment(checkout, extra, folder),
                capture_output=True,
                timeout=LIMIT_SECONDS,
            )
            status = done.returncode
        except subprocess.TimeoutExpired:
            status = -1
        if is_script:
            return {file: "passed" if status == 0 else "failed"}
        found = outcomes(report)
        return (
            found if status in (0, 1) and found else found | {f"{file} (exit {status})": "failed"}
        )


def main() -> int:
    """Prints a line for each file, and the sum of each group. 0 if nothing failed."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--group", nargs="+", default=["core", "debug"], choices=GROUPS)
    parser.add_argument("--only", default="", help="regular expression for the file's name")
    parser.add_argument("--list-failures", action="store_true")
    options = parser.parse_args()
    checkout = options.checkout.resolve()
    if not (checkout / "test" / "test_operations.py").exists():
        parser.error(f"{checkout} is no checkout of pytorch/xla: it has no test/test_operations.py")
    any_failed = False
    for group in options.group:
        total: collections.Counter[str] = collections.Counter()
        for file, modes in GROUPS[group].items():
            for mode in modes if re.search(options.only, file) else []:
                found = run(checkout, file, mode)
                counts = collections.Counter(found.values())
                total.update(counts)
                setting = " ".join(f"{name}={value}" for name, value in mode.items())
                numbers = " ".join(f"{counts[kind]:4}" for kind in ("passed", "failed", "skipped"))
                print(f"{group:8} {file:44} {numbers}  {setting}", flush=True)
                if options.list_failures:
                    print(
                        *(f"    {name}" for name, kind in found.items() if kind == "failed"),
                        sep="\n",
                    )
        print(
            f"{group}: {total['passed']} passed, {total['failed']} failed, {total['skipped']} skipped"
        )
        any_failed = any_failed or total["failed"] > 0
    return 1 if any_failed else 0


if __name__ == "__main__":
    sys.exit(main())
