"""Runs PyTorch/XLA's own tests, from a checkout that the user has, and counts what passes.

    python tests/upstream/run.py CHECKOUT [--group core debug ...] [--only REGEX] [--list-failures]

CHECKOUT is pytorch/xla at tag v2.9.0 (its folders `test`, `examples` and `torch_xla/test`). Each file is a process of its
own, on one device of the CPU engine where its row does not say more. The packages absl-py, expecttest, parameterized and rich must
be there; torchvision need not (`stand_ins/`). Examples run in a small configuration (`small/`); tests that look for a TPU find one
in the group `dist_ungated` (`ungated/`).

A group has two shares: of all tests that ran, and of those that apply here. `not_applicable.toml` has the others, each with its
reason. Of them only failures are left out of the second share; one that passes, or that is not there, is an error of the list.
"""

import argparse
import collections
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import tomllib
import xml.etree.ElementTree as ElementTree
from collections.abc import Collection, Iterable
from pathlib import Path

HERE = Path(__file__).parent
LIMIT_SECONDS = 1800

IR = {"XLA_IR_DEBUG": "1"}
HLO = {"XLA_HLO_DEBUG": "1"}
TWO, FOUR = {"CPU_NUM_DEVICES": "2"}, {"CPU_NUM_DEVICES": "4"}
UNGATED = FOUR | {"UPSTREAM_HARDWARE": "TPU"}
DEBUG = {"PT_XLA_DEBUG": "1", "PT_XLA_DEBUG_FILE": "@/debug.txt"}
TEXT = {"XLA_SAVE_TENSORS_FILE": "@/graphs.txt", "XLA_SAVE_TENSORS_FMT": "text"}
HLO_TEXT = TEXT | {"XLA_SAVE_TENSORS_FMT": "hlo"}
# These are started by torchrun, the others start their processes.
BY_TORCHRUN = {"test_mp_early_exit.py"}
# One looks through the objects that its callers hold, and stumbles over pytest's; the other wants to be the program.
WITHOUT_PYTEST = {"test_hlo_metadata.py", "test_deprecation.py"}

