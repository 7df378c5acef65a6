"""What programs written for PyTorch/XLA import: `xla_model`, collectives with gradients, and programs built by hand."""

from . import functions as functions
from . import xla_builder as xla_builder
from . import xla_env_vars as xla_env_vars
from . import xla_model as xla_model
