"""Where PyTorch/XLA has its part of dynamo: doors to `torch_xla.core.dynamo_bridge`."""
