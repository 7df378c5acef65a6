"""`scan`: a function over the leading dimension of tensors as one loop of the program, with gradients.

The function is traced once, forward and backward. The loop over the forward part keeps what the backward part needs of each
run; the gradient is a loop over these from the last run to the first.
"""

import weakref
from collections.abc import Callable, Sequence
from typing import Any

import torch
from functorch.compile import default_partition
from torch import fx
from torch._functorch.aot_autograd import aot_export_joint_simple
from torch._higher_order_ops.scan import scan_op
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.autograd.function import once_differentiable
from torch.utils._python_dispatch import is_traceable_wrapper_subclass
from torch.utils._pytree import tree_flatten, tree_unflatten

from torch_xla import _control_flow, _recordings, _tracing

PyTree = Any
Unflatten = Callable[[Sequence[Any]], PyTree]

# Of pure functions: {function: {(what it was traced for, partition function): (forward, alias_input, backward)}}.
_SCAN_COMPUTATION_CACHE: weakref.WeakKeyDictionary[Any, dict[Any, Any]] = (
    weakref.WeakKeyDictionary()
)
# Of the others, by what they record.
_KNOWN = _recordings.Known()


def scan(
    fn: Callable[[PyTree, PyTree], tuple[PyTree, PyTree]],
    init: PyTree,
    xs: PyTree,
    partition_fn: Callable[..., tuple[fx.GraphModule, fx.GraphModule]] = default_partition,
    is_fn_pure: bool = False,
) -> tuple[PyTree, PyTree]:
    """Applies `fn` to each element of `xs` along its first dimension, with a value that is carried from one to the next.

    It means the same as

        carry, ys = init, []
        for x in zip(xs):  # each leaf's element
            carry, y = fn(carry, x)
            ys.append(y)
        return carry, stack(ys)

    but the program has the function once, however long `xs` is.

    Args:
      fn: takes the carry and one element, and gives the next carry, of the same structure, shapes and dtypes, and y. It may
        draw random numbers, which differ in each run; it may neither write into its arguments nor use tensors that are no
        arguments.
      init: the first carry: tensors in any structure, with None for what is missing.
      xs: tensors in any structure, of one first dimension.
      partition_fn: what to keep for backward: `functorch.compile.default_partition` keeps everything, and
        `min_cut_rematerialization_partition` computes some of it again.
      is_fn_pure: whether `fn` depends on nothing but its arguments, so that it is called for the first of all calls with
        such arguments only. Otherwise it is called each time, and traced where it does not do what it did before.

    Returns:
      The last carry, and the ys of all runs, stacked.

    Raises:
      ValueError: for `fn` that is no function, tensors of different first dimensions, or no tensor in `xs`; for a carry that
        changes its structure, shape or dtype.
      RuntimeError, AssertionError: for a function that writes into its arguments where gradients are asked for (without,
        it has copies of its own), or uses other tensors.
    """
    if not callable(fn):
        raise ValueError(f"scan: fn is to be a function of a carry and an element, and is {fn!r}")
    leaves = [*_tensors(init, "init"), *_tensors(xs, "xs")]
    length = _common_length(_tensors(xs, "xs"))
    if any(is_traceable_wrapper_subclass(leaf) or _tracing.is_traced(leaf) for leaf in leaves):
        return _scan_in_trace(fn, init, xs)
    forward, _, _ = value_and_grad_partitioned(fn, init, xs, partition_fn, is_fn_pure)
    step = forward.__self__  # type: ignore[attr-defined]
    return step.unflatten_results(_Scan.apply(step, length, *leaves))


