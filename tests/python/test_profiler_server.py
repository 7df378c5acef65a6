"""The profiler's server and client, and the files that profiles become."""

import contextlib
import gzip
import json
import pathlib
import socket
import subprocess
import sys
import threading
import time
from concurrent import futures

import grpc
import pytest
import torch

import torch_xla
import torch_xla.debug.profiler as xp
from torch_xla._internal import profiler_messages as messages
from torch_xla._internal import profiler_server, profiler_token
from torch_xla.debug import trace_events

# What is counted, and shown, are programs.
pytestmark = pytest.mark.usefixtures("module_of_programs")


@pytest.fixture(scope="module", autouse=True)
def own_folder(tmp_path_factory):
    """As a user's own, so that what the user has is not touched."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TORCH_XLA_RUNTIME_DIR", str(tmp_path_factory.mktemp("own")))
        yield


@pytest.fixture(scope="module")
def logdir(tmp_path_factory):
    return tmp_path_factory.mktemp("logs")


@pytest.fixture(scope="module")
def server(logdir):
    """One that answers everybody, as viewers want it."""
    server = xp.start_server(0, logdir=str(logdir), without_token=True)
    yield server
    server.stop()


@pytest.fixture(scope="module")
def guarded():
    """One as a program starts it that says nothing more."""
    server = xp.start_server(0)
    yield server
    server.stop()


@pytest.fixture(scope="module")
def weight():
    weight = torch.ones(32, 32, device="xla")
    step(weight, 0)
    return weight


def step(weight, number):
    with xp.StepTrace("train", step_num=number):
        weight.mul_(0.5).add_(weight @ weight)


def train_while(thread, weight):
    """Steps until the thread has ended; how many."""
    number = 0
    while thread.is_alive():
        step(weight, number)
        number += 1
        thread.join(0.002)
    torch_xla.sync(wait=True)
    return number


def call(server, method, request=b"", timeout=20):
    with grpc.insecure_channel(f"localhost:{server.port}") as channel:
        return channel.unary_unary(f"/tensorflow.ProfilerService/{method}")(
            request.SerializeToString() if request else b"", timeout=timeout
        )


def check_trace_events(trace):
    """What the trace-event format says of an object with complete events."""
    assert trace["displayTimeUnit"] in ("ms", "ns")
    lines = {}
    for event in trace["traceEvents"]:
        assert isinstance(event["name"], str)
        assert isinstance(event["pid"], int) and isinstance(event["tid"], int)
        assert isinstance(event["args"], dict)
        if event["ph"] == "M":
            assert set(event["args"]) in ({"name"}, {"sort_index"})
            continue
        assert event["ph"] == "X"
        assert event["ts"] >= 0 and event["dur"] >= 0
        lines.setdefault((event["pid"], event["tid"]), []).append(event)
    # Events of one thread nest.
    for events in lines.values():
        ends = []
        for event in sorted(events, key=lambda e: (e["ts"], -e["dur"])):
            while ends and ends[-1] <= event["ts"] + 1e-3:
                ends.pop()
            end = event["ts"] + event["dur"]
            assert not ends or end <= ends[-1] + 1e-3, event
            ends.append(end)
    return lines


@pytest.mark.slow
def test_files_of_start_trace(weight, tmp_path):
    xp.start_trace(str(tmp_path))
    for number in range(3):
        step(weight, number)
    torch_xla.sync(wait=True)
    path = pathlib.Path(xp.stop_trace())
    assert path.parent.parent == tmp_path / "plugins" / "profile"
    space = trace_events.parse(path.read_bytes())
    assert [e.stats["step_num"] for e in space.events("train")] == [0, 1, 2]
    (device,) = space.devices
    steps = device.lines[0].events
    assert [event.name for event in steps] == ["0", "1", "2"]
    # A step lasts until the next begins.
    assert steps[0].end_ps == steps[1].start_ps
    trace_path = path.with_name(path.name.replace(".xplane.pb", ".trace.json.gz"))
    trace = json.loads(gzip.decompress(trace_path.read_bytes()))
    lines = check_trace_events(trace)
    assert len(lines) == 5  # the thread, the recording, and the device's three
    processes = [e["args"]["name"] for e in trace["traceEvents"] if e["name"] == "process_name"]
    assert processes == ["/host:CPU", "CPU 0"]
    with pytest.raises(RuntimeError, match="No profile started"):
        xp.stop_trace()
    # Two within a second are two files.
    xp.start_trace(str(tmp_path))
    assert xp.stop_trace() != str(path)


@pytest.mark.parametrize("name", ["server", "guarded"])
def test_trace_asks_the_server(name, request, weight, tmp_path):
    server = request.getfixturevalue(name)
    thread = xp.trace_detached(f"localhost:{server.port}", str(tmp_path), duration_ms=200)
    steps = train_while(thread, weight)
    (path,) = tmp_path.glob("plugins/profile/*/localhost.xplane.pb")
    space = trace_events.parse(path.read_bytes())
    # The server's threads hold no lock that the program needs: it went on meanwhile, also on a slow machine.
    numbers = [event.stats["step_num"] for event in space.events("train")]
    assert len(numbers) > 2 and numbers == list(range(steps))[numbers[0] :][: len(numbers)]
    assert len(space.devices) == 1
    assert path.with_name("localhost.trace.json.gz").exists()


def test_the_server_writes_for_clients_that_want_no_answer(server, weight, logdir):
    request = messages.ProfileRequest(
        repository_root=str(logdir), session_id="run", host_name="here:1"
    )
    request.opts.duration_ms = 100
    answers = []
    thread = threading.Thread(target=lambda: answers.append(call(server, "Profile", request)))
    thread.start()
    train_while(thread, weight)
    assert not messages.ProfileResponse.FromString(answers[0]).empty_trace
    assert (logdir / "run" / "here_1.xplane.pb").exists()


def test_terminate_ends_a_profile(server, weight):
    request = messages.ProfileRequest(duration_ms=60_000, session_id="long", emit_xspace=True)
    answers = []
    thread = threading.Thread(target=lambda: answers.append(call(server, "Profile", request)))
    thread.start()
    while not trace_events.is_running():
        thread.join(0.01)
    step(weight, 0)
    with pytest.raises(grpc.RpcError) as second:
        call(server, "Profile", messages.ProfileRequest(duration_ms=1, emit_xspace=True))
    assert second.value.code() == grpc.StatusCode.ALREADY_EXISTS
    call(server, "Terminate", messages.TerminateRequest(session_id="long"))
    thread.join(20)
    response = messages.ProfileResponse.FromString(answers[0])
    assert any(trace_events.parse(response.xspace).events("train"))


def test_monitor(server):
    request = messages.MonitorRequest(duration_ms=50, timestamp=True)
    text = messages.MonitorResponse.FromString(call(server, "Monitor", request)).data
    assert text.startswith("Timestamp: ") and "Compilations: 0" in text


def test_what_a_server_refuses(server, tmp_path):
    for request in [
        messages.ProfileRequest(duration_ms=10**9, emit_xspace=True),
        messages.ProfileRequest(duration_ms=1),
        messages.ProfileRequest(duration_ms=1, repository_root=str(tmp_path), session_id="../x"),
    ]:
        with pytest.raises(grpc.RpcError) as error:
            call(server, "Profile", request)
        assert error.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    with (
        grpc.insecure_channel(f"localhost:{server.port}") as channel,
        pytest.raises(grpc.RpcError),
    ):
        channel.unary_unary("/tensorflow.ProfilerService/Profile")(b"\x0a\xff", timeout=20)
    assert not trace_events.is_running()
    call(server, "Monitor", messages.MonitorRequest(duration_ms=1))


def refusal(server, request, method="Profile", metadata=None):
    with (
        grpc.insecure_channel(f"localhost:{server.port}") as channel,
        pytest.raises(grpc.RpcError) as error,
    ):
        channel.unary_unary(f"/tensorflow.ProfilerService/{method}")(
            request.SerializeToString(), timeout=20, metadata=metadata
        )
    return error.value.code()


def test_files_are_written_below_the_named_folder_only(server, logdir, tmp_path):
    (logdir / "way_out").symlink_to(tmp_path)
    denied, invalid = grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.INVALID_ARGUMENT
    for root, session, code in [
        (tmp_path, "run", denied),
        (logdir / "way_out", "run", denied),
        (logdir / ".." / "elsewhere", "run", denied),
        (logdir, "way_out", denied),
        (logdir, "a/b", invalid),
        (logdir, "x\0y", invalid),
        (f"{logdir}\0", "run", invalid),
        (logdir, "x" * 1000, invalid),
    ]:
        request = messages.ProfileRequest(
            duration_ms=1, repository_root=str(root), session_id=session
        )
        assert refusal(server, request) == code, (root, session)
    assert list(tmp_path.iterdir()) == []
    assert not trace_events.is_running()


def test_a_server_without_a_folder_writes_nothing(weight, tmp_path):
    server = xp.start_server(0, without_token=True)
    request = messages.ProfileRequest(
        duration_ms=1, repository_root=str(tmp_path), session_id="run"
    )
    assert refusal(server, request) == grpc.StatusCode.FAILED_PRECONDITION
    assert list(tmp_path.iterdir()) == []
    server.stop()


def test_requests_are_bounded(server):
    long = messages.ProfileRequest(duration_ms=5 * 60 * 1000 + 1, emit_xspace=True)
    assert refusal(server, long) == grpc.StatusCode.INVALID_ARGUMENT
    monitor = messages.MonitorRequest(duration_ms=10**7)
    assert refusal(server, monitor, "Monitor") == grpc.StatusCode.INVALID_ARGUMENT
    large = messages.ProfileRequest(emit_xspace=True, host_name="x" * 100_000)
    assert refusal(server, large) == grpc.StatusCode.RESOURCE_EXHAUSTED


def test_who_proves_nothing_is_refused(guarded):
    unknown = grpc.StatusCode.UNAUTHENTICATED
    nonce, proof = profiler_token.NONCE_HEADER, profiler_token.PROOF_HEADER
    request = messages.ProfileRequest(duration_ms=1, emit_xspace=True)
    for metadata in [
        None,
        ((nonce, b"x" * 32), (proof, b"x" * 32)),
        ((nonce, challenge_of(guarded, b"x" * 32)[:32]), (proof, b"x" * 32)),
        ((proof, b"x" * 32),),
    ]:
        assert refusal(guarded, request, metadata=metadata) == unknown
    assert refusal(guarded, messages.TerminateRequest(), "Terminate") == unknown
    assert refusal(guarded, messages.MonitorRequest(), "Monitor") == unknown
    assert not trace_events.is_running()


def challenge_of(server, nonce, times=1):
    with grpc.insecure_channel(f"localhost:{server.port}") as channel:
        ask = channel.unary_unary(profiler_token.CHALLENGE)
        return [ask(nonce, timeout=20) for _ in range(times)][-1]


def accepted(server, proof, request, method="Monitor"):
    """Whether the server takes the request, which must be a short one."""
    with grpc.insecure_channel(f"localhost:{server.port}") as channel:
        function = channel.unary_unary(f"/{messages.SERVICE}/{method}")
        try:
            function(request.SerializeToString(), timeout=20, metadata=proof)
        except grpc.RpcError as error:
            assert error.code() == grpc.StatusCode.UNAUTHENTICATED
            return False
        return True


def test_a_proof_is_good_for_one_request_once(guarded):
    side = profiler_token.ClientSide(guarded.port)
    request = messages.MonitorRequest(duration_ms=1)
    serialized = request.SerializeToString()
    proof = side.metadata(challenge_of(guarded, side.nonce), "Monitor", serialized)
    assert not accepted(guarded, proof, messages.MonitorRequest(duration_ms=2))
    assert not accepted(guarded, proof, request, "Terminate")
    assert accepted(guarded, proof, request)
    assert not accepted(guarded, proof, request)
    # Neither another port's server nor an echo is believed.
    answer = challenge_of(guarded, side.nonce)
    elsewhere = profiler_token.ClientSide(guarded.port % 65535 + 1)
    assert elsewhere.metadata(challenge_of(guarded, elsewhere.nonce), "Monitor", b"") is None
    assert side.metadata(answer[:-1] + bytes([answer[-1] ^ 1]), "Monitor", b"") is None
    assert side.metadata(side.nonce * 2, "Monitor", b"") is None
    assert side.metadata(b"", "Monitor", b"") is None


def test_strangers_challenges_spoil_nobodys(guarded):
    side = profiler_token.ClientSide(guarded.port)
    request = messages.MonitorRequest(duration_ms=1)
    answer = challenge_of(guarded, side.nonce)
    challenge_of(guarded, b"x" * 32, times=300)
    proof = side.metadata(answer, "Monitor", request.SerializeToString())
    assert accepted(guarded, proof, request)


def test_silent_requests_keep_nobody_out(guarded):
    """Who opens requests and never sends them: the oldest make room."""
    ended = threading.Event()

    def nothing():
        ended.wait()
        yield from ()

    # Each with a connection of its own.
    own = [("grpc.use_local_subchannel_pool", 1)]
    channels = [grpc.insecure_channel(f"localhost:{guarded.port}", own) for _ in range(4)]
    silent = []  # one that nobody refers to ends
    try:
        for channel in channels:
            for method in ("/tensorflow.ProfilerService/Monitor", profiler_token.CHALLENGE):
                for _ in range(5):
                    silent.append(channel.stream_unary(method).future(nothing()))
            time.sleep(0.2)
        for _ in range(3):
            side = profiler_token.ClientSide(guarded.port)
            request = messages.MonitorRequest(duration_ms=1)
            answer = challenge_of(guarded, side.nonce)
            proof = side.metadata(answer, "Monitor", request.SerializeToString())
            assert accepted(guarded, proof, request)
    finally:
        ended.set()
        for channel in channels:
            channel.close()


def test_a_challenge_ends(monkeypatch):
    server = profiler_token.ServerSide()
    side = profiler_token.ClientSide(0)
    proof = dict(side.metadata(server.challenge(side.nonce), "Monitor", b""))
    now = time.monotonic_ns()
    monkeypatch.setattr(time, "monotonic_ns", lambda: now + 31 * 10**9)
    assert not server.accepts(proof, "Monitor", b"")
    monkeypatch.setattr(time, "monotonic_ns", lambda: now + 29 * 10**9)
    assert server.accepts(proof, "Monitor", b"")


@contextlib.contextmanager
def stranger(proof):
    """The port of a server that proves nothing, and what it was asked."""
    asked = []

    class Stranger(grpc.GenericRpcHandler):
        def service(self, details):
            def answer(request, context):
                asked.append((details.method, request))
                if details.method == profiler_token.CHALLENGE:
                    return proof
                return messages.ProfileResponse(empty_trace=True).SerializeToString()

            return grpc.unary_unary_rpc_method_handler(answer)

    server = grpc.server(futures.ThreadPoolExecutor(max_workers=2))
    port = server.add_insecure_port("localhost:0")
    server.add_generic_rpc_handlers((Stranger(),))
    server.start()
    try:
        yield port, asked
    finally:
        server.stop(None)


def test_trace_proves_the_server_first(tmp_path):
    """A stranger at the port gets a random number, unless any server will do."""
    with stranger(b"x" * 64) as (port, asked):
        with pytest.raises(RuntimeError, match="does not prove that it is this user's"):
            xp.trace(f"localhost:{port}", str(tmp_path), 10, num_tracing_attempts=1)
        ((method, request),) = asked
        assert method == profiler_token.CHALLENGE and len(request) == 32
        with pytest.raises(RuntimeError, match="nothing happened"):
            xp.trace(
                f"localhost:{port}", str(tmp_path), 10, num_tracing_attempts=1, without_token=True
            )
        assert profiler_token.token() not in b"".join(request for _, request in asked)


def test_a_stranger_gets_no_memory(tmp_path):
    with (
        stranger(b"x" * 1000) as (port, asked),
        pytest.raises(RuntimeError, match="RESOURCE_EXHAUSTED"),
    ):
        xp.trace(f"localhost:{port}", str(tmp_path), 10, num_tracing_attempts=1)
    assert len(asked) == 1


def test_a_server_that_is_started_again_is_the_same_one(guarded):
    assert xp.start_server(guarded.port) is guarded
    first = xp.start_server(0)
    first.stop()
    with (
        socket.create_server(("127.0.0.1", first.port)),
        pytest.raises(RuntimeError, match="cannot listen on port"),
    ):
        xp.start_server(first.port)  # what has been stopped is none


def test_threads_that_start_a_server_at_once_have_the_same_one(guarded, monkeypatch):
    port = guarded.port
    guarded.stop()
    start = profiler_server.ProfilerServer.__init__

    def start_late(*arguments):
        time.sleep(0.2)
        start(*arguments)

    monkeypatch.setattr(profiler_server.ProfilerServer, "__init__", start_late)
    with futures.ThreadPoolExecutor(6) as threads:
        servers = list(threads.map(xp.start_server, [port] * 6))
    servers[0].stop()
    assert len(set(map(id, servers))) == 1


def test_ports(server):
    with pytest.raises(RuntimeError, match=r"cannot listen on port .* without_token=True"):
        xp.start_server(server.port)
    with pytest.raises(RuntimeError, match="not between"):
        xp.start_server(70000)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_a_server_has_all_addresses_of_localhost_or_none(host):
    """Else a stranger at one of them would hear the clients, and pass on what the server proves."""
    try:
        stranger = socket.create_server(
            (host, 0), family=socket.AF_INET6 if ":" in host else socket.AF_INET
        )
    except OSError:
        pytest.skip(f"this machine has no {host}")
    with stranger, pytest.raises(RuntimeError, match="cannot listen on port"):
        xp.start_server(stranger.getsockname()[1])


def test_no_server_and_nothing_to_see(server, tmp_path):
    with pytest.raises(RuntimeError, match="UNAVAILABLE"):
        xp.trace("localhost:1", str(tmp_path), 10, num_tracing_attempts=1)
    with pytest.raises(RuntimeError, match="2 attempts; nothing happened"):
        xp.trace(
            f"localhost:{server.port}", str(tmp_path), 10, num_tracing_attempts=2, interval_s=0
        )


@pytest.mark.slow
def test_a_program_ends_although_its_server_does_not():
    program = "import torch_xla.debug.profiler as xp; server = xp.start_server(0); print(1)"
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60
    )
    assert (result.returncode, result.stdout) == (0, "1\n"), result.stderr
