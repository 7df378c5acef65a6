"""What PT_XLA_DEBUG, PT_XLA_DEBUG_LEVEL, XLA_IR_DEBUG and their like print, each in the form that tools read."""

import re
import types

import pytest

from torch_xla.debug import _reports

# What is reported are programs: small graphs would have none at first.
pytestmark = pytest.mark.usefixtures("module_of_programs")

TRAIN = """\
import sys
import torch
import torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.debug.profiler as xp
import torch_xla.distributed.parallel_loader as pl


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)

    def forward(self, x, deep=False):
        x = self.linear(x)
        if deep:
            x = x.relu()
        return x.sum()


def evaluate(model, x):
    return model(x).item()


device = torch_xla.device()
model = Net().to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
torch_xla.sync()

for n, deep in ((4, False), (4, False), (5, False), (5, True)):
    optimizer.zero_grad()
    model(torch.ones(n, 4).to(device), deep).backward()
    optimizer.step()
    torch_xla.sync()

evaluate(model, torch.ones(2, 4).to(device))

for batch in pl.MpDeviceLoader([torch.ones(6)], device):
    held = batch + 1

with xp.StepTrace("step"):
    traced = held * 2

compiled = torch_xla.compile(lambda t: t - 3, name="minus_three", full_graph=True)
result = compiled(traced)
torch._standard_gamma_grad(result + 1, result + 1)
pending = result / 2
torch_xla.sync()


def refused(t):
    if (t + 1).sum() > 0:
        return t
    return -t


try:
    torch_xla.compile(refused, name="refused", full_graph=True)(result)
except RuntimeError as error:
    print(error)
"""

LINE = {text.strip(): number for number, text in enumerate(TRAIN.splitlines(), 1)}
DOUBLE, SINGLE = "=" * 80, "-" * 80


@pytest.fixture(scope="module")
def reports(tmp_path_factory, program_server):
    """The blocks of level 2, each a list of its lines without the prefix, with its prefix first."""
    from conftest import Program

    program = Program(tmp_path_factory.mktemp("reports"), program_server)
    (program.folder / "train.py").write_text(TRAIN)
    variables = {"PT_XLA_DEBUG_LEVEL": "2", "PT_XLA_DEBUG_FILE": "out.txt"}
    result = program.run("train.py", anew=True, **variables)  # frames are shown
    assert "Unexpected execution happens inside the compiled function" in result.stdout
    assert result.stderr == ""
    return blocks_of((program.folder / "out.txt").read_text())


def blocks_of(text: str) -> list[list[str]]:
    blocks: list[list[str]] = []
    inside = False
    for line in text.splitlines():
        match = re.match(
            r"((?:Post |Unexpected )?(?:Compilation|Execution|Wait|Memory) Analysis): (.*)", line
        )
        if not match:
            assert not inside
            assert line == "" or re.fullmatch(r"Computation hash: [0-9a-f]{32}", line), line
            continue
        prefix, content = match.groups()
        if content == DOUBLE:
            inside = not inside
            if inside:
                blocks.append([prefix])
        else:
            assert inside
            blocks[-1].append(content)
    assert not inside
    assert all(block[-1] == SINGLE for block in blocks)
    return blocks


def of(reports: list[list[str]], prefix: str) -> list[list[str]]:
    return [block for block in reports if block[0] == prefix]


def changes(block: list[str]) -> str:
    return block[block.index("What Changed: ") + 1].strip()


def test_a_compilation_has_the_known_form(reports):
    block = of(reports, "Compilation Analysis")[0]
    assert block[1:3] == ["Compilation Cause", "  user torch_xla.sync"]
    start = block.index("Graph Info: ")
    assert re.fullmatch(r"  Graph Hash: [0-9a-f]{32}", block[start + 1])
    assert re.fullmatch(r"  Number of Graph Inputs: \d+", block[start + 2])
    assert re.fullmatch(r"  Number of Graph Outputs: \d+", block[start + 3])
    assert block[start + 4] == "Python Frame Triggered Execution: "
    frames = block[start + 5 : -1]
    assert re.fullmatch(r"  _?sync \(.*/torch_xla/torch_xla.py:\d+\)", frames[0])
    assert frames[-1].startswith("  <module> (") and "train.py:" in frames[-1]


