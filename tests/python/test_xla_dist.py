"""`python -m torch_xla.distributed.xla_dist`, over real ssh servers, and over a stand-in for gcloud."""

import contextlib
import os
import pathlib
import signal
import stat
import subprocess
import sys
import time

import pytest
from conftest import ROOT

from torch_xla._internal import job_secret
from torch_xla.distributed import xla_dist

MODULE = [sys.executable, "-m", "torch_xla.distributed.xla_dist"]
# The same without importing torch, which takes seconds.
FILE = [sys.executable, "-P", str(ROOT / "torch_xla" / "distributed" / "xla_dist.py")]


class Launch:
    """A launch on the hosts of the network."""

    def __init__(self, network) -> None:
        self.network = network

    def start(
        self, *arguments: str, hosts: str = "", program: list[str] = FILE, **options
    ) -> subprocess.Popen:
        return subprocess.Popen(
            [
                *(*program, f"--hosts={hosts or self.network.names}", f"--ssh={self.network.ssh}"),
                *arguments,
            ],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **options,
        )

    def run(self, *arguments: str, **options) -> tuple[int, list[str], str]:
        """The exit status, the sorted lines of the output, and the errors."""
        process = self.start(*arguments, **options)
        try:
            output, errors = process.communicate(timeout=60)
        finally:
            process.kill()
        return process.returncode, sorted(output.splitlines()), errors


@pytest.fixture
def launch(network):
    return Launch(network)


def alive(pattern: str) -> list[str]:
    """The processes whose command line holds the pattern."""
    listing = subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True).stdout
    return [line for line in listing.splitlines() if pattern in line]


def assert_ends(pattern: str) -> None:
    end = time.monotonic() + 15
    while (left := alive(pattern)) and time.monotonic() < end:
        time.sleep(0.1)
    assert not left


def test_the_file_runs_without_torch():
    """Whose import takes longer than all else that the launcher does before its first connection."""
    code = "import runpy, sys; runpy.run_path(sys.argv[1]); assert 'torch' not in sys.modules"
    subprocess.run([*FILE[:2], "-c", code, FILE[2]], check=True)


def test_runs_on_every_host_and_names_its_lines(launch):
    a, b = (host.address for host in launch.network.hosts)
    command = ["ip", "-o", "-4", "addr", "show", "eth0"]
    status, lines, _ = launch.run("--", *command, program=MODULE)
    assert status == 0
    assert len(lines) == 2
    for line, address in zip(lines, (a, b), strict=True):
        assert line.startswith(f"[{address}] ") and f"inet {address}/24" in line


def test_forwards_variables_and_words_as_they_are(launch):
    value = 'it\'s a "test" $HOME; exit 3 \\ `false`\n[second line]'
    script = 'printf "%s|" "$VALUE" "$1" "$PWD" "$PASSED"; echo; echo "to stderr" >&2'
    os.environ["PASSED"] = "from here"
    try:
        status, lines, errors = launch.run(
            *(f"--env=VALUE={value}", "--env", "PASSED", "--workdir=/usr/share", "--"),
            *("sh", "-c", script, "sh", "a 'word'"),
        )
    finally:
        del os.environ["PASSED"]
    assert status == 0
    first, second = value.split("\n")
    for host in launch.network.hosts:
        assert f"[{host.address}] {first}" in lines
        assert f"[{host.address}] {second}|a 'word'|/usr/share|from here|" in lines
        assert f"[{host.address}] to stderr" in errors


def holders(text: str) -> list[str]:
    """What is in the command lines that hold the text."""
    found = []
    for file in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if text.encode() in (line := file.read_bytes()):
                found.append(line.replace(b"\0", b" ").decode())
    return found


def test_variables_are_in_no_command_line(launch, monkeypatch):
    # This program's own command line holds what its user has put there: NAME alone does not.
    monkeypatch.setenv("PASSWORD", secret := f"hidden-{job_secret.new()}")
    script = 'echo "$PASSWORD $TORCH_XLA_JOB_SECRET"; sleep 30'
    process = launch.start("--env=PASSWORD", "--", "sh", "-c", script)
    try:
        lines = [process.stdout.readline().split() for _ in launch.network.hosts]
        # All are given one secret of the job.
        assert [line[1] for line in lines] == [secret, secret]
        assert len(lines[0][2]) == 64 and lines[0][2] == lines[1][2]
        assert len(holders(script)) >= 3
        assert holders(secret) == [] and holders(lines[0][2]) == []
    finally:
        process.terminate()
        process.communicate(timeout=30)


