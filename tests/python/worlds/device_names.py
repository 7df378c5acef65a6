"""By which names two processes of the CPU engine call their devices; the argument is how they are started."""

import io
import os
import sys
import threading
import warnings

import pytest
import torch
import torch.distributed as dist

import torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.distributed.xla_backend
import torch_xla.runtime as xr
from torch_xla import _XLAC


def check_names(rank, is_started):
    # Autograd asks once how many devices there are, here before the runtime knows.
    torch.ones(1, requires_grad=True).sum().backward()
    own, other = torch.device("xla", rank), 1 - rank
    assert xm.xla_device() == own and torch.xla.current_device() == rank
    assert _XLAC._xla_runtime_is_initialized() == is_started
    assert torch.ones(1, device="xla").device == torch.ones(1).to(own).device == own
    assert torch_xla.devices() == [own] == [torch_xla.device()] == [torch_xla.device(rank)]
    assert (torch_xla.device_count(), xr.addressable_device_count()) == (1, 1)
    for call in (
        lambda: torch.ones(1, device=f"xla:{other}"),
        lambda: torch.ones(1).to(f"xla:{other}"),
    ):
        with pytest.raises(
            RuntimeError, match=f"no device xla:{other}; this process has xla:{rank}"
        ):
            call()
    with pytest.raises(IndexError, match=f"no device xla:{other}; this process has xla:{rank}"):
        xm.xla_device(other)
    assert xm.xla_device() == own
    named = []
    thread = threading.Thread(target=lambda: named.append(torch.ones(1, device="xla").device))
    thread.start()
    thread.join()
    assert named == [own]


def check_as_other_accelerators(rank):
    """What programs write for any accelerator."""
    assert torch.accelerator.device_count() == torch.xla.device_count() == 2
    torch.accelerator.set_device_index(
        int(os.environ["LOCAL_RANK"]) % torch.accelerator.device_count()
    )
    assert torch.accelerator.current_device_index() == rank
    with torch.xla.device(rank), torch.device(f"xla:{rank}"):
        assert torch.ones(1).device.index == rank
    assert len(torch.xla.get_rng_state_all()) == 1
    torch.xla.set_rng_state_all(torch.xla.get_rng_state_all())


def check_gradients(rank):
    """Of the CPU, too, beside the device."""
    seen = []

    class Noting(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, gradient):
            seen.append((torch.xla.current_device(), torch.zeros(1, device="xla").device.index))
            return gradient * 2

    x = torch.ones(2, device="xla", requires_grad=True)
    Noting.apply(x).sum().backward()
    assert x.grad.tolist() == [2, 2] and seen == [(rank, rank)]


def check_random_numbers():
    torch.manual_seed(5)
    numbers = torch.rand(3, device="xla")
    everybody = xm.all_gather(numbers).view(2, 3).tolist()
    assert everybody[0] == everybody[1] and len(set(everybody[0])) == 3
    state = xm.get_rng_state()
    drawn = torch.rand(2, device="xla").tolist()
    xm.set_rng_state(state)
    assert torch.rand(2, device="xla").tolist() == drawn
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # two devices are said to be many
        for devices in (None, [xm.xla_device().index]):
            xm.set_rng_state(state)
            with torch.random.fork_rng(devices, device_type="xla"):
                assert torch.rand(2, device="xla").tolist() == drawn
            assert torch.rand(2, device="xla").tolist() == drawn


def check_what_crosses(rank, given):
    """What others have on their device comes to this process's."""
    assert given is None or (given.device.index, given.tolist()) == (rank, [1, 2])
    tensor = torch.full((2,), float(rank), device="xla")
    everybody = [None, None]
    dist.all_gather_object(everybody, {"of": tensor})
    assert [(each["of"].device.index, each["of"].tolist()) for each in everybody] == [
        (rank, [0, 0]),
        (rank, [1, 1]),
    ]
    file = io.BytesIO()
    torch.save(torch.nn.Linear(2, 1, device="xla").state_dict(), file)
    saved = [None, None]
    dist.all_gather_object(saved, file.getvalue())
    for content in saved:
        for place, index in ((None, rank), ("xla", rank), (f"xla:{rank}", rank), ("cpu", None)):
            loaded = torch.load(io.BytesIO(content), map_location=place)
            assert {value.device.index for value in loaded.values()} == {index}
    of_numpy = torch._utils._rebuild_device_tensor_from_numpy(
        torch.ones(2).numpy(), torch.float32, "xla:0", False
    )
    assert of_numpy.device.index == rank


def run(index, start, given=None):
    rank = xr.local_ordinal()
    if start != "fork after use":
        check_names(rank, given is not None)
        check_as_other_accelerators(rank)
        check_gradients(rank)
        check_random_numbers()
        dist.init_process_group("xla", init_method="xla://")
        check_what_crosses(rank, given)
        dist.destroy_process_group()
        return
    # The parent's tensors are still called what they were called there, and so is the device.
    assert torch_xla.device() == given.device == torch.device("xla:0")
    assert (given + torch.ones(2, device="xla")).tolist() == [2, 3]
    assert xm.all_reduce(xm.REDUCE_SUM, given).tolist() == [2, 4]


if __name__ == "__main__":
    start = sys.argv[1]
    given = torch.tensor([1.0, 2.0]).to("xla") if start in ("fork after use", "spawn") else None
    torch_xla.launch(run, (start, given), start_method=start.partition(" ")[0])
    print("passed")
