"""The first difference between two graphs, as a sentence."""

import pytest

from torch_xla.debug.what_changed import Graph, History, Location, Node
from torch_xla.debug.what_changed import difference as change_between

PROGRAM = """\
def step(x, scale, deep):
    x = x * scale
    if deep:
        x = x.relu()
    else:
        x = x.tanh()
    for _ in range(3):
        x = x + 1
    return x.sum()
"""


@pytest.fixture
def at(tmp_path, monkeypatch):
    """Where a line of the program is."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(PROGRAM)
    return lambda line, backward=False: Location(str(tmp_path / "train.py"), line, "step", backward)


def difference(new, old):
    return str(change_between(new, old))


def leaf(shape="f32[64,128]", name=""):
    return Node("xla::device_data", "", (shape,), (), None, name)


def operation(kind, location, *operands, attributes="", shape="f32[64,128]"):
    return Node(f"aten::{kind}", attributes, (shape,), tuple((i, 0) for i in operands), location)


def test_shape_of_an_argument(at):
    def graph(n):
        shape = f"f32[64,{n}]"
        x = leaf(shape, "argument `x` of `step`")
        return Graph((x, leaf(), operation("mul", at(2), 0, 1, shape=shape)), ((2, 0),))

    assert difference(graph(128), graph(117)) == (
        "argument `x` of `step`, train.py:2: shape [64, 128] was [64, 117]"
    )


def test_type_of_an_argument_without_a_name(at):
    graphs = [
        Graph((leaf(shape), operation("mul", at(2), 0)), ((1, 0),))
        for shape in ("bf16[3]", "f32[3]")
    ]
    assert difference(*graphs) == "an argument, train.py:2, taken by `mul`: type bf16 was f32"


def test_a_scalar_that_is_no_data(at):
    graphs = [
        Graph((leaf(), operation("dropout", at(2), 0, attributes=f"[1, 2], {p}, true")), ((1, 0),))
        for p in ("0.300000", "0.100000")
    ]
    assert difference(*graphs) == "scalar 0.300000 was 0.100000 in `dropout`, train.py:2"
    graphs = [
        Graph((operation("full", at(2), attributes=f"[4, {n}], 0"),), ((0, 0),)) for n in (5, 6)
    ]
    assert difference(*graphs) == "constant [4, 5] was [4, 6] in `full`, train.py:2"


def test_an_index(at):
    def graph(i, j, varies=()):
        indices = tuple(Node("xla::index", str(n), ("s64[]",)) for n in (i, j))
        parts = operation("read_view", at(2), 0, 1), operation("roll", at(9), 3, 2)
        return Graph((leaf(), *indices, *parts), ((4, 0),), varies=varies)

    first, second = graph(0, 3), graph(10, 3, (True, False))
    assert difference(second, first) == (
        "index 10 was 0 in `view`, train.py:2; from now on it is an argument"
    )
    # The other one has varied before.
    assert difference(graph(20, 4, (True, True)), second) == (
        "index 4 was 3 in `roll`, train.py:9; from now on it is an argument"
    )
    assert difference(graph(10, 3), first) == "index 10 was 0 in `view`, train.py:2"


def test_a_branch(at):
    def graph(kind, line):
        return Graph((leaf(), operation("mul", at(2), 0), operation(kind, at(line), 1)), ((2, 0),))

    relu, tanh = graph("relu", 4), graph("tanh", 6)
    assert difference(relu, tanh) == "branch at train.py:3 took the other side"
    assert difference(tanh, relu) == "branch at train.py:3 took the other side"
    neither = Graph((leaf(), operation("mul", at(2), 0)), ((1, 0),))
    assert difference(relu, neither) == "branch at train.py:3 was taken, and was not before"
    assert difference(neither, relu) == "branch at train.py:3 was not taken, and was before"


def test_the_forward_difference_comes_before_that_of_its_gradient(at):
    def graph(kind, line):
        gradient = operation(f"{kind}_backward", at(line, backward=True), 0)
        return Graph((leaf(), gradient, operation(kind, at(line), 0)), ((1, 0),))

    assert "branch at train.py:3" in difference(graph("relu", 4), graph("tanh", 6))


def test_a_loop(at):
    def graph(times):
        return Graph((leaf(), *(operation("add", at(8), i) for i in range(times))), ((times, 0),))

    assert difference(graph(5), graph(3)) == (
        "loop at train.py:7 ran another number of times: `add`, train.py:8 is recorded 5 times, 3 before"
    )


def test_a_new_operator(at):
    short = Graph((leaf(), operation("mul", at(2), 0)), ((1, 0),))
    long = Graph((*short.nodes, operation("sum", at(9), 1)), ((2, 0),))
    assert difference(long, short) == "new operator `sum`, train.py:9"
    assert difference(short, long) == "operator `sum`, train.py:9 is gone"
    other = Graph((*short.nodes, operation("mean", at(9), 1)), ((2, 0),))
    assert difference(other, long) == "operator `mean`, train.py:9, where `sum`, train.py:9 was"


def test_results_and_arguments_that_are_held(at):
    nodes = (leaf(), operation("mul", at(2), 0), operation("sum", at(9), 1))
    one, two = Graph(nodes, ((2, 0),)), Graph(nodes, ((1, 0), (2, 0)))
    assert difference(two, one) == (
        "the same operators, but 2 results are kept, 1 before: new is that of `mul`, train.py:2"
    )
    assert "2 results are kept" not in difference(one, two) and "1 results" in difference(one, two)
    held = Graph(nodes, ((2, 0),), donations=0)
    assert "0 arguments may be overwritten, 3 before" in difference(
        held, held._replace(donations=3)
    )
    assert "nothing in the graph" in difference(held, held)


def test_the_nearest_graph_is_compared(at):
    def graph(n, count):
        nodes = [leaf(f"f32[{n}]", "argument `x` of `step`")]
        nodes += [operation("add", at(8), i, shape=f"f32[{n}]") for i in range(count)]
        return Graph(tuple(nodes), ((count, 0),))

    history = History()
    assert history.add(graph(4, 9)) is None
    assert history.add(graph(4, 2)).kind == "loop"
    # Nearer to the first than to the one just before.
    assert str(history.add(graph(5, 9))).endswith("shape [5] was [4]")


def test_another_program_is_not_compared(at):
    history = History()
    history.add(Graph((leaf(), operation("mul", at(2), 0)), ((1, 0),)))
    other = Graph((leaf("f32[2]"), operation("tanh", at(6), 0), operation("sum", at(9), 1)))
    assert str(history.add(other)) == "everything: no graph before is like this one"


def test_a_file_that_is_gone_is_no_error(at, tmp_path):
    (tmp_path / "train.py").unlink()
    graphs = [Graph((leaf(), operation(k, at(4), 0)), ((1, 0),)) for k in ("relu", "abs")]
    assert difference(*graphs) == "operator `relu`, train.py:4, where `abs`, train.py:4 was"


CALLER = """\
import layers

