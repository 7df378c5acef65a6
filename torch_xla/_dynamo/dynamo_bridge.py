"""See `torch_xla.core.dynamo_bridge`."""

from torch_xla.core.dynamo_bridge import extract_compiled_graph as extract_compiled_graph
