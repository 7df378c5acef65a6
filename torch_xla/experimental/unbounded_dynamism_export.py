"""Passes over graphs of `torch.export` with symbolic sizes, for compilers that want to be told where a size comes from.

Each takes a graph module and changes it in place; call `recompile()` afterwards. `torch_xla.stablehlo` needs none of them: it
records an export with a few sizes and generalizes the programs.
"""

# Parameters have the names that PyTorch/XLA gives them.
# ruff: noqa: N803

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import fx

from torch_xla.experimental import xla_dynamic_reshape_ops as _operators  # noqa: F401, defines two
from torch_xla.utils.stablehlo_test_utils import wrap_func_as_nn_module as wrap_func_as_nn_module

_ATEN = torch.ops.aten
_VIEWS = (_ATEN.view.default, _ATEN.reshape.default, _ATEN._unsafe_view.default)
_TO_THE_END = torch.iinfo(torch.int64).max

# --- Nodes ---


def call_function(
    graph: fx.Graph,
    target: Callable[..., Any],
    args: tuple[Any, ...] = (),
    kwargs: Mapping[str, Any] | None = None,
) -> fx.Node:
    """Adds a call where the graph inserts, and notes what it gives for arguments like those of the graph."""
    node = graph.call_function(target, args, dict(kwargs or {}))
    node.meta["val"] = _run(node)
    return node


def _run(node: fx.Node) -> Any:
    """What a node gives for what its arguments are known to be."""
    args, kwargs = fx.map_arg((node.args, node.kwargs), lambda argument: argument.meta["val"])
    return node.target(*args, **kwargs)


def _shape(node: Any) -> Sequence[int | torch.SymInt]:
    """Of a tensor; nothing of what is none, or is not known."""
    value = node.meta.get("val") if isinstance(node, fx.Node) else None
    return value.shape if isinstance(value, torch.Tensor) else ()


def _is_dynamic(node: Any) -> bool:
    return any(isinstance(size, torch.SymInt) for size in _shape(node))


def _calls(gm: fx.GraphModule, *targets: Any) -> Iterator[fx.Node]:
    gm.graph.eliminate_dead_code()  # of several results those that nobody uses
    for node in list(gm.graph.nodes):
        if node.op == "call_function" and node.target in targets:
            yield node


def _replace(node: fx.Node, new: fx.Node) -> None:
    node.replace_all_uses_with(new)
    node.graph.erase_node(node)


def _size_nodes(graph: fx.Graph, tensor: fx.Node) -> list[int | fx.Node]:
    """The sizes of a tensor, those that vary as nodes."""
    return [
        call_function(graph, _ATEN.sym_size.int, (tensor, i))
        if isinstance(size, torch.SymInt)
        else size
        for i, size in enumerate(_shape(tensor))
    ]


def _finish(gm: fx.GraphModule) -> None:
    gm.graph.eliminate_dead_code()
    gm.graph.lint()


# --- Norms ---


def _normalized(
    x: torch.Tensor, dims: list[int], weight: Any, bias: Any, eps: float
) -> torch.Tensor:
    mean = _ATEN.mean.dim(x, dims, True)
    centred = _ATEN.sub.Tensor(x, mean)
    variance = _ATEN.mean.dim(_ATEN.mul.Tensor(centred, centred), dims, True)
    result = _ATEN.mul.Tensor(centred, _ATEN.rsqrt.default(_ATEN.add.Scalar(variance, eps)))
    if weight is not None:
        result = _ATEN.mul.Tensor(result, weight)
    return result if bias is None else _ATEN.add.Tensor(result, bias)


def native_layer_norm_impl(
    input: torch.Tensor,
    normalized_shape: Sequence[int],
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    eps: float,
) -> torch.Tensor:
    """The first result of `native_layer_norm`, of means and arithmetic, which say no size."""
    return _normalized(input, list(range(-len(normalized_shape), 0)), weight, bias, eps)


