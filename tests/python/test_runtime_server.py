"""The runtime server and its client: `PJRT_DEVICE=REMOTE`, another framework, and what happens when either side dies."""

import contextlib
import os
import pathlib
import re
import select
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time

import pytest
from conftest import ROOT, Program, engine_environment

from torch_xla import runtime_server
from torch_xla._binding import library_directory
from torch_xla.experimental import plugins
from torch_xla.runtime_server import REMOTE_PLUGIN

LIBRARY = library_directory() / REMOTE_PLUGIN
pytestmark = pytest.mark.skipif(
    not LIBRARY.exists(), reason="built without the runtime server (TORCH_XLA_REMOTE=OFF)"
)

HERE = pathlib.Path(__file__).parent
KEYS = HERE.parent / "remote"


@pytest.fixture(scope="module", autouse=True)
def own_folder():
    """As a user's own, so that what the user has is not touched."""
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        patch.setenv("TORCH_XLA_RUNTIME_DIR", folder)
        yield pathlib.Path(folder)


class Server:
    """A server in a process of its own, on a port that it finds."""

    def __init__(self, *arguments: str, port: int = 0, **variables: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, runtime_server.__file__, "--port", str(port), *arguments],
            env={**os.environ, **variables},
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        readable, _, _ = select.select([self.process.stdout], [], [], 60)
        said = self.process.stdout.readline() if readable else ""
        match = re.search(r":(\d+)$", said.strip())
        assert match, f"the server said {said!r}"
        self.port = int(match[1])
        self.address = f"localhost:{self.port}"

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(timeout=30)

    def stop(self) -> int:
        self.process.terminate()
        return self.process.wait(timeout=30)

    def environment(self) -> dict[str, str]:
        return {"PJRT_DEVICE": "REMOTE", "PJRT_REMOTE_ADDRESS": self.address}

    def kilobytes(self) -> int:
        """The shared memory and the memory of its own that it has at present."""
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status)[1])

    def descriptors(self) -> int:
        return len(list(pathlib.Path(f"/proc/{self.process.pid}/fd").iterdir()))

    def settled_descriptors(self) -> int:
        """When the connections of clients that have ended are closed: they have been as many for a second."""
        known, since = self.descriptors(), time.monotonic()
        while time.monotonic() < since + 1:
            time.sleep(0.05)
            if (now := self.descriptors()) != known:
                known, since = now, time.monotonic()
        return known


@pytest.fixture(scope="module")
def shared_server():
    server = Server()
    yield server
    assert server.stop() == 0


@pytest.fixture
def server():
    """One that a test may kill."""
    server = Server()
    yield server
    server.kill()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        return probe.getsockname()[1]


SUM = """
import torch, torch_xla
print((torch.ones(3, device="xla") + torch.arange(3.0, device="xla")).tolist(), torch_xla.real_devices())
"""


def test_sum(program: Program, shared_server: Server) -> None:
    result = program.run_code(SUM, **shared_server.environment())
    assert result.stdout.strip() == "[1.0, 2.0, 3.0] ['REMOTE:0']"


def test_any_plugin(program: Program) -> None:
    """XLA:CPU behind the server."""
    library = engine_environment("xla_cpu")["PJRT_LIBRARY_PATH"]
    server = Server("--plugin", library, "--option", "cpu_device_count=2")
    result = program.run_code(SUM, **server.environment())
    assert result.stdout.strip() == "[1.0, 2.0, 3.0] ['REMOTE:0', 'REMOTE:1']"
    assert server.stop() == 0


NO_MEMORY_TO_SHARE = """
import torch, torch_xla
from torch_xla.utils import dlpack
for share, device in (dlpack.to_dlpack, "xla"), (torch_xla._XLAC._share_memory, "cpu"):
    try:
        share(torch.ones(3, device=device))
    except RuntimeError as error:
        print(type(error).__name__)
"""


