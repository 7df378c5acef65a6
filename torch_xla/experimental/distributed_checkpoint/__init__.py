"""Checkpoints of a training as it goes on, in the format of `torch.distributed.checkpoint`.

from torch_xla.experimental.distributed_checkpoint import CheckpointManager, prime_optimizer

manager = CheckpointManager("/checkpoints", save_interval=100, max_to_keep=3)
state = {"model": model.state_dict(), "optimizer": prime_optimizer(optimizer).state_dict()}
if manager.all_steps():
    manager.restore(manager.all_steps()[-1], state)
for step in range(...):
    ...
    manager.save_async(step, {"model": model.state_dict(), "optimizer": optimizer.state_dict()})
    if manager.reached_preemption(step):
        break
manager.join()
"""

from .manager import CheckpointManager as CheckpointManager
from .planners import SPMDLoadPlanner as SPMDLoadPlanner
from .planners import SPMDSavePlanner as SPMDSavePlanner
from .util import prime_optimizer as prime_optimizer