def value_and_grad_partitioned(
    fn: Callable[[PyTree, PyTree], tuple[PyTree, PyTree]],
    init: PyTree,
    xs: PyTree,
    partition_fn: Callable[..., tuple[fx.GraphModule, fx.GraphModule]] = default_partition,
    is_fn_pure: bool = False,
) -> tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any]]:
    """`fn` and its gradient as three functions, traced for `init` and one element of `xs`; see `scan`.

    Returns:
      forward: `(carry, x) -> (new_carry, (y, partial_activations))`.
      alias_input: `(partial_activations, x) -> activations`: with those that are x itself, which need not be kept twice.
      backward: `(grad_new_carry, (grad_y, activations)) -> (grad_carry, grad_x)`.
    """
    carries, xs_leaves = _tensors(init, "init"), _tensors(xs, "xs")
    _common_length(xs_leaves)
    differentiable = torch.is_grad_enabled() and any(
        leaf.requires_grad for leaf in (*carries, *xs_leaves)
    )
    # A carry comes to depend on whatever needs a gradient.
    needs_grad = [differentiable and _is_continuous(leaf) for leaf in carries]
    needs_grad += [differentiable and leaf.requires_grad for leaf in xs_leaves]
    like = [torch.empty(leaf.shape, dtype=leaf.dtype, device="meta") for leaf in carries]
    like += _control_flow.slices_like(xs_leaves)
    device = leaves_device(carries, xs_leaves)

    if not is_fn_pure:
        fn = _recordings.Repeatable(fn)

    def make() -> tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any]]:
        step = _Step(fn, init, xs, like, device, needs_grad, partition_fn)
        return step.forward, step.alias_input, step.backward

    key = (
        tuple((tuple(leaf.shape), leaf.dtype) for leaf in like),
        tuple(needs_grad),
        tree_structure(init),
        tree_structure(xs),
        device,
        _tracing.autocast_state(),
        partition_fn,
    )
    if not is_fn_pure:
        flat = _told(_of_leaves(fn, init, xs, any(needs_grad)))
        return _KNOWN.get(key, lambda: _recordings.record(flat, device, like, needs_grad), make)
    known = _SCAN_COMPUTATION_CACHE.setdefault(fn, {})
    if key not in known:
        known[key] = make()
    return known[key]


def tree_flatten_none(pytree: PyTree) -> tuple[list[Any], Unflatten]:
    """The leaves that are not None, and the function that puts such leaves back among the Nones."""
    leaves, spec = tree_flatten(pytree)
    present = [leaf is not None for leaf in leaves]

    def unflatten(values: Sequence[Any]) -> PyTree:
        rest = iter(values)
        return tree_unflatten([next(rest) if is_ else None for is_ in present], spec)

    return [leaf for leaf in leaves if leaf is not None], unflatten


def tree_structure(tree: PyTree) -> tuple[Any, tuple[bool, ...]]:
    """What two trees have in common whose leaves stand, or are missing, at the same places."""
    leaves, spec = tree_flatten(tree)
    return spec, tuple(leaf is None for leaf in leaves)


def leaves_device(*groups: Sequence[torch.Tensor]) -> torch.device:
    """The device of the first tensor that is on xla.

    Raises:
      ValueError: where none is.
    """
    for group in groups:
        for leaf in group:
            if leaf.device.type == "xla":
                return leaf.device
    raise ValueError("scan: none of the tensors is on xla")


def _of_leaves(
    fn: Callable[..., Any], init: PyTree, xs: PyTree, has_gradients: bool
) -> Callable[..., tuple[PyTree, PyTree]]:
    """`fn` of leaves. Without gradients it has copies to write into."""
    carries, unflatten_carry = tree_flatten_none(init)
    _, unflatten_x = tree_flatten_none(xs)

    def of_leaves(*leaves: torch.Tensor) -> tuple[PyTree, PyTree]:
        own = leaves if has_gradients else tuple(leaf.clone() for leaf in leaves)
        return fn(unflatten_carry(own[: len(carries)]), unflatten_x(own[len(carries) :]))

    return of_leaves


def _told(
    function: Callable[..., tuple[PyTree, PyTree]],
) -> Callable[..., tuple[list[torch.Tensor], Any]]:
    """What the function gives as leaves, and their structures."""

    def told(*leaves: torch.Tensor) -> tuple[list[torch.Tensor], Any]:
        carry, y = function(*leaves)
        structures = tree_structure(carry), tree_structure(y)
        return [*_tensors(carry, "the carry"), *_tensors(y, "y")], structures

    return told


