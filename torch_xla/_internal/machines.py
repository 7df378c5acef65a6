"""The machines that run one program together, as the environment of the program names them.

Whatever runs the same command on all of them says so: `xla_dist` with PET_NNODES, PET_NODE_RANK, PET_MASTER_ADDR and
PET_MASTER_PORT, which torchrun reads too; a TPU slice with TPU_WORKER_HOSTNAMES and TPU_WORKER_ID.
"""

import dataclasses
import os

from torch_xla.core import xla_env_vars as xenv

DEFAULT_MASTER_PORT = 12355


@dataclasses.dataclass(frozen=True)
class Machines:
    """How many there are, which one this is, and where the processes of all of them meet: at the first one."""

    count: int
    index: int
    master_address: str
    master_port: int


def machines() -> Machines | None:
    """None for a machine that is alone. Raises ValueError where the environment names some, but not all of it."""
    if _number("PET_NNODES", 1) > 1:
        return _checked("PET_NNODES", _number("PET_NNODES", 1), "PET_NODE_RANK", _master("PET_"))
    names = [name for name in os.environ.get(xenv.TPU_WORKER_HOSTNAMES, "").split(",") if name]
    if len(names) > 1 and os.environ.get(xenv.PJRT_DEVICE, "").upper() == "TPU":
        address = os.environ.get(xenv.MASTER_ADDR) or names[0]
        port = _number(xenv.MASTER_PORT, DEFAULT_MASTER_PORT)
        rank = xenv.TPU_WORKER_ID
        if not os.environ.get(rank):
            rank = xenv.CLOUD_TPU_TASK_ID
        return _checked(xenv.TPU_WORKER_HOSTNAMES, len(names), rank, (address, port))
    return None


def _master(prefix: str) -> tuple[str, int]:
    name = prefix + xenv.MASTER_ADDR
    if not os.environ.get(name):
        raise ValueError(
            f"There are several machines, but {name}, the first one's address, is not set."
        )
    return os.environ[name], _number(prefix + xenv.MASTER_PORT, DEFAULT_MASTER_PORT)


def _checked(count_name: str, count: int, index_name: str, master: tuple[str, int]) -> Machines:
    index = _number(index_name, -1)
    if not 0 <= index < count:
        raise ValueError(
            f"{count_name} says that there are {count} machines, and {index_name}={os.environ.get(index_name)} is not "
            f"the rank of one: it must be at least 0 and less than {count}."
        )
    return Machines(count, index, *master)


def _number(name: str, default: int) -> int:
    text = os.environ.get(name) or str(default)
    if not text.lstrip("-").isdigit():
        raise ValueError(f"{name}={text} is not a number.")
    return int(text)