def test_memory_follows_each_compilation(reports):
    compilations = of(reports, "Compilation Analysis")
    after = of(reports, "Post Compilation Analysis")
    assert len(compilations) == len(after) > 0
    for block in after:
        names = [line.partition(": ")[0] for line in block[1:-1]]
        assert names == [
            "Graph input size",
            "Graph output size",
            "Aliased Input size",
            "Intermediate tensor size",
            "Compiled program size",
        ]
        assert all(re.fullmatch(r".*: \d+\.\d{6} GB", line) for line in block[1:-1])


def test_each_execution_is_reported_and_equal_graphs_have_equal_hashes(reports):
    executions = of(reports, "Execution Analysis")
    assert len(executions) > len(of(reports, "Compilation Analysis"))
    assert all(block[1] == "Execution Cause" for block in executions)
    hashes = [next(line for line in block if "Graph Hash" in line) for block in executions]
    # The first and second step of the loop are one graph.
    assert len(set(hashes)) < len(hashes)


def test_causes_are_those_of_the_cut(reports):
    causes = [block[2].strip() for block in of(reports, "Execution Analysis")]
    assert causes.count("torch_xla.sync in parallel loader at step end") == 1
    assert causes.count("torch_xla.sync when exiting a profiler StepTrace region") == 1
    assert causes.count("torch_xla.compile") == 1
    read = "most likely user code trying to access tensor value before torch_xla.sync"
    assert causes.count(read) == 1
    assert (
        causes.count(
            "aten::_standard_gamma_grad is not lowered and runs on the CPU, which needs the values of its inputs"
        )
        == 1
    )
    (block,) = (block for block in of(reports, "Execution Analysis") if block[2].strip() == read)
    line = LINE["return model(x).item()"]
    assert block[block.index("Value Read: ") + 1].strip() == (
        "aten::_local_scalar_dense (.item(), float(), int() or bool() of a tensor) at "
        f"train.py:{line}: return model(x).item()"
    )


def test_graphs_of_compile_are_named(reports):
    named = [
        block
        for block in of(reports, "Compilation Analysis")
        if "  Graph Name: minus_three" in block
    ]
    assert len(named) == 1 and named[0][2] == "  torch_xla.compile"


def test_a_refused_execution_is_explained(reports):
    (block,) = of(reports, "Unexpected Execution Analysis")
    assert "  Graph Name: refused" in block
    line = LINE["if (t + 1).sum() > 0:"]
    assert any(f"train.py:{line}" in text for text in block)


def test_what_changed_is_said_in_the_users_terms(reports):
    said = [
        changes(block) for block in of(reports, "Compilation Analysis") if "What Changed: " in block
    ]
    forward = LINE["x = self.linear(x)"]
    # Only the first of all has nothing to be compared with.
    assert len(said) == len(of(reports, "Compilation Analysis")) - 1
    (shape,) = (text for text in said if "[5, 4]" in text)
    assert (
        shape == f"argument `x` of `Net.forward`, train.py:{forward}: shape [5, 4] was [4, 4]"
        or (
            shape.startswith(
                f"argument `x` of `Net.forward`, train.py:{forward}: shape [5, 4] was [4, 4] (and "
            )
        )
    )
    branch = LINE["if deep:"]
    assert f"branch at train.py:{branch} was taken, and was not before" in said


def test_level_1_reports_no_executions_and_goes_to_stderr(program):
    result = program.run_code(
        "import torch, torch_xla\nt = torch.ones(2, device='xla') + 1\ntorch_xla.sync()\nt += 1\ntorch_xla.sync()",
        PT_XLA_DEBUG_LEVEL="1",
    )
    blocks = blocks_of(result.stderr)
    assert len(of(blocks, "Compilation Analysis")) == 2
    assert not of(blocks, "Execution Analysis") and result.stdout == ""