class _Step:
    """A function of a carry and an element, traced and cut into its forward and its backward part.

    Args:
      fn, init, xs: see `scan`; of the trees the structure matters.
      like: tensors of the sizes and dtypes of the carry's leaves and of one element's.
      device: where the loop runs.
      needs_grad: of each of `like`.
      partition_fn: see `scan`.
    """

    def __init__(
        self,
        fn: Callable[..., Any],
        init: PyTree,
        xs: PyTree,
        like: Sequence[torch.Tensor],
        device: torch.device,
        needs_grad: Sequence[bool],
        partition_fn: Callable[..., tuple[fx.GraphModule, fx.GraphModule]],
    ) -> None:
        carries, self._unflatten_carry = tree_flatten_none(init)
        _, self._unflatten_x = tree_flatten_none(xs)
        self.carry_count = len(carries)
        self._carry_structure = tree_structure(init)
        self._device, self._like, self.needs_grad = device, list(like), list(needs_grad)
        with _tracing.LOCK:
            self._trace(fn, init, xs, partition_fn)
        self._captured: dict[str, Any] = {}

    # Tracing.

    def _trace(
        self, fn: Callable[..., Any], init: PyTree, xs: PyTree, partition_fn: Callable[..., Any]
    ) -> None:
        with FakeTensorMode():
            arguments = tuple(
                torch.empty(leaf.shape, dtype=leaf.dtype, device=self._device).requires_grad_(needs)
                for leaf, needs in zip(self._like, self.needs_grad, strict=True)
            )
        flat = self._flat(_of_leaves(fn, init, xs, any(self.needs_grad)))
        try:
            graph = aot_export_joint_simple(flat, arguments, trace_joint=any(self.needs_grad))
        except RuntimeError as error:
            if "input mutations" not in str(error) and "received a mutation" not in str(error):
                raise
            raise RuntimeError(
                "scan: fn changes one of its arguments by an in-place operation; it is to give a new value instead"
            ) from None
        self._kept: list[int | None] = []  # which of the arguments each activation is
        self._unchanged: set[int] = set()  # carries that come out as they go in
        if not any(self.needs_grad):
            self._forward, self._backward = graph, None
            return
        _control_flow.check_backward(graph.graph, self.result_count)
        self._forward, self._backward = partition_fn(graph, [], num_fwd_outputs=self.result_count)
        results = list(self._forward.graph.output_node().args[0])
        for i, result in enumerate(results[: self.carry_count]):
            is_copy = result.target is torch.ops.aten.clone.default
            if self._argument_of(result.args[0] if is_copy else result) == i:
                self._unchanged.add(i)
        self._kept = [self._argument_of(node) for node in results[self.result_count :]]

    def _flat(self, of_leaves: Callable[..., tuple[PyTree, PyTree]]) -> Callable[..., Any]:
        """The leaves that it gives, each memory of its own."""

        def flat(*leaves: torch.Tensor) -> list[torch.Tensor]:
            carry, y = of_leaves(*leaves)
            self._check_carry(carry, leaves)
            ys, self._unflatten_y = tree_flatten_none(y)
            results = [*_tensors(carry, "the carry"), *ys]
            self.result_count = len(results)
            self._has_tangent = [result.requires_grad for result in results]
            return _without_aliases(results, leaves)

        return flat

    def _check_carry(self, carry: PyTree, leaves: Sequence[torch.Tensor]) -> None:
        if tree_structure(carry) != self._carry_structure:
            raise ValueError(
                f"scan: the carry's structure changes from {self._carry_structure[0]} to {tree_structure(carry)[0]}"
            )
        for i, (after, before) in enumerate(
            zip(_tensors(carry, "the carry"), leaves, strict=False)
        ):
            if (after.shape, after.dtype) != (before.shape, before.dtype):
                raise ValueError(
                    f"scan: leaf {i} of the carry is {before.dtype} of shape {tuple(before.shape)} before a run of fn "
                    f"and {after.dtype} of shape {tuple(after.shape)} after it; a carry keeps both"
                )

    def _argument_of(self, node: fx.Node) -> int | None:
        placeholders = [n for n in self._forward.graph.nodes if n.op == "placeholder"]
        return placeholders.index(node) if node in placeholders else None

    # The three functions of trees.

    def forward(self, carry: PyTree, x: PyTree) -> tuple[PyTree, tuple[PyTree, tuple[Any, ...]]]:
        """The next carry, y, and the activations that are no leaf of x."""
        results = self._run_forward(*_tensors(carry, "the carry"), *_tensors(x, "x"))
        activations = zip(results[self.result_count :], self._kept, strict=True)
        partial = tuple(a for a, argument in activations if not self._is_x(argument))
        new_carry, y = self.unflatten_results(results[: self.result_count])
        return new_carry, (y, partial)

    def alias_input(self, partial_activations: Sequence[Any], x: PyTree) -> tuple[Any, ...]:
        """All activations."""
        rest, xs = iter(partial_activations), _tensors(x, "x")
        return tuple(
            xs[i - self.carry_count] if self._is_x(i) else next(rest)  # type: ignore[operator]
            for i in self._kept
        )

    def backward(
        self, grad_new_carry: PyTree, others: tuple[PyTree, Sequence[Any]]
    ) -> tuple[PyTree, PyTree]:
        """The gradients of the carry and of x; None for a leaf that needs none."""
        grad_y, activations = others
        grads = [*_tensors(grad_new_carry, "the carry"), *_tensors(grad_y, "y")]
        gradients = self._run_backward(activations, grads)
        return (
            self._unflatten_carry(gradients[: self.carry_count]),
            self._unflatten_x(gradients[self.carry_count :]),
        )

    def unflatten_results(self, results: Sequence[torch.Tensor]) -> tuple[PyTree, PyTree]:
        """The carry and y of their leaves."""
        carry = self._unflatten_carry(results[: self.carry_count])
        return carry, self._unflatten_y(results[self.carry_count :])

    def _is_x(self, argument: int | None) -> bool:
        return argument is not None and argument >= self.carry_count

    def _run_forward(self, *leaves: torch.Tensor) -> list[torch.Tensor]:
        return list(_control_flow.traced(self._forward)(*leaves))

    def _run_backward(
        self, activations: Sequence[Any], grads: Sequence[torch.Tensor]
    ) -> list[torch.Tensor | None]:
        assert self._backward is not None, "nothing that the function takes needs a gradient"
        tangents = [g for g, has in zip(grads, self._has_tangent, strict=True) if has]
        return list(_control_flow.traced(self._backward)(*activations, *tangents))

    # The loops. What is captured is kept with the step, for the calls of a pure function.

    def scan_forward(
        self, leaves: Sequence[torch.Tensor], length: int
    ) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
        """The results, and the activations: those that are arguments are these, and the others are stacked."""
        if "forward" not in self._captured:

            def run(*tensors: torch.Tensor) -> list[torch.Tensor]:
                results = self._run_forward(*tensors)
                own = zip(results[self.result_count :], self._kept, strict=True)
                return results[: self.result_count] + [
                    a for a, i in own if not self._is_argument(i)
                ]

            self._captured["forward"] = _control_flow.capture(self._device, self._like, run)
        carries, xs = leaves[: self.carry_count], leaves[self.carry_count :]
        results = _control_flow.scan(self._captured["forward"], carries, xs, (), length)
        own = iter(results[self.result_count :])
        activations = [leaves[i] if self._is_argument(i) else next(own) for i in self._kept]  # type: ignore[index]
        return results[: self.result_count], activations

    def _is_argument(self, argument: int | None) -> bool:
        return self._is_x(argument) or argument in self._unchanged

    def scan_backward(
        self, activations: Sequence[torch.Tensor], grads: Sequence[torch.Tensor], length: int
    ) -> list[torch.Tensor | None]:
        """The gradients of the leaves of init and xs, of those of the last carries and of the stacked ys."""
        carried = [i for i in range(self.carry_count) if self.needs_grad[i]]
        ys = [i for i in range(self.carry_count, self.result_count) if self._has_tangent[i]]
        is_same = [argument in self._unchanged for argument in self._kept]
        same = [a for a, same in zip(activations, is_same, strict=True) if same]
        stacked = [grads[i] for i in ys]
        stacked += [a for a, same in zip(activations, is_same, strict=True) if not same]
        carries = [grads[i] for i in carried]
        if "backward" not in self._captured:
            like = [*carries, *_control_flow.slices_like(stacked), *same]
            self._captured["backward"] = self._capture_backward(like, carried, ys, is_same)
        body, given = self._captured["backward"]
        results = _control_flow.scan(body, carries, stacked, same, length, reverse=True)
        gradients: list[torch.Tensor | None] = [None] * len(self._like)
        for place, result in zip([*carried, *given], results, strict=True):
            gradients[place] = result
        return gradients

    def _capture_backward(
        self, like: Sequence[torch.Tensor], carried: list[int], ys: list[int], is_same: list[bool]
    ) -> tuple[Any, list[int]]:
        """The body of the loop, and the leaves of x of which it gives the gradients."""
        given: list[int] = []

        def run(*tensors: torch.Tensor) -> list[torch.Tensor]:
            grads: list[Any] = [None] * self.result_count
            for place, tensor in zip([*carried, *ys], tensors, strict=False):
                grads[place] = tensor
            first = len(carried) + len(ys)
            stacked = iter(tensors[first : first + is_same.count(False)])
            same = iter(tensors[first + is_same.count(False) :])
            activations = [next(same) if is_ else next(stacked) for is_ in is_same]
            gradients = self._run_backward(activations, grads)
            given[:] = [
                i for i, g in enumerate(gradients) if i >= self.carry_count and g is not None
            ]
            # A carry that is not used has no gradient.
            of_carries = [
                torch.zeros_like(tensor) if gradients[i] is None else gradients[i]
                for i, tensor in zip(carried, tensors, strict=False)
            ]
            return [*of_carries, *(gradients[i] for i in given)]  # type: ignore[list-item]

        return _control_flow.capture(self._device, like, run), given


