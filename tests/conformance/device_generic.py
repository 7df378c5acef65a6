"""Counts how many of torch's own device-generic tests that pass on the CPU pass on `xla`.

    python tests/conformance/device_generic.py FOLDER --share 20 --jobs 2 --named xpu --out /tmp/counts.jsonl

FOLDER holds test files of torch, such as test_torch.py and nn/test_pooling.py, which are no part of this repository:
those of torch's repository at the version that is installed, or copies of them for another device, whose name `--named`
then says. Each test runs on the CPU and, where it passes, on xla. `--share N` takes one of N, by a checksum of its name:
always the same ones, whatever else is there. `--only TEXT` takes the tests whose name, `file::class::test`, has it.

Standard output has the counts of each file, then each failure with the last line of its error. `--out` gets a line of
JSON for each test. A file runs in processes of its own: one that crashes, or that takes longer than `--seconds` for a
test, fails that test, and another process goes on behind it. Tests that ask a tensor for its storage or its address
are counted by themselves. Those that torch keeps for the devices of its own repository run too.
"""

import argparse
import collections
import concurrent.futures
import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys
import threading
import time
import unittest
import zlib

# A process runs so many tests and ends, so that what it holds stays bounded.
TESTS_OF_A_PROCESS = 150
ASKS_FOR_MEMORY = ("data_ptr", "storage", "untyped_storage", "_typed_storage")
OUTCOMES = ("passed", "failed", "crashed", "hung", "skipped")


def instantiated_for_both(named):
    """Makes torch's loader instantiate each test that the vendor's device would run for the CPU and xla."""
    from torch.testing._internal import common_device_type, common_utils

    bases = [
        b for b in common_device_type.device_type_test_bases if b.device_type in ("cpu", "xla")
    ]

    def chosen(except_for=None, only_for=None, *_, **__):
        only_for = [only_for] if isinstance(only_for, str) else list(only_for or [])
        if {named, "xla"} & set(only_for):
            only_for = None
        return common_device_type.filter_desired_device_types(bases, except_for, only_for)

    common_device_type.get_desired_device_type_test_bases = chosen
    for module in common_device_type, common_utils:
        module.NATIVE_DEVICES = (*module.NATIVE_DEVICES, "xla")


def loaded(path, named):
    """The module of a file of tests, in which xla stands where the other device's name stood."""
    text = path.read_text()
    if named:
        text = re.sub(rf"""(["']){named}(:\d+)?\1""", r"\1xla\2\1", text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    exec(compile(text, str(path), "exec"), module.__dict__)
    return module


def pairs(module, path):
    """Of each test that both devices have: its name, its case on the CPU, and its case on xla."""
    for name, cls in sorted(vars(module).items()):
        other = getattr(module, f"{name[:-3]}XLA", None)
        if not (isinstance(cls, type) and name.endswith("CPU") and other):
            continue
        for method in unittest.TestLoader().getTestCaseNames(cls):
            before, _, after = method.rpartition("_cpu")
            twin = f"{before}_xla{after}"
            if before and hasattr(other, twin):
                yield f"{path}::{name[:-3]}::{before}{after}", cls(method), other(twin)


def note_who_asks_for_memory(path, seen):
    """Adds to `seen` which of the functions the file calls by itself."""
    import torch

    def noting(name):
        method = getattr(torch.Tensor, name)

        def noted(self, *args, **kwargs):
            if sys._getframe(1).f_code.co_filename == str(path):
                seen.add(name)
            return method(self, *args, **kwargs)

        return noted

    for name in ASKS_FOR_MEMORY:
        setattr(torch.Tensor, name, noting(name))


def outcome_of(case):
    result = unittest.TestResult()
    unittest.TestSuite([case]).run(result)
    if result.failures or result.errors:
        text = (result.failures + result.errors)[0][1]
        return "failed", text
    if result.unexpectedSuccesses:
        return "failed", "passes, which the test does not expect"
    return ("skipped", result.skipped[0][1]) if result.skipped else ("passed", "")


def last_line(text):
    """The last line that says what was wrong: behind it torch says how to run the test again."""
    text = re.split(
        r"\n\s*To execute this test, run|\nCaused by sample input|\nTraceback of TorchScript", text
    )[0]
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if re.match(r"[\w.]*(Error|Exception|Warning)\b", line)]
    return (errors or lines or [""])[-1][:400]


def run_tests(options):
    """In a process of its own: runs the tests of a file that are not done yet, and says so in lines of JSON."""
    say = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    done = set(json.loads(sys.stdin.read()))
    path = options.folder / options.file
    sys.path[:0] = [str(options.folder)]
    import torch

    import torch_xla  # noqa: F401 - the device

    instantiated_for_both(options.named)
    module = loaded(path, options.named)
    torch.testing._internal.common_utils.TestCase._default_dtype_check_enabled = True
    asked = set()
    note_who_asks_for_memory(path, asked)
    count = 0
    for name, on_cpu, on_xla in pairs(module, options.file):
        chosen = zlib.crc32(name.encode()) % options.share == 0 and options.only in name
        if not chosen or name in done:
            continue
        if count == TESTS_OF_A_PROCESS:
            print(json.dumps({"left": True}), file=say)
            break
        count += 1
        asked.clear()
        for device, case in ("cpu", on_cpu), ("xla", on_xla):
            print(json.dumps({"begins": name, "device": device}), file=say)
            begin = time.monotonic()
            outcome, error = outcome_of(case)
            row = {"test": name, "device": device, "outcome": outcome, "error": last_line(error)}
            row |= {"seconds": round(time.monotonic() - begin, 2), "asks_for_memory": bool(asked)}
            if outcome == "failed" and options.whole_errors:
                row["whole"] = error
            print(json.dumps(row), file=say)
            if outcome != "passed":
                break
    print(json.dumps({"ends": True}), file=say)
    say.flush()
    # Threads and files that a test has left behind do not matter any more.
    os._exit(0)


