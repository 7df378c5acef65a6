"""See `torch_xla.amp.syncfree`."""

from . import AdamW as AdamW