def test_addresses_of_the_server_are_not_shared(program: Program, shared_server: Server) -> None:
    result = program.run_code(NO_MEMORY_TO_SHARE, **shared_server.environment())
    assert result.stdout.split() == ["RuntimeError", "NotImplementedError"]


TRAINING = """
import hashlib, torch, torch_xla
from torch import nn
torch.manual_seed(0)
model = nn.Sequential(nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 26 * 26, 10)).to("xla")
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for _ in range(5):
    x, y = torch.randn(16, 1, 28, 28), torch.randint(10, (16,))
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x.to("xla")), y.to("xla"))
    loss.backward()
    optimizer.step()
    torch_xla.sync()
    print(loss.item())
for parameter in model.parameters():
    print(hashlib.sha256(parameter.detach().cpu().numpy().tobytes()).hexdigest())
"""


def test_training_is_bit_for_bit_the_engines(program: Program, shared_server: Server) -> None:
    # Interpreted graphs are torch's kernels', and none are on a server.
    never = {"TORCH_XLA_INTERPRET": "never"}
    remote = program.run_code(TRAINING, **shared_server.environment(), **never).stdout
    assert remote == program.run_code(TRAINING, PJRT_DEVICE="CPU", **never).stdout


PROFILED = """
import torch, torch_xla
import torch_xla.debug.profiler as xp
from torch_xla.debug import trace_events
x = torch.ones(64, 64).to("xla")
trace_events.start()
for _ in range(3):
    with xp.Trace("step"):
        y = (x @ x).relu()
        torch_xla.sync(wait=True, reset_scope=False)
space = trace_events.parse(trace_events.stop())
assert not space.warnings and not space.errors, space
(device,) = (plane for plane in space.planes if plane.is_device)
(runs,) = (line.events for line in device.lines if line.name == "XLA Modules")
steps = list(space.events("step"))
assert len(runs) == len(steps) == 3
for run, step in zip(runs, steps):
    assert step.start_ps <= run.start_ps and run.end_ps <= step.end_ps, (run, step)
"""


def test_profile_holds_what_the_server_ran(program: Program, shared_server: Server) -> None:
    """On the client's time: each program runs within the step that waits for it."""
    program.run_code(PROFILED, **shared_server.environment())


def test_server_is_started_by_the_old_name(program: Program) -> None:
    """As users of PyTorch/XLA 1.x chose it: nothing listens there, and the library starts the server."""
    port = free_port()
    config = {"XRT_TPU_CONFIG": f"localservice;0;localhost:{port}", "PJRT_DEVICE": ""}
    for _ in range(2):  # the second program uses the first one's
        result = program.run_code(SUM, **config)
        assert result.stdout.strip() == "[1.0, 2.0, 3.0] ['REMOTE:0']"
    (server,) = started_servers(port)
    # Nobody asked for the token, and nobody else has it.
    token = runtime_server.own_token_file()
    assert stat.S_IMODE(token.stat().st_mode) == 0o600
    assert stat.S_IMODE(token.parent.stat().st_mode) == 0o700
    refused = program.run_code(
        SUM, check=False, **config, TORCH_XLA_RUNTIME_DIR=str(program.folder)
    )
    assert "is no runtime server of this user's" in refused.stderr
    with contextlib.suppress(ProcessLookupError):  # it ends by itself, too
        os.kill(server, signal.SIGTERM)


def tcp_listeners(process: int) -> int:
    """How many TCP ports a process listens on."""
    listening = set()
    for table in "tcp", "tcp6":
        lines = pathlib.Path(f"/proc/net/{table}").read_text().splitlines()[1:]
        listening |= {line.split()[9] for line in lines if line.split()[3] == "0A"}
    count = 0
    for link in pathlib.Path(f"/proc/{process}/fd").iterdir():
        match = re.fullmatch(r"socket:\[(\d+)\]", os.readlink(link))
        count += match is not None and match[1] in listening
    return count