def _group_norm(
    x: torch.Tensor,
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    batch: Any,
    channels: int,
    spatial: Sequence[int],
    group: int,
    eps: float,
) -> torch.Tensor:
    """Of a tensor of these sizes, of which the batch's may vary."""
    per_channel = [channels] + [1] * len(spatial)
    weight = None if weight is None else _ATEN.view.default(weight, per_channel)
    bias = None if bias is None else _ATEN.view.default(bias, per_channel)
    if group == channels:
        return _normalized(x, list(range(2, 2 + len(spatial))), weight, bias, eps)
    groups = _ATEN.reshape.default(x, [batch, group, channels // group, *spatial])
    result = _normalized(groups, list(range(2, 3 + len(spatial))), None, None, eps)
    result = _ATEN.reshape.default(result, [batch, channels, *spatial])
    result = result if weight is None else _ATEN.mul.Tensor(result, weight)
    return result if bias is None else _ATEN.add.Tensor(result, bias)


def native_group_norm_impl(
    input: torch.Tensor,
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    N: int,
    C: int,
    HxW: int,
    group: int,
    eps: float,
) -> torch.Tensor:
    """The first result of `native_group_norm`, of means and arithmetic."""
    return _group_norm(input, weight, bias, N, C, input.shape[2:], group, eps)


def native_layer_norm_pattern(
    x: torch.Tensor,
    dim: Sequence[int],
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    eps: float,
) -> torch.Tensor:
    """What `native_layer_norm_impl` stands for."""
    return _ATEN.native_layer_norm.default(x, dim, weight, bias, eps)[0]


def native_group_norm_pattern(
    x: torch.Tensor,
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    N: int,
    C: int,
    HxW: int,
    group: int,
    eps: float,
) -> torch.Tensor:
    """What `native_group_norm_impl` stands for."""
    return _ATEN.native_group_norm.default(x, weight, bias, N, C, HxW, group, eps)[0]


def _inline(node: fx.Node, function: Callable[..., torch.Tensor], *arguments: Any) -> fx.Node:
    """The function's operators before the node. What of the arguments is a node of the graph is traced."""
    traced = fx.Graph()
    tracer = fx.proxy.GraphAppendingTracer(traced)
    proxies = [fx.Proxy(traced.placeholder(f"x{i}"), tracer) for i in range(len(arguments))]
    is_node = [isinstance(argument, fx.Node) for argument in arguments]
    result = function(
        *(p if graph else a for p, a, graph in zip(proxies, arguments, is_node, strict=True))
    )
    places = {
        proxy.node: argument
        for proxy, argument, graph in zip(proxies, arguments, is_node, strict=True)
        if graph
    }
    with node.graph.inserting_before(node):
        for inner in traced.nodes:
            if inner.op != "call_function":
                continue
            args, kwargs = fx.map_arg((inner.args, inner.kwargs), places.__getitem__)
            places[inner] = call_function(node.graph, inner.target, args, kwargs)
    return places[result.node]


def _replace_first_result(
    node: fx.Node, function: Callable[..., torch.Tensor], *arguments: Any
) -> None:
    """Of several results, by the function's; nothing where another one of them is used, too."""
    users = list(node.users)
    if not all(user.target is operator.getitem and user.args[1] == 0 for user in users):
        return
    new = _inline(node, function, *arguments)
    for user in users:
        _replace(user, new)
    node.graph.erase_node(node)


def decompose_dynamic_native_layer_norm(gm: fx.GraphModule) -> None:
    """Makes `native_layer_norm` of a tensor with a size that varies one of means and arithmetic."""
    for node in _calls(gm, _ATEN.native_layer_norm.default):
        x, shape, weight, bias, eps = node.args
        if _is_dynamic(x):
            _replace_first_result(node, native_layer_norm_impl, x, shape, weight, bias, eps)
    _finish(gm)


def decompose_dynamic_native_group_norm(gm: fx.GraphModule) -> None:
    """The same of `native_group_norm`, where the batch's size alone varies."""
    for node in _calls(gm, _ATEN.native_group_norm.default):
        x, weight, bias, batch, channels, _, group, eps = node.args
        spatial = _shape(x)[2:]
        if _is_dynamic(x) and not any(isinstance(size, torch.SymInt) for size in spatial):
            _replace_first_result(
                node, _group_norm, x, weight, bias, batch, channels, spatial, group, eps
            )
    _finish(gm)


# --- Views ---


def decompose_dynamic_shape_select(gm: fx.GraphModule) -> None:
    """Makes `select` of a tensor with a size that varies a slice of one element, viewed without its dimension."""
    for node in _calls(gm, _ATEN.select.int):
        x, dim, index = node.args
        if not _is_dynamic(x):
            continue
        dim %= len(_shape(x))
        with gm.graph.inserting_before(node):
            end = index + 1 if index != -1 else _TO_THE_END
            part = call_function(gm.graph, _ATEN.slice.Tensor, (x, dim, index, end))
            sizes = _size_nodes(gm.graph, x)
            del sizes[dim]
            _replace(node, call_function(gm.graph, _ATEN.view.default, (part, sizes)))
    _finish(gm)


def decompose_split_with_sizes(gm: fx.GraphModule) -> None:
    """Makes `split_with_sizes` slices, named after it, where nothing but its parts is used."""
    for node in _calls(gm, _ATEN.split_with_sizes.default):
        x, sizes, dim = (*node.args, 0)[:3]
        users = list(node.users)
        if not all(user.target is operator.getitem for user in users):
            continue
        if any(isinstance(size, fx.Node) for size in sizes):
            continue
        for user in users:
            part = user.args[1] % len(sizes)
            start = sum(sizes[:part])
            arguments = (x, dim, start, start + sizes[part])
            with gm.graph.inserting_before(user):
                new = gm.graph.create_node(
                    "call_function", _ATEN.slice.Tensor, arguments, name=f"{node.name}_part{part}"
                )
            new.meta["val"] = _run(new)
            _replace(user, new)
        gm.graph.erase_node(node)
    _finish(gm)


def flatten_embedding_indices_tensor(gm: fx.GraphModule) -> None:
    """Looks embeddings up with indices of one dimension, where theirs have sizes that vary."""
    for node in _calls(gm, _ATEN.embedding.default):
        weight, indices, *rest = node.args
        if len(_shape(indices)) < 2 or not _is_dynamic(indices):
            continue
        with gm.graph.inserting_before(node):
            flat = call_function(gm.graph, _ATEN.reshape.default, (indices, [-1]))
            rows = call_function(gm.graph, node.target, (weight, flat, *rest))
            sizes = [*_size_nodes(gm.graph, indices), _shape(weight)[1]]
            _replace(node, call_function(gm.graph, _ATEN.reshape.default, (rows, sizes)))
    _finish(gm)


def remove_no_op_slice(gm: fx.GraphModule) -> None:
    """Removes slices from the first element to the last."""
    for node in _calls(gm, _ATEN.slice.Tensor):
        x, _, start, end, step = (*node.args, *(0, None, None, 1)[len(node.args) - 1 :])
        if start in (0, None) and end in (_TO_THE_END, None) and step == 1:
            _replace(node, x)
    _finish(gm)


def dynamic_unsqueeze_to_view(gm: fx.GraphModule) -> None:
    """Makes `unsqueeze` of a tensor with a size that varies a view."""
    for node in _calls(gm, _ATEN.unsqueeze.default):
        x, dim = node.args
        if not _is_dynamic(x):
            continue
        with gm.graph.inserting_before(node):
            sizes = _size_nodes(gm.graph, x)
            sizes.insert(dim % (len(sizes) + 1), 1)
            _replace(node, call_function(gm.graph, _ATEN.view.default, (x, sizes)))
    _finish(gm)


def _source_of(
    node: fx.Node, size: torch.SymInt, nearest: fx.Node
) -> tuple[fx.Node, int, int] | None:
    """A tensor made before the node, one of its dimensions, and the factor that makes its size the wanted one."""
    before = []
    for other in node.graph.nodes:
        if other is node:
            break
        before.append(other)
    for tensor in (nearest, *before):
        for dim, other_size in enumerate(_shape(tensor)):
            if not isinstance(other_size, torch.SymInt):
                continue
            factor = size.node.expr / other_size.node.expr
            if factor.is_Integer and factor > 0:
                return tensor, dim, int(factor)
    return None


def _replace_by_dynamic(
    gm: fx.GraphModule, targets: tuple[Any, ...], make: Callable[..., fx.Node | None]
) -> None:
    """Each call whose result has one size that varies by what `make` makes of it and of where the size comes from."""
    for node in _calls(gm, *targets):
        sizes = list(_shape(node))
        varying = [i for i, size in enumerate(sizes) if isinstance(size, torch.SymInt)]
        if len(varying) != 1:
            continue
        (target,) = varying
        source = _source_of(node, sizes[target], node.args[0])
        if source is None:
            continue
        sizes[target] = -1
        with gm.graph.inserting_before(node):
            new = make(node, sizes, source, target)
        if new is not None:
            _replace(node, new)
    _finish(gm)


def replace_dynamic_expand_with_xla_op(gm: fx.GraphModule) -> None:
    """Makes `expand` to one size that varies `xla::dynamic_expand`, which names the tensor that has the size."""

    def make(node: fx.Node, sizes: list[int], source: Any, target: int) -> fx.Node | None:
        tensor, dim, factor = source
        x = node.args[0]
        place = target - (len(sizes) - len(_shape(x)))
        is_expanded = place < 0 or not isinstance(_shape(x)[place], torch.SymInt)
        # A dimension that varies already stays: it has no other tensor's size.
        if factor != 1 or (not is_expanded and tensor is x and dim != place):
            return None
        expand = torch.ops.xla.dynamic_expand.default
        return call_function(gm.graph, expand, (x, sizes, tensor, dim, target))

    _replace_by_dynamic(gm, (_ATEN.expand.default,), make)


def replace_dynamic_view_with_xla_op(gm: fx.GraphModule) -> None:
    """Makes views with one size that varies `xla::dynamic_view`, which names the tensor that has the size, or a part of it."""

    def make(node: fx.Node, sizes: list[int], source: Any, target: int) -> fx.Node:
        tensor, dim, factor = source
        view = torch.ops.xla.dynamic_view.default
        return call_function(gm.graph, view, (node.args[0], sizes, tensor, dim, target, factor))

    _replace_by_dynamic(gm, _VIEWS, make)


# --- Exported programs ---


def exported_program_has_symbolic_input_shape(ep: torch.export.ExportedProgram) -> bool:
    """Whether a size of an argument may vary."""
    return any(_is_dynamic(node) for node in ep.graph.nodes if node.op == "placeholder")


def process_exported_program_with_symbolic_input(ep: torch.export.ExportedProgram) -> None:
    """All of these passes, in an order in which each finds what the others make."""
    for change in (
        flatten_embedding_indices_tensor,
        decompose_split_with_sizes,
        decompose_dynamic_shape_select,
        remove_no_op_slice,
        decompose_dynamic_native_layer_norm,
        decompose_dynamic_native_group_norm,
        dynamic_unsqueeze_to_view,
        replace_dynamic_expand_with_xla_op,
        replace_dynamic_view_with_xla_op,
    ):
        change(ep.graph_module)
    ep.graph_module.recompile()
