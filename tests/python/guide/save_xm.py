import torch
import torch_xla
import torch_xla.core.xla_model as xm

xm.save(model.state_dict(), path)