def test_server_that_starts_by_itself_is_the_users_own(program: Program, own_folder) -> None:
    """At a socket that nobody else reaches, with nothing to choose; one that was killed is replaced."""
    variables = {"PJRT_DEVICE": "REMOTE", "PJRT_REMOTE_ADDRESS": ""}
    path = str(own_folder / "server.sock")
    for _ in range(2):
        clients = [program.start("-c", SUM, **variables) for _ in range(2)]
        for client in clients:  # the quicker one starts it, or both use the one before's
            assert client.communicate(timeout=120)[0].strip() == "[1.0, 2.0, 3.0] ['REMOTE:0']"
        (server,) = started_servers(path)
        assert tcp_listeners(server) == 0
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
        with contextlib.suppress(ProcessLookupError):
            os.kill(server, signal.SIGKILL)
        while started_servers(path):
            time.sleep(0.01)


FOUND_AND_LOST = """
import time, torch, torch_xla
from torch_xla._internal import remote
found, ensure = [], remote.ensure_server

def found_for_the_last_time(address):
    ensure(address)
    found.append(address)
    if len(found) == 1:
        listens = remote._listens_at_socket if address.startswith("unix:") else remote._listens_at_port
        where = [address[5:]] if address.startswith("unix:") else ["localhost", int(address.split(":")[1])]
        while listens(*where):
            time.sleep(2)  # looking keeps no server up
        remote.IDLE_SECONDS = 30

remote.IDLE_SECONDS = 5
remote.ensure_server = found_for_the_last_time
print((torch.ones(3, device="xla") + torch.arange(3.0, device="xla")).tolist(), len(found))
"""


@pytest.mark.parametrize("place", ["socket", pytest.param("port", marks=pytest.mark.exhaustive)])
def test_server_that_ends_between_being_found_and_used_is_replaced(program, place) -> None:
    """From idleness, which its next client could not foresee."""
    with tempfile.TemporaryDirectory() as folder:
        port = free_port()
        address = f"localhost:{port}" if place == "port" else f"unix:{folder}/server.sock"
        result = program.run_code(
            FOUND_AND_LOST,
            PJRT_DEVICE="REMOTE",
            PJRT_REMOTE_ADDRESS=address,
            TORCH_XLA_RUNTIME_DIR=folder,
        )
        assert result.stdout.strip() == "[1.0, 2.0, 3.0] 2"
        for server in started_servers(port if place == "port" else f"{folder}/server.sock"):
            os.kill(server, signal.SIGTERM)


ASKED = """
import torch, torch_xla
from torch_xla.experimental import plugins
asked, find = [], plugins.RemotePlugin.library_path

def counted(plugin):
    asked.append(plugin)
    return find(plugin)

plugins.RemotePlugin.library_path = counted
try:
    torch.ones(3, device="xla")
except RuntimeError as error:
    print(len(asked), "does not answer" in str(error))
"""


def test_server_that_is_not_started_here_is_looked_for_once(program: Program) -> None:
    """Asking again brings no other."""
    variables = {
        "PJRT_DEVICE": "REMOTE",
        "PJRT_REMOTE_ADDRESS": f"localhost:{free_port()}",
        "PJRT_REMOTE_CERTIFICATE": str(KEYS / "localhost.pem"),
    }
    assert program.run_code(ASKED, **variables).stdout.strip() == "1 True"


def test_server_at_a_socket_in_anybodys_folder_is_refused(program: Program) -> None:
    program.folder.chmod(0o755)
    path = program.folder / "server.sock"
    result = program.run(runtime_server.__file__, "--socket", str(path), check=False)
    assert result.returncode == 1 and "chmod 700" in result.stderr
    assert not path.exists()


