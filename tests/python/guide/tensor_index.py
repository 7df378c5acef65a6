import torch
import torch_xla
import torch_xla.core.xla_model as xm

t = torch.randn(2, 2, device='xla:0')
print(t.device)
print(t)
