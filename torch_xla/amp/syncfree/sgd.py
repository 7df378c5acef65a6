"""See `torch_xla.amp.syncfree`."""

from . import SGD as SGD