def test_frames_are_limited(program):
    result = program.run_code(
        """
import torch, torch_xla
def deep(n):
    if n:
        return deep(n - 1)
    t = torch.ones(2, device="xla") + 1
    torch_xla.sync()
deep(20)
""",
        PT_XLA_DEBUG_LEVEL="1",
        PT_XLA_DEBUG_MAX_FRAME="3",
    )
    block = of(blocks_of(result.stderr), "Compilation Analysis")[0]
    frames = block[block.index("Python Frame Triggered Execution: ") + 1 : -1]
    assert len(frames) == 4 and frames[-1] == "  .........."


def test_metrics_are_judged(program):
    result = program.run_code(
        """
import torch, torch_xla
for i in range(12):
    t = torch.ones(i + 2, device="xla") + 1
    t.sum().item()
    torch._standard_gamma_grad(t, t)
    torch_xla.sync()
""",
        PT_XLA_DEBUG="1",
    )
    said = [line for line in result.stderr.splitlines() if line.startswith("pt-xla-profiler: ")]
    text = "\n".join(said)
    assert re.search(r"pt-xla-profiler: CompileTime too frequent: \d+ counts during 11 steps", text)
    assert re.search(
        r"pt-xla-profiler: TransferFromDeviceTime too frequent: \d+ counts during 11 steps", text
    )
    assert "pt-xla-profiler: Op(s) not lowered: aten::_standard_gamma_grad, " in text
    assert (
        "pt-xla-profiler: Unlowered Op usage summary (more of these ops, lower performance)" in said
    )
    assert "pt-xla-profiler: FRAME (count=12):" in said
    assert 'pt-xla-profiler: Unlowered Op: "aten::_standard_gamma_grad"' in said
    # What was held when the most was.
    (memory,) = of(blocks_of_analyses(result.stderr), "Memory Analysis")
    assert re.fullmatch(
        r"Peak \d+\.\d MiB, \d+\.\d MiB of it results and intermediate values of the program that ran then; "
        r"the largest tensors:",
        memory[1],
    )
    # The time that each line cost.
    (lost,) = of(blocks_of_analyses(result.stderr), "Wait Analysis")
    assert any(
        re.fullmatch(
            r"  \d+\.\d{3} ms a step, 12 times: aten::_standard_gamma_grad on the CPU at <string>:6",
            line,
        )
        for line in lost
    )
    assert any(
        re.fullmatch(
            r"  \d+\.\d{3} ms a step, 12 times: aten::_local_scalar_dense at <string>:5", line
        )
        for line in lost
    )
    assert any("a compilation" in line for line in lost)


def blocks_of_analyses(text: str) -> list[list[str]]:
    return blocks_of("\n".join(line for line in text.splitlines() if " Analysis: " in line))


GRAPH = """
import torch, torch_xla
def double(x):
    return x * 2
t = double(torch.ones(2, 3, device="xla"))
{more}
torch_xla.sync()
"""


@pytest.mark.parametrize(
    "form", ["text", "dot", "hlo", pytest.param("stablehlo", marks=pytest.mark.exhaustive)]
)
def test_graphs_are_saved(program, form):
    program.run_code(
        GRAPH.format(more=""),
        XLA_SAVE_TENSORS_FILE="graphs",
        XLA_SAVE_TENSORS_FMT=form,
        XLA_IR_DEBUG="1",
    )
    # Each process has a file of its own.
    text = (program.folder / "graphs.0").read_text()
    assert text.startswith("[ScheduleSyncTensorsGraph]\nTensorsGraphInfo:\n  ")
    # The frame below is that of the tests' server, which executes the program.
    assert re.search(
        r"^  <module> \(<string>:7\)\n(  <module> \(<string>:1\)\n)?\nRoot Hashes: \([0-9a-f]{32}(, [0-9a-f]{32})*\)\n\n## BEGIN_GRAPH\n",
        text,
        re.MULTILINE,
    )
    assert re.search(r"\nGraph Hash: [0-9a-f]{32}\n\n\n## END_GRAPH\n\n$", text)
    graph = text.partition("## BEGIN_GRAPH\n")[2].partition("\nGraph Hash")[0]
    expected = {
        "text": r"^  %\d+ = f32\[2,3\]\{1,0\} aten::mul\(%\d+, %\d+\).*, scope=aten::mul.1, location=double@<string>:4, xla_shape=f32\[2,3\]\{1,0\}, ROOT=0$",
        "dot": r"^digraph G \{\n[^}]*label=\"aten::mul",
        "hlo": r"multiply",
        "stablehlo": r"stablehlo.multiply",
    }[form]
    assert re.search(expected, graph, re.MULTILINE), graph


