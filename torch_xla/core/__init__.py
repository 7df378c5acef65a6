"""What programs written for PyTorch/XLA import: `xla_model`, and collectives with gradients."""

from . import functions as functions
from . import xla_env_vars as xla_env_vars
from . import xla_model as xla_model
