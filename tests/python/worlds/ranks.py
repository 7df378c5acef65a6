"""What each process of a world is told, before and without the start of the runtime."""

import os
import sys

import torch

import torch_xla
from torch_xla import _XLAC
from torch_xla import runtime as xr
from torch_xla.core import xla_model as xm

WORLD_SIZE_OF_THE_MODULE = xr.world_size()
assert not _XLAC._xla_runtime_is_initialized()


def check(index: int, expected: int) -> None:
    assert WORLD_SIZE_OF_THE_MODULE in (1, expected)
    assert (xr.global_ordinal(), xr.local_ordinal(), xr.world_size()) == (index, index, expected)
    assert (xr.process_index(), xr.process_count(), xr.host_index()) == (index, expected, 0)
    assert (xm.get_ordinal(), xm.get_local_ordinal(), xm.xrt_world_size()) == (
        index,
        index,
        expected,
    )
    assert xm.is_master_ordinal() == xm.is_master_ordinal(local=False) == (index == 0)
    assert (os.environ["XRT_HOST_WORLD_SIZE"], os.environ["XRT_HOST_ORDINAL"]) == ("1", "0")
    assert not _XLAC._xla_runtime_is_initialized()

    payloads = xm.rendezvous("here", f"of {index}".encode())
    assert payloads == [f"of {rank}".encode() for rank in range(expected)]
    assert xm.rendezvous("here", replicas=[index]) == [b""]
    assert xm.mesh_reduce("sum", index, sum) == sum(range(expected))
    called = []
    xm.do_on_ordinals(called.append, (index,), ordinals=(expected - 1,))
    assert called == ([index] if index == expected - 1 else [])

    assert (xr.addressable_device_count(), xr.global_device_count()) == (1, expected)
    names = [attributes["name"] for attributes in xr.global_runtime_device_attributes()]
    assert names == [f"{xr.device_type()}:{rank}" for rank in range(expected)]
    # Each process sees its own device only.
    assert torch_xla.real_devices() == [names[index]]
    number = xr.local_ordinal() if xr.device_type() == "CPU" else 0
    assert torch_xla.devices() == [torch_xla.device()] == [torch.device("xla", number)]


if __name__ == "__main__":
    count = int(sys.argv[1])
    torch_xla.launch(check, (count,))
    # One process, and those of torchrun, run in place.
    in_place = count == 1 or "TORCHELASTIC_RUN_ID" in os.environ
    assert _XLAC._xla_runtime_is_initialized() == in_place
    print("passed")