def train(x, deep):
    for _ in range(2):
        if deep:
            x = layers.block(x)
        x = layers.stack(x)
    return x
"""
LAYERS = """\
def block(x):
    return x.relu()

def stack(x):
    for layer in range(4):
        x = x.tanh()
    return x
"""


@pytest.fixture
def calls(tmp_path, monkeypatch):
    """An operation of layers.py that train.py calls."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(CALLER)
    (tmp_path / "layers.py").write_text(LAYERS)

    def make(kind, line, called_at, operand=0):
        where = Location(str(tmp_path / "layers.py"), line, "block")
        return operation(kind, where, operand)._replace(
            callers=((str(tmp_path / "train.py"), called_at),)
        )

    return make


def test_a_branch_in_another_file_than_its_operations(calls):
    always = calls("tanh", 6, 7)
    deep = Graph((leaf(), calls("relu", 2, 6), always), ((2, 0),))
    shallow = Graph((leaf(), always), ((1, 0),))
    assert difference(deep, shallow) == "branch at train.py:5 was taken, and was not before"
    assert difference(shallow, deep) == "branch at train.py:5 was not taken, and was before"


def test_a_loop_is_the_innermost_one_of_the_same_calls(calls):
    def graph(*nodes):
        return Graph((leaf(), *nodes), ((len(nodes), 0),))

    layer = calls("tanh", 6, 7)
    assert "loop at layers.py:5 ran" in difference(graph(layer, layer, layer), graph(layer))
    # Called once more from elsewhere.
    elsewhere = calls("tanh", 6, 8)
    assert difference(graph(layer, elsewhere), graph(layer)).startswith("new operator `tanh`")


@pytest.mark.usefixtures("programs_only")
def test_callers_are_noted(program):
    (program.folder / "layers.py").write_text(LAYERS)
    (program.folder / "train.py").write_text(
        CALLER
        + """
import torch, torch_xla
x = torch.ones(3, device="xla")
y = train(x, False)
torch_xla.sync()
y = train(x, True)
torch_xla.sync()
"""
    )
    said = program.run("train.py", PT_XLA_DEBUG_LEVEL="1").stderr
    assert "branch at train.py:5 was taken, and was not before" in said
