"""Why a graph was compiled although a nearly equal one had been: the first difference, in the terms of the user's program."""

import ast
import collections
import functools
import os
import pathlib
from collections.abc import Iterator
from typing import NamedTuple

DATA, SCALAR, INDEX = LEAVES = ("xla::device_data", "prim::Constant", "xla::index")


class Location(NamedTuple):
    """A line of the user's program. `is_backward`: the gradient of what stands there."""

    file: str
    line: int
    function: str
    is_backward: bool = False

    def __str__(self) -> str:
        return place(self.file, self.line)


class Node(NamedTuple):
    """A recorded operation, or a leaf: a tensor or a number that the program takes, or an index.

    `attributes`: of an index its value.
    `callers`: the user's lines that called where it was recorded, (file, line), the nearest first.
    """

    kind: str
    attributes: str
    shapes: tuple[str, ...]
    operands: tuple[tuple[int, int], ...] = ()
    location: Location | None = None
    name: str = ""
    callers: tuple[tuple[str, int], ...] = ()

    @property
    def lines(self) -> tuple[tuple[str, int], ...]:
        """From the outermost call to where it was recorded."""
        if self.location is None:
            return ()
        return (*reversed(self.callers), (self.location.file, self.location.line))

    @property
    def operator(self) -> str:
        """What the user calls it: `aten::add` is add, and parts of tensors are views."""
        name = self.kind.partition("::")[2]
        return {"read_view": "view", "write_view": "write to a view"}.get(name, name)


class Graph(NamedTuple):
    """What was compiled: all nodes, operands before users; which of them are results; how many arguments it may overwrite.

    `varies`: which of the indices, in their order, the program takes as arguments; empty: none of them.
    """

    nodes: tuple[Node, ...]
    results: tuple[tuple[int, int], ...] = ()
    donations: int = 0
    name: str = ""
    varies: tuple[bool, ...] = ()


# Graphs are compared that have this share of their lines in common.
_ALIKE = 0.3


class Change(NamedTuple):
    """A difference between two graphs; `str` makes it a sentence.

    `kind` is what is different: "argument", the shape or type of what the program takes; "constant", a number that decides
    the program; "index", where a part begins, a selected index, a shift; "branch", "loop", a statement of the user's went
    another way; "operator", other operations are recorded; "use", the same operations take other values; "results", other
    values are kept; "donation", other arguments may be overwritten; "options", nothing in the graph; "everything", no graph
    before is like this one. `location`: where that is in the user's program, if that is known.
    """

    kind: str
    text: str
    location: Location | None = None

    def __str__(self) -> str:
        return self.text


class History:
    """The latest graphs that were compiled."""

    def __init__(self, most: int = 64) -> None:
        self._graphs: collections.deque[tuple[Graph, collections.Counter]] = collections.deque(
            maxlen=most
        )

    def add(self, graph: Graph) -> Change | None:
        """Remembers a graph. What is different from the nearest one before it; None if it is the first."""
        kinds = collections.Counter(_token(node) for node in graph.nodes if _is_operator(node))
        nearest: Graph | None = None
        best = 0.0
        # The latest of equally near ones.
        for other, other_kinds in self._graphs:
            # Other lines make another program; the same lines run another number of times do not.
            shared = len(kinds.keys() & other_kinds.keys())
            is_alike = shared >= _ALIKE * max(len(kinds), len(other_kinds))
            common = (kinds & other_kinds).total() / max(kinds.total(), other_kinds.total(), 1)
            if is_alike and other.name == graph.name and common >= best:
                best, nearest = common, other
        is_first = not self._graphs
        self._graphs.append((graph, kinds))
        if is_first:
            return None
        if nearest is None:
            return Change("everything", "everything: no graph before is like this one")
        return difference(graph, nearest)


def place(file: str, line: int) -> str:
    """`train.py:41`; files below the current folder by their path from there."""
    with_folder = pathlib.Path(file)
    try:
        return f"{with_folder.relative_to(os.getcwd())}:{line}"
    except ValueError:
        return f"{file}:{line}"