def test_a_call_of_a_compiled_function_is_saved_by_itself(program):
    program.run_code(
        """
import torch, torch_xla
x = torch.ones(3).to("xla")
double = torch.compile(lambda x: x + x, backend="openxla")
for calls in range(1, 3):
    y = double(x)
    assert open("graphs.0").read().count("aten::call_graph") == calls
z = y - 1
torch_xla.sync()
assert open("graphs.0").read().count("## BEGIN_GRAPH") == 3
""",
        XLA_SAVE_TENSORS_FILE="graphs",
    )


def test_graphs_are_saved_once_where_it_is_asked_for_after_the_import(program):
    asks = 'import os; os.environ["XLA_SAVE_TENSORS_FILE"] = "graphs"'
    for variables in ({}, {"XLA_SAVE_TENSORS_FILE": "others"}):
        program.run_code(GRAPH.format(more=asks), **variables)
    assert (program.folder / "graphs.0").read_text().count("## BEGIN_GRAPH") == 2
    assert not (program.folder / "others.0").exists()


def test_a_form_that_does_not_exist_is_said(program):
    result = program.run_code(
        GRAPH.format(more=""), XLA_SAVE_TENSORS_FILE="g", XLA_SAVE_TENSORS_FMT="xml"
    )
    assert "XLA_SAVE_TENSORS_FMT=xml is none of text, dot, hlo, stablehlo" in result.stderr


def test_lines_are_noted_only_when_asked_for(program):
    more = "print(torch_xla._XLAC._get_xla_tensors_text([t]))"
    assert "location=" not in program.run_code(GRAPH.format(more=more)).stdout
    assert (
        "location=double@<string>:4"
        in program.run_code(GRAPH.format(more=more), XLA_IR_DEBUG="1").stdout
    )


def test_programs_name_the_lines(program):
    more = "print(torch_xla._XLAC._get_xla_tensors_hlo([t]), torch_xla.core.xla_model.get_stablehlo([t]))"
    (program.folder / "train.py").write_text(GRAPH.format(more=more))
    output = program.run("train.py", XLA_HLO_DEBUG="1").stdout
    assert re.search(r'multiply\(.*source_file="[^"]*train.py" source_line=4', output)
    name = re.search(r"stablehlo.multiply .* loc\((#loc\d*)\)", output)[1]
    assert re.search(rf'^{name} = loc\("aten::mul"\("[^"]*train.py":4:0\)\)', output, re.MULTILINE)


def test_gradients_have_the_lines_of_what_they_are_the_gradients_of(program):
    output = program.run_code(
        """
import torch, torch_xla
def loss(x):
    y = x.tanh()
    return y.sum()
x = torch.ones(3, device="xla", requires_grad=True)
loss(x).backward()
print(torch_xla._XLAC._get_xla_tensors_text([x.grad]))
""",
        XLA_IR_DEBUG="1",
    ).stdout
    (line,) = (line for line in output.splitlines() if "tanh_backward" in line)
    assert "location=loss@<string>:4" in line


def test_memory_is_listed_when_an_upload_finds_none(program):
    result = program.run_code(
        """
import torch, torch_xla
kept = torch.ones(20 << 20, device="xla") * 2
torch_xla.sync(wait=True)
try:
    torch.ones(40 << 20).to("xla")
except RuntimeError as error:
    print(type(error).__name__, error)
""",
        TORCH_XLA_MEMORY_LIMIT=str(200 << 20),
    )
    assert result.stdout.startswith("OutOfMemoryError")
    assert (
        "1 tensors hold 80 MiB; the largest:\n  80 MiB: 1 x f32[20971520], made by aten::mul"
        in result.stdout
    )
    assert "XLA_IR_DEBUG=1 adds the lines" in result.stdout