# Where the user of an example is to have made a folder.
FOLDERS = {"../examples/debug/train_resnet_profile.py": Path("/tmp/profile")}

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
        "test_autocast.py",
        "test_inplace_update.py",
        "test_as_stride_use_slice.py",
        "test_operations_hlo.py",
        "test_dynamic_shapes_detector.py",
        "test_xla_graph_execution.py",
        "test_compilation_cache_utils.py",
        "test_gru.py",
        "test_grad_checkpoint.py",
        "test_mat_mul_precision.py",
        "test_mat_mul_precision_get_and_set.py",
        "test_manual_xla_registration.py",
        "test_runtime_client_initialization_error.py",
        "test_python_backend.py",
        "test_deprecation.py",
        "test_fp8.py",
        "test_profiler_session.py",
        "pjrt/test_dtypes.py",
        "test_persistent_cache.py",
    ),
    "debug": {
        "test_metrics.py": [{}, {"XLA_METRICS_FILE": "@/metrics.txt"}],
        "test_hlo_metadata.py": [{}],
        "debug_tool/test_pt_xla_debug.py": [
            DEBUG,
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
        "eager/test_eager_spmd.py",
    ),
    "errors": plain(
        "test_ops_error_message.py", "test_ops_error_message_functionalization_disabled.py"
    ),
    "ops": plain("test_core_aten_ops.py", "test_ops.py"),
    "dist": plain(
        "test_torch_distributed_xla_backend.py",
        "pjrt/test_runtime.py",
        "pjrt/test_runtime_multi_cpu.py",
        "pjrt/test_mesh_service.py",
        "pjrt/test_internal_tpu.py",
    )
    | {"pjrt/test_ddp.py": [{}, TWO, FOUR]}
    | {
        file: [TWO, FOUR]
        for file in (
            "test_mp_replication.py",
            "test_mp_mesh_reduce.py",
            "test_mp_save.py",
            "test_mp_rendezvous.py",
            "test_mp_reduce_scatter.py",
            "test_mp_sync_batch_norm.py",
        )
    },
    "dist_ungated": {
        "debug_tool/test_mp_pt_xla_debug.py": [UNGATED | DEBUG],
        **{
            file: [UNGATED]
            for file in (
                "test_mp_all_gather.py",
                "test_mp_all_to_all.py",
                "test_mp_collective_permute.py",
                "test_mp_distributed_mm.py",
                "test_mp_early_exit.py",
                "test_mp_collective_matmul.py",
                "test_zero1.py",
                "dynamo/test_traceable_collectives.py",
                "test_fsdp_auto_wrap.py",
                "eager/test_eager_all_reduce_in_place.py",
                "torch_distributed/test_torch_distributed_all_gather_xla_backend.py",
                "torch_distributed/test_torch_distributed_all_reduce_xla_backend.py",
                "torch_distributed/test_torch_distributed_bucketed_all_reduce_xla_backend.py",
                "torch_distributed/test_torch_distributed_multi_all_reduce_xla_backend.py",
                "torch_distributed/test_torch_distributed_reduce_scatter_xla_backend.py",
                "torch_distributed/test_torch_distributed_fsdp_meta.py",
                "torch_distributed/test_ddp.py",
            )
        },
    },
    "control": {
        **plain(
            "scan/test_scan.py",
            "scan/test_scan_layers.py",
            "scan/test_scan_spmd.py",
            "test_while_loop.py",
            "test_gradient_accumulation.py",
            "test_assume_pure_torch.py",
        ),
        "scan/test_scan_debug.py": [HLO],
    },
    "dynamo": {
        "dynamo/test_dynamo_graph_dump.py": [TEXT],
        **plain(
            "dynamo/test_dynamo.py",
            "dynamo/test_dynamo_aliasing.py",
            "dynamo/test_dynamo_dynamic_shape.py",
            "dynamo/test_bridge.py",
            "dynamo/test_num_output.py",
            "dynamo/test_graph_input_matcher.py",
            "dynamo/test_dynamo_config.py",
            "dynamo/test_none_remover.py",
            "dynamo/test_dynamo_integrations_util.py",
        ),
    },
    "stablehlo": {
        **plain(
            "stablehlo/test_exports.py",
            "stablehlo/test_stablehlo_save_load.py",
            "stablehlo/test_composite.py",
            "stablehlo/test_stablehlo_custom_call.py",
            "stablehlo/test_export_fx_passes.py",
            "stablehlo/test_implicit_broadcasting.py",
            "stablehlo/test_unbounded_dynamism.py",
            "stablehlo/test_stablehlo_compile.py",
            "stablehlo/test_xla_export_interpreter.py",
            "stablehlo/test_mlir_debuginfo.py",
            "quantized_ops/test_quantized_matmul.py",
            "quantized_ops/test_dot_general.py",
        ),
        "stablehlo/test_stablehlo_inference.py": [HLO],
    },
    "spmd": {
        **plain(
            "spmd/test_xla_virtual_device.py",
            "spmd/test_xla_spmd_python_api_interaction.py",
            "spmd/test_dynamo_spmd.py",
            "spmd/test_spmd_debugging.py",
            "spmd/test_xla_sharding_hlo.py",
            "spmd/test_train_spmd_linear_model.py",
            "spmd/test_xla_auto_sharding.py",
            "spmd/test_spmd_parameter_wrapping.py",
            "spmd/test_dtensor_integration.py",
            "spmd/test_dtensor_integration2.py",
        ),
        **{
            file: [{}, FOUR]
            for file in (
                "spmd/test_xla_sharding.py",
                "spmd/test_xla_distributed_checkpoint.py",
                "spmd/test_mp_input_sharding.py",
                "spmd/test_fsdp_v2.py",
            )
        },
        **{
            file: [FOUR]
            for file in (
                "spmd/test_dtensor_convert_mesh.py",
                "spmd/test_xla_dtensor_spec_conversion.py",
                "spmd/test_dtensor_redistribute.py",
                "spmd/test_xla_sharded_tensor.py",
                "spmd/test_xla_dtensor_placements.py",
                "spmd/test_dtensor_integration3.py",
            )
        },
        "spmd/test_spmd_graph_dump.py": [TEXT, HLO_TEXT],
        "spmd/test_spmd_lowering_context.py": [HLO_TEXT],
    },
    "slow": plain("test_python_ops.py", "test_syncfree_optimizers.py"),
    "examples": {
        **plain(
            "../examples/train_resnet_base.py",
            "../examples/train_resnet_amp.py",
            "../examples/train_decoder_only_base.py",
            "../examples/debug/train_resnet_benchmark.py",
            "../examples/debug/train_resnet_profile.py",
            "../examples/flash_attention/train_decoder_only_flash_attention.py",
            "../examples/scan/scan_examples.py",
            "../examples/eager/train_decoder_only_eager.py",
            "../examples/eager/train_decoder_only_eager_with_compile.py",
            "../examples/data_parallel/train_resnet_spmd_data_parallel.py",
            "../examples/eager/train_decoder_only_eager_spmd_data_parallel.py",
            "../examples/fsdp/train_decoder_only_fsdp_v2.py",
            "../examples/flash_attention/train_decoder_only_flash_attention_fsdp_v2.py",
        ),
        "../examples/data_parallel/train_resnet_ddp.py": [TWO],
        "../examples/data_parallel/train_resnet_xla_ddp.py": [TWO],
        "../examples/eager/train_decoder_only_eager_multi_process.py": [TWO],
        "../examples/fsdp/train_resnet_fsdp_auto_wrap.py": [TWO],
    },
}