def difference(new: Graph, old: Graph) -> Change:
    """The first difference that explains why `new` is not `old`."""
    structure = _different_operators(new, old)
    if structure is not None:
        return structure
    for find in (_different_leaf, _different_attributes, _different_index, _different_use):
        found = find(new, old)
        if found is not None:
            return found
    return _different_results(new, old)


# --- The same operators ---


def _pairs(new: Graph, old: Graph, is_leaf: bool) -> Iterator[tuple[Node, Node]]:
    def chosen(graph: Graph) -> list[Node]:
        return [node for node in graph.nodes if (node.kind in LEAVES) == is_leaf]

    return zip(chosen(new), chosen(old), strict=False)


def _different_leaf(new: Graph, old: Graph) -> Change | None:
    differing = [
        (now, before) for now, before in _pairs(new, old, True) if now.shapes != before.shapes
    ]
    if not differing:
        return None
    # A number has no name.
    tensors = [pair for pair in differing if pair[0].kind == DATA]
    now, before = (tensors or differing)[0]
    more = f" (and {len(differing) - 1} more)" if len(differing) > 1 else ""
    user = _first_user(new, now)
    return Change(
        "argument",
        f"{_leaf_text(now, user)}: {_shape_text(now, before)}{more}",
        user.location if user is not None else None,
    )


def _first_user(graph: Graph, leaf: Node) -> Node | None:
    position = next(i for i, node in enumerate(graph.nodes) if node is leaf)
    return next(
        (node for node in graph.nodes if any(at == position for at, _ in node.operands)), None
    )


def _leaf_text(leaf: Node, user: Node | None) -> str:
    if leaf.name not in ("", "?"):
        return leaf.name + (f", {user.location}" if user is not None and user.location else "")
    what = "a number" if leaf.kind == SCALAR else "an argument"
    return what + (f"{_at(user)}, taken by `{user.operator}`" if user is not None else "")


def _shape_text(now: Node, before: Node) -> str:
    type_now, shape_now = _split_shape(now.shapes[0])
    type_before, shape_before = _split_shape(before.shapes[0])
    parts = []
    if shape_now != shape_before:
        parts.append(f"shape {shape_now} was {shape_before}")
    if type_now != type_before:
        parts.append(f"type {type_now} was {type_before}")
    return ", ".join(parts)


def _split_shape(text: str) -> tuple[str, str]:
    element_type, _, dimensions = text.partition("[")
    return element_type, "[" + dimensions.rstrip("]").replace(",", ", ") + "]"


def _different_attributes(new: Graph, old: Graph) -> Change | None:
    for now, before in _pairs(new, old, False):
        if now.attributes == before.attributes:
            continue
        changed = [
            f"{a} was {b}"
            for a, b in zip(_values(now.attributes), _values(before.attributes), strict=False)
            if a != b
        ]
        text = changed[0] if changed else f"({now.attributes}) was ({before.attributes})"
        kind = "scalar" if changed and not text.startswith("[") else "constant"
        return Change("constant", f"{kind} {text} in `{now.operator}`{_at(now)}", now.location)
    return None


def _different_index(new: Graph, old: Graph) -> Change | None:
    """Of the indices that were constants of the old program."""
    indices, indices_before = (
        [node for node in graph.nodes if node.kind == INDEX] for graph in (new, old)
    )
    if len(indices) != len(indices_before):
        return None
    varied = old.varies or (False,) * len(indices)
    for now, before, did_vary in zip(indices, indices_before, varied, strict=True):
        if did_vary or now.attributes == before.attributes:
            continue
        user = _first_user(new, now)
        where = f" in `{user.operator}`{_at(user)}" if user is not None else ""
        more = "; from now on it is an argument" if any(new.varies) else ""
        return Change(
            "index",
            f"index {now.attributes} was {before.attributes}{where}{more}",
            user.location if user is not None else None,
        )
    return None