def test_another_users_server_is_refused(program: Program) -> None:
    """It knows another token; the client says so, and sends nothing."""
    with tempfile.TemporaryDirectory() as folder:
        server = Server(TORCH_XLA_RUNTIME_DIR=folder)
        refused = program.run_code(SUM, check=False, **server.environment())
        assert "RuntimeError" in refused.stderr, refused.stderr
        assert "is no runtime server of this user's" in refused.stderr
        # Who is given the token may use it.
        token = {"PJRT_REMOTE_TOKEN_FILE": str(pathlib.Path(folder) / "token")}
        assert "REMOTE:0" in program.run_code(SUM, **token, **server.environment()).stdout
        os.chmod(token["PJRT_REMOTE_TOKEN_FILE"], 0o644)
        refused = program.run_code(SUM, check=False, **token, **server.environment())
        assert "chmod 600" in refused.stderr
        assert server.stop() == 0


FORKED = """
import os, torch, torch_xla
x = torch.ones(3, device="xla")
held = [x + i for i in range(300)]
print((x + 1).tolist(), flush=True)
child = os.fork()
if child == 0:
    held.clear()
    try:
        (x + 2).tolist()
    except RuntimeError as error:
        os._exit(7 if "fork" in str(error) else 8)
    os._exit(9)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), (x + 3).tolist())
print(sum(held).tolist())
"""


@pytest.mark.parametrize("shared_memory", ["1", pytest.param("0", marks=pytest.mark.exhaustive)])
def test_forked_client(program: Program, shared_server: Server, shared_memory: str) -> None:
    """The child is told that it has no device, and gives nothing back of what its parent holds,
    whose session goes on."""
    result = program.run_code(
        FORKED, TORCH_XLA_SHARED_MEMORY=shared_memory, **shared_server.environment()
    )
    assert result.stdout.splitlines() == [
        "[2.0, 2.0, 2.0]",
        "7 [4.0, 4.0, 4.0]",
        "[45150.0, 45150.0, 45150.0]",
    ]


# How long a client is stopped where that must do no harm; `make test-failures` stops it for more than five minutes.
STOP_SECONDS = float(os.environ.get("TORCH_XLA_TEST_STOP_SECONDS", "3"))
STOPPED = """
import os, sys, torch, torch_xla
x = torch.ones(3, device="xla")
print((x + 1).tolist(), flush=True)
sys.stdin.readline()
print((x + 2).tolist())
"""


def run_stopped(program: Program, seconds: float, **variables: str) -> tuple[str, str]:
    """What a client says that is stopped between two steps."""
    client = program.start("-c", STOPPED, pipes=("stdin", "stdout", "stderr"), **variables)
    assert client.stdout is not None and client.stdout.readline() == "[2.0, 2.0, 2.0]\n"
    client.send_signal(signal.SIGSTOP)
    time.sleep(seconds)
    client.send_signal(signal.SIGCONT)
    return client.communicate("\n", timeout=60)


@pytest.mark.parametrize("shared_memory", [pytest.param("1", marks=pytest.mark.exhaustive), "0"])
def test_stopped_client_keeps_its_session(program: Program, shared_memory: str) -> None:
    """On this machine for ever: the kernel tells when a client has ended, and nothing else does."""
    server = Server("--lost-after", "0.5")
    out, errors = run_stopped(
        program, STOP_SECONDS, TORCH_XLA_SHARED_MEMORY=shared_memory, **server.environment()
    )
    assert out == "[3.0, 3.0, 3.0]\n", errors
    assert server.stop() == 0


def tls_server(*words: str) -> tuple[Server, dict[str, str]]:
    """With a certificate and a token, and the variables of its clients."""
    certificate = str(KEYS / "localhost.pem")
    token = runtime_server.own_token_file()
    server = Server(
        "--certificate", certificate, "--key", str(KEYS / "localhost.key"),
        "--token-file", str(token), *words,
    )  # fmt: skip
    return server, {
        **server.environment(),
        "PJRT_REMOTE_CERTIFICATE": certificate,
        "PJRT_REMOTE_TOKEN_FILE": str(token),
    }


