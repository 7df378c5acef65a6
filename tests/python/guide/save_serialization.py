import torch_xla.utils.serialization as xser

xser.save(model.state_dict(), path)
