"""The `xla` device for PyTorch.

    import torch
    import torch_xla

    t = torch.randn(2, 2, device="xla")
    print(t)

Importing this package starts no runtime and no thread: the first operation on a device does.
"""

import atexit as _atexit

from . import _binding

_XLAC = _binding.load()

from . import _accelerator as _accelerator  # noqa: E402
from . import _backward_thread as _backward_thread  # noqa: E402
from . import _binding_names as _binding_names  # noqa: E402
from . import _compilation as _compilation  # noqa: E402
from . import _control_flow as _control_flow  # noqa: E402
from . import _decompositions as _decompositions  # noqa: E402
from . import _device_module as _device_module  # noqa: E402
from . import _flex_attention as _flex_attention  # noqa: E402
from . import _loading as _loading  # noqa: E402
from . import _lowering_context as _lowering_context  # noqa: E402
from . import _module_moves as _module_moves  # noqa: E402
from . import _nested_attention as _nested_attention  # noqa: E402
from . import _optimizers as _optimizers  # noqa: E402
from . import _patched_functions as _patched_functions  # noqa: E402
from . import _process_exit as _process_exit  # noqa: E402
from . import _sparse as _sparse  # noqa: E402
from . import _storages as _storages  # noqa: E402
from . import amp as amp  # noqa: E402
from . import backends as backends  # noqa: E402
from . import core as core  # noqa: E402
from . import debug as debug  # noqa: E402
from . import distributed as distributed  # noqa: E402
from . import experimental as experimental  # noqa: E402
from . import runtime as runtime  # noqa: E402
from . import utils as utils  # noqa: E402
from ._internal import remote as _remote  # noqa: E402
from ._internal import tpu as tpu  # noqa: E402
from ._internal import world as _world  # noqa: E402
from .core import xla_model as xm  # noqa: E402, F401
from .distributed import _functional_collectives as _functional_collectives  # noqa: E402
from .experimental import plugins as _plugins  # noqa: E402
from .stablehlo import save_as_stablehlo as save_as_stablehlo  # noqa: E402
from .stablehlo import save_torch_model_as_stablehlo as save_torch_model_as_stablehlo  # noqa: E402
from .torch_xla import compile as compile  # noqa: E402
from .torch_xla import device as device  # noqa: E402
from .torch_xla import device_count as device_count  # noqa: E402
from .torch_xla import devices as devices  # noqa: E402
from .torch_xla import launch as launch  # noqa: E402
from .torch_xla import manual_seed as manual_seed  # noqa: E402
from .torch_xla import real_devices as real_devices  # noqa: E402
from .torch_xla import set_custom_compile_options as set_custom_compile_options  # noqa: E402
from .torch_xla import set_dynamic as set_dynamic  # noqa: E402
from .torch_xla import step as step  # noqa: E402
from .torch_xla import sync as sync  # noqa: E402
from .version import __version__ as __version__  # noqa: E402

# An import again, importlib.reload, finds torch as the first has left it.
_is_again = "_is_again" in globals()
if not _is_again:
    _binding_names.register()
    _lowering_context.register()
    _device_module.register()
    _accelerator.register()
    _compilation.register()
    _control_flow.register()
    _decompositions.register()
    _flex_attention.register()
    _loading.register()
    _module_moves.register()
    _nested_attention.register()
    _backward_thread.register()
    _optimizers.register()
    _storages.register()
    _patched_functions.register()
    _sparse.register()
_remote.select_by_old_name()
_plugins.register_available_plugins()
if not _is_again:
    _atexit.register(_process_exit.prepare)
    _world.register(_plugins.prepare_process)
    debug.start_reports()