def test_stopped_client_over_tls(program: Program) -> None:
    """For minutes unless something else was chosen."""
    server, variables = tls_server()
    out, errors = run_stopped(program, STOP_SECONDS, **variables)
    assert out == "[3.0, 3.0, 3.0]\n", errors
    assert server.stop() == 0
    assert runtime_server.LOST_AFTER_SECONDS > 300


def test_stopped_client_that_is_given_up(program: Program) -> None:
    """After as long as was chosen; then the error says by what."""
    server, variables = tls_server("--lost-after", "2")
    variables["PJRT_REMOTE_LOST_AFTER"] = "20"
    out, errors = run_stopped(program, 0.5, **variables)
    assert out == "[3.0, 3.0, 3.0]\n", errors
    out, errors = run_stopped(program, 6, **variables)
    assert out == "" and "--lost-after" in errors, errors
    assert "--lost-after" in program.run(runtime_server.__file__, "--help").stdout
    assert server.stop() == 0


def started_servers(place: int | str) -> list[int]:
    """The processes that serve at the port or the socket."""
    found = []
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            arguments = (process / "cmdline").read_text().split("\0")
        except OSError:  # it has ended
            continue
        if str(place) in arguments and any("runtime_server" in part for part in arguments):
            found.append(int(process.name))
    return found


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("PJRT_REMOTE_ADDRESS", "localhost", "must be HOST:PORT"),
        ("PJRT_REMOTE_ADDRESS", "192.0.2.1:x", "must be HOST:PORT"),
        ("XRT_TPU_CONFIG", "localservice", "must be NAME;ORDINAL;HOST:PORT"),
        ("XRT_TPU_CONFIG", "a;0;h:1|b;0;h:2", "names 2 servers"),
    ],
)
def test_wrong_addresses(monkeypatch, variable: str, value: str, message: str) -> None:
    monkeypatch.delenv("PJRT_REMOTE_ADDRESS", raising=False)
    monkeypatch.setenv(variable, value)
    with pytest.raises(RuntimeError, match=message):
        plugins.RemotePlugin().library_path()


LARGE = """
import torch, torch_xla
for bytes_ in 60_000, 70_000, 5_000_000, 100_000_001:
    x = torch.arange(bytes_, dtype=torch.uint8)
    y = x.to("xla")
    assert torch.equal(y.cpu(), x)
    assert torch.equal((y.view(-1)[1:] + 1).cpu(), x[1:] + 1)
print("same")
"""


def test_large_arrays(program: Program, shared_server: Server) -> None:
    before = set(os.listdir("/dev/shm"))
    assert program.run_code(LARGE, **shared_server.environment()).stdout == "same\n"
    assert set(os.listdir("/dev/shm")) - before == set()


def test_tls_a_token_and_no_shared_memory(program: Program) -> None:
    """As from another host: large arrays go in pieces."""
    token = program.folder / "token"
    token.write_text("secret of 24 bytes, more\n")
    token.chmod(0o600)
    certificate = str(KEYS / "localhost.pem")
    files = ["--certificate", certificate, "--key", str(KEYS / "localhost.key")]
    server = Server(*files, "--token-file", str(token))
    variables = {
        **server.environment(),
        "PJRT_REMOTE_CERTIFICATE": certificate,
        "PJRT_REMOTE_TOKEN_FILE": str(token),
        "TORCH_XLA_SHARED_MEMORY": "0",
    }
    assert program.run_code(LARGE, **variables).stdout == "same\n"
    token.write_text("another of as many bytes")
    refused = program.run_code(SUM, check=False, **variables)
    assert "RuntimeError" in refused.stderr and "PJRT_REMOTE_TOKEN_FILE" in refused.stderr
    del variables["PJRT_REMOTE_CERTIFICATE"]
    assert "PJRT_REMOTE_CERTIFICATE" in program.run_code(SUM, check=False, **variables).stderr
    assert server.stop() == 0


