"""Plugins, programs compiled for devices that are not here, and what else PyTorch/XLA has here."""

from . import plugins as plugins
from .eager import eager_mode as eager_mode
from .eager import eager_mode_context as eager_mode_context
from .eager import is_eager_mode as is_eager_mode
