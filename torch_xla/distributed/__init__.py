from . import parallel_loader as parallel_loader
from . import xla_multiprocessing as xla_multiprocessing
