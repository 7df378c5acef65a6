"""The real viewer and capture client (xprof) over profiles of a program that trains, also in a browser."""

import html
import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import time
import urllib.parse
import urllib.request

import pytest

pytestmark = pytest.mark.slow

PROGRAM = """
import sys, time
import torch, torch_xla
import torch_xla.debug.profiler as xp

device = torch_xla.device()
model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 8)).to(device)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
# The capture client knows no token, and has the server write the file.
server = xp.start_server(0, logdir=sys.argv[1], without_token=True)

def train(number):
    with xp.StepTrace("train", step_num=number):
        with xp.Trace("forward"):
            loss = model(torch.randn(32, 64).to(device)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

train(0)
train(1)
torch_xla.sync(wait=True)
print(server.port, flush=True)
for number in range(2, 1_000_000):
    train(number)
    time.sleep(0.005)
"""

CAPTURE = """
import sys
from xprof.convert import _pywrap_profiler_plugin as plugin
address, logdir = sys.argv[1:]
plugin.trace(address, logdir, "", True, 400, 3,
             {"host_tracer_level": 2, "device_tracer_level": 1, "python_tracer_level": 0, "delay_ms": 0})
"""

CONVERT = """
import json, sys
from xprof.convert import raw_to_tool_data
tools = {}
for tool in sys.argv[2:]:
    data, kind = raw_to_tool_data.xspace_to_tool_data([sys.argv[1]], tool, {})
    assert kind == "application/json", kind
    tools[tool] = json.loads(data)
json.dump(tools, sys.stdout)
"""

# `logdir`, then two ports.
SERVE = """
import sys
from xprof.server import start_server
start_server(logdir=sys.argv[1], port=int(sys.argv[2]), grpc_port=int(sys.argv[3]))
"""

# What the viewer's pages say whatever they show: they draw some charts with a script from the Internet, which the
# tests do not have, and misread their own address when the trace viewer is opened by it.
VIEWERS_OWN = re.compile(
    r"charts/loader\.js|google is not defined|slider-vertical|WebComponentsV0|f\.split is not a function"
)


def python(program, *arguments):
    result = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, timeout=120
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def free_port():
    with socket.socket() as listener:
        listener.bind(("localhost", 0))
        return listener.getsockname()[1]


@pytest.fixture(scope="module")
def profile(tmp_path_factory, module_of_programs):
    """The file that the capture client got from a program's server."""
    logdir = tmp_path_factory.mktemp("logs")
    environment = {**os.environ, "XLA_HLO_DEBUG": "1"}
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(logdir)],
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    ) as program:
        try:
            port = int(program.stdout.readline())
            python(CAPTURE, f"localhost:{port}", str(logdir))
        finally:
            program.kill()
    (path,) = logdir.glob("plugins/profile/*/*.xplane.pb")
    return path


def rows_of(table):
    names = [column["id"] for column in table["cols"]]
    return [
        dict(zip(names, (cell.get("v") for cell in row["c"]), strict=True)) for row in table["rows"]
    ]


def walk(node):
    yield node
    for child in node.get("children", []):
        yield from walk(child)


def test_the_viewers_tools(profile):
    tools = json.loads(
        python(CONVERT, str(profile), "overview_page", "op_profile", "trace_viewer", "hlo_stats")
    )

    properties = {}
    for table in tools["overview_page"]:
        properties |= table.get("p", {})
    assert properties["device_type"] == "CPU"
    # Steps are the program's: they last longer than what the device does in them.
    assert float(properties["steptime_ms_average"]) > 5
    assert 0 < float(properties["tc_active_ms_average"]) < float(properties["steptime_ms_average"])
    assert properties["device_tf_op_percent"] == "100.0%"

    operations = {node["name"]: node for node in walk(tools["op_profile"]["byProgram"])}
    dot = next(node for name, node in operations.items() if name.startswith("dot-general"))
    assert dot["xla"]["category"] == "dot"
    assert dot["xla"]["provenance"].startswith("aten::")
    assert dot["metrics"]["occurrences"] > 10
    assert dot["metrics"]["rawFlops"] > 0
    assert "loop fusion" in operations

    lines = [
        event["args"]["name"]
        for event in tools["trace_viewer"]["traceEvents"]
        if event.get("name") in ("process_name", "thread_name")
    ]
    assert {"/device:TPU:0", "/host:CPU", "Steps", "XLA Modules", "XLA Ops", "Source code"} <= {
        *lines
    }
    names = {event.get("name") for event in tools["trace_viewer"]["traceEvents"]}
    assert {"forward", "xla::execute", "xla::sync"} <= names

    products = [row for row in rows_of(tools["hlo_stats"]) if row["category"] == "dot"]
    assert len(products) == 5
    assert {row["tf_op_name"] for row in products} == {"aten::addmm", "aten::mm"}


@pytest.fixture(scope="module")
def viewer(profile):
    """The address of the viewer over the profile."""
    logdir, port = profile.parents[3], free_port()
    with subprocess.Popen(
        [sys.executable, "-c", SERVE, str(logdir), str(port), str(free_port())],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as server:
        try:
            address = f"http://localhost:{port}/data/plugin/profile"
            end = time.monotonic() + 60
            while True:
                try:
                    urllib.request.urlopen(f"{address}/runs", timeout=10).close()
                    break
                except OSError:
                    assert server.poll() is None and time.monotonic() < end
                    time.sleep(0.1)
            yield address
        finally:
            server.kill()


def browse(address: str, folder: pathlib.Path) -> tuple[str, list[str]]:
    """The page's text after its scripts have run, and what they complain of."""
    result = subprocess.run(
        ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
         f"--user-data-dir={folder}", "--enable-logging=stderr", "--v=0", "--window-size=1400,1000",
         "--virtual-time-budget=15000", "--dump-dom", address],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    complaints = [line for line in result.stderr.splitlines() if "CONSOLE" in line]
    text = re.sub(r"<(script|style)\b.*?</\1>", "", result.stdout, flags=re.DOTALL)
    text = re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]*>", " ", text)))
    return text, [line for line in complaints if not VIEWERS_OWN.search(line)]


def test_the_trace_in_a_browser(profile, viewer, tmp_path):
    """The frame within the trace viewer's page, with what it has drawn."""
    host = profile.name.removesuffix(".xplane.pb")
    data = urllib.parse.quote(
        f"/data/plugin/profile/data?run={profile.parent.name}&tag=trace_viewer@&host={host}",
        safe="",
    )
    address = (
        f"{viewer}/trace_viewer_index.html?is_streaming=true&is_oss=true&trace_data_url={data}"
    )
    text, complaints = browse(address, tmp_path)
    assert complaints == []
    for part in ["/device:TPU:0", "XLA Modules", "/host:CPU", "recording xla:0"]:
        assert part in text, text[:3000]


@pytest.mark.parametrize(
    ("tool", "shown"),
    [
        ("overview_page", ["Performance Summary", "Device type : CPU"]),
        ("op_profile", ["by_program", "IDLE", "main"]),
        ("trace_viewer@", ["Trace Viewer", "Zoom to it"]),
    ],
)
def test_the_viewers_pages_in_a_browser(profile, viewer, tmp_path, tool, shown):
    host = profile.name.removesuffix(".xplane.pb")
    query = f"run={profile.parent.name}&tag={tool}&host={host}"
    text, complaints = browse(f"{viewer}/{tool}?{query}", tmp_path)
    assert complaints == []
    for part in shown:
        assert part.lower() in text.lower(), text[:3000]
