import torch_xla.runtime as xr

xr.initialize_cache('YOUR_CACHE_PATH', readonly=False)
