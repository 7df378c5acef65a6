"""How the reference's own tests are counted (tests/upstream/run.py)."""

import importlib.util
from pathlib import Path

import pytest

RUNNER = Path(__file__).parents[1] / "upstream" / "run.py"
KINDS = {"text", "counts", "sharding", "torch", "order"}


@pytest.fixture(scope="module")
def suite():
    spec = importlib.util.spec_from_file_location("upstream_suite", RUNNER)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_what_is_not_applicable_names_files_that_run_and_a_reason(suite):
    for group, files in suite.not_applicable().items():
        for file, tests in files.items():
            assert file in suite.GROUPS[group]
            for reason in tests.values():
                assert reason.partition(":")[0] in KINDS


def test_one_share_is_of_all_and_one_leaves_out_what_is_not_applicable(suite):
    found = {
        ("a.py", "x"): ["failed", "failed"],
        ("a.py", "y"): ["failed"],
        ("a.py", "z"): ["passed"] * 3,
    }
    line = suite.summary("core", [("a.py", "x")], found)
    assert line.endswith(
        "3 passed, 3 failed, 0 skipped: 50.0 %; of the failures 2 not applicable: 3 of 4, 75.0 %"
    )


def test_what_passes_is_not_listed_as_not_applicable(suite):
    found = {("a.py", "x"): ["failed", "passed"], ("a.py", "y"): ["failed"]}
    wrong = suite.wrong_entries([("a.py", "x"), ("a.py", "y"), ("a.py", "z")], found)
    assert wrong == [
        "a.py: x is listed as not applicable, but passed",
        "a.py: z is listed as not applicable, but is not there",
    ]