def test_memory_is_listed_by_line_when_it_runs_out(program):
    result = program.run_code(
        """
import torch, torch_xla
import torch_xla.core.xla_model as xm
def big(n):
    return torch.ones(n, device="xla") * 2
kept = []
try:
    for i in range(100):
        kept.append(big((4 << 20) + i % 2))
        torch_xla.sync(wait=True)
except RuntimeError as error:
    print(type(error).__name__, error)
""",
        TORCH_XLA_MEMORY_LIMIT=str(200 << 20),
        XLA_IR_DEBUG="1",
    )
    assert "out of memory" in result.stdout.lower()
    assert re.search(r"\d+ tensors hold \d+ MiB; the largest:", result.stdout)
    assert re.search(
        r"  \d+ MiB: \d+ x f32\[41943\d\d\], made by aten::mul at <string>:5 \(big\)", result.stdout
    )


def test_threads_do_not_wait_for_each_other_for_ever(program):
    """One holds the lock of the graphs and asks for the interpreter's, while others read, record and look at graphs."""
    program.run_code(
        """
import threading, torch, torch_xla
def read(i):
    t = torch.full((4,), float(i), device="xla")
    for n in range(30):
        t = t + 1
        t.sum().item()
def look():
    for n in range(30):
        t = torch.ones(n + 1, device="xla") * 2
        torch_xla._XLAC._get_xla_tensors_text([t])
        torch_xla._XLAC._set_current_graph_name(str(n % 2))
threads = [threading.Thread(target=read, args=(i,)) for i in range(3)] + [threading.Thread(target=look)]
[t.start() for t in threads]
for n in range(30):
    torch.ones(2, device="xla") + n
    torch_xla.sync()
[t.join() for t in threads]
""",
        timeout=120,
        PT_XLA_DEBUG_LEVEL="2",
        PT_XLA_DEBUG_FILE="reports",
    )


def test_print_is_named(program):
    code = (
        'import torch, torch_xla\nt = torch.ones(2, device="xla") * 2\nprint(t)\nt.add(1).cpu()\n'
    )
    (program.folder / "train.py").write_text(code)
    text = program.run("train.py", PT_XLA_DEBUG_LEVEL="2").stderr
    reads = [block for block in blocks_of(text) if "Value Read: " in block]
    said = {block[block.index("Value Read: ") + 1].strip() for block in reads}
    assert said == {
        "aten::_to_cpu (print, str() or repr() of a tensor) at train.py:3: print(t)",
        "aten::_to_cpu (.cpu(), .tolist() or .numpy() of a tensor) at train.py:4: t.add(1).cpu()",
    }


def test_steps_of_dynamo_are_named(program):
    code = """
import torch, torch_xla
step = torch.compile(lambda x: x.sin() + 1, backend="openxla")
x = torch.ones(3).to("xla")
for _ in range(3):
    result = step(x)
"""
    (program.folder / "train.py").write_text(code)
    text = program.run("train.py", PT_XLA_DEBUG_LEVEL="2").stderr
    causes = [block[2].strip() for block in of(blocks_of(text), "Execution Analysis")]
    assert causes == ["dynamo is executing a compiled program"] * 3


def test_programs_that_are_remembered_are_few():
    programs = _reports.ProgramBytes()
    for number in range(2 * programs.MOST):
        event = types.SimpleNamespace(
            hash=number, memory={"outputs": number, "aliased": 0, "temporaries": 1}
        )
        programs.note(event)
    known = [graph for graph in range(2 * programs.MOST) if programs.of(graph)]
    assert known == list(range(programs.MOST, 2 * programs.MOST))
    assert programs.of(number) == number + 1


def test_programs_are_appended_to_a_file(program):
    """XLA_SAVE_HLO_FILE: what the environment said at the first compilation counts."""
    output = program.run_code(
        """
import os, torch, torch_xla
(torch.ones(3, device="xla") + 1).cpu()
os.environ["XLA_SAVE_HLO_FILE"] = "other"
(torch.ones(4, device="xla") * 2).cpu()
print(open("programs").read().count("func.func public @main"), os.path.exists("other"))
""",
        XLA_SAVE_HLO_FILE="programs",
    )
    assert output.stdout.split() == ["2", "False"]
