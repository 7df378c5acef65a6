"""Fully sharded data parallel training."""

from torch_xla.distributed.fsdp import wrap as wrap
from torch_xla.distributed.fsdp.state_dict_utils import (
    consolidate_sharded_model_checkpoints as consolidate_sharded_model_checkpoints,
)
from torch_xla.distributed.fsdp.state_dict_utils import (
    consolidate_sharded_state_dicts as consolidate_sharded_state_dicts,
)
from torch_xla.distributed.fsdp.utils import checkpoint_module as checkpoint_module
from torch_xla.distributed.fsdp.xla_fully_sharded_data_parallel import (
    XlaFullyShardedDataParallel as XlaFullyShardedDataParallel,
)
