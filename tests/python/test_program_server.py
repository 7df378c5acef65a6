"""A program of the tests' server is as one that is started by itself."""

import concurrent.futures
import json
import os
import signal
import subprocess

import pytest

SHOWN = """
import atexit, os, sys, tempfile
atexit.register(print, "the end")
print(__name__, sys.argv, sys.path[0], os.getcwd(), os.environ.get("TORCH_XLA_WORD"), sys.stdin.read())
print(tempfile.gettempdir())
print("torch_xla" in sys.modules, [path for path in sys.path if path.endswith("tests/python")])
print("complaint", file=sys.stderr)
"""
ENDS = {
    "pass": 0,
    "raise SystemExit(3)": 3,
    "1 / 0": 1,
    "import os, signal; os.kill(os.getpid(), signal.SIGTERM)": -signal.SIGTERM,
}


@pytest.fixture(autouse=True)
def environment_of_the_server(program_server, monkeypatch):
    """It serves programs of its own environment alone, which other tests of this process may have changed."""
    for name in os.environ.keys() - program_server.environment.keys():
        monkeypatch.delenv(name)
    for name, value in program_server.environment.items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize(
    "arguments", [("-c", SHOWN, "one", "two"), ("shown.py", "one"), ("-m", "shown", "one")]
)
def test_it_sees_what_another_would_see(program, arguments):
    (program.folder / "shown.py").write_text(SHOWN)
    variables = {"TORCH_XLA_WORD": "word", "TMPDIR": str(program.folder)}
    served = program.run(*arguments, **variables)
    anew = program.run(*arguments, anew=True, **variables)
    assert served.stdout.endswith("the end\n") and served.stdout == anew.stdout
    assert served.stderr == anew.stderr == "complaint\n"


@pytest.mark.parametrize("code", ENDS)
def test_it_ends_as_another_would_end(program, code):
    served, anew = (program.run_code(code, check=False, anew=anew) for anew in (False, True))
    assert served.returncode == anew.returncode == ENDS[code]
    assert served.stderr.splitlines()[-1:] == anew.stderr.splitlines()[-1:]


ANSWERS = """
import signal, sys
print("begun", flush=True)
print(sys.stdin.readline(), signal.getsignal(signal.SIGHUP) == signal.SIG_DFL)
print("complaint", file=sys.stderr)
sys.exit(3)
"""


def test_two_run_beside_the_test(program):
    pipes = ("stdin", "stdout", "stderr")
    first, second = (program.start("-c", ANSWERS, pipes=pipes) for _ in range(2))
    assert first.stdout.readline() == second.stdout.readline() == "begun\n"
    assert first.poll() is second.poll() is None
    second.kill()
    assert second.communicate() == ("", "") and second.returncode == -signal.SIGKILL
    assert first.communicate("word\n") == ("word\n True\n", "complaint\n")
    assert first.wait() == first.poll() == 3


def test_one_has_a_session_of_its_own(program):
    code = "import os; print(os.getsid(0) == os.getpid())"
    for new in (False, True):
        with program.start("-c", code, new_session=new) as started:
            assert started.stdout.read() == f"{new}\n"


def test_one_that_is_awaited_too_long_runs_on(program):
    started = program.start("-c", "import time; print('begun', flush=True); time.sleep(60)")
    assert started.stdout.readline() == "begun\n"
    for wait in (started.communicate, started.wait):
        with pytest.raises(subprocess.TimeoutExpired):
            wait(timeout=0)
    assert started.poll() is None
    started.kill()
    assert started.wait() == -signal.SIGKILL


HOLDS = "import os, time; os.fork() == 0 and time.sleep(3)"


def test_who_holds_its_pipes_is_awaited_no_longer_than_told(program):
    started = program.start("-c", HOLDS)
    with pytest.raises(subprocess.TimeoutExpired):
        started.communicate(timeout=0.5)
    assert started.wait(timeout=10) == 0


def test_several_are_asked_for_at_once(program):
    with concurrent.futures.ThreadPoolExecutor() as threads:
        printed = threads.map(lambda i: program.run_code(f"print({i})").stdout, range(6))
    assert list(printed) == [f"{i}\n" for i in range(6)]


def test_an_answer_that_nobody_waited_for_is_nobody_elses(program, program_server):
    with program.start("-c", "import time; time.sleep(0.5)") as started:
        program_server._channel.send(json.dumps([0, "end", started.pid]).encode())
        assert program.run_code("print('next')").stdout == "next\n"


def test_torch_is_loaded_for_it(program):
    code = "import sys; print('torch' in sys.modules)"
    assert program.run_code(code).stdout == "True\n"
    assert program.run_code(code, OMP_NUM_THREADS="3").stdout == "False\n"  # which torch reads


def test_one_that_takes_too_long_is_ended_and_the_next_one_runs(program):
    with pytest.raises(subprocess.TimeoutExpired) as raised:
        program.run_code("import time; print('begun', flush=True); time.sleep(60)", timeout=1)
    assert raised.value.stdout == "begun\n"
    assert program.run_code("print('next')").stdout == "next\n"
