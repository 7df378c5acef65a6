"""What all Python tests share."""

import pytest


def pytest_sessionfinish(session, exitstatus):
    """`make pytest` asks several folders for what `-k` names, which need not be in each of them."""
    if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and session.config.option.keyword:
        session.exitstatus = pytest.ExitCode.OK
