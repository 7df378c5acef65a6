"""An optimizer whose state is spread over the processes, each of which keeps its part (ZeRO, stage 1)."""

from collections.abc import Callable
from typing import Any

import torch
from torch.optim import Optimizer

import torch_xla
from torch_xla.core import _collectives
from torch_xla.core import xla_model as xm


class _Shard:
    """This process's rows of one parameter; rows are added so that all processes have the same number."""

    def __init__(
        self, whole: torch.nn.Parameter, place: int, count: int, dtype: torch.dtype
    ) -> None:
        self.whole = whole
        self._place, self._count = place, count
        self.rows = -(-self._matrix(whole.detach()).size(0) // count)
        self.part = torch.nn.Parameter(self.own(whole.detach()).to(dtype), whole.requires_grad)

    @staticmethod
    def _matrix(value: torch.Tensor) -> torch.Tensor:
        return value.reshape(1) if value.dim() == 0 else value

    def padded(self, value: torch.Tensor) -> torch.Tensor:
        """A tensor of the parameter's shape, with as many rows as the processes have together."""
        value = self._matrix(value)
        missing = self.rows * self._count - value.size(0)
        return torch.cat([value, value.new_zeros(missing, *value.shape[1:])]) if missing else value

    def own(self, value: torch.Tensor) -> torch.Tensor:
        """This process's rows of it."""
        return self.padded(value)[self.rows * self._place : self.rows * (self._place + 1)].clone()

    def write_back(self, every: torch.Tensor) -> None:
        """Overwrites the parameter with what the processes have together."""
        rows = self._matrix(self.whole).size(0)
        self.whole.copy_(every[:rows].reshape(self.whole.shape))


class ZeroRedundancyOptimizer(Optimizer):
    """Lets each process update its rows of each parameter, with an optimizer that knows only these.

    `step` averages the gradients over the processes itself: call it instead of `xm.optimizer_step`.

    Args:
      params: parameters on an xla device, or groups of them.
      optimizer_class: what updates the parts; it must treat each element by itself, as Adam does.
      optimizer_dtype: the type of the parts and of the optimizer's state; float32 by default.
      grad_clipping, max_norm: scale the gradients so that their norm, over all processes, is at most `max_norm`, 1 by
        default.
      sharding_groups: lists of ranks that share parameters; all ranks by default.
      grad_norm_groups: lists of ranks with other parameters of the same model, over which the norm is summed too.
      lazy_init: make the parts only when `init_zero` is called; what needs them before raises RuntimeError.
      use_grad_acc_hook: gradients are summed in `optimizer_dtype`, in the parameters' `main_grad`, and `grad` is None
        after each backward.
      save_master_weights: `state_dict` has the parts, too, which lose nothing if the parameters are of a smaller type.
      pin_layout, bucket_cap_mb_all_gather, bucket_cap_mb_reduce_scatter, higher_cc_precision: of no effect.
      defaults: the options of `optimizer_class`.
    """

    def __init__(
        self,
        params: Any,
        optimizer_class: type[Optimizer],
        optimizer_dtype: torch.dtype | None = None,
        grad_clipping: bool = True,
        max_norm: float | None = None,
        pin_layout: bool = True,
        sharding_groups: list[list[int]] | None = None,
        grad_norm_groups: list[list[int]] | None = None,
        lazy_init: bool = False,
        bucket_cap_mb_all_gather: int = 0,
        bucket_cap_mb_reduce_scatter: int = 0,
        use_grad_acc_hook: bool = False,
        save_master_weights: bool = False,
        higher_cc_precision: bool = False,
        **defaults: Any,
    ) -> None:
        self.inited = False  # torch's constructor adds the groups
        super().__init__(params, defaults)
        own = _collectives._own(
            _collectives._equal_ranks("ZeroRedundancyOptimizer", sharding_groups)
        )
        self.local_world_size = len(own)
        self.local_rank = own.index(_collectives._place_in_world()[1])
        self.sharding_groups = sharding_groups
        self.grad_norm_groups = grad_norm_groups
        self.optimizer_class = optimizer_class
        self.optimizer_dtype = optimizer_dtype or torch.float32
        self.use_grad_acc_hook = use_grad_acc_hook
        self.save_master_weights = save_master_weights
        self.max_norm = (1.0 if max_norm is None else max_norm) if grad_clipping else None
        # The norm of the gradients before they were clipped, after each step.
        self.grad_norm: torch.Tensor | None = None
        self._hooks: list[Any] = []
        self._shards: list[list[_Shard]] = []
        if not lazy_init:
            self.init_zero()

    def init_zero(self) -> None:
        """Makes this process's parts and the optimizer of them."""
        for hook in self._hooks:
            hook.remove()
        self._hooks, self._shards = [], []
        groups = [self._cut(group) for group in self.param_groups]
        self.base_optimizer = self.optimizer_class(groups, **self.defaults)
        self.inited = True
        torch_xla.sync(reset_scope=False)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Adds parameters, with their own options, as to any optimizer; their parts are made at once."""
        super().add_param_group(param_group)
        if self.inited:
            self.base_optimizer.add_param_group(self._cut(self.param_groups[-1]))
            torch_xla.sync(reset_scope=False)

    def _cut(self, group: dict[str, Any]) -> dict[str, Any]:
        """The group of this process's parts of a group's parameters."""
        shards = [
            _Shard(value, self.local_rank, self.local_world_size, self.optimizer_dtype)
            for value in group["params"]
        ]
        self._shards.append(shards)
        if self.use_grad_acc_hook:
            self._hooks += [
                shard.whole.register_post_accumulate_grad_hook(self._move_to_main_gradient)
                for shard in shards
                if shard.whole.requires_grad
            ]
        return {**_options(group), "params": [shard.part for shard in shards]}

    def _move_to_main_gradient(self, parameter: torch.Tensor) -> None:
        gradient = parameter.grad
        if gradient is None:
            return
        main: torch.Tensor | None = getattr(parameter, "main_grad", None)
        if main is None:
            main = torch.zeros_like(gradient, dtype=self.optimizer_dtype)
            parameter.main_grad = main  # type: ignore[attr-defined]
        main.add_(gradient.detach().to(self.optimizer_dtype))
        parameter.grad = None

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forgets the gradients."""
        super().zero_grad(set_to_none)
        for shard in self._every_shard() if self._hooks else ():
            main = getattr(shard.whole, "main_grad", None)
            if main is not None:
                main.zero_()

    def _every_shard(self) -> list[_Shard]:
        if not self.inited:
            raise RuntimeError(
                "ZeroRedundancyOptimizer: with lazy_init=True there are no parts before init_zero() is called."
            )
        return [shard for shards in self._shards for shard in shards]

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None, **kwargs: Any) -> Any:
        """Averages the gradients, updates the parameters on all processes, and returns the closure's value."""
        shards = self._every_shard()
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for shard in shards:
            shard.part.grad = self._reduced(shard)
        if self.max_norm is not None:
            self._clip(self.max_norm)
        # Schedulers have changed the options of these groups.
        for group, base in zip(self.param_groups, self.base_optimizer.param_groups, strict=True):
            base.update(_options(group))
        self.base_optimizer.step(**kwargs)
        for shard in shards:
            if shard.part.grad is not None:
                self._write_back(shard)
                shard.part.grad = None
        return loss

    def _write_back(self, shard: _Shard) -> None:
        part = shard.part.detach().to(shard.whole.dtype)
        shard.write_back(xm.all_gather(part, groups=self.sharding_groups))

    def _reduced(self, shard: _Shard) -> torch.Tensor | None:
        """This process's rows of the mean gradient."""
        gradient = shard.whole.grad
        if self.use_grad_acc_hook:
            gradient = getattr(shard.whole, "main_grad", None)
        if gradient is None:
            return None
        count = self.local_world_size
        own = xm.reduce_scatter(
            xm.REDUCE_SUM,
            shard.padded(gradient.to(self.optimizer_dtype)),
            1.0 / count,
            0,
            count,
            groups=self.sharding_groups,
        )
        return own

    def _clip(self, max_norm: float) -> None:
        gradients = [s.part.grad for s in self._every_shard() if s.part.grad is not None]
        if not gradients:
            return
        squares = torch.stack([gradient.float().square().sum() for gradient in gradients]).sum()
        total = xm.all_reduce(xm.REDUCE_SUM, squares, groups=self.sharding_groups)
        if self.grad_norm_groups is not None:
            total = xm.all_reduce(xm.REDUCE_SUM, total, groups=self.grad_norm_groups)
        self.grad_norm = total.sqrt()
        factor = (max_norm / (self.grad_norm + 1e-6)).clamp(max=1.0)
        for gradient in gradients:
            gradient.mul_(factor.to(gradient.dtype))

    def state_dict(self) -> dict[str, Any]:
        """This process's part of the state; `base_state` is that of the optimizer of the parts."""
        shards = self._every_shard()
        state = super().state_dict()
        state["base_state"] = self.base_optimizer.state_dict()["state"]
        state["shape_info"] = {
            index: tuple(shard.whole.shape) for index, shard in enumerate(shards)
        }
        if self.save_master_weights:
            state["sharded_master_weights"] = {
                index: shard.part.detach() for index, shard in enumerate(shards)
            }
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes up what the process of the same rank has saved, in a world of the same size."""
        own = {index: tuple(shard.whole.shape) for index, shard in enumerate(self._every_shard())}
        given = dict(state_dict)
        base_state = given.pop("base_state")
        shapes = given.pop("shape_info", None)
        parts = given.pop("sharded_master_weights", None)
        if shapes is not None and shapes != own:
            raise ValueError(
                f"The state is that of parameters of other shapes: {shapes}, not {own}."
            )
        super().load_state_dict(given)
        base = self.base_optimizer.state_dict()
        self.base_optimizer.load_state_dict({**base, "state": base_state})
        with torch.no_grad():
            for index, shard in enumerate(self._every_shard()):
                if parts is None:
                    shard.part.copy_(shard.own(shard.whole.detach()))
                else:
                    shard.part.copy_(parts[index])
                    self._write_back(shard)


def _options(group: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in group.items() if name != "params"}