def _values(attributes: str) -> list[str]:
    """The attributes of the text, which separates them by commas; lists stay whole."""
    values, depth = [""], 0
    for character in attributes:
        depth += (character in "[(") - (character in "])")
        if character == "," and depth == 0:
            values.append("")
        else:
            values[-1] += character
    return [value.strip() for value in values]


def _different_use(new: Graph, old: Graph) -> Change | None:
    if len(new.nodes) != len(old.nodes):
        return Change(
            "use",
            f"other numbers or tensors are used: {_count(new, DATA)} tensors and "
            f"{_count(new, SCALAR)} numbers, {_count(old, DATA)} and {_count(old, SCALAR)} before",
        )
    for now, before in zip(new.nodes, old.nodes, strict=True):
        if now.operands != before.operands:
            return Change("use", f"`{now.operator}`{_at(now)} takes another value", now.location)
        if now.shapes != before.shapes:
            text = f"result of `{now.operator}`{_at(now)}: {_shape_text(now, before)}"
            return Change("use", text, now.location)
    return None


def _count(graph: Graph, kind: str) -> int:
    return sum(node.kind == kind for node in graph.nodes)


def _different_results(new: Graph, old: Graph) -> Change:
    added = [at for at in new.results if at not in set(old.results)]
    if new.results != old.results:
        counts = f"{len(new.results)} results are kept, {len(old.results)} before"
        if not added:
            return Change("results", f"the same operators, but {counts}")
        node = new.nodes[added[0][0]]
        text = f"the same operators, but {counts}: new is that of `{node.operator}`{_at(node)}"
        return Change("results", text, node.location)
    if new.donations != old.donations:
        return Change(
            "donation",
            f"the same operators, but {new.donations} arguments may be overwritten, {old.donations} before: "
            "the program holds a tensor that it did not hold, or the other way round",
        )
    return Change(
        "options",
        "nothing in the graph: an option of the compiler or of the precision is another, or the program was dropped "
        "from the cache (XLA_COMPILATION_CACHE_SIZE)",
    )


# --- Other operators ---


def _different_operators(new: Graph, old: Graph) -> Change | None:
    for is_relevant in (_is_forward, _is_operator):
        now = [node for node in new.nodes if is_relevant(node)]
        before = [node for node in old.nodes if is_relevant(node)]
        if [_token(node) for node in now] != [_token(node) for node in before]:
            return _first_other_operator(now, before)
    return None


def _is_operator(node: Node) -> bool:
    return node.kind not in LEAVES


def _is_forward(node: Node) -> bool:
    return _is_operator(node) and node.location is not None and not node.location.is_backward


def _token(node: Node) -> tuple[str, Location | None]:
    return node.kind, node.location


def _first_other_operator(now: list[Node], before: list[Node]) -> Change:
    added, gone = _middles([_token(n) for n in now], [_token(n) for n in before])
    first_now = now[added.start] if len(added) else None
    first_before = before[gone.start] if len(gone) else None
    # What a branch has recorded may have made work before it necessary.
    for nodes, places, others, is_new in ((now, added, before, True), (before, gone, now, False)):
        lines = _lines_by_file(others)
        for i in places:
            branch = _branch(nodes[i], lines, is_new)
            if branch is not None:
                return branch
    loop = _loop(first_now or first_before, now, before)
    if loop is not None:
        return loop
    if first_before is None:
        assert first_now is not None
        text = f"new operator `{first_now.operator}`{_at(first_now)}{_more(added)}"
        return Change("operator", text, first_now.location)
    if first_now is None:
        text = f"operator `{first_before.operator}`{_at(first_before)} is gone{_more(gone)}"
        return Change("operator", text, first_before.location)
    return Change(
        "operator",
        f"operator `{first_now.operator}`{_at(first_now)}, where `{first_before.operator}`{_at(first_before)} was"
        f"{_more(added)}",
        first_now.location,
    )


