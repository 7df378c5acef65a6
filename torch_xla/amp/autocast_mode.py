"""See `torch_xla.amp`."""

from . import autocast as autocast
