import torch_xla.core.xla_model as xm
from torch_xla import runtime as xr
import torch
import torch_xla.utils.utils as xu
import torch.nn as nn
import torch.optim as optim
import torch.nn.functional as F
import torch_xla
import torch_xla.distributed.parallel_loader as pl


def _mp_fn(index):
  """Called on each process/device.

  Args:
      index: Index of the process.
  """

  device = torch_xla.device()  # Get the device assigned to this process.
  # Wrap the loader for multi-device.
  mp_device_loader = pl.MpDeviceLoader(train_loader, device)

  model = MNIST().train().to(device)
  loss_fn = nn.NLLLoss()
  optimizer = optim.SGD(model.parameters(), lr=0.01, momentum=0.5)
  for data, target in mp_device_loader:
    optimizer.zero_grad()
    output = model(data)
    loss = loss_fn(output, target)
    loss.backward()

    # Perform the optimization step and trigger the execution of the
    # accumulated XLA operations on the device for this process.
    xm.optimizer_step(optimizer)


if __name__ == '__main__':
  # Launch the multi-device training.
  torch_xla.launch(_mp_fn, args=())