@pytest.mark.parametrize(
    ("here", "given", "told"),
    [
        ({}, {job_secret.FILE_VARIABLE: "/there"}, {job_secret.FILE_VARIABLE: "/there"}),
        ({}, {job_secret.SECRET_VARIABLE: "a"}, {job_secret.SECRET_VARIABLE: "a"}),
        (
            {job_secret.SECRET_VARIABLE: "b"},
            {"A": "c"},
            {"A": "c", job_secret.SECRET_VARIABLE: "b"},
        ),
    ],
)
def test_secrets_of_the_users_own(monkeypatch, here, given, told):
    monkeypatch.delenv(job_secret.SECRET_VARIABLE, raising=False)
    for name, value in here.items():
        monkeypatch.setenv(name, value)
    assert xla_dist._with_secret(given) == told


def test_long_programs_arrive(launch):
    value = "0123456789abcdef" * 6000
    status, lines, _ = launch.run(f"--env=VALUE={value}", "--", "sh", "-c", 'echo "${#VALUE}"')
    assert status == 0
    assert [line.split()[1] for line in lines] == ["96000"] * 2


def test_tells_torchrun_its_place(launch):
    script = "echo $PET_NNODES $PET_NODE_RANK $PET_MASTER_ADDR $PET_MASTER_PORT"
    a, b = (host.address for host in launch.network.hosts)
    _, lines, _ = launch.run("--master-port=1234", "sh", "-c", script)
    assert lines == [f"[{a}] 2 0 {a} 1234", f"[{b}] 2 1 {a} 1234"]


def test_runs_in_a_conda_environment(launch, tmp_path):
    conda = tmp_path / "conda"
    conda.write_text('#!/bin/sh\necho "conda $1 $2 $3 $4"\nshift 4\nexec "$@"\n')
    conda.chmod(stat.S_IRWXU)
    a, b = (host.address for host in launch.network.hosts)
    command = ("--conda-env=torch-xla-nightly", "--", "sh", "-c", "echo in; exit 3")
    status, lines, _ = launch.run(f"--env=CONDA_EXE={conda}", *command, hosts=a)
    assert status == 3
    assert f"[{a}] conda run --no-capture-output -n torch-xla-nightly" in lines
    status, _, errors = launch.run(*command, hosts=b)
    assert status == 127 and "conda is not found" in errors


def test_lines_come_as_they_are_printed(launch):
    process = launch.start("--", "sh", "-c", "echo first; sleep 30")
    try:
        start = time.monotonic()
        assert process.stdout.readline().endswith("] first\n")
        assert time.monotonic() - start < 20
    finally:
        process.terminate()
        process.communicate(timeout=30)


def test_failure_on_one_host_ends_all(launch):
    mark = f"sleep 61{os.getpid()}"
    a, b = (host.address for host in launch.network.hosts)
    script = f"if [ $PET_NODE_RANK = 1 ]; then sleep 1; exit 7; fi; {mark} & {mark}"
    start = time.monotonic()
    status, _, errors = launch.run("--", "sh", "-c", script)
    assert status == 7
    assert f"[{b}] exit status 7" in errors and f"[{a}]" not in errors
    assert time.monotonic() - start < 30
    assert_ends(mark)


def test_a_command_that_ignores_the_request_is_forced(launch):
    mark = f"sleep 62{os.getpid()}"
    code = FILE[-1].join(
        (
            "import runpy, sys; x = runpy.run_path('",
            "'); g = x['run'].__globals__;"
            "g['_STOP'] = g['_STOP'].replace(str(x['STOP_SECONDS']), '2'); sys.exit(x['main']())",
        )
    )
    script = f'trap "" TERM; [ $PET_NODE_RANK = 0 ] && exit 5; while true; do {mark}; done'
    status, _, _ = launch.run("--", "sh", "-c", script, program=[sys.executable, "-c", code])
    assert status == 5
    assert_ends(mark)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_end_of_the_launcher_ends_the_command(launch, number):
    mark = f"sleep 63{os.getpid()}{int(number)}"
    process = launch.start("--", "sh", "-c", f"echo started; {mark}", start_new_session=True)
    for _ in launch.network.hosts:
        assert process.stdout.readline().endswith("] started\n")
    assert alive(mark)
    if number == signal.SIGKILL:
        # With its connections, as when the machine is lost.
        os.killpg(process.pid, number)
    else:
        process.send_signal(number)
    process.communicate(timeout=30)
    assert process.returncode == (-number if number == signal.SIGKILL else 128 + number)
    assert_ends(mark)