class _Scan(torch.autograd.Function):
    """The loop over a step, of the leaves of init and xs. The activations are results, too, which nobody sees."""

    @staticmethod
    def forward(ctx: Any, step: _Step, length: int, *leaves: torch.Tensor) -> Any:
        """The last carries and the stacked ys."""
        results, activations = step.scan_forward(leaves, length)
        ctx.step, ctx.length = step, length
        ctx.save_for_backward(*activations)
        ctx.mark_non_differentiable(*(r for r in results if not _is_continuous(r)))
        return tuple(results)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        """The gradients of init and xs."""
        gradients = ctx.step.scan_backward(ctx.saved_tensors, grads, ctx.length)
        return None, None, *gradients


def _scan_in_trace(fn: Callable[..., Any], init: PyTree, xs: PyTree) -> tuple[PyTree, PyTree]:
    """A scan in what is being traced: torch's operator, which the trace keeps and which is a loop when that runs."""
    carries, unflatten_carry = tree_flatten_none(init)
    leaves, unflatten_x = tree_flatten_none(xs)
    unflatten_y: list[Unflatten] = []

    def flat(*values: torch.Tensor) -> list[torch.Tensor]:
        carry, y = fn(unflatten_carry(values[: len(carries)]), unflatten_x(values[len(carries) :]))
        ys, unflatten = tree_flatten_none(y)
        unflatten_y[:] = [unflatten]
        return _without_aliases([*_tensors(carry, "the carry"), *ys], values)

    results = scan_op(flat, carries, leaves, ())
    ys = unflatten_y[0](results[len(carries) :])
    return unflatten_carry(results[: len(carries)]), ys


