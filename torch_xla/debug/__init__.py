from . import metrics as metrics
from . import profiler as profiler
