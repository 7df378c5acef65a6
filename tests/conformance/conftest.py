"""Options for the databases' tests.

--counts FILE   writes each test's outcome, and the operators that it ran on the CPU, as JSON
--share N       runs one of N tests of operators, evenly from each kind of test and type
--programs N    runs N random programs of views and writes
--operator-programs N    runs N random programs of all operators
--first-program N        the seed of the first of these
"""

import collections
import json
import os
import pathlib
import subprocess

import pytest

# The engine checks its programs after each pass.
os.environ.setdefault("TORCH_XLA_VERIFY", "1")
# Programs, unless the other way to run a graph is asked for (`make test` runs a share of the operators so).
os.environ.setdefault("TORCH_XLA_INTERPRET", "never")
# torch reads both when its tests are imported, which is after this. The failing sample is named by the tests themselves.
os.environ.setdefault("PYTORCH_PRINT_REPRO_ON_FAILURE", "0")
os.environ.setdefault("TORCH_TEST_DEVICES", str(pathlib.Path(__file__).with_name("xla_device.py")))


def pytest_addoption(parser):
    parser.addoption("--counts", type=pathlib.Path, help="write each test's outcome as JSON")
    parser.addoption("--programs", type=int, default=10_000, metavar="N", help="random programs")
    parser.addoption(
        "--share", type=int, default=1, metavar="N", help="run one of N tests of operators"
    )
    parser.addoption("--operator-programs", type=int, default=400, metavar="N")
    parser.addoption("--first-program", type=int, default=0, metavar="N")


def pytest_collection_modifyitems(config, items):
    share = config.getoption("--share")
    if share == 1:
        return
    seen = collections.Counter()
    chosen, left = [], []
    for item in items:
        if item.path.stem != "test_operators":
            chosen.append(item)
            continue
        kind = item.function.__qualname__, item.name.rpartition("_")[2]
        # Each kind begins elsewhere, so that it is not always the same entries that are left out.
        begin = sum(map(ord, kind[1])) + len(kind[0])
        (chosen if (seen[kind] + begin) % share == 0 else left).append(item)
        seen[kind] += 1
    config.hook.pytest_deselected(items=left)
    items[:] = chosen


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if report.when == "call":
        from comparison import fallbacks

        report.user_properties.append(("fallbacks", fallbacks()))
        samples = getattr(item.instance, "by_exact_results", 0)
        report.user_properties.append(("by_exact_results", samples))
    return report


class Counts:
    """The outcome of each test, its fallbacks, and in how many samples the device was nearer to exact results."""

    def __init__(self, path):
        self.path = path
        self.tests = {}

    def pytest_runtest_logreport(self, report):
        name = report.nodeid.rpartition("::")[2]
        if report.when == "call" or report.outcome != "passed":
            reason = str(report.longrepr)[-2000:] if report.longrepr else ""
            self.tests[name] = {
                "outcome": report.outcome,
                "seconds": round(report.duration, 2),
                "fallbacks": [],
                **dict(report.user_properties),
                "reason": reason,
            }

    def pytest_sessionfinish(self):
        command = ["git", "log", "-1", "--format=%h of %cs"]
        commit = subprocess.run(command, cwd=pathlib.Path(__file__).parent, capture_output=True)
        counts = {"commit": commit.stdout.decode().strip(), "tests": self.tests}
        self.path.write_text(json.dumps(counts, indent=1, sort_keys=True))


def pytest_configure(config):
    path = config.getoption("--counts")
    if path is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Counts(path))
