from . import tpu as tpu