def environment(
    checkout: Path, extra: dict[str, str], folder: str, is_example: bool
) -> dict[str, str]:
    """Of a test's process."""
    tests, examples = checkout / "test", checkout / "examples"
    path = [HERE, tests, tests / "spmd", examples, os.environ.get("PYTHONPATH", "")]
    if is_example:
        path.insert(0, HERE / "small")
    if "UPSTREAM_HARDWARE" in extra:
        path.insert(0, HERE / "ungated")
    if importlib.util.find_spec("torchvision") is None:
        path.append(HERE / "stand_ins")
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
        if not case.get("classname"):
            continue  # the file itself, where it does not load
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
    source = path.read_text()
    starts_processes = "torch_xla.launch" in source.split("__name__ == ")[-1]
    has_tests = re.search("TestCase|TestBase|ShardingTest", source) and file not in WITHOUT_PYTEST
    is_script = starts_processes or not has_tests
    if file in FOLDERS:
        FOLDERS[file].mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, str(path)]
        if file in BY_TORCHRUN:
            devices = extra.get("CPU_NUM_DEVICES", "1")
            launcher = ["-m", "torch.distributed.run", f"--nproc-per-node={devices}"]
            command = [sys.executable, *launcher, str(path)]
        elif not is_script:
            options = ["-q", "-p", "plugin", "-p", "no:cacheprovider", f"--junitxml={report}"]
            # Only methods are tests: functions of that name are the bodies of some.
            options += ["-o", "python_functions=no_function"]
            command = [sys.executable, "-m", "pytest", *options, "--rootdir", folder, str(path)]
        try:
            done = subprocess.run(
                command,
                cwd=folder,
                env=environment(checkout, extra, folder, file.startswith("../examples/")),
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


Outcomes = dict[tuple[str, str], list[str]]


def not_applicable() -> dict[str, dict[str, dict[str, str]]]:
    """By group, file and test the reason why it says nothing here."""
    return tomllib.loads((HERE / "not_applicable.toml").read_text())


def wrong_entries(listed: Iterable[tuple[str, str]], found: Outcomes) -> list[str]:
    """What the list says wrongly of tests that do not fail each time they run."""
    wrong = []
    for file, test in listed:
        kinds = set(found.get((file, test), ["is not there"])) - {"failed"}
        wrong += [f"{file}: {test} is listed as not applicable, but {kind}" for kind in kinds]
    return wrong


def summary(group: str, listed: Collection[tuple[str, str]], found: Outcomes) -> str:
    """A group's counts, and the shares that pass: of all that ran, and of what applies."""
    total = collections.Counter(kind for kinds in found.values() for kind in kinds)
    apart = sum(found[name].count("failed") for name in listed if name in found)
    ran = total["passed"] + total["failed"]

    def share(count: int) -> str:
        return f"{100 * total['passed'] / count if count else 100:.1f} %"

    return (
        f"{group}: {total['passed']} passed, {total['failed']} failed, {total['skipped']} skipped: {share(ran)}; "
        f"of the failures {apart} not applicable: {total['passed']} of {ran - apart}, {share(ran - apart)}"
    )


def run_group(checkout: Path, group: str, only: str, lists_failures: bool) -> bool:
    """Prints a line for each file, and the sum. False if something failed, or the list is wrong."""
    files = {file: modes for file, modes in GROUPS[group].items() if re.search(only, file)}
    reasons = not_applicable().get(group, {})
    listed = [(file, test) for file in files for test in reasons.get(file, {})]
    outcomes_of: Outcomes = collections.defaultdict(list)
    for file, modes in files.items():
        for mode in modes:
            found = run(checkout, file, mode)
            for test, kind in found.items():
                outcomes_of[file, test].append(kind)
            counts = collections.Counter(found.values())
            setting = " ".join(f"{name}={value}" for name, value in mode.items())
            numbers = " ".join(f"{counts[kind]:4}" for kind in ("passed", "failed", "skipped"))
            print(f"{group:8} {file:44} {numbers}  {setting}", flush=True)
            failures = [test for test, kind in found.items() if kind == "failed"]
            for test in failures if lists_failures else []:
                reason = reasons.get(file, {}).get(test)
                print(f"    {test}" + (f" ({reason})" if reason else ""), flush=True)
    wrong = wrong_entries(listed, outcomes_of)
    print(*wrong, summary(group, listed, outcomes_of), sep="\n", flush=True)
    return not wrong and not any(
        "failed" in kinds for name, kinds in outcomes_of.items() if name not in listed
    )


def main() -> int:
    """0 if nothing failed that applies."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--group", nargs="+", default=["core", "debug"], choices=GROUPS)
    parser.add_argument("--only", default="", help="regular expression for the file's name")
    parser.add_argument("--list-failures", action="store_true")
    options = parser.parse_args()
    checkout = options.checkout.resolve()
    if not (checkout / "test" / "test_operations.py").exists():
        parser.error(f"{checkout} is no checkout of pytorch/xla: it has no test/test_operations.py")
    passed = [
        run_group(checkout, group, options.only, options.list_failures) for group in options.group
    ]
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