def _tensors(tree: PyTree, name: str) -> list[torch.Tensor]:
    """The leaves of a tree that are not None."""
    leaves, _ = tree_flatten_none(tree)
    for leaf in leaves:
        if not isinstance(leaf, torch.Tensor):
            raise ValueError(f"scan: the leaves of {name} are tensors or None, and one is {leaf!r}")
    return leaves


def _common_length(xs: Sequence[torch.Tensor]) -> int:
    if not xs:
        raise ValueError("scan: xs has no tensor, so that there is nothing to scan over")
    if any(x.dim() == 0 for x in xs):
        raise ValueError("scan: a tensor of xs has no dimension to scan over")
    lengths = [x.shape[0] for x in xs]
    if len(set(lengths)) > 1:
        raise ValueError(f"scan: the first dimensions of xs are to be the same, and are {lengths}")
    return lengths[0]


def _is_continuous(tensor: torch.Tensor) -> bool:
    return tensor.dtype.is_floating_point or tensor.dtype.is_complex


def _without_aliases(
    results: Sequence[torch.Tensor], arguments: Sequence[torch.Tensor]
) -> list[torch.Tensor]:
    """The results, copied where one is a view, or shares the memory of an argument or of another result."""
    taken = {argument.untyped_storage()._cdata for argument in arguments}
    own = []
    for result in results:
        storage = result.untyped_storage()._cdata
        is_own = storage not in taken and result._base is None
        own.append(result if is_own else result.clone())
        taken.add(storage)
    return own
