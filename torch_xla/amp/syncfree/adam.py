"""See `torch_xla.amp.syncfree`."""

from . import Adam as Adam