def test_other_addresses_need_tls_and_a_token(program: Program) -> None:
    result = program.run(runtime_server.__file__, "--host", "0.0.0.0", "--port", "0", check=False)
    assert result.returncode == 1
    assert "needs a certificate, its key and a token" in result.stderr


def test_address_in_use(program: Program, shared_server: Server) -> None:
    port = str(shared_server.port)
    result = program.run(runtime_server.__file__, "--port", port, check=False)
    assert result.returncode == 1
    assert "cannot listen" in result.stderr


HOLDING = """
import time, torch, torch_xla
x = torch.rand(10_000_000, device="xla")
y = torch.rand(10_000_000).to("xla")
torch_xla.sync(wait=True)
print("holds", flush=True)
time.sleep(600)
"""


def test_client_that_is_killed_frees_its_memory(program: Program, server: Server) -> None:
    program.run_code(SUM, **server.environment())
    before, descriptors = server.kilobytes(), server.settled_descriptors()
    for _ in range(2):
        client = program.start("-c", HOLDING, **server.environment())
        assert client.stdout is not None and client.stdout.readline() == "holds\n"
        assert server.kilobytes() > before + 60_000
        client.kill()
        client.communicate()
        deadline = time.monotonic() + 30
        # The engine keeps some pages for what comes next.
        while server.descriptors() > descriptors and time.monotonic() < deadline:
            time.sleep(0.05)
        assert server.descriptors() <= descriptors
    assert used_bytes(program, server) < 1_000_000


SURVIVED = """
import os, sys, time, torch, torch_xla
x = torch.rand(1000, device="xla")
torch_xla.sync(wait=True)
if os.fork() == 0:
    for stream in (0, 1, 2):
        os.close(stream)
    time.sleep(600)
print("holds", flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("way", ["tls", pytest.param("tcp", marks=pytest.mark.exhaustive)])
def test_client_that_is_killed_before_its_children(program: Program, way: str) -> None:
    """The server sees its end although a child, as a data loader's worker is one, lives on."""
    certificate = str(KEYS / "localhost.pem")
    files = ("--certificate", certificate, "--key", str(KEYS / "localhost.key"))
    token = str(runtime_server.own_token_file())
    server = Server(*((*files, "--token-file", token) if way == "tls" else ()))
    variables = server.environment()
    if way == "tls":
        variables |= {"PJRT_REMOTE_CERTIFICATE": certificate, "PJRT_REMOTE_TOKEN_FILE": token}
    program.run_code(SUM, **variables)
    descriptors = server.settled_descriptors()
    client = program.start("-c", SURVIVED, new_session=True, **variables)
    try:
        assert client.stdout is not None and client.stdout.readline() == "holds\n"
        assert server.descriptors() > descriptors
        client.kill()
        client.wait()
        deadline = time.monotonic() + 10
        while server.descriptors() > descriptors and time.monotonic() < deadline:
            time.sleep(0.05)
        os.killpg(client.pid, 0)  # the child is there
        assert server.descriptors() <= descriptors
    finally:
        os.killpg(client.pid, signal.SIGKILL)
        client.stdout.close()
    assert server.stop() == 0


def used_bytes(program: Program, server: Server) -> int:
    """Bytes of the server's device that are in use."""
    code = "import torch_xla.core.xla_model as xm; print(xm.get_memory_info('xla:0')['bytes_used'])"
    return int(program.run_code(code, **server.environment()).stdout)


STEPS = """
import torch, torch_xla
x = torch.zeros(1000, device="xla")
print("runs", flush=True)
while True:
    x += 1
    torch_xla.sync()
    x.cpu()
"""


def test_server_that_dies_is_an_error(program: Program, server: Server) -> None:
    client = program.start("-c", STEPS, pipes=("stdout", "stderr"), **server.environment())
    assert client.stdout is not None and client.stdout.readline() == "runs\n"
    time.sleep(0.2)
    server.kill()
    _, errors = client.communicate(timeout=60)
    assert client.returncode == 1, errors
    assert re.search(
        rf"RuntimeError: .*the runtime server at '{server.address}' is gone.*start it again.*"
        rf"--port {server.port}.*last checkpoint",
        errors,
    ), errors