def test_lost_launcher_ends_a_command_that_ignores_the_request(launch):
    """At once: nobody waits for what it still has to say."""
    mark = f"sleep 68{os.getpid()}"
    script = f'trap "" TERM; echo started; while true; do {mark}; done'
    process = launch.start("--", "sh", "-c", script)
    for _ in launch.network.hosts:
        assert process.stdout.readline().endswith("] started\n")
    process.kill()
    start = time.monotonic()
    assert_ends(mark)
    assert time.monotonic() - start < 10
    process.communicate(timeout=30)


def test_what_the_command_leaves_behind_ends_with_it(launch):
    mark = f"sleep 64{os.getpid()}"
    status, lines, _ = launch.run("--", "sh", "-c", f"{mark} >/dev/null 2>&1 & echo done")
    assert status == 0 and len(lines) == 2
    assert_ends(mark)


def test_host_that_cannot_be_reached(launch):
    a = launch.network.hosts[0].address
    nobody = a.rpartition(".")[0] + ".77"
    mark = f"sleep 65{os.getpid()}"
    status, _, errors = launch.run("--", *mark.split(), hosts=f"{a},{nobody}")
    assert status == 255
    assert f"[{nobody}] ssh failed" in errors
    assert_ends(mark)


def test_status_255_is_no_failed_connection(launch):
    status, _, errors = launch.run("--", "sh", "-c", "exit 255")
    assert status == 254 and "ssh failed" not in errors


def test_missing_command_and_folder(launch):
    assert launch.run("--", "no-such-command-here")[0] == 127
    assert launch.run("--workdir=/no/such/folder", "--", "true")[0] == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--hosts=a"], "command is missing"),
        (["--", "true"], "either a pod"),
        (["--hosts=a", "--tpu=b", "true"], "either a pod"),
        (["--hosts=a", "--env=1x=2", "true"], "NAME=VALUE"),
        (["--hosts=a", "--env=NOT_THERE_AT_ALL", "true"], "no such variable"),
    ],
)
def test_refuses_wrong_arguments(arguments, message, capsys):
    with pytest.raises(SystemExit) as raised:
        xla_dist.parse_args(arguments)
    assert raised.value.code == 2
    assert message in capsys.readouterr().err


def test_messages_hold_no_values(capsys):
    with pytest.raises(SystemExit):
        xla_dist.parse_args(["--hosts=a", "--env=1x=hidden", "true"])
    assert "hidden" not in capsys.readouterr().err


# --- Pods ---

# Copies a file to three workers, or runs the command for them at once, as gcloud does: one output, one status, and every
# worker is waited for.
GCLOUD = """#!{python}
import os, pathlib, shutil, subprocess, sys
root = pathlib.Path({root!r})
assert sys.argv[1:4] == ["compute", "tpus", "tpu-vm"], sys.argv
what = sys.argv[4]
with open(root / "calls", "a") as calls:
    print([word for word in sys.argv[1:] if "xla_dist-" not in word], file=calls)
if what == "scp":
    pod, _, name = sys.argv[6].partition(":")
    for i in range(3):
        home = root / f"worker{{i}}"
        home.mkdir(exist_ok=True)
        shutil.copy(sys.argv[5], home / name)
    sys.exit(0)
command = sys.argv[-1].removeprefix("--command=")
workers = []
for i in range(3):
    home = root / f"worker{{i}}"
    home.mkdir(exist_ok=True)
    environment = {{**os.environ, "HOME": str(home), "WORKER": f"t1v-n-w-{{i}}", "INDEX": str(i)}}
    environment.pop("XDG_RUNTIME_DIR", None)
    workers.append(subprocess.Popen(["bash", "-c", command], env=environment))
sys.exit(next(filter(None, [worker.wait() for worker in workers]), 0))
"""


@pytest.fixture
def pod(tmp_path, monkeypatch):
    """A folder with the programs that stand for gcloud and its workers' host names."""
    programs = {
        "gcloud": GCLOUD.format(python=sys.executable, root=str(tmp_path)),
        "hostname": "#!/bin/sh\necho $WORKER\n",
    }
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, text in programs.items():
        (folder / name).write_text(text)
        (folder / name).chmod(stat.S_IRWXU)
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)
    return tmp_path


