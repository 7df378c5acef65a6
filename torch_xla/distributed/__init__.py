"""Training in several processes: launching them, loaders, sharded models and optimizers, process groups."""

from . import parallel_loader as parallel_loader
from . import xla_multiprocessing as xla_multiprocessing
