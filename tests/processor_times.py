"""`pytest --processor-times N`: where a run's processor time went, which other work on the machine does not change."""

import collections
import os

import pytest

# Of processes that ran for this one's tests but that another awaited.
of_others = 0.0


def _seconds() -> float:
    """Of this process and of those that it started and awaited."""
    return sum(os.times()[:4]) + of_others


class Plugin:
    """Measures each phase of each test, in xdist's workers too, and lists tests and files at the end."""

    def __init__(self, shown: int) -> None:
        self._shown = shown
        self._since = _seconds()
        self._tests = collections.Counter()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self):
        report = yield
        now = _seconds()
        # A worker's reports come to the main process with their attributes.
        report.processor_seconds, self._since = now - self._since, now
        return report

    def pytest_runtest_logreport(self, report):
        # Not of a worker that has died.
        self._tests[report.nodeid] += getattr(report, "processor_seconds", 0)

    def pytest_terminal_summary(self, terminalreporter):
        files = collections.Counter()
        for name, seconds in self._tests.items():
            files[name.partition("::")[0]] += seconds
        for title, counter in (("tests", self._tests), ("files", files)):
            terminalreporter.section(f"processor seconds of {title}, {counter.total():.0f} in all")
            for name, seconds in counter.most_common(self._shown):
                terminalreporter.write_line(f"{seconds:8.2f}  {name}")
