"""What `torch.distributed.checkpoint` is to write of a state dictionary with xla tensors, and to read."""

from typing import Any

from torch.distributed.checkpoint import DefaultLoadPlanner, DefaultSavePlanner, LoadPlan
from torch.distributed.checkpoint.metadata import Metadata, StorageMeta


class SPMDSavePlanner(DefaultSavePlanner):
    """Writes each tensor once, whichever processes have it.

    `unsharded_state_dict` has the entries by their flattened names; `sharded_state_dict` is empty, as a process has one
    device.
    """

    def __init__(self) -> None:
        super().__init__()

    def set_up_planner(  # type: ignore[override]
        self,
        state_dict: dict[str, Any],
        is_coordinator: bool = False,
        storage_meta: StorageMeta | None = None,
    ) -> None:
        super().set_up_planner(state_dict, storage_meta, is_coordinator)
        self.sharded_state_dict: dict[str, Any] = {}
        self.unsharded_state_dict = self.state_dict


class SPMDLoadPlanner(DefaultLoadPlanner):
    """Reads into the tensors that are there; the attributes are those of `SPMDSavePlanner`."""

    def __init__(self) -> None:
        super().__init__()

    def set_up_planner(
        self,
        state_dict: dict[str, Any],
        metadata: Metadata | None = None,
        is_coordinator: bool = False,
    ) -> None:
        super().set_up_planner(state_dict, metadata, is_coordinator)
        self.sharded_state_dict: dict[str, Any] = {}
        self.unsharded_state_dict = self.state_dict

    def finish_plan(self, central_plan: LoadPlan) -> LoadPlan:  # type: ignore[override]
        return super().finish_plan(central_plan)
