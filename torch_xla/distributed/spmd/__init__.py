"""One program on many devices, whose tensors are sharded; see `xla_sharding`."""

from .xla_sharding import EinsumLinear as EinsumLinear
from .xla_sharding import Mesh as Mesh
from .xla_sharding import PartitionSpec as PartitionSpec
from .xla_sharding import ShardingSpec as ShardingSpec
from .xla_sharding import ShardingType as ShardingType
from .xla_sharding import XLAPatchedLinear as XLAPatchedLinear
from .xla_sharding import apply_xla_patch_to_nn_linear as apply_xla_patch_to_nn_linear
from .xla_sharding import clear_sharding as clear_sharding
from .xla_sharding import get_1d_mesh as get_1d_mesh
from .xla_sharding import get_global_mesh as get_global_mesh
from .xla_sharding import mark_sharding as mark_sharding
from .xla_sharding import set_global_mesh as set_global_mesh
from .xla_sharding import xla_distribute_module as xla_distribute_module
from .xla_sharding import xla_distribute_tensor as xla_distribute_tensor
from .xla_sharding import xla_patched_nn_linear_forward as xla_patched_nn_linear_forward
