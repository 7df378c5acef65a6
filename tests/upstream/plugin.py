"""A plugin of pytest for upstream's tests: they import helpers from a part of the package that is with the tests."""

import os
from pathlib import Path

import torch_xla

torch_xla.__path__.append(str(Path(os.environ["UPSTREAM_CHECKOUT"]) / "torch_xla"))