def _middles(now: list, before: list) -> tuple[range, range]:
    """What lies between the common beginning and the common end."""
    start = 0
    while start < min(len(now), len(before)) and now[start] == before[start]:
        start += 1
    end = 0
    while end < min(len(now), len(before)) - start and now[-1 - end] == before[-1 - end]:
        end += 1
    return range(start, len(now) - end), range(start, len(before) - end)


def _more(added: range) -> str:
    return f" (and {len(added) - 1} more)" if len(added) > 1 else ""


def _at(node: Node) -> str:
    if node.location is None:
        return ""
    return f", {node.location}" + (" (its gradient)" if node.location.is_backward else "")


# --- The statements around a line ---

_Lines = dict[str, set[int]]
"""Of each file those that have recorded something, or called who has."""


@functools.lru_cache(maxsize=256)
def _statements(file: str) -> tuple[ast.AST, ...]:
    """The branches and loops of a file; none if it cannot be read."""
    try:
        tree = ast.parse(pathlib.Path(file).read_bytes())
    except (OSError, SyntaxError, ValueError):
        return ()
    # The sides of a conditional expression mostly stand on one line, where they cannot be told apart.
    return tuple(node for node in ast.walk(tree) if isinstance(node, (ast.If, ast.For, ast.While)))


def _side(statement: ast.AST, line: int) -> str | None:
    """The side of an `if` that a line stands on; None outside of both."""
    for side in ("body", "orelse"):
        part = getattr(statement, side)
        for node in part if isinstance(part, list) else [part]:
            if node.lineno <= line <= (node.end_lineno or node.lineno):
                return side
    return None


def _branch(node: Node, others: _Lines, is_new: bool) -> Change | None:
    """Whether a node, or a call that led to it, stands on a side of an `if` on which the other graph has recorded nothing."""
    for file, line in node.lines:
        # From the outermost to the innermost.
        for statement in _of_type(file, (ast.If,)):
            side = _side(statement, line)
            if side is None or _is_on(others, file, statement, side):
                continue
            other_side = "orelse" if side == "body" else "body"
            if _is_on(others, file, statement, other_side) or side == "orelse":
                what = "took the other side"
            else:
                what = (
                    "was taken, and was not before" if is_new else "was not taken, and was before"
                )
            where = _start(file, statement, node)
            return Change("branch", f"branch at {where} {what}", where)
    return None


def _start(file: str, statement: ast.AST, node: Node) -> Location:
    assert node.location is not None and isinstance(statement, ast.stmt)
    return Location(
        file, statement.lineno, node.location.function if file == node.location.file else ""
    )


def _of_type(file: str, types: tuple[type, ...]) -> list[ast.AST]:
    return [statement for statement in _statements(file) if isinstance(statement, types)]


def _lines_by_file(nodes: list[Node]) -> _Lines:
    lines: _Lines = collections.defaultdict(set)
    for node in nodes:
        for file, line in node.lines:
            lines[file].add(line)
    return lines


def _is_on(others: _Lines, file: str, statement: ast.AST, side: str) -> bool:
    return any(_side(statement, line) == side for line in others.get(file, ()))


def _loop(node: Node | None, now: list[Node], before: list[Node]) -> Change | None:
    """Whether the same lines of a loop's body ran another number of times."""
    if node is None or node.location is None:
        return None
    paths, paths_before = (
        [other.lines for other in nodes if _token(other) == _token(node)] for nodes in (now, before)
    )
    times, times_before = len(paths), len(paths_before)
    # A call from elsewhere is no turn of a loop.
    if times == times_before or set(paths) != set(paths_before):
        return None
    for file, line in reversed(node.lines):
        for statement in reversed(_of_type(file, (ast.For, ast.While))):
            if _side(statement, line) != "body":
                continue
            where = _start(file, statement, node)
            return Change(
                "loop",
                f"loop at {where} ran another number of times: `{node.operator}`{_at(node)} is recorded {times} times, "
                f"{times_before} before",
                where,
            )
    return None