def run_on_pod(*arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [*FILE, "--tpu=mine", *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )


def files_left(pod: pathlib.Path) -> list[pathlib.Path]:
    return [file for i in range(3) for file in (pod / f"worker{i}").iterdir()]


def test_pod_runs_on_all_workers(pod):
    result = run_on_pod(
        *("--zone=z", "--project=p", "--env=A=it's", "--", "sh", "-c", "echo $INDEX $A; echo e >&2")
    )
    assert result.returncode == 0, result.stderr
    assert sorted(result.stdout.splitlines()) == sorted(
        line for i in range(3) for line in (f"[t1v-n-w-{i}] {i} it's", f"[t1v-n-w-{i}] e")
    )
    options = ["--worker=all", "--zone=z", "--project=p"]
    copying, running = (pod / "calls").read_text().splitlines()
    assert copying.startswith("['compute', 'tpus', 'tpu-vm', 'scp', '/")
    assert running == str(["compute", "tpus", "tpu-vm", "ssh", "mine", *options])
    assert not files_left(pod)


def start_on_pod(*arguments: str, **variables: str) -> subprocess.Popen:
    return subprocess.Popen(
        [*FILE, "--tpu=mine", *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT), **variables},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_pod_variables_are_in_no_command_line(pod):
    secret = f"hidden-{job_secret.new()}"
    script = 'echo "$PASSWORD $TORCH_XLA_JOB_SECRET"; sleep 30'
    process = start_on_pod("--env=PASSWORD", "--", "sh", "-c", script, PASSWORD=secret)
    try:
        lines = [process.stdout.readline().split() for _ in range(3)]
        assert [line[1] for line in lines] == [secret] * 3
        assert len({line[2] for line in lines}) == 1 and len(lines[0][2]) == 64
        assert holders(script) and holders(secret) == [] and holders(lines[0][2]) == []
        # Each has removed what it has read.
        assert not [file for file in files_left(pod) if file.name.endswith(".variables")]
    finally:
        process.terminate()
        process.communicate(timeout=60)


def test_pod_command_ends_when_the_launcher_is_killed(pod):
    mark = f"sleep 69{os.getpid()}"
    process = start_on_pod("--", "sh", "-c", f"echo started; {mark}")
    for _ in range(3):
        assert process.stdout.readline().endswith("] started\n")
    process.kill()
    assert_ends(mark)
    process.communicate(timeout=30)


def test_pod_that_cannot_be_copied_to(pod):
    (pod / "bin" / "gcloud").write_text("#!/bin/sh\necho no such pod >&2\nexit 3\n")
    result = run_on_pod("--", "true")
    assert result.returncode == 3
    assert "could not copy the command's variables: no such pod" in result.stderr


def test_pod_that_can_be_copied_to_in_part_keeps_no_variables(pod):
    gcloud = pod / "bin" / "gcloud"
    gcloud.write_text(gcloud.read_text().replace("sys.exit(0)", "sys.exit(4)"))
    assert run_on_pod("--env=PASSWORD=hidden", "--", "true").returncode == 4
    assert not files_left(pod)


def test_pod_failure_of_one_worker_ends_all(pod):
    mark = f"sleep 66{os.getpid()}"
    result = run_on_pod("--", "sh", "-c", f"[ $INDEX = 1 ] && exit 9; {mark} & {mark}")
    assert result.returncode == 9
    assert "[t1v-n-w-1] exit status 9" in result.stderr
    assert "xla_dist-" not in result.stdout
    assert_ends(mark)


def test_pod_worker_that_begins_late_ends_too(pod):
    mark = f"sleep 67{os.getpid()}"
    late = pod / "bin" / "setsid"
    late.write_text('#!/bin/sh\n[ "$INDEX" = 1 ] || sleep 2\nexec /usr/bin/setsid "$@"\n')
    late.chmod(stat.S_IRWXU)
    result = run_on_pod("--", "sh", "-c", f"[ $INDEX = 1 ] && exit 9; {mark}")
    assert result.returncode == 9
    assert_ends(mark)


def test_arguments_that_accelerate_sets():
    """It makes a namespace from the parser, overwrites what has a name of its own, and passes it on."""
    arguments, _ = xla_dist.get_args_parser().parse_known_args(
        ["--tpu", "pod", "--positional", "", "--restart-tpuvm-pod-server"]
    )
    # Its own --tpu is a flag, and its --tpu_name and --tpu_zone are what ours are called.
    for name, value in {"tpu": True, "tpu_name": "pod", "tpu_zone": "z", "env": None}.items():
        if hasattr(arguments, name):
            setattr(arguments, name, value)
    arguments.positional = ["accelerate-launch", "--tpu", "train.py"]
    arguments.env = ["ACCELERATE_IN_TPU_POD=1"]
    assert arguments.tpu_name == "pod" and arguments.tpu_zone == "z"
    assert xla_dist._command_words(arguments) == arguments.positional
    xla_dist._check(arguments)