def test_training_resumes_after_the_server_died(program: Program, server: Server) -> None:
    """The example that goes on after it was killed goes on after its server was, too, with the same result."""
    example = str(ROOT / "examples/resume.py")
    steps = ["--steps", "600"]
    whole = program.run(example, *steps, "--folder", "whole", PJRT_DEVICE="CPU").stdout
    client = program.start(
        *(example, *steps, "--folder", "cut"), pipes=("stdout", "stderr"), **server.environment()
    )
    while not (program.folder / "cut/checkpoint.pt").exists():
        assert client.poll() is None
        time.sleep(0.001)
    server.kill()
    _, errors = client.communicate(timeout=60)
    assert client.returncode != 0 and "is gone" in errors, errors
    again = Server(port=server.port)
    resumed = program.run(example, *steps, "--folder", "cut", **again.environment()).stdout
    assert resumed.splitlines()[-1] == whole.splitlines()[-1]
    assert again.stop() == 0


def test_two_clients_at_a_time(program: Program, shared_server: Server) -> None:
    code = TRAINING.replace("range(5)", "range(15)")
    clients = [program.start("-c", code, **shared_server.environment()) for _ in range(2)]
    first, second = (client.communicate(timeout=120)[0] for client in clients)
    assert first == second and len(first.splitlines()) == 21


JAX = """
import jax, jax.numpy as jnp
assert [device.platform for device in jax.devices()] == ["cpu"], jax.devices()
print(jax.jit(lambda x: jnp.sin(x) * 2 + 1)(jnp.arange(3.0)))
def loss(p, x, y):
    return ((jnp.tanh(x @ p["w1"] + p["b1"]) @ p["w2"] - y) ** 2).mean()
key = jax.random.PRNGKey(0)
p = {"w1": jax.random.normal(key, (8, 16)), "b1": jnp.zeros(16), "w2": jax.random.normal(key, (16, 1))}
x = jax.random.normal(key, (32, 8))
y = x.sum(1, keepdims=True)
def step(p, x, y):
    return jax.tree.map(lambda a, g: a - 0.05 * g, p, jax.grad(loss)(p, x, y))
step = jax.jit(step, donate_argnums=0)
first = loss(p, x, y)
for _ in range(100):
    p = step(p, x, y)
assert loss(p, x, y) < first / 10, (first, loss(p, x, y))
"""


def test_jax(program: Program, shared_server: Server) -> None:
    """Another framework uses the same library."""
    result = program.run_code(
        JAX,
        PJRT_REMOTE_ADDRESS=shared_server.address,
        PJRT_NAMES_AND_LIBRARY_PATHS=f"remote:{LIBRARY}",
        JAX_PLATFORMS="remote",
    )
    assert result.stdout.startswith("[1. ")


def test_jax_says_that_no_server_answers(program: Program) -> None:
    port = free_port()
    result = program.run_code(
        "import jax; jax.devices()",
        check=False,
        PJRT_REMOTE_ADDRESS=f"localhost:{port}",
        PJRT_NAMES_AND_LIBRARY_PATHS=f"remote:{LIBRARY}",
        JAX_PLATFORMS="remote",
    )
    assert f"python -m torch_xla.runtime_server --port {port}" in result.stderr


def test_module_runs(program: Program) -> None:
    """`python -m` and a plugin's name, which take the package."""
    result = program.run(
        "-m", "torch_xla.runtime_server", "--port", "0", "--plugin", "CPU", "--exit-when-idle", "0"
    )
    assert result.stdout.startswith("Serving CPU at localhost:")
    unknown = program.run("-m", "torch_xla.runtime_server", "--plugin", "NONE", check=False)
    assert "is neither a library nor a plugin" in unknown.stderr
