"""Which process writes, and reads, what of a state.

torch's own planners know it: what lies in parts is a `DTensor` here, of which each process writes its part, and what all
processes have is written once.
"""

from typing import Any

from torch.distributed.checkpoint.default_planner import DefaultLoadPlanner, DefaultSavePlanner
from torch.distributed.checkpoint.metadata import Metadata, StorageMeta
from torch.distributed.checkpoint.planner import LoadPlan

from torch_xla.experimental.distributed_checkpoint._helpers import _separated


class SPMDSavePlanner(DefaultSavePlanner):
    """The planner for `torch.distributed.checkpoint.save`.

    `sharded_state_dict` and `unsharded_state_dict` have, by flat names, what lies in parts and what does not.
    """

    def __init__(self) -> None:
        super().__init__()

    def set_up_planner(
        self,
        state_dict: dict[str, Any],
        is_coordinator: bool = False,
        storage_meta: StorageMeta | None = None,
    ) -> None:
        """Takes the state; PyTorch/XLA has the arguments in this order."""
        super().set_up_planner(state_dict, storage_meta, is_coordinator)
        self.sharded_state_dict, self.unsharded_state_dict = _separated(self.state_dict)


class SPMDLoadPlanner(DefaultLoadPlanner):
    """The planner for `torch.distributed.checkpoint.load`, into a state that need not lie in the parts that were saved.

    `sharded_state_dict` and `unsharded_state_dict` have, by flat names, what lies in parts and what does not.
    """

    def __init__(self) -> None:
        super().__init__()

    def set_up_planner(
        self,
        state_dict: dict[str, Any],
        metadata: Metadata | None = None,
        is_coordinator: bool = False,
    ) -> None:
        """Takes the state that is to be written into, and what the checkpoint holds."""
        super().set_up_planner(state_dict, metadata, is_coordinator)
        self.sharded_state_dict, self.unsharded_state_dict = _separated(self.state_dict)

    def finish_plan(self, central_plan: LoadPlan) -> LoadPlan:
        """Takes what is to be read, as all processes have agreed."""
        return super().finish_plan(central_plan)