class File:
    """One file's tests, run by as many processes as it takes."""

    def __init__(self, options, file):
        self.options, self.file = options, file
        self.rows = []
        self.running = None
        self.since = time.monotonic()

    def run(self):
        while self.run_a_process():
            pass
        return self.rows

    def run_a_process(self):
        """Whether there are tests left."""
        done = sorted({row["test"] for row in self.rows})
        env = {**os.environ, "PYTORCH_PRINT_REPRO_ON_FAILURE": "0", "PYTHONWARNINGS": "ignore"}
        env.setdefault("TORCH_TEST_DEVICES", str(pathlib.Path(__file__).with_name("xla_device.py")))
        command = [sys.executable, __file__, *sys.argv[1:], "--file", str(self.file)]
        self.running, self.since, left, ended = None, time.monotonic(), False, False
        with subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=env,
            text=True,
        ) as process:
            tail = collections.deque(maxlen=30)
            threading.Thread(target=lambda: tail.extend(process.stderr), daemon=True).start()
            hung = threading.Event()
            threading.Thread(target=self.watch, args=(process, hung), daemon=True).start()
            process.stdin.write(json.dumps(done))
            process.stdin.close()
            for line in process.stdout:
                message = json.loads(line)
                self.since = time.monotonic()
                if "begins" in message:
                    self.running = message
                elif "test" in message:
                    self.rows.append(message)
                    self.running = None
                left |= "left" in message
                ended |= "ends" in message
        if ended:
            return left
        error = next((line.strip() for line in reversed(tail) if line.strip()), "")
        if self.running is None:
            print(f"{self.file}: cannot be loaded: {error}", file=sys.stderr)
            return False
        outcome = "hung" if hung.is_set() else "crashed"
        row = {"test": self.running["begins"], "device": self.running["device"], "outcome": outcome}
        seconds = round(time.monotonic() - self.since, 2)
        self.rows.append({**row, "error": error, "seconds": seconds, "asks_for_memory": False})
        return True

    def watch(self, process, hung):
        while process.poll() is None:
            if self.running and time.monotonic() - self.since > self.options.seconds:
                hung.set()
                process.kill()
            time.sleep(1)


def report(rows_of_files):
    """The counts of each file, and the failures."""
    print(f"{'':32}{'on xla':>8}" + "".join(f"{o:>9}" for o in OUTCOMES) + "   of memory")
    total = collections.Counter()
    for file, rows in rows_of_files.items():
        counts = collections.Counter()
        for row in rows:
            if row["device"] == "xla":
                counts[("memory, " if row["asks_for_memory"] else "") + row["outcome"]] += 1
        total += counts
        print_counts(file, counts)
    print_counts("all", total)
    for row in (row for rows in rows_of_files.values() for row in rows):
        if row["device"] == "xla" and row["outcome"] not in ("passed", "skipped"):
            memory = " (memory)" if row["asks_for_memory"] else ""
            print(f"{row['outcome']}{memory} {row['test']}: {row['error']}")


def print_counts(file, counts):
    run = sum(counts[o] for o in OUTCOMES if o != "skipped")
    memory = sum(counts[f"memory, {o}"] for o in OUTCOMES)
    print(f"{file!s:32}{run:8}" + "".join(f"{counts[o]:9}" for o in OUTCOMES), end="")
    print(f"   {counts['memory, passed']} of {memory}")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--share", type=int, default=1, metavar="N", help="run one of N tests")
    parser.add_argument(
        "--only", default="", metavar="TEXT", help="run the tests that have this in their name"
    )
    parser.add_argument("--jobs", type=int, default=1, help="how many files run at a time")
    parser.add_argument(
        "--named", default="", metavar="DEVICE", help="the device that the copies were made for"
    )
    parser.add_argument("--seconds", type=float, default=300, help="how long a test may take")
    parser.add_argument(
        "--out", type=pathlib.Path, metavar="FILE", help="gets a line of JSON for each test"
    )
    parser.add_argument("--whole-errors", action="store_true", help="FILE gets the tracebacks, too")
    parser.add_argument("--file", type=pathlib.Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.folder = options.folder.resolve()
    if options.file:
        run_tests(options)
    files = sorted(p.relative_to(options.folder) for p in options.folder.rglob("test_*.py"))
    files = [
        file for file in files if "::" not in options.only or options.only.startswith(str(file))
    ]
    if not files:
        parser.error(f"no files test_*.py in {options.folder}")
    rows = {}
    out = options.out.open("w") if options.out else None
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for file, of_file in zip(
            files, pool.map(lambda file: File(options, file).run(), files), strict=True
        ):
            rows[file] = of_file
            print(
                f"{file}: {len({row['test'] for row in of_file})} tests",
                file=sys.stderr,
                flush=True,
            )
            if out:
                out.writelines(json.dumps(row) + "\n" for row in of_file)
                out.flush()
    report(rows)


if __name__ == "__main__":
    main()
