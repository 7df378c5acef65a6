"""What programs and libraries of PyTorch/XLA use besides: checkpoints, structures with tensors, closures."""

from torch_xla._binding import library_directory

from . import closures as closures
from . import serialization as serialization
from . import utils as utils

# Where CMake finds this package: a folder for CMAKE_PREFIX_PATH, as `torch.utils.cmake_prefix_path`.
cmake_prefix_path = str(library_directory().parent / "share" / "cmake")
